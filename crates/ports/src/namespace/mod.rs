//! Creates networks without root: user and network namespaces, veth pairs, addresses and routes.
//!
//! ```no_run
//! # use std::{net::IpAddr, time::Duration};
//! # fn main() -> Result<(), ports::namespace::NamespaceError> {
//! use ports::namespace::{Namespace, veth};
//! let router = Namespace::new_user()?; // first of all, while the process has one thread
//! let host = Namespace::new("h1")?;
//! veth(&host, "eth0", &router, "s1-eth1")?;
//! host.set_mac("eth0", [8, 0, 0, 0, 1, 1])?;
//! host.add_address("eth0", IpAddr::from([10, 0, 1, 1]), 24)?;
//! host.set_up("eth0")?;
//! router.set_up("s1-eth1")?;
//! host.wait_for_link("eth0", Duration::from_secs(1))?;
//! router.wait_for_link("s1-eth1", Duration::from_secs(1))?;
//! host.add_route(IpAddr::from([0, 0, 0, 0]), 0, IpAddr::from([10, 0, 1, 10]))?;
//! host.add_neighbour("eth0", IpAddr::from([10, 0, 1, 10]), [8, 0, 0, 0, 1, 0])?;
//! let listener = host.enter(|| std::net::TcpListener::bind("10.0.1.1:80"))?;
//! # Ok(()) }
//! ```
//!
//! A [`Namespace`] lives as long as its value, a thread or process inside it, or a socket opened in it. When the last
//! of them is gone, the kernel removes it and everything in it, so no cleanup is needed, even after a crash. Sockets
//! stay in the namespace they were opened in, whichever thread uses them.

mod cookie;
mod join;
pub(crate) mod netlink;
mod network;
mod offloads;
mod ping;
mod tagging;
mod transfer;
mod user;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread::JoinHandle;

pub use join::{join, join_user};
pub use network::{veth, veth_with_queues};
pub use offloads::{Offload, Offloads};
pub use ping::{Echo, Echoes, PingResult};
pub use tagging::Tagging;
pub use transfer::{StreamTransfer, TransferError};

/// The reason why an operation on a namespace failed.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// The kernel or its administrator does not allow user namespaces for this user.
    #[error(
        "{what} is not allowed here ({source}): run as root, or allow user namespaces (sysctl \
         kernel.unprivileged_userns_clone, user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns)"
    )]
    Refused {
        /// Attempted operation.
        what: &'static str,
        /// Error returned by the kernel.
        source: io::Error,
    },
    /// A user namespace applies to a whole process, and this one has other threads already.
    #[error("a user namespace must be entered before the process starts its first thread")]
    ManyThreads,
    /// An operation within a namespace failed.
    #[error("{what} in namespace `{namespace}` failed: {source}")]
    System {
        /// Attempted operation, with names.
        what: String,
        /// The namespace's name.
        namespace: String,
        /// Error returned by the kernel.
        source: io::Error,
    },
}

/// A network namespace, held open.
pub struct Namespace {
    name: String,
    file: File,
}

impl Namespace {
    /// Puts this process into a new user namespace, in which it is root, and into a new network namespace, which it may
    /// therefore configure freely. File system, processes and everything else stay unchanged.
    ///
    /// # Errors
    /// Returns an error if the process has several threads already, or the kernel refuses.
    pub fn new_user() -> Result<Namespace, NamespaceError> {
        user::enter_new()?;
        let namespace = Namespace::current()?;
        namespace.set_up("lo")?;
        Ok(namespace)
    }

    /// Puts the calling thread, and threads it starts later, into a new network namespace. Unlike
    /// [`new_user`](Self::new_user) it requires root and keeps root's capabilities: BPF programs cannot be loaded in a
    /// user namespace.
    ///
    /// # Errors
    /// Returns an error if the process is not root.
    pub fn new_own() -> Result<Namespace, NamespaceError> {
        user::unshare(libc::CLONE_NEWNET)
            .map_err(|source| NamespaceError::Refused { what: "creating a network namespace", source })?;
        let namespace = Namespace::current()?;
        namespace.set_up("lo")?;
        Ok(namespace)
    }

    /// Opens the network namespace of the calling thread.
    ///
    /// # Errors
    /// Returns an error if `/proc` is not mounted.
    pub fn current() -> Result<Namespace, NamespaceError> {
        let file = File::open("/proc/thread-self/ns/net");
        let file =
            file.map_err(|source| NamespaceError::Refused { what: "opening the current network namespace", source })?;
        Ok(Namespace { name: "self".to_owned(), file })
    }

