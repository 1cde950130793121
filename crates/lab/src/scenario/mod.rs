//! Defines scenarios of a simulated network: the traffic between its hosts, the faults, and the expected results.

mod counts;
mod execute;
mod expect;
mod faults;
mod int;
mod kinds;
mod limits;
mod minion;
mod path;
mod read;
mod results;
mod run;
mod seeds;
mod words;
mod writes;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use diagnostics::Span;
use tpp::hpcc::HpccSettings;
use tpp::rcp::Fairness;
use tpp::{MemoryMap, TinyProgram};

use crate::sim::Fault;
use crate::sim::traffic::{Balancing, Reading, SizeDistribution};
use crate::sim::transport::Law;
use crate::topology::{Delay, End, Node, Topology};

pub use crate::sim::CongestionControl;
pub use counts::{CountResult, LinkCardinality};
pub use execute::ProgramRequests;
pub use expect::{Expectation, Quantity, Statistic, Unmet, unmet};
pub use int::{IntPacket, IntResult};
pub use minion::{Minion, MinionPacket, MinionResult};
pub use path::{PathPolicy, PathRecord, switch_names};
pub use read::read;
pub use results::{CongaResult, FlowResult, HpccResult, LinkResult, RcpResult, Results, Values};
pub use run::{Run, prepare};
pub use seeds::run_seeds;

/// A scenario: traffic, faults, changes of entries, captures and expectations.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Duration of the simulation, in virtual time.
    pub duration: Delay,
    /// Default seed of all random numbers; the caller may choose another one.
    pub seed: u64,
    /// Time between two samples of the queues.
    pub sample: Delay,
    /// Traffic between the hosts.
    pub traffic: Vec<Traffic>,
    /// Faults at fixed times.
    pub faults: Vec<Planned>,
    /// Faults at random times.
    pub random_faults: Option<RandomFaults>,
    /// Changes of table entries.
    pub writes: Vec<Write>,
    /// Ends whose frames are captured, each with the name of its capture file.
    pub captures: Vec<(End, String)>,
    /// Expected results.
    pub expect: Vec<Expectation>,
}

/// Senders, their receivers, and the kind of traffic between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Its name, unique in the scenario.
    pub name: String,
    /// The senders, each with its receivers, by their indices in the topology.
    pub pairs: Vec<(usize, Vec<usize>)>,
    /// Time at which it begins.
    pub start: Delay,
    /// Time at which it ends.
    pub stop: Delay,
    /// Destination address, if it is not the receivers' own: a virtual address that the receivers share.
    pub address: Option<Ipv4Addr>,
    /// Reaction of senders to ECN marks; `None` if packets are not ECN-capable.
    pub ecn: Option<Law>,
    /// Tiny packet program in the packets of the senders.
    pub minion: Option<Minion>,
    /// Bitmap of the INT instructions in the packets of the senders.
    pub int: Option<u16>,
    /// Kind of traffic and its parameters.
    pub kind: TrafficKind,
    /// Location in the file.
    pub span: Span,
}

/// A fault at a fixed time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planned {
    /// Time at which it happens.
    pub at: Delay,
    /// Host or switch to which it happens.
    pub node: Node,
    /// The fault.
    pub fault: Fault,
    /// Location in the file.
    pub span: Span,
}

/// A memory server that joins or leaves a switch, by its index among the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerChange {
    /// It joins.
    Add(usize),
    /// It leaves.
    Remove(usize),
}

/// A change of a switch's entries or memory servers at a fixed time, made as a controller would make it.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// Time at which it happens.
    pub at: Delay,
    /// Index of the switch in the topology.
    pub switch: usize,
    /// File of the entries that are deleted first.
    pub delete: Option<String>,
    /// File of the entries that are written after that.
    pub entries: Option<String>,
    /// Memory server that joins or leaves.
    pub server: Option<ServerChange>,
    /// Location in the scenario file.
    pub span: Span,
}

