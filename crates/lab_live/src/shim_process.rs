//! Supervises the process of a host's shim, which passes the host's packets between its stack and its interface.
//!
//! Without it the host drops packets that carry programs, so a process that ends is started again.

use std::io::{ErrorKind, Read};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use ports::namespace::Namespace;
use serde_json::Value;

use crate::LabError;
use crate::child_process::{self, ChildProcess};
use crate::error::failed_to;
use crate::relaunch::{self, ProcessArguments, ProcessRole};
use crate::run_directory::{ProcessTable, RunDirectory};
use crate::switch_status::{ShimStatus, SwitchStatus};
use crate::switch_thread::SwitchCommand;

/// Interval at which the process is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Minimum time from one start to the next one. It doubles with each process that ends within [`STABLE_AFTER`].
const RESTART_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum of that time, as a number of doublings: 32 s.
const MAX_DOUBLINGS: u32 = 5;

/// Time after which a process counts as stable.
const STABLE_AFTER: Duration = Duration::from_secs(60);

/// Maximum length of a report, in bytes. Longer ones are refused.
const MAX_REPORT: usize = 256 << 10;

/// The reason why a shim that reports too much counts as silent.
const TOO_LONG: &str = "its report exceeds 256 KiB: insert programs with fewer words, or at fewer hosts";

/// The shim of a host, and its process.
pub struct ShimProcess {
    host: String,
    lab: String,
    namespace: Arc<Namespace>,
    arguments: Arc<dyn ProcessArguments>,
    table: Arc<ProcessTable>,
    process: Option<ChildProcess>,
    /// The reason for the end of the last process.
    why: Option<String>,
    started: Instant,
    starts: u64,
    /// Number of processes in a row that ended before they were stable.
    short_lives: u32,
    lines: ReportLines,
    report: Option<(Value, Instant)>,
}

impl ShimProcess {
    /// Returns the shim of a host without a process.
    pub fn new(
        (lab, host): (&str, &str),
        namespace: Arc<Namespace>,
        arguments: Arc<dyn ProcessArguments>,
        table: Arc<ProcessTable>,
    ) -> ShimProcess {
        ShimProcess {
            host: host.to_owned(),
            lab: lab.to_owned(),
            namespace,
            arguments,
            table,
            process: None,
            why: None,
            started: Instant::now(),
            starts: 0,
            short_lives: 0,
            lines: ReportLines::default(),
            report: None,
        }
    }

    /// Starts the process without waiting until it is ready.
    pub fn start(&mut self) -> Result<(), LabError> {
        (self.started, self.starts) = (Instant::now(), self.starts + 1);
        self.lines = ReportLines::default();
        let role = ProcessRole::Shim { lab: &self.lab, host: &self.host };
        let mut command = relaunch::command_in(&self.namespace, &*self.arguments, role)?;
        command.stdin(Stdio::null());
        let log = RunDirectory::shim_log(&self.lab, &self.host);
        self.process = Some(ChildProcess::start(command, &format!("shim of {}", self.host), &log, &self.table)?);
        Ok(())
    }

    /// Waits until the shim passes packets.
    pub fn wait_until_ready(&mut self) -> Result<(), LabError> {
        let Some(process) = &mut self.process else { return Ok(()) };
        if process.wait_until_ready()? {
            return process.connection.set_nonblocking(true).map_err(failed_to("read from a process"));
        }
        self.kill();
        let stderr = child_process::error_in(&RunDirectory::shim_log(&self.lab, &self.host));
        Err(LabError::NotStarted { node: format!("shim of {}", self.host), stderr })
    }

