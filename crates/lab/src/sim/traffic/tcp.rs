//! Sends long TCP flows, and flows with random arrivals.

use std::any::Any;
use std::net::Ipv4Addr;

use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::wire::{IpAddress, IpEndpoint};
use switch::Time;

use super::measure::{Measured, Measurement};
use super::sizes::SizeDistribution;
use crate::sim::{App, Io};

/// Bytes of a socket's buffer, and therefore the largest window.
pub const WINDOW: usize = 1 << 18;

/// Bytes of the header of a flow: its length and its start time.
const STAMP: usize = 16;

/// A flow in progress, at its sender.
struct Sending {
    handle: SocketHandle,
    /// Bytes left to write, including the stamp.
    left: u64,
    began: Time,
    written: u64,
    total: u64,
}

impl Sending {
    fn connect(io: &mut Io<'_>, to: (Ipv4Addr, u16), total: u64, window: usize) -> Sending {
        let mut socket = Socket::new(SocketBuffer::new(vec![0; 2048]), SocketBuffer::new(vec![0; window]));
        socket.set_nagle_enabled(false);
        let port = io.free_port();
        let connected = socket.connect(io.context, IpEndpoint::new(IpAddress::Ipv4(to.0), to.1), port);
        debug_assert!(connected.is_ok(), "a fresh socket can connect to an address");
        Sending { handle: io.sockets.add(socket), left: total, began: io.true_now, written: 0, total }
    }

    /// Writes as much as fits. Returns true when the flow has ended, completed or not.
    fn pump(&mut self, io: &mut Io<'_>) -> bool {
        let socket = io.sockets.get_mut::<Socket<'_>>(self.handle);
        while self.left > 0 && socket.can_send() {
            let (left, began, total, written) = (self.left, self.began, self.total, self.written);
            let filled = socket.send(|buffer| {
                let len = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                buffer[..len].fill(0);
                let stamp: Vec<u8> = [total.to_be_bytes(), began.as_ns().to_be_bytes()].concat();
                let rest = stamp.get(written as usize..).unwrap_or_default();
                let stamped = rest.len().min(len);
                buffer[..stamped].copy_from_slice(&rest[..stamped]);
                (len, len)
            });
            let Ok(filled @ 1..) = filled else { break };
            self.left -= filled as u64;
            self.written += filled as u64;
        }
        if self.left == 0 {
            socket.close();
        }
        matches!(socket.state(), State::Closed | State::TimeWait)
    }
}

/// Sends one long flow.
pub struct TcpSender {
    to: (Ipv4Addr, u16),
    bytes: u64,
    window: usize,
    start: Time,
    sending: Option<Sending>,
    done: bool,
}

impl TcpSender {
    /// Creates a sender of one flow of `bytes` bytes (16 at least; `u64::MAX` for one without end) to an address and
    /// port, from `start` on.
    pub fn new(to: (Ipv4Addr, u16), bytes: u64, window: usize, start: Time) -> TcpSender {
        let bytes = bytes.max(STAMP as u64);
        TcpSender { to, bytes, window, start, sending: None, done: false }
    }
}

