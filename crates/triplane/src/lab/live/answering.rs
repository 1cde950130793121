//! What a network answers and does when it is asked.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use lab::{End, Node, Topology};
use serde_json::{Value, json};

use super::super::endpoints::Served;
use super::super::network::Network;
use super::protocol::Request;
use super::socket::{self, Reply};
use super::station::{Done, Order, PortStatus, Status};

/// How long a switch may take to say how it is.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a switch may take to start: it may have to compile its program.
const BEGIN: Duration = Duration::from_secs(60);

/// How a switch is told something.
#[derive(Clone)]
pub struct Reach {
    /// Orders to it, or to who looks after its process.
    pub orders: Sender<Order>,
    /// The socket of its process, if it has one of its own.
    pub socket: Option<PathBuf>,
}

/// What questions are answered from.
pub struct Answering {
    /// The network.
    pub network: Arc<Network>,
    /// Its switches, in the order of the topology.
    pub switches: Vec<Reach>,
    /// When it began.
    pub start: Instant,
}

impl Answering {
    /// Answers a request, or has a thread of its own do so.
    pub fn answer(&self, request: &Request, stream: &UnixStream) -> Reply {
        Reply::Answer(match request {
            Request::Status => self.status(),
            Request::Fail { switch, failed } => self.switch(switch).and_then(|at| self.fail(at, *failed)),
            Request::Link { one, other, up } => self.link(one, other, *up),
            Request::End { switch, port, up } => self.switch(switch).and_then(|at| self.set_up(&[(at, *port)], *up)),
            Request::SlowHost { host, by_ns } => self.slow(host, *by_ns),
            Request::Capture { port } => match self.port(port) {
                Ok((switch, port)) => {
                    self.capture(switch, port, stream);
                    return Reply::Elsewhere;
                }
                Err(why) => Err(why),
            },
            Request::Down | Request::Port { .. } | Request::Slow { .. } | Request::CapturePort { .. } => {
                Err("that is not for the holder".to_owned())
            }
        })
    }

    /// Tells a switch something.
    pub fn tell(&self, switch: usize, order: Order) -> Result<(), String> {
        self.switches[switch].orders.send(order).map_err(|_| "the switch has ended".to_owned())
    }

    /// Lets a switch crash or start again, and waits until it has. Says whether that changed anything.
    fn fail(&self, at: usize, failed: bool) -> Result<Value, String> {
        let ask = || {
            let (sender, answer) = channel();
            self.tell(at, Order::Status(sender))?;
            answer.recv_timeout(BEGIN).map_err(|_| "the switch does not answer".to_owned())
        };
        let was = ask()?;
        // A process that does not answer is not gone, and can be ended.
        if was.failed == failed && was.pid.is_none_or(|_| !failed) {
            return Ok(json!(false));
        }
        self.tell(at, Order::Fail(failed))?;
        let status = ask()?;
        match (status.failed == failed, status.why) {
            (true, _) => Ok(json!(true)),
            (false, why) => Err(why.unwrap_or_else(|| "the switch did not start".to_owned())),
        }
    }

