//! Plans the replication of a lab's resilient state: the layout of the stores, addresses, and the ways between them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;

use lab::sim::Host;
use lab::{Hold, Node, Topology};
use resilient::{
    ChainMember, ClusterFingerprint, ClusterKey, DatagramSealer, HoldMode, NodeId, OperatorConfig, OperatorId, Peer,
    ReplicaConfig, StoreConfig, StoreLayout, SwitchId,
};
use resilient_switch::{InBand, ResilientConfig, ResilientSwitch, StoreRoute, in_band};
use rng::SplitMix64;
use switch::{PortId, RowSwitch};

/// The replication between the switches with resilient state and the stores of a lab.
#[derive(Clone, Debug)]
pub struct Replication {
    /// The layout with which switches start: without stores if an operator creates the first one.
    pub layout: Arc<StoreLayout>,
    lease_ns: u64,
    hold: HoldMode,
    /// The stores by node number, which is their index after the machines plus 1.
    stores: Vec<Ipv4Addr>,
    /// Configured length of each chain, if there is an operator.
    chain: Option<usize>,
    shards: u16,
    /// The switches with resilient state.
    resilient: BTreeSet<usize>,
    /// The addresses and routes of all switches. Those without resilient state only pass messages on.
    switches: BTreeMap<usize, InBand>,
}

/// Distinguishes the random numbers of the key from others of a run.
const KEY_STREAM: u64 = 0x6b65_7900_0000_0000;

/// A switch with resilient state that has no way to a store over links between switches.
#[derive(Debug)]
pub struct Unreachable {
    pub switch: usize,
    pub store: usize,
}

/// Returns the address of a store in the benchmark networks of RFC 2544, which no host of a lab needs.
fn address_of_store(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(198, 18, 0, number as u8 + 1)
}

/// Prefix length of the network of these addresses, in bits.
const PREFIX: u8 = 15;

