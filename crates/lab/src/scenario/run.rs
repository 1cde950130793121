//! Runs a scenario: simulates it and collects its results.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use switch::Time;
use tpp::MemoryMap;
use tpp::rcp::RcpSettings;
use tpp::shim::PacketFilter;

use super::results::{self, Results};
use super::{Scenario, ScenarioFiles, Traffic, TrafficKind, int};
use crate::sim::traffic::{
    CongaSender, FlowPattern, HpccSender, Pattern, Ping, ProbeSender, ProbeSink, ProgramClient, ProgramCollector,
    ProgramEcho, ProgramSender, RcpSender, Replay, RequestClient, RequestServer, TcpFlows, TcpSender, TcpSink,
    UdpSender, UdpSink, WINDOW,
};
use crate::sim::{App, MakeElement, Simulation, Stack};
use crate::topology::{Delay, Topology};

/// The first port of the scenario's traffic; each traffic table has its own.
const FIRST_PORT: u16 = 5_000;

/// Returns the port of some traffic, by its index in the scenario.
pub fn port(traffic: usize) -> u16 {
    FIRST_PORT + u16::try_from(traffic).expect("scenarios have fewer kinds of traffic")
}

/// A running scenario.
pub struct Run {
    /// The simulation.
    pub simulation: Simulation,
    duration: Delay,
    /// Applications of each traffic, by sender.
    pub(super) parts: Vec<Part>,
    pub(super) memory: MemoryMap,
}

/// The location of an application: its host and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    pub host: usize,
    pub app: usize,
}

/// The applications of one sender of some traffic.
#[derive(Clone, Debug)]
pub struct Part {
    pub traffic: usize,
    pub from: usize,
    pub to: Vec<usize>,
    pub sender: At,
    /// Applications that measure: the sender's own, or the receivers'.
    pub receivers: Vec<At>,
    /// Flow number by which a receiver identifies the sender.
    pub flow: u32,
    /// Number of the filter for a tiny packet program in the sender's shim.
    pub filter: Option<usize>,
    /// Applications that collect these programs.
    pub collectors: Vec<At>,
}

fn time(delay: Delay) -> Time {
    Time::from_ns(delay.as_ns())
}

/// Makes the simulation of a scenario with the contents of its files. A file that is missing sends nothing.
pub fn prepare(topology: &Topology, scenario: &Scenario, seed: u64, files: &ScenarioFiles, make: MakeElement) -> Run {
    let mut simulation = Simulation::new(topology, seed, make);
    let mut hosts = Hosts::new(topology);
    for (number, traffic) in scenario.traffic.iter().enumerate() {
        hosts.add(number, traffic, topology, files);
    }
    let stacks = hosts.stacks.into_iter().enumerate().filter(|(host, _)| topology.has_traffic(*host));
    for (host, stack) in stacks {
        simulation.run_program(host, Time::ZERO, Box::new(stack));
    }
    for planned in scenario.schedule(topology, seed) {
        simulation.fault(time(planned.at), planned.node, planned.fault);
    }
    for (number, write) in scenario.writes.iter().enumerate() {
        simulation.write(time(write.at), write.switch, number);
    }
    simulation.sample_every(scenario.sample.as_ns());
    let memory = files.memory.clone();
    Run { simulation, duration: scenario.duration, parts: hosts.parts, memory }
}

impl Run {
    /// Runs to the scenario's end on `threads` threads. Calls `progress` from time to time with the completed fraction.
    pub fn run(&mut self, threads: usize, progress: &mut dyn FnMut(f64)) {
        let total = self.duration.as_ns().max(1) as f64;
        let end = Time::from_ns(self.duration.as_ns());
        self.simulation.run_until(end, threads, &mut |now| progress(now.as_ns() as f64 / total));
    }

    /// Returns the results.
    pub fn results(&self, topology: &Topology, scenario: &Scenario) -> Results {
        results::of(self, topology, scenario)
    }
}

/// The stacks of all hosts while applications are added.
struct Hosts {
    stacks: Vec<Stack>,
    counts: Vec<usize>,
    sinks: BTreeMap<(usize, u16), At>,
    collectors: BTreeMap<(usize, u16), At>,
    filters: BTreeMap<(usize, u16), usize>,
    parts: Vec<Part>,
}

impl Hosts {
    fn new(topology: &Topology) -> Hosts {
        let mut mtus = vec![1500; topology.hosts.len()];
        for link in &topology.links {
            for end in link.ends {
                if let crate::topology::Node::Host(host) = end.node {
                    mtus[host] = link.shape.mtu;
                }
            }
        }
        let stack = |(mtu, host): (u32, &crate::topology::Host)| {
            let mut stack = Stack::new(mtu);
            stack.lacks_shim = host.lacks_shim;
            stack
        };
        Hosts {
            counts: vec![0; mtus.len()],
            stacks: mtus.into_iter().zip(&topology.hosts).map(stack).collect(),
            sinks: BTreeMap::new(),
            collectors: BTreeMap::new(),
            filters: BTreeMap::new(),
            parts: Vec::new(),
        }
    }

