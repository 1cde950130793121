//! The process that holds a network: it makes it, runs its switches, and answers questions until it is told to end.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use lab::sim::Cable;
use lab::{End, Node, Topology};
use ports::AfPacketPort;
use ports::namespace::Namespace;
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use wire::pcap;

use super::super::args::HoldArgs;
use super::super::network::Network;
use super::hosts::Standing;
use super::protocol::{Answer, Request};
use super::room::Room;
use super::station::{Order, Place, PortStatus, Station, Status};
use super::wires;
use crate::output::{Failure, Output};

/// What the holder says when the network stands.
pub const READY: &str = "ready";

/// The longest request, in bytes.
const MAX_REQUEST: u64 = 4096;

/// Frames that wait for the reader of a capture.
const CAPTURED: usize = 4096;

/// Holds a network until it is told to end, by a request or a signal.
pub fn hold(args: &HoldArgs, output: &Output) -> Result<(), Failure> {
    // First of all, while there is one thread: root takes a network namespace, anyone else a user namespace as well.
    let own = Namespace::new_own().or_else(|_| Namespace::new_user()).map_err(anyhow::Error::from)?;
    own.disable_ipv6().map_err(anyhow::Error::from)?;
    let executor = if args.interpret { v1model::Executor::Interpreter } else { v1model::Executor::Auto };
    let network = Arc::new(Network::load(&args.topology, executor, output)?);
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ended)).context("cannot be told to end")?;
    }
    Room::prepare(&args.name)?;
    let result = stand(args, &network, &own, &ended, output);
    Room::close(&args.name);
    result
}

fn stand(
    args: &HoldArgs,
    network: &Arc<Network>,
    own: &Namespace,
    ended: &AtomicBool,
    output: &Output,
) -> Result<(), Failure> {
    let topology = &network.topology;
    let hosts: Vec<Standing> =
        topology.hosts.iter().map(Standing::new).collect::<Result<_, _>>().map_err(anyhow::Error::from)?;
    let interfaces = wires::make(topology, own, &hosts).map_err(anyhow::Error::from)?;
    for (at, (standing, host)) in hosts.iter().zip(&topology.hosts).enumerate() {
        if topology.uplink(at).is_some() {
            standing.configure(host).map_err(anyhow::Error::from)?;
        }
    }
    let start = Instant::now();
    let mut stations = Vec::new();
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    for (at, switch) in topology.switches.iter().enumerate() {
        let (sender, orders) = channel();
        let places = places(topology, at, &interfaces, args.seed)?;
        let (network, seed) = (Arc::clone(network), args.seed);
        let station = Station::new(Box::new(move || network.switch(at, seed)), places, orders, start);
        let thread = std::thread::Builder::new().name(switch.name.clone()).spawn(move || station.run());
        threads.push(thread.context("cannot start a switch")?);
        stations.push(sender);
    }
    let path = Room::socket(&args.name);
    let listener = UnixListener::bind(&path).with_context(|| format!("cannot listen at {}", path.display()))?;
    listener.set_nonblocking(true).context("cannot listen")?;
    let descriptors = hosts.iter().map(|host| (host.name.clone(), host.namespace.raw_descriptor())).collect();
    Room::open(&args.name, descriptors)?;
    let failed: Vec<String> =
        hosts.iter().zip(&topology.hosts).flat_map(|(standing, host)| standing.run_commands(host)).collect();
    failed.iter().for_each(|line| output.note(line));
    output.print(&format!("{READY}\n"))?;
    let answering = Arc::new(Answering { network: Arc::clone(network), stations: Mutex::new(stations.clone()), start });
    while !ended.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => {
                let answering = Arc::clone(&answering);
                let down = answer_first(stream, &answering);
                if down {
                    break;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(10))
            }
            Err(error) => return Err(anyhow::Error::from(error).context("cannot listen any more").into()),
        }
    }
    for station in &stations {
        // One that has ended already needs no telling.
        let _ = station.send(Order::Stop);
    }
    drop(answering);
    for thread in threads {
        thread.join().map_err(|_| anyhow!("a switch ended by itself; this is a bug"))?;
    }
    Ok(())
}

/// The ports of a switch and their links.
fn places(
    topology: &Topology,
    switch: usize,
    interfaces: &BTreeMap<(usize, u32), String>,
    seed: u64,
) -> Result<Vec<Place>, Failure> {
    let mut places = Vec::new();
    for (number, link) in topology.links.iter().enumerate() {
        for (way, end) in link.ends.iter().enumerate().filter(|(_, end)| end.node == Node::Switch(switch)) {
            let driver = AfPacketPort::open(&interfaces[&(switch, end.port)])?;
            let cable = |way: usize| Cable::new(link.shape, seed, (2 * number + way) as u64);
            let back = matches!(link.ends[1 - way].node, Node::Host(_)).then(|| cable(1 - way));
            places.push(Place::new(end.port, Box::new(driver), cable(way), back));
        }
    }
    Ok(places)
}

/// What questions are answered from.
struct Answering {
    network: Arc<Network>,
    stations: Mutex<Vec<Sender<Order>>>,
    start: Instant,
}

/// Reads a request and answers it, a capture in a thread of its own. True if the network is to end.
fn answer_first(stream: UnixStream, answering: &Arc<Answering>) -> bool {
    // Someone who connects and says nothing holds nobody up for long.
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
    let _ = stream.set_write_timeout(Some(Duration::from_secs(5)));
    let mut line = String::new();
    if BufReader::new((&stream).take(MAX_REQUEST)).read_line(&mut line).is_err() {
        return false;
    }
    let request = serde_json::from_str(&line);
    let down = matches!(request, Ok(Request::Down));
    let result = match request {
        Ok(Request::Capture { port }) => {
            let answering = Arc::clone(answering);
            std::thread::spawn(move || answering.capture(&port, stream));
            return false;
        }
        Ok(request) => answering.answer(&request),
        Err(error) => Err(format!("this is no request: {error}")),
    };
    let answer = match result {
        Ok(value) => Answer::Done(value),
        Err(why) => Answer::Refused(why),
    };
    // Whoever asked may be gone.
    let _ = (&stream).write_all(answer.line().as_bytes());
    down
}

