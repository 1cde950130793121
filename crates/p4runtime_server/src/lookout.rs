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
    pub(crate) async fn wait<T>(&self, answer: oneshot::Receiver<T>) -> Option<T> {
        self.wait_by(Instant::now, answer).await
    }

    /// The same by a clock, which is read only where it looks.
    async fn wait_by<T>(&self, clock: impl Fn() -> Instant, mut answer: oneshot::Receiver<T>) -> Option<T> {
        let less = |sleeps: u32| sleeps.checked_sub(1);
        if self.may_look && self.sleeps.fetch_update(Relaxed, Relaxed, less).is_err() {
            let begin = clock();
            while clock().duration_since(begin) < LOOKING {
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn new(may_look: bool) -> Lookout {
        Lookout { may_look, ..Lookout::new() }
    }

    /// Waits for an answer by a clock of which each reading is `step` after the one before. Whether it was looked for.
    fn looks(lookout: &Lookout, step: Duration) -> bool {
        let (answers, answer) = oneshot::channel();
        answers.send(7).unwrap();
        let (readings, now) = (Cell::new(0), Cell::new(Instant::now()));
        let clock = || {
            readings.set(readings.get() + 1);
            now.set(now.get() + step);
            now.get()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(lookout.wait_by(clock, answer)), Some(7));
        readings.get() > 0
    }

    /// The time to look is over before anything was seen.
    fn late(lookout: &Lookout) -> bool {
        looks(lookout, LOOKING)
    }

    /// There is time to see the answer.
    fn soon(lookout: &Lookout) -> bool {
        looks(lookout, Duration::ZERO)
    }

    /// How many answers are slept for until one is looked for, in vain again.
    fn slept(lookout: &Lookout) -> usize {
        (0..100).take_while(|_| !late(lookout)).count()
    }

    #[test]
    fn looking_in_vain_doubles_what_is_slept_for_to_sixteen() {
        let lookout = new(true);
        assert!(late(&lookout), "the first is looked for");
        let gaps: Vec<usize> = (0..7).map(|_| slept(&lookout)).collect();
        assert_eq!(gaps, [1, 2, 4, 8, 16, 16, 16]);
    }

    #[test]
    fn an_answer_that_is_found_by_looking_begins_anew() {
        let lookout = new(true);
        assert!(late(&lookout));
        assert_eq!([slept(&lookout), slept(&lookout)], [1, 2]);
        (0..4).for_each(|_| assert!(!late(&lookout)));
        assert!(soon(&lookout), "the next one is looked for, and found");
        assert!(soon(&lookout) && late(&lookout), "so are those behind it");
        assert_eq!([slept(&lookout), slept(&lookout)], [1, 2]);
    }

    #[test]
    fn nothing_is_looked_for_on_the_only_processor() {
        let lookout = new(false);
        assert_eq!(slept(&lookout), 100);
    }
}
