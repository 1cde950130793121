//! Answers requests to the daemon.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lab::{End, Node, Topology};
use serde_json::{Value, json};

use crate::capture;
use crate::endpoints::ControllerEndpoint;
use crate::live_network::LiveNetwork;
use crate::protocol::LabRequest;
use crate::request_error::RequestError;
use crate::socket::{self, RequestOutcome};
use crate::switch_status::{PortStatus, ShimStatus, SwitchStatus};
use crate::switch_thread::{Completion, SwitchCommand};

/// Maximum time in which switches respond.
pub const SWITCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum time in which a switch starts. It may compile its program.
const SWITCH_START_TIMEOUT: Duration = Duration::from_secs(60);

/// The connections to a switch, store, operator or memory server.
#[derive(Clone)]
pub struct NodeHandle {
    /// Its name.
    pub name: String,
    /// Commands to its thread, or to the thread that supervises its process.
    pub commands: Sender<SwitchCommand>,
    /// The socket of a switch's process, if it has one of its own.
    pub socket: Option<PathBuf>,
    /// Held during a crash or restart, which takes several commands.
    pub fault: Arc<Mutex<()>>,
}

impl NodeHandle {
    /// Sends a command.
    fn send(&self, command: SwitchCommand) -> Result<(), RequestError> {
        self.commands.send(command).map_err(|_| RequestError::SwitchEnded(self.name.clone()))
    }

    /// Requests the state, which the receiver gets.
    fn ask_status(&self) -> Result<Receiver<SwitchStatus>, RequestError> {
        let (sender, response) = channel();
        self.send(SwitchCommand::Status(sender))?;
        Ok(response)
    }

    /// Returns the error of a command without a response.
    fn timeout(&self) -> RequestError {
        RequestError::Timeout(self.name.clone())
    }
}

/// The handler of a lab's requests.
pub struct RequestHandler<N: ?Sized> {
    /// The topology and the endpoints.
    pub network: Arc<N>,
    /// The switches, in the order of the topology.
    pub switches: Vec<NodeHandle>,
    /// The stores in the order of the topology, followed by their operator, if there is one, and the memory servers.
    pub members: Vec<NodeHandle>,
    /// The shims of hosts.
    pub shims: Vec<NodeHandle>,
    /// Start time of the lab.
    pub start: Instant,
    /// Maximum time in which switches respond.
    pub switch_timeout: Duration,
}

impl<N: LiveNetwork + ?Sized> RequestHandler<N> {
    /// Handles a request. Several may be handled at the same time.
    pub fn handle(&self, request: &LabRequest) -> RequestOutcome {
        RequestOutcome::Response(match request {
            LabRequest::Status => self.status(),
            LabRequest::Fail { node, failed } => self.node(node).and_then(|node| self.fail(node, *failed)),
            LabRequest::Suspend { node, is_suspended } => {
                self.node(node).and_then(|node| self.suspend(node, *is_suspended))
            }
            LabRequest::Link { one, other, up } => self.link(one, other, *up),
            LabRequest::End { switch, port, up } => self.switch(switch).and_then(|at| self.set_up(&[(at, *port)], *up)),
            LabRequest::SlowHost { host, by_ns } => self.slow(host, *by_ns),
            LabRequest::Capture { port } => match self.port(port) {
                Ok((switch, port)) => return self.capture(switch, port),
                Err(why) => Err(why),
            },
            LabRequest::Down
            | LabRequest::Port { .. }
            | LabRequest::FarEnd { .. }
            | LabRequest::Slow { .. }
            | LabRequest::Hold { .. }
            | LabRequest::CapturePort { .. } => Err(RequestError::NotForDaemon),
        })
    }

    /// Returns the switch, store, operator or memory server with a name.
    fn node(&self, name: &str) -> Result<&NodeHandle, RequestError> {
        if let Some(member) = self.members.iter().find(|member| member.name == name) {
            return Ok(member);
        }
        let at = self.switch(name).map_err(|error| match error {
            RequestError::NoSwitch { name, switches } if !self.members.is_empty() => {
                let members = self.members.iter().map(|member| member.name.clone()).collect();
                match self.network.topology().stores().is_empty() {
                    false => RequestError::NoSwitchOrStore { name, switches, stores: members },
                    true => RequestError::NoSwitchOrMemoryServer { name, switches, servers: members },
                }
            }
            error => error,
        })?;
        Ok(&self.switches[at])
    }

