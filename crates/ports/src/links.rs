//! Reports which interfaces of ports gain or lose their links.

use std::collections::BTreeSet;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use crate::interface::Interface;
use crate::namespace::netlink::{LinkSocket, LinksChanged};
use crate::socket::get_option;

/// The link of an interface. It stays that of the interface under its name in the namespace in which a port opened it.
#[derive(Clone, Debug)]
pub struct Link {
    /// A socket in the interface's namespace.
    socket: Arc<OwnedFd>,
    name: String,
    index: u32,
}

impl Link {
    /// Returns the link of the interface that has this name and this index in the socket's namespace.
    pub(crate) fn new(socket: &Arc<OwnedFd>, name: &str, index: c_int) -> Link {
        Link { socket: Arc::clone(socket), name: name.to_owned(), index: index.cast_unsigned() }
    }

    /// Returns the name of the interface.
    pub fn interface(&self) -> &str {
        &self.name
    }

    /// Whether the interface is up and has carrier. It costs two system calls. An interface that cannot tell has a
    /// link.
    pub fn is_up(&self) -> bool {
        Interface::new(self.socket.as_fd(), &self.name).has_link().unwrap_or(true)
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
    /// Opens a watcher for the interfaces of the calling thread's namespace.
    ///
    /// # Errors
    /// If the process can open no more descriptors.
    pub fn open() -> io::Result<LinkWatcher> {
        let socket = LinkSocket::open()?;
        let namespace = namespace_of(socket.as_owned());
        Ok(LinkWatcher { socket, namespace })
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
            LinksChanged::These(indices) => indices.contains(&link.index),
            LinksChanged::Any => true,
        }
    }
}