    /// Supervises the process until a command ends it or all senders of commands are dropped.
    pub fn supervise(mut self, commands: &Receiver<SwitchCommand>) {
        loop {
            match commands.recv_timeout(CHECK_INTERVAL) {
                Ok(SwitchCommand::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    return self.process.take().into_iter().for_each(ChildProcess::end);
                }
                Ok(SwitchCommand::Status(to)) => {
                    self.check();
                    // The receiver may have been dropped.
                    let _ = to.send(self.status());
                }
                // No request leads to another command: a shim is not a node of the network.
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
            self.check();
        }
    }

    /// Reads reports, and starts the process again if it has ended.
    fn check(&mut self) {
        self.receive();
        if let Some(cause) = self.process.as_mut().and_then(ChildProcess::end_cause) {
            self.process = None;
            self.count_end();
            let log = std::fs::read_to_string(RunDirectory::shim_log(&self.lab, &self.host)).unwrap_or_default();
            let error = log.lines().find_map(|line| line.strip_prefix("error: "));
            self.why = Some(error.map_or(cause.clone(), |error| format!("{cause}: {error}")));
        }
        if self.process.is_none()
            && self.started.elapsed() >= pause(self.short_lives)
            && let Err(failure) = self.start().and_then(|()| self.wait_until_ready())
        {
            self.kill();
            self.count_end();
            self.why = Some(failure.sentence());
        }
    }

    fn count_end(&mut self) {
        let is_stable = self.started.elapsed() >= STABLE_AFTER;
        self.short_lives = if is_stable { 0 } else { self.short_lives.saturating_add(1) };
    }

    /// Receives what the process has reported, without waiting.
    fn receive(&mut self) {
        let Some(process) = &mut self.process else { return };
        let mut buffer = [0; 16 << 10];
        // A process that never pauses must not occupy this thread.
        for _ in 0..MAX_REPORT / buffer.len() {
            match process.connection.read(&mut buffer) {
                Ok(0) => break,
                Ok(len) => self.lines.add(&buffer[..len]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        if let Some(report) = self.lines.report.take() {
            self.report = Some((report, Instant::now()));
        }
    }

    fn status(&self) -> SwitchStatus {
        let report = self.report.as_ref();
        let shim = ShimStatus {
            restarts: self.starts.saturating_sub(1),
            report: report.map_or(Value::Null, |(report, _)| report.clone()),
            age_s: report.map(|(_, at)| at.elapsed().as_secs_f64()),
        };
        SwitchStatus {
            failed: self.process.is_none(),
            is_suspended: self.process.as_ref().is_some_and(ChildProcess::is_stopped),
            why: self.lines.refusal().map(str::to_owned).or_else(|| self.why.clone()),
            pid: self.process.as_ref().map(|process| process.identity.pid),
            shim: Some(shim),
            ..SwitchStatus::default()
        }
    }

    fn kill(&mut self) {
        self.process.take().into_iter().for_each(ChildProcess::kill);
    }
}

impl Drop for ShimProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the minimum time between two starts after this number of short lives in a row.
fn pause(short_lives: u32) -> Duration {
    RESTART_INTERVAL * (1 << short_lives.saturating_sub(1).min(MAX_DOUBLINGS))
}

/// Splits what a shim sends into reports, one a line.
#[derive(Debug, Default)]
struct ReportLines {
    /// The beginning of the next line, at most [`MAX_REPORT`] bytes of it.
    line: Vec<u8>,
    /// Whether the line is too long, so that its rest is dropped.
    is_too_long: bool,
    /// Whether the last report was too long.
    is_refused: bool,
    /// The last report that nobody has taken.
    report: Option<Value>,
}

impl ReportLines {
    /// Returns the reason why the last report was refused, if it was.
    fn refusal(&self) -> Option<&'static str> {
        self.is_refused.then_some(TOO_LONG)
    }

    /// Adds what was received. A line that is not JSON is dropped.
    fn add(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            if self.is_too_long || self.line.len() + text.len() > MAX_REPORT {
                (self.is_too_long, self.is_refused) = (true, true);
                self.line.clear();
            } else {
                self.line.extend_from_slice(text);
            }
            if text.len() < part.len() {
                if let Ok(report) = serde_json::from_slice(&self.line) {
                    (self.report, self.is_refused) = (Some(report), false);
                }
                self.line.clear();
                self.is_too_long = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pauses_between_starts_double_up_to_a_maximum() {
        let seconds = |short_lives| pause(short_lives).as_secs();
        assert_eq!([0, 1, 2, 3, 6, 7, u32::MAX].map(seconds), [1, 1, 2, 4, 32, 32, 32]);
    }

    #[test]
    fn the_last_complete_report_counts() {
        let mut lines = ReportLines::default();
        let mut after = |bytes: &[u8]| {
            lines.add(bytes);
            lines.report.take()
        };
        assert_eq!(after(b"{\"a\": 1}\n{\"a\": 2}\n{\"a\""), Some(json!({ "a": 2 })));
        assert_eq!(after(b""), None);
        assert_eq!(after(b": 3}\n"), Some(json!({ "a": 3 })));
        assert_eq!(after(b"no JSON\n{\"a\": 4}\n}\n"), Some(json!({ "a": 4 })));
    }

    #[test]
    fn a_report_that_is_too_long_is_refused_as_a_whole_until_the_next_one() {
        let mut lines = ReportLines::default();
        let longest = format!("\"{}\"", "x".repeat(MAX_REPORT - 2));
        lines.add(longest.as_bytes());
        lines.add(b"\n");
        assert_eq!((lines.report.take(), lines.refusal()), (Some(json!("x".repeat(MAX_REPORT - 2))), None));
        // The rest of the line is JSON, and no report.
        for part in [longest.as_bytes(), b"0", &[b'1'; 5000], b"7"] {
            lines.add(part);
        }
        assert_eq!((lines.line.len(), lines.refusal()), (0, Some(TOO_LONG)));
        lines.add(b"7\n");
        assert_eq!((lines.report.take(), lines.refusal()), (None, Some(TOO_LONG)));
        // A line that comes at once is not longer either.
        lines.add(format!("{longest}0\n").as_bytes());
        assert_eq!((lines.report.take(), lines.refusal()), (None, Some(TOO_LONG)));
        lines.add(b"8\n");
        assert_eq!((lines.report.take(), lines.refusal()), (Some(json!(8)), None));
    }
}
