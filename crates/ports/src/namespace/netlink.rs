//! Implements a minimal rtnetlink(7) client to create interfaces and routes.
//!
//! ```text
//! message   = length u32, type u16, flags u16, sequence u32, port u32 | a struct of the type | attributes
//! attribute = length u16, type u16 | value, padded to 4 bytes; the value may be attributes again
//! ```
//!
//! All numbers are in the machine's byte order. The kernel acknowledges each request with an error number, zero for
//! success.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A request under construction.
pub(super) struct NetlinkRequest {
    bytes: Vec<u8>,
}

/// Size of struct nlmsghdr in bytes.
const HEADER: usize = 16;

impl NetlinkRequest {
    /// Creates a request of type `kind` (`RTM_NEWLINK`, ...) with acknowledgement. `body` is the type's struct.
    pub(super) fn new(kind: u16, flags: u16, body: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        let flags = flags | (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes[8..12].copy_from_slice(&1u32.to_ne_bytes());
        bytes.extend_from_slice(body);
        NetlinkRequest { bytes }
    }

    /// Adds an attribute.
    pub(super) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        self.put(kind, |bytes| bytes.extend_from_slice(value));
        self
    }

    /// Adds an attribute whose value `fill` writes, including nested attributes.
    pub(super) fn nested(mut self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        let at = self.begin(kind);
        self = fill(self);
        self.end(at);
        self
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
    pub(super) fn send(mut self) -> io::Result<()> {
        let len = self.bytes.len() as u32;
        self.bytes[0..4].copy_from_slice(&len.to_ne_bytes());
        let socket = socket()?;
        // SAFETY: the bytes live through the call and have the given length. The kernel is the peer by default.
        let sent = unsafe { libc::send(socket.as_raw_fd(), self.bytes.as_ptr().cast(), self.bytes.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut answer = [0u8; 4096];
        // SAFETY: the buffer lives through the call and has the given length.
        let len = unsafe { libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) };
        let Ok(len) = usize::try_from(len) else { return Err(io::Error::last_os_error()) };
        verdict(&answer[..len])
    }
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

fn socket() -> io::Result<OwnedFd> {
    // SAFETY: no pointers are involved.
    let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE) };
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
    fn answers_become_errors() {
        let mut answer = vec![0; 20];
        assert!(verdict(&answer).is_err() && verdict(&[]).is_err());
        answer[4..6].copy_from_slice(&2u16.to_ne_bytes());
        assert!(verdict(&answer).is_ok());
        answer[16..20].copy_from_slice(&(-libc::EEXIST).to_ne_bytes());
        assert_eq!(verdict(&answer).unwrap_err().raw_os_error(), Some(libc::EEXIST));
    }
}
