//! Runs the thread of a switch: it moves frames between the switch and its ports, over shaped links.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use lab::sim::Cable;
use p4runtime_server::Listening;
use ports::{Port, Received};
use runtime::{HookContext, HookList, NotificationSink, PortSet};
use serde::{Deserialize, Serialize};
use switch::{Device, Frame, PacketSwitch, PortId, SwitchControl, Time};

use crate::capture::CaptureSender;
use crate::controller::{ControllerListener, ControllerServer};
use crate::link_direction::LinkDirection;
use crate::live_network::{LiveNetwork, SwitchExtensions};
use crate::neighbours::Neighbours;
use crate::request_error::RequestError;

/// Maximum number of frames from one port in one turn.
const BATCH: usize = 64;

/// Maximum number of overdue events in one turn, so that ports are served in between.
const MAX_EVENTS: usize = 1024;

/// Maximum wait between two checks for commands.
const MAX_WAIT: Duration = Duration::from_millis(20);

/// Waits shorter than this spin, since the kernel may sleep longer.
const SPIN: Duration = Duration::from_micros(80);

/// The receiver of a command's outcome: done, or the reason why not. It may be gone.
pub type Completion = Sender<Result<(), RequestError>>;

/// A command to a switch. Some are also for stores of resilient state and their operator.
pub enum SwitchCommand {
    /// Crashes or restarts the switch.
    Fail(bool),
    /// Takes the link at a port up or down.
    Link { port: u32, up: bool, done: Completion },
    /// Reports whether the switch at the other end of a port's link runs.
    FarEnd { port: u32, runs: bool },
    /// Suspends the process of the node, or lets it continue.
    Suspend { is_suspended: bool, done: Completion },
    /// Sets the service time of the host at a port, in nanoseconds per frame.
    Slow { port: u32, by_ns: u64, done: Completion },
    /// Sends the frames that pass a port until the receiver is gone.
    Capture { port: u32, to: CaptureSender, done: Completion },
    /// Sends the state of the switch.
    Status(Sender<SwitchStatus>),
    /// Ends the switch.
    Stop,
}

/// The state of a switch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SwitchStatus {
    /// Whether it has crashed.
    pub failed: bool,
    /// Whether its process is suspended. A thread cannot be.
    #[serde(default)]
    pub is_suspended: bool,
    /// The reason of a crash that was not requested, or of a service that is not available.
    pub why: Option<String>,
    /// Id of its process, if it has one of its own.
    pub pid: Option<u32>,
    /// State of its ports.
    pub ports: Vec<PortStatus>,
    /// Counters that are not zero, by their stable names.
    pub counters: Vec<(String, u64)>,
}

impl SwitchStatus {
    /// Returns the state of a switch that did not respond in time.
    pub fn silent() -> SwitchStatus {
        SwitchStatus { failed: true, why: Some("it did not respond".to_owned()), ..SwitchStatus::default() }
    }
}

/// The state of a port.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PortStatus {
    /// Port number.
    pub port: u32,
    /// Whether its link is up.
    pub up: bool,
    /// Frames from the other end that the switch received since the lab began. A crash does not reset it.
    pub received: u64,
    /// Frames from the other end that arrived while the switch was down.
    pub lost_while_failed: u64,
    /// Frames that the link accepted.
    pub sent: u64,
    /// Bytes of these frames.
    pub sent_bytes: u64,
    /// Frames to the other end that the link dropped.
    pub dropped: u64,
    /// Frames from the host at the other end; `None` if that is a switch.
    pub from_host: Option<u64>,
    /// Bytes of these frames.
    pub from_host_bytes: Option<u64>,
    /// Frames from the host at the other end that the link dropped.
    pub from_host_dropped: Option<u64>,
    /// The reason why the driver cannot be used any more.
    pub failure: Option<String>,
}

/// A port: the directions of its link.
pub struct SwitchPort {
    number: u32,
    /// Direction to the other end.
    out: LinkDirection,
    /// Direction from the host at the other end. Another switch shapes what it sends itself.
    back: Option<LinkDirection>,
    /// Whether the switch at the other end runs, if there is one.
    far_end_runs: bool,
    captures: Vec<CaptureSender>,
    /// Frames that the switch received, and those that arrived after it crashed.
    received: u64,
    lost_while_failed: u64,
}

impl SwitchPort {
    /// Returns a port with the cables of its link.
    pub fn new(number: u32, out: Cable, back: Option<Cable>) -> SwitchPort {
        let (out, back) = (LinkDirection::new(out), back.map(LinkDirection::new));
        SwitchPort { number, out, back, far_end_runs: true, captures: Vec::new(), received: 0, lost_while_failed: 0 }
    }

