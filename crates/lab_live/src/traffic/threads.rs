//! Runs the senders and receivers of a scenario, each a thread within its host.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::ops::Range;
use std::sync::Arc;

use lab::scenario::{Traffic, TrafficKind};
use lab::sim::traffic::{Departures, Pattern, Reading, SizeDistribution};
use lab::{Random, Topology};
use ports::AfPacketPort;
use ports::namespace::{Echoes, Namespace};
use switch::Time;

use super::ReplayedFrames;
use super::clock::ScenarioClock;
use super::frames;
use super::measurements::{TrafficMeasurements, TrafficThread};
use super::ping::{self, PingSchedule, PingTarget};
use super::requests::{self, RequestClient};
use super::tcp::{self, FlowArrivals};
use super::udp::{self, DatagramSender};
use crate::LabError;
use crate::error::failed_to;
use crate::host_namespace::INTERFACE;

/// The first UDP and TCP port of the scenario's traffic, as in a simulation. Each traffic has a port of its own.
const FIRST_PORT: u16 = 5_000;

/// The last byte of the random number streams of traffic. Links use other values.
const STREAM: u64 = 9;

/// A sender and its receivers.
pub struct TrafficFlow {
    /// Index of the traffic in the scenario.
    pub traffic: usize,
    /// Index of the sending host.
    pub from: usize,
    /// Indices of the receiving hosts.
    pub to: Vec<usize>,
}

/// A sender of a traffic, its receivers, and when they are active.
struct TrafficPair {
    /// Index of the traffic in the scenario.
    traffic: usize,
    /// Index of the sending host.
    from: usize,
    /// Indices of the receiving hosts.
    to: Vec<usize>,
    /// The receiving hosts to which packets can be addressed, and the destination address of the packets.
    targets: Vec<(usize, Ipv4Addr)>,
    /// UDP or TCP port of the receivers.
    port: u16,
    /// Interval in which the sender is active.
    during: Range<Time>,
    /// Source of random numbers.
    random: Random,
}

impl TrafficPair {
    /// Returns the socket address of the first target.
    fn first(&self) -> Option<SocketAddr> {
        self.targets.first().map(|(_, address)| SocketAddr::from((*address, self.port)))
    }
}

/// The threads of a scenario.
pub struct TrafficThreads<'a> {
    topology: &'a Topology,
    hosts: &'a [Arc<Namespace>],
    replays: &'a ReplayedFrames,
    clock: ScenarioClock,
    seed: u64,
    /// The flows, by their numbers.
    pub flows: Vec<TrafficFlow>,
    threads: Vec<(&'a str, TrafficThread)>,
    /// Hosts and ports that have a receiver.
    receivers: BTreeSet<(usize, u16)>,
}

