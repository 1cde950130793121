//! Implements the lock of `@atomic` blocks: one per program, held by a packet from the start of a block to its end.
//!
//! A single lock cannot be acquired in a wrong order, and it is held only for a few memory accesses, so it spins. A
//! thread that finds it taken for longer yields its processor, since the holder may be waiting for just that. The lock
//! is a flag rather than a mutex because compiled code begins and ends blocks by separate calls, which could not keep a
//! guard between them.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::{Objects, SharedWords};

/// Number of attempts before a thread yields its processor.
const SPINS: u32 = 100;

/// Waits until a word is 0, and sets it to 1.
pub(super) fn take(word: &AtomicU64) {
    let mut spins = 0;
    while word.swap(1, Ordering::Acquire) != 0 {
        while word.load(Ordering::Relaxed) != 0 {
            spins += 1;
            if spins % SPINS == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

/// The flag: 1 while the lock is taken.
#[derive(Default)]
struct Flag {
    own: AtomicU64,
    /// Shared memory and the index of the word. Set once, and then used instead of `own`.
    shared: OnceLock<(SharedWords, usize)>,
}

impl Flag {
    fn word(&self) -> &AtomicU64 {
        match self.shared.get() {
            Some((words, at)) => &(**words).as_ref()[*at],
            None => &self.own,
        }
    }
}

impl fmt::Debug for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Flag").field(self.word()).finish()
    }
}

/// A worker's side of the lock.
#[derive(Debug)]
pub(crate) struct Exclusive {
    flag: Arc<Flag>,
    /// Nesting depth of this worker's blocks.
    depth: u32,
}

impl Exclusive {
    pub(crate) fn new() -> Exclusive {
        Exclusive { flag: Arc::default(), depth: 0 }
    }

    /// Returns another worker's side of the same lock.
    pub(crate) fn another(&self) -> Exclusive {
        Exclusive { flag: Arc::clone(&self.flag), depth: 0 }
    }

    fn begin(&mut self) {
        if self.depth == 0 {
            take(self.flag.word());
        }
        self.depth += 1;
    }

    /// Lets others take the lock between two parts of a long block, if this worker has it.
    pub(super) fn pause(&mut self) {
        if self.depth == 1 {
            self.end(1);
            self.begin();
        }
    }

    /// Ends the innermost `blocks` blocks.
    fn end(&mut self, blocks: u32) {
        if self.depth > 0 {
            self.depth = self.depth.saturating_sub(blocks);
            if self.depth == 0 {
                self.flag.word().store(0, Ordering::Release);
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
    /// blocks are part of the outer one. Costs nothing while there is no other worker and the lock is not shared.
    #[inline]
    pub fn begin_atomic(&mut self) {
        if self.several || self.exclusive.flag.shared.get().is_some() {
            self.exclusive.begin();
        }
    }

    /// Moves the lock of `@atomic` blocks to a word of shared memory, which is 0. Others may take it there from now on:
    /// they set it to 1, if it was 0, and back to 0 in the end. Meanwhile no worker may run packets. Returns false if
    /// the lock already lies in shared memory.
    ///
    /// # Panics
    /// If the memory does not have the word.
    pub fn share_atomic_lock(&mut self, words: SharedWords, at: usize) -> bool {
        assert!(at < (*words).as_ref().len(), "the word is in the memory");
        self.exclusive.flag.shared.set((words, at)).is_ok()
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
