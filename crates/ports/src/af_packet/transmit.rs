//! Transmits frames in batches.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::{DropReason, PortStats};

/// Number of frames passed to the kernel in one call.
const BATCH_FRAMES: usize = 64;
/// Number of batched bytes at which they are sent even with fewer frames.
const BATCH_BYTES: usize = 1 << 17;
/// Size of an Ethernet header, the minimum length that the kernel accepts.
const MIN_FRAME: usize = 14;
/// Upper bound of any device's frames; the kernel checks each device's own limit.
const MAX_FRAME: usize = 1 << 16;

/// Whether a frame can be passed to the kernel at all.
pub(super) fn is_sendable(frame: &[u8]) -> bool {
    (MIN_FRAME..=MAX_FRAME).contains(&frame.len())
}

/// A sending socket with its batch of frames.
pub(super) struct Transmit {
    socket: OwnedFd,
    bytes: Vec<u8>,
    lens: Vec<usize>,
    /// Message headers and vectors for the kernel. The pointers in both are set and used only within `send_all`; the
    /// lists are kept to reuse their memory.
    vectors: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

// SAFETY: all fields but the two lists of pointers are `Send`, and the pointers are only followed in `send_all`, which
// sets them anew.
unsafe impl Send for Transmit {}

impl Transmit {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Transmit {
            socket,
            bytes: Vec::with_capacity(BATCH_BYTES),
            lens: Vec::with_capacity(BATCH_FRAMES),
            vectors: Vec::with_capacity(BATCH_FRAMES),
            messages: Vec::with_capacity(BATCH_FRAMES),
        }
    }

    /// Whether a frame of `len` bytes must wait until the batch has been sent.
    pub(super) fn is_full(&self, len: usize) -> bool {
        self.lens.len() == BATCH_FRAMES || self.bytes.len() + len > BATCH_BYTES
    }

    pub(super) fn push(&mut self, frame: &[u8]) {
        self.bytes.extend_from_slice(frame);
        self.lens.push(frame.len());
    }

    /// Sends the batch. A frame that the kernel does not accept now is dropped and counted, as with a full device
    /// queue.
    ///
    /// # Errors
    /// Returns an error if the socket failed as a whole; unsent frames are lost then.
    pub(super) fn flush(&mut self, stats: &mut PortStats) -> io::Result<()> {
        if self.lens.is_empty() {
            return Ok(());
        }
        let result = self.send_all(stats);
        self.bytes.clear();
        self.lens.clear();
        result
    }

    fn send_all(&mut self, stats: &mut PortStats) -> io::Result<()> {
        let count = self.lens.len();
        self.vectors.clear();
        self.messages.clear();
        let mut rest = &mut self.bytes[..];
        for len in &self.lens {
            let (frame, behind) = rest.split_at_mut(*len);
            self.vectors.push(libc::iovec { iov_base: frame.as_mut_ptr().cast(), iov_len: frame.len() });
            rest = behind;
        }
        for vector in &mut self.vectors {
            // SAFETY: a plain struct of integers and pointers, for which zero bytes are valid.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            self.messages.push(message);
        }
        let mut at = 0;
        while at < count {
            let left = &mut self.messages[at..];
            // SAFETY: `left` has this number of messages, each with one vector of `self.vectors`, which refers to a
            // part of `self.bytes`. None of the lists has changed since, and all live through the call.
            let sent = unsafe {
                let len = left.len() as libc::c_uint;
                libc::sendmmsg(self.socket.as_raw_fd(), left.as_mut_ptr(), len, libc::MSG_DONTWAIT)
            };
            if let Ok(sent) = usize::try_from(sent) {
                stats.tx_packets += sent as u64;
                stats.tx_bytes += self.lens[at..at + sent].iter().sum::<usize>() as u64;
                at += sent;
                continue;
            }
            // The error is that of the first message of the call; those after it were not looked at.
            let error = io::Error::last_os_error();
            let mut lost = |reason| stats.count_dropped(reason, 1, self.lens[at]);
            match error.raw_os_error() {
                Some(libc::EINTR) => continue,
                Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => lost(DropReason::QueueFull),
                Some(libc::EMSGSIZE | libc::EINVAL) => lost(DropReason::BadLength),
                Some(libc::ENETDOWN) => lost(DropReason::LinkDown),
                _ => return Err(error),
            }
            at += 1;
        }
        Ok(())
    }
}
