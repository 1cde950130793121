//! One thread's work: a switch, and its handles of the ports.
//!
//! ```text
//! turn:  for each port { receive up to 32 frames ─> switch, in place ─> the ports they leave by ─> flush those }
//! ```
//!
//! Frames stay in their driver's memory from the port they come in by to the one they leave by, where the drivers can do
//! that. What a driver could not send counts as dropped, and not as sent.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use ports::{Frame, Port, PortError, PortStats};
use switch::{Device, DropReason, Egress, FrameMut, PortId, Time};
use v1model::Switch;

use crate::forward::Control;
use crate::messages::Messages;

/// Frames taken from one port before the next one has its turn.
const BATCH: usize = 32;

/// How often a worker that waits looks whether its ports' devices are still there, in nanoseconds.
const CHECK_NS: u64 = 100_000_000;

/// The time since the forwarding began.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    /// The switch's time.
    pub fn now(&self) -> Time {
        Time::from_ns(self.0.elapsed().as_nanos() as u64)
    }
}

/// A port of the switch and the driver behind it.
pub struct Attached {
    /// The port.
    pub id: PortId,
    /// The driver.
    pub driver: Box<dyn Port>,
    /// Why the driver can be used no longer.
    pub failed: Option<PortError>,
    /// What the driver had counted when it was last looked at.
    seen: PortStats,
    /// Whether it was given frames that may still wait to be sent.
    is_touched: bool,
}

impl Attached {
    fn new(id: PortId, driver: Box<dyn Port>) -> Attached {
        Attached { id, driver, failed: None, seen: PortStats::default(), is_touched: false }
    }

    fn is_live(&self) -> bool {
        self.failed.is_none()
    }
}

/// A frame on its way through the switch; nothing is left once it has been given to a port.
struct Carried(Option<Frame>);

impl FrameMut for Carried {
    fn headroom(&mut self) -> (&mut [u8], usize) {
        self.0.as_mut().map_or((&mut [], 0), Frame::with_headroom)
    }

    fn set_start(&mut self, start: usize) {
        if let Some(frame) = &mut self.0 {
            frame.set_start(start);
        }
    }
}

/// What is told of a port that went away.
pub type OnLoss = Box<dyn FnMut(PortId, &PortError) + Send>;

/// A switch with its ports, in one thread.
pub struct Worker {
    switch: Switch,
    ports: Vec<Attached>,
    messages: Messages,
    on_loss: OnLoss,
    received: Vec<Frame>,
    batch: Vec<Carried>,
    departed: Vec<Egress>,
    made: Vec<switch::Frame>,
    /// When the devices were last looked for.
    checked: Time,
}

impl Worker {
    /// A switch and drivers for its ports.
    pub fn new(switch: Switch, ports: Vec<(PortId, Box<dyn Port>)>) -> Worker {
        Worker {
            switch,
            ports: ports.into_iter().map(|(id, driver)| Attached::new(id, driver)).collect(),
            messages: Messages::default(),
            on_loss: Box::new(|_, _| ()),
            received: Vec::new(),
            batch: Vec::new(),
            departed: Vec::new(),
            made: Vec::new(),
            checked: Time::ZERO,
        }
    }

    /// Where what the switch tells the control plane goes; it is counted in any case.
    pub fn set_messages(&mut self, messages: Messages) {
        self.messages = messages;
    }

