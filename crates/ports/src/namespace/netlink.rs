//! Implements a minimal client of netlink(7): of rtnetlink(7), to create interfaces and routes, and of generic netlink.
//!
//! ```text
//! message   = length u32, type u16, flags u16, sequence u32, port u32 | a struct of the type | attributes
//! attribute = length u16, type u16 | value, padded to 4 bytes; the value may be attributes again
//! ```
//!
//! All numbers are in the machine's byte order. The kernel acknowledges each request with an error number, zero for
//! success.

use std::collections::BTreeSet;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::socket::set_option;

/// A request under construction.
#[derive(Debug)]
pub(crate) struct NetlinkRequest {
    bytes: Vec<u8>,
}

/// Size of struct nlmsghdr in bytes.
const HEADER: usize = 16;
/// Maximum length of an answer with a part of a list, in bytes: the kernel sends 32 KiB at most.
const ANSWER: usize = 1 << 16;

impl NetlinkRequest {
    /// Creates a request of type `kind` (`RTM_NEWLINK`, ...) with acknowledgement. `body` is the type's struct.
    pub(crate) fn new(kind: u16, flags: u16, body: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        let flags = flags | (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes[8..12].copy_from_slice(&1u32.to_ne_bytes());
        bytes.extend_from_slice(body);
        NetlinkRequest { bytes }
    }

    /// Adds an attribute.
    pub(crate) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        self.put(kind, |bytes| bytes.extend_from_slice(value));
        self
    }

    /// Adds an attribute whose value `fill` writes, including nested attributes.
    pub(crate) fn nested(mut self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        let at = self.begin(kind);
        self = fill(self);
        self.end(at);
        self
    }

    /// Returns the type.
    #[cfg(test)]
    pub(crate) fn kind(&self) -> u16 {
        u16::from_ne_bytes([self.bytes[4], self.bytes[5]])
    }

    /// Returns the type's struct and the attributes.
    #[cfg(test)]
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[HEADER..]
    }

    /// Adds raw bytes: the struct at the start of a nested attribute.
    pub(super) fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn put(&mut self, kind: u16, value: impl FnOnce(&mut Vec<u8>)) {
        let at = self.begin(kind);
        value(&mut self.bytes);
        self.end(at);
    }

    fn begin(&mut self, kind: u16) -> usize {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0, 0]);
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        at
    }

    fn end(&mut self, at: usize) {
        let len = u16::try_from(self.bytes.len() - at).expect("attributes of ours are short");
        self.bytes[at..at + 2].copy_from_slice(&len.to_ne_bytes());
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// Sends the request from the calling thread's namespace and waits for the kernel's acknowledgement.
    pub(crate) fn send(self) -> io::Result<()> {
        self.send_through(&route_socket()?)
    }

    /// Sends the request through a socket of [`route_socket`] and waits for the kernel's acknowledgement.
    pub(super) fn send_through(self, socket: &OwnedFd) -> io::Result<()> {
        exchange(socket, self.bytes).map(drop)
    }

    /// Sends the request to generic netlink from the calling thread's namespace, and waits at most a second for each
    /// answer. Returns the messages before the acknowledgement, without their headers.
    pub(crate) fn query(self) -> io::Result<Vec<Vec<u8>>> {
        let timeout = libc::timeval { tv_sec: 1, tv_usec: 0 };
        let socket = socket(libc::NETLINK_GENERIC)?;
        set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &timeout)?;
        exchange(&socket, self.bytes)
    }
}

