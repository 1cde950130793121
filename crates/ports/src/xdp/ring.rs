//! Implements the four rings of an AF_XDP socket: queues of fixed-size entries in memory shared with the kernel.
//!
//! ```text
//! producer ──┐                       both count up for ever and are taken modulo the ring's length;
//!            v                       each is written by one side and read by the other
//!   [ . . # # # # . . ]   # = handed over, not yet taken
//!         ^
//! consumer ┘
//! ```
//!
//! We produce into the *fill* ring (empty chunks for the kernel) and the *transmit* ring, and consume from the
//! *receive* ring and the *completion* ring (chunks that have left). Source: Documentation/networking/af_xdp.rst in the
//! Linux tree.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// The kind of a ring.
#[derive(Clone, Copy)]
pub(super) enum RingKind {
    Receive,
    Transmit,
    Fill,
    Completion,
}

impl RingKind {
    /// Returns the socket option that creates it.
    fn option(self) -> libc::c_int {
        match self {
            RingKind::Receive => libc::XDP_RX_RING,
            RingKind::Transmit => libc::XDP_TX_RING,
            RingKind::Fill => libc::XDP_UMEM_FILL_RING,
            RingKind::Completion => libc::XDP_UMEM_COMPLETION_RING,
        }
    }

    /// Returns its offset in the socket's mapping.
    fn page_offset(self) -> libc::off_t {
        match self {
            RingKind::Receive => libc::XDP_PGOFF_RX_RING,
            RingKind::Transmit => libc::XDP_PGOFF_TX_RING,
            RingKind::Fill => libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t,
            RingKind::Completion => libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t,
        }
    }

    fn offsets(self, all: &libc::xdp_mmap_offsets) -> &libc::xdp_ring_offset {
        match self {
            RingKind::Receive => &all.rx,
            RingKind::Transmit => &all.tx,
            RingKind::Fill => &all.fr,
            RingKind::Completion => &all.cr,
        }
    }
}

/// A mapped ring of `T`: `u64` (an address in the frame memory) or `xdp_desc`, depending on the kind.
pub(super) struct Ring<T> {
    base: NonNull<u8>,
    mapped_len: usize,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    len: u32,
    /// Own counter, published or not, and the last known counter of the other side.
    own: u32,
    other: u32,
}

