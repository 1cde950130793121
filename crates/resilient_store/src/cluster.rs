//! Reads the file that lists the stores and the switches of a cluster.
//!
//! ```toml
//! lease = "1s"                      # from 1ms to 60s
//! hold = "local"                    # or "piggyback": where the outputs of switches wait for acknowledgements
//! key_file = "cluster.key"          # beside this file; without it all addresses are on the loopback interface
//!
//! [stores.a]                        # the chain, from head to tail in the order of the names
//! address = "127.0.0.1:7101"
//!
//! [switches.s1]
//! address = "127.0.0.1:7201"
//!
//! [operator]                        # optional; with one, stores beyond the length of the chain are spares
//! address = "127.0.0.1:7001"
//! ```
//!
//! `chain = 3` at the top is the length of the chain; it requires an operator. `shards = 4` divides the rows into that
//! many shards, each with a chain of its own, so that different stores are heads. Several operators, which keep
//! their layouts in one service, are `[operators.NAME]` sections in place of `[operator]`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use resilient::{
    ChainMember, ClusterFingerprint, ClusterKey, DatagramSealer, HoldMode, NodeId, OperatorConfig, OperatorId, Peer,
    ReplicaConfig, StoreConfig, StoreLayout, SwitchId,
};
use serde::Deserialize;

use crate::key_file::{KeyFileError, read_key_file};
use crate::open::random_number;

/// Maximum number of stores of a chain.
const MAX_STORES: usize = 5;

/// Maximum number of stores of a cluster with an operator, including spare ones.
const MAX_OPERATED_STORES: usize = 16;

/// Maximum number of operators.
const MAX_OPERATORS: usize = 5;

/// Maximum number of shards: a layout and a status fit one datagram each.
pub const MAX_SHARDS: u16 = 8;

/// Length of the chain with an operator, if the file gives none and there are that many stores.
const CHAIN_LENGTH: usize = 3;

/// Maximum number of switches.
const MAX_SWITCHES: usize = 1000;

/// Shortest and longest interval of an operator's status requests.
const MIN_POLL_NS: u64 = 50_000_000;
const MAX_POLL_NS: u64 = 1_000_000_000;

/// A store, a switch or an operator of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterMember {
    /// Its name in the file.
    pub name: String,
    /// Its number in messages.
    pub peer: Peer,
    /// The address from which it sends, and at which it receives.
    pub address: SocketAddr,
}

/// The stores and switches of a cluster, the length of leases, and the shared key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    lease_ns: u64,
    hold: HoldMode,
    key: ClusterKey,
    /// Number of stores that a chain should have.
    chain_length: usize,
    /// Number of shards.
    shards: u16,
    members: Vec<ClusterMember>,
}

/// Reason that a cluster file is refused.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The file is not TOML, or has unknown or missing keys. The text names the place.
    #[error("{0}")]
    Syntax(String),
    /// The lease is not a time, or too short or too long.
    #[error("lease = \"{0}\" is not a time from \"1ms\" to \"60s\"")]
    Lease(String),
    /// The value of `hold` is unknown.
    #[error("hold = \"{0}\" is neither \"local\" nor \"piggyback\"")]
    Hold(String),
    /// There are no stores, or too many.
    #[error("there are {0} stores: a cluster has 1 to {1}, as [stores.NAME] sections")]
    Stores(usize, usize),
    /// The chain is too long.
    #[error("chain = {0} is not a number from 1 to {1}: of the stores, and {MAX_STORES} at most")]
    Chain(usize, usize),
    /// `chain` is given, but there is no operator.
    #[error("`chain` requires an [operator] section: without one, all stores form the chain")]
    ChainWithoutOperator,
    /// There are no shards, or too many.
    #[error("shards = {0} is not a number from 1 to {MAX_SHARDS}")]
    Shards(i64),
    /// There are too many operators.
    #[error("there are {0} operators; the maximum is {MAX_OPERATORS}")]
    Operators(usize),
    /// Operators are listed in two ways.
    #[error("the file has both [operator] and [operators.NAME]: give each of several operators a name")]
    NamelessOperator,
    /// There are too many switches.
    #[error("there are {0} switches; the maximum is {MAX_SWITCHES}")]
    Switches(usize),
    /// Two members have one address.
    #[error("`{0}` and `{1}` both have the address {2}")]
    SharedAddress(String, String, SocketAddr),
    /// A member has no address to which others can send.
    #[error("`{0}` has the address {1}, to which no message can be sent: use the address of one interface and a port")]
    Unspecified(String, SocketAddr),
    /// A member can be reached from other machines, and there is no key.
    #[error("`{0}` has the address {1}, which other machines can reach, so the cluster needs a key_file")]
    NoKey(String, SocketAddr),
    /// The key file cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFileError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClusterFile {
    lease: Option<String>,
    hold: Option<String>,
    key_file: Option<PathBuf>,
    chain: Option<usize>,
    shards: Option<i64>,
    operator: Option<MemberSection>,
    #[serde(default)]
    operators: BTreeMap<String, MemberSection>,
    #[serde(default)]
    stores: BTreeMap<String, MemberSection>,
    #[serde(default)]
    switches: BTreeMap<String, MemberSection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberSection {
    address: SocketAddr,
}

