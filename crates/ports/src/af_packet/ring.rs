//! Implements the receive ring: slots in memory shared with the kernel.
//!
//! ```text
//! slot = status, lengths, VLAN tag, time (struct tpacket2_hdr) | address (struct sockaddr_ll) | vnet header | frame
//! ```
//!
//! A slot belongs to the kernel while its status is zero, and to us from the moment the kernel sets `TP_STATUS_USER`
//! until we set it to zero again. The kernel fills slots in order, so the next frame always appears in the next slot.
//! Source: Documentation/networking/packet_mmap.rst in the Linux tree.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::offload::{Tag, VnetHeader};

/// Maximum size of the ring in bytes, unless a single frame is longer.
const RING_BYTES: usize = 8 << 20;
/// Size of the blocks in which the kernel allocates slots, unless one slot is longer.
const BLOCK_BYTES: usize = 1 << 18;
/// Upper bound of the bytes in a slot in front of the frame: header 32, address 20, vnet header 10, alignment.
const SLOT_OVERHEAD: usize = 128;
/// Maximum size of a slot; longer frames arrive through the socket's queue.
const MAX_SLOT: usize = 1 << 16;

/// A mapped ring.
pub(super) struct Ring {
    base: NonNull<u8>,
    slot_len: usize,
    slots: usize,
    next: usize,
}

// SAFETY: the mapping is owned by this value alone and is not bound to a thread; the kernel's side of it is
// synchronised by the status words.
unsafe impl Send for Ring {}

/// A slot that belongs to us. It must be passed to [`Ring::release`] before the next one is taken and before the ring
/// is dropped, which `AfPacketPort::receive`, the only code that handles slots, does.
pub(super) struct RingSlot {
    start: NonNull<u8>,
    frame_at: usize,
    /// Number of the frame's bytes in the slot.
    kept: usize,
    /// Length of the frame in bytes.
    len: usize,
    /// Whether the whole frame is in the socket's queue.
    pub(super) is_queued: bool,
    /// Whether this machine sent the frame.
    pub(super) outgoing: bool,
    pub(super) tag: Option<Tag>,
    pub(super) time_ns: u64,
}

impl RingSlot {
    pub(super) fn is_whole(&self) -> bool {
        self.kept == self.len && !self.is_queued
    }

    /// Returns the vnet header and the frame.
    pub(super) fn bytes(&self) -> &[u8] {
        let at = self.frame_at - VnetHeader::LEN;
        // SAFETY: `take` checked that the vnet header and the frame lie within the slot. The kernel wrote them before
        // it set the status that `take` acquired, and does not write again until `release`, which takes the slot by
        // value and so ends this borrow.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(at), self.kept + VnetHeader::LEN) }
    }
}

impl Ring {
    /// Creates a ring for frames of `frame_len` bytes on a packet socket that uses version 2, and maps it.
    pub(super) fn map(socket: &OwnedFd, frame_len: usize) -> io::Result<Ring> {
        let slot_len = (frame_len + SLOT_OVERHEAD).next_power_of_two().clamp(2048, MAX_SLOT);
        let block_len = BLOCK_BYTES.max(slot_len);
        let slots = (RING_BYTES / slot_len).max(block_len / slot_len);
        let request = libc::tpacket_req {
            tp_block_size: block_len as u32,
            tp_block_nr: (slots * slot_len / block_len) as u32,
            tp_frame_size: slot_len as u32,
            tp_frame_nr: slots as u32,
        };
        crate::socket::set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        // SAFETY: creates a new shared mapping at an address that the kernel chooses, with the size of the ring just
        // created.
        let base = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), slots * slot_len, protection, libc::MAP_SHARED, socket.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("the ring was mapped at address zero"))?;
        Ok(Ring { base, slot_len, slots, next: 0 })
    }

    /// Returns the next slot, if the kernel has filled it. Until it is released, the same slot is returned again.
    pub(super) fn take(&mut self) -> Option<RingSlot> {
        // SAFETY: `next < slots`, so the slot lies within the mapping.
        let start = unsafe { self.base.add(self.next * self.slot_len) };
        // Acquire: everything that the kernel wrote before it set the status is visible.
        // SAFETY: a slot of this ring, which is mapped.
        let status = unsafe { status_word(start) }.load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: slots begin at multiples of 2048 from a page, so the header is aligned. The kernel has initialised it
        // and does not change it while the status gives the slot to us. The header is copied, so that no reference to
        // shared memory remains.
        let (header, address) = unsafe {
            let header = start.cast::<libc::tpacket2_hdr>().read();
            let at = size_of::<libc::tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);
            (header, start.add(at).cast::<libc::sockaddr_ll>().read())
        };
        let frame_at = usize::from(header.tp_mac);
        let kept = header.tp_snaplen as usize;
        assert!(frame_at >= VnetHeader::LEN && frame_at + kept <= self.slot_len, "the kernel overran a ring slot");
        let tag = (status & libc::TP_STATUS_VLAN_VALID != 0).then_some(Tag {
            protocol: if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 { header.tp_vlan_tpid } else { 0x8100 },
            control: header.tp_vlan_tci,
        });
        Some(RingSlot {
            start,
            frame_at,
            kept,
            len: header.tp_len as usize,
            is_queued: status & libc::TP_STATUS_COPY != 0,
            outgoing: address.sll_pkttype == libc::PACKET_OUTGOING,
            tag,
            time_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
        })
    }

    /// Returns a slot to the kernel.
    pub(super) fn release(&mut self, slot: RingSlot) {
        // Release: the kernel may overwrite the slot only after all our reads of it.
        // SAFETY: slots are released to the ring they came from (see the type), which is mapped.
        unsafe { status_word(slot.start) }.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
    }
}

/// Returns the status word of a slot, which both the kernel and we write.
///
/// # Safety
/// `start` is the beginning of a slot of a ring that stays mapped for `'a`.
unsafe fn status_word<'a>(start: NonNull<u8>) -> &'a AtomicU32 {
    // SAFETY: the kernel's header has its status there, aligned to four bytes, and both sides access it as a whole
    // word.
    unsafe { &*start.as_ptr().add(offset_of!(libc::tpacket2_hdr, tp_status)).cast::<AtomicU32>() }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` with this size, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.slots * self.slot_len) };
    }
}