/// Requests a list (`RTM_GETQDISC`, ...) in the calling thread's namespace. `body` is the type's struct. Returns the
/// messages without their headers.
pub(crate) fn dump(kind: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let mut bytes = vec![0; HEADER];
    bytes.extend_from_slice(body);
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    bytes[6..8].copy_from_slice(&((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
    exchange(&socket(libc::NETLINK_ROUTE)?, bytes)
}

/// Sends a request, whose length it fills in, and receives until the end of a list or an acknowledgement. Returns the
/// messages before it, without their headers.
fn exchange(socket: &OwnedFd, mut request: Vec<u8>) -> io::Result<Vec<Vec<u8>>> {
    let len = request.len() as u32;
    request[0..4].copy_from_slice(&len.to_ne_bytes());
    // SAFETY: the bytes live through the call and have the given length. The kernel is the peer by default.
    let sent = unsafe { libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut messages = Vec::new();
    let mut answer = vec![0u8; ANSWER];
    loop {
        // SAFETY: the buffer lives through the call and has the given length.
        let len = unsafe { libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) };
        let Ok(len) = usize::try_from(len) else { return Err(io::Error::last_os_error()) };
        if !collect(&answer[..len], &mut messages)? {
            return Ok(messages);
        }
    }
}

/// Appends the messages of one answer to a list. Returns whether further answers follow.
fn collect(mut answer: &[u8], messages: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    while let Some(header) = answer.first_chunk::<HEADER>() {
        let len = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = i32::from(u16::from_ne_bytes([header[4], header[5]]));
        let Some(message) = answer.get(HEADER..len) else { break };
        match kind {
            libc::NLMSG_DONE => return Ok(false),
            libc::NLMSG_ERROR => return verdict(answer).map(|()| false),
            _ => messages.push(message.to_owned()),
        }
        answer = answer.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    // An answer that ends within a message would be followed by nothing that makes sense.
    if answer.is_empty() { Ok(true) } else { Err(io::Error::from(io::ErrorKind::InvalidData)) }
}

/// Returns the attributes in these bytes: type and value. Bytes that are no attribute end them.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// The flags in an attribute's type (`NLA_F_NESTED`, `NLA_F_NET_BYTEORDER`).
    const FLAGS: u16 = 0xc000;
    std::iter::from_fn(move || {
        let header = bytes.first_chunk::<4>()?;
        let len = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]) & !FLAGS;
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Parses the kernel's acknowledgement: a header, then the negative error number.
fn verdict(answer: &[u8]) -> io::Result<()> {
    let kind = answer.get(4..6).map(|b| u16::from_ne_bytes([b[0], b[1]]));
    let code = answer.get(HEADER..HEADER + 4).map(|b| i32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
    match (kind, code) {
        (Some(kind), Some(0)) if i32::from(kind) == libc::NLMSG_ERROR => Ok(()),
        (Some(kind), Some(code)) if i32::from(kind) == libc::NLMSG_ERROR => {
            Err(io::Error::from_raw_os_error(code.saturating_neg()))
        }
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer is not an acknowledgement")),
    }
}

/// A kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RouteChange {
    /// A route was added or removed.
    Route,
    /// A permanent neighbour was added or changed, or any neighbour was removed.
    Neighbour,
}

/// A socket that receives changes of the IPv4 routes and neighbours of a namespace.
pub(crate) struct ChangeSocket(OwnedFd);

impl ChangeSocket {
    /// Opens a socket in the calling thread's namespace.
    pub(crate) fn open() -> io::Result<ChangeSocket> {
        subscribe(libc::RTMGRP_IPV4_ROUTE | libc::RTMGRP_NEIGH).map(ChangeSocket)
    }

    /// Takes the changes that have arrived, without waiting. If there were too many, all kinds may have changed.
    pub(crate) fn take(&self) -> BTreeSet<RouteChange> {
        let mut changes = BTreeSet::new();
        let is_complete = receive_all(&self.0, |messages| changes.extend(changes_in(messages)));
        if !is_complete {
            changes.extend([RouteChange::Route, RouteChange::Neighbour]);
        }
        changes
    }
}

/// The interfaces that were changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinksChanged {
    /// Those with these indices.
    These(BTreeSet<u32>),
    /// Any: there were too many changes to report.
    Any,
}

/// A socket that receives changes of the interfaces of a namespace.
pub(crate) struct LinkSocket(OwnedFd);

impl LinkSocket {
    /// Opens a socket in the calling thread's namespace.
    pub(crate) fn open() -> io::Result<LinkSocket> {
        subscribe(libc::RTMGRP_LINK).map(LinkSocket)
    }

    /// Takes the changes that have arrived, without waiting.
    pub(crate) fn take(&self) -> LinksChanged {
        let mut indices = BTreeSet::new();
        let is_complete = receive_all(&self.0, |messages| {
            indices.extend(messages_in(messages).filter_map(|(kind, message)| {
                // The index in struct ifinfomsg.
                let index = message.get(HEADER + 4..)?.first_chunk()?;
                matches!(kind, libc::RTM_NEWLINK | libc::RTM_DELLINK).then(|| u32::from_ne_bytes(*index))
            }));
        });
        if is_complete { LinksChanged::These(indices) } else { LinksChanged::Any }
    }

    pub(crate) fn as_owned(&self) -> &OwnedFd {
        &self.0
    }
}

/// Opens a socket that receives the changes of these groups in the calling thread's namespace.
fn subscribe(groups: c_int) -> io::Result<OwnedFd> {
    let socket = route_socket()?;
    // SAFETY: a socket address is plain data, for which zeros are valid.
    let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
    address.nl_family = libc::AF_NETLINK as u16;
    address.nl_groups = groups as u32;
    let len = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address lives through the call and has the given length.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
}

/// Receives all messages that have arrived, without waiting. Returns false if some were lost because there were too
/// many.
fn receive_all(socket: &OwnedFd, mut receive: impl FnMut(&[u8])) -> bool {
    // Not cleared: most calls find nothing.
    let (mut buffer, mut is_complete) = (Vec::<u8>::with_capacity(ANSWER), true);
    loop {
        let (fd, room) = (socket.as_raw_fd(), buffer.spare_capacity_mut());
        // SAFETY: the buffer lives through the call and has the given length.
        let len = unsafe { libc::recv(fd, room.as_mut_ptr().cast(), room.len(), libc::MSG_DONTWAIT) };
        match usize::try_from(len) {
            Ok(len) => {
                // SAFETY: the kernel has written these bytes.
                unsafe { buffer.set_len(len) };
                receive(&buffer);
                buffer.clear();
            }
            Err(_) => match io::Error::last_os_error().raw_os_error() {
                Some(libc::ENOBUFS) => is_complete = false,
                Some(libc::EINTR) => {}
                _ => return is_complete,
            },
        }
    }
}

impl AsRawFd for ChangeSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Returns the kinds of messages, and the messages with their headers.
fn messages_in(mut messages: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let header = messages.first_chunk::<HEADER>()?;
        let len = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let message = messages.get(..len).filter(|_| len >= HEADER)?;
        messages = messages.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([header[4], header[5]]), message))
    })
}

