//! Handles Ctrl-C and requests to terminate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::output::Failure;

/// Returns a flag that Ctrl-C or a request to terminate sets. A second Ctrl-C ends the process at once.
pub fn stop_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, stop.clone())
            .and_then(|_| signal_hook::flag::register(signal, stop.clone()))
            .context("cannot listen for Ctrl-C")?;
    }
    debug_assert!(!stop.load(Ordering::Relaxed));
    Ok(stop)
}

/// Returns a flag that Ctrl-C, a request to terminate or a hangup sets, for a process that must remove a network before
/// it ends. A repeated signal sets it again.
pub fn flag_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, stop.clone()).context("cannot listen for Ctrl-C")?;
    }
    Ok(stop)
}

/// Ctrl-C and requests to terminate, for a thread that waits for one. A second Ctrl-C ends the process at once.
pub struct StopSignals(Signals);

impl StopSignals {
    /// Starts to receive the signals.
    pub fn new() -> Result<StopSignals, Failure> {
        // This comes before the flag: a signal in between must not be lost.
        let signals = Signals::new([SIGINT, SIGTERM]).context("cannot listen for Ctrl-C")?;
        stop_on_signals()?;
        Ok(StopSignals(signals))
    }

    /// Returns a handle that ends a wait from any thread.
    pub fn handle(&self) -> Handle {
        self.0.handle()
    }

    /// Waits until a signal arrives or the handle is closed. Returns whether it was a signal.
    pub fn wait(mut self) -> bool {
        self.0.forever().next().is_some()
    }
}
