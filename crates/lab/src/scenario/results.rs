//! What came of a scenario.

use std::any::Any;
use std::collections::BTreeSet;

use switch::Time;

use super::expect::{self, Unmet};
use super::run::{At, Part, Run, port};
use super::{Scenario, TrafficKind};
use crate::sim::traffic::{
    Measured, Measurement, Ping, ProbeSender, ProbeSink, Reading, Replay, RequestClient, TcpFlows, TcpSink, UdpSender,
    UdpSink,
};
use crate::sim::transport::Marks;
use crate::sim::{LinkStats, Sample, Stack, Totals};
use crate::topology::{End, Topology};

/// What came of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// What came of each traffic, in the order of the scenario.
    pub traffic: Vec<FlowResult>,
    /// What came of each pair of sender and receiver.
    pub pairs: Vec<FlowResult>,
    /// What each direction of each link did.
    pub links: Vec<LinkResult>,
    /// The queues over time.
    pub samples: Vec<Sample>,
    /// The simulation in numbers.
    pub totals: Totals,
    /// A hash of the frames that arrived anywhere, and when ([`crate::sim::Simulation::digest`]).
    pub digest: u64,
    /// When it ended.
    pub end: Time,
    /// Changes of entries that a switch refused: when, which of the scenario, and why.
    pub refused: Vec<(Time, usize, String)>,
    /// When more was on the way than is simulated, which ended it.
    pub flooded: Option<Time>,
    /// What was expected and did not come.
    pub unmet: Vec<Unmet>,
}

/// What came of some traffic, or of one pair of it.
#[derive(Clone, Debug)]
pub struct FlowResult {
    /// The traffic's name.
    pub name: String,
    /// The sender, or how many there are.
    pub from: String,
    /// The receiver, or how many there are.
    pub to: String,
    /// What `sent` and `received` count: datagrams, flows, requests, echoes, frames.
    pub unit: &'static str,
    /// The numbers.
    pub measured: Measured,
    /// Packets capable of ECN that arrived at either end, and the marks among them; with the traffic, not with pairs.
    pub marks: Marks,
    /// What probes read, in the order of the scenario; with the traffic, not with pairs.
    pub values: Vec<Values>,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct LinkResult {
    /// The end that sends.
    pub from: End,
    /// The end that receives.
    pub to: End,
    /// What it did.
    pub stats: LinkStats,
}

/// What probes read.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// What it is called.
    pub name: String,
    /// The values and when they arrived, in the order of time.
    pub points: Vec<(Time, f64)>,
}

impl FlowResult {
    /// The share of what was sent that arrived; 1 if nothing was sent.
    pub fn delivered(&self) -> f64 {
        if self.measured.sent == 0 { 1.0 } else { self.measured.received as f64 / self.measured.sent as f64 }
    }
}

/// The application at a place, if it is of this kind.
fn app<T: Any>(run: &Run, at: At) -> Option<&T> {
    let stack = run.simulation.program(at.host)?.as_any().downcast_ref::<Stack>()?;
    stack.apps().nth(at.app)?.as_any().downcast_ref()
}

/// What the applications of one sender measured.
fn measured(run: &Run, part: &Part, kind: &TrafficKind) -> Measured {
    let mut all = Measured::default();
    let sent = match kind {
        TrafficKind::Udp { .. } => app::<UdpSender>(run, part.sender).map_or(0, |sender| sender.sent),
        TrafficKind::Tcp { bytes, .. } => u64::from(bytes.is_some()),
        TrafficKind::Flows { .. } => app::<TcpFlows>(run, part.sender).map_or(0, |flows| flows.begun),
        TrafficKind::Probe { .. } => app::<ProbeSender>(run, part.sender).map_or(0, |sender| sender.sent),
        TrafficKind::Replay(_) => app::<Replay>(run, part.sender).map_or(0, |replay| replay.sent),
        TrafficKind::Requests { .. } | TrafficKind::Ping { .. } => 0,
    };
    for receiver in &part.receivers {
        let one = match kind {
            TrafficKind::Udp { .. } => app::<UdpSink>(run, *receiver).and_then(|sink| sink.flows.get(&part.flow)),
            TrafficKind::Tcp { .. } => app::<TcpSink>(run, *receiver).map(Measurement::measured),
            TrafficKind::Requests { .. } => app::<RequestClient>(run, *receiver).map(Measurement::measured),
            TrafficKind::Ping { .. } => app::<Ping>(run, *receiver).map(Measurement::measured),
            // Sinks are shared by all senders; they are counted once, with the traffic.
            TrafficKind::Flows { .. } | TrafficKind::Probe { .. } | TrafficKind::Replay(_) => None,
        };
        one.into_iter().for_each(|one| all.add(one));
    }
    all.sent += sent;
    all
}