/// A kind of traffic and its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum TrafficKind {
    /// Datagrams in frames of `size` bytes, at `rate_bps` bits of frames per second.
    Udp {
        /// Size of a frame, in bytes.
        size: u32,
        /// Bits of frames per second, on average while sending.
        rate_bps: u64,
        /// Spacing of the datagrams in time.
        timing: Timing,
    },
    /// One flow of `bytes` bytes.
    Tcp {
        /// Size of the flow, in bytes; `None` for a flow without end.
        bytes: Option<u64>,
        /// Size of the buffers, in bytes.
        window: u32,
        /// Congestion control of the flow.
        control: CongestionControl,
    },
    /// Flows that begin and end throughout the run.
    Flows {
        /// Distribution of the sizes of the flows.
        sizes: SizeDistribution,
        /// Offered load of each sender, in bits per second on average.
        rate_bps: u64,
        /// Congestion control of the connections.
        control: CongestionControl,
    },
    /// Requests, each sent after the previous one is answered.
    Requests {
        /// Size of a request, in bytes.
        request: u32,
        /// Size of a response, in bytes.
        response: u32,
        /// Mean time between a response and the next request.
        think: Delay,
        /// Congestion control of the connections.
        control: CongestionControl,
    },
    /// Echo requests.
    Ping {
        /// Number of echo requests.
        count: u32,
        /// Time from one to the next.
        interval: Delay,
    },
    /// Custom frames, from which values are read where they arrive.
    Probe {
        /// Bytes of the frame, from the Ethernet header on.
        frame: Vec<u8>,
        /// Number of frames.
        count: u32,
        /// Time from one to the next.
        interval: Delay,
        /// Values that are read from the frames that arrive.
        readings: Vec<Reading>,
    },
    /// Datagrams in frames of `size` bytes, at the rate that RCP* allows.
    Rcp {
        /// Size of a frame, in bytes.
        size: u32,
        /// Shares of the flows.
        fairness: Fairness,
        /// Time from one sample of the links to the next.
        interval: Delay,
    },
    /// Datagrams in frames of `size` bytes, in the window that HPCC allows.
    Hpcc {
        /// Size of a frame, in bytes.
        size: u32,
        /// Parameters of the flows.
        settings: HpccSettings,
    },
    /// Datagrams of several flows, over paths that the sender chooses.
    Conga {
        /// Size of a frame, in bytes.
        size: u32,
        /// Bits of frames per second, of all flows together.
        rate_bps: u64,
        /// Spacing of the datagrams of a flow in time.
        timing: Timing,
        /// Number of flows.
        flows: u32,
        /// The way in which the sender uses the paths.
        balancing: Balancing,
    },
    /// A tiny packet program, sent as datagrams that the receivers echo.
    Tpp {
        /// The program's file; relative names are relative to the scenario's.
        file: String,
        /// Number of datagrams.
        count: u32,
        /// Time from one to the next.
        interval: Delay,
    },
    /// A tiny packet program that is executed reliably, in rounds of requests to all receivers.
    Execute(ProgramRequests),
    /// The frames of a capture file, sent once, at their times.
    Replay(
        /// The file; relative names are relative to the scenario's.
        String,
    ),
}

/// The spacing of datagrams in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timing {
    /// At constant intervals.
    Constant,
    /// As a Poisson process: independently of each other.
    Poisson,
    /// Alternately on, at constant intervals, and off; both times are exponential with these means.
    OnOff {
        /// Mean time on.
        on: Delay,
        /// Mean time off.
        off: Delay,
    },
}

/// Faults drawn from the seed; each happens to a random switch or link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomFaults {
    /// Mean time from one fault to the next.
    pub every: Delay,
    /// Mean duration of a fault.
    pub lasts: Delay,
    /// Whether switches crash.
    pub crashes: bool,
    /// Whether links go down.
    pub links: bool,
}

/// The contents of the files that a scenario names, by name.
#[derive(Clone, Debug, Default)]
pub struct ScenarioFiles {
    /// The frames of the captures that it replays, each with its time in nanoseconds.
    pub replays: BTreeMap<String, Vec<(u64, Vec<u8>)>>,
    /// Tiny packet programs.
    pub programs: BTreeMap<String, TinyProgram>,
    /// Tiny packet programs of any size, for [`TrafficKind::Execute`].
    pub large_programs: BTreeMap<String, TinyProgram>,
    /// The memory of the switches, for the names of the programs' words.
    pub memory: MemoryMap,
}

impl Traffic {
    /// Returns the file of its tiny packet program.
    pub fn program(&self) -> Option<&str> {
        match &self.kind {
            TrafficKind::Tpp { file, .. } => Some(file),
            TrafficKind::Execute(execution) => Some(&execution.file),
            _ => self.minion.as_ref().map(|minion| minion.file.as_str()),
        }
    }
}

impl Scenario {
    /// Returns all faults in the order of time: the planned ones and those drawn from a seed.
    pub fn schedule(&self, topology: &Topology, seed: u64) -> Vec<Planned> {
        let drawn = self.random_faults.map(|random| faults::draw(random, topology, self.duration, seed));
        let mut all: Vec<Planned> = self.faults.iter().copied().chain(drawn.into_iter().flatten()).collect();
        all.sort_by_key(|planned| planned.at);
        all
    }

    /// Returns the default scenario: every one of these hosts pings every other, or only its successor if there are
    /// many.
    pub fn all_ping(hosts: &[usize]) -> Scenario {
        const ALL_PAIRS_UP_TO: usize = 16;
        let others = |at: usize| match hosts.len() {
            0..=ALL_PAIRS_UP_TO => hosts.iter().copied().filter(|other| *other != hosts[at]).collect(),
            count => vec![hosts[(at + 1) % count]],
        };
        let ping = Traffic {
            name: "ping".to_owned(),
            pairs: hosts.iter().enumerate().map(|(at, host)| (*host, others(at))).collect(),
            start: Delay::from_ms(10),
            stop: Delay::from_ms(1_000),
            address: None,
            ecn: None,
            minion: None,
            int: None,
            kind: TrafficKind::Ping { count: 5, interval: Delay::from_ms(100) },
            span: Span::default(),
        };
        Scenario {
            duration: Delay::from_ms(3_000),
            seed: 1,
            sample: Delay::from_ms(10),
            traffic: if hosts.len() > 1 { vec![ping] } else { Vec::new() },
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
