//! Drives a switch and its ports in one thread.
//!
//! ```text
//! poll:  for each port { receive up to 32 frames ─> switch, in place ─> the ports they leave by ─> flush those }
//! ```
//!
//! Where the drivers allow it, a frame stays in its driver's memory from the port it enters by to the port it leaves
//! by. A frame that a driver could not send counts as dropped, not as sent.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use ports::{Frame, Port};
use switch::{Egress, FrameMut, PacketSwitch, PortId, Time};

use crate::clock::Clock;
use crate::hook::{Hook, HookContext};
use crate::links::{LinkCallback, PortLinks};
use crate::port_set::{AttachedPort, PortLossCallback, PortSet};
use crate::sink::NotificationSink;

/// Maximum number of frames that are taken from one port before the next port is polled.
const BATCH_FRAMES: usize = 32;

/// Interval at which an idle worker checks that the devices of its ports still exist, in nanoseconds.
const DEVICE_CHECK_NS: u64 = 100_000_000;

/// Number of polls, or batches in them, after which a worker that does not sleep looks for changes of links, which is a
/// system call.
const POLLS_BETWEEN_LINKS: u32 = 64;

/// Minimum interval between two queries for the links of ports that are down and receive frames, in nanoseconds: a
/// query waits for the kernel's lock for the configuration of all interfaces.
const RECHECK_NS: u64 = 1_000_000;

/// A frame of the batch that the switch processes; `None` once a port has it.
struct BatchFrame(Option<Frame>);

impl FrameMut for BatchFrame {
    fn headroom(&mut self) -> (&mut [u8], usize) {
        self.0.as_mut().map_or((&mut [], 0), Frame::with_headroom)
    }

    fn set_start(&mut self, start: usize) {
        if let Some(frame) = &mut self.0 {
            frame.set_start(start);
        }
    }

    fn truncate(&mut self, length: usize) {
        if let Some(frame) = &mut self.0 {
            frame.truncate(length);
        }
    }
}

/// A switch with its ports, in one thread.
pub struct Worker<S> {
    switch: S,
    ports: PortSet,
    sinks: Vec<Arc<dyn NotificationSink>>,
    received: Vec<Frame>,
    batch: Vec<BatchFrame>,
    egress: Vec<Egress>,
    output: Vec<switch::Frame>,
    injected: Vec<switch::Frame>,
    /// Time of the last check of the devices.
    devices_checked: Time,
    links: Option<PortLinks>,
    /// Polls since the last look for changes of links.
    polls: u32,
    /// Time at which the link of a port that is down was last asked for because frames came.
    rechecked: Option<Time>,
}

impl<S: PacketSwitch> Worker<S> {
    /// Returns a worker for a switch and the drivers of its ports.
    pub fn new(switch: S, ports: Vec<(PortId, Box<dyn Port>)>) -> Worker<S> {
        Worker {
            switch,
            ports: PortSet::new(ports),
            sinks: Vec::new(),
            received: Vec::new(),
            batch: Vec::new(),
            egress: Vec::new(),
            output: Vec::new(),
            injected: Vec::new(),
            devices_checked: Time::ZERO,
            links: None,
            polls: 0,
            rechecked: None,
        }
    }

    /// Sets the sinks of the switch's notifications.
    pub fn set_sinks(&mut self, sinks: Vec<Arc<dyn NotificationSink>>) {
        self.sinks = sinks;
    }

    /// Sets the callback for a port that can be used no longer.
    pub fn set_on_port_loss(&mut self, on_port_loss: PortLossCallback) {
        self.ports.set_on_loss(on_port_loss);
    }

    /// Takes ports down from here on while they have no link, and calls this at each change.
    ///
    /// # Errors
    /// If the process can open no more descriptors.
    pub fn watch_links(&mut self, on_change: LinkCallback) -> io::Result<()> {
        self.links = PortLinks::watch(&self.ports, &mut self.switch, on_change)?;
        Ok(())
    }

