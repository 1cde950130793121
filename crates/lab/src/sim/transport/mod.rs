//! What stands between a host's stack and its link: congestion control, the recovery of losses, ECN.
//!
//! The stack (smoltcp) opens connections, keeps what was written until it is acknowledged, respects the receiver's window,
//! and receives. As a sender it knows nothing of SACK, waits a second before it sends anything again on a timer, and
//! knows nothing of ECN. So the segments that it sends are held here and go out when the congestion window has room, in
//! the order in which a sender with SACK would send them: what was lost first (as RFC 6675 and RFC 9002 find losses),
//! timeouts by RFC 6298, windows by RFC 5681, RFC 9438, RFC 3168 or RFC 8257. What the stack's own timer would send
//! again is dropped: it is here.
//!
//! It is not all that Linux does. It leaves out:
//! - how connections open: a SYN that is lost waits for the stack's own timer, and measures no round trip;
//! - probes of a tail (RFC 8985) and timeouts that are undone (RFC 5682): a last segment that is lost waits for the timer;
//! - pacing, and proportional rate reduction (RFC 6937): a window that was made smaller sends nothing until what is on the
//!   way fits it, and a window that grows sends at once; also after a pause (RFC 5681 section 4.1);
//! - the careful half of RFC 9406: CUBIC goes from slow start to congestion avoidance when delays grow;
//! - reactions to marks and losses together: a loss behind a mark in the same round trip makes the window smaller again;
//! - acknowledgements of DCTCP that are not delayed (RFC 8257 section 3.2): one echoes a mark if any segment since the one
//!   before it had one, since the stack decides alone when it acknowledges.

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

/// Packets that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// That were capable of ECN, marked or not.
    pub capable: u64,
    /// That were marked: congestion experienced.
    pub marked: u64,
}

/// How packets of a service are sent, in both directions.
#[derive(Clone, Copy, Debug, Default)]
struct Service {
    control: CongestionControl,
    /// Packets are capable of ECN, and this is what marks do.
    law: Option<Law>,
    marks: Marks,
}

/// The connections of a host, as they look from below its stack.
pub struct Transport {
    /// Bytes of a segment.
    segment: u64,
    /// By the port of the service.
    services: BTreeMap<u16, Service>,
    connections: BTreeMap<Key, Connection>,
    /// When connections want to be asked again.
    timeouts: BTreeSet<(u64, Key)>,
    /// Packets for the link, in their order.
    out: Vec<Vec<u8>>,
}

/// The local port, and the other end.
type Key = (u16, Ipv4Addr, u16);

struct Connection {
    sender: Sender,
    /// What the stack acknowledged last, and the window that it offered.
    acknowledged: u32,
    window: u16,
    /// What the other end was told of that.
    told: u32,
    /// What marks do, if both ends speak ECN.
    law: Option<Law>,
    /// Whether the next acknowledgement echoes a mark.
    echo: bool,
    /// Whether the next segment says that the window was reduced.
    tell_reduced: bool,
    /// Whether this end, and the other, sent its last byte.
    closes: bool,
    closed: bool,
    timeout: Option<u64>,
}

/// The whole of a number of which the last 32 bits are known, near another.
fn whole(number: u32, near: u64) -> u64 {
    near.wrapping_add_signed(i64::from(number.wrapping_sub(near as u32) as i32))
}

impl Connection {
    /// A connection whose first byte has a number.
    fn new(first: u32, service: Service, segment: u64) -> Connection {
        Connection {
            // Numbers near the first may be less than it.
            sender: Sender::new(1 << 32 | u64::from(first), service.control, segment),
            acknowledged: 0,
            window: 0,
            told: 0,
            law: None,
            echo: false,
            tell_reduced: false,
            closes: false,
            closed: false,
            timeout: None,
        }
    }

