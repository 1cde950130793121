//! ECN at the edge of a host's stack: RFC 3168, and DCTCP (RFC 8257).
//!
//! The stack knows nothing of ECN. What it sends passes through here on its way out and is given its bits; what arrives
//! passes through on its way in. The window that marks ask for reaches the sender as the window that its receiver
//! seems to offer, the way AC/DC TCP does it (He et al., SIGCOMM 2016). Losses stay the stack's own business.
//!
//! Two simplifications: retransmissions are capable of ECN like everything else, and an acknowledgement of DCTCP
//! echoes a mark if any segment since the one before it had one, since the stack decides alone when it acknowledges.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use smoltcp::wire::{IpAddress, IpProtocol, Ipv4Packet, TcpOption, TcpPacket, UdpPacket};

/// How a sender takes marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Half the window for a round trip with marks (RFC 3168).
    Classic,
    /// As much less as there were marks (RFC 8257).
    Dctcp,
}

/// Packets that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// That were capable of ECN, marked or not.
    pub capable: u64,
    /// That were marked: congestion experienced.
    pub marked: u64,
}

/// What a host does about ECN.
#[derive(Default)]
pub struct Ecn {
    /// The ports of services whose packets are capable of ECN.
    services: BTreeMap<u16, Law>,
    marks: BTreeMap<u16, Marks>,
    connections: BTreeMap<Key, Connection>,
}

/// The local port, and the other end.
type Key = (u16, Ipv4Addr, u16);

/// The codepoints of the ECN field (RFC 3168 section 5).
const ECT0: u8 = 0b10;
const CE: u8 = 0b11;

/// The weight of the newest window in DCTCP's estimate (RFC 8257 section 4.2).
const GAIN: f64 = 1.0 / 16.0;

/// Segments of the first window (RFC 6928).
const FIRST_WINDOW: f64 = 10.0;

/// Segments of the smallest window.
const LEAST_WINDOW: f64 = 2.0;

/// What is known of a connection, as a sender and as a receiver.
#[derive(Debug)]
struct Connection {
    law: Law,
    /// Both ends speak ECN.
    on: bool,
    /// By how many bits the other end's windows are shifted (RFC 7323).
    shift: u8,
    /// Whether the next acknowledgement echoes a mark.
    echo: bool,
    /// Whether the next segment says that the window was reduced.
    tell_reduced: bool,
    /// Bytes of the largest segment sent.
    segment: f64,
    /// Bytes that marks allow to be on the way.
    window: f64,
    slow_start: bool,
    alpha: f64,
    /// The next byte to send, and the oldest that is not acknowledged.
    next: u32,
    oldest: u32,
    /// Where the round trip ends that is being counted, and whether the window was reduced in it.
    round_ends: u32,
    reduced: bool,
    acknowledged: f64,
    acknowledged_marked: f64,
}

/// Whether a sequence number is at or behind another.
fn reached(number: u32, other: u32) -> bool {
    number.wrapping_sub(other) as i32 >= 0
}

impl Connection {
    fn new(law: Law) -> Connection {
        Connection {
            law,
            on: false,
            shift: 0,
            echo: false,
            tell_reduced: false,
            segment: 536.0,
            window: f64::INFINITY,
            slow_start: true,
            alpha: 1.0,
            next: 0,
            oldest: 0,
            round_ends: 0,
            reduced: false,
            acknowledged: 0.0,
            acknowledged_marked: 0.0,
        }
    }

    /// The stack sends these bytes.
    fn sends(&mut self, number: u32, len: u32) {
        if self.window.is_infinite() {
            (self.next, self.oldest, self.round_ends) = (number, number, number);
            self.window = 0.0;
        }
        self.segment = self.segment.max(f64::from(len));
        if self.window == 0.0 {
            self.window = FIRST_WINDOW * self.segment;
        }
        let end = number.wrapping_add(len);
        if reached(end, self.next) {
            self.next = end;
        }
    }

