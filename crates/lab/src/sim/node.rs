//! Simulates a host or a switch, with its pending events and the links that it sends on.

use std::collections::BinaryHeap;

use switch::{Frame, PortId, Time};

use super::capture::{Capture, Way};
use super::element::{Element, MakeElement, WriteRefusal};
use super::event::{Event, Message, What};
use super::fault::Fault;
use super::host::{Host, HostClock};
use super::link::Direction;

pub enum NodeKind {
    Host(Box<Host>),
    Switch { element: Box<dyn Element>, make: MakeElement, at: usize },
}

pub struct Node {
    pub kind: NodeKind,
    /// The links that it sends on, in the order of its ports, each with the state of the opposite direction.
    pub directions: Vec<(Inbound, Direction)>,
    pub events: u64,
    pub received: u64,
    pub sent: u64,
    /// Frames that arrived while the node or the link was down.
    pub lost_on_arrival: u64,
    /// A hash of the arrived frames and their times.
    pub digest: u64,
    /// Refused changes of entries: the time, the number of the change, and the reason.
    pub refused: Vec<(u64, usize, WriteRefusal)>,
    id: usize,
    awaited: BinaryHeap<Event>,
    /// Bytes of the pending events.
    held: u64,
    own_events: u64,
    /// The time of the latest event.
    now: u64,
    up: bool,
    /// Events that wait until a suspended node continues; `None` while it runs.
    suspended: Option<Vec<Event>>,
    captures: Vec<(u32, Capture)>,
    input: Vec<Frame>,
    output: Vec<Frame>,
}

/// Maximum number of frames that wait for a slow or suspended node; further ones are lost.
const MAX_WAITING: usize = 65_536;

/// The opposite direction of a link, as its receiver sees it.
#[derive(Default)]
pub struct Inbound {
    /// Frames handed to the link before this moment were lost when it went down.
    clear_from: u64,
}

impl Node {
    pub fn new(id: usize, kind: NodeKind) -> Node {
        Node {
            kind,
            directions: Vec::new(),
            events: 0,
            received: 0,
            sent: 0,
            lost_on_arrival: 0,
            digest: 0,
            refused: Vec::new(),
            id,
            awaited: BinaryHeap::new(),
            held: 0,
            own_events: 0,
            now: 0,
            up: true,
            suspended: None,
            captures: Vec::new(),
            input: Vec::new(),
            output: Vec::new(),
        }
    }

    pub fn attach(&mut self, direction: Direction) {
        let at = self.directions.partition_point(|(_, other)| other.from.port < direction.from.port);
        self.directions.insert(at, (Inbound::default(), direction));
    }

    pub fn capture(&mut self, port: u32, capture: Capture) {
        self.captures.push((port, capture));
    }

    pub fn push(&mut self, mut event: Event) {
        if event.is_own() {
            self.own_events += 1;
            event.number = self.own_events;
        }
        self.held += event.held();
        self.awaited.push(event);
    }

    fn pop(&mut self) -> Option<Event> {
        let event = self.awaited.pop()?;
        self.held -= event.held();
        Some(event)
    }

    /// Returns an event unless the node is suspended. Then the event waits, or is lost if too many wait.
    fn now_or_later(&mut self, event: Event) -> Option<Event> {
        let Some(waiting) = self.suspended.as_mut().filter(|_| !matches!(event.what, What::Fault(_))) else {
            return Some(event);
        };
        if waiting.len() < MAX_WAITING {
            waiting.push(event);
        } else {
            self.lost_on_arrival += 1;
        }
        None
    }

    /// Returns the bytes of the node's pending events.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Returns the time of the next event; `u64::MAX` if there is none.
    pub fn next(&self) -> u64 {
        let awaited = self.awaited.peek().map_or(u64::MAX, |event| event.at);
        match &self.kind {
            NodeKind::Switch { element, .. } if self.up && self.suspended.is_none() => {
                // Work that was due before, as at a switch that starts, is performed now.
                awaited.min(element.next_event().map_or(u64::MAX, |due| due.as_ns().max(self.now)))
            }
            _ => awaited,
        }
    }

