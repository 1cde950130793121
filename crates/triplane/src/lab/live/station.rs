//! A thread that is a switch: frames from its ports into `step`, frames from `step` over its links.

use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError};
use std::time::{Duration, Instant};

use lab::sim::Cable;
use ports::{Port, PortError, Received};
use serde::{Deserialize, Serialize};
use switch::{Frame, PacketSwitch, PortId, Time};

use super::controlled::{Controlled, Door};
use super::lane::Lane;

/// Frames taken from one port before the next one has its turn.
const BATCH: usize = 64;

/// What was due is made up for in one turn, up to so many moments; then frames have their turn.
const EVENTS: usize = 1024;

/// The longest wait between two looks at what was ordered.
const MAX_WAIT: Duration = Duration::from_millis(20);

/// Waits shorter than this are not left to the kernel, which may sleep longer.
const SPIN: Duration = Duration::from_micros(80);

/// Builds the switch in its initial state.
pub type Make<S> = Box<dyn Fn() -> S + Send>;

/// Who wants to know that an order has been carried out, or why it was not. He may be gone.
pub type Done = Sender<Result<(), String>>;

/// What a switch can be told.
pub enum Order {
    /// Crash, or start again.
    Fail(bool),
    /// The link at a port goes up or down.
    Link { port: u32, up: bool, done: Done },
    /// The host at a port needs so long for each frame from now on.
    Slow { port: u32, by_ns: u64, done: Done },
    /// Hand what passes a port, with its time, to someone, until he is gone.
    Capture { port: u32, to: SyncSender<(u64, Vec<u8>)>, done: Done },
    /// Say how it is.
    Status(Sender<Status>),
    /// End.
    Stop,
}

/// How a switch is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    /// Whether it has crashed.
    pub failed: bool,
    /// Why, if nobody asked for it; or why it does not do all that it should.
    pub why: Option<String>,
    /// The process it has for itself.
    pub pid: Option<u32>,
    pub ports: Vec<PortStatus>,
    pub counters: Vec<(String, u64)>,
}

/// How a port is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PortStatus {
    pub port: u32,
    pub up: bool,
    /// Frames that the link took.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Frames that it did not carry to the other end.
    pub dropped: u64,
    /// Frames that it took from the host at the other end, if there is one.
    pub from_host: Option<u64>,
    /// Their bytes.
    pub from_host_bytes: Option<u64>,
    /// Frames of that host that it did not carry here.
    pub from_host_dropped: Option<u64>,
    pub failure: Option<String>,
}

/// A port: its driver, and the lanes that frames take.
pub struct Place {
    port: u32,
    driver: Box<dyn Port>,
    /// To whatever is at the other end.
    out: Lane,
    /// From the host at the other end; another switch shapes what it sends itself.
    back: Option<Lane>,
    captures: Vec<SyncSender<(u64, Vec<u8>)>>,
    failure: Option<PortError>,
}

impl Place {
    /// A port with a driver and the cables of its link.
    pub fn new(port: u32, driver: Box<dyn Port>, out: Cable, back: Option<Cable>) -> Place {
        let (out, back) = (Lane::new(out), back.map(Lane::new));
        Place { port, driver, out, back, captures: Vec::new(), failure: None }
    }

    fn note(&mut self, now: u64, frame: &[u8]) {
        // A reader that is too slow misses frames; one that is gone is forgotten.
        self.captures.retain(|to| {
            !matches!(to.try_send((now, frame.to_vec())), Err(std::sync::mpsc::TrySendError::Disconnected(_)))
        });
    }
}

/// A switch with its ports.
pub struct Station<S> {
    make: Make<S>,
    door: Option<Door>,
    /// `None` after a crash.
    switch: Option<S>,
    controlled: Option<Controlled>,
    /// Why controllers are not served.
    unserved: Option<String>,
    places: Vec<Place>,
    orders: Receiver<Order>,
    start: Instant,
    /// The switch's time.
    stepped: u64,
    batch: Vec<Received>,
    input: Vec<Frame>,
    output: Vec<Frame>,
}

