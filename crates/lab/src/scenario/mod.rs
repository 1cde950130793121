//! What happens in a simulated network: who sends what to whom, what goes wrong, and what is expected.

mod expect;
mod faults;
mod kinds;
mod limits;
mod read;
mod results;
mod run;
mod words;
mod writes;

use std::net::Ipv4Addr;

use diagnostics::Span;

use crate::sim::Fault;
use crate::sim::traffic::{Reading, SizeDistribution};
use crate::sim::transport::Law;
use crate::topology::{Delay, End, Node, Topology};

pub use crate::sim::CongestionControl;
pub use expect::{Expectation, Quantity, Statistic, Unmet, unmet};
pub use read::read;
pub use results::{FlowResult, LinkResult, Results, Values};
pub use run::{Run, prepare};

/// A scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// How long it lasts.
    pub duration: Delay,
    /// What everything random comes from, unless whoever runs it says otherwise.
    pub seed: u64,
    /// How often queues are sampled.
    pub sample: Delay,
    /// Who sends.
    pub traffic: Vec<Traffic>,
    /// What goes wrong, and when.
    pub faults: Vec<Planned>,
    /// What goes wrong at random.
    pub random_faults: Option<RandomFaults>,
    /// How entries change.
    pub writes: Vec<Write>,
    /// What is recorded, and in which file.
    pub captures: Vec<(End, String)>,
    /// What has to come of it.
    pub expect: Vec<Expectation>,
}

/// Hosts that send, hosts that receive, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Its name, unique in the scenario.
    pub name: String,
    /// The senders and whom each sends to, by their places in the topology.
    pub pairs: Vec<(usize, Vec<usize>)>,
    /// When it begins.
    pub start: Delay,
    /// When it ends.
    pub stop: Delay,
    /// Where it is sent to, if that is not the receivers' own address: they stand behind it.
    pub address: Option<Ipv4Addr>,
    /// Whether its packets are capable of ECN, and how senders take marks.
    pub ecn: Option<Law>,
    /// What is sent.
    pub kind: TrafficKind,
    /// Where the file says so.
    pub span: Span,
}

/// Something that goes wrong at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planned {
    /// When.
    pub at: Delay,
    /// With what.
    pub node: Node,
    /// What.
    pub fault: Fault,
    /// Where the file says so.
    pub span: Span,
}

/// Entries of a switch that change at a time, as a controller would change them.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// When.
    pub at: Delay,
    /// Which switch, by its place in the topology.
    pub switch: usize,
    /// The file of what is taken away first.
    pub delete: Option<String>,
    /// The file of what is written then.
    pub entries: Option<String>,
    /// Where the scenario says so.
    pub span: Span,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum TrafficKind {
    /// Datagrams in frames of `size` bytes, `rate_bps` bits of frames a second.
    Udp {
        /// Bytes of a frame.
        size: u32,
        /// Bits of frames a second, on average while sending.
        rate_bps: u64,
        /// When each is sent.
        timing: Timing,
    },
    /// One flow of so many bytes; without end if `None`.
    Tcp {
        /// Bytes of the flow.
        bytes: Option<u64>,
        /// Bytes of buffers.
        window: u32,
        /// How it avoids congestion.
        control: CongestionControl,
    },
    /// Flows that come and go.
    Flows {
        /// How large they are.
        sizes: SizeDistribution,
        /// Bits a second that each sender offers, on average.
        rate_bps: u64,
        /// How they avoid congestion.
        control: CongestionControl,
    },
    /// Requests, each when the last is answered.
    Requests {
        /// Bytes of a request.
        request: u32,
        /// Bytes of an answer.
        response: u32,
        /// The mean of the time between an answer and the next request.
        think: Delay,
        /// How they avoid congestion.
        control: CongestionControl,
    },
    /// Echo requests.
    Ping {
        /// How many.
        count: u32,
        /// One every so long.
        interval: Delay,
    },
    /// Frames of one's own making, from which values are read where they arrive.
    Probe {
        /// The frame.
        frame: Vec<u8>,
        /// How many.
        count: u32,
        /// One every so long.
        interval: Delay,
        /// What is read from those that arrive.
        readings: Vec<Reading>,
    },
    /// The frames of a capture file, at their times, once.
    Replay(
        /// The file; relative names are relative to the scenario's.
        String,
    ),
}

/// When datagrams are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timing {
    /// Evenly.
    Constant,
    /// Independently of each other.
    Poisson,
    /// Evenly for a time, not at all for a time; both exponential with these means.
    OnOff {
        /// The mean of the time on.
        on: Delay,
        /// The mean of the time off.
        off: Delay,
    },
}

/// Faults drawn from the seed: each happens to a switch or link at random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomFaults {
    /// Time from one to the next, on average.
    pub every: Delay,
    /// How long one lasts, on average.
    pub lasts: Delay,
    /// Whether switches crash.
    pub crashes: bool,
    /// Whether links go down.
    pub links: bool,
}

impl Scenario {
    /// Everything that goes wrong, in the order of time: what was planned, and what is drawn from a seed.
    pub fn schedule(&self, topology: &Topology, seed: u64) -> Vec<Planned> {
        let drawn = self.random_faults.map(|random| faults::draw(random, topology, self.duration, seed));
        let mut all: Vec<Planned> = self.faults.iter().copied().chain(drawn.into_iter().flatten()).collect();
        all.sort_by_key(|planned| planned.at);
        all
    }

    /// A scenario for those who have none: every host pings every other (each its successor, where there are many).
    pub fn all_ping(hosts: usize) -> Scenario {
        const ALL_PAIRS_UP_TO: usize = 16;
        let others = |host: usize| match hosts {
            0..=ALL_PAIRS_UP_TO => (0..hosts).filter(|other| *other != host).collect(),
            _ => vec![(host + 1) % hosts],
        };
        let ping = Traffic {
            name: "ping".to_owned(),
            pairs: (0..hosts).map(|host| (host, others(host))).collect(),
            start: Delay::from_ms(10),
            stop: Delay::from_ms(1_000),
            address: None,
            ecn: None,
            kind: TrafficKind::Ping { count: 5, interval: Delay::from_ms(100) },
            span: Span::default(),
        };
        Scenario {
            duration: Delay::from_ms(3_000),
            seed: 1,
            sample: Delay::from_ms(10),
            traffic: if hosts > 1 { vec![ping] } else { Vec::new() },
            faults: Vec::new(),
            random_faults: None,
            writes: Vec::new(),
            captures: Vec::new(),
            expect: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
