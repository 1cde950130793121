//! Simulates the network in virtual time: exact, repeatable, faster than real time.
//!
//! A [`Simulation`] has the nodes of a topology and the links between them. Time is in whole nanoseconds. Switches are
//! [`Element`]s, the same that forward real frames. Hosts run [`HostProgram`]s; the program [`Stack`] speaks TCP/IP.
//!
//! # Advance of time
//!
//! Nothing travels faster than the shortest delay of a link. So no event within one such delay, a *window*, can affect
//! another node within the same window. Each node therefore runs through a window by itself, and the frames that it
//! sends are handed over between windows. This lets several threads share a simulation without changing its result.
//! Each thread advances by the delays of the links among its own nodes, and synchronises with the others as often as
//! the links between threads require.
//!
//! # Determinism: the same seed gives the same bytes
//!
//! - Simultaneous events at a node are ordered by their source, and then by the order in which they were sent.
//! - Every random process (a link's losses in one direction, a host, a flow) has its own stream of random numbers.
//! - No decision depends on a clock, a memory address, the order of a hash map, or the number of threads.

mod capture;
mod element;
mod event;
mod fault;
mod host;
mod int;
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
pub use element::{Element, MakeElement, WriteRefusal};
pub use fault::Fault;
pub use host::{Host, HostProgram};
pub use int::{IntCounts, IntSource};
pub use link::{Cable, LinkStats};
pub use series::Sample;
pub use stack::{App, Io, Stack};
pub use transport::CongestionControl;

use crate::topology::{End, Node as Name, Topology};
use event::{Event, What};
use link::Direction;
use node::{Node, NodeKind};

/// A network in virtual time.
pub struct Simulation {
    hosts: usize,
    nodes: Vec<Node>,
    now: Time,
    sample_ns: Option<u64>,
    samples: Vec<Sample>,
    flooded: Option<Time>,
    max_held_bytes: u64,
}

/// Maximum number of bytes in flight on all links or waiting at hosts at the same time: 2 GiB.
pub const MAX_HELD_BYTES: u64 = 2 << 30;

/// Counters of a whole simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Frames that switches received.
    pub switch_hops: u64,
    /// Frames that hosts received.
    pub delivered: u64,
    /// Frames that hosts sent.
    pub sent: u64,
    /// Frames that links dropped for any reason, and frames that were lost on arrival.
    pub dropped: u64,
    /// Frames that arrived at a switch or host that was down, on a link that had gone down meanwhile, or at a slow host
    /// with too many waiting frames.
    pub lost_on_arrival: u64,
    /// Events of every kind.
    pub events: u64,
}

impl Simulation {
    /// Creates a network at time 0. `make` creates the switches by their place in the topology. Hosts do nothing until
    /// they have programs.
    pub fn new(topology: &Topology, seed: u64, make: MakeElement) -> Simulation {
        let hosts = topology.hosts.len();
        let id = |node: Name| match node {
            Name::Host(at) => at,
            Name::Switch(at) => hosts + at,
        };
        let mut nodes: Vec<Node> = Vec::with_capacity(hosts + topology.switches.len());
        for (at, host) in topology.hosts.iter().enumerate() {
            nodes.push(Node::new(at, NodeKind::Host(Box::new(Host::new(at, host, seed)))));
        }
        for at in 0..topology.switches.len() {
            nodes.push(Node::new(hosts + at, NodeKind::Switch { element: make(at), make: Arc::clone(&make), at }));
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
            max_held_bytes: MAX_HELD_BYTES,
        }
    }

    /// Installs a host's program, which starts at `at`.
    pub fn run_program(&mut self, host: usize, at: Time, program: Box<dyn HostProgram>) {
        assert!(host < self.hosts, "there is such a host");
        let NodeKind::Host(running) = &mut self.nodes[host].kind else { unreachable!("hosts come first") };
        running.program = Some(program);
        self.nodes[host].push(Event::own(at, What::Start));
    }

    /// Returns the program of a host.
    pub fn program(&self, host: usize) -> Option<&dyn HostProgram> {
        match &self.nodes[host].kind {
            NodeKind::Host(host) => host.program.as_deref(),
            NodeKind::Switch { .. } => None,
        }
    }