impl<S: PacketSwitch> Station<S> {
    /// A switch that starts. `start` is when the network began.
    pub fn new(
        make: Make<S>,
        door: Option<Door>,
        places: Vec<Place>,
        orders: Receiver<Order>,
        start: Instant,
    ) -> Station<S> {
        let mut station = Station {
            make,
            door,
            switch: None,
            controlled: None,
            unserved: None,
            places,
            orders,
            start,
            stepped: 0,
            batch: Vec::new(),
            input: Vec::new(),
            output: Vec::new(),
        };
        station.begin();
        station
    }

    /// Starts the switch, as new.
    fn begin(&mut self) {
        let mut switch = (self.make)();
        for place in &self.places {
            switch.set_port_up(PortId(place.port), place.out.cable.is_up());
        }
        match self.door.as_ref().map(|door| door.open(&switch)).transpose() {
            Ok(controlled) => (self.controlled, self.unserved) = (controlled, None),
            Err(failure) => {
                self.unserved = Some(format!("controllers are not served: {}", failure.sentence().unwrap_or_default()))
            }
        }
        self.switch = Some(switch);
    }

    /// Forwards until it is told to stop, or nobody is left to tell it.
    pub fn run(mut self) {
        loop {
            loop {
                match self.orders.try_recv() {
                    Ok(Order::Stop) | Err(TryRecvError::Disconnected) => return,
                    Ok(order) => self.obey(order),
                    Err(TryRecvError::Empty) => break,
                }
            }
            let now = self.start.elapsed().as_nanos() as u64;
            self.turn(now);
            self.wait();
        }
    }

    /// Does all that is due. What was due a while ago, since this thread did not run, happens at the time at which it was
    /// due, so that a rate is a rate and lateness does not add up.
    fn turn(&mut self, now: u64) {
        self.receive(now);
        for _ in 0..EVENTS {
            let arrivals = self.places.iter().filter_map(|place| place.back.as_ref().and_then(Lane::next));
            let event = self.switch.as_ref().and_then(S::next_event).map(Time::as_ns);
            match arrivals.chain(event).min() {
                Some(at) if at <= now => self.step(at, Vec::new()),
                _ => break,
            }
        }
        let input = std::mem::take(&mut self.input);
        self.step(now, input);
        self.send(now);
    }

    /// Takes what came to the ports: from hosts onto their links, from other switches into the input.
    fn receive(&mut self, now: u64) {
        for place in &mut self.places {
            if place.failure.is_some() {
                continue;
            }
            if let Err(error) = place.driver.receive(&mut self.batch, BATCH) {
                place.failure = Some(error);
            }
            for frame in std::mem::take(&mut self.batch) {
                match &mut place.back {
                    Some(lane) => lane.put(now, frame.data),
                    None if place.out.cable.is_up() => {
                        place.note(now, &frame.data);
                        self.input.push(Frame { port: PortId(place.port), data: frame.data });
                    }
                    None => {}
                }
            }
        }
    }

    /// Lets the switch do what it does at a time, with these frames and those that arrive from hosts by then.
    fn step(&mut self, at: u64, mut input: Vec<Frame>) {
        // What comes late from a link must not turn the switch's time back.
        let at = at.max(self.stepped);
        self.stepped = at;
        for place in &mut self.places {
            while let Some(data) = place.back.as_mut().and_then(|lane| lane.take(at)) {
                place.note(at, &data);
                input.push(Frame { port: PortId(place.port), data });
            }
        }
        match &mut self.switch {
            Some(switch) => {
                if let Some(controlled) = &mut self.controlled {
                    controlled.poll(at, switch, &mut self.output);
                }
                switch.step(Time::from_ns(at), &mut input, &mut self.output);
                let told = switch.take_notifications();
                if let Some(controlled) = self.controlled.as_ref().filter(|_| !told.is_empty()) {
                    controlled.tell(switch.program(), told);
                }
            }
            None => self.door.iter().for_each(Door::turn_away),
        }
        for frame in std::mem::take(&mut self.output) {
            if let Some(place) = self.places.iter_mut().find(|place| place.port == frame.port.0) {
                place.note(at, &frame.data);
                place.out.put(at, frame.data);
            }
        }
    }

