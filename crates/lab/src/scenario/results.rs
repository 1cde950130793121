//! Defines the results of a scenario.

use std::any::Any;
use std::collections::BTreeSet;

use switch::Time;
use tpp::conga::CongaCounts;
use tpp::hpcc::HpccCounts;
use tpp::rcp::RcpCounts;

use super::expect::{self, Unmet};
use super::run::{At, Part, Run, port};
use super::{IntResult, MinionResult, Scenario, TrafficKind, int, minion};
use crate::sim::traffic::{
    CongaSender, HpccSender, Measured, Measurement, Ping, ProbeSender, ProbeSink, ProgramClient, ProgramSender,
    RcpSender, Reading, Replay, RequestClient, TcpFlows, TcpSink, UdpSender, UdpSink, WindowTrace,
};
use crate::sim::transport::Marks;
use crate::sim::{LinkStats, Sample, Stack, Totals, WriteRefusal};
use crate::topology::{End, Topology};

/// The results of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Result of each traffic, in the order of the scenario.
    pub traffic: Vec<FlowResult>,
    /// Result of each pair of sender and receiver.
    pub pairs: Vec<FlowResult>,
    /// Counters of each direction of each link.
    pub links: Vec<LinkResult>,
    /// Queue lengths over time.
    pub samples: Vec<Sample>,
    /// Counters of tiny packet programs and INT of each switch that are not 0, by name, since its latest restart.
    pub tiny_counters: Vec<Vec<(String, u64)>>,
    /// Totals of the simulation.
    pub totals: Totals,
    /// A hash of all frames that arrived and their arrival times ([`crate::sim::Simulation::digest`]).
    pub digest: u64,
    /// Time at which it ended.
    pub end: Time,
    /// Changes of entries that a switch refused: the time, the index in the scenario, and the reason.
    pub refused: Vec<(Time, usize, WriteRefusal)>,
    /// Time at which the run was stopped because too many bytes were in flight; `None` if it was not.
    pub flooded: Option<Time>,
    /// Expectations that were not met.
    pub unmet: Vec<Unmet>,
}

/// The result of some traffic, or of one pair of it.
#[derive(Clone, Debug)]
pub struct FlowResult {
    /// The traffic's name.
    pub name: String,
    /// The sender, or the number of senders.
    pub from: String,
    /// The receiver, or the number of receivers.
    pub to: String,
    /// Unit of `sent` and `received`: datagrams, flows, requests, echoes or frames.
    pub unit: &'static str,
    /// The measurements.
    pub measured: Measured,
    /// ECN-capable packets that arrived at either end, and the marked ones among them; only per traffic, not per pair.
    pub marks: Marks,
    /// Values that probes read, in the order of the scenario; only per traffic, not per pair.
    pub values: Vec<Values>,
    /// Its tiny packet programs; only per traffic, not per pair.
    pub minion: Option<MinionResult>,
    /// Its INT headers; only per traffic, not per pair.
    pub int: Option<IntResult>,
    /// The controllers of RCP* flows; only per traffic, not per pair.
    pub rcp: Option<RcpResult>,
    /// The controllers of HPCC flows.
    pub hpcc: Option<HpccResult>,
    /// The balancers of flows over several paths; only per traffic, not per pair.
    pub conga: Option<CongaResult>,
}

/// The balancers of some traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CongaResult {
    /// Frames with programs that the senders sent, in bytes.
    pub program_bytes: u64,
    /// Counts of the balancers.
    pub counts: CongaCounts,
    /// Datagrams that arrived after a later one of their flow.
    pub late: u64,
}

/// The rate controllers of some traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RcpResult {
    /// Frames with programs that the senders sent, in bytes.
    pub program_bytes: u64,
    /// Counts of the controllers.
    pub counts: RcpCounts,
}

/// The window controllers of some traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HpccResult {
    /// Frames with programs that the senders sent, in bytes.
    pub program_bytes: u64,
    /// Counts of the controllers.
    pub counts: HpccCounts,
    /// Their windows over time.
    pub windows: WindowTrace,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct LinkResult {
    /// The end that sends.
    pub from: End,
    /// The end that receives.
    pub to: End,
    /// Counters of this direction.
    pub stats: LinkStats,
}

