//! The receiving ring: slots in memory shared with the kernel.
//!
//! ```text
//! slot = status, lengths, VLAN tag, time (struct tpacket2_hdr) | address (struct sockaddr_ll) | vnet header | frame
//! ```
//!
//! A slot belongs to the kernel while its status is zero, and to us from the moment the kernel sets `TP_STATUS_USER`
//! until we set it to zero again. The kernel fills slots in order, so there is one place where the next frame appears.
//! Source: Documentation/networking/packet_mmap.rst in the Linux tree.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::offload::{Tag, VnetHeader};

/// What the ring may take of memory, unless a single frame is longer.
const RING_BYTES: usize = 8 << 20;
/// The kernel allocates slots in blocks of this size, or of one slot if that is longer.
const BLOCK_BYTES: usize = 1 << 18;
/// Bytes of a slot before the frame, generously: header 32, address 20, vnet header 10, alignment.
const SLOT_OVERHEAD: usize = 128;
/// The longest slot worth having; longer frames take the way through the socket's queue.
const MAX_SLOT: usize = 1 << 16;

/// A ring, mapped.
pub(super) struct Ring {
    base: NonNull<u8>,
    slot_len: usize,
    slots: usize,
    next: usize,
}

// SAFETY: the mapping is owned by this value alone and is not bound to a thread; the kernel's side of it is
// synchronised by the status words.
unsafe impl Send for Ring {}

/// A slot that belongs to us. It is to be given back to [`Ring::release`] before the next is taken and before the ring
/// is dropped, which `AfPacketPort::receive`, the only code that sees slots, does.
pub(super) struct Slot {
    start: NonNull<u8>,
    frame_at: usize,
    /// Bytes of the frame that are in the slot.
    kept: usize,
    /// Bytes the frame has.
    len: usize,
    /// Whether the whole frame waits in the socket's queue.
    pub(super) is_queued: bool,
    /// Whether the frame was sent, not received, by this machine.
    pub(super) outgoing: bool,
    pub(super) tag: Option<Tag>,
    pub(super) time_ns: u64,
}

impl Slot {
    pub(super) fn is_whole(&self) -> bool {
        self.kept == self.len && !self.is_queued
    }

    /// The vnet header and the frame.
    pub(super) fn bytes(&self) -> &[u8] {
        let at = self.frame_at - VnetHeader::LEN;
        // SAFETY: `take` checked that the vnet header and the frame lie within the slot; the kernel has written them
        // (it does so before it sets the status that `take` acquired) and writes no more until `release`, which takes
        // the slot by value and so ends this borrow.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(at), self.kept + VnetHeader::LEN) }
    }
}

impl Ring {
    /// Sets up a ring for frames of `frame_len` bytes on a packet socket that was told version 2, and maps it.
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
        // SAFETY: a fresh shared mapping at an address of the kernel's choice, of the size the ring was just set up
        // with.
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

    /// The next slot, if the kernel has filled it. Until it is released, the same slot is returned again.
    pub(super) fn take(&mut self) -> Option<Slot> {
        // SAFETY: `next < slots`, so the slot lies within the mapping.
        let start = unsafe { self.base.add(self.next * self.slot_len) };
        // Acquire: all the kernel wrote before it set the status is seen after it.
        // SAFETY: a slot of this ring, which is mapped.
        let status = unsafe { status_word(start) }.load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: slots begin at multiples of 2048 from a page, so the header is aligned; the kernel has initialised
        // it and leaves it alone while the status says that the slot is ours. Copied, so that no reference to shared
        // memory remains.
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
        Some(Slot {
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

    /// Gives a slot back to the kernel.
    pub(super) fn release(&mut self, slot: Slot) {
        // Release: the kernel may overwrite the slot only after all our reads of it.
        // SAFETY: slots are released to the ring they came from (see the type), which is mapped.
        unsafe { status_word(slot.start) }.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
    }
}

/// The status word of a slot, which the kernel and we both write.
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