    /// Hands what has arrived at the other ends to the drivers.
    fn send(&mut self, now: u64) {
        for place in &mut self.places {
            let mut sent = false;
            while let Some(frame) = place.out.take(now) {
                sent = true;
                if let Err(error) = place.driver.send(&frame) {
                    place.failure.get_or_insert(error);
                }
            }
            if sent && let Err(error) = place.driver.flush() {
                place.failure.get_or_insert(error);
            }
        }
    }

    /// Waits until a frame comes, or one on the way is due.
    fn wait(&self) {
        if self.controlled.as_ref().is_some_and(Controlled::is_due) {
            return;
        }
        let lanes = self.places.iter().flat_map(|place| [place.out.next(), place.back.as_ref().and_then(Lane::next)]);
        let event = self.switch.as_ref().and_then(S::next_event).map(Time::as_ns);
        let next = lanes.flatten().chain(event).min();
        let now = self.start.elapsed();
        let due = next.map_or(MAX_WAIT, |next| Duration::from_nanos(next).saturating_sub(now)).min(MAX_WAIT);
        if due <= SPIN {
            std::thread::yield_now();
            return;
        }
        let live = self.places.iter().filter(|place| place.failure.is_none());
        let control = self.controlled.as_ref().and_then(Controlled::poll_fd);
        let descriptors: Vec<_> = live.filter_map(|place| place.driver.poll_fd()).chain(control).collect();
        if ports::wait(&descriptors, due - SPIN / 2).is_err() {
            std::thread::sleep(due - SPIN / 2);
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Stop => {}
            Order::Fail(true) => {
                self.switch = None;
                self.controlled = None;
                self.places.iter_mut().for_each(|place| place.out.forget());
            }
            Order::Fail(false) if self.switch.is_some() => {}
            Order::Fail(false) => self.begin(),
            Order::Link { port, up, done } => {
                for place in self.places.iter_mut().filter(|place| place.port == port) {
                    place.out.set_up(up);
                    place.back.iter_mut().for_each(|lane| lane.set_up(up));
                }
                if let Some(switch) = &mut self.switch {
                    switch.set_port_up(PortId(port), up);
                }
                let _ = done.send(Ok(()));
            }
            Order::Slow { port, by_ns, done } => {
                for place in self.places.iter_mut().filter(|place| place.port == port) {
                    place.out.set_service(by_ns);
                }
                let _ = done.send(Ok(()));
            }
            Order::Capture { port, to, done } => {
                self.places
                    .iter_mut()
                    .filter(|place| place.port == port)
                    .for_each(|place| place.captures.push(to.clone()));
                let _ = done.send(Ok(()));
            }
            Order::Status(to) => {
                // Whoever asked may be gone.
                let _ = to.send(self.status());
            }
        }
    }

    fn status(&self) -> Status {
        let ports = self.places.iter().map(|place| PortStatus {
            port: place.port,
            up: place.out.cable.is_up(),
            sent: place.out.cable.stats.carried,
            sent_bytes: place.out.cable.stats.carried_bytes,
            dropped: place.out.cable.stats.dropped(),
            from_host: place.back.as_ref().map(|lane| lane.cable.stats.carried),
            from_host_bytes: place.back.as_ref().map(|lane| lane.cable.stats.carried_bytes),
            from_host_dropped: place.back.as_ref().map(|lane| lane.cable.stats.dropped()),
            failure: place.failure.as_ref().map(ToString::to_string),
        });
        let counters = self.switch.iter().flat_map(|switch| {
            let counters = switch.registry().iter().filter(|(_, value)| *value > 0);
            counters.map(|(name, value)| (name.to_owned(), value)).collect::<Vec<_>>()
        });
        Status {
            failed: self.switch.is_none(),
            why: self.unserved.clone(),
            pid: None,
            ports: ports.collect(),
            counters: counters.collect(),
        }
    }
}
