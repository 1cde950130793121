//! Implements congestion control, loss recovery and ECN, between a host's stack and its link.
//!
//! The stack (smoltcp) opens connections, keeps written bytes until they are acknowledged, respects the receiver's
//! window, and receives. Its sender does not implement SACK or ECN, and its retransmission timer waits a second. So
//! this module holds the segments that the stack sends, and releases them when the congestion window has room, in the
//! order in which a sender with SACK would send them. Lost segments go first (losses are detected as in RFC 6675 and
//! RFC 9002), timeouts follow RFC 6298, and windows follow RFC 5681, RFC 9438, RFC 3168 or RFC 8257. Retransmissions by
//! the stack's own timer are dropped, because the segments are held here.
//!
//! It does not implement everything that Linux does. It leaves out:
//! - the opening of connections: a lost SYN waits for the stack's own timer, and a SYN measures no round trip;
//! - tail loss probes (RFC 8985) and the undoing of spurious timeouts (RFC 5682): a lost last segment waits for the
//!   timer;
//! - pacing and proportional rate reduction (RFC 6937): a reduced window sends nothing until the bytes in flight fit
//!   it, and a window that grows sends at once; also after an idle period (RFC 5681 section 4.1);
//! - the conservative phase of RFC 9406: CUBIC goes from slow start to congestion avoidance when delays grow;
//! - the combined reaction to marks and losses: a loss after a mark in the same round trip reduces the window again;
//! - DCTCP acknowledgements that are not delayed (RFC 8257 section 3.2): an acknowledgement echoes a mark if any
//!   segment since the previous acknowledgement had one, since the stack alone decides when it acknowledges.

mod control;
mod flight;
mod rtt;
mod segment;
mod sender;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use smoltcp::wire::{IpProtocol, Ipv4Packet, UdpPacket};

pub use control::{CongestionControl, Law};
use segment::{Bits, CE, ECT0, Head};
use sender::{Acknowledgement, Sender};

/// Counters of arrived packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// ECN-capable packets, marked or not.
    pub capable: u64,
    /// Packets with the mark Congestion Experienced.
    pub marked: u64,
}

/// Congestion control and ECN of the packets of a service, in both directions.
#[derive(Clone, Copy, Debug, Default)]
struct Service {
    control: CongestionControl,
    /// The reaction to marks, if packets are ECN-capable.
    law: Option<Law>,
    marks: Marks,
}

/// The connections of a host, as they are visible below its stack.
pub struct Transport {
    /// Bytes of a segment.
    segment: u64,
    /// Services by their port.
    services: BTreeMap<u16, Service>,
    connections: BTreeMap<Key, Connection>,
    /// Times at which connections want to be polled.
    timeouts: BTreeSet<(u64, Key)>,
    /// Packets for the link, in their order.
    out: Vec<Vec<u8>>,
}

/// The local port, and the remote address and port.
type Key = (u16, Ipv4Addr, u16);

struct Connection {
    sender: Sender,
    /// The stack's latest acknowledgement, and the window that it offered.
    acknowledged: u32,
    window: u16,
    /// The latest acknowledgement that was sent to the other end.
    acknowledgement_sent: u32,
    /// The reaction to marks, if both ends support ECN.
    law: Option<Law>,
    /// Whether the next acknowledgement echoes a mark.
    echo: bool,
    /// Whether the next segment signals that the window was reduced.
    signal_reduced: bool,
    /// Whether this end has sent its last byte, and whether the other end has.
    closes: bool,
    closed: bool,
    timeout: Option<u64>,
}

/// Returns the 64-bit sequence number near `near` whose low 32 bits are `number`.
fn whole(number: u32, near: u64) -> u64 {
    near.wrapping_add_signed(i64::from(number.wrapping_sub(near as u32) as i32))
}

impl Connection {
    /// Creates a connection whose first byte has this number.
    fn new(first: u32, service: Service, segment: u64) -> Connection {
        Connection {
            // Numbers near the first may be less than it.
            sender: Sender::new(1 << 32 | u64::from(first), service.control, segment),
            acknowledged: 0,
            window: 0,
            acknowledgement_sent: 0,
            law: None,
            echo: false,
            signal_reduced: false,
            closes: false,
            closed: false,
            timeout: None,
        }
    }

    fn hear(&mut self, now: u64, head: &Head) {
        // A mark requests echoes until the sender signals that it reduced its window (RFC 3168 section 6.1.3).
        if self.law == Some(Law::Classic) && head.cwr {
            self.echo = false;
        }
        self.echo |= self.law.is_some() && head.ecn == CE;
        self.closed |= head.fin;
        let Some(number) = head.acknowledged else { return };
        let oldest = self.sender.flight.oldest();
        let ranges = head.ranges.iter().flatten().map(|(from, to)| (whole(*from, oldest), whole(*to, oldest)));
        let ranges: Vec<_> = ranges.collect();
        let said = Acknowledgement { up_to: whole(number, oldest), ranges: &ranges, echo: head.ece };
        self.signal_reduced |= self.sender.acknowledged(now, said, self.law);
    }

