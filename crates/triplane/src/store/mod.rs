//! Runs `triplane store`, and connects `triplane run` to the stores.

pub mod args;
mod operate;

use std::path::Path;

use ::privileges::KeptAccess;
use anyhow::{Context, anyhow};
use diagnostics::names;
use resilient::SwitchId;
use resilient_store::{Cluster, ClusterMember, OpenError, StoreDirectory, StoreHook, StoreServer, StoreStatistics};
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
        StoreCommand::Operate(args) => operate::operate(args, output),
        StoreCommand::Status(args) => operate::status(args, output),
        StoreCommand::Drain(args) => operate::drain(args, output),
        StoreCommand::Replace(args) => operate::replace(args, output),
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
            OpenError::Forgotten(_) => Failure::Environment(anyhow!("{error}; if they may be lost, pass --forget")),
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
    let is_operated = cluster.operator().is_some();
    if is_operated && args.forget {
        let message = "--forget requires a cluster without an operator, which adds stores that have lost their rows";
        return Err(Failure::Usage(message.to_owned()));
    }
    let mut directory = StoreDirectory::open(&args.state_dir).map_err(OpenError::from)?;
    let mut server = if is_operated {
        StoreServer::open_joining(&cluster, member, &mut directory)?
    } else {
        StoreServer::open(&cluster, member, &mut directory, args.forget)?
    };
    privileges::restrict(&KeptAccess::default(), args.show_privileges, output)?;
    let stop = signals::stop_on_signals()?;
    let names: Vec<&str> = cluster.stores().map(|store| store.name.as_str()).collect();
    output.note(&format!(
        "store `{}` of {} at {}, with a lease of {} ms; press Ctrl-C to stop",
        member.name,
        if is_operated { "the operator's chain".to_owned() } else { format!("the chain {}", names.join(" -> ")) },
        member.address,
        cluster.lease_ns() / 1_000_000
    ));
    let done = server.run(&stop).context("cannot use the store's socket")?;
    output.print(&if args.json { summary_json(&done) } else { summary(&done) })
}

fn summary(done: &StoreStatistics) -> String {
    let StoreStatistics { rows, received, sent, refused, unsent } = done;
    let what = if *rows == 1 { "row" } else { "rows" };
    let mut text = format!("{rows} {what}; {received} messages received, {sent} sent\n");
    if *refused > 0 {
        text.push_str(&format!("{refused} datagrams were malformed, or not from the cluster\n"));
    }
    if *unsent > 0 {
        text.push_str(&format!("{unsent} datagrams could not be sent\n"));
    }
    text
}

fn summary_json(done: &StoreStatistics) -> String {
    let StoreStatistics { rows, received, sent, refused, unsent } = done;
    format!("{:#}\n", json!({ "rows": rows, "received": received, "sent": sent, "refused": refused, "unsent": unsent }))
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
        let switch = ResilientSwitch::new(switch, config, self.cluster.first_layout(), identity)
            .map_err(|error| Failure::Input(error.to_string()))?;
        Ok((switch, self.hook))
    }
}
