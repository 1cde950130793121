//! What the hosts of the live demo do: ping, a TCP transfer, packets to nowhere.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use super::network::H2;

/// The longest wait for anything that should come at once.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long the TCP transfer goes on.
const TRANSFER: Duration = Duration::from_millis(1500);

const ICMP_ECHO: u8 = 8;
const ICMP_ECHO_REPLY: u8 = 0;

/// What came of the pings.
#[derive(Clone, Debug, Default)]
pub struct Pings {
    /// Requests sent.
    pub sent: u32,
    /// Replies received.
    pub received: u32,
    /// Median round trip.
    pub median: Duration,
    /// The replies' time to live.
    pub ttl: u8,
}

/// Pings `to` from the namespace of the calling thread.
pub fn ping(to: Ipv4Addr, count: u16) -> io::Result<Pings> {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    // A raw socket takes and gives datagrams with an address, as a UDP socket does; std has no type of its own for it.
    let socket: UdpSocket = std::os::fd::OwnedFd::from(socket).into();
    let to = SocketAddr::V4(SocketAddrV4::new(to, 0));
    let identifier = std::process::id() as u16;
    let mut pings = Pings::default();
    let mut times = Vec::new();
    for sequence in 1..=count {
        let request = echo_request(identifier, sequence);
        let start = Instant::now();
        socket.send_to(&request, to)?;
        pings.sent += 1;
        if let Some(ttl) = await_reply(&socket, identifier, sequence, start)? {
            pings.received += 1;
            pings.ttl = ttl;
            times.push(start.elapsed());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    times.sort();
    pings.median = times.get(times.len() / 2).copied().unwrap_or_default();
    Ok(pings)
}

fn await_reply(socket: &UdpSocket, identifier: u16, sequence: u16, start: Instant) -> io::Result<Option<u8>> {
    let mut packet = [0; 2048];
    while start.elapsed() < PATIENCE {
        let length = match socket.recv_from(&mut packet) {
            Ok((length, _)) => length,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => break,
            Err(error) => return Err(error),
        };
        let packet = &packet[..length];
        let Some(icmp) = packet.first().and_then(|first| packet.get(usize::from(first & 0xf) * 4..)) else { continue };
        let wanted = [identifier.to_be_bytes(), sequence.to_be_bytes()].concat();
        if icmp.len() >= 8 && icmp[0] == ICMP_ECHO_REPLY && icmp[4..8] == wanted {
            return Ok(Some(packet[8]));
        }
    }
    Ok(None)
}

/// An echo request of 64 bytes with its checksum.
pub fn echo_request(identifier: u16, sequence: u16) -> Vec<u8> {
    let mut packet = vec![0; 64];
    packet[0] = ICMP_ECHO;
    packet[4..6].copy_from_slice(&identifier.to_be_bytes());
    packet[6..8].copy_from_slice(&sequence.to_be_bytes());
    for (at, byte) in packet[8..].iter_mut().enumerate() {
        *byte = at as u8;
    }
    let checksum = wire::checksum::checksum(&packet);
    packet[2..4].copy_from_slice(&checksum.to_be_bytes());
    packet
}

/// What came of the TCP transfer.
#[derive(Clone, Debug, Default)]
pub struct Transfer {
    /// Bytes that arrived.
    pub bytes: u64,
    /// From the first byte to the last.
    pub seconds: f64,
    /// Whether every byte that was sent arrived, in order and unchanged.
    pub intact: bool,
}

/// The stream's content: byte `at` of it.
fn content(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Bytes of the stream that begin at `at`.
fn fill(buffer: &mut [u8], at: u64) {
    for (offset, byte) in buffer.iter_mut().enumerate() {
        *byte = content(at + offset as u64);
    }
}

/// The receiving end: takes one connection and checks what comes.
pub fn receive_stream(listener: &TcpListener) -> io::Result<Transfer> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let start = Instant::now();
    let mut transfer = Transfer { intact: true, ..Transfer::default() };
    let mut buffer = vec![0; 1 << 16];
    let mut expected = buffer.clone();
    loop {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        fill(&mut expected[..length], transfer.bytes);
        transfer.intact &= buffer[..length] == expected[..length];
        transfer.bytes += length as u64;
    }
    transfer.seconds = start.elapsed().as_secs_f64();
    Ok(transfer)
}

/// The sending end; returns how many bytes were sent.
pub fn send_stream(port: u16) -> io::Result<u64> {
    let to = SocketAddr::V4(SocketAddrV4::new(H2, port));
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let start = Instant::now();
    let mut sent = 0;
    let mut buffer = vec![0; 1 << 16];
    while start.elapsed() < TRANSFER {
        fill(&mut buffer, sent);
        stream.write_all(&buffer)?;
        sent += buffer.len() as u64;
    }
    Ok(sent)
}

/// Sends `count` datagrams to an address that no route leads to.
pub fn send_nowhere(to: Ipv4Addr, count: u32) -> io::Result<u32> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    for _ in 0..count {
        socket.send_to(b"is anybody there?", (to, 9))?;
    }
    Ok(count)
}
