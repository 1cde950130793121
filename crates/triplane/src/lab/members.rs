//! Runs the stores of a live lab and their operator, and connects its switches to them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use lab::{Hold, Topology};
use lab_live::{DaemonConnection, LabError, RunDirectory};
use resilient_store::{Cluster, OperatorRequest, StatusSocket, StoreRole, create_key_file, random_number};
use resilient_switch::{InBandSwitch, ResilientConfig, ResilientSwitch, in_band};
use serde_json::Value;
use v1model::Switch;

use super::args::{OperatorMainArgs, StoreMainArgs};
use super::network::Network;
use super::replication::Replication;
use crate::output::{Failure, Output};
#[cfg(feature = "etcd")]
use crate::store::args::EtcdArgs;
use crate::store::args::{OperateArgs, StoreRunArgs};
use crate::store::{self, operate};

/// Names of the files in [`RunDirectory::cluster`].
const CLUSTER: &str = "cluster.toml";
const KEY: &str = "cluster.key";

/// Returns the layout file of the operator, which has a directory of its own.
pub fn layout(lab: &str) -> PathBuf {
    RunDirectory::cluster(lab).join("operator").join("layout.json")
}

/// Returns the cluster file of a lab.
fn cluster_text(topology: &Topology, replication: &Replication) -> String {
    let mut text = format!("lease = \"{}ms\"\nkey_file = \"{KEY}\"\n", topology.lease.0.as_ns().div_ceil(1_000_000));
    if topology.hold == Hold::Piggyback {
        text.push_str("hold = \"piggyback\"\n");
    }
    if let Some(chain) = topology.chain {
        _ = writeln!(text, "chain = {chain}");
    }
    if topology.shards() > 1 {
        _ = writeln!(text, "shards = {}", topology.shards());
    }
    let mut member = |section: String, address| {
        _ = writeln!(text, "\n[{section}]\naddress = \"{address}:{}\"", in_band::STORE_PORT);
    };
    for (number, at) in topology.stores().enumerate() {
        member(format!("stores.{}", quoted(&topology.hosts[at].name)), replication.store_address(number));
    }
    for at in replication.resilient() {
        member(format!("switches.{}", quoted(&topology.switches[at].name)), Replication::switch_address(at));
    }
    if topology.operator().is_some() {
        member("operator".to_owned(), Replication::OPERATOR_ADDRESS);
    }
    text
}

/// Returns a name as a key of TOML.
fn quoted(name: &str) -> String {
    // JSON's escapes are valid in TOML.
    Value::from(name).to_string()
}

/// Creates the cluster file of a lab, and a new key, which only this user can read.
pub fn create_cluster(topology: &Topology, replication: &Replication, directory: &Path) -> Result<(), LabError> {
    create_key_file(&directory.join(KEY)).map_err(|error| LabError::Cluster(error.to_string()))?;
    let path = directory.join(CLUSTER);
    std::fs::write(&path, cluster_text(topology, replication))
        .map_err(|error| LabError::Cluster(format!("{}: {error}", path.display())))
}

/// Reads the cluster file of a lab.
pub fn read_cluster(directory: &Path) -> Result<Cluster, LabError> {
    store::read_cluster(&directory.join(CLUSTER)).map_err(|failure| LabError::Cluster(super::network::reason(&failure)))
}

/// Returns a switch of a live lab, connected to its stores if it has resilient state.
pub fn connect(
    (at, name): (usize, &str),
    switch: Switch,
    replication: Option<&Replication>,
    cluster: Option<&Cluster>,
) -> InBandSwitch<Switch> {
    let routes = replication.and_then(|replication| replication.in_band(at)).cloned();
    let member = cluster.and_then(|cluster| Some((cluster, cluster.switch(name)?)));
    let (Some((cluster, member)), Some(routes)) = (member, &routes) else {
        return InBandSwitch::plain(switch, routes);
    };
    let number = member.peer.switch().expect("switches have switch numbers");
    let config = ResilientConfig { replica: cluster.replica_config(), ..ResilientConfig::default() };
    let start = random_number();
    let wrapped = ResilientSwitch::new(switch, config, cluster.first_layout(), (number, start));
    let mut wrapped = wrapped.unwrap_or_else(|error| panic!("the program was tried before: {error}"));
    wrapped.carry_in_band(routes.clone(), cluster.sealer(member.peer, start));
    InBandSwitch::resilient(wrapped)
}

