//! Runs the thread of a switch: it moves frames between the switch and its ports, over shaped links.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use p4runtime_server::Listening;
use ports::{Port, Received};
use runtime::{Hook, HookContext, HookList, NotificationSink, PortSet};
use switch::{Device, Frame, PacketSwitch, PortId, SwitchControl, Time};

use crate::LabError;
use crate::capture::CaptureSender;
use crate::controller::{ControllerListener, ControllerServer};
use crate::kernel_part::{self, KernelNotes, KernelPackets, KernelPart, KernelPlan, KernelPort};
use crate::link_direction::LinkDirection;
use crate::live_network::{LiveNetwork, SwitchExtensions};
use crate::neighbours::Neighbours;
use crate::request_error::RequestError;
use crate::switch_port::SwitchPort;
use crate::switch_status::{KernelStatus, SwitchStatus};
use crate::veth_links;

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
    /// Has the kernel hand over all packets, before the process of the switch is suspended, or no longer.
    Hold { is_held: bool, done: Completion },
    /// Sends the frames that pass a port until the receiver is gone.
    Capture { port: u32, to: CaptureSender, done: Completion },
    /// Sends the state of the switch.
    Status(Sender<SwitchStatus>),
    /// Ends the switch.
    Stop,
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
    /// Its program in the kernel, and the ports that are to run it there.
    kernel: Option<Box<dyn KernelPart<N::Switch>>>,
    kernel_plan: KernelPlan,
    kernel_notes: KernelNotes,
    /// The reason why the kernel ports have become ordinary ports. They stay that.
    kernel_fallback: Option<String>,
    /// The P4Runtime server. Its hook and its sink are in the lists below.
    server: Option<Listening>,
    /// The hooks of the switch; none after a crash.
    hooks: HookList<N::Switch>,
    sinks: Vec<Arc<dyn NotificationSink>>,
    /// The reason why controllers are not served, or why the switch did not restart.
    why: Option<String>,
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
    /// Creates a switch of a network, by its index in the topology, and runs its program in the kernel if the network
    /// plans that. `start` is the start of the lab. The neighbours see crashes and restarts.
    ///
    /// # Errors
    /// Returns an error if the program cannot run in the kernel although it must.
    pub fn new(
        (network, at, seed): (Arc<N>, usize, u64),
        listener: Option<ControllerListener<N>>,
        neighbours: Neighbours,
        ports: Vec<(SwitchPort, Box<dyn Port>)>,
        commands: Receiver<SwitchCommand>,
        start: Instant,
    ) -> Result<SwitchThread<N>, LabError> {
        let kernel_plan = network.kernel_plan(at);
        let with_ids = ports.into_iter().map(|(port, driver)| ((PortId(port.number), driver), port));
        let (drivers, ports): (Vec<_>, Vec<_>) = with_ids.unzip();
        let mut thread = SwitchThread {
            network,
            at,
            seed,
            listener,
            neighbours,
            switch: None,
            kernel: None,
            kernel_plan,
            kernel_notes: KernelNotes::default(),
            kernel_fallback: None,
            server: None,
            hooks: HookList::new(Vec::new()),
            sinks: Vec::new(),
            why: None,
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
        thread.create_switch().map_err(|reason| {
            let switch = thread.network.topology().switches[thread.at].name.clone();
            LabError::NotInKernel { switch, reason }
        })?;
        Ok(thread)
    }

    /// Creates the switch in its initial state, and runs its program in the kernel if it is to. This takes privileges
    /// that its thread may not have later.
    fn create_switch(&mut self) -> Result<(), String> {
        let mut switch = self.network.switch(self.at, self.seed);
        for (port, driver) in self.ports.iter().zip(self.drivers.as_slice()) {
            switch.set_port_up(PortId(port.number), port.is_up() && driver.is_live());
        }
        // A capture outlives a crash.
        self.ports.iter_mut().for_each(|port| port.is_diverted = port.needs_thread());
        self.kernel = self.attach_kernel(&mut switch)?;
        self.switch = Some(switch);
        Ok(())
    }

    /// Runs the program of a new switch in the kernel, on the ports of the plan.
    fn attach_kernel(&mut self, switch: &mut N::Switch) -> Result<Option<Box<dyn KernelPart<N::Switch>>>, String> {
        self.kernel_notes.clear();
        if self.kernel_plan.ports.is_empty() {
            return Ok(None);
        }
        if let Some(reason) = &self.kernel_fallback {
            self.kernel_notes.add_state(reason, false);
            return Ok(None);
        }
        if let Some(reason) = kernel_part::obstacle() {
            self.kernel_notes.add_state(&format!("all ports are ordinary ports: {reason}"), false);
            return if self.kernel_plan.is_required { Err(reason.to_owned()) } else { Ok(None) };
        }
        let mut attachments = Vec::new();
        for (port, SwitchPort { is_diverted, .. }) in self.drivers.as_slice().iter().zip(&self.ports) {
            if !self.kernel_plan.ports.contains(&port.id.0) {
                continue;
            }
            match (port.driver.attachment(), port.driver.note()) {
                (Some(attachment), _) => {
                    attachments.push(KernelPort { id: port.id, attachment, is_diverted: *is_diverted });
                }
                (None, note) if self.kernel_plan.is_required => {
                    return Err(format!("port {}: {}", port.id, note.unwrap_or("it is an ordinary port")));
                }
                (None, note) => note
                    .iter()
                    .for_each(|note| self.kernel_notes.add_state(&format!("port {}: {note}", port.id), false)),
            }
        }
        if attachments.is_empty() {
            return Ok(None);
        }
        match self.network.attach_kernel(self.at, switch, attachments, self.kernel_notes.clone()) {
            Ok(part) => Ok(Some(part)),
            Err(reason) if self.kernel_plan.is_required => Err(reason),
            Err(reason) => {
                self.kernel_notes.add_state(&reason, false);
                self.kernel_fallback = Some(reason);
                self.use_ordinary_ports();
                Ok(None)
            }
        }
    }

    /// Replaces the drivers of kernel ports by those of ordinary ports. A port whose driver cannot be opened keeps the
    /// one that it has, which hands all frames to the switch.
    fn use_ordinary_ports(&mut self) {
        let is_kernel_port = |id: PortId| self.kernel_plan.ports.contains(&id.0);
        for port in self.drivers.as_mut_slice().iter_mut().filter(|port| is_kernel_port(port.id)) {
            if let Ok(driver) = veth_links::ordinary_port(port.driver.name()) {
                port.replace_driver(driver);
            }
        }
    }

    /// Starts the services of a switch that was created: its hooks, and the server for its controllers.
    pub fn start_services(&mut self) {
        let Some(switch) = &self.switch else { return };
        let SwitchExtensions { mut hooks, mut sinks } = self.network.extensions(self.at);
        self.why = None;
        match self.listener.as_ref().map(|listener| listener.serve(switch)).transpose() {
            Ok(server) => {
                self.server = server.map(|ControllerServer { listening, hook, sink }| {
                    hooks.insert(0, Box::new(hook));
                    sinks.insert(0, Arc::new(sink));
                    listening
                });
            }
            Err(failure) => self.why = Some(format!("P4Runtime is not served: {}", failure.sentence())),
        }
        let kernel = self.kernel.as_mut().and_then(|kernel| kernel.take_hook());
        let hooks: Vec<Box<dyn Hook<N::Switch>>> = kernel.into_iter().chain(hooks).collect();
        (self.hooks, self.sinks) = (HookList::new(hooks), sinks);
    }

    /// Ends the switch, its hooks and the connections of its controllers.
    fn crash(&mut self) {
        if let (Some(kernel), Some(switch)) = (&mut self.kernel, &mut self.switch) {
            kernel.end(switch);
            for port in &mut self.ports {
                port.before_crash += kernel.packets(switch, PortId(port.number));
            }
        }
        (self.switch, self.kernel) = (None, None);
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
            self.divert_ports();
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
            SwitchCommand::Fail(false) => match self.create_switch() {
                Ok(()) => {
                    self.start_services();
                    self.neighbours.show(true);
                }
                Err(reason) => self.why = Some(reason),
            },
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
            SwitchCommand::Hold { is_held, done } => {
                self.ports.iter_mut().for_each(|port| port.is_held = is_held);
                self.divert_ports();
                let _ = done.send(Ok(()));
            }
            SwitchCommand::Slow { port, by_ns, done } => {
                self.numbered(port).for_each(|port| port.out.set_service(by_ns));
                self.divert_ports();
                let _ = done.send(Ok(()));
            }
            SwitchCommand::Capture { port, to, done } => {
                // A silent port would keep the captures whose readers are gone.
                self.ports.iter_mut().for_each(|port| port.captures.retain(CaptureSender::is_open));
                if let Some(port) = self.numbered(port).next() {
                    port.captures.push(to);
                }
                self.divert_ports();
                let _ = done.send(Ok(()));
            }
            SwitchCommand::Status(to) => {
                // The daemon asks when all switches are ready. A neighbour's ports may have become ordinary by then.
                self.kernel.iter().for_each(|kernel| kernel.check_devices());
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
            // Packets in the kernel see it, too, before the command is done.
            switch.publish();
        }
    }

    /// Makes the kernel hand over the packets of the ports whose frames must pass this thread, and of no others.
    fn divert_ports(&mut self) {
        let (Some(kernel), Some(switch)) = (&self.kernel, &mut self.switch) else { return };
        for port in &mut self.ports {
            let needs_thread = port.needs_thread();
            if needs_thread != port.is_diverted {
                port.is_diverted = needs_thread;
                kernel.divert(switch, PortId(port.number), needs_thread);
                switch.publish();
            }
        }
    }

    /// Returns the port with a number.
    fn numbered(&mut self, number: u32) -> impl Iterator<Item = &mut SwitchPort> {
        self.ports.iter_mut().filter(move |port| port.number == number)
    }

    fn status(&mut self) -> SwitchStatus {
        if let Some(switch) = &mut self.switch {
            switch.collect_counts();
        }
        let ports = self.ports.iter().zip(self.drivers.as_slice());
        let ports = ports.map(|(port, driver)| port.status(driver, self.packets_in_kernel(port)));
        let counters = self.switch.iter().flat_map(|switch| {
            let counters = switch.registry().iter().filter(|(_, value)| *value > 0);
            counters.map(|(name, value)| (name.to_owned(), value)).collect::<Vec<_>>()
        });
        SwitchStatus {
            shim: None,
            failed: self.switch.is_none(),
            is_suspended: false,
            why: self.why.clone(),
            pid: None,
            kernel: self.kernel_status(),
            ports: ports.collect(),
            counters: counters.collect(),
        }
    }

    /// Returns the packets of a port that the present code in the kernel processed.
    fn packets_in_kernel(&self, port: &SwitchPort) -> KernelPackets {
        let running = self.kernel.as_ref().zip(self.switch.as_ref());
        running.map_or_else(Default::default, |(kernel, switch)| kernel.packets(switch, PortId(port.number)))
    }

    /// Returns the state of the program in the kernel; `None` if it was not to run there.
    fn kernel_status(&self) -> Option<KernelStatus> {
        if self.kernel_plan.ports.is_empty() {
            return None;
        }
        let mut all = KernelPackets::default();
        for port in &self.ports {
            all += port.before_crash;
            all += self.packets_in_kernel(port);
        }
        let running = self.kernel.as_ref().zip(self.switch.as_ref());
        let is_active = running.is_some_and(|(kernel, switch)| kernel.is_active(switch));
        let ids = self.kernel.as_ref().map_or_else(Vec::new, |kernel| kernel.ports());
        let drivers = self.drivers.as_slice().iter().filter(|port| ids.contains(&port.id));
        let kernel_ports: Vec<(u32, &str)> = drivers.map(|port| (port.id.0, port.driver.name())).collect();
        let mut notes = self.kernel_notes.to_vec();
        for (port, interface) in &kernel_ports {
            if ports::accepts_redirects(interface) == Some(false) {
                notes.push(format!(
                    "port {port} leads to an ordinary port, to which the kernel cannot send, so the switch does"
                ));
            }
        }
        Some(KernelStatus {
            is_active,
            ports: kernel_ports.iter().map(|(port, _)| *port).collect(),
            packets: all.received,
            switch_packets: self.ports.iter().map(|port| port.received).sum(),
            crowded: all.crowded,
            reason: self.kernel_notes.reason().filter(|_| !is_active),
            notes,
        })
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