    /// Takes ports up and down whose links have changed. Returns whether there was news.
    pub fn follow_links(&mut self) -> bool {
        self.polls = 0;
        self.links.as_mut().is_some_and(|links| links.follow(&self.ports, &mut self.switch))
    }

    /// Stops watching the link of a port that can be used no longer.
    pub fn forget_link(&mut self, id: PortId) {
        if let Some(links) = &mut self.links {
            links.forget(id, &self.ports);
        }
    }

    /// Returns the switch.
    pub fn switch(&self) -> &S {
        &self.switch
    }

    /// Returns the switch, to change it between two batches.
    pub fn switch_mut(&mut self) -> &mut S {
        &mut self.switch
    }

    /// Returns the ports.
    pub fn ports(&self) -> &[AttachedPort] {
        self.ports.as_slice()
    }

    /// Ends the worker and returns the switch and the ports.
    pub fn into_parts(self) -> (S, Vec<AttachedPort>) {
        (self.switch, self.ports.into_vec())
    }

    /// Gives a hook its turn.
    pub fn poll_hook(&mut self, now: Time, hook: &mut dyn Hook<S>, stop_others: &dyn Fn()) {
        let (switch, output, injected) = (&mut self.switch, &mut self.output, &mut self.injected);
        hook.poll(&mut HookContext { now, switch, output, injected, stop_others });
        if !self.injected.is_empty() {
            // What the hook transmits leaves before what its injected frames become.
            self.send();
            let mut injected = std::mem::take(&mut self.injected);
            self.step(now, &mut injected);
            self.injected = injected;
        } else if !self.output.is_empty() || self.switch.has_notifications() {
            self.send();
        }
    }

    /// Replaces the switch. The packets in the queues of the old one leave first.
    pub fn replace(&mut self, now: Time, next: S) {
        self.switch.drain(now, &mut self.output);
        self.send();
        self.switch = next;
    }

    /// Whether no frame can arrive any more.
    pub fn is_finished(&self) -> bool {
        self.ports.as_slice().iter().all(|port| !port.is_live() || port.driver.finished())
    }

    /// Receives a batch from every port, processes it and transmits the result. Returns the number of received frames.
    pub fn poll(&mut self, clock: &Clock) -> usize {
        let count: usize = (0..self.ports.as_slice().len()).map(|index| self.poll_port(index, clock)).sum();
        // Polls of many busy ports take longer.
        self.polls += 1 + (count / BATCH_FRAMES) as u32;
        if self.polls >= POLLS_BETWEEN_LINKS {
            self.follow_links();
        }
        if count == 0
            && let Some(event) = self.switch.next_event()
        {
            let now = clock.now();
            if event <= now {
                self.step(now, &mut Vec::new());
            }
        }
        count
    }

    fn poll_port(&mut self, index: usize, clock: &Clock) -> usize {
        let port = &mut self.ports.as_mut_slice()[index];
        if !port.is_live() {
            return 0;
        }
        let result = port.driver.receive_frames(&mut self.received, BATCH_FRAMES);
        let id = port.id;
        if let Err(error) = result {
            self.ports.fail(&mut self.switch, index, error);
        }
        let count = self.received.len();
        if count == 0 {
            return 0;
        }
        if !self.switch.ports().is_up(id) {
            self.recheck_link(index, clock.now());
        }
        self.batch.extend(self.received.drain(..).map(|frame| BatchFrame(Some(frame))));
        self.switch.step_in_place(clock.now(), id, &mut self.batch, &mut self.egress);
        self.send();
        count
    }

    /// Takes a port up at which frames arrive, if it has a link: they were faster than the message that it has one.
    #[cold]
    fn recheck_link(&mut self, index: usize, now: Time) {
        if self.rechecked.is_some_and(|before| now.since_ns(before) < RECHECK_NS) {
            return;
        }
        self.rechecked = Some(now);
        let port = &self.ports.as_slice()[index];
        match &mut self.links {
            Some(links) => links.recheck(index, &self.ports, &mut self.switch),
            // The owner of the switch will follow.
            None if port.has_link() => _ = self.switch.set_port_up(port.id, true),
            None => {}
        }
    }

