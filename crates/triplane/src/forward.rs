//! Drives a switch: frames from its ports into `step`, frames from `step` out of its ports.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ports::{Port, PortError, PortStats, Received};
use switch::{Device, Frame, PortId, Time};
use v1model::Switch;

use crate::messages::Messages;

/// Frames taken from one port before the next one has its turn.
const BATCH: usize = 64;

/// The longest wait between two looks at the stop flag.
const MAX_WAIT: Duration = Duration::from_millis(100);

/// A port of the switch and the driver behind it.
struct Attached {
    id: PortId,
    driver: Box<dyn Port>,
    /// Why the driver can be used no longer.
    failed: Option<PortError>,
}

/// A switch with its ports.
pub struct Forwarder {
    switch: Switch,
    ports: Vec<Attached>,
    input: Vec<Frame>,
    output: Vec<Frame>,
    batch: Vec<Received>,
    messages: Messages,
}

impl Forwarder {
    /// A switch and drivers for its ports.
    pub fn new(switch: Switch, ports: Vec<(PortId, Box<dyn Port>)>) -> Self {
        let ports = ports.into_iter().map(|(id, driver)| Attached { id, driver, failed: None }).collect();
        let messages = Messages::default();
        Forwarder { switch, ports, input: Vec::new(), output: Vec::new(), batch: Vec::new(), messages }
    }

    /// Where what the switch tells the control plane goes; it is counted in any case.
    #[must_use]
    pub fn with_messages(mut self, messages: Messages) -> Self {
        self.messages = messages;
        self
    }

    /// What the switch told the control plane.
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// What the switch told the control plane, to finish.
    pub fn messages_mut(&mut self) -> &mut Messages {
        &mut self.messages
    }

    /// The switch.
    pub fn switch(&self) -> &Switch {
        &self.switch
    }

    /// The drivers' own counts, by port.
    pub fn port_stats(&self) -> impl Iterator<Item = (PortId, &str, PortStats)> {
        self.ports.iter().map(|port| (port.id, port.driver.name(), port.driver.stats()))
    }

    /// The failures of ports that went away on the way.
    pub fn failures(&self) -> impl Iterator<Item = (PortId, &PortError)> {
        self.ports.iter().filter_map(|port| port.failed.as_ref().map(|error| (port.id, error)))
    }

    /// Forwards in real time until `stop` is set, `limit` is over, or no port is left. A port that fails is taken
    /// down; the others go on.
    pub fn run_live(&mut self, stop: &AtomicBool, limit: Option<Duration>) {
        let start = Instant::now();
        let deadline = limit.and_then(|limit| start.checked_add(limit));
        while !stop.load(Ordering::Relaxed) && deadline.is_none_or(|deadline| Instant::now() < deadline) {
            let mut received = 0;
            for at in 0..self.ports.len() {
                received += self.receive(at);
            }
            let now = Time::from_ns(start.elapsed().as_nanos() as u64);
            self.switch.step(now, &mut self.input, &mut self.output);
            self.send();
            if self.ports.iter().all(|port| port.failed.is_some() || port.driver.finished()) {
                return self.drain(now);
            }
            if received == 0 {
                self.wait(now, deadline);
            }
        }
    }

