//! Manages one AF_XDP socket: one receive queue of an interface, its four rings, and its spare chunks.
//!
//! ```text
//! spare ─fill──> kernel ─receive──> Frame ──> switch
//!   ^                                           │
//!   └──────── completion <── kernel <─transmit──┘      (of this port, or of another one on the same memory)
//! ```

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use super::order::QueueOrder;
use super::ring::{Ring, RingKind};
use crate::frame::{Frame, Memory};
use crate::socket;

/// Number of chunks taken from the free list at once, and number kept when some are returned.
const STOCK: usize = 256;
/// Number of buffers of the longest frame that is sent, rounded up.
const MAX_PIECES: u32 = 18;

/// The rings of a socket that is not bound yet.
pub(super) struct Rings {
    pub(super) receive: Ring<libc::xdp_desc>,
    pub(super) transmit: Ring<libc::xdp_desc>,
    pub(super) fill: Ring<u64>,
    pub(super) completion: Ring<u64>,
}

impl Rings {
    pub(super) fn map(socket: &OwnedFd, len: u32) -> io::Result<Rings> {
        Ok(Rings {
            fill: Ring::map(socket, RingKind::Fill, len)?,
            completion: Ring::map(socket, RingKind::Completion, len)?,
            receive: Ring::map(socket, RingKind::Receive, len)?,
            transmit: Ring::map(socket, RingKind::Transmit, len)?,
        })
    }
}

/// A bound socket.
pub(super) struct XdpQueue {
    pub(super) socket: OwnedFd,
    pub(super) memory: Arc<Memory>,
    /// Whether the device reads and writes the frame memory itself.
    pub(super) zero_copy: bool,
    /// Whether this process polls the device instead of waiting for its interrupts.
    pub(super) busy_poll: bool,
    /// Number of the receive queue.
    pub(super) index: u32,
    pub(super) order: QueueOrder,
    rings: Rings,
    /// Chunks of this queue, for the fill ring and for frames that are copied in.
    spare: Vec<u32>,
    /// Whether pushed frames have not been sent yet.
    gathered: bool,
}

/// The result of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    /// The device accepted the frames, but dropped some afterwards.
    Done {
        /// Frames dropped by the device.
        dropped: u64,
        /// Bytes of these frames.
        bytes: usize,
    },
    /// The device is down; frames in the ring leave when it is up again.
    Down,
}

impl XdpQueue {
    pub(super) fn new(
        index: u32,
        socket: OwnedFd,
        memory: Arc<Memory>,
        rings: Rings,
        (zero_copy, busy_poll): (bool, bool),
    ) -> Self {
        let (order, spare) = (QueueOrder::default(), Vec::new());
        let mut queue = XdpQueue { socket, memory, zero_copy, busy_poll, index, order, rings, spare, gathered: false };
        queue.refill();
        queue
    }

    /// Appends up to `max` frames to `batch`.
    pub(super) fn receive(&mut self, batch: &mut Vec<Frame>, max: usize) {
        let waiting = self.rings.receive.available();
        if waiting == 0 {
            if self.busy_poll || self.rings.fill.needs_wakeup() {
                self.wake_receiver();
            }
            return;
        }
        let mut taken = 0;
        for _ in 0..max {
            let pieces = self.pieces(taken, waiting);
            match pieces {
                0 => break,
                1 => {
                    let frame = self.frame(self.rings.receive.peek(taken));
                    // Another processor has written the frame; it arrives in the cache while the batch is being
                    // completed.
                    frame.prefetch();
                    batch.push(frame);
                }
                _ => batch.push(self.joined(taken, pieces)),
            }
            taken += pieces;
        }
        self.rings.receive.advance(taken);
        self.rings.receive.release();
        self.refill();
    }

    /// Returns the number of buffers of the frame at `at`; 0 if it is incomplete.
    fn pieces(&self, at: u32, waiting: u32) -> u32 {
        for ahead in at..waiting {
            if self.rings.receive.peek(ahead).options & libc::XDP_PKT_CONTD == 0 {
                return ahead - at + 1;
            }
        }
        0
    }