    /// An acknowledgement up to `number` arrived, with or without the echo of a mark.
    fn acknowledged(&mut self, number: u32, echo: bool) {
        if self.window.is_infinite() || !reached(number, self.oldest) || !reached(self.next, number) {
            return;
        }
        let bytes = f64::from(number.wrapping_sub(self.oldest));
        let limited = f64::from(self.next.wrapping_sub(self.oldest)) + self.segment >= self.window;
        self.oldest = number;
        self.acknowledged += bytes;
        if echo {
            self.acknowledged_marked += bytes;
            self.slow_start = false;
            if !self.reduced {
                self.reduced = true;
                self.tell_reduced = true;
                let share = if self.law == Law::Dctcp { self.alpha } else { 1.0 };
                self.window = (self.window * (1.0 - share / 2.0)).max(LEAST_WINDOW * self.segment);
            }
        } else if limited && !self.reduced {
            self.window += if self.slow_start { bytes } else { self.segment * bytes / self.window };
        }
        if reached(number, self.round_ends) {
            if self.acknowledged > 0.0 {
                let marked = self.acknowledged_marked / self.acknowledged;
                self.alpha = (1.0 - GAIN) * self.alpha + GAIN * marked;
            }
            (self.acknowledged, self.acknowledged_marked) = (0.0, 0.0);
            self.reduced = false;
            self.round_ends = self.next;
        }
    }

    /// A window as the other end offers it, or the one that marks allow if that is smaller.
    fn offered(&self, field: u16) -> u16 {
        let allowed = (self.window / f64::from(1_u32 << self.shift)).ceil();
        if allowed < f64::from(field) { allowed as u16 } else { field }
    }
}

impl Ecn {
    /// Makes what is sent to and from a port capable of ECN.
    pub fn serve(&mut self, port: u16, law: Law) {
        self.services.insert(port, law);
    }

    /// What arrived by a port of a service, here or at the other end.
    pub fn marks(&self, port: u16) -> Marks {
        self.marks.get(&port).copied().unwrap_or_default()
    }

    /// The law of a service at one of two ports, and which of them it is.
    fn service(&self, ports: [u16; 2]) -> Option<(Law, u16)> {
        ports.into_iter().find_map(|port| self.services.get(&port).map(|law| (*law, port)))
    }

    /// Gives a packet that the stack sends its bits.
    pub fn sent(&mut self, packet: &mut [u8]) {
        if self.services.is_empty() {
            return;
        }
        let Ok(mut ip) = Ipv4Packet::new_checked(packet) else { return };
        let (from, to) = (ip.src_addr(), ip.dst_addr());
        let capable = match ip.next_header() {
            IpProtocol::Udp => {
                let ports = UdpPacket::new_checked(ip.payload_mut()).map(|udp| [udp.dst_port(), udp.src_port()]);
                ports.is_ok_and(|ports| self.service(ports).is_some())
            }
            IpProtocol::Tcp => {
                let Ok(mut tcp) = TcpPacket::new_checked(ip.payload_mut()) else { return };
                let capable = self.segment_sent(&mut tcp, to);
                tcp.fill_checksum(&IpAddress::Ipv4(from), &IpAddress::Ipv4(to));
                capable
            }
            _ => false,
        };
        if capable {
            ip.set_ecn(ECT0);
            ip.fill_checksum();
        }
    }

    fn segment_sent(&mut self, tcp: &mut TcpPacket<&mut [u8]>, to: Ipv4Addr) -> bool {
        let Some((law, _)) = self.service([tcp.dst_port(), tcp.src_port()]) else { return false };
        let key = (tcp.src_port(), to, tcp.dst_port());
        if tcp.syn() && !tcp.ack() {
            self.connections.insert(key, Connection::new(law));
            tcp.set_ece(true);
            tcp.set_cwr(true);
            return false;
        }
        let Some(connection) = self.connections.get_mut(&key).filter(|connection| connection.on) else { return false };
        if tcp.syn() || connection.echo {
            tcp.set_ece(true);
        }
        if connection.law == Law::Dctcp {
            connection.echo = false;
        }
        let len = tcp.segment_len() as u32;
        if tcp.rst() {
            self.connections.remove(&key);
        } else if len > 0 && !tcp.syn() {
            connection.sends(tcp.seq_number().0 as u32, len);
            tcp.set_cwr(std::mem::take(&mut connection.tell_reduced));
            return true;
        }
        false
    }

