//! Who plays what: the senders and receivers of a scenario, each a thread within its host.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use lab::scenario::{Traffic, TrafficKind};
use lab::sim::traffic::{Departures, Pattern};
use lab::{Random, Topology};
use ports::AfPacketPort;
use ports::namespace::{Echoes, Namespace};
use switch::Time;

use super::super::hosts::INTERFACE;
use super::clock::Clock;
use super::requests::{self, Asks};
use super::tally::{Tally, Thread};
use super::tcp::{self, Flows};
use super::{frames, ping, udp};
use crate::lab::simulate::Replays;
use crate::output::Failure;

/// The first port of the scenario's traffic, as in a simulation; each traffic has its own.
const FIRST_PORT: u16 = 5_000;

/// What streams of random numbers of this kind end with; links have other ends.
const STREAM: u64 = 9;

/// A sender and whom it sends to.
pub struct Flow {
    /// The traffic, by its place in the scenario.
    pub traffic: usize,
    pub from: usize,
    pub to: Vec<usize>,
}

/// Everybody who plays.
pub struct Cast<'a> {
    topology: &'a Topology,
    hosts: &'a [Arc<Namespace>],
    replays: &'a Replays,
    clock: Clock,
    seed: u64,
    /// Those whom the scenario asks for, in its order.
    pub flows: Vec<Flow>,
    threads: Vec<(&'a str, Thread)>,
    sinks: BTreeSet<(usize, u16)>,
}

