//! One AF_XDP socket: one receive queue of an interface, its four rings, and the chunks it has in hand.
//!
//! ```text
//! spare ─fill──> kernel ─receive──> Frame ──> switch
//!   ^                                           │
//!   └──────── completion <── kernel <─transmit──┘      (of this port, or of another one on the same memory)
//! ```

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use super::ring::{Kind, Ring};
use crate::frame::{Frame, Memory};
use crate::socket;

/// Chunks fetched from the common store at once when the own run out, and kept when they run over.
const STOCK: usize = 256;
/// Buffers of the longest frame that is sent, and more.
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
            fill: Ring::map(socket, Kind::Fill, len)?,
            completion: Ring::map(socket, Kind::Completion, len)?,
            receive: Ring::map(socket, Kind::Receive, len)?,
            transmit: Ring::map(socket, Kind::Transmit, len)?,
        })
    }
}

/// A bound socket.
pub(super) struct Queue {
    pub(super) socket: OwnedFd,
    pub(super) memory: Arc<Memory>,
    /// Whether the device reads and writes the frame memory itself.
    pub(super) zero_copy: bool,
    /// Whether this process polls the device instead of waiting for its interrupts.
    pub(super) busy_poll: bool,
    rings: Rings,
    /// Chunks of ours, for the fill ring and for frames copied in.
    spare: Vec<u32>,
    /// Whether something was pushed and has not left yet.
    gathered: bool,
}

/// What sending came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    /// The device took it. So many frames it then threw away.
    Done {
        /// Frames that found no place.
        dropped: u64,
        /// Their bytes.
        bytes: usize,
    },
    /// The device is down; what is in the ring leaves when it is up again.
    Down,
}

impl Queue {
    pub(super) fn new(socket: OwnedFd, memory: Arc<Memory>, rings: Rings, zero_copy: bool, busy_poll: bool) -> Self {
        let mut queue = Queue { socket, memory, zero_copy, busy_poll, rings, spare: Vec::new(), gathered: false };
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
                    // Another processor has written it; by the time the batch is complete it is here.
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

    /// How many buffers the frame at `at` has; 0 if it is not all there.
    fn pieces(&self, at: u32, waiting: u32) -> u32 {
        for ahead in at..waiting {
            if self.rings.receive.peek(ahead).options & libc::XDP_PKT_CONTD == 0 {
                return ahead - at + 1;
            }
        }
        0
    }

    /// The frame of one descriptor, in its chunk.
    fn frame(&self, descriptor: libc::xdp_desc) -> Frame {
        let chunk_len = self.memory.chunk_len() as u64;
        let chunk = u32::try_from(descriptor.addr / chunk_len).expect("an address within the memory");
        let start = (descriptor.addr % chunk_len) as u32;
        Frame::from_chunk(Arc::clone(&self.memory), chunk, start, descriptor.len)
    }

    /// A frame of several buffers, put together on the heap.
    fn joined(&mut self, at: u32, pieces: u32) -> Frame {
        let mut bytes = Vec::new();
        for ahead in at..at + pieces {
            // Each piece is a frame of its own for a moment, so that its chunk comes back.
            let piece = self.frame(self.rings.receive.peek(ahead));
            bytes.extend_from_slice(&piece);
            if let Ok((chunk, ..)) = piece.into_chunk(&self.memory) {
                self.spare.push(chunk);
            }
        }
        Frame::from_vec(bytes)
    }

    /// Gives the kernel chunks to fill.
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

    /// Takes back the chunks of frames that have left.
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

    /// Puts a frame into the transmit ring: its chunk if it lies in this memory, else a copy. Gives it back if there is
    /// no room, even after a flush.
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

    /// Puts a copy of a frame into the transmit ring. False if there is no room, even after a flush.
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
            // SAFETY: the chunk is ours, `piece` fits it, and lies elsewhere.
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

    /// Whether something waits to be sent.
    pub(super) fn has_gathered(&self) -> bool {
        self.gathered
    }

    /// Has the kernel send what is in the transmit ring.
    ///
    /// # Errors
    /// The kernel's, if the socket can send no more.
    pub(super) fn flush(&mut self) -> io::Result<Flushed> {
        self.rings.transmit.publish();
        let (mut dropped, mut bytes) = (0, 0);
        let mut idle = 0;
        loop {
            let before = self.rings.transmit.pending();
            // A device that reads the ring itself goes on alone once it is awake.
            if before == 0 || self.zero_copy && !self.rings.transmit.needs_wakeup() {
                break;
            }
            let result = self.wake_sender();
            self.complete();
            let after = self.rings.transmit.pending();
            match result.as_ref().err().and_then(io::Error::raw_os_error) {
                None | Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR) => {}
                // One frame was taken, and found no place in the device.
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
            // In copy mode a call sends a few dozen frames. Without progress the device is at its limit: later.
            idle = if after == before { idle + 1 } else { 0 };
            if idle == 2 {
                return Ok(Flushed::Done { dropped, bytes });
            }
        }
        self.gathered = self.rings.transmit.pending() > 0;
        Ok(Flushed::Done { dropped, bytes })
    }

    /// The bytes of the frame that the kernel took last.
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

    /// What is wrong with the socket shows elsewhere; this only has the driver look for chunks and packets.
    fn wake_receiver(&self) {
        // SAFETY: no buffer and no address are passed.
        unsafe {
            let none = std::ptr::null_mut();
            libc::recvfrom(self.socket.as_raw_fd(), none, 0, libc::MSG_DONTWAIT, std::ptr::null_mut(), none.cast());
        }
    }

    /// Frames that the kernel had to drop: no chunk to put them in, or no place in the receive ring.
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

impl Drop for Queue {
    fn drop(&mut self) {
        // What was accepted for sending should leave; there is nobody left to tell if it cannot.
        if self.gathered {
            let _ = self.flush();
        }
        // Chunks in the kernel's hands go with the socket. Those in the fill ring are lost to the memory, which other
        // ports may go on using: it has enough for each.
        self.memory.give_back(self.spare.drain(..));
    }
}
