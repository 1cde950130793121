//! Enters the namespaces of another process, as nsenter(1) does.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;

use super::NamespaceError;
use super::user::unshare;

/// Moves this process, which must have one thread, into the user namespace of a process and into a network namespace
/// that the process holds open as descriptor `network`. Programs that list `/sys/class/net` see its interfaces, where
/// the kernel allows it.
///
/// # Errors
/// Returns an error if the process has ended, holds no such namespace, or belongs to another user.
pub fn join(process: u32, network: RawFd) -> Result<(), NamespaceError> {
    let refused = |what| move |source| NamespaceError::Refused { what, source };
    let network = held(process, network)?;
    join_user(process)?;
    enter(&network, libc::CLONE_NEWNET).map_err(refused("entering a network namespace"))?;
    // Where /sys cannot be mounted again, it still shows the machine's interfaces, as before.
    let _ = see_interfaces();
    Ok(())
}

/// Moves this process, which must have one thread, into the user namespace of a process, unless it is there already.
///
/// # Errors
/// Returns an error if the process has ended or belongs to another user.
pub fn join_user(process: u32) -> Result<(), NamespaceError> {
    let refused = |what| move |source| NamespaceError::Refused { what, source };
    let user = File::open(format!("/proc/{process}/ns/user")).map_err(refused("opening a user namespace"))?;
    let own = std::fs::metadata("/proc/self/ns/user").map_err(refused("opening the current user namespace"))?;
    let its = user.metadata().map_err(refused("opening a user namespace"))?;
    if (own.dev(), own.ino()) != (its.dev(), its.ino()) {
        enter(&user, libc::CLONE_NEWUSER).map_err(refused("entering a user namespace"))?;
    }
    Ok(())
}

/// Opens the network namespace that a process holds open as a descriptor.
pub(super) fn held(process: u32, network: RawFd) -> Result<File, NamespaceError> {
    let file = File::open(format!("/proc/{process}/fd/{network}"));
    file.map_err(|source| NamespaceError::Refused { what: "opening a network namespace", source })
}

/// Mounts the network namespace's own view of `/sys`, for this process and its children.
fn see_interfaces() -> io::Result<()> {
    unshare(libc::CLONE_NEWNS)?;
    // Mounts from here on stay in this namespace.
    mount(c"none", c"/", None, libc::MS_REC | libc::MS_SLAVE)?;
    mount(c"sysfs", c"/sys", Some(c"sysfs"), libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC)
}

fn mount(source: &CStr, target: &CStr, kind: Option<&CStr>, flags: libc::c_ulong) -> io::Result<()> {
    let kind = kind.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: the strings end in zero and outlive the call, which keeps none of them; a kind and data may be null.
    let result = unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind, flags, std::ptr::null()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn enter(namespace: &File, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open; no memory is involved.
    if unsafe { libc::setns(namespace.as_raw_fd(), kind) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
