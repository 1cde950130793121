//! Collects tiny packet programs, sends them as datagrams, and echoes them.

use std::any::Any;
use std::net::Ipv4Addr;

use smoltcp::iface::SocketHandle;
use smoltcp::socket::udp::{PacketBuffer, PacketMetadata, Socket};
use smoltcp::wire::{IpAddress, IpEndpoint};
use switch::Time;
use tpp::TinyProgram;
use tpp::probe::{Prober, echo};
use tpp::shim::CollectedProgram;
use wire::tpp::UDP_PORT;

use super::measure::{Measured, Measurement};
use super::sketch::{LinkCount, LinkCounter};
use crate::sim::{App, Io};

/// Maximum number of programs that an application keeps; later ones are only counted.
pub(super) const MAX_KEPT: usize = 1_000_000;

/// Maximum length of these programs in all, in bytes: the words of a report take many times as much.
pub(super) const MAX_KEPT_BYTES: usize = 64 << 20;

/// Time after which a datagram without an echo is lost.
const TIMEOUT_NS: u64 = 1_000_000_000;

/// Datagrams and bytes that a socket holds.
const SOCKET_DATAGRAMS: usize = 64;
const SOCKET_BYTES: usize = 64 * 600;

/// A program that came to the end of its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrivedProgram {
    /// Time of its arrival.
    pub at: Time,
    /// Address of the host that sent it.
    pub from: Option<Ipv4Addr>,
    /// Address to which it was sent.
    pub to: Option<Ipv4Addr>,
    /// Header, instructions and memory.
    pub bytes: Vec<u8>,
}

impl ArrivedProgram {
    /// Returns the program with the words that the switches wrote; `None` if the bytes are malformed.
    pub fn program(&self) -> Option<TinyProgram> {
        wire::tpp::Packet::new_checked(&self.bytes[..]).ok().map(|packet| TinyProgram::decode(&packet))
    }
}

/// Programs that arrived.
#[derive(Clone, Debug, Default)]
pub struct ProgramLog {
    /// Number of programs.
    pub count: u64,
    /// The first of them in the order of their arrival: at most a million, and 64 MiB.
    pub kept: Vec<ArrivedProgram>,
    kept_bytes: usize,
}

impl ProgramLog {
    fn push(&mut self, arrived: ArrivedProgram) {
        self.count += 1;
        self.kept_bytes = self.kept_bytes.saturating_add(arrived.bytes.len());
        if self.kept.len() < MAX_KEPT && self.kept_bytes <= MAX_KEPT_BYTES {
            self.kept.push(arrived);
        }
    }
}

/// An application that logs programs.
pub trait ProgramLogger {
    /// Returns the programs that arrived so far.
    fn programs(&self) -> &ProgramLog;
}

/// Collects the programs of packets to a port of its host.
pub struct ProgramCollector {
    port: u16,
    log: ProgramLog,
    /// Counts what passed the links of their paths.
    pub counter: Option<LinkCounter>,
}

impl ProgramCollector {
    /// Creates the collector of a port, which may count what passed the links.
    pub fn new(port: u16, count: Option<LinkCount>) -> ProgramCollector {
        ProgramCollector { port, log: ProgramLog::default(), counter: count.map(LinkCounter::new) }
    }
}

fn v4(address: std::net::IpAddr) -> Option<Ipv4Addr> {
    match address {
        std::net::IpAddr::V4(address) => Some(address),
        std::net::IpAddr::V6(_) => None,
    }
}

