//! Wakes a thread that sleeps in `ppoll`.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

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
#[derive(Clone, Debug)]
pub struct Waker(Arc<WakerState>);

#[derive(Debug)]
struct WakerState {
    is_armed: AtomicBool,
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
        Ok(Waker(Arc::new(WakerState { is_armed: AtomicBool::new(false), sender, receiver })))
    }

    /// Makes the next [`wake`](Waker::wake) write to the descriptor. The caller must then look at its queue once more
    /// before it sleeps.
    pub fn arm(&self) {
        self.0.is_armed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Ends the wait and makes the descriptor unreadable again.
    pub fn disarm(&self) {
        self.0.is_armed.store(false, Ordering::Relaxed);
        let mut sink = [0; 64];
        while matches!((&self.0.receiver).read(&mut sink), Ok(count) if count > 0) {}
    }

    /// Whether the waker is armed, so no [`wake`](Waker::wake) has come since [`arm`](Waker::arm).
    pub fn is_armed(&self) -> bool {
        self.0.is_armed.load(Ordering::Acquire)
    }

    /// Wakes the thread if it is armed. The caller must have queued its work before.
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.0.is_armed.load(Ordering::Relaxed) && self.0.is_armed.swap(false, Ordering::AcqRel) {
            // A full socket is readable too, so a write that fails loses nothing.
            _ = (&self.0.sender).write(&[1]);
        }
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
}