    /// Accepts a segment that the stack sends.
    fn hand(&mut self, head: &Head, packet: Vec<u8>, out: &mut Vec<Vec<u8>>) {
        if let Some(acknowledged) = head.acknowledged {
            (self.acknowledged, self.window) = (acknowledged, head.window);
        }
        self.closes |= head.fin;
        let flight = &mut self.sender.flight;
        if head.len == 0 {
            let mut packet = packet;
            // The segments held here have not been sent, so the other end does not know of them.
            segment::renumber(&mut packet, flight.next() as u32);
            out.push(self.stamped(packet, Bits::default()));
            return;
        }
        let from = whole(head.number, flight.end());
        let (known, end) = (flight.end(), from + u64::from(head.len));
        match () {
            () if end <= known => {}
            () if from < known => flight.add(end, segment::cut(&packet, Some((known - from) as u32))),
            // There are no gaps: the stack sends its bytes in their order.
            () => flight.add(end, packet),
        }
    }

    /// Sends the segments that may be sent, with the acknowledgements and signals that are due.
    fn send(&mut self, now: u64, out: &mut Vec<Vec<u8>>) {
        self.sender.poll(now);
        while let Some(due) = self.sender.send(now) {
            let (packet, again) = (due.packet.to_vec(), due.again);
            // Retransmissions are not ECN-capable (RFC 3168 section 6.1.5).
            let ect = self.law.is_some() && !again;
            let cwr = ect && std::mem::take(&mut self.signal_reduced);
            out.push(self.stamped(packet, Bits { cwr, ect, ..Bits::default() }));
        }
    }

    fn stamped(&mut self, mut packet: Vec<u8>, bits: Bits) -> Vec<u8> {
        segment::stamp(&mut packet, self.acknowledged, self.window, Bits { ece: self.echo, ..bits });
        self.acknowledgement_sent = self.acknowledged;
        if self.law == Some(Law::Dctcp) {
            self.echo = false;
        }
        packet
    }

    fn is_over(&self) -> bool {
        self.closes && self.closed && self.sender.flight.oldest() == self.sender.flight.end()
    }
}

impl Transport {
    /// Creates the transport for a link with this MTU, in bytes of an IP packet.
    pub fn new(mtu: u32) -> Transport {
        const HEADERS: u64 = 40;
        Transport {
            segment: u64::from(mtu).saturating_sub(HEADERS).max(1),
            services: BTreeMap::new(),
            connections: BTreeMap::new(),
            timeouts: BTreeSet::new(),
            out: Vec::new(),
        }
    }

    /// Sets the congestion control of connections to and from the service at a port; the default is CUBIC.
    pub fn control(&mut self, port: u16, control: CongestionControl) {
        self.services.entry(port).or_default().control = control;
    }

    /// Makes the packets to and from the service at a port ECN-capable.
    pub fn mark(&mut self, port: u16, law: Law) {
        self.services.entry(port).or_default().law = Some(law);
    }

    /// Returns the counters of the packets that arrived for the service at a port, here or at the other end.
    pub fn marks(&self, port: u16) -> Marks {
        self.services.get(&port).map_or(Marks::default(), |service| service.marks)
    }

    /// Returns the packets for the link, and the time of the next poll.
    pub fn poll(&mut self, now: u64) -> (Vec<Vec<u8>>, Option<u64>) {
        while let Some((at, key)) = self.timeouts.first().copied()
            && at <= now
        {
            self.timeouts.pop_first();
            if let Some(connection) = self.connections.get_mut(&key) {
                connection.timeout = None;
                connection.send(now, &mut self.out);
            }
            self.settle(key);
        }
        (std::mem::take(&mut self.out), self.timeouts.first().map(|(at, _)| *at))
    }