    /// Runs all events before `end`.
    pub fn run(&mut self, end: u64, messages: &mut Vec<Message>) {
        loop {
            let now = self.next();
            if now >= end {
                return;
            }
            self.now = now;
            self.events += 1;
            match self.kind {
                NodeKind::Host(_) => self.host_event(now, messages),
                NodeKind::Switch { .. } => self.switch_events(now, messages),
            }
        }
    }

    /// Processes all arrivals of one moment, and lets the switch act on all of them.
    fn switch_events(&mut self, now: u64, messages: &mut Vec<Message>) {
        while self.awaited.peek().is_some_and(|event| event.at <= now) {
            let event = self.pop().expect("there is one");
            let Some(event) = self.now_or_later(event) else { continue };
            match event.what {
                What::Frame { port, sent, data } if self.arrives(port, sent) => {
                    self.took(now, port, &data);
                    self.input.push(Frame { port: PortId(port), data });
                }
                What::Frame { .. } => self.lost_on_arrival += 1,
                What::Fault(fault) => self.fault(now, fault),
                What::Write(number) => self.write(now, number),
                What::Start | What::Served { .. } | What::Timer(_) => unreachable!("switches run no programs"),
            }
        }
        let NodeKind::Switch { element, .. } = &mut self.kind else { return };
        if !self.up || self.suspended.is_some() {
            return;
        }
        element.step(Time::from_ns(now), &mut self.input, &mut self.output);
        for frame in std::mem::take(&mut self.output) {
            self.send(now, frame.port.0, frame.data, messages);
        }
    }

    fn host_event(&mut self, now: u64, messages: &mut Vec<Message>) {
        let Some(event) = self.pop().and_then(|event| self.now_or_later(event)) else { return };
        match event.what {
            What::Fault(fault) => self.fault(now, fault),
            What::Write(_) => unreachable!("hosts have no entries"),
            What::Frame { port, sent, data } => {
                if !self.arrives(port, sent) {
                    self.lost_on_arrival += 1;
                    return;
                }
                self.took(now, port, &data);
                let NodeKind::Host(host) = &mut self.kind else { return };
                if host.service_ns > 0 {
                    if host.backlog == MAX_WAITING {
                        self.lost_on_arrival += 1;
                        return;
                    }
                    host.backlog += 1;
                    host.busy_until = host.busy_until.max(now) + host.service_ns;
                    let at = Time::from_ns(host.busy_until);
                    self.push(Event::own(at, What::Served { data }));
                    return;
                }
                self.act(now, messages, |program, host| program.on_packet(host, data));
            }
            What::Served { data } => {
                if let NodeKind::Host(host) = &mut self.kind {
                    host.backlog -= 1;
                }
                self.act(now, messages, |program, host| program.on_packet(host, data));
            }
            What::Timer(timer) => self.act(now, messages, |program, host| program.on_timer(host, timer)),
            What::Start => self.act(now, messages, |program, host| program.on_start(host)),
        }
    }

    /// Runs an action of the host's program, and carries out its requests.
    fn act(
        &mut self,
        now: u64,
        messages: &mut Vec<Message>,
        what: impl FnOnce(&mut dyn super::HostProgram, &mut Host),
    ) {
        let NodeKind::Host(host) = &mut self.kind else { return };
        let Some(mut program) = host.program.take().filter(|_| self.up) else { return };
        host.now = now;
        what(&mut *program, host);
        host.program = Some(program);
        let (frames, timers) = (std::mem::take(&mut host.out), std::mem::take(&mut host.timers));
        self.sent += frames.len() as u64;
        for data in frames {
            self.send(now, 0, data, messages);
        }
        for (at, timer) in timers {
            self.push(Event::own(Time::from_ns(at), What::Timer(timer)));
        }
    }

    fn direction(&mut self, port: u32) -> Option<&mut (Inbound, Direction)> {
        let at = self.directions.binary_search_by_key(&port, |(_, direction)| direction.from.port).ok()?;
        Some(&mut self.directions[at])
    }

    fn send(&mut self, now: u64, port: u32, data: Vec<u8>, messages: &mut Vec<Message>) {
        self.note(now, port, Way::Out, &data);
        if let Some((_, direction)) = self.direction(port) {
            direction.send(now, data, messages);
        }
    }

    /// Whether a frame that was handed to a link at `sent` arrives at a port.
    fn arrives(&mut self, port: u32, sent: u64) -> bool {
        let up = self.up;
        self.direction(port)
            .is_some_and(|(inbound, direction)| up && direction.cable.is_up() && sent >= inbound.clear_from)
    }