/// Runs the hidden `triplane lab store`: the process of one store.
pub fn run_store(args: &StoreMainArgs, output: &Output) -> Result<(), Failure> {
    let mut daemon = DaemonConnection::from_stdout()?;
    let directory = RunDirectory::cluster(&args.name);
    let args = StoreRunArgs {
        name: args.store.clone(),
        cluster: directory.join(CLUSTER),
        state_dir: directory.join("stores").join(&args.store),
        durable: args.durable,
        forget: false,
        metrics: None,
        show_privileges: false,
        json: false,
    };
    let done = store::serve(&args, output, &mut || Ok(daemon.report_ready()?))?;
    output.note(store::summary(&done).trim_end());
    Ok(())
}

/// Runs the hidden `triplane lab operator`: the process of the operator.
pub fn run_operator(args: &OperatorMainArgs, output: &Output) -> Result<(), Failure> {
    let mut daemon = DaemonConnection::from_stdout()?;
    let (cluster, layout) = (RunDirectory::cluster(&args.name).join(CLUSTER), layout(&args.name));
    let created = layout.parent().map_or(Ok(()), std::fs::create_dir_all);
    created.map_err(|error| LabError::Cluster(format!("{}: {error}", layout.display())))?;
    let args = OperateArgs {
        cluster,
        layout: Some(layout),
        #[cfg(feature = "etcd")]
        etcd: EtcdArgs::default(),
        operator: None,
        socket: None,
        show_privileges: false,
    };
    operate::operate(&args, output, &mut || Ok(daemon.report_ready()?))
}

/// Summarizes the stores of a network: `stores: chain a -> b -> c in memory, lease 50 ms`; `None` without stores.
pub fn describe(network: &Network) -> Option<String> {
    network.replication.as_ref()?;
    let topology = &network.topology;
    let stores = &topology.hosts[topology.stores()];
    let name = |at: &usize| topology.hosts[*at].name.clone();
    let names = |separator| topology.stores().map(|at| name(&at)).collect::<Vec<_>>().join(separator);
    let form = match (topology.chain, topology.shards()) {
        (Some(chain), 1) => format!("{}; the operator forms a chain of {chain}", names(", ")),
        (Some(chain), shards) => format!("{}; the operator forms {shards} chains of {chain}", names(", ")),
        (None, _) if stores.len() == 1 => names(""),
        (None, 1) => format!("chain {}", names(" -> ")),
        (None, shards) => format!("{}, in the chains of {shards} shards", names(", ")),
    };
    let kept = match stores.iter().filter(|store| store.is_durable).count() {
        0 => "in memory".to_owned(),
        durable if durable == stores.len() => "on disk".to_owned(),
        durable => format!("{durable} of {} on disk", stores.len()),
    };
    let hold = if topology.hold == Hold::Piggyback { ", piggyback" } else { "" };
    Some(format!("stores: {form}, {kept}, lease {}{hold}", topology.lease.0))
}

/// Adds the roles of stores to the state of a live lab: those that the operator reports, or their places in the chains.
pub fn add_roles(lab: &str, status: &mut Value) {
    let Some(stores) = status["stores"].as_array_mut() else { return };
    let is_operated = stores.iter().any(|store| store["operator"] == true);
    if !is_operated {
        let shards = read_cluster(&RunDirectory::cluster(lab)).map_or(1, |cluster| usize::from(cluster.shards()));
        let length = stores.len();
        for (number, store) in stores.iter_mut().enumerate() {
            let role = |shard: usize| StoreRole::of_member((number + length - shard % length) % length, length);
            store["role"] = Value::from(operate::roles_text(&(0..shards).map(role).collect::<Vec<_>>(), None));
        }
        return;
    }
    let known = operate::ask(&StatusSocket::beside(&layout(lab)), &OperatorRequest::Status);
    for store in stores {
        if store["operator"] == true {
            store["role"] = Value::from("operator");
        } else if let Ok(known) = &known
            && let Some(found) = known.stores.iter().find(|known| store["name"] == *known.name)
        {
            store["role"] = Value::from(operate::role(found));
            store["rows"] = Value::from(found.rows);
        }
    }
}
