//! Traffic of the live demo's hosts: pings, a TCP transfer, and packets without a route.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use ports::namespace::{Namespace, NamespaceError, PingResult};

use super::network::H2;

/// Timeout of each ping and socket operation.
const PATIENCE: Duration = Duration::from_secs(2);

/// Duration of the TCP transfer.
const TRANSFER: Duration = Duration::from_millis(1500);

/// The results of the pings.
#[derive(Clone, Debug, Default)]
pub struct Pings {
    /// Requests sent.
    pub sent: u32,
    /// Replies received.
    pub received: u32,
    /// Median round-trip time.
    pub median: Duration,
    /// Time to live of the last reply.
    pub ttl: u8,
}

/// Pings `to` from `host`.
pub fn ping(host: &Namespace, to: Ipv4Addr, count: u16) -> Result<Pings, NamespaceError> {
    let mut pings = Pings::default();
    let mut times = Vec::new();
    for sequence in 1..=count {
        pings.sent += 1;
        if let PingResult::Reply { time, ttl } = host.ping(to, sequence, PATIENCE)? {
            pings.received += 1;
            pings.ttl = ttl;
            times.push(time);
        }
    }
    times.sort();
    pings.median = times.get(times.len() / 2).copied().unwrap_or_default();
    Ok(pings)
}

/// The result of the TCP transfer.
#[derive(Clone, Debug, Default)]
pub struct Transfer {
    /// Number of bytes received.
    pub bytes: u64,
    /// Duration from the accepted connection to its end, in seconds.
    pub seconds: f64,
    /// Whether every byte that was sent arrived, in order and unchanged.
    pub intact: bool,
}

/// Returns the byte of the stream at offset `at`.
fn content(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Fills `buffer` with the bytes of the stream from offset `at`.
fn fill(buffer: &mut [u8], at: u64) {
    for (offset, byte) in buffer.iter_mut().enumerate() {
        *byte = content(at + offset as u64);
    }
}

/// Accepts one connection, and checks the bytes that it receives.
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

/// Sends the stream, and returns the number of bytes sent.
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
