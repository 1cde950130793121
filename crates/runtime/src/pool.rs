//! Runs several workers, each in a thread of its own, and the owner of their switch.
//!
//! ```text
//!   owner's thread:   hooks ── owner Worker ── publish ─────┐ tables, groups, sessions
//!   worker threads:   Worker, Worker, ... ◄─────────────────┘ ports and queues are their own
//! ```
//!
//! Hooks see the owner's switch. Its writes are published to the workers after each round of hooks. A hook that
//! replaces the program first stops the workers at the [`QuiescenceGate`]; each then continues with a switch for the
//! new program.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ports::Port;
use switch::{PacketSwitch, PortId};

use crate::clock::Clock;
use crate::config::PortDrivers;
use crate::gate::{QuiescenceFlag, QuiescenceGate};
use crate::hook::HookList;
use crate::limit::RunLimit;
use crate::port_set::PortLossCallback;
use crate::shared_port::share;
use crate::sink::NotificationSink;
use crate::waker::Waker;
use crate::worker::Worker;

/// Maximum time that hooks wait for workers to finish their batches. After it, a write copies all tables.
const CLEAR_TIMEOUT: Duration = Duration::from_millis(10);

/// The workers of a switch. The owner is a [`Worker`] of its own, outside the pool.
pub struct WorkerPool<S> {
    slots: Vec<WorkerSlot<S>>,
    losses: Arc<Mutex<PortLosses>>,
}

/// A worker and the means by which the owner reaches it.
struct WorkerSlot<S> {
    worker: Worker<S>,
    control: SlotControl<S>,
}

/// The part of a slot that the worker's thread and the owner's thread share.
struct SlotControl<S> {
    waker: Waker,
    flag: QuiescenceFlag,
    /// The switch to continue with after a hook has replaced the program.
    next: Mutex<Option<S>>,
}

/// Lost ports of all workers. Several workers may lose the same port; it is reported once.
struct PortLosses {
    reported: BTreeSet<PortId>,
    /// Ports that are still up in the owner's switch.
    unapplied: Vec<PortId>,
    callback: PortLossCallback,
}

/// Ends the other threads of a run when its own thread panics: the scope waits for all of them.
struct PanicGuard<'a> {
    has_panicked: &'a AtomicBool,
    /// The gate, in the owner's thread, which may have closed it.
    gate: Option<&'a QuiescenceGate>,
}

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.has_panicked.store(true, Ordering::Relaxed);
            if let Some(gate) = self.gate {
                gate.open();
            }
        }
    }
}

impl PortLosses {
    fn report(&mut self, id: PortId, error: &ports::PortError) {
        if self.reported.insert(id) {
            self.unapplied.push(id);
            (self.callback)(id, error);
        }
    }
}

impl<S: PacketSwitch> WorkerPool<S> {
    /// Creates `count` workers for a switch. Returns its owner, which can transmit by all ports, and the pool. A port
    /// has one driver for each worker, or one driver that a worker has for all of them.
    ///
    /// # Errors
    /// If the process can open no more descriptors.
    pub fn new(mut switch: S, ports: Vec<PortDrivers>, count: usize) -> io::Result<(Worker<S>, WorkerPool<S>)> {
        let wakers: Vec<Waker> = (0..count).map(|_| Waker::new()).collect::<Result<_, _>>()?;
        let owner_waker = Waker::new()?;
        let mut worker_ports: Vec<Vec<(PortId, Box<dyn Port>)>> = (0..count).map(|_| Vec::new()).collect();
        let mut owner_ports = Vec::new();
        for (number, port) in ports.into_iter().enumerate() {
            let id = port.id;
            let (owner_port, ports) = distribute(port.drivers, number % count, &wakers, &owner_waker);
            owner_ports.push((id, owner_port));
            for (worker_ports, port) in worker_ports.iter_mut().zip(ports) {
                worker_ports.push((id, port));
            }
        }
        let losses = PortLosses { reported: BTreeSet::new(), unapplied: Vec::new(), callback: Box::new(|_, _| ()) };
        let losses = Arc::new(Mutex::new(losses));
        let mut slots = Vec::new();
        for ((switch, ports), waker) in switch.workers(count as u32).into_iter().zip(worker_ports).zip(wakers) {
            let mut worker = Worker::new(switch, ports);
            let losses = Arc::clone(&losses);
            worker.set_on_port_loss(Box::new(move |id, error| lock(&losses).report(id, error)));
            let control = SlotControl { waker, flag: QuiescenceFlag::default(), next: Mutex::new(None) };
            slots.push(WorkerSlot { worker, control });
        }
        Ok((Worker::new(switch, owner_ports), WorkerPool { slots, losses }))
    }

    /// Sets the callback for a port that can be used no longer. It is called once a port, by the first worker that
    /// loses it.
    pub fn set_on_port_loss(&mut self, on_port_loss: PortLossCallback) {
        lock(&self.losses).callback = on_port_loss;
    }

    /// Sets the sinks of the workers' notifications.
    pub fn set_sinks(&mut self, sinks: &[Arc<dyn NotificationSink>]) {
        for slot in &mut self.slots {
            slot.worker.set_sinks(sinks.to_vec());
        }
    }

    /// Ends the pool and returns its workers.
    pub fn into_workers(self) -> impl Iterator<Item = Worker<S>> {
        self.slots.into_iter().map(|slot| slot.worker)
    }

