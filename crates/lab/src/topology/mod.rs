//! Defines hosts, switches and the links between them, as a file describes them or a generator makes them.

mod quantity;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};

use diagnostics::Span;
use tpp::shim::InsertionRule;
use wire::ethernet::Address;

pub use quantity::{Delay, NotAQuantity, Rate, Size};

/// A network, read by [`crate::read`] or made by [`crate::generate`]. It runs simulated or live.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// The hosts in the order of the file, followed by the stores in the order of their names (from the head of the
    /// first chain to its tail), and their operator.
    pub hosts: Vec<Host>,
    /// The switches, in the order of the file.
    pub switches: Vec<TopologySwitch>,
    /// The links, in the order of the file.
    pub links: Vec<Link>,
    /// Length of the leases that the stores give.
    pub lease: Lease,
    /// Number of shards of the resilient state, if the file gives one.
    pub shards: Option<u16>,
    /// The place in which outputs of resilient switches wait for acknowledgements.
    pub hold: Hold,
    /// The rights of tiny packet programs.
    pub tpp: TinyAccess,
    /// Maximum number of tiny packet programs that a switch executes a second for the packets of each port, if the
    /// file gives one.
    pub tpp_limit: Option<u32>,
    /// The role of the switches in an INT domain.
    pub int: IntRole,
    /// Maximum rate of the answers to READs on each link to a memory server, if the file gives one.
    pub memory_rate: Option<Rate>,
    /// Configured length of each chain, if there is an operator. Other stores are spares.
    pub chain: Option<usize>,
}

/// Length of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease(pub Delay);

impl Default for Lease {
    fn default() -> Self {
        Lease(Delay::from_ms(1_000))
    }
}

/// The place in which outputs of switches with resilient state wait for acknowledgements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// In the memory of the switch.
    #[default]
    Local,
    /// In the requests to the stores and their acknowledgements, if they fit.
    Piggyback,
}

impl Hold {
    /// The words for them in a file.
    pub const WORDS: [(&str, Hold); 2] = [("local", Hold::Local), ("piggyback", Hold::Piggyback)];
}

/// The rights of tiny packet programs in the switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TinyAccess {
    /// Frames with programs are ordinary frames.
    #[default]
    Off,
    /// Programs are executed, and may only read.
    Read,
    /// Programs also write the words of applications.
    Write,
    /// Programs also write the registers of the P4 program, to 32 bits.
    WriteRegisters,
}

impl TinyAccess {
    /// The words for them in a file.
    pub const WORDS: [(&str, TinyAccess); 4] = [
        ("off", TinyAccess::Off),
        ("read", TinyAccess::Read),
        ("write", TinyAccess::Write),
        ("write-registers", TinyAccess::WriteRegisters),
    ];
}

/// The role of the switches in an INT domain. Its packets have the default marker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntRole {
    /// Packets with INT are ordinary packets.
    #[default]
    Off,
    /// The switches add their metadata, and hosts get packets with INT.
    Transit,
    /// The switches also remove INT from packets to hosts, and report it.
    Sink,
}

impl IntRole {
    /// The words for them in a file.
    pub const WORDS: [(&str, IntRole); 3] =
        [("off", IntRole::Off), ("transit", IntRole::Transit), ("sink", IntRole::Sink)];
}

/// The use of the kernel by the ports of a live switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KernelUse {
    /// Ports run the program in the kernel where that is possible; the others are ordinary ports.
    Auto,
    /// All ports run the program in the kernel, or the lab does not start.
    Require,
    /// All ports are ordinary ports.
    #[default]
    Off,
}

impl KernelUse {
    /// The words for them in a file.
    pub const WORDS: [(&str, KernelUse); 3] =
        [("auto", KernelUse::Auto), ("require", KernelUse::Require), ("off", KernelUse::Off)];
}

/// A machine at the edge. It has one interface, `eth0`.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// Its name, unique among hosts and switches.
    pub name: String,
    /// Its address and the prefix length of its network, in bits.
    pub address: Option<(Ipv4Addr, u8)>,
    /// Its Ethernet address.
    pub mac: Address,
    /// Next hop of packets to other networks.
    pub gateway: Option<Ipv4Addr>,
    /// Static neighbour entries: Ethernet addresses that it knows without ARP.
    pub neighbours: Vec<(Ipv4Addr, Address)>,
    /// Shell commands that it runs when it starts; live only.
    pub commands: Vec<String>,
    /// Whether it has no shim, which takes tiny packet programs out of packets.
    pub lacks_shim: bool,
    /// The rules of its shim; live only.
    pub shim: HostShim,
    /// Memory that it lends to the switch at its link, in bytes; such a host has no traffic of its own.
    pub memory: Option<Size>,
    /// Whether it is a store of resilient state, or their operator, which have no address and no traffic of their own.
    pub is_store: bool,
    /// Whether it is a store that keeps its rows on disk; live only.
    pub is_durable: bool,
    /// Location of its name in the file.
    pub span: Span,
}