    /// Creates the frame of one descriptor, in its chunk.
    fn frame(&self, descriptor: libc::xdp_desc) -> Frame {
        let chunk_len = self.memory.chunk_len() as u64;
        let chunk = u32::try_from(descriptor.addr / chunk_len).expect("an address within the memory");
        let start = (descriptor.addr % chunk_len) as u32;
        Frame::from_chunk(Arc::clone(&self.memory), chunk, start, descriptor.len)
    }

    /// Assembles a frame of several buffers on the heap.
    fn joined(&mut self, at: u32, pieces: u32) -> Frame {
        let mut bytes = Vec::new();
        for ahead in at..at + pieces {
            // Each piece is a frame temporarily, so that its chunk is freed.
            let piece = self.frame(self.rings.receive.peek(ahead));
            bytes.extend_from_slice(&piece);
            if let Ok((chunk, ..)) = piece.into_chunk(&self.memory) {
                self.spare.push(chunk);
            }
        }
        Frame::from_vec(bytes)
    }

    /// Fills the fill ring with chunks for the kernel.
    fn refill(&mut self) {
        let room = self.rings.fill.room(1) as usize;
        if room == 0 {
            return;
        }
        if self.spare.len() < room {
            self.complete();
        }
        if self.spare.len() < room {
            let missing = room - self.spare.len();
            self.memory.take(&mut self.spare, missing.max(STOCK));
        }
        let count = room.min(self.spare.len());
        let chunk_len = self.memory.chunk_len() as u64;
        for chunk in self.spare.drain(self.spare.len() - count..) {
            self.rings.fill.push(u64::from(chunk) * chunk_len);
        }
        self.rings.fill.publish();
    }

    /// Takes back the chunks of sent frames from the completion ring.
    fn complete(&mut self) {
        let count = self.rings.completion.available();
        if count == 0 {
            return;
        }
        let chunk_len = self.memory.chunk_len() as u64;
        for ahead in 0..count {
            let address = self.rings.completion.peek(ahead);
            self.spare.push(u32::try_from(address / chunk_len).expect("an address within the memory"));
        }
        self.rings.completion.advance(count);
        self.rings.completion.release();
        if self.spare.len() > 2 * STOCK {
            self.memory.give_back(self.spare.drain(STOCK..));
        }
    }

    /// Pushes a frame to the transmit ring: its chunk if it lies in this memory, else a copy. Returns the frame if the
    /// ring is full even after a flush.
    pub(super) fn push(&mut self, frame: Frame) -> Result<(), Frame> {
        if self.rings.transmit.room(1) == 0 {
            return Err(frame);
        }
        match frame.into_chunk(&self.memory) {
            Ok((chunk, start, len)) => {
                self.describe(chunk, start, len, false);
                Ok(())
            }
            Err(frame) => self.push_copy(&frame).then_some(()).ok_or(frame),
        }
    }

    /// Pushes a copy of a frame to the transmit ring. Returns false if the ring is full even after a flush.
    pub(super) fn push_copy(&mut self, bytes: &[u8]) -> bool {
        let chunk_len = self.memory.chunk_len();
        let pieces = bytes.len().div_ceil(chunk_len);
        if (self.rings.transmit.room(pieces as u32) as usize) < pieces {
            return false;
        }
        if self.spare.len() < pieces {
            self.complete();
        }
        if self.spare.len() < pieces {
            self.memory.take(&mut self.spare, STOCK.max(pieces));
        }
        if self.spare.len() < pieces {
            return false;
        }
        for (index, piece) in bytes.chunks(chunk_len).enumerate() {
            let Some(chunk) = self.spare.pop() else { break };
            let to = self.memory.chunk(chunk);
            // SAFETY: the chunk is ours, `piece` fits into it, and does not overlap with it.
            unsafe { to.copy_from_nonoverlapping(std::ptr::NonNull::from(piece).cast(), piece.len()) };
            self.describe(chunk, 0, piece.len() as u32, index + 1 < pieces);
        }
        true
    }