    /// Runs all workers until the limit is reached or no port is left. Hooks are polled in the calling thread.
    ///
    /// # Panics
    /// If a hook or a worker panics. All workers have ended then.
    pub(crate) fn run(&mut self, owner: &mut Worker<S>, hooks: &mut HookList<S>, limit: RunLimit<'_>) {
        let clock = Clock::start();
        let (gate, has_panicked) = (&QuiescenceGate::default(), &AtomicBool::new(false));
        let is_over = || limit.is_reached() || has_panicked.load(Ordering::Relaxed);
        std::thread::scope(|scope| {
            let _guard = PanicGuard { has_panicked, gate: Some(gate) };
            let (mut controls, mut threads) = (Vec::new(), Vec::new());
            for WorkerSlot { worker, control } in &mut self.slots {
                let control = &*control;
                controls.push(control);
                threads.push(scope.spawn(move || {
                    let _guard = PanicGuard { has_panicked, gate: None };
                    while !is_over() && poll_or_park(worker, control, gate, &clock, limit.longest_sleep()) {}
                }));
            }
            while !is_over() && threads.iter().any(|thread| !thread.is_finished()) {
                owner.step(clock.now(), &mut Vec::new());
                poll_hooks(owner, hooks, &controls, gate, &clock);
                for id in std::mem::take(&mut lock(&self.losses).unapplied) {
                    owner.forget_link(id);
                    owner.switch_mut().set_port_up(id, false);
                }
                owner.follow_links();
                owner.switch_mut().publish();
                let now = clock.now();
                let longest = hooks.sleep_limit(now, limit.longest_sleep());
                if !longest.is_zero() {
                    owner.wait(now, longest, &hooks.poll_fds());
                    hooks.wake();
                }
            }
        });
    }
}

/// Gives a port to every worker and to the owner of their switch. `home` is the worker that has the driver if there is
/// only one. Returns the owner's port and the workers' ports.
fn distribute(
    drivers: Vec<Box<dyn Port>>,
    home: usize,
    wakers: &[Waker],
    owner: &Waker,
) -> (Box<dyn Port>, Vec<Box<dyn Port>>) {
    let count = wakers.len();
    let has_driver_each = drivers.len() == count;
    let mut drivers: Vec<_> = drivers.into_iter().map(Some).collect();
    let home_driver = drivers[if has_driver_each { home } else { 0 }].take().expect("each driver is taken once");
    let mut others: Vec<(Waker, bool)> = Vec::new();
    if !has_driver_each {
        others.extend((0..count).filter(|worker| *worker != home).map(|worker| (wakers[worker].clone(), true)));
    }
    others.push((owner.clone(), false));
    let (home_port, mut remotes) = share(home_driver, &wakers[home], &others);
    let owner_port = remotes.pop().expect("the owner is the last of the others");
    let mut remotes = remotes.into_iter();
    let mut home_port = Some(home_port);
    let worker_port = |worker: usize| {
        if worker == home {
            home_port.take()
        } else if has_driver_each {
            drivers[worker].take()
        } else {
            remotes.next()
        }
    };
    (owner_port, (0..count).map(worker_port).map(|port| port.expect("one port a worker")).collect())
}

/// Polls all hooks on the owner's switch. If one replaces the program, the workers continue with switches for the new
/// one.
fn poll_hooks<S: PacketSwitch>(
    owner: &mut Worker<S>,
    hooks: &mut HookList<S>,
    controls: &[&SlotControl<S>],
    gate: &QuiescenceGate,
    clock: &Clock,
) {
    if hooks.is_empty() {
        return;
    }
    wait_until_clear(owner.switch());
    for hook in hooks.iter_mut() {
        let program = Arc::clone(owner.switch().program());
        let stop_others = || gate.close(controls.iter().map(|control| &control.flag));
        owner.poll_hook(clock.now(), &mut **hook, &stop_others);
        if !Arc::ptr_eq(&program, owner.switch().program()) {
            let switches = owner.switch_mut().workers(controls.len() as u32);
            for (control, switch) in controls.iter().zip(switches) {
                *lock(&control.next) = Some(switch);
                control.waker.wake();
            }
        }
        gate.open();
    }
}

/// Polls a worker's ports once, with the next switch if there is one.
fn poll_worker<S: PacketSwitch>(
    worker: &mut Worker<S>,
    control: &SlotControl<S>,
    gate: &QuiescenceGate,
    clock: &Clock,
) -> usize {
    let _running = gate.enter(&control.flag);
    // The lock is contended only at the moment at which the program is replaced.
    if let Some(switch) = control.next.try_lock().ok().and_then(|mut next| next.take()) {
        worker.replace(clock.now(), switch);
    }
    worker.poll(clock)
}

/// Polls a worker's ports and, if no frame came, sleeps until one comes. Returns false if no frame can come any more.
fn poll_or_park<S: PacketSwitch>(
    worker: &mut Worker<S>,
    control: &SlotControl<S>,
    gate: &QuiescenceGate,
    clock: &Clock,
    longest: Duration,
) -> bool {
    if poll_worker(worker, control, gate, clock) > 0 {
        return true;
    }
    control.waker.arm();
    // Finds everything that came before the waker was armed.
    let has_received = poll_worker(worker, control, gate, clock) > 0;
    let goes_on = has_received || !worker.is_finished();
    if goes_on && !has_received {
        worker.switch_mut().rest();
        worker.wait(clock.now(), longest, &[control.waker.fd()]);
    }
    control.waker.disarm();
    goes_on
}

fn wait_until_clear<S: PacketSwitch>(owner: &S) {
    let begin = Instant::now();
    while !owner.is_clear() && begin.elapsed() < CLEAR_TIMEOUT {
        std::thread::sleep(Duration::from_micros(20));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
