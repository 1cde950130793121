//! Implements the lock of `@atomic` blocks: one per program, held by a packet from the start of a block to its end.
//!
//! A single lock cannot be acquired in a wrong order, and it is held only for a few memory accesses, so it spins. A
//! thread that finds it taken for longer yields its processor, since the holder may be waiting for just that. The lock
//! is a flag rather than a mutex because compiled code begins and ends blocks by separate calls, which could not keep a
//! guard between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Objects;

/// Number of attempts before a thread yields its processor.
const SPINS: u32 = 100;

/// A worker's side of the lock.
#[derive(Debug)]
pub(crate) struct Exclusive {
    is_taken: Arc<AtomicBool>,
    /// Nesting depth of this worker's blocks.
    depth: u32,
}

impl Exclusive {
    pub(crate) fn new() -> Exclusive {
        Exclusive { is_taken: Arc::default(), depth: 0 }
    }

    /// Returns another worker's side of the same lock.
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

    /// Ends the innermost `blocks` blocks.
    fn end(&mut self, blocks: u32) {
        if self.depth > 0 {
            self.depth = self.depth.saturating_sub(blocks);
            if self.depth == 0 {
                self.is_taken.store(false, Ordering::Release);
            }
        }
    }
}

/// Releases the lock when a worker is dropped, even by a panic.
impl Drop for Exclusive {
    fn drop(&mut self) {
        self.end(u32::MAX);
    }
}

impl Objects {
    /// Begins a block that must not overlap with a block of another worker, and waits until there is none. Nested
    /// blocks are part of the outer one. Costs nothing while there is no other worker.
    #[inline]
    pub fn begin_atomic(&mut self) {
        if self.several {
            self.exclusive.begin();
        }
    }

    /// Ends the innermost block, if any is open.
    #[inline]
    pub fn end_atomic(&mut self) {
        self.exclusive.end(1);
    }

    /// Ends all blocks. An executor calls this at the end of a run, however it ended.
    #[inline]
    pub fn end_all_atomics(&mut self) {
        self.exclusive.end(u32::MAX);
    }
}
