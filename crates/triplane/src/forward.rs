//! Drives a switch: in real time between its ports, or from capture to capture in the captures' time.

mod crew;
mod flow;
mod gate;
mod shared;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ports::{Frame, Port, PortError, PortStats};
use switch::{PortId, Time};
use v1model::Switch;

use crate::messages::Messages;
use crate::worker::{Clock, OnLoss, Worker};
use crew::Crew;

/// The longest wait between two looks at the stop flag.
const MAX_WAIT: Duration = Duration::from_millis(100);

/// Who changes the switch while it runs. It has its turn between two batches.
pub trait Control: Send {
    /// Does what is to be done now, which should not take long. Frames that leave because of it go to `output`.
    /// `stop_others` returns when no other worker runs packets of this switch, nor will before this turn is over.
    fn poll(&mut self, now: Time, switch: &mut Switch, output: &mut Vec<switch::Frame>, stop_others: &dyn Fn());

    /// Whether there is something to do, so that nobody should wait.
    fn is_due(&self) -> bool;

    /// A descriptor that is readable when there is something to do, so that an idle switch wakes up for it.
    fn poll_fd(&self) -> Option<RawFd>;
}

/// A switch with its ports.
pub struct Forwarder {
    /// The worker, or the owner of the crew's switches.
    worker: Worker,
    crew: Option<Crew>,
    control: Option<Box<dyn Control>>,
}

impl Forwarder {
    /// A switch and drivers for its ports.
    pub fn new(switch: Switch, ports: Vec<(PortId, Box<dyn Port>)>) -> Self {
        Forwarder { worker: Worker::new(switch, ports), crew: None, control: None }
    }

    /// A switch that several workers run, for live ports. A port has a driver for each, or one for all.
    ///
    /// # Errors
    /// If the process can open no more descriptors.
    pub fn with_workers(switch: Switch, ports: Vec<(PortId, Vec<Box<dyn Port>>)>, workers: usize) -> io::Result<Self> {
        let (worker, crew) = Crew::new(switch, ports, workers)?;
        Ok(Forwarder { worker, crew: Some(crew), control: None })
    }

    /// Where what the switch tells the control plane goes; it is counted in any case.
    #[must_use]
    pub fn with_messages(mut self, messages: Messages) -> Self {
        self.crew.iter_mut().for_each(|crew| crew.set_messages(&messages));
        self.worker.set_messages(messages);
        self
    }

    /// Who is told at once of a port that goes away.
    #[must_use]
    pub fn on_loss(mut self, on_loss: OnLoss) -> Self {
        match &mut self.crew {
            Some(crew) => crew.set_on_loss(on_loss),
            None => self.worker.set_on_loss(on_loss),
        }
        self
    }

    /// Who may change the switch while it runs.
    #[must_use]
    pub fn with_control(mut self, control: Box<dyn Control>) -> Self {
        self.control = Some(control);
        self
    }

    /// What the switch told the control plane.
    pub fn messages(&self) -> &Messages {
        self.worker.messages()
    }

    /// What the switch told the control plane, to finish.
    pub fn messages_mut(&mut self) -> &mut Messages {
        self.worker.messages_mut()
    }

    /// The switch.
    pub fn switch(&self) -> &Switch {
        self.worker.switch()
    }

    /// The drivers' own counts, by port.
    pub fn port_stats(&self) -> impl Iterator<Item = (PortId, &str, PortStats)> {
        let mut order = Vec::new();
        let mut all: BTreeMap<PortId, (&str, PortStats)> = BTreeMap::new();
        for port in self.workers().flat_map(Worker::ports) {
            let stats = port.driver.stats();
            all.entry(port.id).and_modify(|(_, sum)| *sum = crew::plus(*sum, stats)).or_insert_with(|| {
                order.push(port.id);
                (port.driver.name(), stats)
            });
        }
        order.into_iter().map(move |id| (id, all[&id].0, all[&id].1))
    }

    /// The owner first, whose ports are in the order they were given.
    fn workers(&self) -> impl Iterator<Item = &Worker> {
        std::iter::once(&self.worker).chain(self.crew.iter().flat_map(Crew::workers))
    }

    /// The failures of ports that went away on the way.
    pub fn failures(&self) -> impl Iterator<Item = (PortId, &PortError)> {
        let mut failed = BTreeMap::new();
        for port in self.workers().flat_map(Worker::ports) {
            if let Some(error) = &port.failed {
                failed.entry(port.id).or_insert(error);
            }
        }
        failed.into_iter()
    }

    /// Forwards in real time until `stop` is set, `limit` is over, or no port is left. A port that fails is taken
    /// down; the others go on.
    pub fn run_live(&mut self, stop: &AtomicBool, limit: Option<Duration>) {
        let clock = Clock::start();
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        if let Some(crew) = &mut self.crew {
            return crew.run(&mut self.worker, &mut self.control, stop, deadline);
        }
        let left = || deadline.map_or(MAX_WAIT, |at| at.saturating_duration_since(Instant::now()).min(MAX_WAIT));
        while !stop.load(Ordering::Relaxed) && !left().is_zero() {
            if let Some(control) = &mut self.control {
                self.worker.control(clock.now(), &mut **control, &|| ());
            }
            if self.worker.turn(&clock) > 0 {
                continue;
            }
            if self.worker.is_finished() {
                return self.worker.drain(clock.now());
            }
            if self.control.as_ref().is_some_and(|control| control.is_due()) {
                continue;
            }
            let wake = self.control.as_ref().and_then(|control| control.poll_fd());
            self.worker.wait(clock.now(), left(), wake);
        }
    }

    /// Runs capture files to their end: frames enter in the order of their times, and the switch's time is theirs.
    pub fn run_offline(&mut self) {
        let worker = &mut self.worker;
        let mut waiting: Vec<Option<Frame>> = worker.ports().iter().map(|_| None).collect();
        let mut start = None;
        let mut now = Time::ZERO;
        loop {
            for (at, slot) in waiting.iter_mut().enumerate() {
                if slot.is_none() {
                    *slot = worker.receive_one(at);
                }
            }
            let time = |frame: &Frame| frame.time_ns.unwrap_or(0);
            let next = waiting.iter().enumerate().filter_map(|(at, frame)| Some((time(frame.as_ref()?), at))).min();
            let Some((time_ns, at)) = next else { break };
            let start_ns = *start.get_or_insert(time_ns);
            // Captures whose times go back do not turn the switch's clock back.
            let arrival = now.max(Time::from_ns(time_ns.saturating_sub(start_ns)));
            while let Some(event) = worker.next_departure().filter(|event| *event < arrival) {
                step_offline(worker, event, start_ns, None);
            }
            now = arrival;
            let frame = waiting[at].take().map(|frame| (worker.ports()[at].id, frame));
            step_offline(worker, now, start_ns, frame);
        }
        let start_ns = start.unwrap_or(0);
        while let Some(event) = worker.next_departure() {
            now = now.max(event);
            step_offline(worker, now, start_ns, None);
        }
    }
}

fn step_offline(worker: &mut Worker, now: Time, start_ns: u64, frame: Option<(PortId, Frame)>) {
    worker.set_time(start_ns.saturating_add(now.as_ns()));
    let frame = frame.map(|(port, frame)| switch::Frame { port, data: frame.to_vec() });
    worker.step(now, &mut frame.into_iter().collect());
}