impl Cluster {
    /// Reads the text of a cluster file in this directory, and the key file that it names.
    ///
    /// # Errors
    /// The first mistake.
    pub fn read(text: &str, directory: &Path) -> Result<Cluster, ClusterError> {
        let file: ClusterFile =
            toml::from_str(text).map_err(|error| ClusterError::Syntax(error.to_string().trim_end().to_owned()))?;
        let lease = file.lease.as_deref().unwrap_or("1s");
        let lease_ns = duration_ns(lease).ok_or_else(|| ClusterError::Lease(lease.to_owned()))?;
        let hold = match file.hold {
            None => HoldMode::default(),
            Some(name) => HoldMode::from_name(&name).ok_or(ClusterError::Hold(name))?,
        };
        let stores = file.stores.len();
        let operators = operators(file.operator, file.operators)?;
        let max_stores = if !operators.is_empty() { MAX_OPERATED_STORES } else { MAX_STORES };
        if !(1..=max_stores).contains(&stores) {
            return Err(ClusterError::Stores(stores, max_stores));
        }
        let max_chain = stores.min(MAX_STORES);
        let chain_length = match (file.chain, operators.is_empty()) {
            (None, true) => stores,
            (None, false) => CHAIN_LENGTH.min(stores),
            (Some(_), true) => return Err(ClusterError::ChainWithoutOperator),
            (Some(length), _) if !(1..=max_chain).contains(&length) => {
                return Err(ClusterError::Chain(length, max_chain));
            }
            (Some(length), _) => length,
        };
        let shards = file.shards.unwrap_or(1);
        let Some(shards) = u16::try_from(shards).ok().filter(|shards| (1..=MAX_SHARDS).contains(shards)) else {
            return Err(ClusterError::Shards(shards));
        };
        if file.switches.len() > MAX_SWITCHES {
            return Err(ClusterError::Switches(file.switches.len()));
        }
        let store = |(number, (name, section)): (usize, (String, MemberSection))| {
            let peer = Peer::Node(NodeId(number as u32 + 1));
            ClusterMember { name, peer, address: section.address }
        };
        let switch = |(number, (name, section)): (usize, (String, MemberSection))| {
            let peer = Peer::Switch(SwitchId(number as u32 + 1));
            ClusterMember { name, peer, address: section.address }
        };
        let stores = file.stores.into_iter().enumerate().map(store);
        let switches = file.switches.into_iter().enumerate().map(switch);
        let members: Vec<ClusterMember> = stores.chain(switches).chain(operators).collect();
        let mut by_address: BTreeMap<SocketAddr, &str> = BTreeMap::new();
        for ClusterMember { name, address, .. } in &members {
            if address.ip().is_unspecified() || address.ip().is_multicast() || address.port() == 0 {
                return Err(ClusterError::Unspecified(name.clone(), *address));
            }
            if let Some(other) = by_address.insert(*address, name) {
                return Err(ClusterError::SharedAddress(other.to_owned(), name.clone(), *address));
            }
        }
        let key = match &file.key_file {
            Some(path) => read_key_file(&directory.join(path))?,
            None => match members.iter().find(|member| !member.address.ip().is_loopback()) {
                Some(member) => return Err(ClusterError::NoKey(member.name.clone(), member.address)),
                None => ClusterKey::public(),
            },
        };
        Ok(Cluster { lease_ns, hold, key, chain_length, shards, members })
    }

    /// Returns the end of a member's sealed datagrams. `start` is a random number, drawn at its start.
    pub fn sealer(&self, me: Peer, start: u64) -> DatagramSealer {
        let peers = self.members.iter().map(|member| member.peer);
        DatagramSealer::new(me, start, self.key.clone(), self.fingerprint(), peers)
    }