    /// Returns a switch, by its place in the topology.
    pub fn element(&mut self, switch: usize) -> &mut dyn Element {
        match &mut self.nodes[self.hosts + switch].kind {
            NodeKind::Switch { element, .. } => &mut **element,
            NodeKind::Host(_) => unreachable!("switches follow hosts"),
        }
    }

    /// Injects a fault, or ends one, at a time.
    pub fn fault(&mut self, at: Time, node: Name, fault: Fault) {
        let id = self.id(node);
        self.nodes[id].push(Event::own(at, What::Fault(fault)));
    }

    /// Applies a switch's change of entries with this number ([`Element::write`]) at a time.
    pub fn write(&mut self, at: Time, switch: usize, number: usize) {
        self.nodes[self.hosts + switch].push(Event::own(at, What::Write(number)));
    }

    /// Returns the refused changes of entries in the order of time: the time, the number of the change, and the reason.
    pub fn refused(&self) -> Vec<(Time, usize, WriteRefusal)> {
        let refused = self.nodes.iter().flat_map(|node| node.refused.iter().cloned());
        let mut refused: Vec<_> = refused.map(|(at, number, why)| (Time::from_ns(at), number, why)).collect();
        refused.sort_by_key(|(at, number, _)| (*at, *number));
        refused
    }

    /// Records the frames that leave and enter at one end of a link, from now on.
    pub fn capture(&mut self, end: End, capture: Capture) {
        let id = self.id(end.node);
        self.nodes[id].capture(end.port, capture);
    }

    /// Samples the queues of all links at this interval, from now on.
    pub fn sample_every(&mut self, interval_ns: u64) {
        self.sample_ns = Some(interval_ns.max(1));
    }

    /// Returns the samples taken so far.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Returns, for every direction of a link, the end it begins at, the end it leads to, and its counters. A switch's
    /// own queue counts as the link's: the counters are the same whichever side of a port frames wait on.
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

    /// Returns the time up to which every event has happened.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the reports of INT sinks that the switches have kept, with their times.
    pub fn int_reports(&self) -> impl Iterator<Item = (Time, &[u8])> {
        self.elements().flat_map(|element| element.int_reports()).map(|(at, report)| (*at, &report[..]))
    }

    /// Returns the counters of tiny packet programs and INT of each switch, in the order of the topology.
    pub fn tiny_counters(&self) -> Vec<Vec<(String, u64)>> {
        self.elements().map(|element| element.tiny_counters()).collect()
    }

    fn elements(&self) -> impl Iterator<Item = &dyn Element> {
        self.nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Switch { element, .. } => Some(&**element as &dyn Element),
            NodeKind::Host(_) => None,
        })
    }

    /// Returns the counters so far.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for node in &self.nodes {
            totals.events += node.events;
            match node.kind {
                NodeKind::Host(_) => {
                    totals.delivered += node.received;
                    totals.sent += node.sent;
                }
                NodeKind::Switch { .. } => totals.switch_hops += node.received,
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

    /// Returns a hash of all frames that arrived anywhere (the first 64 bytes of each, its length, port and time).
    pub fn digest(&self) -> u64 {
        self.nodes.iter().fold(0, |digest, node| node::mix(digest, node.digest))
    }

    fn id(&self, node: Name) -> usize {
        match node {
            Name::Host(at) => at,
            Name::Switch(at) => self.hosts + at,
        }
    }

    /// Runs all events before `end` on `threads` threads; the result does not depend on their number. `progress` is
    /// called with the current time now and then.
    pub fn run_until(&mut self, end: Time, threads: usize, progress: &mut dyn FnMut(Time)) {
        if self.flooded.is_some() {
            return;
        }
        let flooded = window::run(self, end.as_ns(), threads.clamp(1, 64), progress);
        self.flooded = flooded.map(Time::from_ns);
        self.now = self.now.max(self.flooded.unwrap_or(end));
    }

    /// Returns the time at which the simulation ended because more than [`MAX_HELD_BYTES`] bytes were in flight, for
    /// example because a loop multiplied frames.
    pub fn flooded(&self) -> Option<Time> {
        self.flooded
    }
}

#[cfg(test)]
mod tests;
