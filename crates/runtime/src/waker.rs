//! Wakes a thread that sleeps in `ppoll`.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};

/// Wakes one thread that waits for descriptors. Clones wake the same thread.
///
/// ```text
///   sleeper: arm, look at the queue once more, sleep on fd() ── disarm
///   sender:  put into the queue, wake                            a system call only if the waker is armed
/// ```
///
/// Nothing that was queued before [`wake`](Waker::wake) is missed: the sender writes the queue and then reads the flag,
/// the sleeper writes the flag and then reads the queue, each with a full fence in between. A busy thread is not armed,
/// so that waking it costs one load and no system call.
///
/// A sender first clears the flag and then writes one byte. A sleeper that sees the cleared flag may go on, arm again
/// and sleep before the byte is there, so it counts the bytes that it has not read.
#[derive(Clone, Debug)]
pub struct Waker(Arc<WakerState>);

#[derive(Debug)]
struct WakerState {
    is_armed: AtomicBool,
    /// Number of times that the waker was armed without a byte that has been read or will never be written. Only the
    /// sleeper changes it.
    unread: AtomicU32,
    sender: UnixStream,
    receiver: UnixStream,
}

impl Waker {
    /// Creates a waker that is not armed.
    ///
    /// # Errors
    /// If the process can open no more descriptors.
    pub fn new() -> io::Result<Waker> {
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        let (is_armed, unread) = (AtomicBool::new(false), AtomicU32::new(0));
        Ok(Waker(Arc::new(WakerState { is_armed, unread, sender, receiver })))
    }

    /// Makes the next [`wake`](Waker::wake) write to the descriptor. The caller must then look at its queue once more
    /// before it sleeps.
    pub fn arm(&self) {
        if !self.0.is_armed.swap(true, Ordering::Relaxed) {
            self.0.unread.fetch_add(1, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
    }

    /// Ends the wait and makes the descriptor unreadable again.
    pub fn disarm(&self) {
        if self.0.is_armed.swap(false, Ordering::AcqRel) {
            // No sender has cleared the flag, so none writes.
            self.0.unread.fetch_sub(1, Ordering::Relaxed);
        }
        self.drain();
    }

    /// Returns whether a [`wake`](Waker::wake) has come since the waker was armed, and arms it again. The caller must
    /// then look at its queue. If none has come, reads the byte of an earlier one that arrived late, so the descriptor
    /// becomes unreadable.
    pub fn take_wake(&self) -> bool {
        let is_woken = !self.is_armed();
        if is_woken {
            self.disarm();
            self.arm();
        } else if self.0.unread.load(Ordering::Relaxed) > 1 {
            self.drain();
        }
        is_woken
    }

    /// Reads all bytes that have arrived.
    fn drain(&self) {
        let mut sink = [0; 64];
        while let Ok(count @ 1..) = (&self.0.receiver).read(&mut sink) {
            self.0.unread.fetch_sub(count as u32, Ordering::Relaxed);
        }
    }

    /// Whether the waker is armed, so no [`wake`](Waker::wake) has come since [`arm`](Waker::arm).
    pub fn is_armed(&self) -> bool {
        self.0.is_armed.load(Ordering::Acquire)
    }

    /// Wakes the thread if it is armed. The caller must have queued its work before.
    pub fn wake(&self) {
        if self.claim() {
            self.write();
        }
    }

    /// Clears the flag. Returns whether it was set, so this thread must write.
    fn claim(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.is_armed.load(Ordering::Relaxed) && self.0.is_armed.swap(false, Ordering::AcqRel)
    }

    fn write(&self) {
        // A full socket is readable too, so a write that fails loses nothing.
        _ = (&self.0.sender).write(&[1]);
    }

    /// Returns the descriptor that becomes readable when the thread is woken.
    pub fn fd(&self) -> RawFd {
        self.0.receiver.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn is_readable(waker: &Waker) -> bool {
        ports::wait(&[waker.fd()], Duration::ZERO).unwrap()
    }

    #[test]
    fn only_an_armed_waker_writes_and_only_once() {
        let waker = Waker::new().unwrap();
        waker.wake();
        assert!(!is_readable(&waker), "nobody sleeps");
        waker.arm();
        assert!(waker.is_armed());
        waker.clone().wake();
        assert!(!waker.is_armed() && is_readable(&waker));
        waker.disarm();
        assert!(!is_readable(&waker));
    }
    #[test]
    fn a_byte_that_comes_late_does_not_keep_the_descriptor_readable() {
        let waker = Waker::new().unwrap();
        waker.arm();
        assert!(waker.claim(), "a sender is interrupted before it writes");
        assert!(waker.take_wake(), "the sleeper was awake and has done the work");
        assert!(!waker.take_wake());
        waker.write();
        assert!(!waker.take_wake(), "there is no more work");
        assert!(!is_readable(&waker));
        waker.wake();
        assert!(is_readable(&waker));
        assert!(waker.take_wake() && !is_readable(&waker));
    }

    #[test]
    fn a_late_byte_and_a_new_one_are_read_together() {
        let waker = Waker::new().unwrap();
        waker.arm();
        assert!(waker.claim() && waker.take_wake());
        assert!(waker.claim(), "a second sender comes before the first has written");
        waker.write();
        assert!(waker.take_wake() && !is_readable(&waker));
        waker.write();
        assert!(!waker.take_wake() && !is_readable(&waker));
        waker.disarm();
        assert_eq!(waker.0.unread.load(Ordering::Relaxed), 0);
    }
}