    /// Steps the switch with frames that did not come from a port of the worker, and transmits the result.
    pub fn step(&mut self, now: Time, input: &mut Vec<switch::Frame>) {
        self.switch.step(now, input, &mut self.output);
        self.send();
    }

    /// Lets the packets in queues leave at their times, when no frame can arrive any more.
    pub fn drain(&mut self, mut now: Time) {
        while let Some(event) = self.next_departure() {
            now = now.max(event);
            self.step(now, &mut Vec::new());
        }
    }

    /// Returns the switch's next event while packets wait in queues. Without them nothing more can leave, although
    /// entries that age give a switch events forever.
    pub fn next_departure(&self) -> Option<Time> {
        self.switch.next_event().filter(|_| self.switch.waiting() > 0)
    }

    /// Receives one frame from the port at `index`.
    pub fn receive_one(&mut self, index: usize) -> Option<Frame> {
        let port = &mut self.ports.as_mut_slice()[index];
        if !port.is_live() {
            return None;
        }
        if let Err(error) = port.driver.receive_frames(&mut self.received, 1) {
            self.ports.fail(&mut self.switch, index, error);
        }
        self.received.pop()
    }

    /// Sets the time that drivers record for transmitted frames, in nanoseconds since 1970.
    pub fn set_time(&mut self, now_ns: u64) {
        for port in self.ports.as_mut_slice() {
            port.driver.set_time(now_ns);
        }
    }

    /// Passes notifications to the sinks and frames to the ports, and flushes the ports.
    fn send(&mut self) {
        if self.switch.has_notifications() {
            let notifications = self.switch.take_notifications();
            for sink in &self.sinks {
                sink.receive(self.switch.program(), &notifications);
            }
        }
        self.egress.extend(self.output.drain(..).map(Egress::Owned));
        let mut egress = std::mem::take(&mut self.egress);
        for egress in egress.drain(..) {
            match egress {
                Egress::InPlace { index, port } => {
                    let Some(frame) = self.batch[index].0.take() else { continue };
                    let len = frame.len();
                    self.ports.send_by(&mut self.switch, port, len, |driver| driver.send_frame(frame));
                }
                Egress::Owned(frame) => {
                    let len = frame.data.len();
                    self.ports.send_by(&mut self.switch, frame.port, len, |driver| driver.send(&frame.data));
                }
            }
        }
        self.egress = egress;
        // The frames that are left in the batch were dropped.
        Frame::drop_all(self.batch.drain(..).filter_map(|frame| frame.0));
        self.ports.flush(&mut self.switch);
    }

    /// Checks now and then whether the devices of the ports still exist, since not every driver learns of their end.
    fn check_devices(&mut self, now: Time) {
        if now.since_ns(self.devices_checked) < DEVICE_CHECK_NS {
            return;
        }
        self.devices_checked = now;
        self.ports.check(&mut self.switch);
    }

    /// Sleeps until a port or one of `more` is readable, the switch's next event is due, or `longest` has passed.
    pub fn wait(&mut self, now: Time, longest: Duration, more: &[RawFd]) {
        self.check_devices(now);
        if self.follow_links() {
            // The owner of workers publishes it first.
            return;
        }
        let due = self.switch.next_event().map(|event| Duration::from_nanos(event.since_ns(now)));
        let timeout = due.map_or(longest, |due| due.min(longest));
        let links = self.links.as_ref().and_then(PortLinks::fd);
        let descriptors: Vec<_> = self.ports.poll_fds().chain(more.iter().copied()).chain(links).collect();
        if ports::wait(&descriptors, timeout).is_err() {
            // The process is out of descriptors or memory for a moment. Polling continues at a lower rate.
            std::thread::sleep(timeout);
        }
    }
}
