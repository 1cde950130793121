//! Sends echo requests (RFC 792).

use std::any::Any;
use std::net::Ipv4Addr;

use smoltcp::iface::SocketHandle;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::icmp::{Endpoint, PacketBuffer, PacketMetadata, Socket};
use smoltcp::wire::{Icmpv4Packet, Icmpv4Repr, IpAddress};
use switch::Time;

use super::measure::{Measured, Measurement};
use crate::sim::{App, Io};

/// Sends echo requests and measures the time until each reply.
pub struct Ping {
    to: Ipv4Addr,
    ident: u16,
    interval_ns: u64,
    left: u64,
    next: Time,
    socket: Option<SocketHandle>,
    measured: Measured,
}

impl Ping {
    /// Creates a sender of `count` requests to an address, one every `interval_ns` nanoseconds from `start` on. `ident`
    /// distinguishes the pings of one host.
    pub fn new(to: Ipv4Addr, ident: u16, count: u64, interval_ns: u64, start: Time) -> Ping {
        let measured = Measured::default();
        Ping { to, ident, interval_ns, left: count, next: start, socket: None, measured }
    }
}

impl App for Ping {
    fn poll(&mut self, io: &mut Io<'_>) -> Option<Time> {
        let handle = *self.socket.get_or_insert_with(|| {
            let buffer = || PacketBuffer::new(vec![PacketMetadata::EMPTY; 16], vec![0; 1024]);
            let mut socket = Socket::new(buffer(), buffer());
            let bound = socket.bind(Endpoint::Ident(self.ident));
            debug_assert!(bound.is_ok(), "a fresh socket can be bound");
            io.sockets.add(socket)
        });
        let socket = io.sockets.get_mut::<Socket<'_>>(handle);
        let checksums = ChecksumCapabilities::default();
        while let Ok((message, from)) = socket.recv() {
            let Ok(packet) = Icmpv4Packet::new_checked(message) else { continue };
            let Ok(Icmpv4Repr::EchoReply { data, .. }) = Icmpv4Repr::parse(&packet, &checksums) else { continue };
            let Ok(sent) = data.try_into().map(u64::from_be_bytes) else { continue };
            if from == IpAddress::Ipv4(self.to) {
                self.measured.received += 1;
                self.measured.arrived(io.true_now, data.len() as u64);
                self.measured.took(io.true_now.since_ns(Time::from_ns(sent)));
            }
        }
        while self.left > 0 && self.next <= io.now {
            let data = io.true_now.as_ns().to_be_bytes();
            let seq_no = self.measured.sent as u16;
            let request = Icmpv4Repr::EchoRequest { ident: self.ident, seq_no, data: &data };
            if let Ok(buffer) = socket.send(request.buffer_len(), IpAddress::Ipv4(self.to)) {
                request.emit(&mut Icmpv4Packet::new_unchecked(buffer), &checksums);
                self.measured.sent += 1;
            }
            self.left -= 1;
            self.next = self.next.after_ns(self.interval_ns.max(1));
        }
        (self.left > 0).then_some(self.next)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Measurement for Ping {
    fn measured(&self) -> &Measured {
        &self.measured
    }
}
