//! Counts the memory that a thread allocates, for tests and benchmarks that bound it.
//!
//! ```
//! use testing::allocations::{self, CountingAllocator};
//!
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator;
//!
//! let (vec, memory) = allocations::measure(|| vec![0u8; 1000]);
//! assert_eq!((memory.kept, memory.peak), (1000, 1000));
//! drop(vec);
//! ```

#![allow(unsafe_code, reason = "an allocator that counts, around the system's")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes allocated by this thread and not released by it, and their maximum since the last reset.
    static LIVE: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

/// The system's allocator, which counts for each thread.
pub struct CountingAllocator;

fn change(by: i64) {
    // A thread that is ending has no counters any more.
    let _ = LIVE.try_with(|live| {
        let (now, most) = live.get();
        live.set((now + by, most.max(now + by)));
    });
}

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        change(layout.size() as i64);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        change(layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        change(-(layout.size() as i64));
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        change(size as i64 - layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// The memory of a computation, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// Allocated by it and still in use at its end; negative if it released more than it allocated.
    pub kept: i64,
    /// Maximum at any time during it.
    pub peak: i64,
}

/// Runs a computation and returns its result and its memory in this thread.
pub fn measure<T>(run: impl FnOnce() -> T) -> (T, MemoryUse) {
    let start = LIVE.with(|live| {
        let (now, _) = live.get();
        live.set((now, now));
        now
    });
    let result = run();
    let (now, most) = LIVE.with(Cell::get);
    (result, MemoryUse { kept: now - start, peak: most - start })
}