impl Answering {
    fn tell(&self, switch: usize, order: Order) -> Result<(), String> {
        let stations = self.stations.lock().expect("nobody panics with it");
        stations[switch].send(order).map_err(|_| "the switch has ended".to_owned())
    }

    fn switch(&self, name: &str) -> Result<usize, String> {
        let switches = &self.network.topology.switches;
        let found = switches.iter().position(|switch| switch.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = switches.iter().map(|switch| switch.name.as_str()).collect();
            format!("there is no switch `{name}`; there are {}", names.join(", "))
        })
    }

    fn answer(&self, request: &Request) -> Result<Value, String> {
        match request {
            Request::Down => Ok(Value::Null),
            Request::Capture { .. } => unreachable!("captures have threads of their own"),
            Request::Status => self.status(),
            Request::Fail { switch, failed } => {
                self.tell(self.switch(switch)?, Order::Fail(*failed))?;
                Ok(Value::Null)
            }
            Request::Link { one, other, up } => self.link(one, other, *up),
        }
    }

    fn link(&self, one: &str, other: &str, up: bool) -> Result<Value, String> {
        let topology = &self.network.topology;
        let node = |name: &str| topology.node(name).ok_or_else(|| format!("there is no host or switch `{name}`"));
        let (one, other) = (node(one)?, node(other)?);
        let joins = |ends: [Node; 2]| ends == [one, other] || ends == [other, one];
        let links: Vec<_> = topology.links.iter().filter(|link| joins(link.ends.map(|end| end.node))).collect();
        if links.is_empty() {
            return Err(format!("no link joins `{}` and `{}`", topology.name(one), topology.name(other)));
        }
        for end in links.iter().flat_map(|link| link.ends) {
            if let Node::Switch(switch) = end.node {
                self.tell(switch, Order::Link { port: end.port, up })?;
            }
        }
        Ok(Value::Null)
    }

    fn status(&self) -> Result<Value, String> {
        let topology = &self.network.topology;
        let mut switches = Vec::new();
        for (at, switch) in topology.switches.iter().enumerate() {
            let (sender, answers) = channel();
            self.tell(at, Order::Status(sender))?;
            let status = answers.recv_timeout(Duration::from_secs(5)).map_err(|_| "a switch does not answer")?;
            switches.push(describe(topology, at, &switch.name, &status));
        }
        let hosts: Vec<Value> = topology
            .hosts
            .iter()
            .enumerate()
            .map(|(at, host)| {
                let address = host.address.map(|(address, bits)| format!("{address}/{bits}"));
                let uplink = topology.uplink(at).map(|end| topology.end_name(end));
                json!({ "name": host.name, "address": address, "mac": host.mac.to_string(), "at": uplink })
            })
            .collect();
        Ok(json!({ "up_s": self.start.elapsed().as_secs_f64(), "switches": switches, "hosts": hosts }))
    }

    /// Sends a capture of a port until the reader is gone.
    fn capture(&self, port: &str, mut stream: UnixStream) {
        let (to, frames) = sync_channel(CAPTURED);
        let ordered = self.port(port).and_then(|(switch, port)| self.tell(switch, Order::Capture { port, to }));
        let answer = match &ordered {
            Ok(()) => Answer::Done(Value::Null),
            Err(why) => Answer::Refused(why.clone()),
        };
        if stream.write_all(answer.line().as_bytes()).is_err() || ordered.is_err() {
            return;
        }
        let Ok(mut writer) = pcap::Writer::new(stream) else { return };
        let began = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let began = (began.as_nanos() as u64).saturating_sub(self.start.elapsed().as_nanos() as u64);
        // The header goes out at once, so that whoever reads knows what comes.
        let _ = writer.flush();
        while let Ok((now, frame)) = frames.recv() {
            if writer.write(began + now, &frame).and_then(|()| writer.flush()).is_err() {
                return;
            }
        }
    }

    fn port(&self, text: &str) -> Result<(usize, u32), String> {
        let wrong = || format!("`{text}` is no port of a switch: write s1:2");
        let (name, port) = text.split_once(':').ok_or_else(wrong)?;
        let (switch, port) = (self.switch(name)?, port.parse().map_err(|_| wrong())?);
        let ports = self.network.topology.ports(switch);
        let found = ports.iter().any(|(number, _)| *number == port);
        found.then_some((switch, port)).ok_or_else(|| format!("`{name}` has no port {port}"))
    }
}

fn describe(topology: &Topology, at: usize, name: &str, status: &Status) -> Value {
    let others: BTreeMap<u32, End> = topology.ports(at).into_iter().collect();
    let ports = status.ports.iter().map(|port: &PortStatus| {
        let to = others.get(&port.port).map(|end| topology.end_name(*end));
        json!({
            "port": port.port, "to": to, "up": port.up, "sent": port.sent.carried, "sent_bytes": port.sent.carried_bytes,
            "dropped": port.sent.dropped(),
            "from_host_dropped": port.received.as_ref().map(lab::sim::LinkStats::dropped),
            "failure": port.failure,
        })
    });
    let counters: serde_json::Map<String, Value> =
        status.counters.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({ "name": name, "failed": status.failed, "ports": ports.collect::<Vec<_>>(), "counters": counters })
}
