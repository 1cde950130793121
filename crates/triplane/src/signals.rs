//! Ctrl-C and requests to terminate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};

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
