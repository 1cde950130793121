//! Identifies a process. The identity prevents a signal to another process that got the same process id later.

use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::error::failed_to;

/// Maximum time that the kernel needs to remove a killed process.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// A process id, and the start time that distinguishes the process from a later one with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: u32,
    /// The start time in clock ticks since boot (proc(5), field 22 of stat).
    #[serde(rename = "began")]
    pub start_ticks: u64,
}

impl ProcessIdentity {
    /// Returns the identity of the process that has this id now.
    pub fn of(pid: u32) -> ProcessIdentity {
        ProcessIdentity { pid, start_ticks: start_time(pid).unwrap_or(0) }
    }

    /// Whether the process still runs.
    pub fn is_running(self) -> bool {
        start_time(self.pid) == Some(self.start_ticks)
    }

    /// Whether the process is stopped by a signal (SIGSTOP) or a debugger.
    pub fn is_stopped(self) -> bool {
        matches!(stat(self.pid), Some(('T' | 't', start_ticks)) if start_ticks == self.start_ticks)
    }

    /// Waits for the end of a killed process; false if it still runs after [`EXIT_TIMEOUT`].
    pub fn wait_for_exit(self) -> bool {
        let begin = Instant::now();
        while self.is_running() && begin.elapsed() < EXIT_TIMEOUT {
            std::thread::sleep(Duration::from_millis(5));
        }
        !self.is_running()
    }

    /// Sends a signal if the process still runs.
    pub fn signal(self, signal: Signal) -> Result<(), LabError> {
        let send = |pid| {
            // The descriptor stays with the process that has the id now, so a later process cannot get the signal.
            let process = pidfd_open(pid, PidfdFlags::empty())?;
            if self.is_running() { pidfd_send_signal(process, signal) } else { Ok(()) }
        };
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
        match send(pid) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(failed_to(format!("terminate process {}", self.pid))(error.into())),
        }
    }
}

/// Returns the start time of a process; `None` if there is none with this id.
fn start_time(pid: u32) -> Option<u64> {
    // A process that has ended and was not reaped yet has no namespaces any more.
    stat(pid).filter(|(state, _)| !matches!(state, 'Z' | 'X')).map(|(_, start_ticks)| start_ticks)
}

/// Returns the state and the start time of a process (proc(5), fields 3 and 22 of stat).
fn stat(pid: u32) -> Option<(char, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_with_a_reused_id_is_another_process() {
        let own = ProcessIdentity::of(std::process::id());
        assert!(own.is_running() && !own.is_stopped());
        let earlier = ProcessIdentity { start_ticks: own.start_ticks.wrapping_add(1), ..own };
        assert!(!earlier.is_running());
    }
    #[test]
    fn only_the_process_itself_gets_a_signal() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = ProcessIdentity::of(child.id());
        let earlier = ProcessIdentity { start_ticks: process.start_ticks.wrapping_sub(1), ..process };
        earlier.signal(Signal::KILL).unwrap();
        process.signal(Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
        process.signal(Signal::KILL).unwrap();
    }
}
