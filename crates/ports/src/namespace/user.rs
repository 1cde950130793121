//! Enters user namespaces: a process becomes root within its own namespace.
//!
//! There the process may create network namespaces and interfaces and open packet sockets, but gains no privileges
//! outside. Source: user_namespaces(7).

use std::ffi::c_int;
use std::io;

use super::NamespaceError;

/// Moves the process into new user and network namespaces and maps its user and group to root there.
pub(super) fn enter_new() -> Result<(), NamespaceError> {
    // SAFETY: these two read numbers and cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET).map_err(|source| match source.raw_os_error() {
        // With these flags the kernel has no other reason for this error.
        Some(libc::EINVAL) => NamespaceError::ManyThreads,
        _ => NamespaceError::Refused { what: "creating a user namespace", source },
    })?;
    // Without privileges outside, groups can be mapped only after setgroups(2) is disabled.
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("0 {user} 1"))?;
    write("/proc/self/gid_map", &format!("0 {group} 1"))
}

fn write(path: &str, text: &str) -> Result<(), NamespaceError> {
    std::fs::write(path, text)
        .map_err(|source| NamespaceError::Refused { what: "becoming root in a user namespace", source })
}

pub(super) fn unshare(flags: c_int) -> io::Result<()> {
    // SAFETY: no pointers are involved; only the calling thread is moved (for user namespaces the process, which the
    // kernel requires to have a single thread).
    if unsafe { libc::unshare(flags) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
