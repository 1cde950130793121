//! Sends ICMP echo requests from a namespace.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::FromRawFd;
use std::time::{Duration, Instant};

use wire::{icmpv4, ipv4};

use super::{Namespace, NamespaceError};

/// The result of an echo request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PingResult {
    /// An echo reply.
    Reply {
        /// Round-trip time.
        time: Duration,
        /// Time to live of the reply: its initial value minus the number of routers on the path.
        ttl: u8,
    },
    /// An ICMP error from a router or host on the path.
    IcmpError {
        /// Sender of the error.
        from: Ipv4Addr,
        /// Its message.
        message: icmpv4::Repr,
    },
    /// No reply before the timeout.
    Timeout,
}

impl Namespace {
    /// Sends one echo request with this sequence number and 56 bytes of data, and waits for the result.
    ///
    /// # Errors
    /// Returns an error if there is no route, or this process is not the namespace's root.
    pub fn ping(&self, destination: Ipv4Addr, sequence: u16, timeout: Duration) -> Result<PingResult, NamespaceError> {
        let exchange = || exchange(&socket()?, destination, sequence, timeout);
        self.enter(exchange)?.map_err(self.failed(format!("pinging {destination}")))
    }
}

/// A socket for echo requests to any host from a namespace, and for the replies. Sending and waiting are separate, so a
/// request need not wait for the previous reply. Threads may share it.
pub struct Echoes(UdpSocket);

/// An echo reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Sender of the reply.
    pub from: Ipv4Addr,
    /// Identifier of the request.
    pub identifier: u16,
    /// Sequence number of the request.
    pub sequence: u16,
    /// Data of the request.
    pub data: Vec<u8>,
}

impl Echoes {
    /// Opens a socket in the namespace. It receives the replies to all requests there, distinguished by their
    /// identifiers.
    ///
    /// # Errors
    /// Returns an error if this process is not the namespace's root.
    pub fn open(namespace: &Namespace) -> Result<Echoes, NamespaceError> {
        let opened = namespace.enter(socket)?.map_err(namespace.failed("opening a raw socket".to_owned()))?;
        Ok(Echoes(opened))
    }

    /// Sends a request.
    ///
    /// # Errors
    /// Returns an error if there is no route, or the socket's queue is full.
    pub fn request(&self, to: Ipv4Addr, identifier: u16, sequence: u16, data: &[u8]) -> io::Result<()> {
        let request = icmpv4::Repr::EchoRequest { identifier, sequence };
        self.0.send_to(&request.packet(data), SocketAddr::from((to, 0))).map(drop)
    }

