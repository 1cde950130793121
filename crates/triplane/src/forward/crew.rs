//! Several workers on threads of their own, and the owner of their switch, to whom the control plane speaks.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ports::{Port, PortStats};
use switch::PortId;
use v1model::Switch;

use super::gate::{Gate, Place};
use super::shared::{Bell, share};
use super::{Control, MAX_WAIT};
use crate::messages::Messages;
use crate::worker::{Clock, OnLoss, Worker};

/// How long a control plane waits for workers to end their batches before its change copies all tables.
const PATIENCE: Duration = Duration::from_millis(10);

/// Workers, and what they tell the owner.
pub struct Crew {
    workers: Vec<Member>,
    losses: Arc<Mutex<Losses>>,
}

/// A worker and what others reach it by.
struct Member {
    worker: Worker,
    bell: Bell,
    place: Place,
    /// Another switch to go on with: the control plane has given the owner another program.
    next: Mutex<Option<Switch>>,
}

/// Ports that are lost.
struct Losses {
    told: BTreeSet<PortId>,
    /// Those that the owner does not know of yet.
    fresh: Vec<PortId>,
    tell: OnLoss,
}

impl Crew {
    /// Workers of a switch, and the owner with its way to the ports. A port has one driver for each worker, or one that
    /// a worker has for all of them.
    ///
    /// # Errors
    /// If the process can open no more descriptors.
    pub fn new(
        mut owner: Switch,
        ports: Vec<(PortId, Vec<Box<dyn Port>>)>,
        count: usize,
    ) -> io::Result<(Worker, Crew)> {
        let bells: Vec<Bell> = (0..count).map(|_| Bell::new()).collect::<Result<_, _>>()?;
        let owners_bell = Bell::new()?;
        let mut of_workers: Vec<Vec<(PortId, Box<dyn Port>)>> = (0..count).map(|_| Vec::new()).collect();
        let mut of_owner = Vec::new();
        for (number, (id, drivers)) in ports.into_iter().enumerate() {
            // The workers in turn have the drivers that there is only one of.
            let home = number % count;
            let is_split = drivers.len() == count;
            let mut drivers: Vec<_> = drivers.into_iter().map(Some).collect();
            let driver = drivers[if is_split { home } else { 0 }].take().expect("each is taken once");
            let away = (0..count).filter(|at| *at != home && !is_split);
            let mut others: Vec<_> = away.clone().map(|at| (bells[at].clone(), true)).collect();
            others.push((owners_bell.clone(), false));
            let (driver, mut aways) = share(driver, &bells[home], &others);
            of_owner.extend(aways.pop().map(|port| (id, port)));
            of_workers[home].push((id, driver));
            away.zip(aways).for_each(|(at, port)| of_workers[at].push((id, port)));
            let split = drivers.into_iter().enumerate().filter_map(|(at, driver)| Some((at, driver?)));
            split.for_each(|(at, driver)| of_workers[at].push((id, driver)));
        }
        let losses = Losses { told: BTreeSet::new(), fresh: Vec::new(), tell: Box::new(|_, _| ()) };
        let losses = Arc::new(Mutex::new(losses));
        let switches = owner.workers(count as u32);
        let mut workers = Vec::new();
        for ((switch, ports), bell) in switches.into_iter().zip(of_workers).zip(bells) {
            let mut worker = Worker::new(switch, ports);
            let losses = Arc::clone(&losses);
            worker.set_on_loss(Box::new(move |id, error| {
                let losses = &mut *losses.lock().unwrap_or_else(PoisonError::into_inner);
                if losses.told.insert(id) {
                    losses.fresh.push(id);
                    (losses.tell)(id, error);
                }
            }));
            workers.push(Member { worker, bell, place: Place::default(), next: Mutex::new(None) });
        }
        Ok((Worker::new(owner, of_owner), Crew { workers, losses }))
    }

    pub fn set_on_loss(&mut self, on_loss: OnLoss) {
        self.losses.lock().unwrap_or_else(PoisonError::into_inner).tell = on_loss;
    }

    pub fn set_messages(&mut self, messages: &Messages) {
        self.workers.iter_mut().for_each(|member| member.worker.set_messages(messages.another()));
    }

    pub fn workers(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter().map(|member| &member.worker)
    }

