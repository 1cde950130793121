//! Runs `triplane store`, and connects `triplane run` to the stores.

pub mod args;

use std::path::Path;

use ::privileges::KeptAccess;
use anyhow::anyhow;
use diagnostics::names;
use resilient::SwitchId;
use resilient_store::{
    Cluster, ClusterMember, DiskStatistics, OpenError, StoreDirectory, StoreHook, StoreServer, StoreStatistics,
};
use resilient_switch::{ResilientConfig, ResilientSwitch};
use serde_json::json;
use v1model::Switch;

use crate::output::{Failure, Output};
use crate::{load, privileges, signals};
use args::{StoreArgs, StoreCommand, StoreRunArgs};

/// Maximum length of a cluster file in bytes.
const MAX_CLUSTER_BYTES: u64 = 1 << 20;

/// Runs a command of `triplane store`.
pub fn run(args: &StoreArgs, output: &Output) -> Result<(), Failure> {
    match &args.command {
        StoreCommand::Run(args) => serve(args, output),
    }
}

/// Reads a cluster file.
fn read_cluster(path: &Path) -> Result<Cluster, Failure> {
    let text = load::read_regular(path, MAX_CLUSTER_BYTES)?;
    Cluster::read(&text).map_err(|error| Failure::Input(format!("{}: {error}", path.display())))
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
            OpenError::Forgotten(_) | OpenError::Lost { .. } => {
                Failure::Environment(anyhow!("{error}; if they may be lost, pass --forget"))
            }
            OpenError::Durable { .. } => {
                Failure::Environment(anyhow!("{error}; pass --durable, or --forget if they may be lost"))
            }
            error => Failure::Environment(error.into()),
        }
    }
}

/// Runs a store until Ctrl-C.
fn serve(args: &StoreRunArgs, output: &Output) -> Result<(), Failure> {
    let cluster = read_cluster(&args.cluster)?;
    let Some(member) = cluster.store(&args.name) else {
        return Err(unknown(&args.cluster, "store", &args.name, cluster.stores()));
    };
    let mut directory = StoreDirectory::open(&args.state_dir).map_err(OpenError::from)?;
    let open = if args.durable { StoreServer::open_durable } else { StoreServer::open };
    let mut server = open(&cluster, member, &mut directory, args.forget)?;
    privileges::restrict(&KeptAccess::default(), args.show_privileges, output)?;
    let stop = signals::stop_on_signals()?;
    let names: Vec<&str> = cluster.stores().map(|store| store.name.as_str()).collect();
    output.note(&format!(
        "store `{}` of the chain {} at {}, with a lease of {} ms and {} rows{}; press Ctrl-C to stop",
        member.name,
        names.join(" -> "),
        member.address,
        cluster.lease_ns() / 1_000_000,
        server.statistics().rows,
        if args.durable { " on disk" } else { "" },
    ));
    let done = server.run(&stop).map_err(|error| Failure::Environment(error.into()))?;
    output.print(&if args.json { summary_json(&done) } else { summary(&done) })
}

fn summary(done: &StoreStatistics) -> String {
    let StoreStatistics { rows, received, sent, refused, unsent, disk } = done;
    let what = |rows: u64| if rows == 1 { "row" } else { "rows" };
    let mut text = format!("{rows} {}; {received} messages received, {sent} sent\n", what(*rows));
    if let Some(DiskStatistics { commits, records, rows }) = disk {
        text.push_str(&format!("{rows} {} on disk; {commits} commits with {records} records\n", what(*rows)));
    }
    if *refused > 0 {
        text.push_str(&format!("{refused} datagrams were malformed, or not from the cluster\n"));
    }
    if *unsent > 0 {
        text.push_str(&format!("{unsent} datagrams could not be sent\n"));
    }
    text
}

fn summary_json(done: &StoreStatistics) -> String {
    let StoreStatistics { rows, received, sent, refused, unsent, disk } = done;
    let disk = disk.map(|disk| json!({ "rows": disk.rows, "commits": disk.commits, "records": disk.records }));
    let mut summary = json!({ "rows": rows, "received": received, "sent": sent, "refused": refused, "unsent": unsent });
    if let Some(disk) = disk {
        summary["disk"] = disk;
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
        let resilient::Peer::Switch(number) = member.peer else { unreachable!("switches have switch numbers") };
        let hook = StoreHook::open(&cluster, member)?;
        Ok(StoreConnection { cluster, number, hook })
    }

    /// Connects a switch. Its state is replicated from now on.
    pub fn connect(self, switch: Switch) -> Result<(ResilientSwitch<Switch>, StoreHook), Failure> {
        let config = ResilientConfig { replica: self.cluster.replica_config(), ..ResilientConfig::default() };
        let identity = (self.number, resilient_store::random_number());
        let switch = ResilientSwitch::new(switch, config, self.cluster.layout(1), identity)
            .map_err(|error| Failure::Input(error.to_string()))?;
        Ok((switch, self.hook))
    }
}
