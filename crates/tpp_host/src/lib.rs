//! Hosts of tiny packet programs: [`ExecutorSockets`] executes programs of any size on the switches of one path or of
//! many, with retries; [`ProbeSocket`] sends a series of probes, and [`EchoSocket`] echoes the programs of others. The
//! rules are in [`tpp::executor`] and [`tpp::probe`]. [`ShimRelay`] puts a shim between a host's stack and its
//! interface. [`ReportSocket`] sends the reports of INT sinks.
//!
//! All but [`ReportSocket`] wait at most 100 ms for a packet before they test the flag that stops them.

#![forbid(unsafe_code)]

mod executor;
mod queue;
mod relay;
mod report;
mod routes_thread;

use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tpp::TinyProgram;
use tpp::probe::{Echo, Prober, RefusedEchoes};
use wire::tpp::UDP_PORT;

pub use executor::{ExecutorSockets, MAX_ADDRESSES};
pub use queue::{ProgramQueue, QueueEnd};
pub use relay::{ProgramReceiver, RelayCounts, ShimRelay};
pub use report::ReportSocket;
pub use routes_thread::RoutesThread;

/// Maximum time of a wait for a datagram.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// The reason why programs cannot be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The name of a host has no address.
    #[error("cannot find the host {0}: {1}")]
    Unknown(String, io::Error),
    /// A socket cannot be opened.
    #[error("cannot open a socket at {0}: {1}")]
    Open(SocketAddr, io::Error),
    /// Programs are for too many addresses.
    #[error("programs can be sent to at most {0} addresses at once")]
    TooMany(usize),
    /// A program cannot be sent.
    #[error("cannot send a program: {0}")]
    Send(io::Error),
    /// A datagram cannot be received.
    #[error("cannot receive a program: {0}")]
    Receive(io::Error),
}

/// The programs that are sent to a host.
#[derive(Clone, Debug)]
pub struct ProbeSeries {
    /// The program.
    pub program: TinyProgram,
    /// Number of times that it is sent.
    pub count: u64,
    /// Time from one to the next.
    pub interval: Duration,
    /// Time after which one without an echo is lost.
    pub timeout: Duration,
}

/// The outcome of a program that was sent.
#[derive(Clone, Debug)]
pub enum ProbeOutcome {
    /// It came back.
    Echoed(Echo),
    /// It is lost. The number is its sequence number.
    Lost(u64),
}

/// A socket that sends a series of programs to one host.
#[derive(Debug)]
pub struct ProbeSocket {
    socket: UdpSocket,
    prober: Prober,
    start: Instant,
    left: u64,
    interval: Duration,
    sent: u64,
    is_refused: bool,
}

impl ProbeSocket {
    /// Opens a socket to a host, by its name or address.
    ///
    /// # Errors
    /// If the host is unknown or cannot be reached.
    pub fn open(host: &str, series: ProbeSeries) -> Result<ProbeSocket, HostError> {
        let address = resolve(host)?;
        let socket = connected(address).map_err(|error| HostError::Open(address, error))?;
        let ProbeSeries { program, count, interval, timeout } = series;
        // The keys of this hash are random.
        let nonce = RandomState::new().hash_one(std::process::id());
        let prober = Prober::new(program, nonce, nanoseconds(timeout));
        Ok(ProbeSocket { socket, prober, start: Instant::now(), left: count, interval, sent: 0, is_refused: false })
    }

    /// Returns the number of programs that were sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns the counts of datagrams that were not taken for echoes.
    pub fn refused(&self) -> RefusedEchoes {
        self.prober.refused()
    }