impl<'a> TrafficThreads<'a> {
    /// Returns a scenario without threads.
    pub fn new(
        topology: &'a Topology,
        hosts: &'a [Arc<Namespace>],
        replays: &'a ReplayedFrames,
        clock: ScenarioClock,
        seed: u64,
    ) -> TrafficThreads<'a> {
        TrafficThreads {
            topology,
            hosts,
            replays,
            clock,
            seed,
            flows: Vec::new(),
            threads: Vec::new(),
            receivers: BTreeSet::new(),
        }
    }

    /// Starts the senders and receivers of a traffic. They begin when the clock does.
    pub fn add(&mut self, number: usize, traffic: &Traffic) -> Result<(), LabError> {
        for (at, (from, to)) in traffic.pairs.iter().enumerate() {
            let pair = self.pair(number, at, traffic, *from, to);
            self.start(&traffic.kind, pair).map_err(|source| LabError::Traffic {
                traffic: traffic.name.clone(),
                host: self.topology.hosts[*from].name.clone(),
                source: Box::new(source),
            })?;
        }
        Ok(())
    }

    fn pair(&self, number: usize, at: usize, traffic: &Traffic, from: usize, to: &[usize]) -> TrafficPair {
        let port = FIRST_PORT + u16::try_from(number).expect("scenarios have fewer kinds of traffic");
        let own = |host: usize| self.topology.hosts[host].address.map(|(address, _)| address);
        let target = |host: &usize| Some((*host, traffic.address.or_else(|| own(*host))?));
        TrafficPair {
            traffic: number,
            from,
            to: to.to_vec(),
            targets: to.iter().filter_map(target).collect(),
            port,
            during: Time::from_ns(traffic.start.as_ns())..Time::from_ns(traffic.stop.as_ns()),
            random: Random::new(self.seed, ((number as u64) << 32 | at as u64) << 8 | STREAM),
        }
    }

    fn start(&mut self, kind: &TrafficKind, pair: TrafficPair) -> Result<(), LabError> {
        match kind {
            TrafficKind::Udp { size, rate_bps, timing } => {
                self.udp(pair, *size, Pattern::of(*timing, *size, *rate_bps))
            }
            TrafficKind::Tcp { bytes, .. } => self.tcp(pair, *bytes),
            TrafficKind::Flows { sizes, rate_bps, .. } => self.flows(pair, sizes, *rate_bps),
            TrafficKind::Requests { request, response, think, .. } => {
                self.requests(pair, (*request).into(), (*response).into(), think.as_ns() as f64)
            }
            TrafficKind::Ping { count, interval } => self.ping(pair, *count, interval.as_ns()),
            // `check_supported` refuses it.
            TrafficKind::Rcp { .. }
            | TrafficKind::Hpcc { .. }
            | TrafficKind::Conga { .. }
            | TrafficKind::Tpp { .. }
            | TrafficKind::Execute(_) => Ok(()),
            TrafficKind::Probe { frame, count, interval, readings } => {
                self.probe(pair, frame, (*count, interval.as_ns()), readings)
            }
            TrafficKind::Replay(file) => self.replay(pair, file),
        }
    }

    fn udp(&mut self, pair: TrafficPair, size: u32, pattern: Pattern) -> Result<(), LabError> {
        let Some(to) = pair.first() else { return Ok(()) };
        let flow = self.flow_to_targets(&pair);
        let TrafficPair { from, targets, port, during, random, .. } = pair;
        for (host, _) in targets {
            self.receiver(host, port, |threads| {
                let socket = threads.hosts[host].enter(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)))?;
                let socket = socket.map_err(failed_to(threads.receiving(host, port)))?;
                let clock = threads.clock.clone();
                threads.spawn(host, move || udp::receive(&socket, &clock))
            })?;
        }
        let socket = self.hosts[from].enter(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
        let (socket, clock) = (socket.map_err(failed_to("open a socket"))?, self.clock.clone());
        let departures = Departures::new(pattern, during.start);
        let sender = DatagramSender { flow, to, size, departures, stop: during.end, random };
        self.spawn(from, move || Ok(udp::send(&socket, sender, &clock)))
    }

    fn tcp(&mut self, pair: TrafficPair, bytes: Option<u64>) -> Result<(), LabError> {
        let Some(to) = pair.first() else { return Ok(()) };
        let (flow, start, clock) = (self.flow_to_targets(&pair), pair.during.start, self.clock.clone());
        self.tcp_receivers(&pair, tcp::receive)?;
        self.spawn(pair.from, move || tcp::send(flow, to, bytes, start, &clock))
    }

    fn flows(&mut self, pair: TrafficPair, sizes: &SizeDistribution, rate_bps: u64) -> Result<(), LabError> {
        if pair.targets.is_empty() {
            return Ok(());
        }
        let (flow, clock) = (self.flow_to_targets(&pair), self.clock.clone());
        self.tcp_receivers(&pair, tcp::receive)?;
        let TrafficPair { from, targets, port, during, random, .. } = pair;
        let mean_ns = sizes.mean() * 8e9 / rate_bps.max(1) as f64;
        let targets = targets.iter().map(|(_, address)| (*address, port).into()).collect();
        let flows = FlowArrivals { flow, targets, sizes: sizes.clone(), mean_ns, during, random };
        self.spawn(from, move || flows.send(&clock))
    }

    fn requests(&mut self, pair: TrafficPair, request: u64, response: u64, think_ns: f64) -> Result<(), LabError> {
        let Some(to) = pair.first() else { return Ok(()) };
        let (flow, clock) = (self.flow_to_targets(&pair), self.clock.clone());
        self.tcp_receivers(&pair, requests::serve)?;
        let TrafficPair { from, during, random, .. } = pair;
        let client = RequestClient { flow, to, request, response, think_ns, during, random };
        self.spawn(from, move || client.send(&clock))
    }

    fn ping(&mut self, pair: TrafficPair, count: u32, interval: u64) -> Result<(), LabError> {
        let TrafficPair { traffic, from, targets, during, .. } = pair;
        let target = |(host, address): &(usize, Ipv4Addr)| PingTarget {
            flow: self.flow(traffic, from, [*host]),
            address: *address,
        };
        let targets: Arc<[PingTarget]> = targets.iter().map(target).collect();
        let schedule = PingSchedule { count, start: during.start.as_ns(), interval };
        let socket = Arc::new(Echoes::open(&self.hosts[from])?);
        let receiver = (Arc::clone(&socket), Arc::clone(&targets), self.clock.clone());
        self.spawn(from, move || ping::receive(&receiver.0, &receiver.1, &receiver.2))?;
        let clock = self.clock.clone();
        self.spawn(from, move || Ok(ping::send(&socket, &targets, schedule, &clock)))
    }

    fn probe(
        &mut self,
        pair: TrafficPair,
        frame: &[u8],
        (count, interval): (u32, u64),
        readings: &[Reading],
    ) -> Result<(), LabError> {
        let TrafficPair { traffic, from, to, port, during, .. } = pair;
        let flow = self.flow(traffic, from, to.iter().copied());
        let ethertype = [frame[12], frame[13]];
        for host in to {
            let readings = readings.to_vec();
            self.receiver(host, port, |threads| {
                let (driver, clock) = (threads.driver(host)?, threads.clock.clone());
                threads.spawn(host, move || frames::receive(driver, (traffic, flow), ethertype, &readings, &clock))
            })?;
        }
        let (driver, frame, clock) = (self.driver(from)?, frame.to_vec(), self.clock.clone());
        self.spawn(from, move || {
            let at = |number: u32| during.start.after_ns(u64::from(number).saturating_mul(interval.max(1)));
            let frames = (0..count).map(|number| (at(number), &frame[..]));
            frames::send(driver, flow, frames, during.end, &clock)
        })
    }

    fn replay(&mut self, pair: TrafficPair, file: &str) -> Result<(), LabError> {
        let TrafficPair { traffic, from, during, .. } = pair;
        let flow = self.flow(traffic, from, []);
        let captured = self.replays.get(file).cloned().unwrap_or_default();
        let (driver, clock) = (self.driver(from)?, self.clock.clone());
        self.spawn(from, move || {
            let first = captured.first().map_or(0, |(time, _)| *time);
            let at = |time: u64| during.start.after_ns(time.saturating_sub(first));
            let frames = captured.iter().map(|(time, frame)| (at(*time), &frame[..]));
            frames::send(driver, flow, frames, during.end, &clock)
        })
    }

    /// Adds the flow from a sender to all targets and returns its number.
    fn flow_to_targets(&mut self, pair: &TrafficPair) -> u32 {
        self.flow(pair.traffic, pair.from, pair.targets.iter().map(|(host, _)| *host))
    }

    /// Adds a flow and returns its number, which its receivers count by.
    fn flow(&mut self, traffic: usize, from: usize, to: impl IntoIterator<Item = usize>) -> u32 {
        self.flows.push(TrafficFlow { traffic, from, to: to.into_iter().collect() });
        u32::try_from(self.flows.len() - 1).expect("scenarios have fewer flows")
    }

    /// Starts a receiver at a port of a host, unless there is one.
    fn receiver(
        &mut self,
        host: usize,
        port: u16,
        start: impl FnOnce(&mut Self) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        if self.receivers.insert((host, port)) { start(self) } else { Ok(()) }
    }

    /// Starts a TCP server at each target; `serve` serves a connection.
    fn tcp_receivers(
        &mut self,
        pair: &TrafficPair,
        serve: fn(TcpStream, &ScenarioClock) -> TrafficMeasurements,
    ) -> Result<(), LabError> {
        let port = pair.port;
        for &(host, _) in &pair.targets {
            self.receiver(host, port, |threads| {
                let listener = threads.hosts[host].enter(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))?;
                let listener = listener.map_err(failed_to(threads.receiving(host, port)))?;
                let clock = threads.clock.clone();
                threads.spawn(host, move || tcp::serve(&listener, &clock, serve))
            })?;
        }
        Ok(())
    }

    /// Returns the operation of a receiver, for errors.
    fn receiving(&self, host: usize, port: u16) -> String {
        format!("receive on port {port} of {}", self.topology.hosts[host].name)
    }

    /// Opens the interface of a host for raw frames.
    fn driver(&self, host: usize) -> Result<AfPacketPort, LabError> {
        Ok(self.hosts[host].enter(|| AfPacketPort::open(INTERFACE))??)
    }

    /// Starts a thread within a host.
    fn spawn(
        &mut self,
        host: usize,
        work: impl FnOnce() -> std::io::Result<TrafficMeasurements> + Send + 'static,
    ) -> Result<(), LabError> {
        let thread = self.hosts[host].spawn(work)?;
        self.threads.push((&self.topology.hosts[host].name, thread));
        Ok(())
    }

    /// Waits for all threads and returns the flows and the measurements.
    pub fn finish(self) -> Result<(Vec<TrafficFlow>, TrafficMeasurements), LabError> {
        let mut all = TrafficMeasurements::default();
        for (host, thread) in self.threads {
            let ended = thread.join().map_err(|_| LabError::TrafficPanicked)?;
            let failed = |source| LabError::TrafficThread { host: host.to_owned(), source };
            all.add(ended.and_then(|ended| ended).map_err(failed)?);
        }
        Ok((self.flows, all))
    }
}
