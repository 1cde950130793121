//! Runs a live run in a thread of its own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use switch::PacketSwitch;

use crate::config::{RunConfig, RunReport};

/// A live run in a thread of its own. The run ends when the handle is dropped.
pub struct RunHandle<S> {
    stop: Arc<AtomicBool>,
    /// `None` once the thread has been joined.
    thread: Option<JoinHandle<io::Result<RunReport<S>>>>,
}

impl<S: PacketSwitch> RunConfig<S> {
    /// Runs live in a thread of this name until the handle is stopped or dropped, the limit is reached, or no port is
    /// left.
    ///
    /// # Errors
    /// If the process can start no more threads.
    pub fn spawn_live(self, name: &str) -> io::Result<RunHandle<S>> {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || self.run_live(&flag))?;
        Ok(RunHandle { stop, thread: Some(thread) })
    }
}

impl<S> RunHandle<S> {
    /// Ends the run and returns its report.
    ///
    /// # Errors
    /// As [`RunConfig::run_live`].
    ///
    /// # Panics
    /// If the run panicked.
    pub fn stop(mut self) -> io::Result<RunReport<S>> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("only this method and `drop` take the thread");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl<S> Drop for RunHandle<S> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The owner of the handle has another error to report.
            let _ = thread.join();
        }
    }
}