    /// Returns the fingerprint of the settings that must be equal at all members, which excludes `hold`: lease, drift
    /// of clocks, and the members with their names, numbers and addresses.
    fn fingerprint(&self) -> ClusterFingerprint {
        let StoreConfig { lease_ns, drift_ppm, .. } = self.store_config();
        let Cluster { chain_length, shards, .. } = self;
        let mut settings = format!("lease {lease_ns} drift {drift_ppm} chain {chain_length} shards {shards}\n");
        for ClusterMember { name, peer, address } in &self.members {
            // Quoted, so that different settings have different texts.
            settings.push_str(&format!("{peer:?} {name:?} {address}\n"));
        }
        ClusterFingerprint::new(settings.as_bytes())
    }

    /// Returns the store with this name.
    pub fn store(&self, name: &str) -> Option<&ClusterMember> {
        self.stores().find(|member| member.name == name)
    }

    /// Returns the switch with this name.
    pub fn switch(&self, name: &str) -> Option<&ClusterMember> {
        self.switches().find(|member| member.name == name)
    }

    /// Returns the stores, from the head of the chain to its tail.
    pub fn stores(&self) -> impl Iterator<Item = &ClusterMember> {
        self.members.iter().filter(|member| member.peer.node().is_some())
    }

    /// Returns the switches.
    pub fn switches(&self) -> impl Iterator<Item = &ClusterMember> {
        self.members.iter().filter(|member| member.peer.switch().is_some())
    }

    /// Returns all members, the stores first.
    pub fn members(&self) -> impl Iterator<Item = &ClusterMember> {
        self.members.iter()
    }

    /// Returns the member with this address.
    pub fn peer_at(&self, address: SocketAddr) -> Option<Peer> {
        self.members.iter().find(|member| member.address == address).map(|member| member.peer)
    }

    /// Returns the address of a member.
    pub fn address_of(&self, peer: Peer) -> Option<SocketAddr> {
        self.members.iter().find(|member| member.peer == peer).map(|member| member.address)
    }

    /// Returns the first layout of stores in this life: all are in the chain of each shard. Its epoch is the life.
    pub fn layout(&self, life: u64) -> Arc<StoreLayout> {
        let members = self.stores().filter_map(|member| Some(ChainMember { node: member.peer.node()?, life }));
        Arc::new(StoreLayout::of_all(life, &members.collect::<Vec<_>>(), self.shards))
    }

    /// Returns the number of shards.
    pub fn shards(&self) -> u16 {
        self.shards
    }

    /// Returns the operators.
    pub fn operators(&self) -> impl Iterator<Item = &ClusterMember> {
        self.members.iter().filter(|member| matches!(member.peer, Peer::Operator(_)))
    }

    /// Whether operators choose the stores of the chain.
    pub fn is_operated(&self) -> bool {
        self.operators().next().is_some()
    }

    /// Returns the layout with which a member starts: without an operator, that of stores in their first life. With
    /// one, it has no stores, and the member asks for a newer one.
    pub fn first_layout(&self) -> Arc<StoreLayout> {
        if self.is_operated() {
            return Arc::new(StoreLayout::of_all(0, &[], self.shards));
        }
        self.layout(1)
    }

    /// Returns the name of a store.
    pub fn name_of(&self, node: NodeId) -> Option<&str> {
        self.members.iter().find(|member| member.peer == Peer::Node(node)).map(|member| member.name.as_str())
    }

    /// Returns the settings of the operators. A store is considered dead after about a lease, at least 200 ms and at
    /// most 4 s.
    pub fn operator_config(&self) -> OperatorConfig {
        OperatorConfig {
            nodes: self.members.iter().filter_map(|member| member.peer.node()).collect(),
            switches: self.members.iter().filter_map(|member| member.peer.switch()).collect(),
            chain_length: self.chain_length,
            shards: self.shards,
            poll_ns: (self.lease_ns / 4).clamp(MIN_POLL_NS, MAX_POLL_NS),
            ..OperatorConfig::default()
        }
    }

    /// Returns the length of leases in nanoseconds.
    pub fn lease_ns(&self) -> u64 {
        self.lease_ns
    }

    /// Returns the settings of the stores.
    pub fn store_config(&self) -> StoreConfig {
        StoreConfig { lease_ns: self.lease_ns, ..StoreConfig::default() }
    }