    /// Whether its link carries frames and the other end runs.
    fn is_up(&self) -> bool {
        self.out.cable.is_up() && self.far_end_runs
    }

    /// Counts and captures a frame that arrives at the switch.
    fn arrive(&mut self, now: u64, frame: &[u8], is_failed: bool) {
        *(if is_failed { &mut self.lost_while_failed } else { &mut self.received }) += 1;
        self.capture(now, frame);
    }

    fn capture(&mut self, now: u64, frame: &[u8]) {
        self.captures.retain(CaptureSender::is_open);
        self.captures.iter().for_each(|to| to.send(now, frame));
    }
}

/// A switch with its ports.
pub struct SwitchThread<N: LiveNetwork + ?Sized> {
    network: Arc<N>,
    /// Index of the switch in the topology.
    at: usize,
    seed: u64,
    listener: Option<ControllerListener<N>>,
    neighbours: Neighbours,
    /// The switch; `None` after a crash.
    switch: Option<N::Switch>,
    /// The P4Runtime server. Its hook and its sink are in the lists below.
    server: Option<Listening>,
    /// The hooks of the switch; none after a crash.
    hooks: HookList<N::Switch>,
    sinks: Vec<Arc<dyn NotificationSink>>,
    /// The reason why controllers are not served.
    unserved: Option<String>,
    ports: Vec<SwitchPort>,
    /// The drivers of the ports, in the same order.
    drivers: PortSet,
    commands: Receiver<SwitchCommand>,
    start: Instant,
    /// Time of the last step, in nanoseconds.
    stepped: u64,
    batch: Vec<Received>,
    input: Vec<Frame>,
    output: Vec<Frame>,
    injected: Vec<Frame>,
}

impl<N: LiveNetwork + ?Sized> SwitchThread<N> {
    /// Starts a switch of a network, by its index in the topology. `start` is the start of the lab. The neighbours see
    /// crashes and restarts.
    pub fn new(
        (network, at, seed): (Arc<N>, usize, u64),
        listener: Option<ControllerListener<N>>,
        neighbours: Neighbours,
        ports: Vec<(SwitchPort, Box<dyn Port>)>,
        commands: Receiver<SwitchCommand>,
        start: Instant,
    ) -> SwitchThread<N> {
        let with_ids = ports.into_iter().map(|(port, driver)| ((PortId(port.number), driver), port));
        let (drivers, ports): (Vec<_>, Vec<_>) = with_ids.unzip();
        let mut thread = SwitchThread {
            network,
            at,
            seed,
            listener,
            neighbours,
            switch: None,
            server: None,
            hooks: HookList::new(Vec::new()),
            sinks: Vec::new(),
            unserved: None,
            ports,
            drivers: PortSet::new(drivers),
            commands,
            start,
            stepped: 0,
            batch: Vec::new(),
            input: Vec::new(),
            output: Vec::new(),
            injected: Vec::new(),
        };
        thread.start_switch();
        thread
    }

    /// Starts the switch in its initial state.
    fn start_switch(&mut self) {
        let mut switch = self.network.switch(self.at, self.seed);
        for (port, driver) in self.ports.iter().zip(self.drivers.as_slice()) {
            switch.set_port_up(PortId(port.number), port.is_up() && driver.is_live());
        }
        let SwitchExtensions { mut hooks, mut sinks } = self.network.extensions(self.at);
        self.unserved = None;
        match self.listener.as_ref().map(|listener| listener.serve(&switch)).transpose() {
            Ok(server) => {
                self.server = server.map(|ControllerServer { listening, hook, sink }| {
                    hooks.insert(0, Box::new(hook));
                    sinks.insert(0, Arc::new(sink));
                    listening
                });
            }
            Err(failure) => self.unserved = Some(format!("P4Runtime is not served: {}", failure.sentence())),
        }
        (self.hooks, self.sinks) = (HookList::new(hooks), sinks);
        self.switch = Some(switch);
    }

    /// Ends the switch, its hooks and the connections of its controllers.
    fn crash(&mut self) {
        self.switch = None;
        self.server = None;
        self.hooks = HookList::new(Vec::new());
        self.sinks.clear();
        self.ports.iter_mut().for_each(|port| port.out.clear_in_flight());
        self.neighbours.show(false);
    }

    /// Forwards frames until a command ends the switch or all senders of commands are gone.
    pub fn run(mut self) {
        loop {
            loop {
                match self.commands.try_recv() {
                    Ok(SwitchCommand::Stop) | Err(TryRecvError::Disconnected) => return,
                    Ok(command) => self.carry_out(command),
                    Err(TryRecvError::Empty) => break,
                }
            }
            let start = self.start;
            self.handle_due(|| start.elapsed().as_nanos() as u64);
            self.wait();
        }
    }

