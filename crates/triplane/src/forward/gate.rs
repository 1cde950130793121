//! Keeps workers from beginning a turn while the control plane puts another program in the place of theirs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Between two looks at whether the others are at rest, or may go on.
const PAUSE: Duration = Duration::from_micros(20);

/// One for all workers of a crew.
#[derive(Debug, Default)]
pub struct Gate {
    is_shut: AtomicBool,
}

/// A worker's place at the gate. A cache line of its own, since it is written at each turn.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Place {
    is_inside: AtomicBool,
}

impl Gate {
    /// Waits until the gate is open, and goes in. The memory order is the strongest since both sides write one flag and
    /// then read the other's.
    pub fn enter<'a>(&self, place: &'a Place) -> Inside<'a> {
        loop {
            place.is_inside.store(true, Ordering::SeqCst);
            if !self.is_shut.load(Ordering::SeqCst) {
                return Inside(place);
            }
            place.is_inside.store(false, Ordering::SeqCst);
            std::thread::sleep(PAUSE);
        }
    }

    /// Shuts the gate and waits until nobody is inside; what those who were there did is seen then.
    pub fn shut<'a>(&self, places: impl Iterator<Item = &'a Place>) {
        self.is_shut.store(true, Ordering::SeqCst);
        for place in places {
            while place.is_inside.load(Ordering::SeqCst) {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Opens it again.
    pub fn open(&self) {
        if self.is_shut.load(Ordering::Relaxed) {
            self.is_shut.store(false, Ordering::SeqCst);
        }
    }
}

/// A worker is inside as long as this is.
pub struct Inside<'a>(&'a Place);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.is_inside.store(false, Ordering::Release);
    }
}
