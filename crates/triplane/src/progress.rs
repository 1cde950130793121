//! A line on standard error that says how far it has got, where someone sees it.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often the line changes.
const INTERVAL: Duration = Duration::from_millis(100);

/// Work that is done sooner goes without a line.
const PATIENCE: Duration = Duration::from_millis(700);

/// Makes a switch, or what it runs. How far machine code has got nobody knows, so a line says how long it has been made, if
/// that is long.
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

/// The line. It is gone when this is dropped.
pub struct Progress {
    shown: bool,
    terminal: bool,
    last: Option<Instant>,
}

impl Progress {
    /// A line, if standard error is a terminal.
    pub fn new() -> Progress {
        Progress { shown: false, terminal: std::io::stderr().is_terminal(), last: None }
    }

    /// Says something, unless it is too soon.
    pub fn say(&mut self, text: impl FnOnce() -> String) {
        if self.terminal && self.last.is_none_or(|last| last.elapsed() >= INTERVAL) {
            self.last = Some(Instant::now());
            let _ = write!(std::io::stderr(), "\r\x1b[2K{}", text());
            let _ = std::io::stderr().flush();
            self.shown = true;
        }
    }

    /// Takes the line away.
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
