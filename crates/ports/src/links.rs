//! Reports which interfaces of ports gain or lose their links.

use std::collections::BTreeSet;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use crate::interface::{self, Interface};
use crate::namespace::netlink::{LinkSocket, LinksChanged};
use crate::socket::get_option;

/// The link of an interface, which may be renamed. It has none once it has left the namespace in which a port opened
/// it.
#[derive(Clone, Debug)]
pub struct Link {
    /// A socket in the interface's namespace.
    socket: Arc<OwnedFd>,
    index: c_int,
}

impl Link {
    /// Returns the link of the interface with this index in the socket's namespace.
    pub(crate) fn new(socket: &Arc<OwnedFd>, index: c_int) -> Link {
        Link { socket: Arc::clone(socket), index }
    }

    /// Whether the interface is there, is up and has carrier. It costs three system calls. One that cannot tell has a
    /// link.
    pub fn is_up(&self) -> bool {
        let name = interface::name_of(self.socket.as_fd(), self.index);
        let has_carrier = name.and_then(|name| Interface::new(self.socket.as_fd(), &name).has_carrier());
        has_carrier.unwrap_or_else(|error| !matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO)))
    }
}

/// Returns the cookie of the network namespace of a socket, which no other namespace gets until the machine restarts;
/// `None` with a kernel older than 5.14.
fn namespace_of(socket: &OwnedFd) -> Option<u64> {
    get_option(socket, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, 0).ok()
}

/// Watches links of one network namespace.
pub struct LinkWatcher {
    socket: LinkSocket,
    namespace: Option<u64>,
}

/// The interfaces whose links may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedLinks(LinksChanged);

impl LinkWatcher {
    /// Opens a watcher for the interfaces of the calling thread's namespace; `None` if this process may open no netlink
    /// sockets.
    ///
    /// # Errors
    /// If the process can open no more descriptors.
    pub fn open() -> io::Result<Option<LinkWatcher>> {
        let socket = match LinkSocket::open() {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => return Err(error),
            Err(_) => return Ok(None),
            Ok(socket) => socket,
        };
        let namespace = namespace_of(socket.as_owned());
        Ok(Some(LinkWatcher { socket, namespace }))
    }

    /// Returns the descriptor that is readable when a link may have changed.
    pub fn fd(&self) -> RawFd {
        self.socket.as_owned().as_raw_fd()
    }

    /// Whether changes of this link are noticed: it is in the watched namespace.
    pub fn sees(&self, link: &Link) -> bool {
        self.namespace.is_some() && namespace_of(&link.socket) == self.namespace
    }

    /// Returns the links that may have changed since the last call. It costs one system call if there are none.
    pub fn take_changes(&mut self) -> ChangedLinks {
        ChangedLinks(self.socket.take())
    }
}

impl ChangedLinks {
    /// Whether no link has changed.
    pub fn is_empty(&self) -> bool {
        self.0 == LinksChanged::These(BTreeSet::new())
    }

    /// Whether this link may have changed.
    pub fn contains(&self, link: &Link) -> bool {
        match &self.0 {
            LinksChanged::These(indices) => indices.contains(&link.index.cast_unsigned()),
            LinksChanged::Any => true,
        }
    }
}
