//! Entering the namespaces of another process, as nsenter(1) does.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;

use super::NamespaceError;

/// Moves this process, which must have one thread, into the user namespace of a process and into a network namespace
/// that the process holds open as descriptor `network`.
///
/// # Errors
/// If the process is gone, holds no such namespace, or belongs to someone else.
pub fn join(process: u32, network: RawFd) -> Result<(), NamespaceError> {
    let refused = |what| move |source| NamespaceError::Refused { what, source };
    let user = File::open(format!("/proc/{process}/ns/user")).map_err(refused("opening a user namespace"))?;
    let network =
        File::open(format!("/proc/{process}/fd/{network}")).map_err(refused("opening a network namespace"))?;
    let own = std::fs::metadata("/proc/self/ns/user").map_err(refused("opening the own user namespace"))?;
    let its = user.metadata().map_err(refused("opening a user namespace"))?;
    if (own.dev(), own.ino()) != (its.dev(), its.ino()) {
        enter(&user, libc::CLONE_NEWUSER).map_err(refused("entering a user namespace"))?;
    }
    enter(&network, libc::CLONE_NEWNET).map_err(refused("entering a network namespace"))
}

fn enter(namespace: &File, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open; no memory is involved.
    if unsafe { libc::setns(namespace.as_raw_fd(), kind) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