    /// Waits for a reply for at most `timeout` (which is not zero). Returns `None` if there was none, or another
    /// message came.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses.
    pub fn answer(&self, timeout: Duration) -> io::Result<Option<Echo>> {
        self.0.set_read_timeout(Some(timeout))?;
        let mut buffer = [0; 2048];
        match self.0.recv(&mut buffer) {
            Ok(len) => Ok(echo(&buffer[..len])),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Parses a packet as an echo reply.
fn echo(bytes: &[u8]) -> Option<Echo> {
    let packet = ipv4::Packet::new_checked(bytes).ok()?;
    let message = icmpv4::Packet::new_checked(packet.payload()).ok()?;
    let icmpv4::Repr::EchoReply { identifier, sequence } = icmpv4::Repr::parse(&message) else { return None };
    Some(Echo { from: packet.source(), identifier, sequence, data: message.payload().to_vec() })
}

/// Opens a raw ICMP socket. It has the type of a UDP socket, whose calls are the same; received packets begin with the
/// IP header.
fn socket() -> io::Result<UdpSocket> {
    // SAFETY: no pointers are involved.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::IPPROTO_ICMP) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    Ok(unsafe { UdpSocket::from_raw_fd(fd) })
}

fn exchange(socket: &UdpSocket, destination: Ipv4Addr, sequence: u16, timeout: Duration) -> io::Result<PingResult> {
    // The thread's id distinguishes pings of several threads.
    let identifier = (std::process::id() as u16).wrapping_add(thread_number());
    let request = icmpv4::Repr::EchoRequest { identifier, sequence };
    let started = Instant::now();
    socket.send_to(&request.packet(&[0x55; 56]), SocketAddr::from((destination, 0)))?;
    let mut buffer = [0; 2048];
    loop {
        let left = timeout.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Ok(PingResult::Timeout);
        }
        socket.set_read_timeout(Some(left))?;
        let len = match socket.recv(&mut buffer) {
            Ok(len) => len,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => continue,
            Err(error) => return Err(error),
        };
        if let Some(answer) = answer(&buffer[..len], destination, request, started.elapsed()) {
            return Ok(answer);
        }
    }
}

fn thread_number() -> u16 {
    // SAFETY: the call reads a number and cannot fail.
    unsafe { libc::gettid() as u16 }
}

/// Matches a received packet with the request.
fn answer(bytes: &[u8], destination: Ipv4Addr, request: icmpv4::Repr, time: Duration) -> Option<PingResult> {
    let packet = ipv4::Packet::new_checked(bytes).ok()?;
    let message = icmpv4::Packet::new_checked(packet.payload()).ok()?;
    let icmpv4::Repr::EchoRequest { identifier, sequence } = request else { return None };
    match icmpv4::Repr::parse(&message) {
        icmpv4::Repr::EchoReply { identifier: id, sequence: seq } => {
            let ours = packet.source() == destination && (id, seq) == (identifier, sequence);
            ours.then_some(PingResult::Reply { time, ttl: packet.ttl() })
        }
        complaint @ (icmpv4::Repr::Unreachable { .. } | icmpv4::Repr::TimeExceeded { .. }) => {
            // An ICMP error quotes the packet that caused it: its IP header and at least eight bytes.
            let quoted = ipv4::Packet::new_checked(message.payload()).ok()?;
            let header = icmpv4::Packet::new_checked(quoted.payload()).ok()?;
            let ours = quoted.destination() == destination && icmpv4::Repr::parse(&header) == request;
            ours.then_some(PingResult::IcmpError { from: packet.source(), message: complaint })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_about_the_request_answers_it() {
        let (me, router, host) = ([10, 0, 1, 1].into(), [10, 0, 1, 254].into(), Ipv4Addr::from([10, 0, 2, 2]));
        let request = icmpv4::Repr::EchoRequest { identifier: 7, sequence: 1 };
        let time = Duration::from_millis(1);
        let from = |source, message: icmpv4::Repr, payload: &[u8]| {
            let bytes = ipv4::Repr::new(source, me, ipv4::ICMP).packet(&message.packet(payload));
            answer(&bytes, host, request, time)
        };
        let reply = |identifier| icmpv4::Repr::EchoReply { identifier, sequence: 1 };
        assert_eq!(from(host, reply(7), b""), Some(PingResult::Reply { time, ttl: 64 }));
        assert_eq!(from(host, reply(8), b""), None);
        assert_eq!(from(router, reply(7), b""), None);
        assert_eq!(from(host, request, b""), None);
        let message = icmpv4::Repr::TimeExceeded { code: 0 };
        let quote = ipv4::Repr::new(me, host, ipv4::ICMP).packet(&request.packet(b""));
        assert_eq!(from(router, message, &quote), Some(PingResult::IcmpError { from: router, message }));
        assert_eq!(from(router, message, &quote[..20]), None);
    }

    #[test]
    fn only_echo_replies_are_parsed() {
        let (me, host) = ([10, 0, 1, 1].into(), Ipv4Addr::from([10, 0, 2, 2]));
        let packet = |message: icmpv4::Repr| ipv4::Repr::new(host, me, ipv4::ICMP).packet(&message.packet(b"data"));
        let reply = packet(icmpv4::Repr::EchoReply { identifier: 7, sequence: 9 });
        let expected = Echo { from: host, identifier: 7, sequence: 9, data: b"data".to_vec() };
        assert_eq!(echo(&reply), Some(expected));
        assert_eq!(echo(&packet(icmpv4::Repr::EchoRequest { identifier: 7, sequence: 9 })), None);
        assert_eq!(echo(&reply[..20]), None);
    }
}