    fn hear(&mut self, now: u64, head: &Head) {
        // A mark asks for an echo until the sender says that it reduced its window (RFC 3168 section 6.1.3).
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
        self.tell_reduced |= self.sender.acknowledged(now, said, self.law);
    }

    /// Takes a segment that the stack sends.
    fn hand(&mut self, head: &Head, packet: Vec<u8>, out: &mut Vec<Vec<u8>>) {
        if let Some(acknowledged) = head.acknowledged {
            (self.acknowledged, self.window) = (acknowledged, head.window);
        }
        self.closes |= head.fin;
        let flight = &mut self.sender.flight;
        if head.len == 0 {
            let mut packet = packet;
            // What is held here has not been sent, and the other end knows nothing of it.
            segment::renumber(&mut packet, flight.next() as u32);
            out.push(self.stamped(packet, Bits::default()));
            return;
        }
        let from = whole(head.number, flight.end());
        let (known, end) = (flight.end(), from + u64::from(head.len));
        match () {
            () if end <= known => {}
            () if from < known => flight.add(end, segment::cut(&packet, Some((known - from) as u32))),
            // Nothing is left out: the stack sends its bytes in their order.
            () => flight.add(end, packet),
        }
    }

    /// Sends what may be sent, and what has to be told.
    fn send(&mut self, now: u64, out: &mut Vec<Vec<u8>>) {
        self.sender.poll(now);
        while let Some(due) = self.sender.send(now) {
            let (packet, again) = (due.packet.to_vec(), due.again);
            // What is sent again is not capable of ECN (RFC 3168 section 6.1.5).
            let ect = self.law.is_some() && !again;
            let cwr = ect && std::mem::take(&mut self.tell_reduced);
            out.push(self.stamped(packet, Bits { cwr, ect, ..Bits::default() }));
        }
    }

    fn stamped(&mut self, mut packet: Vec<u8>, bits: Bits) -> Vec<u8> {
        segment::stamp(&mut packet, self.acknowledged, self.window, Bits { ece: self.echo, ..bits });
        self.told = self.acknowledged;
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
    /// For a link with this MTU, in bytes of an IP packet.
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

    /// Says how connections to and from the service at a port avoid congestion; CUBIC, if nobody says.
    pub fn control(&mut self, port: u16, control: CongestionControl) {
        self.services.entry(port).or_default().control = control;
    }

    /// Makes what is sent to and from the service at a port capable of ECN.
    pub fn mark(&mut self, port: u16, law: Law) {
        self.services.entry(port).or_default().law = Some(law);
    }

    /// What arrived by the port of a service, here or at the other end.
    pub fn marks(&self, port: u16) -> Marks {
        self.services.get(&port).map_or(Marks::default(), |service| service.marks)
    }

    /// The packets for the link, and when this wants to be polled again.
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

    /// Takes a packet that the stack sends.
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
                    (connection.law, connection.told) = (law, acknowledged);
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
        // A segment that has to wait would have told what arrived.
        if let Some(mut bare) = bare.filter(|_| connection.told != connection.acknowledged) {
            segment::renumber(&mut bare, connection.sender.flight.next() as u32);
            let bare = connection.stamped(bare, Bits::default());
            self.out.push(bare);
        }
        self.settle(key);
    }

    /// Looks at a packet that arrives, before the stack does.
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
            // The answer makes it anew, with its numbers.
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
            // That was an answer, and no echo of a mark.
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

    /// Which of two ports is a service's.
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

    /// Notes when a connection wants to be asked again, or forgets it if it is over.
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

/// The ports of a datagram, the receiver's first; `None` for packets that are none.
fn udp_ports(packet: &[u8]) -> Option<[u16; 2]> {
    let ip = Ipv4Packet::new_checked(packet).ok().filter(|ip| ip.next_header() == IpProtocol::Udp)?;
    UdpPacket::new_checked(ip.payload()).ok().map(|udp| [udp.dst_port(), udp.src_port()])
}