impl<'a> Cast<'a> {
    /// Nobody.
    pub fn new(
        topology: &'a Topology,
        hosts: &'a [Arc<Namespace>],
        replays: &'a Replays,
        clock: Clock,
        seed: u64,
    ) -> Cast<'a> {
        Cast { topology, hosts, replays, clock, seed, flows: Vec::new(), threads: Vec::new(), sinks: BTreeSet::new() }
    }

    /// Has those who play some traffic take their places. They begin when the clock does.
    pub fn add(&mut self, number: usize, traffic: &Traffic) -> Result<(), Failure> {
        let port = FIRST_PORT + u16::try_from(number).expect("scenarios have fewer kinds of traffic");
        for (at, (from, to)) in traffic.pairs.iter().enumerate() {
            self.pair(number, traffic, port, *from, to, at).with_context(|| {
                let name = &self.topology.hosts[*from].name;
                format!("`{}` from {name} cannot be sent", traffic.name)
            })?;
        }
        Ok(())
    }

    fn pair(
        &mut self,
        number: usize,
        traffic: &Traffic,
        port: u16,
        from: usize,
        to: &[usize],
        at: usize,
    ) -> Result<(), anyhow::Error> {
        let during = Time::from_ns(traffic.start.as_ns())..Time::from_ns(traffic.stop.as_ns());
        let random = Random::new(self.seed, ((number as u64) << 32 | at as u64) << 8 | STREAM);
        let topology = self.topology;
        let own = |host: usize| topology.hosts[host].address.map(|(address, _)| address);
        let targets: Vec<(usize, Ipv4Addr)> =
            to.iter().filter_map(|host| Some((*host, traffic.address.or_else(|| own(*host))?))).collect();
        let first = targets.first().map(|(_, address)| SocketAddr::from((*address, port)));
        let clock = self.clock.clone();
        match &traffic.kind {
            TrafficKind::Udp { size, rate_bps, timing } => {
                let Some(to) = first else { return Ok(()) };
                let departures = Departures::new(Pattern::of(*timing, *size, *rate_bps), during.start);
                let flow = self.flow(number, from, targets.iter().map(|(host, _)| *host));
                let sends = udp::Sends { flow, to, size: *size, departures, stop: during.end, random };
                for (host, _) in targets {
                    self.sink(host, port, |cast| cast.udp_sink(host, port))?;
                }
                let source = self.hosts[from].enter(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))??;
                self.thread(from, move || Ok(udp::send(&source, sends, &clock)))
            }
            TrafficKind::Tcp { bytes, .. } => {
                let Some(to) = first else { return Ok(()) };
                let flow = self.flow(number, from, targets.iter().map(|(host, _)| *host));
                self.tcp_sinks(&targets, port)?;
                let bytes = *bytes;
                self.thread(from, move || tcp::send(flow, to, bytes, during.start, &clock))
            }
            TrafficKind::Flows { sizes, rate_bps, .. } => {
                if targets.is_empty() {
                    return Ok(());
                }
                let flow = self.flow(number, from, targets.iter().map(|(host, _)| *host));
                self.tcp_sinks(&targets, port)?;
                let mean_ns = sizes.mean() * 8e9 / (*rate_bps).max(1) as f64;
                let targets = targets.iter().map(|(_, address)| (*address, port).into()).collect();
                let flows = Flows { flow, targets, sizes: sizes.clone(), mean_ns, during, random };
                self.thread(from, move || flows.send(&clock))
            }
            TrafficKind::Requests { request, response, think, .. } => {
                let Some(to) = first else { return Ok(()) };
                let flow = self.flow(number, from, targets.iter().map(|(host, _)| *host));
                for (host, _) in targets {
                    self.sink(host, port, |cast| {
                        let (listener, clock) = (cast.listener(host, port)?, cast.clock.clone());
                        cast.thread(host, move || tcp::serve(&listener, &clock, requests::serve))
                    })?;
                }
                let (request, response) = ((*request).into(), (*response).into());
                let asks = Asks { flow, to, request, response, think_ns: think.as_ns() as f64, during, random };
                self.thread(from, move || asks.send(&clock))
            }
            TrafficKind::Ping { count, interval } => {
                let target = |(at, (host, address)): (usize, &(usize, Ipv4Addr))| ping::Target {
                    flow: self.flow(number, from, [*host]),
                    identifier: (number as u16) << 10 | at as u16,
                    address: *address,
                };
                let targets: Arc<[ping::Target]> = targets.iter().enumerate().map(target).collect();
                let times = ping::Times { count: *count, start: during.start.as_ns(), interval: interval.as_ns() };
                let socket = Arc::new(Echoes::open(&self.hosts[from])?);
                let (heard, pinged, until) = (Arc::clone(&socket), Arc::clone(&targets), clock.clone());
                self.thread(from, move || ping::receive(&heard, &pinged, &until))?;
                self.thread(from, move || Ok(ping::send(&socket, &targets, times, &clock)))
            }
            TrafficKind::Probe { frame, count, interval, readings } => {
                let flow = self.flow(number, from, to.iter().copied());
                let ethertype = [frame[12], frame[13]];
                for host in to.iter().copied() {
                    let readings = readings.clone();
                    self.sink(host, port, |cast| {
                        let (driver, clock) = (cast.driver(host)?, cast.clock.clone());
                        let of = (number, flow);
                        cast.thread(host, move || frames::receive(driver, of, ethertype, &readings, &clock))
                    })?;
                }
                let (driver, frame, interval, count) = (self.driver(from)?, frame.clone(), interval.as_ns(), *count);
                self.thread(from, move || {
                    let at = |number: u32| during.start.after_ns(u64::from(number).saturating_mul(interval.max(1)));
                    let frames = (0..count).map(|number| (at(number), &frame[..]));
                    frames::send(driver, flow, frames, during.end, &clock)
                })
            }
            TrafficKind::Replay(file) => {
                let flow = self.flow(number, from, []);
                let (driver, captured) = (self.driver(from)?, self.replays.get(file).cloned().unwrap_or_default());
                self.thread(from, move || {
                    let first = captured.first().map_or(0, |(time, _)| *time);
                    let at = |time: u64| during.start.after_ns(time.saturating_sub(first));
                    let frames = captured.iter().map(|(time, frame)| (at(*time), &frame[..]));
                    frames::send(driver, flow, frames, during.end, &clock)
                })
            }
        }
    }

    /// Notes a flow; its number is what its receivers know it by.
    fn flow(&mut self, traffic: usize, from: usize, to: impl IntoIterator<Item = usize>) -> u32 {
        self.flows.push(Flow { traffic, from, to: to.into_iter().collect() });
        u32::try_from(self.flows.len() - 1).expect("scenarios have fewer flows")
    }

    /// Starts what receives at a port of a host, unless it is there.
    fn sink(
        &mut self,
        host: usize,
        port: u16,
        start: impl FnOnce(&mut Self) -> Result<(), anyhow::Error>,
    ) -> Result<(), anyhow::Error> {
        if self.sinks.insert((host, port)) { start(self) } else { Ok(()) }
    }

    fn udp_sink(&mut self, host: usize, port: u16) -> Result<(), anyhow::Error> {
        let sink = self.hosts[host].enter(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)))?;
        let sink = sink.with_context(|| self.taken(host, port))?;
        let clock = self.clock.clone();
        self.thread(host, move || udp::receive(&sink, &clock))
    }

    fn tcp_sinks(&mut self, targets: &[(usize, Ipv4Addr)], port: u16) -> Result<(), anyhow::Error> {
        for &(host, _) in targets {
            self.sink(host, port, |cast| {
                let (listener, clock) = (cast.listener(host, port)?, cast.clock.clone());
                cast.thread(host, move || tcp::serve(&listener, &clock, tcp::receive))
            })?;
        }
        Ok(())
    }

    fn listener(&self, host: usize, port: u16) -> Result<TcpListener, anyhow::Error> {
        let listener = self.hosts[host].enter(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))?;
        listener.with_context(|| self.taken(host, port))
    }

    fn taken(&self, host: usize, port: u16) -> String {
        format!("cannot receive at port {port} of {}", self.topology.hosts[host].name)
    }

    /// The interface of a host, for frames that are sent and taken as they are.
    fn driver(&self, host: usize) -> Result<AfPacketPort, anyhow::Error> {
        Ok(self.hosts[host].enter(|| AfPacketPort::open(INTERFACE))??)
    }

    fn thread(
        &mut self,
        host: usize,
        work: impl FnOnce() -> std::io::Result<Tally> + Send + 'static,
    ) -> Result<(), anyhow::Error> {
        let thread = self.hosts[host].spawn(work)?;
        self.threads.push((&self.topology.hosts[host].name, thread));
        Ok(())
    }

    /// Waits until all have played, and returns the flows and what was measured.
    pub fn finish(self) -> Result<(Vec<Flow>, Tally), Failure> {
        let mut all = Tally::default();
        for (host, thread) in self.threads {
            let ended = thread.join().map_err(|_| anyhow!("a sender or receiver ended by itself; this is a bug"))?;
            all.add(ended.and_then(|ended| ended).with_context(|| format!("what {host} sends or receives failed"))?);
        }
        Ok((self.flows, all))
    }
}
