//! Reads and sets socket options whose values are plain kernel structs and integers.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Opens a non-blocking raw socket of a family.
pub(crate) fn open(family: c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers are involved.
    let fd = unsafe { libc::socket(family, libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets a socket option whose value is a plain kernel struct or integer.
pub(crate) fn set_option<T: Copy>(socket: &OwnedFd, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the value lives through the call, which reads exactly its size.
    let result = unsafe {
        let len = size_of::<T>() as libc::socklen_t;
        libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const *value).cast(), len)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads a socket option into a copy of `value`. `T` must be an integer or a struct of integers, so any bytes are
/// valid.
pub(crate) fn get_option<T: Copy>(socket: &OwnedFd, level: c_int, option: c_int, mut value: T) -> io::Result<T> {
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to `value`, which lives through the call and for whose type any
    // bytes are valid.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut len) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}

/// Reads and clears the pending error of a socket; 0 if there is none.
pub(crate) fn take_error(socket: &OwnedFd) -> c_int {
    get_option(socket, libc::SOL_SOCKET, libc::SO_ERROR, 0).unwrap_or(0)
}

/// Enlarges a queue (`SO_SNDBUF` or `SO_RCVBUF`), beyond the system's limit if permitted, else up to it. A smaller
/// queue works too, with lower performance.
pub(crate) fn set_queue(socket: &OwnedFd, force: c_int, ask: c_int, bytes: c_int) {
    if set_option(socket, libc::SOL_SOCKET, force, &bytes).is_err() {
        let _ = set_option(socket, libc::SOL_SOCKET, ask, &bytes);
    }
}

/// Makes an interface promiscuous while the packet socket lives.
pub(crate) fn promiscuous(socket: &OwnedFd, index: c_int) -> io::Result<()> {
    let request = libc::packet_mreq {
        mr_ifindex: index,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
}