    /// Who is told at once of a port that goes away.
    pub fn set_on_loss(&mut self, on_loss: OnLoss) {
        self.on_loss = on_loss;
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

    /// Lets the control plane change the switch, between two turns.
    pub fn control(&mut self, now: Time, control: &mut dyn Control, stop_others: &dyn Fn()) {
        control.poll(now, &mut self.switch, &mut self.made, stop_others);
        self.departed.extend(self.made.drain(..).map(Egress::Owned));
        self.send();
    }

    /// Goes on with another switch. What waits in the queues of the one before leaves first.
    pub fn replace(&mut self, now: Time, next: Switch) {
        self.switch.drain(now, &mut self.made);
        self.departed.extend(self.made.drain(..).map(Egress::Owned));
        self.send();
        self.switch = next;
    }

    /// The switch, to change between two turns.
    pub fn switch_mut(&mut self) -> &mut Switch {
        &mut self.switch
    }

    /// The ports.
    pub fn ports(&self) -> &[Attached] {
        &self.ports
    }

    /// Whether no frame can come in any more.
    pub fn is_finished(&self) -> bool {
        self.ports.iter().all(|port| !port.is_live() || port.driver.finished())
    }

    /// Takes a batch from every port and sends what comes of it. Says how many frames came in.
    pub fn turn(&mut self, clock: &Clock) -> usize {
        let count = (0..self.ports.len()).map(|at| self.serve(at, clock)).sum();
        if count == 0 && self.switch.next_event().is_some() {
            self.advance(clock.now());
        }
        count
    }

    /// Takes a batch from one port.
    fn serve(&mut self, at: usize, clock: &Clock) -> usize {
        let port = &mut self.ports[at];
        if !port.is_live() {
            return 0;
        }
        let result = port.driver.receive_frames(&mut self.received, BATCH);
        let id = port.id;
        if let Err(error) = result {
            self.fail(at, error);
        }
        let count = self.received.len();
        if count == 0 {
            return 0;
        }
        self.batch.extend(self.received.drain(..).map(|frame| Carried(Some(frame))));
        self.switch.step_in_place(clock.now(), id, &mut self.batch, &mut self.departed);
        self.send();
        count
    }

    /// Lets the switch do what it does by itself, and takes frames that somebody else received.
    pub fn step(&mut self, now: Time, input: &mut Vec<switch::Frame>) {
        self.switch.step(now, input, &mut self.made);
        self.departed.extend(self.made.drain(..).map(Egress::Owned));
        self.send();
    }

    fn advance(&mut self, now: Time) {
        self.step(now, &mut Vec::new());
    }

    /// Lets what waits in queues leave, when nothing can come in any more.
    pub fn drain(&mut self, mut now: Time) {
        while let Some(event) = self.next_departure() {
            now = now.max(event);
            self.advance(now);
        }
    }

    /// The switch's next event while packets wait in queues. Without them nothing more can leave, although entries that
    /// age give a switch events for ever.
    pub fn next_departure(&self) -> Option<Time> {
        self.switch.next_event().filter(|_| self.switch.waiting() > 0)
    }

    /// Takes one frame from a port.
    pub fn receive_one(&mut self, at: usize) -> Option<Frame> {
        let port = &mut self.ports[at];
        if !port.is_live() {
            return None;
        }
        if let Err(error) = port.driver.receive_frames(&mut self.received, 1) {
            self.fail(at, error);
        }
        self.received.pop()
    }

    /// Tells the drivers that write times down what time it is, in nanoseconds since 1970.
    pub fn set_time(&mut self, now_ns: u64) {
        for port in &mut self.ports {
            port.driver.set_time(now_ns);
        }
    }

    /// Gives what departed to the ports, and has those send.
    fn send(&mut self) {
        if self.switch.has_notifications() {
            let told = self.switch.take_notifications();
            self.messages.take_all(self.switch.program(), told);
        }
        let mut departed = std::mem::take(&mut self.departed);
        for departed in departed.drain(..) {
            match departed {
                Egress::InPlace { index: number, port } => {
                    let Some(frame) = self.batch[number].0.take() else { continue };
                    let len = frame.len();
                    self.send_by(port, len, |driver| driver.send_frame(frame));
                }
                Egress::Owned(frame) => {
                    self.send_by(frame.port, frame.data.len(), |driver| driver.send(&frame.data));
                }
            }
        }
        self.departed = departed;
        // What is left of the batch was dropped.
        Frame::drop_all(self.batch.drain(..).filter_map(|carried| carried.0));
        for at in 0..self.ports.len() {
            if std::mem::take(&mut self.ports[at].is_touched) && self.ports[at].is_live() {
                if let Err(error) = self.ports[at].driver.flush() {
                    self.fail(at, error);
                }
                self.settle(at);
            }
        }
    }

    fn send_by(
        &mut self,
        port: PortId,
        len: usize,
        send: impl FnOnce(&mut dyn Port) -> Result<ports::Sent, PortError>,
    ) {
        let Some(at) = self.ports.iter().position(|attached| attached.id == port) else { return };
        let attached = &mut self.ports[at];
        if !attached.is_live() {
            return self.switch.take_back_sent(port, &[(DropReason::PortLost, 1)], len as u64);
        }
        attached.is_touched = true;
        if let Err(error) = send(&mut *attached.driver) {
            self.switch.take_back_sent(port, &[(DropReason::PortLost, 1)], len as u64);
            self.fail(at, error);
        }
    }

    /// Has the switch know what a driver could not send.
    fn settle(&mut self, at: usize) {
        let port = &mut self.ports[at];
        let (now, before) = (port.driver.counted(), port.seen);
        if now.tx_dropped() == before.tx_dropped() {
            return;
        }
        port.seen = now;
        let lost = [
            (DropReason::PortFull, now.tx_queue_full - before.tx_queue_full),
            (DropReason::PortLength, now.tx_bad_length - before.tx_bad_length),
            (DropReason::PortLost, now.tx_link_down - before.tx_link_down),
        ];
        self.switch.take_back_sent(port.id, &lost, now.tx_dropped_bytes - before.tx_dropped_bytes);
    }

    fn fail(&mut self, at: usize, error: PortError) {
        let port = &mut self.ports[at];
        self.switch.set_port_up(port.id, false);
        (self.on_loss)(port.id, &error);
        port.failed = Some(error);
    }

    /// Looks now and then whether the devices of the ports are still there, since not every driver hears of it.
    fn check(&mut self, now: Time) {
        if now.since_ns(self.checked) < CHECK_NS {
            return;
        }
        self.checked = now;
        for at in 0..self.ports.len() {
            if self.ports[at].is_live()
                && let Err(error) = self.ports[at].driver.check()
            {
                self.fail(at, error);
            }
        }
    }

    /// Waits until a frame can come in, something is to leave, `more` is readable, or `longest` is over.
    pub fn wait(&mut self, now: Time, longest: Duration, more: Option<RawFd>) {
        self.check(now);
        let due = self.switch.next_event().map(|event| Duration::from_nanos(event.since_ns(now)));
        let timeout = due.map_or(longest, |due| due.min(longest));
        let live = self.ports.iter().filter(|port| port.is_live());
        let descriptors: Vec<_> = live.filter_map(|port| port.driver.poll_fd()).chain(more).collect();
        if ports::wait(&descriptors, timeout).is_err() {
            // Out of descriptors or memory for a moment: polling goes on, a little slower.
            std::thread::sleep(timeout);
        }
    }
}