impl App for ProgramCollector {
    fn poll(&mut self, io: &mut Io<'_>) -> Option<Time> {
        for collected in io.programs {
            let CollectedProgram { flow, bytes } = collected;
            let Some(flow) = flow.as_ref().filter(|flow| flow.ports.is_some_and(|(_, port)| port == self.port)) else {
                continue;
            };
            self.counter.iter_mut().for_each(|counter| counter.count(io.true_now, flow, collected));
            let (from, to) = (v4(flow.source), v4(flow.destination));
            self.log.push(ArrivedProgram { at: io.true_now, from, to, bytes: bytes.clone() });
        }
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl ProgramLogger for ProgramCollector {
    fn programs(&self) -> &ProgramLog {
        &self.log
    }
}

/// Returns a socket at a port.
fn socket(io: &mut Io<'_>, port: u16) -> SocketHandle {
    let buffer = || PacketBuffer::new(vec![PacketMetadata::EMPTY; SOCKET_DATAGRAMS], vec![0; SOCKET_BYTES]);
    let mut socket = Socket::new(buffer(), buffer());
    let bound = socket.bind(port);
    debug_assert!(bound.is_ok(), "a fresh socket can be bound");
    io.sockets.add(socket)
}

/// Returns the socket of a sender, at a port that no other one has. The first call opens it.
pub(super) fn own_socket(own: &mut Option<SocketHandle>, io: &mut Io<'_>) -> SocketHandle {
    *own.get_or_insert_with(|| {
        let port = io.free_port();
        socket(io, port)
    })
}

/// Sends a program as datagrams, and collects the echoes.
pub struct ProgramSender {
    to: Ipv4Addr,
    program: TinyProgram,
    prober: Option<Prober>,
    interval_ns: u64,
    left: u64,
    next: Time,
    socket: Option<SocketHandle>,
    measured: Measured,
    log: ProgramLog,
}

impl ProgramSender {
    /// Creates a sender of `count` programs to an address, one every `interval_ns` nanoseconds from `start` on.
    pub fn new(to: Ipv4Addr, program: TinyProgram, count: u64, interval_ns: u64, start: Time) -> ProgramSender {
        let (measured, log) = (Measured::default(), ProgramLog::default());
        let interval_ns = interval_ns.max(1);
        ProgramSender { to, program, prober: None, interval_ns, left: count, next: start, socket: None, measured, log }
    }
}

impl App for ProgramSender {
    fn poll(&mut self, io: &mut Io<'_>) -> Option<Time> {
        let handle = own_socket(&mut self.socket, io);
        let now_ns = io.now.as_ns();
        let prober =
            self.prober.get_or_insert_with(|| Prober::new(self.program.clone(), io.random.next_u64(), TIMEOUT_NS));
        let socket = io.sockets.get_mut::<Socket<'_>>(handle);
        while let Ok((datagram, _)) = socket.recv() {
            let Some(echo) = prober.receive(now_ns, datagram) else { continue };
            self.measured.received += 1;
            self.measured.arrived(io.true_now, datagram.len() as u64);
            self.measured.took(echo.rtt_ns);
            let bytes = echo.program.packet(&[]);
            self.log.push(ArrivedProgram { at: io.true_now, from: None, to: Some(self.to), bytes });
        }
        prober.expire(now_ns);
        while self.left > 0 && self.next <= io.now {
            let to = IpEndpoint::new(IpAddress::Ipv4(self.to), UDP_PORT);
            let datagram = prober.send(now_ns);
            if datagram.is_some_and(|datagram| socket.send_slice(&datagram, to).is_ok()) {
                self.measured.sent += 1;
            }
            self.left -= 1;
            self.next = self.next.after_ns(self.interval_ns);
        }
        (self.left > 0).then_some(self.next)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Measurement for ProgramSender {
    fn measured(&self) -> &Measured {
        &self.measured
    }
}

impl ProgramLogger for ProgramSender {
    fn programs(&self) -> &ProgramLog {
        &self.log
    }
}

/// Echoes programs that arrive as datagrams, from [`UDP_PORT`], so that no switch executes them again.
#[derive(Default)]
pub struct ProgramEcho {
    socket: Option<SocketHandle>,
}

impl App for ProgramEcho {
    fn poll(&mut self, io: &mut Io<'_>) -> Option<Time> {
        let handle = match self.socket {
            Some(handle) => handle,
            None => *self.socket.insert(socket(io, UDP_PORT)),
        };
        let socket = io.sockets.get_mut::<Socket<'_>>(handle);
        let mut echoes = Vec::new();
        while let Ok((datagram, metadata)) = socket.recv() {
            let mut datagram = datagram.to_vec();
            if echo(metadata.endpoint.port, &mut datagram) {
                echoes.push((datagram, metadata.endpoint));
            }
        }
        for (datagram, to) in echoes {
            // A full buffer loses the echo; the sender notices.
            let _ = socket.send_slice(&datagram, to);
        }
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
