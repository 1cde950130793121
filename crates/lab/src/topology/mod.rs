//! Hosts, switches and the links between them, as a file asks for them or a generator makes them.

mod quantity;

use std::net::{Ipv4Addr, SocketAddr};

use diagnostics::Span;
use wire::ethernet::Address;

pub use quantity::{Delay, NotAQuantity, Rate};

/// A network: what [`crate::read`] reads, [`crate::generate`] makes, and both worlds run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// The hosts, in the order of the file.
    pub hosts: Vec<Host>,
    /// The switches, in the order of the file.
    pub switches: Vec<Switch>,
    /// The links, in the order of the file.
    pub links: Vec<Link>,
}

/// A machine at the edge. It has one interface, `eth0`.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// Its name, unique among hosts and switches.
    pub name: String,
    /// Its address and how many bits of it are the network's.
    pub address: Option<(Ipv4Addr, u8)>,
    /// Its Ethernet address.
    pub mac: Address,
    /// Where packets to other networks go.
    pub gateway: Option<Ipv4Addr>,
    /// Ethernet addresses that it knows without asking.
    pub neighbours: Vec<(Ipv4Addr, Address)>,
    /// Shell commands that it runs when it starts; live only.
    pub commands: Vec<String>,
    /// Where the file names it.
    pub span: Span,
}

/// A switch, its program and its entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    /// Its name, unique among hosts and switches.
    pub name: String,
    /// The P4 program.
    pub program: Program,
    /// Where the entries come from.
    pub entries: Entries,
    /// The port to the controller, if it has one.
    pub cpu_port: Option<u32>,
    /// Where controllers reach it; live only.
    pub p4runtime: Option<Endpoint>,
    /// The device id that controllers ask for; its place among the switches, from 0, if the file says none.
    pub device_id: Option<u64>,
    /// Where the file names it.
    pub span: Span,
}

/// Where a switch serves P4Runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// At the address that falls to it: ports count up in the order of the switches.
    Allotted,
    /// At this address.
    At(SocketAddr),
}

/// Which program a switch runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A file; relative names are relative to the topology's file. The span is where the file names it.
    File(String, Span),
    /// The router that comes with the lab ([`crate::routes`]).
    Router,
    /// Whoever runs the network says it: the tutorials' topologies leave it to their makefile.
    Unsaid,
}

/// What a switch's tables hold when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entries {
    /// Nothing but the program's own.
    None,
    /// An entries file; relative names are relative to the topology's file. The span is where the file names it.
    File(String, Span),
    /// Shortest paths to every host, computed from the topology ([`crate::routes`]).
    ShortestPaths,
}

/// A cable between two ends, the same both ways.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// What it joins.
    pub ends: [End; 2],
    /// How it carries frames.
    pub shape: Shape,
    /// Where the file names it.
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

/// A host or a switch, by its place in the topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// One of [`Topology::hosts`].
    Host(usize),
    /// One of [`Topology::switches`].
    Switch(usize),
}

/// How a link carries frames, in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Bits a second on the wire; `None` for a link that takes no time to serialise.
    pub rate: Option<Rate>,
    /// The time a bit travels.
    pub delay: Delay,
    /// Chance that a frame is lost, 0 to 1.
    pub loss: f64,
    /// Chance that a bit of a frame is flipped, 0 to 1.
    pub corruption: f64,
    /// Chance that a frame arrives twice, 0 to 1.
    pub duplication: f64,
    /// Chance that a frame is held back, 0 to 1, and so may arrive behind the frames after it; see
    /// [`Shape::reorder_by`].
    pub reordering: f64,
    /// How long a frame that is held back is held at most.
    pub reorder_by: Delay,
    /// How many frames wait at each end while another is sent.
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

/// The most hosts and switches of a topology.
pub const MAX_NODES: usize = 20_000;

/// The most bytes that travel on one link at the same time: 1 GiB.
pub const MOST_ON_A_LINK: u64 = 1 << 30;

/// The largest port number of a switch.
pub const MAX_PORT: u32 = 510;

impl Topology {
    /// The name of a node.
    pub fn name(&self, node: Node) -> &str {
        match node {
            Node::Host(at) => &self.hosts[at].name,
            Node::Switch(at) => &self.switches[at].name,
        }
    }

    /// The node of a name.
    pub fn node(&self, name: &str) -> Option<Node> {
        let host = self.hosts.iter().position(|host| host.name == name).map(Node::Host);
        host.or_else(|| self.switches.iter().position(|switch| switch.name == name).map(Node::Switch))
    }

    /// An end as people write it: `h1`, or `s1:2`.
    pub fn end_name(&self, end: End) -> String {
        match end.node {
            Node::Host(_) => self.name(end.node).to_owned(),
            Node::Switch(_) => format!("{}:{}", self.name(end.node), end.port),
        }
    }

    /// The ports of a switch that have a link, with the end at the other side, in the order of their numbers.
    pub fn ports(&self, switch: usize) -> Vec<(u32, End)> {
        let ends = self.links.iter().flat_map(|link| [(link.ends[0], link.ends[1]), (link.ends[1], link.ends[0])]);
        let mut ports: Vec<_> =
            ends.filter(|(end, _)| end.node == Node::Switch(switch)).map(|(end, other)| (end.port, other)).collect();
        ports.sort_unstable();
        ports
    }

    /// What the link of a host leads to.
    pub fn uplink(&self, host: usize) -> Option<End> {
        let ends = self.links.iter().flat_map(|link| [(link.ends[0], link.ends[1]), (link.ends[1], link.ends[0])]);
        ends.filter(|(end, _)| end.node == Node::Host(host)).map(|(_, other)| other).next()
    }
}