    /// Creates a network namespace with only its loopback device, which is up. The name is used in messages only.
    ///
    /// # Errors
    /// Returns an error if the process is not root, at least in its own user namespace ([`new_user`](Self::new_user)).
    pub fn new(name: &str) -> Result<Namespace, NamespaceError> {
        let make = || {
            user::unshare(libc::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        };
        let file = in_thread(name, make).and_then(|made| made);
        let file = file.map_err(|source| NamespaceError::Refused { what: "creating a network namespace", source })?;
        let namespace = Namespace { name: name.to_owned(), file };
        namespace.set_up("lo")?;
        Ok(namespace)
    }

    /// Opens the network namespace that another process holds open as a descriptor
    /// ([`raw_descriptor`](Self::raw_descriptor)). Without root, entering it requires being in its user namespace
    /// ([`join_user`]).
    ///
    /// # Errors
    /// Returns an error if the process has ended or belongs to another user.
    pub fn held(process: u32, descriptor: RawFd, name: &str) -> Result<Namespace, NamespaceError> {
        Ok(Namespace { name: name.to_owned(), file: join::held(process, descriptor)? })
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work` in a thread inside the namespace, waits for it and returns its result. Panics are propagated.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be started or cannot enter.
    pub fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, NamespaceError> {
        let inside = || {
            set_namespace(self.file.as_fd())?;
            Ok(work())
        };
        in_thread(&self.name, inside).and_then(|done: io::Result<R>| done).map_err(self.failed("entering".to_owned()))
    }

    /// Starts a thread inside the namespace. If it cannot enter, `work` is not run and joining it returns the error.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be started.
    pub fn spawn<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<JoinHandle<io::Result<R>>, NamespaceError> {
        let failed = || self.failed("starting a thread".to_owned());
        let file = self.file.try_clone().map_err(failed())?;
        let inside = move || {
            set_namespace(file.as_fd())?;
            Ok(work())
        };
        std::thread::Builder::new().name(self.name.clone()).spawn(inside).map_err(failed())
    }

    /// Creates a command that will run inside the namespace.
    ///
    /// # Errors
    /// Returns an error if no further descriptor can be opened.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Result<Command, NamespaceError> {
        let file = self.file.try_clone().map_err(self.failed("preparing a command".to_owned()))?;
        let mut command = Command::new(program);
        // SAFETY: between fork and exec only setns is called, with a descriptor that the closure owns; it allocates
        // nothing and takes no lock.
        unsafe { command.pre_exec(move || set_namespace(file.as_fd())) };
        Ok(command)
    }

    /// Sets a kernel parameter of the namespace, with its name under `/proc/sys`: `net/ipv4/ping_group_range`.
    ///
    /// # Errors
    /// Returns an error if there is no such parameter, the value is invalid, or the parameter is not per namespace.
    pub fn set_parameter(&self, parameter: &str, value: &str) -> Result<(), NamespaceError> {
        // `/proc/sys/net` shows each thread the parameters of its own namespace.
        let path = format!("/proc/sys/{parameter}");
        self.enter(|| std::fs::write(&path, value))?.map_err(self.failed(format!("setting {parameter} to {value}")))
    }

    /// Turns IPv6 off, so that only the traffic of the hosts' own applications is on their links (no router
    /// solicitations, no duplicate address detection).
    ///
    /// # Errors
    /// As [`set_parameter`](Self::set_parameter); a kernel without IPv6 is not an error.
    pub fn disable_ipv6(&self) -> Result<(), NamespaceError> {
        for scope in ["all", "default"] {
            match self.set_parameter(&format!("net/ipv6/conf/{scope}/disable_ipv6"), "1") {
                Err(NamespaceError::System { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                result => result?,
            }
        }
        Ok(())
    }

    /// Returns the number of the descriptor that holds it open in this process, for [`join`].
    pub fn raw_descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn failed(&self, what: String) -> impl FnOnce(io::Error) -> NamespaceError {
        let namespace = self.name.clone();
        move |source| NamespaceError::System { what, namespace, source }
    }
}

/// Moves the calling thread into a namespace.
fn set_namespace(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no pointers are involved.
    let result = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Runs `work` in a separate thread, since a namespace belongs to a thread and the caller keeps its own.
fn in_thread<R: Send>(name: &str, work: impl FnOnce() -> R + Send) -> io::Result<R> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work)?;
        thread.join().or_else(|panic| std::panic::resume_unwind(panic))
    })
}