    /// Returns the settings of the switches.
    pub fn replica_config(&self) -> ReplicaConfig {
        ReplicaConfig {
            lease_ns: self.lease_ns,
            hold: self.hold,
            hash_seed: random_number(),
            ..ReplicaConfig::default()
        }
    }
}

/// Returns the operators of the two kinds of sections.
fn operators(
    only: Option<MemberSection>,
    named: BTreeMap<String, MemberSection>,
) -> Result<Vec<ClusterMember>, ClusterError> {
    if only.is_some() && !named.is_empty() {
        return Err(ClusterError::NamelessOperator);
    }
    if named.len() > MAX_OPERATORS {
        return Err(ClusterError::Operators(named.len()));
    }
    let numbers = OperatorId::ONLY.0..;
    let only = only.map(|section| ("operator".to_owned(), section));
    let member = |(number, (name, section)): (u32, (String, MemberSection))| ClusterMember {
        name,
        peer: Peer::Operator(OperatorId(number)),
        address: section.address,
    };
    Ok(numbers.zip(only.into_iter().chain(named)).map(member).collect())
}

/// Reads `100ms` or `1s`, from 1 ms to 60 s.
fn duration_ns(text: &str) -> Option<u64> {
    let (number, unit) = text.strip_suffix("ms").map(|number| (number, 1_000_000)).or_else(|| {
        let number = text.strip_suffix('s')?;
        Some((number, 1_000_000_000))
    })?;
    let ns = number.trim().parse::<u64>().ok()?.checked_mul(unit)?;
    (1_000_000..=60_000_000_000).contains(&ns).then_some(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Cluster, ClusterError> {
        Cluster::read(text, Path::new("/nowhere"))
    }

    const TWO: &str = "lease = \"50ms\"\n[stores.b]\naddress = \"127.0.0.1:2\"\n[stores.a]\naddress = \"127.0.0.1:1\"\n\
                       [switches.s1]\naddress = \"[::1]:3\"\n";

    #[test]
    fn members_are_numbered_in_the_order_of_their_names() {
        let cluster = read(TWO).unwrap();
        let all: Vec<_> = cluster.stores().chain(cluster.switches()).map(|it| (it.name.as_str(), it.peer)).collect();
        let [a, b] = [1, 2].map(|node| Peer::Node(NodeId(node)));
        assert_eq!(all, [("a", a), ("b", b), ("s1", Peer::Switch(SwitchId(1)))]);
        assert_eq!(cluster.peer_at("127.0.0.1:2".parse().unwrap()), Some(b));
        assert_eq!(cluster.address_of(a), Some("127.0.0.1:1".parse().unwrap()));
        assert_eq!((cluster.store("s1"), cluster.switch("a")), (None, None));
        assert_eq!(cluster.layout(1).chains()[0].members.len(), 2);
        assert_eq!((cluster.store_config().lease_ns, cluster.replica_config().lease_ns), (50_000_000, 50_000_000));
    }

    #[test]
    fn mistakes_are_named() {
        let refused = |text: &str, part: &str| {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error:?} lacks {part:?}");
        };
        refused("stores = 3", "invalid type");
        refused("", "there are 0 stores");
        refused(&TWO.replace("50ms", "50"), "lease = \"50\" is not a time");
        refused(&TWO.replace("50ms", "100s"), "lease = \"100s\"");
        refused(&TWO.replace("lease", "leese"), "leese");
        refused(&format!("hold = \"store\"\n{TWO}"), "hold = \"store\" is neither \"local\" nor \"piggyback\"");
        refused(&TWO.replace("[::1]:3", "127.0.0.1:1"), "`a` and `s1` both have the address 127.0.0.1:1");
        refused(&TWO.replace("[::1]:3", "0.0.0.0:3"), "no message can be sent");
        refused(&TWO.replace("[::1]:3", "localhost"), "invalid socket address");
        let many: String = (0..6).map(|at| format!("[stores.s{at}]\naddress = \"127.0.0.1:{}\"\n", at + 1)).collect();
        refused(&many, "there are 6 stores");
        refused(&format!("chain = 2\n{TWO}"), "`chain` requires an [operator] section");
        let operated = format!("{TWO}[operator]\naddress = \"127.0.0.1:9\"\n");
        refused(&format!("chain = 3\n{operated}"), "chain = 3 is not a number from 1 to 2");
        refused(&operated.replace(":9", ":1"), "`a` and `operator` both have the address");
        refused(&format!("{operated}[operators.x]\naddress = \"127.0.0.1:10\"\n"), "give each of several operators");
        let section = |at| format!("[operators.o{at}]\naddress = \"127.0.0.1:{}\"\n", at + 10);
        let many: String = (0..6).map(section).collect();
        refused(&format!("{TWO}{many}"), "there are 6 operators; the maximum is 5");
        refused(
            &TWO.replace("[::1]:3", "10.0.0.1:3"),
            "`s1` has the address 10.0.0.1:3, which other machines can reach",
        );
        refused(&format!("key_file = \"a.key\"\n{TWO}"), "cannot read the key file /nowhere/a.key");
    }

    #[test]
    fn outputs_are_held_locally_unless_the_file_says_otherwise() {
        let hold = |text: &str| read(text).unwrap().replica_config().hold;
        assert_eq!(hold(TWO), HoldMode::Local);
        assert_eq!(hold(&format!("hold = \"local\"\n{TWO}")), HoldMode::Local);
        let piggyback = format!("hold = \"piggyback\"\n{TWO}");
        assert_eq!(hold(&piggyback), HoldMode::Piggyback);
        // Members may have different values of it.
        assert_eq!(read(TWO).unwrap().fingerprint(), read(&piggyback).unwrap().fingerprint());
    }

    #[test]
    fn every_setting_is_in_the_fingerprint() {
        let fingerprint = |text: &str| read(text).unwrap().fingerprint();
        let changes = [("50ms", "51ms"), ("stores.b", "stores.c"), ("127.0.0.1:2", "127.0.0.1:4"), ("s1", "s2")];
        for (from, to) in changes {
            assert_ne!(fingerprint(TWO), fingerprint(&TWO.replace(from, to)), "{from}");
        }
        let more = format!("{TWO}[switches.s2]\naddress = \"127.0.0.1:9\"\n");
        assert_ne!(fingerprint(TWO), fingerprint(&more));
        assert_ne!(fingerprint(TWO), fingerprint(&format!("shards = 2\n{TWO}")));
        assert_eq!(fingerprint(TWO), fingerprint(&TWO.replace("50ms", "050ms")));
    }

    #[test]
    fn each_shard_has_a_chain_with_another_head() {
        let cluster = read(&format!("shards = 3\n{TWO}")).unwrap();
        let layout = cluster.first_layout();
        let heads = layout.shards().filter_map(|shard| cluster.name_of(layout.head(shard)?.node));
        assert_eq!(heads.collect::<Vec<_>>(), ["a", "b", "a"]);
        let operated = read(&format!("shards = 3\n{TWO}[operator]\naddress = \"127.0.0.1:9\"\n")).unwrap();
        assert_eq!((operated.first_layout().shards().count(), operated.operator_config().shards), (3, 3));
        for wrong in ["0", "9", "-1"] {
            let error = read(&format!("shards = {wrong}\n{TWO}")).unwrap_err();
            assert_eq!(error.to_string(), format!("shards = {wrong} is not a number from 1 to 8"));
        }
    }

    #[test]
    fn stores_beyond_the_chain_are_spares() {
        let stores: String = (0..5).map(|at| format!("[stores.s{at}]\naddress = \"127.0.0.1:{}\"\n", at + 1)).collect();
        let operator = "[operator]\naddress = \"127.0.0.1:9\"\n";
        let length = |text: &str| read(text).unwrap().operator_config().chain_length;
        assert_eq!(length(&format!("{stores}{operator}")), 3);
        assert_eq!(length(&format!("chain = 2\n{stores}{operator}")), 2);
        let cluster = read(&format!("{stores}{operator}")).unwrap();
        assert_eq!((cluster.first_layout().epoch(), cluster.operator_config().nodes.len()), (0, 5));
        assert_eq!(cluster.name_of(NodeId(2)), Some("s1"));
        assert!(cluster.operators().map(|it| it.peer).eq([Peer::Operator(OperatorId::ONLY)]));
    }

    #[test]
    fn several_operators_have_names_and_numbers() {
        let operators = "[operators.y]\naddress = \"127.0.0.1:9\"\n[operators.x]\naddress = \"127.0.0.1:10\"\n";
        let cluster = read(&format!("chain = 1\n{TWO}{operators}")).unwrap();
        let listed: Vec<_> = cluster.operators().map(|it| (it.name.as_str(), it.peer)).collect();
        assert_eq!(listed, [("x", Peer::Operator(OperatorId(0))), ("y", Peer::Operator(OperatorId(1)))]);
        assert!(cluster.is_operated() && cluster.first_layout().epoch() == 0);
    }
}
