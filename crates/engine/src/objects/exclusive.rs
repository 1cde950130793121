//! `@atomic` blocks: one lock for all of a program's, which a packet holds from the begin of a block to its end.
//!
//! One lock cannot be taken in a wrong order, and is held for a few accesses of memory. So it spins; a thread that finds it
//! taken for longer gives its processor away, since the one that holds it may wait for just that. It is a flag and no mutex
//! because machine code begins and ends blocks by calls of their own, between which no guard could be kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Objects;

/// How often a thread looks before it gives its processor away.
const SPINS: u32 = 100;

/// A worker's side of the lock.
#[derive(Debug)]
pub(crate) struct Exclusive {
    is_taken: Arc<AtomicBool>,
    /// Blocks that this worker is in, one within the other.
    depth: u32,
}

impl Exclusive {
    pub(crate) fn new() -> Exclusive {
        Exclusive { is_taken: Arc::default(), depth: 0 }
    }

    /// The same lock for another worker.
    pub(crate) fn another(&self) -> Exclusive {
        Exclusive { is_taken: Arc::clone(&self.is_taken), depth: 0 }
    }

    fn begin(&mut self) {
        if self.depth == 0 {
            let mut spins = 0;
            while self.is_taken.swap(true, Ordering::Acquire) {
                while self.is_taken.load(Ordering::Relaxed) {
                    spins += 1;
                    if spins % SPINS == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
                }
            }
        }
        self.depth += 1;
    }

    /// Ends as many blocks.
    fn end(&mut self, blocks: u32) {
        if self.depth > 0 {
            self.depth = self.depth.saturating_sub(blocks);
            if self.depth == 0 {
                self.is_taken.store(false, Ordering::Release);
            }
        }
    }
}

/// A worker that is gone, though it ended in a panic, keeps nobody out.
impl Drop for Exclusive {
    fn drop(&mut self) {
        self.end(u32::MAX);
    }
}

impl Objects {
    /// A block begins that no other worker's may overlap. Waits until none does; blocks within the block are part of it. Costs
    /// nothing as long as there is no other worker.
    #[inline]
    pub fn begin_atomic(&mut self) {
        if self.several {
            self.exclusive.begin();
        }
    }

    /// Ends the block that began last, if any is open.
    #[inline]
    pub fn end_atomic(&mut self) {
        self.exclusive.end(1);
    }

    /// Ends all blocks: an executor does so at the end of what it ran, however that ended.
    #[inline]
    pub fn end_all_atomics(&mut self) {
        self.exclusive.end(u32::MAX);
    }
}