    fn app(&mut self, host: usize, app: Box<dyn App>) -> At {
        self.stacks[host].add(app);
        self.counts[host] += 1;
        At { host, app: self.counts[host] - 1 }
    }

    /// Returns the sink at a port of a host, and creates it if necessary.
    fn sink(&mut self, host: usize, port: u16, make: impl FnOnce() -> Box<dyn App>) -> At {
        if let Some(at) = self.sinks.get(&(host, port)) {
            return *at;
        }
        let at = self.app(host, make());
        self.sinks.insert((host, port), at);
        at
    }

    /// Returns the sinks at a port of several hosts, and creates them if necessary.
    fn sinks(&mut self, hosts: &[(usize, Ipv4Addr)], port: u16, make: impl Fn() -> Box<dyn App>) -> Vec<At> {
        hosts.iter().map(|(host, _)| self.sink(*host, port, &make)).collect()
    }

    /// Lets a sender's shim insert the program of some traffic, and the receivers collect it.
    fn minion(&mut self, traffic: &Traffic, part: &mut Part, files: &ScenarioFiles) {
        let Some(minion) = &traffic.minion else { return };
        let Some(program) = files.programs.get(&minion.file) else { return };
        let port = port(part.traffic);
        let shim = &mut self.stacks[part.from].shim;
        let filter = PacketFilter { destination_port: Some(port), ..PacketFilter::default() };
        part.filter = self.filters.get(&(part.from, port)).copied();
        if part.filter.is_none() {
            part.filter = shim.add_tpp(filter, program, minion.one_in, 0).ok();
            part.filter.into_iter().for_each(|filter| _ = self.filters.insert((part.from, port), filter));
        }
        for host in &part.to {
            let known = self.collectors.get(&(*host, port)).copied();
            let at = known.unwrap_or_else(|| {
                let added = self.stacks[*host].shim.expect_tpp(filter, program);
                debug_assert!(added.is_ok(), "a host has fewer programs than filters");
                self.app(*host, Box::new(ProgramCollector::new(port, minion.count)))
            });
            self.collectors.insert((*host, port), at);
            part.collectors.push(at);
        }
    }