/// A series of values that probes read.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// Name of the value.
    pub name: String,
    /// The values with their arrival times, in the order of time.
    pub points: Vec<(Time, f64)>,
}

impl FlowResult {
    /// Returns the fraction of the sent units that arrived; 1 if nothing was sent.
    pub fn delivered(&self) -> f64 {
        if self.measured.sent == 0 { 1.0 } else { self.measured.received as f64 / self.measured.sent as f64 }
    }
}

/// Returns the application at a place, if it is of type `T`.
pub fn app<T: Any>(run: &Run, at: At) -> Option<&T> {
    stack(run, at.host)?.apps().nth(at.app)?.as_any().downcast_ref()
}

/// Returns the stack of a host; `None` if it runs another program.
pub fn stack(run: &Run, host: usize) -> Option<&Stack> {
    run.simulation.program(host)?.as_any().downcast_ref()
}

/// Returns the measurements of one sender's applications.
fn measured(run: &Run, part: &Part, kind: &TrafficKind) -> Measured {
    let mut all = Measured::default();
    let sent = match kind {
        TrafficKind::Udp { .. } => app::<UdpSender>(run, part.sender).map_or(0, |sender| sender.sent),
        TrafficKind::Rcp { .. } => app::<RcpSender>(run, part.sender).map_or(0, |sender| sender.sent),
        TrafficKind::Hpcc { .. } => app::<HpccSender>(run, part.sender).map_or(0, |sender| sender.sent),
        TrafficKind::Conga { .. } => app::<CongaSender>(run, part.sender).map_or(0, |sender| sender.sent),
        TrafficKind::Tcp { bytes, .. } => u64::from(bytes.is_some()),
        TrafficKind::Flows { .. } => app::<TcpFlows>(run, part.sender).map_or(0, |flows| flows.begun),
        TrafficKind::Probe { .. } => app::<ProbeSender>(run, part.sender).map_or(0, |sender| sender.sent),
        TrafficKind::Replay(_) => app::<Replay>(run, part.sender).map_or(0, |replay| replay.sent),
        TrafficKind::Requests { .. } | TrafficKind::Ping { .. } | TrafficKind::Tpp { .. } | TrafficKind::Execute(_) => {
            0
        }
    };
    for receiver in &part.receivers {
        let one = match kind {
            TrafficKind::Udp { .. }
            | TrafficKind::Rcp { .. }
            | TrafficKind::Hpcc { .. }
            | TrafficKind::Conga { .. } => app::<UdpSink>(run, *receiver).and_then(|sink| sink.flows.get(&part.flow)),
            TrafficKind::Tcp { .. } => app::<TcpSink>(run, *receiver).map(Measurement::measured),
            TrafficKind::Requests { .. } => app::<RequestClient>(run, *receiver).map(Measurement::measured),
            TrafficKind::Ping { .. } => app::<Ping>(run, *receiver).map(Measurement::measured),
            TrafficKind::Tpp { .. } => app::<ProgramSender>(run, *receiver).map(Measurement::measured),
            TrafficKind::Execute(_) => app::<ProgramClient>(run, *receiver).map(Measurement::measured),
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
            TrafficKind::Udp { .. }
            | TrafficKind::Rcp { .. }
            | TrafficKind::Hpcc { .. }
            | TrafficKind::Conga { .. } => "datagrams",
            TrafficKind::Tcp { .. } | TrafficKind::Flows { .. } => "flows",
            TrafficKind::Requests { .. } | TrafficKind::Execute(_) => "requests",
            TrafficKind::Ping { .. } | TrafficKind::Tpp { .. } => "echoes",
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
                minion: None,
                int: None,
                rcp: None,
                hpcc: hpcc(run, &[part]),
                conga: None,
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
        let minion = minion::result(run, topology, described, &parts);
        let int = int::result(run, topology, described, &parts);
        let (name, measured) = (described.name.clone(), all);
        let (rcp, hpcc, conga) = (rcp(run, &parts), hpcc(run, &parts), conga(run, &parts));
        traffic.push(FlowResult { name, from, to, unit, measured, marks, values, minion, int, rcp, hpcc, conga });
    }
    let mut links: Vec<LinkResult> =
        run.simulation.links().map(|(from, to, stats)| LinkResult { from, to, stats }).collect();
    // The length of a switch's own queue is known from samples only.
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
    let (unmet, tiny_counters) = (Vec::new(), run.simulation.tiny_counters());
    let mut results =
        Results { traffic, pairs, links, samples, tiny_counters, totals, digest, end, refused, flooded, unmet };
    results.unmet = expect::unmet(scenario, topology, &results);
    results
}

/// Returns the counts of the rate controllers of some traffic; `None` if it has none.
fn rcp(run: &Run, parts: &[&Part]) -> Option<RcpResult> {
    let senders = parts.iter().filter_map(|part| app::<RcpSender>(run, part.sender));
    senders.map(|sender| RcpResult { program_bytes: sender.program_bytes, counts: sender.counts() }).reduce(
        |sum, one| {
            let counts = RcpCounts {
                samples: sum.counts.samples + one.counts.samples,
                updates: sum.counts.updates + one.counts.updates,
                first_rates: sum.counts.first_rates + one.counts.first_rates,
                lost: sum.counts.lost + one.counts.lost,
            };
            RcpResult { program_bytes: sum.program_bytes + one.program_bytes, counts }
        },
    )
}

/// Returns the counts of the window controllers of some traffic; `None` if it has none.
fn hpcc(run: &Run, parts: &[&Part]) -> Option<HpccResult> {
    let senders = parts.iter().filter_map(|part| app::<HpccSender>(run, part.sender));
    let one = |sender: &HpccSender| HpccResult {
        program_bytes: sender.program_bytes,
        counts: sender.counts(),
        windows: sender.windows(),
    };
    senders.map(one).reduce(|mut sum, one| {
        sum.program_bytes += one.program_bytes;
        sum.windows.add(&one.windows);
        let (counts, more) = (sum.counts, one.counts);
        sum.counts = HpccCounts {
            sent: counts.sent + more.sent,
            samples: counts.samples + more.samples,
            stale: counts.stale + more.stale,
            implausible: counts.implausible + more.implausible,
            changed_paths: counts.changed_paths + more.changed_paths,
            silences: counts.silences + more.silences,
        };
        sum
    })
}

/// Returns the counts of the balancers of some traffic; `None` if it has none.
fn conga(run: &Run, parts: &[&Part]) -> Option<CongaResult> {
    let senders = parts.iter().filter_map(|part| Some((part, app::<CongaSender>(run, part.sender)?)));
    let one = |(part, sender): (&&Part, &CongaSender)| {
        let sinks = part.receivers.iter().filter_map(|at| app::<UdpSink>(run, *at));
        let late = sinks.map(|sink| sink.late(part.flow)).sum();
        CongaResult { program_bytes: sender.program_bytes, counts: sender.counts(), late }
    };
    senders.map(one).reduce(|sum, one| {
        let counts = CongaCounts {
            samples: sum.counts.samples + one.counts.samples,
            changed_paths: sum.counts.changed_paths + one.counts.changed_paths,
            flowlets: sum.counts.flowlets + one.counts.flowlets,
            moves: sum.counts.moves + one.counts.moves,
        };
        CongaResult { program_bytes: sum.program_bytes + one.program_bytes, counts, late: sum.late + one.late }
    })
}

/// Returns the ECN marks on packets of some traffic, at all of its hosts.
fn marks(run: &Run, traffic: usize, parts: &[&Part]) -> Marks {
    let hosts: BTreeSet<usize> = parts.iter().flat_map(|part| part.to.iter().copied().chain([part.from])).collect();
    let mut all = Marks::default();
    for host in hosts {
        let Some(stack) = stack(run, host) else { continue };
        let marks = stack.transport.marks(port(traffic));
        all.capable += marks.capable;
        all.marked += marks.marked;
    }
    all
}

/// Returns the values that the probes of some traffic read, at all hosts where they arrived.
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
