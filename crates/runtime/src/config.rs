//! Defines the configuration of a run and its report.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ports::{Port, PortError, PortStats};
use switch::{PacketSwitch, PortId};

use crate::compile::{CompileHook, TakeoverCallback};
use crate::hook::{Hook, HookList};
use crate::limit::RunLimit;
use crate::links::LinkCallback;
use crate::pool::WorkerPool;
use crate::port_set::{AttachedPort, PortLossCallback};
use crate::sink::NotificationSink;
use crate::worker::Worker;
use crate::{live, offline};

/// A port of the switch and its drivers: one for each worker, or one for all.
pub struct PortDrivers {
    /// The port.
    pub id: PortId,
    /// The drivers.
    pub drivers: Vec<Box<dyn Port>>,
}

impl PortDrivers {
    /// Returns a port with one driver.
    pub fn single(id: PortId, driver: impl Port + 'static) -> PortDrivers {
        PortDrivers { id, drivers: vec![Box::new(driver)] }
    }
}

/// The description of a run. Fields that [`RunConfig::new`] leaves empty may be set.
///
/// ```text
/// let report = RunConfig { hooks: vec![Box::new(hook)], ..RunConfig::new(switch, ports) }.run_live(&stop)?;
/// ```
pub struct RunConfig<S> {
    /// The switch.
    pub switch: S,
    /// The ports, each with one driver or with one for each worker.
    pub ports: Vec<PortDrivers>,
    /// Number of threads that run packets. With 1 they run in the calling thread, beside the hooks.
    pub workers: usize,
    /// The hooks, in the order in which they are polled. Only live runs poll them.
    pub hooks: Vec<Box<dyn Hook<S>>>,
    /// The receivers of the switch's notifications, in the order in which they receive them.
    pub sinks: Vec<Arc<dyn NotificationSink>>,
    /// Called at once when a port can be used no longer. The other ports continue.
    pub on_port_loss: PortLossCallback,
    /// Called in a live run when a port has lost its link, and is down, or has one again.
    pub on_link_change: LinkCallback,
    /// Called in a live run when a program that was interpreted until then has been compiled.
    pub on_takeover: TakeoverCallback,
    /// Maximum duration of a live run.
    pub limit: Option<Duration>,
}

impl<S: PacketSwitch> RunConfig<S> {
    /// Describes a run with one worker and without hooks, sinks or limit.
    pub fn new(switch: S, ports: Vec<PortDrivers>) -> RunConfig<S> {
        RunConfig {
            switch,
            ports,
            workers: 1,
            hooks: Vec::new(),
            sinks: Vec::new(),
            on_port_loss: Box::new(|_, _| ()),
            on_link_change: Box::new(|_, _| ()),
            on_takeover: Box::new(|_, _| ()),
            limit: None,
        }
    }

    /// Forwards in real time until `stop` is set, the limit is reached, or no port is left. A port that fails is taken
    /// down; the others continue. A port without a link is down until it has one.
    ///
    /// # Errors
    /// If the process can open no more descriptors for the wakers of its threads and for changes of links.
    pub fn run_live(self, stop: &AtomicBool) -> io::Result<RunReport<S>> {
        let mut hooks = self.hooks;
        // It comes after the hook that may replace the program.
        hooks.push(Box::new(CompileHook::new(self.on_takeover)?));
        let mut hooks = HookList::new(hooks);
        let start = Instant::now();
        if self.workers == 1 {
            let mut worker = Worker::new(self.switch, single_drivers(self.ports));
            worker.set_sinks(self.sinks);
            worker.set_on_port_loss(self.on_port_loss);
            worker.watch_links(self.on_link_change)?;
            live::run(&mut worker, &mut hooks, RunLimit::new(stop, self.limit));
            return Ok(RunReport::new(worker, std::iter::empty(), start.elapsed()));
        }
        let (mut owner, mut pool) = WorkerPool::new(self.switch, self.ports, self.workers)?;
        pool.set_sinks(&self.sinks);
        owner.set_sinks(self.sinks);
        pool.set_on_port_loss(self.on_port_loss);
        owner.watch_links(self.on_link_change)?;
        pool.run(&mut owner, &mut hooks, RunLimit::new(stop, self.limit));
        Ok(RunReport::new(owner, pool.into_workers(), start.elapsed()))
    }

    /// Runs capture files to their end, in one worker: frames enter in the order of their times, and the switch's time
    /// is theirs.
    pub fn run_offline(self) -> RunReport<S> {
        let mut worker = Worker::new(self.switch, single_drivers(self.ports));
        worker.set_sinks(self.sinks);
        let start = Instant::now();
        offline::run(&mut worker);
        RunReport::new(worker, std::iter::empty(), start.elapsed())
    }
}

fn single_drivers(ports: Vec<PortDrivers>) -> Vec<(PortId, Box<dyn Port>)> {
    ports.into_iter().flat_map(|port| port.drivers.into_iter().map(move |driver| (port.id, driver))).collect()
}

/// The result of a run.
pub struct RunReport<S> {
    /// The switch; with several workers their owner, whose registry has the sums of all workers.
    pub switch: S,
    /// The ports, in the order of the [`RunConfig`].
    pub ports: Vec<PortReport>,
    /// Duration of the run.
    pub elapsed: Duration,
}

/// A port after a run.
pub struct PortReport {
    /// The port.
    pub id: PortId,
    /// The driver's name: its interface or its files.
    pub name: String,
    /// The counts of all its drivers.
    pub stats: PortStats,
    /// The error that took the port down.
    pub failure: Option<PortError>,
}

impl<S: PacketSwitch> RunReport<S> {
    /// Adds up the ports of the owner and of the workers. The owner's ports come first, so their order is the run's.
    fn new(owner: Worker<S>, workers: impl Iterator<Item = Worker<S>>, elapsed: Duration) -> RunReport<S> {
        let (switch, mut attached) = owner.into_parts();
        attached.extend(workers.flat_map(|worker| worker.into_parts().1));
        let mut ports: Vec<PortReport> = Vec::new();
        for AttachedPort { id, driver, failure, .. } in attached {
            match ports.iter_mut().find(|port| port.id == id) {
                Some(port) => {
                    port.stats += driver.stats();
                    port.failure = port.failure.take().or(failure);
                }
                None => ports.push(PortReport { id, name: driver.name().to_owned(), stats: driver.stats(), failure }),
            }
        }
        RunReport { switch, ports, elapsed }
    }

    /// Returns the errors of the ports that were lost, by port.
    pub fn failures(&self) -> impl Iterator<Item = (PortId, &PortError)> {
        let failures = self.ports.iter().filter_map(|port| Some((port.id, port.failure.as_ref()?)));
        failures.collect::<BTreeMap<_, _>>().into_iter()
    }
}
