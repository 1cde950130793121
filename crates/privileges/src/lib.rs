//! Gives up the privileges that a process no longer needs once its ports and files are open.
//!
//! ```text
//!   open ports, files, listening sockets ──> restrict_thread(&KeptAccess) ──> start threads, parse what strangers send
//! ```
//!
//! [`restrict_thread`] leaves the calling thread without capabilities, sets `no_new_privs`, and lets Landlock restrict
//! files to those of a [`KeptAccess`]. [`restrict_program_loader`] and [`restrict_route_follower`] do the same for the
//! threads that keep capabilities, to load programs into the kernel and to change routes. No other crate changes
//! privileges.
//!
//! Invariants:
//! - Linux keeps privileges per thread. A thread that was started before keeps its own, so the call comes before any
//!   other thread starts; threads started after it inherit the restriction.
//! - A restriction is never lifted. Descriptors that are open stay usable: a packet socket needs no capability to send
//!   and receive, only to be opened.
//! - Capabilities and `no_new_privs` are never optional. Landlock is: older kernels have less of it or none, and
//!   [`RestrictionReport`] says so.

#![forbid(unsafe_code)]

mod files;

use std::fmt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use rustix::io::Errno;
use rustix::thread::{self, CapabilitySet, CapabilitySets};

use files::FileRestriction;

/// Number of capabilities that the kernel's interface has room for.
const CAPABILITIES: u32 = 64;

/// Files and connections that a restricted thread may still open. The default is none.
#[derive(Clone, Debug, Default)]
pub struct KeptAccess {
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    may_connect: bool,
}

/// A restriction that cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    /// The kernel refused a step that needs no privilege.
    #[error("cannot give up privileges: {0}")]
    Refused(#[source] std::io::Error),
    /// A path is accessible with root's capabilities only.
    #[error(
        "{} is not accessible without root's capabilities, which are given up now: run the command as the owner of the \
         path, or give the path to this user",
        .0.display()
    )]
    Inaccessible(PathBuf),
}

/// The restriction of a thread, for people who ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestrictionReport {
    files: FileRestriction,
}

impl KeptAccess {
    /// Keeps a file, or a directory with everything below it, readable.
    #[must_use]
    pub fn reading(mut self, path: impl Into<PathBuf>) -> KeptAccess {
        self.readable.push(path.into());
        self
    }

    /// Keeps a directory readable and writable: its files can be created, replaced and removed.
    #[must_use]
    pub fn writing(mut self, directory: impl Into<PathBuf>) -> KeptAccess {
        self.writable.push(directory.into());
        self
    }

    /// Keeps new TCP connections possible.
    #[must_use]
    pub fn connecting(mut self) -> KeptAccess {
        self.may_connect = true;
        self
    }

    /// Keeps what either of both lists.
    #[must_use]
    pub fn and(mut self, other: KeptAccess) -> KeptAccess {
        self.readable.extend(other.readable);
        self.writable.extend(other.writable);
        self.may_connect |= other.may_connect;
        self
    }

    /// Checks that every path remains accessible without capabilities. A path that does not exist is no mistake.
    fn check(&self) -> Result<(), PrivilegeError> {
        let readable = self.readable.iter().map(|path| (path, Access::READ_OK));
        let writable = self.writable.iter().map(|path| (path, Access::READ_OK | Access::WRITE_OK));
        for (path, access) in readable.chain(writable) {
            if rustix::fs::access(path, access) == Err(Errno::ACCESS) {
                return Err(PrivilegeError::Inaccessible(path.clone()));
            }
        }
        Ok(())
    }
}

/// Restricts the calling thread, and every thread that it starts from now on, to what `kept` lists.
///
/// # Errors
/// If the kernel refuses, or a path of `kept` is accessible with root's capabilities only.
pub fn restrict_thread(kept: &KeptAccess) -> Result<RestrictionReport, PrivilegeError> {
    let refused = |error: Errno| PrivilegeError::Refused(error.into());
    clear_bounding_set().map_err(refused)?;
    thread::set_no_new_privs(true).map_err(refused)?;
    let files = files::restrict(kept).map_err(PrivilegeError::Refused)?;
    // This also clears the ambient set, whose capabilities have to be permitted and inheritable.
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    thread::set_capabilities(None, sets).map_err(refused)?;
    kept.check()?;
    Ok(RestrictionReport { files })
}

/// Restricts the calling thread, which opens no files, as far as the kernel permits. Errors are ignored: the thread is
/// one of a process that restricts itself later, and reports them then.
pub fn restrict_idle_thread() {
    let _ = restrict_thread(&KeptAccess::default());
}

/// Restricts the calling thread to what changing routes and neighbours needs: CAP_NET_ADMIN, and no files.
///
/// # Errors
/// If the kernel refuses.
pub fn restrict_route_follower() -> Result<(), PrivilegeError> {
    restrict_to(CapabilitySet::NET_ADMIN, &KeptAccess::default())
}

/// Restricts the calling thread to what loading programs into the kernel needs: CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON
/// as far as it has them, and the kernel's type information.
///
/// # Errors
/// If the kernel refuses.
pub fn restrict_program_loader() -> Result<(), PrivilegeError> {
    let needed = CapabilitySet::BPF | CapabilitySet::NET_ADMIN | CapabilitySet::PERFMON;
    restrict_to(needed, &KeptAccess::default().reading("/sys/kernel/btf"))
}

/// Restricts the calling thread to those of the capabilities that it has, and to files.
fn restrict_to(needed: CapabilitySet, files: &KeptAccess) -> Result<(), PrivilegeError> {
    let refused = |error: Errno| PrivilegeError::Refused(error.into());
    let kept = thread::capabilities(None).map_err(refused)?.permitted & needed;
    clear_bounding_set().map_err(refused)?;
    thread::set_no_new_privs(true).map_err(refused)?;
    files::restrict(files).map_err(PrivilegeError::Refused)?;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    thread::set_capabilities(None, sets).map_err(refused)
}

/// Empties the bounding set of a thread that may do so. Without CAP_SETPCAP it stays, and `no_new_privs` alone keeps
/// programs from gaining its capabilities.
fn clear_bounding_set() -> Result<(), Errno> {
    for number in 0..CAPABILITIES {
        match thread::remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            // No permission, or the first number beyond the kernel's last capability.
            Err(Errno::PERM | Errno::INVAL) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the directory of a file, to keep it accessible for readers of files that are replaced by renaming.
pub fn directory_of(file: &Path) -> &Path {
    match file.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

impl RestrictionReport {
    /// Whether the kernel restricts files.
    pub fn restricts_files(&self) -> bool {
        self.files != FileRestriction::Unavailable
    }
}

impl fmt::Display for RestrictionReport {
    /// Formats the restriction in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "privileges: no capabilities, no_new_privs; {}", self.files)
    }
}
