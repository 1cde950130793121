//! Shows a progress line on standard error, only on a terminal.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Minimum interval between updates of the line.
const INTERVAL: Duration = Duration::from_millis(100);

/// Time that a compilation must take before its line is shown.
const COMPILE_LINE_DELAY: Duration = Duration::from_millis(700);

/// Runs `make`, which compiles to machine code. Its progress cannot be measured, so after [`COMPILE_LINE_DELAY`] the
/// elapsed time is shown.
pub fn with_compile_progress<T>(make: impl FnOnce() -> T) -> T {
    let (mut progress, begin) = (Progress::new(), Instant::now());
    if !progress.terminal {
        return make();
    }
    let tick = move || progress.say(|| format!("compiling to machine code  {} s", begin.elapsed().as_secs()));
    runtime::tick_during(COMPILE_LINE_DELAY, INTERVAL, tick, make)
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

    /// Shows a line, unless the last one is too recent.
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