    /// Handles everything that is due. Events that became due while this thread did not run are handled at the time at
    /// which they were due, so rates are exact and delays do not accumulate. `clock` is read once.
    fn handle_due(&mut self, clock: impl FnOnce() -> u64) {
        let received = self.read_ports();
        // Read after the frames, so that none counts as earlier than it was: a lease may have ended since.
        let now = clock();
        self.receive(now, received);
        for _ in 0..MAX_EVENTS {
            let arrivals =
                self.ports.iter().filter_map(|port| port.back.as_ref().and_then(LinkDirection::next_arrival));
            let event = self.switch.as_ref().and_then(|switch| switch.next_event()).map(Time::as_ns);
            match arrivals.chain(event).min() {
                Some(at) if at <= now => self.step(at, Vec::new()),
                _ => break,
            }
        }
        let input = std::mem::take(&mut self.input);
        self.step(now, input);
        self.send(now);
    }

    /// Reads frames from the drivers, with the places of their ports.
    fn read_ports(&mut self) -> Vec<(usize, Received)> {
        let mut received = Vec::new();
        for index in 0..self.ports.len() {
            let attached = &mut self.drivers.as_mut_slice()[index];
            if !attached.is_live() {
                continue;
            }
            if let Err(error) = attached.driver.receive(&mut self.batch, BATCH) {
                match &mut self.switch {
                    Some(switch) => self.drivers.fail(switch, index, error),
                    None => self.drivers.lose(index, error),
                }
            }
            received.extend(self.batch.drain(..).map(|frame| (index, frame)));
        }
        received
    }

    /// Takes frames from the ports: frames of hosts enter their links, frames of other switches enter the switch.
    fn receive(&mut self, now: u64, received: Vec<(usize, Received)>) {
        for (index, frame) in received {
            let port = &mut self.ports[index];
            match &mut port.back {
                Some(direction) => direction.send(now, frame.data),
                None if port.out.cable.is_up() => {
                    port.arrive(now, &frame.data, self.switch.is_none());
                    self.input.push(Frame { port: PortId(port.number), data: frame.data });
                }
                None => {}
            }
        }
    }

    /// Steps the switch at a time, with these frames and those of hosts that have arrived by then.
    fn step(&mut self, at: u64, mut input: Vec<Frame>) {
        // An overdue event must not turn the switch's time back.
        let at = at.max(self.stepped);
        self.stepped = at;
        for port in &mut self.ports {
            while let Some(data) = port.back.as_mut().and_then(|direction| direction.receive(at)) {
                port.arrive(at, &data, self.switch.is_none());
                input.push(Frame { port: PortId(port.number), data });
            }
        }
        let now = Time::from_ns(at);
        self.poll_hooks(now);
        match &mut self.switch {
            Some(switch) => {
                switch.step(now, &mut input, &mut self.output);
                notify(switch, &self.sinks);
            }
            None => self.listener.iter().for_each(ControllerListener::reject_all),
        }
        for frame in std::mem::take(&mut self.output) {
            if let Some(port) = self.ports.iter_mut().find(|port| port.number == frame.port.0) {
                port.capture(at, &frame.data);
                port.out.send(at, frame.data);
            }
        }
    }

    /// Gives every hook its turn. What a hook injects passes the switch before the next hook has its turn.
    fn poll_hooks(&mut self, now: Time) {
        let Some(switch) = &mut self.switch else { return };
        for hook in self.hooks.iter_mut() {
            let (output, injected) = (&mut self.output, &mut self.injected);
            hook.poll(&mut HookContext { now, switch, output, injected, stop_others: &|| () });
            if !self.injected.is_empty() {
                switch.step(now, &mut self.injected, &mut self.output);
            }
            notify(switch, &self.sinks);
        }
    }

    /// Sends the frames that have arrived at the other ends. The switch counts those that a driver drops.
    fn send(&mut self, now: u64) {
        // A crash drops the frames in flight from the switch.
        let Some(switch) = &mut self.switch else { return };
        for port in &mut self.ports {
            while let Some(frame) = port.out.receive(now) {
                self.drivers.send_by(switch, PortId(port.number), frame.len(), |driver| driver.send(&frame));
            }
        }
        self.drivers.flush(switch);
    }

