//! Starts and ends a process of a lab that reports when it is ready, and that ends when a socket to it is closed.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::LabError;
use crate::error::failed_to;
use crate::process_identity::ProcessIdentity;
use crate::run_directory::ProcessTable;

/// The line that a process writes when it is ready.
pub(crate) const READY: &str = "ready";

/// Maximum time in which a process starts. It may compile a program.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum time in which a process ends, before it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// A running process and the daemon's end of the socket pair to it.
pub struct ChildProcess {
    pub child: Child,
    pub identity: ProcessIdentity,
    /// The process ends when this is closed.
    pub connection: UnixStream,
}

impl ChildProcess {
    /// Starts the process of a node. Its standard output is the other end of the socket pair; its standard error goes
    /// to `log`.
    pub fn start(mut command: Command, name: &str, log: &Path, table: &ProcessTable) -> Result<ChildProcess, LabError> {
        let (connection, other_end) = UnixStream::pair().map_err(failed_to("create a socket pair"))?;
        let log = File::create(log).map_err(failed_to(format!("write {}", log.display())))?;
        command.stdout(OwnedFd::from(other_end)).stderr(log).process_group(0);
        let mut child = command.spawn().map_err(failed_to(format!("start a process for `{name}`")))?;
        table.add(name, child.id()).inspect_err(|_| {
            // A process that is not recorded would survive a crash of the daemon.
            let _ = child.kill();
            let _ = child.wait();
        })?;
        let identity = ProcessIdentity::of(child.id());
        Ok(ChildProcess { child, identity, connection })
    }

    /// Waits until the process is ready; false if it ends first, or does not become ready in time.
    pub fn wait_until_ready(&mut self) -> Result<bool, LabError> {
        let mut line = String::new();
        self.connection.set_read_timeout(Some(START_TIMEOUT)).map_err(failed_to("wait for a process"))?;
        let _ = BufReader::new((&self.connection).take(64)).read_line(&mut line);
        Ok(line.trim() == READY)
    }

    /// Returns the reason of its end if the process has ended.
    pub fn end_cause(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten().map(cause)
    }

    /// Whether a signal or a debugger has stopped the process.
    pub fn is_stopped(&self) -> bool {
        self.identity.is_stopped()
    }

    /// Suspends the process (SIGSTOP), or lets it continue.
    pub fn suspend(&self, is_suspended: bool) -> Result<(), LabError> {
        self.identity.signal(if is_suspended { Signal::STOP } else { Signal::CONT })
    }

    /// Kills the process.
    pub fn kill(mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends the process: closes the connection, and kills the process if it still runs after [`END_TIMEOUT`].
    pub fn end(self) {
        let ChildProcess { mut child, identity, connection } = self;
        drop(connection);
        let begin = Instant::now();
        // A stopped process does not see that the connection is closed.
        while begin.elapsed() < END_TIMEOUT && !identity.is_stopped() {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Returns the last error message that a process has written to its log.
pub fn error_in(log: &Path) -> String {
    let stderr = std::fs::read_to_string(log).unwrap_or_default();
    stderr.trim().trim_start_matches("error: ").to_owned()
}

/// Describes the end of a process.
fn cause(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("its process was terminated by signal {signal}"),
        (None, code) => format!("its process exited with code {}", code.unwrap_or(0)),
    }
}
