//! Bounds the time of everything on a Unix domain socket: connecting, reading, writing, and waiting for its other end.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Connects to a path. Fails with [`ErrorKind::WouldBlock`] instead of waiting if the queue of the listener is full:
/// its process does not accept connections, since it is stopped for example.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Whether an error means that a deadline has passed, or that the other end is not ready.
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Whether the other end of a stream is closed. Bytes from there that were not read do not matter.
pub fn has_hung_up(stream: &UnixStream) -> bool {
    let mut entries = [PollFd::new(stream, PollFlags::empty())];
    poll(&mut entries, Some(&Timespec::default())).is_ok() && is_closed(&entries[0])
}

/// Waits until `source` has bytes to read or has ended; false if `reader` hangs up before. Fails with
/// [`ErrorKind::TimedOut`] after `timeout`; `None` sets no limit.
pub fn wait_for_bytes(source: &UnixStream, reader: &UnixStream, timeout: Option<Duration>) -> io::Result<bool> {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    loop {
        let mut entries = [PollFd::new(source, PollFlags::IN), PollFd::new(reader, PollFlags::empty())];
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() });
        match poll(&mut entries, left.as_ref()) {
            Ok(0) => return Err(ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(!is_closed(&entries[1])),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_closed(entry: &PollFd<'_>) -> bool {
    entry.revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// A stream whose reads and writes fail after a deadline, also if the other end sends or takes one byte at a time.
pub struct DeadlineStream<'a> {
    stream: &'a UnixStream,
    deadline: Instant,
}

impl DeadlineStream<'_> {
    /// Returns a stream whose deadline is `timeout` from now.
    pub fn new(stream: &UnixStream, timeout: Duration) -> DeadlineStream<'_> {
        DeadlineStream { stream, deadline: Instant::now() + timeout }
    }

    /// Returns the time to the deadline.
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for DeadlineStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for DeadlineStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_read_or_written_after_the_deadline() {
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(b"in time").unwrap();
        let kind = |result: io::Result<usize>| result.map_err(|error| error.kind());
        let mut late = DeadlineStream::new(&near, Duration::ZERO);
        assert_eq!(kind(late.read(&mut [0; 16])), Err(ErrorKind::TimedOut), "bytes that have come are late, too");
        assert_eq!(kind(late.write(b"x")), Err(ErrorKind::TimedOut));
        let mut early = DeadlineStream::new(&near, Duration::from_secs(3600));
        assert_eq!(kind(early.read(&mut [0; 16])), Ok(7));
    }

    #[test]
    fn only_a_closed_end_is_a_hang_up() {
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(b"unread").unwrap();
        far.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(!has_hung_up(&near), "it still reads");
        drop(far);
        assert!(has_hung_up(&near));
    }
}