/// The rules of a host's shim for tiny packet programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostShim {
    /// Rules that insert programs into packets of the host, in the order of the file.
    pub insert: Vec<ShimRule>,
    /// File with the policy that its programs comply with, and the location of its name.
    pub policy: Option<(String, Span)>,
}

/// A rule of a host's shim.
#[derive(Clone, Debug, PartialEq)]
pub struct ShimRule {
    /// The rule as it is in the file.
    pub text: String,
    /// The rule. Its file is relative to that of the topology.
    pub rule: InsertionRule,
    /// Its location in the file.
    pub span: Span,
}

/// A switch, its program and its entries.
#[derive(Clone, Debug, PartialEq)]
pub struct TopologySwitch {
    /// Its name, unique among hosts and switches.
    pub name: String,
    /// The P4 program.
    pub program: SwitchProgram,
    /// Source of its entries.
    pub entries: Entries,
    /// The port to the controller, if it has one.
    pub cpu_port: Option<u32>,
    /// P4Runtime endpoint for controllers; live only.
    pub p4runtime: Option<Endpoint>,
    /// Its ports at the edge of the network of tiny packet programs.
    pub edge: ProgramEdge,
    /// The device id that controllers ask for. If the file has none, it is the index among the switches, from 0.
    pub device_id: Option<u64>,
    /// Whether its ports run the program in the kernel; live only.
    pub kernel: KernelUse,
    /// Location of its name in the file.
    pub span: Span,
}

/// The ports of a switch at the edge of the network in which tiny packet programs travel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramEdge {
    /// Ports to hosts without a shim: programs are taken out of packets that leave.
    pub strip: BTreeSet<u32>,
    /// Ports to hosts that are not trusted: packets that arrive with a program are dropped.
    pub refuse: BTreeSet<u32>,
}

/// The address at which a switch serves P4Runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// An automatically assigned address: ports count up in the order of the switches.
    Allotted,
    /// This address.
    At(SocketAddr),
}

/// The program that a switch runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchProgram {
    /// A file; relative names are relative to the topology's file. The span is the location of the name in the
    /// topology's file.
    File(String, Span),
    /// The router that comes with the lab ([`crate::routes`]).
    Router,
    /// Not in the topology; the caller chooses it. The tutorials' topologies leave it to their makefile.
    Unsaid,
}

/// The entries in a switch's tables when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entries {
    /// Only the program's own entries.
    None,
    /// An entries file; relative names are relative to the topology's file. The span is the location of the name in
    /// the topology's file.
    File(String, Span),
    /// Shortest paths to every host, computed from the topology ([`crate::routes`]).
    ShortestPaths,
}

/// A cable between two ends, the same in both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The two ends that it joins.
    pub ends: [End; 2],
    /// Its rate, delay, impairments, queue and MTU.
    pub shape: Shape,
    /// Location of the link in the file.
    pub span: Span,
}

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct End {
    /// Host or switch.
    pub node: Node,
    /// The port of a switch; 0 for a host.
    pub port: u32,
}

/// A host or a switch, by its index in the topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// One of [`Topology::hosts`].
    Host(usize),
    /// One of [`Topology::switches`].
    Switch(usize),
}

/// The rate, delay, impairments, queue and MTU of a link, in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Rate on the wire; `None` for a link without serialisation time.
    pub rate: Option<Rate>,
    /// Propagation delay of a bit.
    pub delay: Delay,
    /// Probability that a frame is lost, 0 to 1.
    pub loss: f64,
    /// Probability that a bit of a frame is flipped, 0 to 1.
    pub corruption: f64,
    /// Probability that a frame arrives twice, 0 to 1.
    pub duplication: f64,
    /// Probability that a frame is held back, 0 to 1, so it may arrive after frames sent later; see
    /// [`Shape::reorder_by`].
    pub reordering: f64,
    /// Maximum time for which a frame is held back.
    pub reorder_by: Delay,
    /// Maximum number of frames that wait at each end while another is sent.
    pub queue: u32,
    /// The largest IP packet it carries, in bytes.
    pub mtu: u32,
}