    /// Counts a frame that arrived, and adds it to the digest.
    fn took(&mut self, now: u64, port: u32, data: &[u8]) {
        self.note(now, port, Way::In, data);
        self.received += 1;
        let mut words = [now, u64::from(port) << 32 | data.len() as u64, 0, 0, 0, 0, 0, 0, 0, 0];
        // The beginning is enough: headers contain checksums of the rest, and hashing has to be fast.
        for (word, bytes) in words[2..].iter_mut().zip(data.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        }
        self.digest = words.iter().fold(self.digest, |digest, word| mix(digest, *word));
    }

    fn note(&mut self, now: u64, port: u32, way: Way, data: &[u8]) {
        for (_, capture) in self.captures.iter_mut().filter(|(at, _)| *at == port) {
            capture.take(now, way, data);
        }
    }

    /// Applies a controller's change of a switch's entries. A switch that is down cannot apply it.
    fn write(&mut self, now: u64, number: usize) {
        let NodeKind::Switch { element, .. } = &mut self.kind else { return };
        let written = if self.up { element.write(Time::from_ns(now), number) } else { Err(WriteRefusal::Down) };
        if let Err(why) = written {
            self.refused.push((now, number, why));
        }
    }

    fn fault(&mut self, now: u64, fault: Fault) {
        match fault {
            Fault::Crash => {
                self.up = false;
                self.suspended = None;
                self.input.clear();
                if let NodeKind::Host(host) = &mut self.kind {
                    (host.busy_until, host.backlog) = (now, 0);
                }
                // The node's own timers and queued work are lost with it. Frames in flight and planned events are not.
                let keep = |event: &Event| !matches!(event.what, What::Timer(_) | What::Served { .. });
                self.awaited = self.awaited.drain().filter(keep).collect();
                self.held = self.awaited.iter().map(Event::held).sum();
            }
            Fault::Restart => {
                self.up = true;
                match &mut self.kind {
                    NodeKind::Switch { element, make, at } => {
                        *element = make(*at);
                        for (_, direction) in &self.directions {
                            element.set_port_up(PortId(direction.from.port), direction.cable.is_up());
                        }
                    }
                    NodeKind::Host(_) => self.push(Event::own(Time::from_ns(now), What::Start)),
                }
            }
            Fault::Suspend if self.up => _ = self.suspended.get_or_insert_default(),
            Fault::Suspend => {}
            Fault::Resume => {
                for mut event in self.suspended.take().into_iter().flatten() {
                    event.at = now;
                    self.push(event);
                }
            }
            Fault::LinkDown(port) | Fault::LinkUp(port) => {
                let up = matches!(fault, Fault::LinkUp(_));
                if let Some((inbound, direction)) = self.direction(port) {
                    direction.cable.set_up(up);
                    inbound.clear_from = now;
                }
                if let NodeKind::Switch { element, .. } = &mut self.kind {
                    element.set_port_up(PortId(port), up);
                }
            }
            Fault::Slow(service_ns) => {
                if let NodeKind::Host(host) = &mut self.kind {
                    host.service_ns = service_ns;
                }
            }
            Fault::Skew { offset_ns, drift_ppb } => {
                if let NodeKind::Host(host) = &mut self.kind {
                    host.clock = HostClock { since: now, offset_ns, drift_ppb };
                }
            }
        }
    }

    /// Returns the number of frames that wait in a switch's own queues of a port, and the number dropped there.
    pub fn queue(&self, port: u32) -> (u64, u64) {
        match &self.kind {
            NodeKind::Switch { element, .. } if self.up => element.queue(PortId(port)),
            _ => (0, 0),
        }
    }

    /// Returns the nodes that it has links to, with the delays of these links in nanoseconds.
    pub fn links(&self) -> impl Iterator<Item = (usize, u64)> {
        self.directions.iter().map(|(_, way)| (way.to_node(), way.delay_ns()))
    }

    /// Returns the node's place among the nodes.
    pub fn id(&self) -> usize {
        self.id
    }
}

/// Returns a hash extended by one word.
pub fn mix(digest: u64, word: u64) -> u64 {
    let mixed = (digest.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}
