//! Processes that end with us, or at a time limit.

use std::process::{Child, ExitStatus};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

/// Kills the child process when dropped.
pub(super) struct KillOnDrop(pub(super) Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Ends a client that takes too long, so a hang counts as a failure. Its thread owns the client: no other process
/// can have the id of a client that was not waited for.
pub(super) struct Watchdog {
    /// Dropped to end the client before its time.
    _cancel: mpsc::Sender<()>,
    thread: JoinHandle<std::io::Result<ExitStatus>>,
}

impl Watchdog {
    pub(super) fn start(mut client: KillOnDrop, limit: Duration) -> Watchdog {
        const POLL: Duration = Duration::from_millis(20);
        let (cancel, cancelled) = mpsc::channel();
        let begun = Instant::now();
        let thread = std::thread::spawn(move || {
            while begun.elapsed() < limit && cancelled.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
                if let Some(status) = client.0.try_wait()? {
                    return Ok(status);
                }
            }
            client.0.kill()?;
            client.0.wait()
        });
        Watchdog { _cancel: cancel, thread }
    }

    /// Waits until the client ends, by itself or by the limit.
    pub(super) fn wait(self) -> Result<ExitStatus> {
        let status = self.thread.join().map_err(|_| anyhow!("the watchdog panicked"))?;
        status.context("cannot wait for the client")
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::{KillOnDrop, Watchdog};

    fn client(seconds: &str) -> KillOnDrop {
        KillOnDrop(Command::new("sleep").arg(seconds).spawn().expect("`sleep` runs"))
    }

    #[test]
    fn a_client_that_takes_too_long_is_killed() {
        let status = Watchdog::start(client("3600"), Duration::ZERO).wait().expect("it is waited for");
        assert_eq!(status.code(), None, "a signal ended it: {status}");
    }

    #[test]
    fn a_watchdog_ends_with_its_client() {
        let status = Watchdog::start(client("0"), Duration::from_secs(3600)).wait().expect("it is waited for");
        assert!(status.success(), "{status}");
    }

    #[test]
    fn a_watchdog_that_is_dropped_ends_its_client() {
        let Watchdog { _cancel, thread } = Watchdog::start(client("3600"), Duration::from_secs(3600));
        drop(_cancel);
        let status = thread.join().expect("it does not panic").expect("it is waited for");
        assert_eq!(status.code(), None, "a signal ended it: {status}");
    }
}
