//! Waiting for an answer of the packets' thread so that it need not wake anybody.
//!
//! A task that sleeps has to be woken by whoever answers, with a system call that interrupts another processor: in a
//! virtual machine more than ten microseconds, which is hundreds of packets. An answer comes between two batches, though,
//! mostly sooner than that. So the server looks for it a few times before it goes to sleep, and lets its other tasks run in
//! between.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// How long the server looks, about what sleeping and being woken costs both sides together.
const LOOKING: Duration = Duration::from_micros(50);
/// Answers that are slept for in a row at most, before one is looked for again.
const MOST_SLEEPS: u32 = 16;

/// Whether looking pays: where the packets' thread sleeps, has long batches, or shares its processor, it does not. Each time
/// that it did not, twice as many answers are slept for before it is tried again.
pub(crate) struct Lookout {
    /// Answers that are still to be slept for.
    sleeps: AtomicU32,
    /// How many were to be slept for the last time that looking was in vain; 0 if it was not.
    slept: AtomicU32,
    /// Whether there is a processor for the server beside that of the packets.
    may_look: bool,
}

impl Lookout {
    pub(crate) fn new() -> Lookout {
        let may_look = std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1);
        Lookout { sleeps: AtomicU32::new(0), slept: AtomicU32::new(0), may_look }
    }

    /// The answer, or `None` if whoever had to give it is gone.
    pub(crate) async fn wait<T>(&self, mut answer: oneshot::Receiver<T>) -> Option<T> {
        let less = |sleeps: u32| sleeps.checked_sub(1);
        if self.may_look && self.sleeps.fetch_update(Relaxed, Relaxed, less).is_err() {
            let begin = Instant::now();
            while begin.elapsed() < LOOKING {
                match answer.try_recv() {
                    Err(oneshot::error::TryRecvError::Empty) => tokio::task::yield_now().await,
                    came => {
                        self.slept.store(0, Relaxed);
                        return came.ok();
                    }
                }
            }
            let sleeps = (self.slept.load(Relaxed) * 2).clamp(1, MOST_SLEEPS);
            self.slept.store(sleeps, Relaxed);
            self.sleeps.store(sleeps, Relaxed);
        }
        answer.await.ok()
    }
}