    /// Counts the marks of a packet that arrives, and says in it what the stack may send.
    pub fn arrived(&mut self, packet: &mut [u8]) {
        if self.services.is_empty() {
            return;
        }
        let Ok(mut ip) = Ipv4Packet::new_checked(packet) else { return };
        let (from, to, ecn) = (ip.src_addr(), ip.dst_addr(), ip.ecn());
        let ports = match ip.next_header() {
            IpProtocol::Udp => {
                let udp = UdpPacket::new_checked(ip.payload_mut());
                udp.map(|udp| [udp.dst_port(), udp.src_port()])
            }
            IpProtocol::Tcp => {
                let Ok(mut tcp) = TcpPacket::new_checked(ip.payload_mut()) else { return };
                // What is broken is for the stack to drop.
                if !tcp.verify_checksum(&IpAddress::Ipv4(from), &IpAddress::Ipv4(to)) {
                    return;
                }
                self.segment_arrived(&mut tcp, from, ecn);
                tcp.fill_checksum(&IpAddress::Ipv4(from), &IpAddress::Ipv4(to));
                Ok([tcp.dst_port(), tcp.src_port()])
            }
            _ => return,
        };
        let Some((_, port)) = ports.ok().and_then(|ports| self.service(ports)) else { return };
        let marks = self.marks.entry(port).or_default();
        marks.capable += u64::from(ecn != 0);
        marks.marked += u64::from(ecn == CE);
    }

    fn segment_arrived(&mut self, tcp: &mut TcpPacket<&mut [u8]>, from: Ipv4Addr, ecn: u8) {
        let Some((law, _)) = self.service([tcp.dst_port(), tcp.src_port()]) else { return };
        let key = (tcp.dst_port(), from, tcp.src_port());
        if tcp.syn() {
            let shift = shift(tcp.options_mut());
            if !tcp.ack() {
                self.connections.insert(key, Connection::new(law));
            }
            let Some(connection) = self.connections.get_mut(&key) else { return };
            connection.on = tcp.ece() && tcp.cwr() != tcp.ack();
            connection.shift = shift;
            return;
        }
        let Some(connection) = self.connections.get_mut(&key).filter(|connection| connection.on) else { return };
        if connection.law == Law::Classic && tcp.cwr() {
            connection.echo = false;
        }
        connection.echo |= ecn == CE;
        if tcp.ack() {
            connection.acknowledged(tcp.ack_number().0 as u32, tcp.ece());
            tcp.set_window_len(connection.offered(tcp.window_len()));
        }
        if tcp.rst() {
            self.connections.remove(&key);
        }
    }
}

/// The shift that the options of a SYN ask for.
fn shift(mut options: &[u8]) -> u8 {
    while !options.is_empty() {
        match TcpOption::parse(options) {
            Ok((_, TcpOption::WindowScale(shift))) => return shift.min(14),
            Ok((_, TcpOption::EndOfList)) | Err(_) => return 0,
            Ok((rest, _)) => options = rest,
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection with a window of ten segments on the way.
    fn open(law: Law) -> Connection {
        let mut connection = Connection::new(law);
        (0..10).for_each(|segment| connection.sends(1_000 * segment, 1_000));
        connection
    }

    #[test]
    fn a_window_opens_without_marks_and_is_halved_once_a_round_trip() {
        let mut connection = open(Law::Classic);
        assert_eq!(connection.window, 10_000.0);
        connection.acknowledged(1_000, false);
        assert_eq!(connection.window, 11_000.0);
        connection.acknowledged(2_000, true);
        connection.acknowledged(3_000, true);
        assert_eq!((connection.window, connection.tell_reduced), (5_500.0, true));
    }

    #[test]
    fn dctcp_gives_way_by_the_share_of_marks() {
        let mut connection = open(Law::Dctcp);
        // Fifty round trips of a full window each, of which one segment in ten is marked.
        let mut next = 10_000;
        for round in 0..500_u32 {
            connection.acknowledged((round + 1) * 1_000, round % 10 == 9);
            connection.sends(next, 1_000);
            next += 1_000;
        }
        assert!((0.05..0.25).contains(&connection.alpha), "{}", connection.alpha);
        let before = connection.window;
        connection.reduced = false;
        connection.acknowledged(501_000, true);
        let kept = connection.window / before;
        assert!((0.85..0.98).contains(&kept), "{kept}");
    }

    #[test]
    fn windows_are_shifted_as_the_other_end_said() {
        let mut connection = open(Law::Classic);
        connection.shift = 3;
        assert_eq!(connection.offered(u16::MAX), 1_250);
        assert_eq!(connection.offered(100), 100);
        assert_eq!(shift(&[2, 4, 5, 180, 1, 3, 3, 7]), 7);
        assert_eq!(shift(&[2]), 0);
    }
}
