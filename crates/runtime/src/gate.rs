//! Implements quiescence: a state in which no worker runs packets, so that a hook can replace their program.
//!
//! ```text
//!   worker: enter ──[ flag set ]── poll a batch ──[ flag cleared ]      waits while the gate is closed
//!   owner:  close ── wait until every flag is clear ── replace ── open
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Interval between two looks at the other side's flags.
const POLL_INTERVAL: Duration = Duration::from_micros(20);

/// The gate that all workers of a pool pass before each batch.
#[derive(Debug, Default)]
pub struct QuiescenceGate {
    is_closed: AtomicBool,
}

/// A worker's flag: set while the worker runs a batch. The worker writes it for each batch, so it has a cache line of
/// its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct QuiescenceFlag {
    is_running: AtomicBool,
}

impl QuiescenceGate {
    /// Waits until the gate is open and sets the flag. The ordering is sequentially consistent because each side writes
    /// one flag and then reads the other's.
    pub fn enter<'a>(&self, flag: &'a QuiescenceFlag) -> RunningGuard<'a> {
        loop {
            flag.is_running.store(true, Ordering::SeqCst);
            if !self.is_closed.load(Ordering::SeqCst) {
                return RunningGuard(flag);
            }
            flag.is_running.store(false, Ordering::SeqCst);
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Closes the gate and waits until no worker runs a batch. The effects of all finished batches are visible then.
    pub fn close<'a>(&self, flags: impl Iterator<Item = &'a QuiescenceFlag>) {
        self.is_closed.store(true, Ordering::SeqCst);
        for flag in flags {
            while flag.is_running.load(Ordering::SeqCst) {
                std::thread::sleep(POLL_INTERVAL);
            }
        }
    }

    /// Opens the gate again. Opening an open gate costs one load.
    pub fn open(&self) {
        if self.is_closed.load(Ordering::Relaxed) {
            self.is_closed.store(false, Ordering::SeqCst);
        }
    }
}

/// Keeps a worker's flag set until it is dropped.
pub struct RunningGuard<'a>(&'a QuiescenceFlag);

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        self.0.is_running.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::time::Instant;

    use super::*;

    #[test]
    fn no_worker_runs_between_close_and_open() {
        let (gate, flags) = (QuiescenceGate::default(), [QuiescenceFlag::default(), QuiescenceFlag::default()]);
        let (running, batches, stop) = (AtomicU32::new(0), AtomicU32::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for flag in &flags {
                let work = || {
                    while !stop.load(Ordering::Relaxed) {
                        let _guard = gate.enter(flag);
                        running.fetch_add(1, Ordering::Relaxed);
                        batches.fetch_add(1, Ordering::Relaxed);
                        std::thread::yield_now();
                        running.fetch_sub(1, Ordering::Relaxed);
                    }
                };
                scope.spawn(work);
            }
            let begin = Instant::now();
            while batches.load(Ordering::Relaxed) == 0 && begin.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(1));
            }
            for _ in 0..50 {
                gate.close(flags.iter());
                let before = batches.load(Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(100));
                let after = batches.load(Ordering::Relaxed);
                let still_running = running.load(Ordering::Relaxed);
                gate.open();
                if (before, still_running) != (after, 0) {
                    stop.store(true, Ordering::Relaxed);
                }
                assert_eq!((before, still_running), (after, 0));
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert!(batches.load(Ordering::Relaxed) > 0);
    }
}
