//! Paces frames at a given rate.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::{Port, PortError};

/// Number of frames sent at once; the rate is controlled per burst.
const BURST: u64 = 32;

/// A sender of frames at a given rate through a port.
pub struct Pace {
    port: Box<dyn Port>,
    frames: Vec<Vec<u8>>,
    next: usize,
}

impl Pace {
    /// Creates a sender that repeats `frames` in order through `port`.
    ///
    /// # Panics
    /// Panics if there are no frames.
    pub fn new(port: Box<dyn Port>, frames: Vec<Vec<u8>>) -> Pace {
        assert!(!frames.is_empty(), "nothing to send");
        Pace { port, frames, next: 0 }
    }

    /// Sends for a time or until `stop` is set, `rate_pps` frames per second or, at zero, as many as the port accepts.
    /// Returns the number of frames sent. It polls the clock between bursts, and so occupies a core. A port that cannot
    /// keep up does not have to catch up: late frames are skipped.
    ///
    /// # Errors
    /// Returns an error if the port can no longer be used.
    pub fn run(&mut self, rate_pps: f64, time: Duration, stop: &AtomicBool) -> Result<u64, PortError> {
        let before = self.port.stats().tx_packets;
        let started = Instant::now();
        let mut offered = 0u64;
        while !stop.load(Ordering::Relaxed) {
            let elapsed = started.elapsed();
            if elapsed >= time {
                break;
            }
            if rate_pps > 0.0 {
                let due = (elapsed.as_secs_f64() * rate_pps) as u64;
                if due < offered + BURST {
                    std::hint::spin_loop();
                    continue;
                }
                // When late by more than some bursts, skip the missed frames.
                offered = offered.max(due.saturating_sub(8 * BURST));
            }
            for _ in 0..BURST {
                self.port.send(&self.frames[self.next])?;
                self.next = if self.next + 1 == self.frames.len() { 0 } else { self.next + 1 };
            }
            self.port.flush()?;
            offered += BURST;
        }
        Ok(self.port.stats().tx_packets - before)
    }
}