    /// Crashes or restarts a node and waits until it is done. Returns whether its state changed.
    fn fail(&self, node: &NodeHandle, failed: bool) -> Result<Value, RequestError> {
        let state = || node.ask_status()?.recv_timeout(SWITCH_START_TIMEOUT).map_err(|_| node.timeout());
        let _fault = node.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state()?;
        // A process that does not respond still runs and can be killed.
        if before.failed == failed && before.pid.is_none_or(|_| !failed) {
            return Ok(json!(false));
        }
        node.send(SwitchCommand::Fail(failed))?;
        let status = state()?;
        match (status.failed == failed, status.why) {
            (true, _) => Ok(json!(true)),
            (false, why) => Err(RequestError::NotStarted { why }),
        }
    }

    /// Suspends the process of a node, or lets it continue.
    fn suspend(&self, node: &NodeHandle, is_suspended: bool) -> Result<Value, RequestError> {
        let _fault = node.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let suspend = |done| SwitchCommand::Suspend { is_suspended, done };
        socket::carry_out((&node.name, &node.commands), suspend).map(|()| Value::Null)
    }

    fn switch(&self, name: &str) -> Result<usize, RequestError> {
        let topology = self.network.topology();
        let found = topology.switches.iter().position(|switch| switch.name == name);
        found.ok_or_else(|| RequestError::no_switch(name, topology))
    }