    /// Runs capture files to their end: frames enter in the order of their times, and the switch's time is theirs.
    pub fn run_offline(&mut self) {
        let mut waiting: Vec<Option<Received>> = self.ports.iter().map(|_| None).collect();
        let mut start = None;
        let mut now = Time::ZERO;
        loop {
            for (at, slot) in waiting.iter_mut().enumerate() {
                if slot.is_none() {
                    *slot = self.receive_one(at);
                }
            }
            let time = |frame: &Received| frame.time_ns.unwrap_or(0);
            let next = waiting.iter().enumerate().filter_map(|(at, frame)| Some((time(frame.as_ref()?), at))).min();
            let Some((time_ns, at)) = next else { break };
            let start_ns = *start.get_or_insert(time_ns);
            // Captures whose times go back do not turn the switch's clock back.
            let arrival = now.max(Time::from_ns(time_ns.saturating_sub(start_ns)));
            while let Some(event) = self.next_departure().filter(|event| *event < arrival) {
                self.step_offline(event, start_ns);
            }
            now = arrival;
            if let Some(frame) = waiting[at].take() {
                self.input.push(Frame { port: self.ports[at].id, data: frame.data });
            }
            self.step_offline(now, start_ns);
        }
        let start_ns = start.unwrap_or(0);
        while let Some(event) = self.next_departure() {
            now = now.max(event);
            self.step_offline(now, start_ns);
        }
    }

    fn step_offline(&mut self, now: Time, start_ns: u64) {
        self.switch.step(now, &mut self.input, &mut self.output);
        for port in &mut self.ports {
            port.driver.set_time(start_ns.saturating_add(now.as_ns()));
        }
        self.send();
    }

    /// The switch's next event while packets wait in queues. Without them nothing more can leave, although entries that
    /// age give a switch events for ever.
    fn next_departure(&self) -> Option<Time> {
        self.switch.next_event().filter(|_| self.switch.waiting() > 0)
    }

    /// Lets what waits in queues leave, when nothing can come in any more.
    fn drain(&mut self, mut now: Time) {
        while let Some(event) = self.next_departure() {
            now = now.max(event);
            self.switch.step(now, &mut self.input, &mut self.output);
            self.send();
        }
    }

    fn receive(&mut self, at: usize) -> usize {
        let port = &mut self.ports[at];
        if port.failed.is_some() {
            return 0;
        }
        match port.driver.receive(&mut self.batch, BATCH) {
            Ok(_) => {}
            Err(error) => self.fail(at, error),
        }
        let id = self.ports[at].id;
        let received = self.batch.len();
        self.input.extend(self.batch.drain(..).map(|frame| Frame { port: id, data: frame.data }));
        received
    }

    fn receive_one(&mut self, at: usize) -> Option<Received> {
        let port = &mut self.ports[at];
        if port.failed.is_some() {
            return None;
        }
        if let Err(error) = port.driver.receive(&mut self.batch, 1) {
            self.fail(at, error);
        }
        self.batch.pop()
    }

    fn send(&mut self) {
        for notification in self.switch.take_notifications() {
            self.messages.take(self.switch.program(), &notification);
        }
        for frame in std::mem::take(&mut self.output) {
            let Some(at) = self.ports.iter().position(|port| port.id == frame.port) else { continue };
            if self.ports[at].failed.is_none()
                && let Err(error) = self.ports[at].driver.send(&frame.data)
            {
                self.fail(at, error);
            }
        }
        for at in 0..self.ports.len() {
            if self.ports[at].failed.is_none()
                && let Err(error) = self.ports[at].driver.flush()
            {
                self.fail(at, error);
            }
        }
    }

    fn fail(&mut self, at: usize, error: PortError) {
        let port = &mut self.ports[at];
        self.switch.set_port_up(port.id, false);
        port.failed = Some(error);
    }

    fn wait(&mut self, now: Time, deadline: Option<Instant>) {
        let mut timeout = MAX_WAIT;
        if let Some(event) = self.switch.next_event() {
            timeout = timeout.min(Duration::from_nanos(event.since_ns(now)));
        }
        if let Some(deadline) = deadline {
            timeout = timeout.min(deadline.saturating_duration_since(Instant::now()));
        }
        let live = self.ports.iter().filter(|port| port.failed.is_none());
        let descriptors: Vec<_> = live.filter_map(|port| port.driver.poll_fd()).collect();
        if ports::wait(&descriptors, timeout).is_err() {
            // Out of descriptors or memory for a moment: polling goes on, a little slower.
            std::thread::sleep(timeout);
        }
    }
}