impl App for TcpSender {
    fn poll(&mut self, io: &mut Io<'_>) -> Option<Time> {
        if io.now < self.start {
            return Some(self.start);
        }
        if self.done {
            return None;
        }
        let (to, bytes, window) = (self.to, self.bytes, self.window);
        let sending = self.sending.get_or_insert_with(|| Sending::connect(io, to, bytes, window));
        self.done = sending.pump(io);
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Sends flows with random start times (a Poisson process) and sizes drawn from a distribution, each to one of several
/// hosts.
pub struct TcpFlows {
    targets: Vec<(Ipv4Addr, u16)>,
    sizes: SizeDistribution,
    mean_ns: f64,
    next: Time,
    stop: Time,
    sending: Vec<Sending>,
    /// Number of flows begun.
    pub begun: u64,
    /// Number of flows that were not begun because too many were in progress.
    pub refused: u64,
}

/// Maximum number of flows of one host in progress at the same time.
const MAX_FLOWS: usize = 256;

/// Maximum number of flows that begin at one moment, however far a clock is set forward.
const MAX_FLOWS_AT_ONCE: usize = 4_096;

impl TcpFlows {
    /// Creates a sender of flows to `targets`, one every `mean_ns` on average, from `start` until `stop`.
    pub fn new(
        targets: Vec<(Ipv4Addr, u16)>,
        sizes: SizeDistribution,
        mean_ns: f64,
        start: Time,
        stop: Time,
    ) -> TcpFlows {
        TcpFlows { targets, sizes, mean_ns, next: start, stop, sending: Vec::new(), begun: 0, refused: 0 }
    }
}

impl App for TcpFlows {
    fn poll(&mut self, io: &mut Io<'_>) -> Option<Time> {
        for _ in 0..MAX_FLOWS_AT_ONCE {
            if self.next > io.now || self.next >= self.stop || self.targets.is_empty() {
                break;
            }
            let to = self.targets[io.random.below(self.targets.len() as u64) as usize];
            let bytes = self.sizes.draw(io.random).max(STAMP as u64);
            if self.sending.len() < MAX_FLOWS {
                self.sending.push(Sending::connect(io, to, bytes, WINDOW / 4));
                self.begun += 1;
            } else {
                self.refused += 1;
            }
            self.next = self.next.after_ns(io.random.exponential_ns(self.mean_ns).max(1));
        }
        self.sending.retain_mut(|sending| {
            let over = sending.pump(io);
            if over {
                io.sockets.remove(sending.handle);
            }
            !over
        });
        Some(self.next).filter(|next| *next < self.stop && !self.targets.is_empty())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Receives the flows of [`TcpSender`]s and [`TcpFlows`].
pub struct TcpSink {
    port: u16,
    window: usize,
    receiving: Vec<Receiving>,
    measured: Measured,
}

struct Receiving {
    handle: SocketHandle,
    stamp: Vec<u8>,
    bytes: u64,
    complete: bool,
}

/// Number of sockets that listen for connections at the same time.
const LISTENING: usize = 8;

impl TcpSink {
    /// Creates a sink at a port, with `window` bytes of buffer per flow.
    pub fn new(port: u16, window: usize) -> TcpSink {
        TcpSink { port, window, receiving: Vec::new(), measured: Measured::default() }
    }

    fn listen(&mut self, io: &mut Io<'_>) {
        let listening = |one: &Receiving| io.sockets.get::<Socket<'_>>(one.handle).is_listening();
        let missing = LISTENING - self.receiving.iter().filter(|one| listening(one)).count().min(LISTENING);
        for _ in 0..missing {
            let mut socket = Socket::new(SocketBuffer::new(vec![0; self.window]), SocketBuffer::new(vec![0; 2048]));
            let listening = socket.listen(self.port);
            debug_assert!(listening.is_ok(), "a fresh socket can listen");
            let handle = io.sockets.add(socket);
            self.receiving.push(Receiving { handle, stamp: Vec::new(), bytes: 0, complete: false });
        }
    }
}

impl App for TcpSink {
    fn poll(&mut self, io: &mut Io<'_>) -> Option<Time> {
        let measured = &mut self.measured;
        self.receiving.retain_mut(|flow| {
            let socket = io.sockets.get_mut::<Socket<'_>>(flow.handle);
            while socket.can_recv() {
                let stamp = &mut flow.stamp;
                let taken = socket.recv(|buffer| {
                    let missing = STAMP.saturating_sub(stamp.len()).min(buffer.len());
                    stamp.extend_from_slice(&buffer[..missing]);
                    (buffer.len(), buffer.len())
                });
                let Ok(taken @ 1..) = taken else { break };
                flow.bytes += taken as u64;
                measured.arrived(io.true_now, taken as u64);
            }
            if let Ok(stamp) = <[u8; STAMP]>::try_from(&flow.stamp[..])
                && !flow.complete
            {
                let total = u64::from_be_bytes(stamp[..8].try_into().expect("eight bytes"));
                let began = u64::from_be_bytes(stamp[8..].try_into().expect("eight bytes"));
                if flow.bytes >= total {
                    flow.complete = true;
                    measured.received += 1;
                    measured.took(io.true_now.since_ns(Time::from_ns(began)));
                }
            }
            if socket.state() == State::CloseWait {
                socket.close();
            }
            let over = matches!(socket.state(), State::Closed | State::TimeWait);
            if over {
                io.sockets.remove(flow.handle);
            }
            !over
        });
        self.listen(io);
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Measurement for TcpSink {
    fn measured(&self) -> &Measured {
        &self.measured
    }
}