/// Returns the kinds of the changes in these messages.
fn changes_in(messages: &[u8]) -> impl Iterator<Item = RouteChange> {
    /// Offset of the state in struct ndmsg.
    const STATE: usize = HEADER + 8;
    messages_in(messages).filter_map(|(kind, message)| match kind {
        libc::RTM_NEWROUTE | libc::RTM_DELROUTE => Some(RouteChange::Route),
        libc::RTM_DELNEIGH => Some(RouteChange::Neighbour),
        libc::RTM_NEWNEIGH => match message.get(STATE..STATE + 2) {
            // The kernel reports each address that it resolves.
            Some(&[a, b]) if u16::from_ne_bytes([a, b]) & libc::NUD_PERMANENT == 0 => None,
            _ => Some(RouteChange::Neighbour),
        },
        _ => None,
    })
}

/// Opens a socket for interfaces and routes in the calling thread's namespace. This takes about as long as a request.
pub(super) fn route_socket() -> io::Result<OwnedFd> {
    socket(libc::NETLINK_ROUTE)
}

fn socket(protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers are involved.
    let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_nest_and_are_padded() {
        let request = NetlinkRequest::new(16, 0, &[7; 4])
            .attribute(3, b"ab\0")
            .nested(18, |request| request.attribute(1, b"veth"))
            .bytes;
        let ne = |value: u16| value.to_ne_bytes();
        let expected: Vec<u8> =
            [&[7; 4][..], &ne(7), &ne(3), b"ab\0\0", &ne(12), &ne(18), &ne(8), &ne(1), b"veth"].concat();
        assert_eq!(request[HEADER..], expected);
    }

    #[test]
    fn attributes_are_read_back_and_damaged_ones_end_them() {
        let bytes = NetlinkRequest::new(16, 0, &[]).attribute(3, b"ab\0").attribute(4, b"cdef").bytes;
        let found: Vec<_> = attributes(&bytes[HEADER..]).collect();
        assert_eq!(found, [(3, &b"ab\0"[..]), (4, b"cdef")]);
        assert_eq!(attributes(&bytes[HEADER..bytes.len() - 1]).count(), 1);
        for damaged in [&[0u8; 4][..], &[3, 0, 1, 0], &[255, 255, 1, 0, 1]] {
            assert_eq!(attributes(damaged).count(), 0, "{damaged:?}");
        }
    }

    #[test]
    fn a_list_ends_with_its_last_message() {
        let message = |kind: i32, body: &[u8]| {
            let len = (HEADER + body.len()) as u32;
            [&len.to_ne_bytes()[..], &(kind as u16).to_ne_bytes(), &[0; 10], body].concat()
        };
        let mut messages = Vec::new();
        assert!(collect(&[message(36, b"abcd"), message(36, b"efgh")].concat(), &mut messages).unwrap());
        assert!(!collect(&message(libc::NLMSG_DONE, &[0; 4]), &mut messages).unwrap());
        assert_eq!(messages, [b"abcd", b"efgh"]);
        let refused = message(libc::NLMSG_ERROR, &(-libc::EPERM).to_ne_bytes());
        assert_eq!(collect(&refused, &mut messages).unwrap_err().raw_os_error(), Some(libc::EPERM));
        assert!(collect(&message(36, b"abcd")[..18], &mut messages).is_err(), "it is cut off");
    }

    #[test]
    fn neighbours_that_the_kernel_resolves_are_no_changes() {
        let message = |kind: u16, body: &[u8]| {
            let len = (HEADER + body.len()) as u32;
            [&len.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10], body].concat()
        };
        let neighbour = |kind: u16, state: u16| message(kind, &[&[0; 8][..], &state.to_ne_bytes(), &[0; 2]].concat());
        let found = |messages: &[u8]| changes_in(messages).collect::<Vec<_>>();
        let (reachable, permanent) = (libc::NUD_REACHABLE, libc::NUD_PERMANENT);
        assert_eq!(found(&neighbour(libc::RTM_NEWNEIGH, reachable)), []);
        assert_eq!(found(&neighbour(libc::RTM_DELNEIGH, reachable)), [RouteChange::Neighbour]);
        let both = [neighbour(libc::RTM_NEWNEIGH, permanent), message(libc::RTM_DELROUTE, &[0; 12])].concat();
        assert_eq!(found(&both), [RouteChange::Neighbour, RouteChange::Route]);
        (0..both.len()).for_each(|len| assert!(found(&both[..len]).len() < 2));
        assert_eq!(found(&[0; 40]), [], "a length of zero is no message");
    }

    #[test]
    fn answers_become_errors() {
        let mut answer = vec![0; 20];
        assert!(verdict(&answer).is_err() && verdict(&[]).is_err());
        answer[4..6].copy_from_slice(&2u16.to_ne_bytes());
        assert!(verdict(&answer).is_ok());
        answer[16..20].copy_from_slice(&(-libc::EEXIST).to_ne_bytes());
        assert_eq!(verdict(&answer).unwrap_err().raw_os_error(), Some(libc::EEXIST));
    }
}