impl Default for Shape {
    fn default() -> Self {
        Shape {
            rate: None,
            delay: Delay::from_us(10),
            loss: 0.0,
            corruption: 0.0,
            duplication: 0.0,
            reordering: 0.0,
            reorder_by: Delay::from_ms(1),
            queue: 100,
            mtu: 1500,
        }
    }
}

/// Maximum number of hosts and switches in a topology.
pub const MAX_NODES: usize = 20_000;

/// Maximum number of bytes in flight on one link: 1 GiB.
pub const MAX_BYTES_ON_LINK: u64 = 1 << 30;

impl Topology {
    /// Returns the number of shards of the resilient state.
    pub fn shards(&self) -> u16 {
        self.shards.unwrap_or(1)
    }

    /// Returns the name of a node.
    pub fn name(&self, node: Node) -> &str {
        match node {
            Node::Host(at) => &self.hosts[at].name,
            Node::Switch(at) => &self.switches[at].name,
        }
    }

    /// Returns the number of hosts that are no stores. They come first.
    pub fn machines(&self) -> usize {
        self.hosts.iter().take_while(|host| !host.is_store).count()
    }

    /// Whether a host has traffic of its own: stores, their operator and memory servers do not.
    pub fn has_traffic(&self, host: usize) -> bool {
        !self.hosts[host].is_store && self.hosts[host].memory.is_none()
    }

    /// Returns the hosts with traffic of their own, by their indices.
    pub fn traffic_hosts(&self) -> Vec<usize> {
        (0..self.hosts.len()).filter(|host| self.has_traffic(*host)).collect()
    }

    /// Returns the hosts at which shims run in a live lab, by their indices: if any host inserts programs, all others
    /// take them out.
    pub fn shims(&self) -> Vec<usize> {
        if self.hosts.iter().all(|host| host.shim.insert.is_empty()) {
            return Vec::new();
        }
        let mut hosts = self.traffic_hosts();
        hosts.retain(|at| {
            let host = &self.hosts[*at];
            !host.lacks_shim && host.address.is_some() && self.uplink(*at).is_some()
        });
        hosts
    }

    /// Returns the memory servers at the links of a switch, with its ports, in the order of the ports.
    pub fn memory_servers(&self, switch: usize) -> Vec<(u32, usize)> {
        let server = |(port, end): (u32, End)| match end.node {
            Node::Host(host) if self.hosts[host].memory.is_some() => Some((port, host)),
            _ => None,
        };
        self.ports(switch).into_iter().filter_map(server).collect()
    }

    /// Returns the memory servers, by their indices among the hosts.
    pub fn all_memory_servers(&self) -> impl Iterator<Item = usize> {
        (0..self.hosts.len()).filter(|host| self.hosts[*host].memory.is_some())
    }

    /// Returns the stores, by their indices among the hosts, from the head of their chain to its tail.
    pub fn stores(&self) -> std::ops::Range<usize> {
        self.machines()..self.hosts.len() - usize::from(self.chain.is_some())
    }

    /// Returns the operator of the stores, by its index among the hosts.
    pub fn operator(&self) -> Option<usize> {
        self.chain.and(self.hosts.len().checked_sub(1))
    }

    /// Returns the node with a name.
    pub fn node(&self, name: &str) -> Option<Node> {
        let host = self.hosts.iter().position(|host| host.name == name).map(Node::Host);
        host.or_else(|| self.switches.iter().position(|switch| switch.name == name).map(Node::Switch))
    }

    /// Returns an end in the notation of the files: `h1`, or `s1:2`.
    pub fn end_name(&self, end: End) -> String {
        match end.node {
            Node::Host(_) => self.name(end.node).to_owned(),
            Node::Switch(_) => format!("{}:{}", self.name(end.node), end.port),
        }
    }

    /// Returns the ports of a switch that have a link, each with the end at the other side, in ascending order.
    pub fn ports(&self, switch: usize) -> Vec<(u32, End)> {
        let ends = self.links.iter().flat_map(|link| [(link.ends[0], link.ends[1]), (link.ends[1], link.ends[0])]);
        let mut ports: Vec<_> =
            ends.filter(|(end, _)| end.node == Node::Switch(switch)).map(|(end, other)| (end.port, other)).collect();
        ports.sort_unstable();
        ports
    }

    /// Returns the end at the other side of a host's link.
    pub fn uplink(&self, host: usize) -> Option<End> {
        let ends = self.links.iter().flat_map(|link| [(link.ends[0], link.ends[1]), (link.ends[1], link.ends[0])]);
        ends.filter(|(end, _)| end.node == Node::Host(host)).map(|(_, other)| other).next()
    }
}