    fn add(&mut self, number: usize, traffic: &Traffic, topology: &Topology, files: &ScenarioFiles) {
        let port = port(number);
        let (start, stop) = (time(traffic.start), time(traffic.stop));
        let own = |host: usize| topology.hosts[host].address.map(|(address, _)| address);
        let address = |host: usize| traffic.address.or_else(|| own(host));
        for host in traffic.pairs.iter().flat_map(|(from, to)| to.iter().chain([from])) {
            let transport = &mut self.stacks[*host].transport;
            traffic.kind.control().into_iter().for_each(|control| transport.control(port, control));
            traffic.ecn.into_iter().for_each(|law| transport.mark(port, law));
        }
        for (from, to) in &traffic.pairs {
            let flow = self.parts.len() as u32;
            let reached: Vec<(usize, Ipv4Addr)> = to.iter().filter_map(|host| Some((*host, address(*host)?))).collect();
            let part = |hosts: &mut Hosts, to: Vec<usize>, sender: At, receivers: Vec<At>| {
                let (filter, collectors) = (None, Vec::new());
                let mut part = Part { traffic: number, from: *from, to, sender, receivers, flow, filter, collectors };
                hosts.minion(traffic, &mut part, files);
                if let Some(instructions) = traffic.int {
                    hosts.stacks[*from].int.add(port, int::header(instructions));
                }
                hosts.parts.push(part);
            };
            match &traffic.kind {
                TrafficKind::Udp { size, rate_bps, timing } => {
                    let Some(&(_, address)) = reached.first() else { continue };
                    let pattern = Pattern::of(*timing, *size, *rate_bps);
                    let sender = UdpSender::new(flow, (address, port), (*size).into(), pattern, start, stop);
                    let sender = self.app(*from, Box::new(sender));
                    let sinks = self.sinks(&reached, port, || Box::new(UdpSink::new(port)));
                    part(self, to.clone(), sender, sinks);
                }
                TrafficKind::Tcp { bytes, window, control: _ } => {
                    let Some(&(_, address)) = reached.first() else { continue };
                    let (bytes, window) = (bytes.unwrap_or(u64::MAX), *window as usize);
                    let sender = TcpSender::new((address, port), bytes, window, start);
                    let sender = self.app(*from, Box::new(sender));
                    let sinks = self.sinks(&reached, port, || Box::new(TcpSink::new(port, window)));
                    part(self, to.clone(), sender, sinks);
                }
                TrafficKind::Flows { sizes, rate_bps, control: _ } => {
                    let targets = match traffic.address {
                        Some(address) if !reached.is_empty() => vec![(address, port)],
                        _ => reached.iter().map(|(_, address)| (*address, port)).collect(),
                    };
                    let mean_ns = sizes.mean() * 8e9 / (*rate_bps).max(1) as f64;
                    let sender = TcpFlows::new(targets, sizes.clone(), mean_ns, start, stop);
                    let sender = self.app(*from, Box::new(sender));
                    let sinks = self.sinks(&reached, port, || Box::new(TcpSink::new(port, WINDOW / 4)));
                    part(self, to.clone(), sender, sinks);
                }
                TrafficKind::Requests { request, response, think, control: _ } => {
                    let Some(&(_, address)) = reached.first() else { continue };
                    let (request, response) = ((*request).into(), (*response).into());
                    let think_ns = think.as_ns() as f64;
                    let client = RequestClient::new((address, port), request, response, think_ns, start, stop);
                    let client = self.app(*from, Box::new(client));
                    self.sinks(&reached, port, || Box::new(RequestServer::new(port)));
                    part(self, to.clone(), client, vec![client]);
                }
                TrafficKind::Ping { count, interval } => {
                    for (at, (to, address)) in reached.iter().enumerate() {
                        let ident = (number as u16) << 10 | at as u16;
                        let ping = Ping::new(*address, ident, (*count).into(), interval.as_ns(), start);
                        let ping = self.app(*from, Box::new(ping));
                        part(self, vec![*to], ping, vec![ping]);
                    }
                }
                TrafficKind::Rcp { size, fairness, interval } => {
                    let Some(&(_, address)) = reached.first() else { continue };
                    let control = (RcpSettings::new(*fairness), interval.as_ns());
                    let sender = RcpSender::new(flow, (address, port), (*size).into(), control, start, stop);
                    let sender = self.app(*from, Box::new(sender));
                    let sinks = self.sinks(&reached, port, || Box::new(UdpSink::new(port)));
                    self.sinks(&reached, wire::tpp::UDP_PORT, || Box::new(ProgramEcho::default()));
                    part(self, to.clone(), sender, sinks);
                }
                TrafficKind::Hpcc { size, settings } => {
                    let Some(&(_, address)) = reached.first() else { continue };
                    let sender = HpccSender::new(flow, (address, port), (*size).into(), *settings, start, stop);
                    let sender = self.app(*from, Box::new(sender));
                    let sinks = self.sinks(&reached, port, || Box::new(UdpSink::new(port)));
                    self.sinks(&reached, wire::tpp::UDP_PORT, || Box::new(ProgramEcho::default()));
                    part(self, to.clone(), sender, sinks);
                }
                TrafficKind::Conga { size, rate_bps, timing, flows, balancing } => {
                    let Some(&(_, address)) = reached.first() else { continue };
                    let pattern = Pattern::of(*timing, *size, rate_bps / u64::from(*flows));
                    let pattern = FlowPattern { flows: *flows, frame_bytes: (*size).into(), pattern };
                    let sender = CongaSender::new(flow, (address, port), pattern, *balancing, start, stop);
                    let sender = self.app(*from, Box::new(sender));
                    let sinks = self.sinks(&reached, port, || Box::new(UdpSink::new(port)));
                    self.sinks(&reached, wire::tpp::UDP_PORT, || Box::new(ProgramEcho::default()));
                    part(self, to.clone(), sender, sinks);
                }
                TrafficKind::Tpp { file, count, interval } => {
                    let Some(program) = files.programs.get(file) else { continue };
                    self.sinks(&reached, wire::tpp::UDP_PORT, || Box::new(ProgramEcho::default()));
                    for (to, address) in &reached {
                        let (count, interval_ns) = ((*count).into(), interval.as_ns());
                        let sender = ProgramSender::new(*address, program.clone(), count, interval_ns, start);
                        let sender = self.app(*from, Box::new(sender));
                        part(self, vec![*to], sender, vec![sender]);
                    }
                }
                TrafficKind::Execute(execution) => {
                    let program = files.large_programs.get(&execution.file);
                    let Some(Ok(plans)) = program.map(|program| execution.plans(program)) else { continue };
                    self.sinks(&reached, wire::tpp::UDP_PORT, || Box::new(ProgramEcho::default()));
                    let addresses: Vec<Ipv4Addr> = reached.iter().map(|(_, address)| *address).collect();
                    let (rounds, times) = (execution.count.into(), execution.times);
                    let client = ProgramClient::new(&addresses, &plans, rounds, times, (start, stop));
                    let client = self.app(*from, Box::new(client));
                    part(self, to.clone(), client, vec![client]);
                }
                TrafficKind::Probe { frame, count, interval, readings } => {
                    let sender = ProbeSender::new(frame.clone(), (*count).into(), interval.as_ns(), start, stop);
                    let sender = self.app(*from, Box::new(sender));
                    let ethertype = ethertype(frame);
                    let sink = || Box::new(ProbeSink::new(ethertype, readings.clone())) as Box<dyn App>;
                    let sinks = to.iter().map(|host| self.sink(*host, port, sink)).collect();
                    part(self, to.clone(), sender, sinks);
                }
                TrafficKind::Replay(file) => {
                    let frames = files.replays.get(file).cloned().unwrap_or_default();
                    let replay = self.app(*from, Box::new(Replay::new(frames, start, stop)));
                    part(self, Vec::new(), replay, Vec::new());
                }
            }
        }
    }
}

/// Returns the EtherType of a probe, which has a complete Ethernet header.
pub fn ethertype(frame: &[u8]) -> u16 {
    u16::from_be_bytes([frame[12], frame[13]])
}
