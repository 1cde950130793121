//! Which process holds a network or a switch, so that no other is asked or ended in its place.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::output::Failure;

/// How long a process that was killed may take to be gone.
const LAST_MOMENTS: Duration = Duration::from_secs(2);

/// A process, and not another that came to have its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it began (proc(5), field 22 of stat).
    pub began: u64,
}

impl Process {
    /// The process that has this number now.
    pub fn of(pid: u32) -> Process {
        Process { pid, began: began(pid).unwrap_or(0) }
    }

    /// Whether it still runs.
    pub fn is_there(self) -> bool {
        began(self.pid) == Some(self.began)
    }

    /// Whether it is there and does nothing, since somebody stopped it (SIGSTOP) or looks into it with a debugger.
    pub fn is_stopped(self) -> bool {
        matches!(stat(self.pid), Some(('T' | 't', began)) if began == self.began)
    }

    /// Whether it ends within a moment.
    pub fn is_gone_soon(self) -> bool {
        let began = Instant::now();
        while self.is_there() && began.elapsed() < LAST_MOMENTS {
            std::thread::sleep(Duration::from_millis(5));
        }
        !self.is_there()
    }

    /// Sends it a signal, as kill(1) names them, if it is there.
    pub fn signal(self, signal: &str) -> Result<(), Failure> {
        if self.is_there() {
            let status = Command::new("kill").args([signal, &self.pid.to_string()]).stderr(Stdio::null()).status();
            status.with_context(|| format!("cannot end process {}", self.pid))?;
        }
        Ok(())
    }
}

/// When a process began; `None` if there is none of this number.
fn began(pid: u32) -> Option<u64> {
    // One that has ended and waits to be reaped has no namespaces any more.
    stat(pid).filter(|(state, _)| !matches!(state, 'Z' | 'X')).map(|(_, began)| began)
}

/// The state of a process and when it began (proc(5), fields 3 and 22 of stat).
fn stat(pid: u32) -> Option<(char, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may have spaces and parentheses; fields count from behind it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}