    fn switch(&self, name: &str) -> Result<usize, String> {
        let switches = &self.network.topology.switches;
        let found = switches.iter().position(|switch| switch.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = switches.iter().map(|switch| switch.name.as_str()).collect();
            format!("there is no switch `{name}`; there are {}", names.join(", "))
        })
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
        let ends = links.iter().flat_map(|link| link.ends);
        let ports: Vec<_> = ends
            .filter_map(|end| match end.node {
                Node::Switch(switch) => Some((switch, end.port)),
                Node::Host(_) => None,
            })
            .collect();
        self.set_up(&ports, up)
    }

    /// Takes the links at ports of switches up or down.
    fn set_up(&self, ports: &[(usize, u32)], up: bool) -> Result<Value, String> {
        self.carry_out(ports, |port, done| Order::Link { port, up, done })
    }

    /// Orders something at ports of switches, and waits until it has been done at all of them.
    fn carry_out(&self, ports: &[(usize, u32)], order: impl Fn(u32, Done) -> Order) -> Result<Value, String> {
        let mut answers = Vec::new();
        for (switch, port) in ports {
            let (done, answer) = channel();
            self.tell(*switch, order(*port, done))?;
            answers.push((*switch, answer));
        }
        for (switch, answer) in answers {
            let name = &self.network.topology.switches[switch].name;
            answer.recv_timeout(PATIENCE).map_err(|_| format!("`{name}` does not answer"))??;
        }
        Ok(Value::Null)
    }

    /// Lets a host need time for each frame: the switch at the other end of its link hands them over that slowly.
    fn slow(&self, host: &str, by_ns: u64) -> Result<Value, String> {
        let topology = &self.network.topology;
        let at = topology.hosts.iter().position(|known| known.name == host);
        let uplink = at.and_then(|at| topology.uplink(at));
        match uplink.map(|end| (end.node, end.port)) {
            Some((Node::Switch(switch), port)) => {
                self.carry_out(&[(switch, port)], |port, done| Order::Slow { port, by_ns, done })
            }
            _ => Err(format!("no switch leads to a host `{host}`")),
        }
    }

    fn status(&self) -> Result<Value, String> {
        let topology = &self.network.topology;
        let mut asked = Vec::new();
        for at in 0..topology.switches.len() {
            let (sender, answer) = channel();
            self.tell(at, Order::Status(sender))?;
            asked.push(answer);
        }
        let mut switches = Vec::new();
        for (at, answer) in asked.iter().enumerate() {
            let name = &topology.switches[at].name;
            let status = answer.recv_timeout(PATIENCE).map_err(|_| format!("`{name}` does not answer"))?;
            switches.push(describe(topology, at, self.network.endpoints[at], &status));
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

    /// Has a thread send a capture of a port until the reader is gone.
    fn capture(&self, switch: usize, port: u32, stream: &UnixStream) {
        let Ok(stream) = stream.try_clone() else { return };
        let Reach { orders, socket } = self.switches[switch].clone();
        let (start, name) = (self.start, self.network.topology.switches[switch].name.clone());
        std::thread::spawn(move || match socket {
            Some(socket) => pass_on(&socket, port, &name, stream),
            None => socket::capture(&orders, port, start, stream),
        });
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

/// Passes a capture on that the process of a switch sends.
fn pass_on(socket: &Path, port: u32, name: &str, mut stream: UnixStream) {
    let asked = UnixStream::connect(socket).and_then(|mut process| {
        process.write_all(Request::CapturePort { port }.line().as_bytes())?;
        Ok(process)
    });
    match asked {
        Ok(mut process) => {
            // Whoever reads ends it.
            let _ = std::io::copy(&mut process, &mut stream);
        }
        Err(_) => {
            socket::say(&stream, Err(format!("`{name}` has crashed; start it again with: triplane lab heal {name}")));
        }
    }
}

fn describe(topology: &Topology, at: usize, served: Option<Served>, status: &Status) -> Value {
    let others: BTreeMap<u32, End> = topology.ports(at).into_iter().collect();
    let ports = status.ports.iter().map(|port: &PortStatus| {
        let to = others.get(&port.port).map(|end| topology.end_name(*end));
        json!({
            "port": port.port, "to": to, "up": port.up, "sent": port.sent, "sent_bytes": port.sent_bytes,
            "dropped": port.dropped, "from_host": port.from_host, "from_host_bytes": port.from_host_bytes,
            "from_host_dropped": port.from_host_dropped, "failure": port.failure,
        })
    });
    let counters: serde_json::Map<String, Value> =
        status.counters.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({
        "name": topology.switches[at].name, "failed": status.failed, "why": status.why, "pid": status.pid,
        "p4runtime": served.map(|served| json!({
            "address": served.address.to_string(), "device_id": served.device_id,
        })),
        "ports": ports.collect::<Vec<_>>(), "counters": counters,
    })
}
