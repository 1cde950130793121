//! Runs `triplane store`, and connects `triplane run` to the stores.

pub mod args;
#[cfg(feature = "etcd")]
mod etcd;
pub mod operate;

use std::path::Path;

use ::privileges::KeptAccess;
use anyhow::anyhow;
use diagnostics::names;
use resilient::{RefusedDatagrams, SwitchId};
use resilient_store::{
    Cluster, ClusterError, ClusterMember, DiskStatistics, KeyFileError, NoticeHandler, OpenError, StoreDirectory,
    StoreHook, StoreServer, StoreStatistics, create_key_file,
};
use resilient_switch::{ResilientConfig, ResilientSwitch};
use serde_json::json;
use v1model::Switch;

use crate::metrics::store::StoreMetrics;
use crate::output::{Failure, Output};
use crate::{load, metrics, privileges, signals};
use args::{StoreArgs, StoreCommand, StoreKeyArgs, StoreRunArgs};

/// Maximum length of a cluster file in bytes.
const MAX_CLUSTER_BYTES: u64 = 1 << 20;

/// Runs a command of `triplane store`.
pub fn run(args: &StoreArgs, output: &Output) -> Result<(), Failure> {
    match &args.command {
        StoreCommand::Run(args) => run_store(args, output),
        StoreCommand::Key(args) => create_key(args, output),
        StoreCommand::Operate(args) => operate::operate(args, output, &mut || Ok(())),
        StoreCommand::Status(args) => operate::status(args, output),
        StoreCommand::Drain(args) => operate::drain(args, output),
        StoreCommand::Replace(args) => operate::replace(args, output),
    }
}

/// Creates a key file.
fn create_key(args: &StoreKeyArgs, output: &Output) -> Result<(), Failure> {
    create_key_file(&args.file).map_err(|error| Failure::Environment(error.into()))?;
    let shown = args.file.display();
    output.note(&format!(
        "{shown} has a new key: copy it to every store and switch, and name it as key_file in the cluster file"
    ));
    Ok(())
}

/// Reads a cluster file, and the key file that it names.
pub fn read_cluster(path: &Path) -> Result<Cluster, Failure> {
    let text = load::read_regular(path, MAX_CLUSTER_BYTES)?;
    Cluster::read(&text, path.parent().unwrap_or(Path::new(""))).map_err(|error| match error {
        ClusterError::Key(error @ KeyFileError::Malformed(_)) => Failure::Input(error.to_string()),
        ClusterError::Key(error) => Failure::Environment(error.into()),
        ClusterError::NoKey(..) => {
            let help = "create a key with `triplane store key cluster.key`, and add `key_file = \"cluster.key\"`";
            Failure::Input(format!("{}: {error}; {help}", path.display()))
        }
        error => Failure::Input(format!("{}: {error}", path.display())),
    })
}

/// Returns a handler that prints notices about a cluster.
fn notices(output: &Output) -> NoticeHandler {
    let output = *output;
    Box::new(move |notice| output.note(&notice.to_string()))
}

/// Returns the failure of a name that is not in a cluster file.
fn unknown<'m>(path: &Path, what: &str, name: &str, members: impl Iterator<Item = &'m ClusterMember>) -> Failure {
    let all: Vec<&str> = members.map(|member| member.name.as_str()).collect();
    let help = match (names::nearest(name, all.iter().copied()), all.is_empty()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, false) => format!("it has {}", all.join(", ")),
        (None, true) => "it has none".to_owned(),
    };
    Failure::Input(format!("{} has no {what} `{name}`: {help}", path.display()))
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        match error {
            OpenError::Durable { .. } => Failure::Environment(anyhow!("{error}; pass --durable")),
            error => Failure::Environment(error.into()),
        }
    }
}

/// Returns the failure of a store that cannot start, with its remedy.
fn cannot_open(error: OpenError, cluster: &Cluster) -> Failure {
    let has_lost_rows = matches!(error, OpenError::Forgotten(_) | OpenError::Lost { .. });
    let remedy = match (has_lost_rows, cluster.stores().count()) {
        (false, _) => return error.into(),
        _ if cluster.is_operated() => "remove its directory to start it without them: it copies those of the chain",
        (_, 1) => "if they may be lost, pass --forget",
        _ => "if all rows may be lost, stop all switches and stores, and remove the directories of the stores",
    };
    Failure::Environment(anyhow!("{error}; {remedy}"))
}

/// Runs a store until Ctrl-C, and prints its summary.
fn run_store(args: &StoreRunArgs, output: &Output) -> Result<(), Failure> {
    let done = serve(args, output, &mut || Ok(()))?;
    output.print(&if args.json { summary_json(&done) } else { summary(&done) })
}