    /// Forwards until `stop` is set, `deadline` is over, or no port is left.
    pub fn run(
        &mut self,
        owner: &mut Worker,
        control: &mut Option<Box<dyn Control>>,
        stop: &AtomicBool,
        deadline: Option<Instant>,
    ) {
        let clock = Clock::start();
        let left = || deadline.map_or(MAX_WAIT, |at| at.saturating_duration_since(Instant::now()).min(MAX_WAIT));
        let goes_on = || !stop.load(Ordering::Relaxed) && !left().is_zero();
        let (losses, gate) = (&self.losses, &Gate::default());
        std::thread::scope(|scope| {
            let (mut posts, mut threads) = (Vec::new(), Vec::new());
            for Member { worker, bell, place, next } in &mut self.workers {
                let (bell, place, next) = (&*bell, &*place, &*next);
                posts.push((bell, place, next));
                let way = Way { gate, place, next };
                threads.push(scope.spawn(move || while goes_on() && attend(worker, bell, way, &clock, left()) {}));
            }
            while goes_on() && threads.iter().any(|thread| !thread.is_finished()) {
                owner.step(clock.now(), &mut Vec::new());
                if let Some(control) = control {
                    wait_until_clear(owner.switch());
                    let program = Arc::clone(owner.switch().program());
                    let stop_others = || gate.shut(posts.iter().map(|(_, place, _)| *place));
                    owner.control(clock.now(), &mut **control, &stop_others);
                    if !Arc::ptr_eq(&program, owner.switch().program()) {
                        let switches = owner.switch_mut().workers(posts.len() as u32);
                        for ((bell, _, next), switch) in posts.iter().zip(switches) {
                            *next.lock().unwrap_or_else(PoisonError::into_inner) = Some(switch);
                            bell.ring();
                        }
                    }
                    gate.open();
                }
                let lost = std::mem::take(&mut losses.lock().unwrap_or_else(PoisonError::into_inner).fresh);
                for id in lost {
                    owner.switch_mut().set_port_up(id, false);
                }
                owner.switch_mut().publish();
                if control.as_ref().is_none_or(|control| !control.is_due()) {
                    let wake = control.as_ref().and_then(|control| control.poll_fd());
                    owner.wait(clock.now(), left(), wake);
                }
            }
        });
        for member in &mut self.workers {
            owner.messages_mut().add(member.worker.messages_mut());
        }
    }
}

/// What a worker's turn goes through.
#[derive(Clone, Copy)]
struct Way<'a> {
    gate: &'a Gate,
    place: &'a Place,
    next: &'a Mutex<Option<Switch>>,
}

/// A turn, with another switch if there is one.
fn turn(worker: &mut Worker, way: Way<'_>, clock: &Clock) -> usize {
    let _inside = way.gate.enter(way.place);
    // Free but for the moment in which another program comes.
    if let Some(switch) = way.next.try_lock().ok().and_then(|mut next| next.take()) {
        worker.replace(clock.now(), switch);
    }
    worker.turn(clock)
}

/// One look at all ports of a worker, and the wait if there was nothing. False if nothing can come any more.
fn attend(worker: &mut Worker, bell: &Bell, way: Way<'_>, clock: &Clock, longest: Duration) -> bool {
    if turn(worker, way, clock) > 0 {
        return true;
    }
    bell.listen();
    // Whatever came before the bell was listened for is found now.
    let found = turn(worker, way, clock) > 0;
    let goes_on = found || !worker.is_finished();
    if goes_on && !found {
        worker.switch_mut().rest();
        worker.wait(clock.now(), longest, Some(bell.fd()));
    }
    bell.awake();
    goes_on
}

fn wait_until_clear(owner: &Switch) {
    let begin = Instant::now();
    while !owner.is_clear() && begin.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_micros(20));
    }
}

/// What all of a port's drivers have counted.
pub fn plus(one: PortStats, other: PortStats) -> PortStats {
    PortStats {
        rx_packets: one.rx_packets + other.rx_packets,
        rx_bytes: one.rx_bytes + other.rx_bytes,
        rx_dropped: one.rx_dropped + other.rx_dropped,
        rx_unusable: one.rx_unusable + other.rx_unusable,
        rx_truncated: one.rx_truncated + other.rx_truncated,
        rx_checksums_completed: one.rx_checksums_completed + other.rx_checksums_completed,
        rx_segmented: one.rx_segmented + other.rx_segmented,
        tx_packets: one.tx_packets + other.tx_packets,
        tx_bytes: one.tx_bytes + other.tx_bytes,
        tx_queue_full: one.tx_queue_full + other.tx_queue_full,
        tx_bad_length: one.tx_bad_length + other.tx_bad_length,
        tx_link_down: one.tx_link_down + other.tx_link_down,
        tx_dropped_bytes: one.tx_dropped_bytes + other.tx_dropped_bytes,
    }
}
