//! Echo requests, sent by a namespace's kernel.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::FromRawFd;
use std::time::{Duration, Instant};

use wire::{icmpv4, ipv4};

use super::{Namespace, NamespaceError};

/// What an echo request brought back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The echo.
    Reply {
        /// How long it took.
        time: Duration,
        /// The reply's time to live: what it was sent with, less the routers on its way.
        ttl: u8,
    },
    /// Somebody on the way says why there will be no echo.
    Complaint {
        /// Who.
        from: Ipv4Addr,
        /// What it says.
        message: icmpv4::Repr,
    },
    /// Nothing came in time.
    Nothing,
}

impl Namespace {
    /// Sends one echo request with this sequence number and 56 bytes of data, and waits for what comes back.
    ///
    /// # Errors
    /// If there is no route, or this process is not the namespace's root.
    pub fn ping(&self, destination: Ipv4Addr, sequence: u16, patience: Duration) -> Result<Answer, NamespaceError> {
        let exchange = || exchange(&socket()?, destination, sequence, patience);
        self.enter(exchange)?.map_err(self.failed(format!("pinging {destination}")))
    }
}

/// Echo requests to anybody from a namespace's kernel, and what is answered: sending and waiting are apart, so that a
/// request needs not wait for the last one's answer. It may be shared by threads.
pub struct Echoes(UdpSocket);

/// The answer to an echo request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Who answers.
    pub from: Ipv4Addr,
    /// The request's identifier.
    pub identifier: u16,
    /// The request's sequence number.
    pub sequence: u16,
    /// What the request carried.
    pub data: Vec<u8>,
}

impl Echoes {
    /// Opens a socket in the namespace. It hears the answers to everybody's requests there: identifiers tell them
    /// apart.
    ///
    /// # Errors
    /// If this process is not the namespace's root.
    pub fn open(namespace: &Namespace) -> Result<Echoes, NamespaceError> {
        let opened = namespace.enter(socket)?.map_err(namespace.failed("opening a raw socket".to_owned()))?;
        Ok(Echoes(opened))
    }

    /// Sends a request.
    ///
    /// # Errors
    /// If there is no route, or no room in the socket's queue.
    pub fn request(&self, to: Ipv4Addr, identifier: u16, sequence: u16, data: &[u8]) -> io::Result<()> {
        let request = icmpv4::Repr::EchoRequest { identifier, sequence };
        self.0.send_to(&request.packet(data), SocketAddr::from((to, 0))).map(drop)
    }

    /// Waits for an answer, at most `patience` (which is not zero). `None` if there was none, or something else came.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn answer(&self, patience: Duration) -> io::Result<Option<Echo>> {
        self.0.set_read_timeout(Some(patience))?;
        let mut buffer = [0; 2048];
        match self.0.recv(&mut buffer) {
            Ok(len) => Ok(echo(&buffer[..len])),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The answer that a packet is, if it is one.
fn echo(bytes: &[u8]) -> Option<Echo> {
    let packet = ipv4::Packet::new_checked(bytes).ok()?;
    let message = icmpv4::Packet::new_checked(packet.payload()).ok()?;
    let icmpv4::Repr::EchoReply { identifier, sequence } = icmpv4::Repr::parse(&message) else { return None };
    Some(Echo { from: packet.source(), identifier, sequence, data: message.payload().to_vec() })
}

/// A raw ICMP socket. It is handled as a UDP socket, whose calls are the same; what it receives begins with the IP
/// header.
fn socket() -> io::Result<UdpSocket> {
    // SAFETY: no pointers are involved.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::IPPROTO_ICMP) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and belongs to nobody else.
    Ok(unsafe { UdpSocket::from_raw_fd(fd) })
}

fn exchange(socket: &UdpSocket, destination: Ipv4Addr, sequence: u16, patience: Duration) -> io::Result<Answer> {
    // The thread's number keeps pings of several threads apart.
    let identifier = (std::process::id() as u16).wrapping_add(thread_number());
    let request = icmpv4::Repr::EchoRequest { identifier, sequence };
    let started = Instant::now();
    socket.send_to(&request.packet(&[0x55; 56]), SocketAddr::from((destination, 0)))?;
    let mut buffer = [0; 2048];
    loop {
        let left = patience.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Ok(Answer::Nothing);
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
    // SAFETY: the call asks for a number and cannot fail.
    unsafe { libc::gettid() as u16 }
}

/// What a received packet says about the request, if it is about it.
fn answer(bytes: &[u8], destination: Ipv4Addr, request: icmpv4::Repr, time: Duration) -> Option<Answer> {
    let packet = ipv4::Packet::new_checked(bytes).ok()?;
    let message = icmpv4::Packet::new_checked(packet.payload()).ok()?;
    let icmpv4::Repr::EchoRequest { identifier, sequence } = request else { return None };
    match icmpv4::Repr::parse(&message) {
        icmpv4::Repr::EchoReply { identifier: id, sequence: seq } => {
            let ours = packet.source() == destination && (id, seq) == (identifier, sequence);
            ours.then_some(Answer::Reply { time, ttl: packet.ttl() })
        }
        complaint @ (icmpv4::Repr::Unreachable { .. } | icmpv4::Repr::TimeExceeded { .. }) => {
            // A complaint quotes the packet it is about: its IP header and at least eight bytes.
            let quoted = ipv4::Packet::new_checked(message.payload()).ok()?;
            let header = icmpv4::Packet::new_checked(quoted.payload()).ok()?;
            let ours = quoted.destination() == destination && icmpv4::Repr::parse(&header) == request;
            ours.then_some(Answer::Complaint { from: packet.source(), message: complaint })
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
        assert_eq!(from(host, reply(7), b""), Some(Answer::Reply { time, ttl: 64 }));
        assert_eq!(from(host, reply(8), b""), None);
        assert_eq!(from(router, reply(7), b""), None);
        assert_eq!(from(host, request, b""), None);
        let message = icmpv4::Repr::TimeExceeded { code: 0 };
        let quote = ipv4::Repr::new(me, host, ipv4::ICMP).packet(&request.packet(b""));
        assert_eq!(from(router, message, &quote), Some(Answer::Complaint { from: router, message }));
        assert_eq!(from(router, message, &quote[..20]), None);
    }

    #[test]
    fn answers_to_anybody_are_told_apart() {
        let (me, host) = ([10, 0, 1, 1].into(), Ipv4Addr::from([10, 0, 2, 2]));
        let packet = |message: icmpv4::Repr| ipv4::Repr::new(host, me, ipv4::ICMP).packet(&message.packet(b"data"));
        let reply = packet(icmpv4::Repr::EchoReply { identifier: 7, sequence: 9 });
        let expected = Echo { from: host, identifier: 7, sequence: 9, data: b"data".to_vec() };
        assert_eq!(echo(&reply), Some(expected));
        assert_eq!(echo(&packet(icmpv4::Repr::EchoRequest { identifier: 7, sequence: 9 })), None);
        assert_eq!(echo(&reply[..20]), None);
    }
}
