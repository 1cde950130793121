//! Runs the thread that keeps the routes of a shim's device equal to those of the interface.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};

use ports::RouteFollower;

/// A thread that follows routes until this is dropped.
pub struct RoutesThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RoutesThread {
    /// Starts the thread, which gives up privileges with `restrict` first. It needs CAP_NET_ADMIN, so the caller must
    /// not have given it up.
    ///
    /// # Errors
    /// If the system cannot start a thread, and those of `restrict`.
    pub fn start<E: From<io::Error> + Send + 'static>(
        mut follower: RouteFollower,
        restrict: impl FnOnce() -> Result<(), E> + Send + 'static,
    ) -> Result<RoutesThread, E> {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, (sender, restricted)) = (Arc::clone(&stop), sync_channel(1));
        let run = move || {
            let result = restrict();
            let is_restricted = result.is_ok();
            // The caller waits for it.
            let _ = sender.send(result);
            if is_restricted {
                follower.follow(&stopped);
            }
        };
        let thread = thread::Builder::new().name("routes".to_owned()).spawn(run)?;
        let started = RoutesThread { stop, thread: Some(thread) };
        restricted.recv().map_err(|_| io::Error::other("the thread that follows routes has ended"))??;
        Ok(started)
    }
}

impl Drop for RoutesThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does not panic.
            let _ = thread.join();
        }
    }
}
