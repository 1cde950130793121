//! A progress line on standard error, shown only on a terminal.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Interval between changes of the line.
const INTERVAL: Duration = Duration::from_millis(100);

/// Minimum duration of work that gets a line.
const PATIENCE: Duration = Duration::from_millis(700);

/// Creates a switch or its program. The progress of machine code generation is unknown, so a line shows the elapsed
/// time if it is long.
pub fn compiling<T>(make: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        let (done, is_done) = channel::<()>();
        scope.spawn(move || {
            let (mut progress, begin) = (Progress::new(), Instant::now());
            let mut wait = PATIENCE;
            while progress.terminal && is_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                progress.say(|| format!("compiling to machine code  {} s", begin.elapsed().as_secs()));
                wait = INTERVAL;
            }
        });
        let result = make();
        drop(done);
        result
    })
}

/// The progress line. It disappears when this value is dropped.
pub struct Progress {
    shown: bool,
    terminal: bool,
    last: Option<Instant>,
}

impl Progress {
    /// Creates a line, which is shown only if standard error is a terminal.
    pub fn new() -> Progress {
        Progress { shown: false, terminal: std::io::stderr().is_terminal(), last: None }
    }

    /// Shows a text, unless the last one is too recent.
    pub fn say(&mut self, text: impl FnOnce() -> String) {
        if self.terminal && self.last.is_none_or(|last| last.elapsed() >= INTERVAL) {
            self.last = Some(Instant::now());
            let _ = write!(std::io::stderr(), "\r\x1b[2K{}", text());
            let _ = std::io::stderr().flush();
            self.shown = true;
        }
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
            let _ = std::io::stderr().flush();
        }
        self.last = None;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