pub fn of(run: &Run, topology: &Topology, scenario: &Scenario) -> Results {
    let mut pairs = Vec::new();
    let mut traffic: Vec<FlowResult> = Vec::new();
    for (number, described) in scenario.traffic.iter().enumerate() {
        let unit = match described.kind {
            TrafficKind::Udp { .. } => "datagrams",
            TrafficKind::Tcp { .. } | TrafficKind::Flows { .. } => "flows",
            TrafficKind::Requests { .. } => "requests",
            TrafficKind::Ping { .. } => "echoes",
            TrafficKind::Probe { .. } | TrafficKind::Replay(_) => "frames",
        };
        let mut all = Measured::default();
        let mut seen = BTreeSet::new();
        let parts: Vec<&Part> = run.parts.iter().filter(|part| part.traffic == number).collect();
        for part in &parts {
            let mut one = measured(run, part, &described.kind);
            // TCP sinks serve all senders to a host: count each once.
            let probes = matches!(described.kind, TrafficKind::Probe { .. });
            let shared = probes || matches!(described.kind, TrafficKind::Tcp { .. } | TrafficKind::Flows { .. });
            if shared {
                for receiver in part.receivers.iter().filter(|receiver| seen.insert(**receiver)) {
                    app::<TcpSink>(run, *receiver).into_iter().for_each(|sink| all.add(sink.measured()));
                    app::<ProbeSink>(run, *receiver).into_iter().for_each(|sink| all.add(sink.measured()));
                }
                all.sent += one.sent;
            } else {
                all.add(&one);
            }
            let alone = parts.iter().filter(|other| other.receivers == part.receivers).count() == 1;
            if shared && !(alone && part.receivers.len() == 1) {
                one = Measured { sent: one.sent, ..Measured::default() };
            }
            let name = |host: &usize| topology.hosts[*host].name.clone();
            let to = if part.to.len() == 1 { name(&part.to[0]) } else { format!("{} hosts", part.to.len()) };
            pairs.push(FlowResult {
                name: described.name.clone(),
                from: name(&part.from),
                to,
                unit,
                measured: one,
                marks: Marks::default(),
                values: Vec::new(),
            });
        }
        let hosts = |mut hosts: Vec<usize>| {
            hosts.sort_unstable();
            hosts.dedup();
            match hosts[..] {
                [host] => topology.hosts[host].name.clone(),
                _ => format!("{} hosts", hosts.len()),
            }
        };
        let from = hosts(parts.iter().map(|part| part.from).collect());
        let to = hosts(parts.iter().flat_map(|part| part.to.iter().copied()).collect());
        let marks = marks(run, number, &parts);
        let values = values(run, described.kind.readings(), &parts);
        traffic.push(FlowResult { name: described.name.clone(), from, to, unit, measured: all, marks, values });
    }
    let mut links: Vec<LinkResult> =
        run.simulation.links().map(|(from, to, stats)| LinkResult { from, to, stats }).collect();
    // What a switch's own queue held is known by samples only.
    let mut longest = std::collections::BTreeMap::<End, u64>::new();
    for sample in run.simulation.samples() {
        let most = longest.entry(sample.from).or_default();
        *most = sample.waiting.max(*most);
    }
    for link in &mut links {
        let sampled = longest.get(&link.from).copied().unwrap_or(0);
        link.stats.longest_queue = link.stats.longest_queue.max(sampled);
    }
    let (samples, totals) = (run.simulation.samples().to_vec(), run.simulation.totals());
    let (digest, end) = (run.simulation.digest(), run.simulation.now());
    let (refused, flooded) = (run.simulation.refused(), run.simulation.flooded());
    let unmet = Vec::new();
    let mut results = Results { traffic, pairs, links, samples, totals, digest, end, refused, flooded, unmet };
    results.unmet = expect::unmet(scenario, topology, &results);
    results
}

/// The marks on packets of some traffic, at all of its hosts.
fn marks(run: &Run, traffic: usize, parts: &[&Part]) -> Marks {
    let hosts: BTreeSet<usize> = parts.iter().flat_map(|part| part.to.iter().copied().chain([part.from])).collect();
    let mut all = Marks::default();
    for host in hosts {
        let stack = run.simulation.program(host).and_then(|program| program.as_any().downcast_ref::<Stack>());
        let Some(stack) = stack else { continue };
        let marks = stack.transport.marks(port(traffic));
        all.capable += marks.capable;
        all.marked += marks.marked;
    }
    all
}

/// What the probes of some traffic read, wherever they arrived.
fn values(run: &Run, readings: &[Reading], parts: &[&Part]) -> Vec<Values> {
    let sinks: BTreeSet<At> = parts.iter().flat_map(|part| part.receivers.iter().copied()).collect();
    let of = |(number, reading): (usize, &Reading)| {
        let sinks = sinks.iter().filter_map(|at| app::<ProbeSink>(run, *at));
        let mut points: Vec<_> = sinks.flat_map(|sink| sink.read[number].iter().copied()).collect();
        points.sort_by_key(|(at, _)| *at);
        Values { name: reading.name.clone(), points }
    };
    readings.iter().enumerate().map(of).collect()
}