// SAFETY: the mapping is owned by this value alone and is not bound to a thread; the kernel's side of it is
// synchronised by the two counters.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Creates a ring of `len` entries (a power of two) on the socket and maps it.
    pub(super) fn map(socket: &OwnedFd, kind: RingKind, len: u32) -> io::Result<Self> {
        assert!(len.is_power_of_two());
        crate::socket::set_option(socket, libc::SOL_XDP, kind.option(), &len)?;
        let none = libc::xdp_ring_offset { producer: 0, consumer: 0, desc: 0, flags: 0 };
        let all = libc::xdp_mmap_offsets { rx: none, tx: none, fr: none, cr: none };
        let all = crate::socket::get_option(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, all)?;
        let offsets = kind.offsets(&all);
        let at = |offset: u64| usize::try_from(offset).map_err(io::Error::other);
        let mapped_len = at(offsets.desc)? + len as usize * size_of::<T>();
        // SAFETY: creates a new shared mapping at an address that the kernel chooses.
        let base = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
            libc::mmap(std::ptr::null_mut(), mapped_len, protection, flags, socket.as_raw_fd(), kind.page_offset())
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base: NonNull<u8> = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address zero"))?;
        // SAFETY: the kernel reports these offsets for the parts of its ring, with `desc` as the last, and aligns
        // each for its type.
        let mut ring = unsafe {
            Ring {
                base,
                mapped_len,
                producer: base.add(at(offsets.producer)?).cast(),
                consumer: base.add(at(offsets.consumer)?).cast(),
                flags: base.add(at(offsets.flags)?).cast(),
                entries: base.add(at(offsets.desc)?).cast(),
                len,
                own: 0,
                other: 0,
            }
        };
        // The counters need not start at zero.
        match kind {
            RingKind::Receive | RingKind::Completion => {
                ring.own = ring.consumer().load(Ordering::Acquire);
                ring.other = ring.own;
            }
            RingKind::Transmit | RingKind::Fill => {
                ring.own = ring.producer().load(Ordering::Acquire);
                ring.other = ring.consumer().load(Ordering::Acquire);
            }
        }
        Ok(ring)
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: within the mapping, aligned, and accessed by both sides as a whole word.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as for the producer.
        unsafe { self.consumer.as_ref() }
    }

    fn entry(&self, index: u32) -> NonNull<T> {
        // SAFETY: the index is taken modulo the ring's length.
        unsafe { self.entries.add((index & (self.len - 1)) as usize) }
    }

    /// Whether the kernel sleeps on this ring and must be woken by a system call.
    pub(super) fn needs_wakeup(&self) -> bool {
        // SAFETY: as for the producer.
        unsafe { self.flags.as_ref() }.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    // The producer's side: fill and transmit.

    /// Returns the number of entries that can be pushed. It reads the kernel's counter only if fewer than `wanted` are
    /// known to be free.
    pub(super) fn room(&mut self, wanted: u32) -> u32 {
        let known = self.len - self.own.wrapping_sub(self.other);
        if known >= wanted {
            return known;
        }
        // Acquire: the kernel has read the entries that it returns.
        self.other = self.consumer().load(Ordering::Acquire);
        self.len - self.own.wrapping_sub(self.other)
    }

    /// Appends an entry, which the kernel sees after [`publish`](Self::publish). There must be [`room`](Self::room).
    pub(super) fn push(&mut self, entry: T) {
        debug_assert!(self.own.wrapping_sub(self.other) < self.len);
        // SAFETY: an entry of the ring; it is ours since `room` has seen the kernel return it.
        unsafe { self.entry(self.own).write(entry) };
        self.own = self.own.wrapping_add(1);
    }

    /// Publishes the pushed entries to the kernel.
    pub(super) fn publish(&mut self) {
        // Release: the entries, and the memory they point to, are written before the kernel sees the counter.
        self.producer().store(self.own, Ordering::Release);
    }

    /// Returns the number of entries that the kernel has not taken yet.
    pub(super) fn pending(&mut self) -> u32 {
        self.other = self.consumer().load(Ordering::Acquire);
        self.own.wrapping_sub(self.other)
    }

    /// Returns the entry that the kernel took `behind` entries ago (1: the last), which is still in the ring.
    pub(super) fn taken(&self, behind: u32) -> T {
        debug_assert!((1..=self.len).contains(&behind));
        // SAFETY: an entry of the ring; all are initially zero, and only this side writes them.
        unsafe { self.entry(self.other.wrapping_sub(behind)).read() }
    }

    // The consumer's side: receive and completion.

    /// Returns the number of waiting entries. It reads the kernel's counter only if none is known to wait.
    pub(super) fn available(&mut self) -> u32 {
        if self.other == self.own {
            // Acquire: the entries, and the memory they point to, were written before the kernel raised the counter.
            self.other = self.producer().load(Ordering::Acquire);
        }
        self.other.wrapping_sub(self.own)
    }

    /// Returns the entry `ahead` positions after the next. It must be among the [`available`](Self::available).
    pub(super) fn peek(&self, ahead: u32) -> T {
        debug_assert!(ahead < self.other.wrapping_sub(self.own));
        // SAFETY: an entry of the ring that the kernel has written and does not touch until it is released.
        unsafe { self.entry(self.own.wrapping_add(ahead)).read() }
    }

    /// Skips `count` entries, which the kernel may overwrite after [`release`](Self::release).
    pub(super) fn advance(&mut self, count: u32) {
        debug_assert!(count <= self.other.wrapping_sub(self.own));
        self.own = self.own.wrapping_add(count);
    }

    /// Releases the skipped entries to the kernel.
    pub(super) fn release(&mut self) {
        // Release: all reads of the entries come before.
        self.consumer().store(self.own, Ordering::Release);
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped_len) };
    }
}