/// Runs a store until Ctrl-C or SIGTERM, and calls `ready` once it serves. Returns its summary.
pub fn serve(
    args: &StoreRunArgs,
    output: &Output,
    ready: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<StoreStatistics, Failure> {
    let cluster = read_cluster(&args.cluster)?;
    let Some(member) = cluster.store(&args.name) else {
        return Err(unknown(&args.cluster, "store", &args.name, cluster.stores()));
    };
    let is_operated = cluster.is_operated();
    if is_operated && args.forget {
        let message = "--forget requires a cluster without an operator, which adds stores that have lost their rows";
        return Err(Failure::Usage(message.to_owned()));
    }
    let mut directory = StoreDirectory::open(&args.state_dir).map_err(OpenError::from)?;
    let opened = match (is_operated, args.durable) {
        (true, false) => StoreServer::open_joining(&cluster, member, &mut directory),
        (_, true) => StoreServer::open_durable(&cluster, member, &mut directory, args.forget),
        (false, false) => StoreServer::open(&cluster, member, &mut directory, args.forget),
    };
    let mut server = opened.map_err(|error| cannot_open(error, &cluster))?;
    server.on_notice(notices(output));
    let metrics = args.metrics.map(metrics::bind).transpose()?;
    privileges::restrict(&KeptAccess::default(), args.show_privileges, output)?;
    let stop = signals::stop_on_signals()?;
    let metrics = metrics.map(StoreMetrics::listen).transpose()?;
    if let Some(metrics) = &metrics {
        output.note(&metrics::note(metrics.server()));
    }
    let chain = match (is_operated, cluster.shards()) {
        (true, 1) => "the operator's chain".to_owned(),
        (true, shards) => format!("the operator's chains of {shards} shards"),
        (false, 1) => format!("the chain {}", names(&cluster, " -> ")),
        (false, shards) => format!("the chains of {shards} shards over {}", names(&cluster, ", ")),
    };
    output.note(&format!(
        "store `{}` of {} at {}, with a lease of {} ms and {} rows{}; press Ctrl-C to stop",
        member.name,
        chain,
        member.address,
        cluster.lease_ns() / 1_000_000,
        server.statistics().rows,
        if args.durable { " on disk" } else { "" },
    ));
    ready()?;
    let mut watch = |store: &StoreServer| metrics.iter().for_each(|metrics| metrics.poll(store));
    server.run_watched(&stop, &mut watch).map_err(|error| Failure::Environment(error.into()))
}

/// Returns the names of all stores.
fn names(cluster: &Cluster, separator: &str) -> String {
    cluster.stores().map(|store| store.name.as_str()).collect::<Vec<_>>().join(separator)
}

/// Returns the summary of a store as text.
pub fn summary(done: &StoreStatistics) -> String {
    let StoreStatistics { rows, received, sent, refused, unsent, disk, .. } = done;
    let what = |rows: u64| if rows == 1 { "row" } else { "rows" };
    let mut text = format!("{rows} {}; {received} messages received, {sent} sent\n", what(*rows));
    if let Some(DiskStatistics { commits, records, rows }) = disk {
        text.push_str(&format!("{rows} {} on disk; {commits} commits with {records} records\n", what(*rows)));
    }
    let RefusedDatagrams { malformed, stranger, wrong_tag, replayed, other_start, other_settings } = *refused;
    let reasons = [
        (malformed, "malformed"),
        (stranger, "from addresses that are not in the cluster file"),
        (wrong_tag, "forged, or sealed with another key"),
        (replayed, "replayed"),
        (other_start, "from before a restart"),
        (other_settings, "from members with another cluster file"),
    ];
    let reasons = reasons.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    let reasons: Vec<String> = reasons.collect();
    if !reasons.is_empty() {
        text.push_str(&format!("datagrams refused: {}\n", reasons.join("; ")));
    }
    if *unsent > 0 {
        text.push_str(&format!("{unsent} datagrams could not be sent\n"));
    }
    text
}

fn summary_json(done: &StoreStatistics) -> String {
    let StoreStatistics { rows, received, sent, refused, unsent, disk, .. } = done;
    let RefusedDatagrams { malformed, stranger, wrong_tag, replayed, other_start, other_settings } = *refused;
    let reasons = json!({
        "malformed": malformed, "stranger": stranger, "wrong_tag": wrong_tag, "replayed": replayed,
        "other_start": other_start, "other_settings": other_settings,
    });
    let mut summary = json!({
        "rows": rows, "received": received, "sent": sent, "refused": refused.total(), "refused_by_reason": reasons,
        "unsent": unsent,
    });
    if let Some(disk) = disk {
        summary["disk"] = json!({ "rows": disk.rows, "commits": disk.commits, "records": disk.records });
    }
    format!("{summary:#}\n")
}

/// A switch's place in a cluster, with its socket.
pub struct StoreConnection {
    cluster: Cluster,
    number: SwitchId,
    hook: StoreHook,
}

impl StoreConnection {
    /// Opens the connection of the switch with this name.
    pub fn open(path: &Path, name: &str) -> Result<StoreConnection, Failure> {
        let cluster = read_cluster(path)?;
        let Some(member) = cluster.switch(name) else {
            return Err(unknown(path, "switch", name, cluster.switches()));
        };
        let number = member.peer.switch().expect("switches have switch numbers");
        let hook = StoreHook::open(&cluster, member)?;
        Ok(StoreConnection { cluster, number, hook })
    }

    /// Connects a switch. Its state is replicated from now on.
    pub fn connect(mut self, switch: Switch, output: &Output) -> Result<(ResilientSwitch<Switch>, StoreHook), Failure> {
        let config = ResilientConfig { replica: self.cluster.replica_config(), ..ResilientConfig::default() };
        let identity = (self.number, self.hook.start());
        let switch = ResilientSwitch::new(switch, config, self.cluster.first_layout(), identity)
            .map_err(|error| Failure::Input(error.to_string()))?;
        self.hook.on_notice(notices(output));
        Ok((switch, self.hook))
    }
}
