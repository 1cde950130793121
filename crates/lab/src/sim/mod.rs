//! The network in virtual time: exact, repeatable, faster than real time.
//!
//! A [`Simulation`] has the nodes of a topology and the links between them. Time is whole nanoseconds. Switches are
//! [`Element`]s, the same that forward real frames; hosts run [`Program`]s, of which [`Stack`] speaks TCP/IP.
//!
//! # How time passes
//!
//! Nothing travels faster than the link with the shortest delay. So all that happens within one such delay, a *window*,
//! cannot be the cause of anything at another node within the same window, and each node runs through a window by
//! itself; what it sends is handed over between windows. That is what lets several threads share a simulation without
//! changing it: each goes by the delays of the links among its own nodes, and meets the others as often as the links
//! between them ask for.
//!
//! # Why the same seed gives the same bytes
//!
//! - What happens at a node at one moment happens in the order of where it comes from, and then of when it was sent.
//! - Everything random (a link's losses in one direction, a host, a flow) has a stream of random numbers of its own.
//! - No decision looks at a clock, an address in memory, the order of a hash map, or the number of threads.

mod capture;
mod element;
mod event;
mod fault;
mod host;
mod link;
mod neighbours;
mod node;
mod series;
mod stack;
mod threads;
pub mod traffic;
pub mod transport;
mod window;

use std::sync::Arc;

use switch::Time;

pub use capture::{Capture, Way};
pub use element::{Element, MakeElement};
pub use fault::Fault;
pub use host::{Host, Program};
pub use link::{Cable, LinkStats};
pub use series::Sample;
pub use stack::{App, Io, Stack};
pub use transport::CongestionControl;

use crate::topology::{End, Node as Name, Topology};
use event::{Event, What};
use link::Direction;
use node::{Kind, Node};

/// A network in virtual time.
pub struct Simulation {
    hosts: usize,
    nodes: Vec<Node>,
    now: Time,
    sample_ns: Option<u64>,
    samples: Vec<Sample>,
    flooded: Option<Time>,
    most_held: u64,
}

/// The most bytes that are on the way on all links, or wait at hosts, at the same time: 2 GiB.
pub const MOST_HELD: u64 = 2 << 30;

/// What a simulation did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Frames that switches took in.
    pub switch_hops: u64,
    /// Frames that hosts took in.
    pub delivered: u64,
    /// Frames that hosts sent.
    pub sent: u64,
    /// Frames that links dropped, for whatever reason, and those that were lost on arrival.
    pub dropped: u64,
    /// Frames that came to a switch or host that was down, by a link that went down meanwhile, or to a slow host for which
    /// too many waited.
    pub lost_on_arrival: u64,
    /// Events of every kind.
    pub events: u64,
}

impl Simulation {
    /// A network at time 0. `make` makes the switches, by their place in the topology; hosts do nothing until they are
    /// given programs.
    pub fn new(topology: &Topology, seed: u64, make: MakeElement) -> Simulation {
        let hosts = topology.hosts.len();
        let id = |node: Name| match node {
            Name::Host(at) => at,
            Name::Switch(at) => hosts + at,
        };
        let mut nodes: Vec<Node> = Vec::with_capacity(hosts + topology.switches.len());
        for (at, host) in topology.hosts.iter().enumerate() {
            nodes.push(Node::new(at, Kind::Host(Box::new(Host::new(at, host, seed)))));
        }
        for at in 0..topology.switches.len() {
            nodes.push(Node::new(hosts + at, Kind::Switch { element: make(at), make: Arc::clone(&make), at }));
        }
        for (number, link) in topology.links.iter().enumerate() {
            for (way, (from, to)) in [(0, 1), (1, 0)].into_iter().enumerate() {
                let (from, to) = (link.ends[from], link.ends[to]);
                let stream = 2 * number as u64 + way as u64;
                let direction = Direction::new(from, to, id(to.node), link.shape, seed, stream);
                nodes[id(from.node)].attach(direction);
            }
        }
        Simulation {
            hosts,
            nodes,
            now: Time::ZERO,
            sample_ns: None,
            samples: Vec::new(),
            flooded: None,
            most_held: MOST_HELD,
        }
    }

    /// Gives a host its program, which starts at `at`.
    pub fn run_program(&mut self, host: usize, at: Time, program: Box<dyn Program>) {
        assert!(host < self.hosts, "there is such a host");
        let Kind::Host(running) = &mut self.nodes[host].kind else { unreachable!("hosts come first") };
        running.program = Some(program);
        self.nodes[host].push(Event::own(at, What::Start));
    }

