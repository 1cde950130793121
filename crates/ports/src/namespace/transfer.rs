//! Sends traffic of the kernel's own stacks between two namespaces: a TCP stream whose bytes are checked, and UDP
//! datagrams.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use super::{Namespace, NamespaceError};

/// Bytes written or read at once.
const CHUNK: usize = 1 << 16;

/// The result of a TCP transfer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamTransfer {
    /// Number of bytes received.
    pub bytes: u64,
    /// Duration from the accepted connection to its end, in seconds.
    pub seconds: f64,
    /// Whether every byte that was sent arrived, in order and unchanged.
    pub is_intact: bool,
}

/// A TCP transfer that failed.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// A namespace cannot be entered.
    #[error("entering {host}")]
    Enter {
        /// The namespace.
        host: String,
        /// The reason.
        source: NamespaceError,
    },
    /// The receiver cannot listen at its address.
    #[error("listening in {host}")]
    Listen {
        /// The namespace.
        host: String,
        /// Error returned by the kernel.
        source: io::Error,
    },
    /// The sender cannot connect, or the receiver accepts nothing in time.
    #[error("sending a TCP stream from {host}")]
    Send {
        /// The namespace.
        host: String,
        /// Error returned by the kernel.
        source: io::Error,
    },
    /// The receiver gets no connection, or nothing from it in time.
    #[error("receiving a TCP stream in {host}")]
    Receive {
        /// The namespace.
        host: String,
        /// Error returned by the kernel.
        source: io::Error,
    },
}

impl Namespace {
    /// Sends a TCP stream for a time to `receiver`, which listens at `address` meanwhile, and compares each byte that
    /// arrives with the byte that was sent.
    ///
    /// # Errors
    /// Returns an error if a namespace cannot be entered, or if a socket operation fails or takes `timeout`.
    pub fn transfer_stream(
        &self,
        receiver: &Namespace,
        address: SocketAddrV4,
        time: Duration,
        timeout: Duration,
    ) -> Result<StreamTransfer, TransferError> {
        let enter = |host: &Namespace| {
            let host = host.name.clone();
            |source| TransferError::Enter { host, source }
        };
        let listen = |source| TransferError::Listen { host: receiver.name.clone(), source };
        let listener = receiver.enter(|| TcpListener::bind(address)).map_err(enter(receiver))?.map_err(listen)?;
        std::thread::scope(|scope| {
            // A socket belongs to the namespace in which it was opened: only the connecting one has to be opened here.
            let sender = scope.spawn(|| self.enter(|| send_stream(address, time, timeout)));
            let received = receive_stream(&listener, timeout);
            let sent = sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let sent = sent.map_err(enter(self))?;
            let sent = sent.map_err(|source| TransferError::Send { host: self.name.clone(), source })?;
            let mut transfer =
                received.map_err(|source| TransferError::Receive { host: receiver.name.clone(), source })?;
            transfer.is_intact &= transfer.bytes == sent;
            Ok(transfer)
        })
    }

    /// Sends a number of UDP datagrams with this payload. Nobody needs to listen at the address.
    ///
    /// # Errors
    /// Returns an error if the namespace cannot be entered, or has no route to the address.
    pub fn send_datagrams(&self, to: SocketAddrV4, payload: &[u8], count: u32) -> Result<(), NamespaceError> {
        let send = || -> io::Result<()> {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            (0..count).try_for_each(|_| socket.send_to(payload, to).map(drop))
        };
        self.enter(send)?.map_err(self.failed(format!("sending to {to}")))
    }
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
fn receive_stream(listener: &TcpListener, timeout: Duration) -> io::Result<StreamTransfer> {
    let deadline = Instant::now() + timeout;
    // A signal ends a wait early.
    while !crate::wait(&[listener.as_raw_fd()], deadline.saturating_duration_since(Instant::now()))? {
        if Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(timeout))?;
    let start = Instant::now();
    let mut transfer = StreamTransfer { is_intact: true, ..StreamTransfer::default() };
    let mut buffer = vec![0; CHUNK];
    let mut expected = buffer.clone();
    loop {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        fill(&mut expected[..length], transfer.bytes);
        transfer.is_intact &= buffer[..length] == expected[..length];
        transfer.bytes += length as u64;
    }
    transfer.seconds = start.elapsed().as_secs_f64();
    Ok(transfer)
}

/// Sends the stream for a time, and returns the number of bytes sent.
fn send_stream(to: SocketAddrV4, time: Duration, timeout: Duration) -> io::Result<u64> {
    let mut stream = TcpStream::connect_timeout(&SocketAddr::V4(to), timeout)?;
    stream.set_write_timeout(Some(timeout))?;
    let start = Instant::now();
    let mut sent = 0;
    let mut buffer = vec![0; CHUNK];
    while start.elapsed() < time {
        fill(&mut buffer, sent);
        stream.write_all(&buffer)?;
        sent += buffer.len() as u64;
    }
    Ok(sent)
}