    fn describe(&mut self, chunk: u32, start: u32, len: u32, continues: bool) {
        let addr = u64::from(chunk) * self.memory.chunk_len() as u64 + u64::from(start);
        let options = if continues { libc::XDP_PKT_CONTD } else { 0 };
        self.rings.transmit.push(libc::xdp_desc { addr, len, options });
        self.gathered = true;
    }

    /// Whether frames wait to be sent.
    pub(super) fn has_gathered(&self) -> bool {
        self.gathered
    }

    /// Makes the kernel send the frames in the transmit ring.
    ///
    /// # Errors
    /// Returns the kernel's error if the socket can no longer send.
    pub(super) fn flush(&mut self) -> io::Result<Flushed> {
        self.rings.transmit.publish();
        let (mut dropped, mut bytes) = (0, 0);
        let mut idle = 0;
        loop {
            let before = self.rings.transmit.pending();
            // A device that reads the ring itself continues without further calls once it is awake.
            if before == 0 || self.zero_copy && !self.rings.transmit.needs_wakeup() {
                break;
            }
            let result = self.wake_sender();
            self.complete();
            let after = self.rings.transmit.pending();
            match result.as_ref().err().and_then(io::Error::raw_os_error) {
                None | Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR) => {}
                // The kernel took one frame, but the device's queue was full.
                Some(libc::EBUSY) if !self.zero_copy && after < before => {
                    dropped += 1;
                    bytes += self.last_taken();
                }
                Some(libc::EBUSY) => {}
                Some(libc::ENETDOWN) => return Ok(Flushed::Down),
                Some(_) => return result.map(|()| Flushed::Done { dropped, bytes }),
            }
            if self.zero_copy {
                break;
            }
            // In copy mode a call sends a few dozen frames. Without progress the device is at its limit; try again
            // later.
            idle = if after == before { idle + 1 } else { 0 };
            if idle == 2 {
                return Ok(Flushed::Done { dropped, bytes });
            }
        }
        self.gathered = self.rings.transmit.pending() > 0;
        Ok(Flushed::Done { dropped, bytes })
    }

    /// Returns the number of bytes of the frame that the kernel took last.
    fn last_taken(&self) -> usize {
        let mut bytes = self.rings.transmit.taken(1).len as usize;
        for behind in 2..=MAX_PIECES {
            let piece = self.rings.transmit.taken(behind);
            if piece.options & libc::XDP_PKT_CONTD == 0 {
                break;
            }
            bytes += piece.len as usize;
        }
        bytes
    }

    fn wake_sender(&self) -> io::Result<()> {
        // SAFETY: no data and no address are passed.
        let result = unsafe {
            libc::sendto(self.socket.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Makes the driver check for chunks and packets. Errors of the socket are detected elsewhere.
    fn wake_receiver(&self) {
        // SAFETY: no buffer and no address are passed.
        unsafe {
            let none = std::ptr::null_mut();
            libc::recvfrom(self.socket.as_raw_fd(), none, 0, libc::MSG_DONTWAIT, std::ptr::null_mut(), none.cast());
        }
    }

    /// Returns the number of frames that the kernel dropped: no chunk available, or the receive ring full.
    pub(super) fn dropped(&self) -> u64 {
        let zero = libc::xdp_statistics {
            rx_dropped: 0,
            rx_invalid_descs: 0,
            tx_invalid_descs: 0,
            rx_ring_full: 0,
            rx_fill_ring_empty_descs: 0,
            tx_ring_empty_descs: 0,
        };
        let read = socket::get_option(&self.socket, libc::SOL_XDP, libc::XDP_STATISTICS, zero);
        read.map_or(0, |statistics| statistics.rx_dropped + statistics.rx_ring_full)
    }
}

impl Drop for XdpQueue {
    fn drop(&mut self) {
        // Accepted frames should be sent; a failure can no longer be reported.
        if self.gathered {
            let _ = self.flush();
        }
        // Chunks in the kernel are released with the socket. Those in the fill ring are lost to the memory, which other
        // ports may continue to use: it has enough for each.
        self.memory.give_back(self.spare.drain(..));
    }
}