    /// Waits for a frame, a hook, or the next event.
    fn wait(&self) {
        let now = self.start.elapsed();
        let longest = self.hooks.sleep_limit(Time::from_ns(now.as_nanos() as u64), MAX_WAIT);
        if longest.is_zero() {
            return;
        }
        let arrivals = self
            .ports
            .iter()
            .flat_map(|port| [port.out.next_arrival(), port.back.as_ref().and_then(LinkDirection::next_arrival)]);
        let event = self.switch.as_ref().and_then(|switch| switch.next_event()).map(Time::as_ns);
        let next = arrivals.flatten().chain(event).min();
        let due = next.map_or(longest, |next| Duration::from_nanos(next).saturating_sub(now)).min(longest);
        if due <= SPIN {
            std::thread::yield_now();
            return;
        }
        let descriptors: Vec<_> = self.drivers.poll_fds().chain(self.hooks.poll_fds()).collect();
        if ports::wait(&descriptors, due - SPIN / 2).is_err() {
            std::thread::sleep(due - SPIN / 2);
        }
    }

    fn carry_out(&mut self, command: SwitchCommand) {
        match command {
            SwitchCommand::Stop => {}
            SwitchCommand::Fail(true) => self.crash(),
            SwitchCommand::Fail(false) if self.switch.is_some() => {}
            SwitchCommand::Fail(false) => {
                self.start_switch();
                self.neighbours.show(true);
            }
            SwitchCommand::Link { port, up, done } => {
                for port in self.numbered(port) {
                    port.out.set_up(up);
                    port.back.iter_mut().for_each(|direction| direction.set_up(up));
                }
                self.update_port(port);
                let _ = done.send(Ok(()));
            }
            SwitchCommand::FarEnd { port, runs } => {
                self.numbered(port).for_each(|port| port.far_end_runs = runs);
                self.update_port(port);
            }
            SwitchCommand::Suspend { done, .. } => {
                let name = self.network.topology().switches[self.at].name.clone();
                let _ = done.send(Err(RequestError::NoProcess(name)));
            }
            SwitchCommand::Slow { port, by_ns, done } => {
                self.numbered(port).for_each(|port| port.out.set_service(by_ns));
                let _ = done.send(Ok(()));
            }
            SwitchCommand::Capture { port, to, done } => {
                // A silent port would keep the captures whose readers are gone.
                self.ports.iter_mut().for_each(|port| port.captures.retain(CaptureSender::is_open));
                if let Some(port) = self.numbered(port).next() {
                    port.captures.push(to);
                }
                let _ = done.send(Ok(()));
            }
            SwitchCommand::Status(to) => {
                // The receiver may have been dropped.
                let _ = to.send(self.status());
            }
        }
    }

    /// Sets the state of a port in the switch.
    fn update_port(&mut self, number: u32) {
        let is_live = self.drivers.as_slice().iter().any(|driver| driver.id.0 == number && driver.is_live());
        let up = is_live && self.numbered(number).all(|port| port.is_up());
        if let Some(switch) = &mut self.switch {
            switch.set_port_up(PortId(number), up);
        }
    }

    /// Returns the port with a number.
    fn numbered(&mut self, number: u32) -> impl Iterator<Item = &mut SwitchPort> {
        self.ports.iter_mut().filter(move |port| port.number == number)
    }

    fn status(&self) -> SwitchStatus {
        let ports = self.ports.iter().zip(self.drivers.as_slice()).map(|(port, driver)| PortStatus {
            port: port.number,
            up: port.is_up(),
            received: port.received,
            lost_while_failed: port.lost_while_failed,
            sent: port.out.cable.stats.carried,
            sent_bytes: port.out.cable.stats.carried_bytes,
            dropped: port.out.dropped(),
            from_host: port.back.as_ref().map(|direction| direction.cable.stats.carried),
            from_host_bytes: port.back.as_ref().map(|direction| direction.cable.stats.carried_bytes),
            from_host_dropped: port.back.as_ref().map(LinkDirection::dropped),
            failure: driver.failure.as_ref().map(ToString::to_string),
        });
        let counters = self.switch.iter().flat_map(|switch| {
            let counters = switch.registry().iter().filter(|(_, value)| *value > 0);
            counters.map(|(name, value)| (name.to_owned(), value)).collect::<Vec<_>>()
        });
        SwitchStatus {
            failed: self.switch.is_none(),
            is_suspended: false,
            why: self.unserved.clone(),
            pid: None,
            ports: ports.collect(),
            counters: counters.collect(),
        }
    }
}

/// Passes the notifications of a switch to the sinks.
fn notify<S: PacketSwitch>(switch: &mut S, sinks: &[Arc<dyn NotificationSink>]) {
    if switch.has_notifications() {
        let notifications = switch.take_notifications();
        for sink in sinks {
            sink.receive(switch.program(), &notifications);
        }
    }
}

#[cfg(test)]
mod tests;
