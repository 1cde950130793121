//! Plays a scenario in real time: the traffic and the faults that a simulated network would have, on a live one.
//!
//! ```text
//!  play_in_process ──> TrafficProcess: a thread per sender and receiver, in the hosts' namespaces
//!                        └ sends the daemon the faults when they are due
//! ```
//!
//! A sender and its receiver are threads of one process, so a latency is a difference of one clock.

mod clock;
mod faults;
mod frames;
mod measurements;
mod ping;
mod requests;
mod results;
mod tcp;
mod threads;
mod udp;
mod unsupported;

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab::Topology;
use lab::scenario::{Results, Scenario};
use ports::namespace::Namespace;
use rustix::process::Signal;

use crate::error::failed_to;
use crate::process_identity::ProcessIdentity;
use crate::relaunch::{self, ProcessArguments, ProcessRole};
use crate::{LabError, LabRequest, RunDirectory, client};
use clock::ScenarioClock;
use threads::TrafficThreads;
pub use unsupported::check_supported;

/// The frames of the captures that a scenario replays, by name, each with its time in nanoseconds.
pub type ReplayedFrames = BTreeMap<String, Vec<(u64, Vec<u8>)>>;

/// Time between the start of the last thread and the beginning of the scenario. All threads wait for the clock by then.
const START_DELAY: Duration = Duration::from_millis(20);

/// Interval at which a process that plays is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Exit code of a process whose parent ended before it.
const ORPHANED: i32 = 3;

/// Plays a scenario in a process of its own, which enters the lab's user namespace; only a process with one thread can.
/// Setting `stop` ends that process; this one continues, so that it can end the lab.
///
/// # Errors
/// Returns an error if the process cannot start.
pub fn play_in_process(lab: &str, arguments: &dyn ProcessArguments, stop: &AtomicBool) -> Result<ExitStatus, LabError> {
    let mut command = relaunch::command(arguments, ProcessRole::Traffic { lab });
    // The process ends when its standard input does, which is when this process ends.
    let mut child = command.stdin(Stdio::piped()).spawn().map_err(failed_to("start the traffic process"))?;
    loop {
        if let Some(status) = child.try_wait().map_err(failed_to("wait for the traffic process"))? {
            return Ok(status);
        }
        if stop.swap(false, Ordering::Relaxed) {
            // A terminal signals both processes, but `kill` signals only this one.
            ProcessIdentity::of(child.id()).signal(Signal::TERM)?;
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
}

/// A process that plays a scenario on a lab. It has entered the lab's user namespace.
#[derive(Debug)]
pub struct TrafficProcess {
    lab: RunDirectory,
}

impl TrafficProcess {
    /// Enters the user namespace of a lab. The calling process must have one thread only. From now on it ends when its
    /// standard input does.
    ///
    /// # Errors
    /// Returns an error if the lab does not run, or if its namespace cannot be entered.
    pub fn enter(lab: Option<&str>) -> Result<TrafficProcess, LabError> {
        let lab = RunDirectory::choose(lab)?;
        ports::namespace::join_user(lab.daemon.pid)?;
        std::thread::spawn(|| {
            // Nothing is ever written to it.
            let _ = std::io::stdin().lock().read(&mut [0]);
            std::process::exit(ORPHANED);
        });
        Ok(TrafficProcess { lab })
    }

    /// Plays a scenario and returns the results in the form of a simulation's.
    ///
    /// # Errors
    /// Returns an error if a sender or receiver cannot start or fails, or if the daemon does not respond.
    pub fn play(
        &self,
        topology: &Topology,
        scenario: &Scenario,
        replays: &ReplayedFrames,
        seed: u64,
    ) -> Result<Results, LabError> {
        let lab = &self.lab;
        let hosts = topology.hosts.iter().map(|host| {
            let descriptor = lab.host_descriptor(&host.name)?;
            Ok(Arc::new(Namespace::held(lab.daemon.pid, descriptor, &host.name)?))
        });
        let hosts: Vec<Arc<Namespace>> = hosts.collect::<Result<_, LabError>>()?;
        let clock = ScenarioClock::new(Duration::from_nanos(scenario.duration.as_ns()));
        let mut threads = TrafficThreads::new(topology, &hosts, replays, clock.clone(), seed);
        for (number, traffic) in scenario.traffic.iter().enumerate() {
            threads.add(number, traffic)?;
        }
        let schedule = scenario.schedule(topology, seed);
        let later = faults::apply_first(&schedule, topology, lab)?;
        clock.begin_in(START_DELAY);
        faults::apply(later, topology, lab, &clock)?;
        std::thread::sleep(clock.remaining());
        let status = client::request(lab, &LabRequest::Status)?;
        let (flows, measured) = threads.finish()?;
        Ok(results::results(topology, scenario, &flows, measured, &status))
    }
}