    /// The program of a host.
    pub fn program(&self, host: usize) -> Option<&dyn Program> {
        match &self.nodes[host].kind {
            Kind::Host(host) => host.program.as_deref(),
            Kind::Switch { .. } => None,
        }
    }

    /// A switch, by its place in the topology.
    pub fn element(&mut self, switch: usize) -> &mut dyn Element {
        match &mut self.nodes[self.hosts + switch].kind {
            Kind::Switch { element, .. } => &mut **element,
            Kind::Host(_) => unreachable!("switches follow hosts"),
        }
    }

    /// Makes something go wrong, or right again, at a time.
    pub fn fault(&mut self, at: Time, node: Name, fault: Fault) {
        let id = self.id(node);
        self.nodes[id].push(Event::own(at, What::Fault(fault)));
    }

    /// Makes a switch's change of entries with this number ([`Element::write`]) at a time.
    pub fn write(&mut self, at: Time, switch: usize, number: usize) {
        self.nodes[self.hosts + switch].push(Event::own(at, What::Write(number)));
    }

    /// The changes of entries that were refused: when, which, and why; in the order of time.
    pub fn refused(&self) -> Vec<(Time, usize, String)> {
        let refused = self.nodes.iter().flat_map(|node| node.refused.iter().cloned());
        let mut refused: Vec<_> = refused.map(|(at, number, why)| (Time::from_ns(at), number, why)).collect();
        refused.sort();
        refused
    }

    /// Records what leaves and enters by one end of a link, from now on.
    pub fn capture(&mut self, end: End, capture: Capture) {
        let id = self.id(end.node);
        self.nodes[id].capture(end.port, capture);
    }

    /// Samples the queues of all links this often, from now on.
    pub fn sample_every(&mut self, interval_ns: u64) {
        self.sample_ns = Some(interval_ns.max(1));
    }

    /// What was sampled.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// What every direction of a link carried: the end it begins at, the one it ends at, and the counts. A switch's own
    /// queue counts as the link's: whether frames wait on this or that side of a port makes no difference to them.
    pub fn links(&self) -> impl Iterator<Item = (End, End, LinkStats)> {
        self.nodes.iter().flat_map(|node| {
            node.directions.iter().map(|(_, way)| {
                let mut stats = way.cable.stats.clone();
                let (_, queue_full) = node.queue(way.from.port);
                stats.queue_full += queue_full;
                stats.offered += queue_full;
                (way.from, way.to, stats)
            })
        })
    }

    /// The time up to which everything has happened.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What has happened so far, in numbers.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for node in &self.nodes {
            totals.events += node.events;
            match node.kind {
                Kind::Host(_) => {
                    totals.delivered += node.received;
                    totals.sent += node.sent;
                }
                Kind::Switch { .. } => totals.switch_hops += node.received,
            }
            totals.lost_on_arrival += node.lost_on_arrival;
            totals.dropped += node
                .directions
                .iter()
                .map(|(_, way)| way.cable.stats.dropped() + node.queue(way.from.port).1)
                .sum::<u64>()
                + node.lost_on_arrival;
        }
        totals
    }

    /// A hash of the frames that arrived anywhere (of each the first 64 bytes, the length, the port, the time).
    pub fn digest(&self) -> u64 {
        self.nodes.iter().fold(0, |digest, node| node::mix(digest, node.digest))
    }

    fn id(&self, node: Name) -> usize {
        match node {
            Name::Host(at) => at,
            Name::Switch(at) => self.hosts + at,
        }
    }

    /// Lets everything happen that happens before `end`, on so many threads; the result does not depend on how many.
    /// `progress` is told the time now and then.
    pub fn run_until(&mut self, end: Time, threads: usize, progress: &mut dyn FnMut(Time)) {
        if self.flooded.is_some() {
            return;
        }
        let flooded = window::run(self, end.as_ns(), threads.clamp(1, 64), progress);
        self.flooded = flooded.map(Time::from_ns);
        self.now = self.now.max(self.flooded.unwrap_or(end));
    }

    /// When it ended because more than [`MOST_HELD`] bytes were on the way, as where a loop multiplies frames.
    pub fn flooded(&self) -> Option<Time> {
        self.flooded
    }
}

#[cfg(test)]
mod tests;