    fn link(&self, one: &str, other: &str, up: bool) -> Result<Value, RequestError> {
        let topology = self.network.topology();
        let node = |name: &str| topology.node(name).ok_or_else(|| RequestError::NoNode(name.to_owned()));
        let (one, other) = (node(one)?, node(other)?);
        let joins = |ends: [Node; 2]| ends == [one, other] || ends == [other, one];
        let links: Vec<_> = topology.links.iter().filter(|link| joins(link.ends.map(|end| end.node))).collect();
        if links.is_empty() {
            let [one, other] = [one, other].map(|node| topology.name(node).to_owned());
            return Err(RequestError::NoLink { one, other });
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
    fn set_up(&self, ports: &[(usize, u32)], up: bool) -> Result<Value, RequestError> {
        self.carry_out(ports, |port, done| SwitchCommand::Link { port, up, done })
    }

    /// Sends a command for each port and waits until all have been carried out.
    fn carry_out(
        &self,
        ports: &[(usize, u32)],
        command: impl Fn(u32, Completion) -> SwitchCommand,
    ) -> Result<Value, RequestError> {
        let mut responses = Vec::new();
        for (switch, port) in ports {
            let (switch, (done, response)) = (&self.switches[*switch], channel());
            switch.send(command(*port, done))?;
            responses.push((switch, response));
        }
        for (switch, response) in responses {
            response.recv_timeout(self.switch_timeout).map_err(|_| switch.timeout())??;
        }
        Ok(Value::Null)
    }

    /// Sets the service time of a host. The switch at the other end of its link delays the frames accordingly.
    fn slow(&self, host: &str, by_ns: u64) -> Result<Value, RequestError> {
        let topology = self.network.topology();
        let at = topology.hosts.iter().position(|known| known.name == host);
        let uplink = at.and_then(|at| topology.uplink(at));
        match uplink.map(|end| (end.node, end.port)) {
            Some((Node::Switch(switch), port)) => {
                self.carry_out(&[(switch, port)], |port, done| SwitchCommand::Slow { port, by_ns, done })
            }
            _ => Err(RequestError::NoHost(host.to_owned())),
        }
    }

    fn status(&self) -> Result<Value, RequestError> {
        let topology = self.network.topology();
        let responses: Vec<_> = self.switches.iter().map(NodeHandle::ask_status).collect::<Result<_, _>>()?;
        let mut switches = Vec::new();
        // All switches together have this time, so that many silent ones do not delay the response further.
        let deadline = Instant::now() + self.switch_timeout;
        for (at, response) in responses.iter().enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            let status = response.recv_timeout(left).unwrap_or_else(|_| SwitchStatus::silent());
            switches.push(describe(topology, at, self.network.endpoint(at), &status));
        }
        let hosts: Vec<Value> = topology
            .hosts
            .iter()
            .take(topology.machines())
            .enumerate()
            .map(|(at, host)| {
                let address = host.address.map(|(address, bits)| format!("{address}/{bits}"));
                let uplink = topology.uplink(at).map(|end| topology.end_name(end));
                json!({ "name": host.name, "address": address, "mac": host.mac.to_string(), "at": uplink })
            })
            .collect();
        let mut status = json!({ "up_s": self.start.elapsed().as_secs_f64(), "switches": switches, "hosts": hosts });
        let (memory, stores): (Vec<Value>, Vec<Value>) =
            self.member_statuses(deadline)?.into_iter().partition(|member| !member["memory"].is_null());
        for (kind, members) in [("stores", stores), ("memory", memory)] {
            if !members.is_empty() {
                status[kind] = Value::Array(members);
            }
        }
        let shims = self.shim_statuses(deadline)?;
        if !shims.is_empty() {
            status["shims"] = Value::Array(shims);
        }
        Ok(status)
    }

    /// Returns the state of the shims of hosts.
    fn shim_statuses(&self, deadline: Instant) -> Result<Vec<Value>, RequestError> {
        let responses: Vec<_> = self.shims.iter().map(NodeHandle::ask_status).collect::<Result<_, _>>()?;
        let shims = self.shims.iter().zip(responses).map(|(shim, response)| {
            let left = deadline.saturating_duration_since(Instant::now());
            let status = response.recv_timeout(left).unwrap_or_else(|_| SwitchStatus::silent());
            let ShimStatus { restarts, report, age_s } = status.shim.unwrap_or_default();
            json!({
                "host": shim.name, "failed": status.failed, "suspended": status.is_suspended, "why": status.why,
                "pid": status.pid, "restarts": restarts, "report": report, "age_s": age_s,
            })
        });
        Ok(shims.collect())
    }

    /// Returns the state of the stores and their operator, and of the memory servers.
    fn member_statuses(&self, deadline: Instant) -> Result<Vec<Value>, RequestError> {
        let topology = self.network.topology();
        let responses: Vec<_> = self.members.iter().map(NodeHandle::ask_status).collect::<Result<_, _>>()?;
        let members = self.members.iter().zip(responses);
        let statuses = members.filter_map(|(member, response)| {
            let left = deadline.saturating_duration_since(Instant::now());
            let status = response.recv_timeout(left).unwrap_or_else(|_| SwitchStatus::silent());
            let at = topology.hosts.iter().position(|host| host.name == member.name)?;
            let host = &topology.hosts[at];
            let mut described = json!({
                "name": host.name, "failed": status.failed, "suspended": status.is_suspended, "why": status.why,
                "pid": status.pid, "address": host.address.map(|(address, _)| address.to_string()),
                "at": topology.uplink(at).map(|end| topology.end_name(end)),
            });
            match host.memory {
                Some(size) => described["memory"] = json!(size.to_string()),
                None => {
                    described["operator"] = json!(topology.operator() == Some(at));
                    described["durable"] = json!(host.is_durable);
                }
            }
            Some(described)
        });
        Ok(statuses.collect())
    }

    /// Returns the capture of a port.
    fn capture(&self, switch: usize, port: u32) -> RequestOutcome {
        let NodeHandle { name, commands, socket, .. } = self.switches[switch].clone();
        let start = self.start;
        RequestOutcome::Capture(Box::new(move |stream: &UnixStream| match socket {
            Some(socket) => capture::forward(&socket, port, &name, stream, capture::START_TIMEOUT),
            None => capture::run((&name, &commands), port, start, stream),
        }))
    }

    fn port(&self, text: &str) -> Result<(usize, u32), RequestError> {
        let wrong = || RequestError::NotAPort(text.to_owned());
        let (name, port) = text.split_once(':').ok_or_else(wrong)?;
        let (switch, port) = (self.switch(name)?, port.parse().map_err(|_| wrong())?);
        let ports = self.network.topology().ports(switch);
        let found = ports.iter().any(|(number, _)| *number == port);
        found.then_some((switch, port)).ok_or_else(|| RequestError::NoPort { switch: name.to_owned(), port })
    }
}

fn describe(topology: &Topology, at: usize, endpoint: Option<ControllerEndpoint>, status: &SwitchStatus) -> Value {
    let others: BTreeMap<u32, End> = topology.ports(at).into_iter().collect();
    let ports = status.ports.iter().map(|port: &PortStatus| {
        let to = others.get(&port.port).map(|end| topology.end_name(*end));
        json!({
            "port": port.port, "to": to, "up": port.up, "received": port.received,
            "lost_while_failed": port.lost_while_failed, "sent": port.sent, "sent_bytes": port.sent_bytes,
            "dropped": port.dropped, "from_host": port.from_host, "from_host_bytes": port.from_host_bytes,
            "from_host_dropped": port.from_host_dropped, "failure": port.failure,
        })
    });
    let counters: serde_json::Map<String, Value> =
        status.counters.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({
        "name": topology.switches[at].name, "failed": status.failed, "why": status.why, "pid": status.pid,
        "p4runtime": endpoint.map(|endpoint| json!({
            "address": endpoint.address.to_string(), "device_id": endpoint.device_id,
        })),
        "kernel": status.kernel, "ports": ports.collect::<Vec<_>>(), "counters": counters,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_network::TestNetwork;

    /// Returns the handler of a lab whose switches are `s1` and `s2`, and the receiver of the commands to both. The
    /// switches have no time to respond.
    fn handler() -> (RequestHandler<TestNetwork>, Receiver<SwitchCommand>) {
        let (commands, receiver) = channel();
        let switch = |name: &str| NodeHandle {
            name: name.to_owned(),
            commands: commands.clone(),
            socket: None,
            fault: Arc::default(),
        };
        let switches = ["s1", "s2"].map(switch).to_vec();
        let (network, start) = (TestNetwork::new(None), Instant::now());
        let (members, shims) = (Vec::new(), Vec::new());
        (RequestHandler { network, switches, members, shims, start, switch_timeout: Duration::ZERO }, receiver)
    }

    /// Returns the error of a request.
    fn refused(request: &LabRequest) -> RequestError {
        let (handler, _receiver) = handler();
        match handler.handle(request) {
            RequestOutcome::Response(Err(error)) => error,
            _ => panic!("{request:?} was not refused"),
        }
    }

    #[test]
    fn a_request_for_an_unknown_name_is_a_typed_error() {
        let no_switch =
            RequestError::NoSwitch { name: "s9".to_owned(), switches: vec!["s1".to_owned(), "s2".to_owned()] };
        assert_eq!(no_switch.to_string(), "there is no switch `s9`; the switches are s1, s2");
        assert_eq!(refused(&LabRequest::Fail { node: "s9".to_owned(), failed: true }), no_switch);
        assert_eq!(refused(&LabRequest::Capture { port: "s9:1".to_owned() }), no_switch);
        let link = |one: &str, other: &str| {
            refused(&LabRequest::Link { one: one.to_owned(), other: other.to_owned(), up: false })
        };
        assert_eq!(link("h1", "h2"), RequestError::NoLink { one: "h1".to_owned(), other: "h2".to_owned() });
        assert_eq!(link("h1", "h9"), RequestError::NoNode("h9".to_owned()));
        let slow = LabRequest::SlowHost { host: "h9".to_owned(), by_ns: 1 };
        assert_eq!(refused(&slow), RequestError::NoHost("h9".to_owned()));
        let port = |port: &str| refused(&LabRequest::Capture { port: port.to_owned() });
        assert_eq!(port("s1:7"), RequestError::NoPort { switch: "s1".to_owned(), port: 7 });
        assert_eq!(port("s1"), RequestError::NotAPort("s1".to_owned()));
        assert_eq!(refused(&LabRequest::CapturePort { port: 1 }), RequestError::NotForDaemon);
    }

    #[test]
    fn a_request_to_a_switch_that_has_ended_is_a_typed_error() {
        let (handler, receiver) = handler();
        drop(receiver);
        assert_eq!(handler.set_up(&[(1, 1)], true), Err(RequestError::SwitchEnded("s2".to_owned())));
    }
    #[test]
    fn switches_that_do_not_respond_are_part_of_the_status() {
        let (handler, _receiver) = handler();
        let status = handler.status().expect("the lab responds without them");
        for switch in [&status["switches"][0], &status["switches"][1]] {
            assert_eq!((&switch["failed"], &switch["why"]), (&json!(true), &json!("it did not respond")));
        }
    }
}
