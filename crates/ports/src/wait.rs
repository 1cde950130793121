//! Waits for several ports at once.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// Waits until one of the descriptors ([`Port::poll_fd`](crate::Port::poll_fd)) is readable or has an error, for at
/// most `timeout`. Returns whether one is; also returns false if a signal interrupted the wait, so callers check
/// their stop flag.
///
/// # Errors
/// Returns an error if ppoll(2) fails: more descriptors than the process may have open, or no memory.
pub fn wait(descriptors: &[RawFd], timeout: Duration) -> io::Result<bool> {
    let entry = |fd: &RawFd| libc::pollfd { fd: *fd, events: libc::POLLIN, revents: 0 };
    let mut entries: Vec<libc::pollfd> = descriptors.iter().map(entry).collect();
    let timeout = libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(timeout.subsec_nanos()),
    };
    // SAFETY: `entries` is a live array of exactly the given length, and ppoll writes only into its elements; the
    // timeout lives through the call, and no signal mask is given.
    let ready = unsafe {
        let count = entries.len() as libc::nfds_t;
        libc::ppoll(entries.as_mut_ptr(), count, &raw const timeout, std::ptr::null())
    };
    if ready >= 0 {
        return Ok(ready > 0);
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn only_a_descriptor_with_data_ends_the_wait() {
        let (reader, mut writer) = io::pipe().unwrap();
        assert!(!wait(&[reader.as_raw_fd()], Duration::from_millis(1)).unwrap());
        writer.write_all(b"x").unwrap();
        assert!(wait(&[reader.as_raw_fd()], Duration::from_secs(60)).unwrap());
    }
}