    /// Whether the host said that nothing receives programs there.
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Sends the programs and passes each outcome to a function, until all have one, `stop` is set, or it breaks.
    ///
    /// # Errors
    /// If a system call fails, and those of the function.
    pub fn run<E: From<HostError>>(
        &mut self,
        stop: &AtomicBool,
        mut on_outcome: impl FnMut(ProbeOutcome) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let (mut send_at, mut buffer) = (Duration::ZERO, [0; 2048]);
        while !stop.load(Ordering::Relaxed) {
            let now = self.start.elapsed();
            if self.left > 0 && now >= send_at {
                self.send(now)?;
                send_at = now + self.interval;
            }
            for lost in self.prober.expire(nanoseconds(self.start.elapsed())) {
                if on_outcome(ProbeOutcome::Lost(lost))?.is_break() {
                    return Ok(());
                }
            }
            let deadline = self.prober.next_deadline().map(Duration::from_nanos);
            let next_send = (self.left > 0).then_some(send_at);
            let Some(next) = deadline.into_iter().chain(next_send).min() else { return Ok(()) };
            let wait = next.saturating_sub(self.start.elapsed()).clamp(Duration::from_millis(1), LONGEST_WAIT);
            let Some(length) = self.receive(wait, &mut buffer)? else { continue };
            let echo = self.prober.receive(nanoseconds(self.start.elapsed()), &buffer[..length]);
            if let Some(echo) = echo
                && on_outcome(ProbeOutcome::Echoed(echo))?.is_break()
            {
                return Ok(());
            }
        }
        Ok(())
    }

    fn send(&mut self, now: Duration) -> Result<(), HostError> {
        let Some(datagram) = self.prober.send(nanoseconds(now)) else { return Ok(()) };
        (self.left, self.sent) = (self.left - 1, self.sent + 1);
        match self.socket.send(&datagram) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                self.is_refused = true;
                Ok(())
            }
            Err(error) => Err(HostError::Send(error)),
        }
    }

    /// Receives a datagram and returns its length; `None` if none arrives within `wait`.
    fn receive(&mut self, wait: Duration, buffer: &mut [u8]) -> Result<Option<usize>, HostError> {
        self.socket.set_read_timeout(Some(wait)).map_err(HostError::Receive)?;
        match self.socket.recv(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if is_nothing(&error) => Ok(None),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                self.is_refused = true;
                Ok(None)
            }
            Err(error) => Err(HostError::Receive(error)),
        }
    }
}

/// Returns the address of a host's receiver of programs.
fn resolve(host: &str) -> Result<SocketAddr, HostError> {
    let unknown = |error| HostError::Unknown(host.to_owned(), error);
    let address = (host, UDP_PORT).to_socket_addrs().map_err(unknown)?.next();
    address.ok_or_else(|| unknown(ErrorKind::NotFound.into()))
}

/// Returns a socket that sends to an address, and receives from it alone.
fn connected(address: SocketAddr) -> io::Result<UdpSocket> {
    let any = match address {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    Ok(socket)
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos() as u64
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// A socket that echoes programs.
#[derive(Debug)]
pub struct EchoSocket {
    socket: UdpSocket,
    address: SocketAddr,
}

/// Counts of an [`EchoSocket`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EchoCounts {
    /// Programs that were sent back.
    pub echoed: u64,
    /// Datagrams that were not.
    pub ignored: u64,
}

impl EchoSocket {
    /// Opens the socket at an address of this host.
    ///
    /// # Errors
    /// If the address is not one of this host, or in use.
    pub fn open(address: IpAddr) -> Result<EchoSocket, HostError> {
        let address = SocketAddr::new(address, UDP_PORT);
        let socket = UdpSocket::bind(address)
            .and_then(|socket| socket.set_read_timeout(Some(LONGEST_WAIT)).map(|()| socket))
            .map_err(|error| HostError::Open(address, error))?;
        Ok(EchoSocket { socket, address })
    }

    /// Returns the address and the port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Echoes programs until the flag is set.
    ///
    /// # Errors
    /// If a system call fails.
    pub fn serve(&self, stop: &AtomicBool) -> Result<EchoCounts, HostError> {
        let (mut buffer, mut counts) = (vec![0; 65_536], EchoCounts::default());
        while !stop.load(Ordering::Relaxed) {
            let (length, source) = match self.socket.recv_from(&mut buffer) {
                Ok(received) => received,
                // An error of an earlier echo, whose receiver is gone, comes here.
                Err(error) if is_nothing(&error) || error.kind() == ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(HostError::Receive(error)),
            };
            let datagram = &mut buffer[..length];
            let is_sent = tpp::probe::echo(source.port(), datagram) && self.socket.send_to(datagram, source).is_ok();
            counts.echoed += u64::from(is_sent);
            counts.ignored += u64::from(!is_sent);
        }
        Ok(counts)
    }
}