impl Replication {
    /// Address of the operator.
    pub const OPERATOR_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 1);

    /// Returns the address of a switch.
    pub fn switch_address(switch: usize) -> Ipv4Addr {
        let [high, low] = (switch as u16 + 1).to_be_bytes();
        Ipv4Addr::new(198, 19, high, low)
    }

    /// Returns the address of a store.
    pub fn store_address(&self, number: usize) -> Ipv4Addr {
        self.stores[number]
    }

    /// Returns the switches with resilient state.
    pub fn resilient(&self) -> impl Iterator<Item = usize> {
        self.resilient.iter().copied()
    }

    /// Sets the addresses of the stores and their operator, as in a live lab, and their neighbours.
    pub fn address_hosts(&self, topology: &mut Topology) {
        let (stores, operator) = (topology.stores(), topology.operator());
        let own = |at: usize| match operator {
            Some(operator) if operator == at => Replication::OPERATOR_ADDRESS,
            _ => self.stores[at - stores.start],
        };
        let members: Vec<usize> = stores.clone().chain(operator).collect();
        let switches = self.resilient().map(Replication::switch_address);
        let all: Vec<Ipv4Addr> = members.iter().map(|at| own(*at)).chain(switches).collect();
        for at in members {
            let host = &mut topology.hosts[at];
            host.address = Some((own(at), PREFIX));
            host.mac = in_band::mac(own(at));
            let others = all.iter().filter(|address| **address != own(at));
            host.neighbours = others.map(|address| (*address, in_band::mac(*address))).collect();
        }
    }

    /// Plans the replication for these switches, which have resilient state; `None` if there are no stores or no such
    /// switches.
    ///
    /// # Errors
    /// The switches that have no way to a store.
    pub fn plan(topology: &Topology, resilient: &BTreeSet<usize>) -> Result<Option<Replication>, Vec<Unreachable>> {
        let stores = topology.stores();
        if stores.is_empty() || resilient.is_empty() {
            return Ok(None);
        }
        let mut routes: BTreeMap<usize, BTreeMap<Node, PortId>> = BTreeMap::new();
        let operator = topology.operator();
        let targets = stores.clone().chain(operator).map(Node::Host).chain(resilient.iter().copied().map(Node::Switch));
        for target in targets {
            for (switch, port) in ports_towards(topology, target) {
                routes.entry(switch).or_default().insert(target, port);
            }
        }
        let no_way = |switch: usize| {
            let routes = routes.get(&switch);
            let missing = stores
                .clone()
                .chain(operator)
                .find(|store| !routes.is_some_and(|it| it.contains_key(&Node::Host(*store))));
            missing.map(|store| Unreachable { switch, store })
        };
        let unreachable: Vec<Unreachable> = resilient.iter().filter_map(|switch| no_way(*switch)).collect();
        if !unreachable.is_empty() {
            return Err(unreachable);
        }
        let members: Vec<ChainMember> = (0..stores.len()).map(Replication::member).collect();
        let shards = topology.shards();
        let first = stores.start;
        let in_band = |(switch, to): (usize, BTreeMap<Node, PortId>)| {
            let (mut ways, mut others) = (BTreeMap::new(), BTreeMap::new());
            for (node, port) in to {
                match node {
                    Node::Host(host) if Some(host) == operator => {
                        ways.insert(in_band::OPERATOR, StoreRoute { address: Replication::OPERATOR_ADDRESS, port });
                    }
                    Node::Host(store) => {
                        let address = address_of_store(store - first);
                        ways.insert(node_id(store - first), StoreRoute { address, port });
                    }
                    Node::Switch(other) => _ = others.insert(Replication::switch_address(other), port),
                }
            }
            (switch, InBand::new(Replication::switch_address(switch), ways, others))
        };
        Ok(Some(Replication {
            layout: Arc::new(match operator {
                Some(_) => StoreLayout::of_all(0, &[], shards),
                None => StoreLayout::of_all(1, &members, shards),
            }),
            chain: topology.chain,
            shards,
            lease_ns: topology.lease.0.as_ns(),
            hold: match topology.hold {
                Hold::Local => HoldMode::Local,
                Hold::Piggyback => HoldMode::Piggyback,
            },
            stores: (0..stores.len()).map(address_of_store).collect(),
            resilient: resilient.clone(),
            switches: routes.into_iter().map(in_band).collect(),
        }))
    }

    /// Whether a switch has resilient state.
    pub fn has(&self, switch: usize) -> bool {
        self.resilient.contains(&switch)
    }

    /// Returns the address and routes of a switch; `None` if no messages pass it.
    pub fn in_band(&self, switch: usize) -> Option<&InBand> {
        self.switches.get(&switch)
    }

    /// Wraps a switch with resilient state, in its life `life` of a run with this seed.
    pub fn wrap<S: RowSwitch>(&self, at: usize, switch: S, (seed, life): (u64, u64)) -> ResilientSwitch<S> {
        let replica = ReplicaConfig { lease_ns: self.lease_ns, hold: self.hold, ..ReplicaConfig::default() };
        let config = ResilientConfig { replica, ..ResilientConfig::default() };
        let mut random = SplitMix64::new(seed ^ (at as u64) << 32 ^ life);
        let (number, start) = (SwitchId(at as u32), random.next_u64());
        let wrapped = ResilientSwitch::new(switch, config, Arc::clone(&self.layout), (number, start));
        let mut wrapped = wrapped.unwrap_or_else(|error| panic!("the program was tried before: {error}"));
        wrapped.carry_in_band(self.switches[&at].clone(), self.sealer(Peer::Switch(number), start, seed));
        wrapped
    }

    /// Returns the end of the sealed datagrams of a store, or a switch with resilient state, in a run with this seed.
    /// `start` is random, drawn at each start.
    pub fn sealer(&self, me: Peer, start: u64, seed: u64) -> DatagramSealer {
        let mut random = SplitMix64::new(seed ^ KEY_STREAM);
        let mut key = [0; 32];
        key.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&random.next_u64().to_be_bytes()));
        let stores = (0..self.stores.len()).map(|number| Peer::Node(node_id(number)));
        let switches = self.resilient.iter().map(|switch| Peer::Switch(SwitchId(*switch as u32)));
        let settings = ClusterFingerprint::new(&self.lease_ns.to_be_bytes());
        DatagramSealer::new(
            me,
            start,
            ClusterKey::new(&key),
            settings,
            stores.chain(switches).chain(self.chain.map(|_| Peer::Operator(OperatorId::ONLY))),
        )
    }

    /// Whether an operator creates the layouts.
    pub fn has_operator(&self) -> bool {
        self.chain.is_some()
    }

    /// Returns the settings of the operator: a store is considered dead after about a lease.
    pub fn operator_config(&self) -> OperatorConfig {
        OperatorConfig {
            nodes: (0..self.stores.len()).map(node_id).collect(),
            switches: self.resilient.iter().map(|switch| SwitchId(*switch as u32)).collect(),
            chain_length: self.chain.unwrap_or(1),
            shards: self.shards,
            poll_ns: (self.lease_ns / 4).max(1),
            ..OperatorConfig::default()
        }
    }

    /// Returns the settings of the stores.
    pub fn store_config(&self) -> StoreConfig {
        StoreConfig { lease_ns: self.lease_ns, ..StoreConfig::default() }
    }

    /// Returns the member of the layout that a store is in its first life.
    pub fn member(number: usize) -> ChainMember {
        ChainMember { node: node_id(number), life: 1 }
    }

    /// Returns the address of a member.
    pub fn address_of(&self, peer: Peer) -> Option<Ipv4Addr> {
        match peer {
            Peer::Switch(switch) => Some(Replication::switch_address(switch.0 as usize)),
            Peer::Node(node) => self.stores.get((node.0 as usize).checked_sub(1)?).copied(),
            Peer::Operator(_) => self.chain.map(|_| Replication::OPERATOR_ADDRESS),
        }
    }

    /// Sends the sealed datagrams of a member on its host. Those for members without an address are lost.
    pub fn send(&self, host: &mut Host, me: Peer, sealer: &mut DatagramSealer) {
        let Some(source) = self.address_of(me) else { return };
        for (to, payload) in sealer.take_outgoing() {
            if let Some(address) = self.address_of(to) {
                host.send(in_band::datagram(source, address, &payload));
            }
        }
    }

    /// Returns the switch or store with this address.
    pub fn peer(&self, address: Ipv4Addr) -> Option<Peer> {
        let store = self.stores.iter().position(|store| *store == address);
        let store = store.map(|number| Peer::Node(node_id(number)));
        let switch = || self.resilient.iter().find(|switch| Replication::switch_address(**switch) == address);
        if self.address_of(Peer::Operator(OperatorId::ONLY)) == Some(address) {
            return Some(Peer::Operator(OperatorId::ONLY));
        }
        store.or_else(|| switch().map(|switch| Peer::Switch(SwitchId(*switch as u32))))
    }
}

fn node_id(number: usize) -> NodeId {
    NodeId(number as u32 + 1)
}

/// Returns, for each switch from which there is a way to a node over switches, the port of a shortest way.
fn ports_towards(topology: &Topology, target: Node) -> BTreeMap<usize, PortId> {
    let mut ports = BTreeMap::new();
    let mut todo = VecDeque::from([target]);
    while let Some(node) = todo.pop_front() {
        for link in &topology.links {
            let [a, b] = link.ends;
            for (near, far) in [(a, b), (b, a)] {
                let Node::Switch(switch) = far.node else { continue };
                let is_new = far.node != target && !ports.contains_key(&switch);
                if near.node == node && is_new {
                    ports.insert(switch, PortId(far.port));
                    todo.push_back(far.node);
                }
            }
        }
    }
    ports
}
