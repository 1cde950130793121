//! Starts a lab: starts its daemon and waits until the network is ready.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::error::failed_to;
use crate::process_identity::ProcessIdentity;
use crate::relaunch::{self, ProcessArguments, ProcessRole};
use crate::run_directory::RunDirectory;
use crate::{LabError, daemon};

/// Interval at which the stop flag is checked.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Maximum time in which an interrupted daemon removes what it created, before it is killed.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of the error output of a daemon that is reported, in bytes.
const MAX_REASON: usize = 16 * 1024;

/// Returns the reason why this user cannot create networks; `None` if nothing prevents it. Another process tries it,
/// since it changes the namespace of the process.
pub fn obstacle(arguments: &dyn ProcessArguments) -> Option<String> {
    let mut command = relaunch::command(arguments, ProcessRole::PermissionCheck);
    let tried = command.stdin(Stdio::null()).output().ok()?;
    if tried.status.success() { None } else { Some(reason(&tried.stderr)) }
}

/// Returns the error message of a process of this program.
fn reason(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr).trim().to_owned();
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

/// The lifetime of a lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabLifetime {
    /// The lab runs until it is ended.
    Independent,
    /// The lab ends with the process that starts it.
    Bound,
}

/// A lab that is ready.
#[derive(Debug)]
pub struct StartedLab {
    /// Duration of the start.
    pub took: Duration,
    /// Standard input of the daemon. A lab with a bound lifetime ends when this is dropped.
    _input: Option<ChildStdin>,
}

/// Starts a lab and waits until it is ready. `note` gets the notes of the daemon for the user. Setting `stop`
/// interrupts the start.
///
/// # Errors
/// Returns an error if the lab did not start. Everything that was created has been removed then.
pub fn start(
    name: &str,
    lifetime: LabLifetime,
    arguments: &dyn ProcessArguments,
    stop: &AtomicBool,
    note: &mut dyn FnMut(&str),
) -> Result<StartedLab, LabError> {
    if let Some(lab) = RunDirectory::find(name)? {
        return Err(lab.already_up());
    }
    let began = Instant::now();
    let is_bound = lifetime == LabLifetime::Bound;
    let mut command = relaunch::command(arguments, ProcessRole::Daemon { lab: name, is_bound });
    command.stdin(if is_bound { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(failed_to("start the lab's daemon"))?;
    let errors = child.stderr.take().map(|stderr| std::thread::spawn(move || last_bytes(stderr)));
    match last_line(&mut child, stop, note) {
        Some(line) if line == daemon::READY => Ok(StartedLab { took: began.elapsed(), _input: child.stdin.take() }),
        Some(_) => Err(failure(child, errors)),
        None => {
            interrupt(name, child);
            Err(LabError::Interrupted)
        }
    }
}

/// Returns the last line that the daemon writes while it starts; empty if it ends without one. Passes its notes on.
/// Returns `None` if `stop` was set before.
fn last_line(child: &mut Child, stop: &AtomicBool, note: &mut dyn FnMut(&str)) -> Option<String> {
    let stdout = child.stdout.take()?;
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        // The receiver may have stopped waiting.
        while lines.next().is_some_and(|line| sender.send(line.clone()).is_ok() && line.starts_with(daemon::NOTE)) {}
    });
    loop {
        match lines.recv_timeout(STOP_CHECK_INTERVAL) {
            Ok(line) => match line.strip_prefix(daemon::NOTE) {
                Some(text) => note(text),
                None => return Some(line),
            },
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => return None,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Some(String::new()),
        }
    }
}

/// Ends a daemon that is starting. Everything that it created is gone afterwards.
fn interrupt(name: &str, mut child: Child) {
    let daemon = ProcessIdentity::of(child.id());
    // If this fails, the daemon is killed.
    let _ = daemon.signal(Signal::TERM);
    let begin = Instant::now();
    while matches!(child.try_wait(), Ok(None)) && begin.elapsed() < CLEANUP_TIMEOUT {
        std::thread::sleep(STOP_CHECK_INTERVAL);
    }
    // The kernel removes the namespaces with the process.
    let _ = child.kill();
    let _ = child.wait();
    // A killed daemon leaves its run directory. If this fails, the next lab of the same name removes it.
    let _ = RunDirectory::sweep_after(name, Some(daemon));
}

/// Reads to the end and returns the last [`MAX_REASON`] bytes. A daemon whose output nobody reads would block.
fn last_bytes(mut stderr: impl Read) -> Vec<u8> {
    let (mut last, mut block) = (Vec::new(), [0; 4096]);
    loop {
        match stderr.read(&mut block) {
            Ok(count @ 1..) => last.extend_from_slice(&block[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => return last,
        }
        last.drain(..last.len().saturating_sub(MAX_REASON));
    }
}

/// Returns the reason why a daemon ended before the network was ready.
fn failure(mut child: Child, errors: Option<JoinHandle<Vec<u8>>>) -> LabError {
    if let Err(error) = child.wait() {
        return failed_to("wait for the lab's daemon")(error);
    }
    let errors = errors.and_then(|errors| errors.join().ok());
    LabError::DaemonFailed(reason(&errors.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_long_output_is_kept() {
        let text = [vec![b'w'; 100_000], b"error: it failed\n".to_vec()].concat();
        let last = last_bytes(text.as_slice());
        assert_eq!(last.len(), MAX_REASON);
        assert!(last.ends_with(b"wwwerror: it failed\n"));
    }
}