    /// Processes a packet that the stack sends.
    pub fn sent(&mut self, now: u64, mut packet: Vec<u8>) {
        let Some(head) = Head::read(&packet) else {
            if let Some(port) = udp_ports(&packet).and_then(|ports| self.service(ports))
                && self.services[&port].law.is_some()
            {
                let mut ip = Ipv4Packet::new_unchecked(&mut packet[..]);
                ip.set_ecn(ECT0);
                ip.fill_checksum();
            }
            self.out.push(packet);
            return;
        };
        let key = (head.from.1, head.to.0, head.to.1);
        if head.syn {
            let service = self.service([head.to.1, head.from.1]).map(|port| self.services[&port]).unwrap_or_default();
            let capable = match head.acknowledged {
                None => {
                    let connection = Connection::new(head.number.wrapping_add(1), service, self.segment);
                    self.replace(key, connection);
                    service.law.is_some()
                }
                Some(acknowledged) => {
                    let law = self.connections.get(&key).and_then(|connection| connection.law);
                    let mut connection = Connection::new(head.number.wrapping_add(1), service, self.segment);
                    (connection.law, connection.acknowledgement_sent) = (law, acknowledged);
                    self.replace(key, connection);
                    law.is_some()
                }
            };
            if capable {
                let cwr = head.acknowledged.is_none();
                segment::negotiate(&mut packet, Bits { ece: true, cwr, ect: false });
            }
            self.out.push(packet);
            return;
        }
        let Some(connection) = self.connections.get_mut(&key).filter(|_| !head.rst) else {
            self.forget(key);
            self.out.push(packet);
            return;
        };
        let bare = (head.len > 0).then(|| segment::cut(&packet, None));
        connection.hand(&head, packet, &mut self.out);
        connection.send(now, &mut self.out);
        // A segment that has to wait would have carried the acknowledgement.
        if let Some(mut bare) = bare.filter(|_| connection.acknowledgement_sent != connection.acknowledged) {
            segment::renumber(&mut bare, connection.sender.flight.next() as u32);
            let bare = connection.stamped(bare, Bits::default());
            self.out.push(bare);
        }
        self.settle(key);
    }

    /// Inspects an arriving packet before the stack receives it.
    pub fn arrived(&mut self, now: u64, packet: &[u8]) {
        let Some(mut head) = Head::read(packet) else {
            if let Some(port) = udp_ports(packet).and_then(|ports| self.service(ports)) {
                self.count(port, Ipv4Packet::new_unchecked(packet).ecn());
            }
            return;
        };
        let port = self.service([head.to.1, head.from.1]);
        if let Some(port) = port {
            self.count(port, head.ecn);
        }
        let key = (head.to.1, head.from.0, head.from.1);
        if head.syn && head.acknowledged.is_none() {
            // The SYN-ACK replaces the connection by one with its own numbers.
            let service = port.map(|port| self.services[&port]).unwrap_or_default();
            self.connections.entry(key).or_insert_with(|| {
                let mut connection = Connection::new(0, service, self.segment);
                connection.law = service.law.filter(|_| head.ece && head.cwr);
                connection
            });
            return;
        }
        let Some(connection) = self.connections.get_mut(&key) else { return };
        if head.rst {
            self.forget(key);
            return;
        }
        if head.syn {
            let law = port.and_then(|port| self.services[&port].law);
            connection.law = law.filter(|_| head.ece && !head.cwr);
            // In a SYN-ACK, this bit negotiates ECN and echoes no mark.
            head.ece = false;
        }
        connection.hear(now, &head);
        connection.send(now, &mut self.out);
        self.settle(key);
    }

    fn count(&mut self, port: u16, ecn: u8) {
        let marks = &mut self.services.get_mut(&port).expect("the service was found").marks;
        marks.capable += u64::from(ecn != 0);
        marks.marked += u64::from(ecn == CE);
    }

    /// Returns the one of two ports that belongs to a service.
    fn service(&self, ports: [u16; 2]) -> Option<u16> {
        ports.into_iter().find(|port| self.services.contains_key(port))
    }

    fn replace(&mut self, key: Key, connection: Connection) {
        self.forget(key);
        self.connections.insert(key, connection);
    }

    fn forget(&mut self, key: Key) {
        if let Some(Connection { timeout: Some(at), .. }) = self.connections.remove(&key) {
            self.timeouts.remove(&(at, key));
        }
    }

    /// Schedules the next poll of a connection, or forgets the connection if it is over.
    fn settle(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(&key) else { return };
        if connection.is_over() {
            self.forget(key);
            return;
        }
        let timeout = connection.sender.timeout();
        if timeout != connection.timeout {
            let before = std::mem::replace(&mut connection.timeout, timeout);
            before.map(|at| self.timeouts.remove(&(at, key)));
            timeout.map(|at| self.timeouts.insert((at, key)));
        }
    }
}

/// Returns the ports of a datagram, the receiver's first; `None` if the packet is not a datagram.
fn udp_ports(packet: &[u8]) -> Option<[u16; 2]> {
    let ip = Ipv4Packet::new_checked(packet).ok().filter(|ip| ip.next_header() == IpProtocol::Udp)?;
    UdpPacket::new_checked(ip.payload()).ok().map(|udp| [udp.dst_port(), udp.src_port()])
}
