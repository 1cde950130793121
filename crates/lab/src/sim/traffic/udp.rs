//! Sends and receives datagrams.

use std::any::Any;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use smoltcp::iface::SocketHandle;
use smoltcp::socket::udp::{PacketBuffer, PacketMetadata, Socket};
use smoltcp::wire::{IpAddress, IpEndpoint};
use switch::Time;

use super::departures::{Departures, Pattern};
use super::measure::{Measured, Measurement};
use crate::sim::{App, Io};

/// Bytes of the Ethernet, IPv4 and UDP headers in front of a payload.
pub const HEADERS: u64 = 42;

/// Bytes at the beginning of a payload: the flow, the number of the datagram, and its sending time.
pub const STAMP: usize = 20;

/// Bits of the number of a datagram; those above are the flow of a sender with several flows.
const NUMBER_BITS: u32 = 40;

/// Returns the number in the stamp of a datagram: that of a flow of the sender, and that of the datagram in it.
pub fn numbered(flow: usize, datagram: u64) -> u64 {
    (flow as u64) << NUMBER_BITS | datagram
}

/// Maximum number of datagrams that are sent at one moment, however far a clock is set forward.
pub const MAX_AT_ONCE: usize = 4_096;

/// Returns a payload of `len` bytes, [`STAMP`] at least, with the stamp of a datagram.
pub fn stamped(len: usize, flow: u32, number: u64, sent: Time) -> Vec<u8> {
    let mut payload = vec![0; len.max(STAMP)];
    payload[..4].copy_from_slice(&flow.to_be_bytes());
    payload[4..12].copy_from_slice(&number.to_be_bytes());
    payload[12..STAMP].copy_from_slice(&sent.as_ns().to_be_bytes());
    payload
}

/// Opens a socket at a free port, with room for 64 datagrams of this length in each direction.
pub fn open_socket(io: &mut Io<'_>, payload: usize) -> SocketHandle {
    let buffer = || PacketBuffer::new(vec![PacketMetadata::EMPTY; 64], vec![0; 64 * payload.max(64)]);
    let mut socket = Socket::new(buffer(), buffer());
    let bound = socket.bind(io.free_port());
    debug_assert!(bound.is_ok(), "a fresh socket can be bound");
    io.sockets.add(socket)
}

/// Sends datagrams.
pub struct UdpSender {
    flow: u32,
    to: (Ipv4Addr, u16),
    payload: usize,
    departures: Departures,
    stop: Time,
    socket: Option<SocketHandle>,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that were dropped because the socket's buffer was full.
    pub refused: u64,
}

impl UdpSender {
    /// Creates a sender of frames of `frame_bytes` (62 at least) to an address and port, from `start` until `stop`.
    /// `flow` identifies the flow at the sink.
    pub fn new(
        flow: u32,
        to: (Ipv4Addr, u16),
        frame_bytes: u64,
        pattern: Pattern,
        start: Time,
        stop: Time,
    ) -> UdpSender {
        let payload = (frame_bytes.saturating_sub(HEADERS) as usize).max(STAMP);
        UdpSender {
            flow,
            to,
            payload,
            departures: Departures::new(pattern, start),
            stop,
            socket: None,
            sent: 0,
            refused: 0,
        }
    }

    fn socket(&mut self, io: &mut Io<'_>) -> SocketHandle {
        *self.socket.get_or_insert_with(|| open_socket(io, self.payload))
    }
}

impl App for UdpSender {
    fn poll(&mut self, io: &mut Io<'_>) -> Option<Time> {
        let handle = self.socket(io);
        for _ in 0..MAX_AT_ONCE {
            if self.departures.due() > io.now {
                break;
            }
            if self.departures.due() >= self.stop {
                return None;
            }
            let payload = stamped(self.payload, self.flow, self.sent, io.true_now);
            let to = IpEndpoint::new(IpAddress::Ipv4(self.to.0), self.to.1);
            match io.sockets.get_mut::<Socket<'_>>(handle).send_slice(&payload, to) {
                Ok(()) => self.sent += 1,
                Err(_) => self.refused += 1,
            }
            self.departures.advance(io.random);
        }
        Some(self.departures.due()).filter(|next| *next < self.stop)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Receives the datagrams of [`UdpSender`]s.
pub struct UdpSink {
    port: u16,
    socket: Option<SocketHandle>,
    /// Measurements of the arrived datagrams, by flow.
    pub flows: BTreeMap<u32, Measured>,
    /// The latest number of each flow of each sender, and the datagrams that arrived after a later one of their flow.
    latest: BTreeMap<(u32, u64), u64>,
    late: BTreeMap<u32, u64>,
    all: Measured,
}

impl UdpSink {
    /// Creates a sink at a port.
    pub fn new(port: u16) -> UdpSink {
        UdpSink {
            port,
            socket: None,
            flows: BTreeMap::new(),
            latest: BTreeMap::new(),
            late: BTreeMap::new(),
            all: Measured::default(),
        }
    }

    /// Returns the datagrams of a sender that arrived after a later one of their flow.
    pub fn late(&self, sender: u32) -> u64 {
        self.late.get(&sender).copied().unwrap_or(0)
    }
}

impl App for UdpSink {
    fn poll(&mut self, io: &mut Io<'_>) -> Option<Time> {
        let handle = *self.socket.get_or_insert_with(|| {
            let buffer = |bytes| PacketBuffer::new(vec![PacketMetadata::EMPTY; 64], vec![0; bytes]);
            let mut socket = Socket::new(buffer(64 * 9216), buffer(64));
            let bound = socket.bind(self.port);
            debug_assert!(bound.is_ok(), "a fresh socket can be bound");
            io.sockets.add(socket)
        });
        let socket = io.sockets.get_mut::<Socket<'_>>(handle);
        while let Ok((payload, _)) = socket.recv() {
            let Some((stamp, _)) = payload.split_at_checked(STAMP) else { continue };
            let flow = u32::from_be_bytes(stamp[..4].try_into().expect("four bytes"));
            let number = u64::from_be_bytes(stamp[4..12].try_into().expect("eight bytes"));
            let latest = self.latest.entry((flow, number >> NUMBER_BITS)).or_default();
            *self.late.entry(flow).or_default() += u64::from(number < *latest);
            *latest = number.max(*latest);
            let sent = u64::from_be_bytes(stamp[12..].try_into().expect("eight bytes"));
            let latency = io.true_now.since_ns(Time::from_ns(sent));
            for measured in [self.flows.entry(flow).or_default(), &mut self.all] {
                measured.received += 1;
                measured.arrived(io.true_now, payload.len() as u64);
                measured.took(latency);
            }
        }
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Measurement for UdpSink {
    fn measured(&self) -> &Measured {
        &self.all
    }
}
