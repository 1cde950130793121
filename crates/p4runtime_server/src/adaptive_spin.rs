//! Adaptive spinning: waits for a result of the packet thread without making it wake another thread.
//!
//! Waking a sleeping task costs the packet thread a system call that interrupts another processor. In a virtual
//! machine this takes more than 10 µs, the time of hundreds of packets. A result usually arrives sooner than that,
//! since operations run between two batches. The server therefore polls for it for a short time before it sleeps, and
//! yields to its other tasks in between.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// Time to spin. It is about the cost of sleeping and waking for both sides together.
const SPIN_TIME: Duration = Duration::from_micros(50);
/// Maximum number of consecutive waits without spinning, before spinning is tried again.
const MAX_SLEEPS: u32 = 16;

/// Decides when to spin. Spinning does not pay if the packet thread sleeps, has long batches or shares its processor.
/// Each time it fails, twice as many waits sleep before it is tried again.
pub(crate) struct AdaptiveSpin {
    /// Number of waits that still sleep at once.
    sleeps: AtomicU32,
    /// Number of waits that were to sleep after the last failed spin; 0 after a successful one.
    slept: AtomicU32,
    /// Whether the server has a processor beside that of the packet thread.
    may_spin: bool,
}

impl AdaptiveSpin {
    pub(crate) fn new() -> AdaptiveSpin {
        let may_spin = std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1);
        AdaptiveSpin { sleeps: AtomicU32::new(0), slept: AtomicU32::new(0), may_spin }
    }

    /// Waits for the result. Returns `None` if the sender is gone.
    pub(crate) async fn wait<T>(&self, answer: oneshot::Receiver<T>) -> Option<T> {
        self.wait_by(Instant::now, answer).await
    }

    /// Does the work of [`AdaptiveSpin::wait`] with a given clock, which is read only while spinning.
    async fn wait_by<T>(&self, clock: impl Fn() -> Instant, mut answer: oneshot::Receiver<T>) -> Option<T> {
        let less = |sleeps: u32| sleeps.checked_sub(1);
        if self.may_spin && self.sleeps.fetch_update(Relaxed, Relaxed, less).is_err() {
            let begin = clock();
            while clock().duration_since(begin) < SPIN_TIME {
                match answer.try_recv() {
                    Err(oneshot::error::TryRecvError::Empty) => tokio::task::yield_now().await,
                    came => {
                        self.slept.store(0, Relaxed);
                        return came.ok();
                    }
                }
            }
            let sleeps = (self.slept.load(Relaxed) * 2).clamp(1, MAX_SLEEPS);
            self.slept.store(sleeps, Relaxed);
            self.sleeps.store(sleeps, Relaxed);
        }
        answer.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn new(may_spin: bool) -> AdaptiveSpin {
        AdaptiveSpin { may_spin, ..AdaptiveSpin::new() }
    }

    /// Waits for a result with a clock that advances by `step` at each reading. Returns whether it spun.
    fn spins(spin: &AdaptiveSpin, step: Duration) -> bool {
        let (answers, answer) = oneshot::channel();
        answers.send(7).unwrap();
        let (readings, now) = (Cell::new(0), Cell::new(Instant::now()));
        let clock = || {
            readings.set(readings.get() + 1);
            now.set(now.get() + step);
            now.get()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(spin.wait_by(clock, answer)), Some(7));
        readings.get() > 0
    }

    /// The result arrives after the spin time.
    fn late(spin: &AdaptiveSpin) -> bool {
        spins(spin, SPIN_TIME)
    }

    /// The result arrives within the spin time.
    fn soon(spin: &AdaptiveSpin) -> bool {
        spins(spin, Duration::ZERO)
    }

    /// Returns the number of waits that sleep before the next failed spin.
    fn slept(spin: &AdaptiveSpin) -> usize {
        (0..100).take_while(|_| !late(spin)).count()
    }

    #[test]
    fn unsuccessful_spins_double_the_waits_without_a_spin_up_to_sixteen() {
        let spin = new(true);
        assert!(late(&spin), "the first wait spins");
        let gaps: Vec<usize> = (0..7).map(|_| slept(&spin)).collect();
        assert_eq!(gaps, [1, 2, 4, 8, 16, 16, 16]);
    }

    #[test]
    fn a_successful_spin_resets_the_back_off() {
        let spin = new(true);
        assert!(late(&spin));
        assert_eq!([slept(&spin), slept(&spin)], [1, 2]);
        (0..4).for_each(|_| assert!(!late(&spin)));
        assert!(soon(&spin), "the next wait spins with success");
        assert!(soon(&spin) && late(&spin), "so do those after it");
        assert_eq!([slept(&spin), slept(&spin)], [1, 2]);
    }

    #[test]
    fn a_single_processor_never_spins() {
        let spin = new(false);
        assert_eq!(slept(&spin), 100);
    }
}
