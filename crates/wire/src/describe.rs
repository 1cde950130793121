//! Renders human-readable summaries of frames.

use std::fmt::Write;
use std::net::IpAddr;

use crate::checksum::Addresses;
use crate::{Malformed, arp, ethernet, icmpv4, ipv4, ipv6, roce, tcp, tpp, udp, vlan};

mod rdma;

/// Maximum number of tags that are named.
const MAX_TAGS: usize = 4;

/// Maximum number of nested tiny packet programs that are named.
const MAX_PROGRAMS: usize = 4;

/// Summarises a frame in one line, from the outside in: tags, addresses, protocol, errors.
///
/// ```text
/// 10.0.1.1 > 10.0.2.2 ICMP echo request id 7 seq 1, ttl 64
/// vlan 5: 10.0.1.1:4000 > 10.0.2.2:80 TCP SYN seq 1 win 64240, ttl 63
/// 08:00:00:00:01:01 > ff:ff:ff:ff:ff:ff type 0x88b5, 60 bytes
/// TPP app 7, 3 instructions, hop 2, SP 12 of 30: 10.0.1.1 > 10.0.2.2 ICMP echo request id 7 seq 1, ttl 64
/// ```
pub fn describe(frame: &[u8]) -> String {
    let mut line = String::new();
    if let Err(malformed) = frame_line(frame, &mut line) {
        if !line.is_empty() && !line.ends_with(' ') {
            line.push(' ');
        }
        let _ = write!(line, "malformed {malformed}");
    }
    line
}

fn frame_line(frame: &[u8], line: &mut String) -> Result<(), Malformed> {
    let packet = ethernet::Packet::new_checked(frame)?;
    let (mut ethertype, mut payload) = (packet.ethertype(), &frame[ethernet::HEADER_LEN..]);
    for _ in 0..MAX_TAGS {
        if !matches!(ethertype, ethernet::VLAN | ethernet::OUTER_VLAN) {
            break;
        }
        let tag = vlan::Repr::parse(&vlan::Packet::new_checked(payload)?);
        put(line, format_args!("vlan {}", tag.identifier));
        if tag.priority > 0 {
            put(line, format_args!(" priority {}", tag.priority));
        }
        line.push_str(": ");
        (ethertype, payload) = (tag.ethertype, &payload[vlan::HEADER_LEN..]);
    }
    for _ in 0..MAX_PROGRAMS {
        if ethertype != tpp::ETHERTYPE {
            break;
        }
        let program = tpp::Packet::new_checked(payload)?;
        program_line(&program, line);
        if program.encapsulated() == 0 {
            return Ok(());
        }
        line.push_str(": ");
        (ethertype, payload) = (program.encapsulated(), &payload[program.length()..]);
    }
    match ethertype {
        ethernet::IPV4 => ipv4_line(payload, line),
        ethernet::IPV6 => ipv6_line(payload, line),
        ethernet::ARP => arp_line(payload, line),
        other => {
            put(line, format_args!("{} > {} ", packet.source(), packet.destination()));
            if other < ethernet::MIN_TYPE {
                put(line, format_args!("802.3 length {other}, {} bytes", frame.len()));
            } else {
                put(line, format_args!("type {other:#06x}, {} bytes", frame.len()));
            }
            Ok(())
        }
    }
}

/// Summarises a tiny packet program.
fn program_line(program: &tpp::Packet<&[u8]>, line: &mut String) {
    let plural = if program.instruction_count() == 1 { "" } else { "s" };
    put(line, format_args!("TPP app {}, {} instruction{plural}", program.application(), program.instruction_count()));
    put(line, format_args!(", hop {}", program.hop()));
    match program.addressing() {
        tpp::Addressing::Stack { pointer } => put(line, format_args!(", SP {pointer} of {}", program.memory_len())),
        tpp::Addressing::Hop { len } => put(line, format_args!(", {len} of {} bytes a hop", program.memory_len())),
    }
    if program.status() != tpp::Status::NONE {
        put(line, format_args!(", {}", program.status()));
    }
    if !program.is_checksum_right() {
        line.push_str(", bad TPP checksum");
    }
}

fn put(line: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = line.write_fmt(text);
}

fn arp_line(bytes: &[u8], line: &mut String) -> Result<(), Malformed> {
    let arp = arp::Repr::parse(&arp::Packet::new_checked(bytes)?);
    match arp.operation {
        arp::Operation::Request => put(line, format_args!("ARP who has {}, tell {}", arp.target_ip, arp.sender_ip)),
        arp::Operation::Reply => put(line, format_args!("ARP {} is at {}", arp.sender_ip, arp.sender)),
        arp::Operation::Other(number) => put(line, format_args!("ARP operation {number}")),
    }
    Ok(())
}

fn ipv4_line(bytes: &[u8], line: &mut String) -> Result<(), Malformed> {
    let packet = ipv4::Packet::new_checked(bytes)?;
    let addresses = Addresses::V4(packet.source(), packet.destination());
    let carried = Carried {
        source: packet.source().into(),
        destination: packet.destination().into(),
        addresses,
        protocol: packet.protocol(),
        offset: packet.fragment_offset(),
        whole: !packet.is_cut() && !packet.more_fragments() && packet.fragment_offset() == 0,
        bytes: packet.payload(),
        packet: &bytes[..packet.total_len().min(bytes.len())],
    };
    carried.line(line)?;
    put(line, format_args!(", ttl {}", packet.ttl()));
    if packet.more_fragments() && packet.fragment_offset() == 0 {
        line.push_str(", first fragment");
    }
    if !packet.is_checksum_right() {
        line.push_str(", bad IP checksum");
    }
    if packet.is_cut() {
        line.push_str(", cut short");
    }
    Ok(())
}

fn ipv6_line(bytes: &[u8], line: &mut String) -> Result<(), Malformed> {
    let packet = ipv6::Packet::new_checked(bytes)?;
    let (protocol, offset, rest) = packet.transport();
    let carried = Carried {
        source: packet.source().into(),
        destination: packet.destination().into(),
        addresses: Addresses::V6(packet.source(), packet.destination()),
        protocol,
        offset,
        // A first fragment looks complete here, but its checksum covers missing bytes.
        whole: !packet.is_cut() && packet.next_header() == protocol,
        bytes: rest,
        packet: &bytes[..(ipv6::HEADER_LEN + packet.payload_len()).min(bytes.len())],
    };
    carried.line(line)?;
    put(line, format_args!(", hop limit {}", packet.hop_limit()));
    if packet.is_cut() {
        line.push_str(", cut short");
    }
    Ok(())
}

/// The payload of an IP packet.
struct Carried<'a> {
    source: IpAddr,
    destination: IpAddr,
    addresses: Addresses,
    protocol: u8,
    offset: usize,
    /// Whether all bytes that a checksum covers are present.
    whole: bool,
    bytes: &'a [u8],
    /// The packet with its IP header.
    packet: &'a [u8],
}

impl Carried<'_> {
    fn line(&self, line: &mut String) -> Result<(), Malformed> {
        let name = match self.protocol {
            ipv4::ICMP => "ICMP",
            2 => "IGMP",
            4 | 41 => "IP in IP",
            ipv4::TCP => "TCP",
            ipv4::UDP => "UDP",
            47 => "GRE",
            50 => "ESP",
            ipv6::ICMP => "ICMPv6",
            59 => "nothing",
            89 => "OSPF",
            132 => "SCTP",
            _ => "",
        };
        let right = match (self.protocol, self.offset) {
            (ipv4::TCP, 0) => self.tcp(line)?,
            (ipv4::UDP, 0) => self.udp(line)?,
            (ipv4::ICMP, 0) if self.source.is_ipv4() => self.icmpv4(line)?,
            (ipv6::ICMP, 0) if self.source.is_ipv6() => self.icmpv6(line),
            (protocol, offset) => {
                put(line, format_args!("{} > {} ", self.source, self.destination));
                if name.is_empty() {
                    put(line, format_args!("protocol {protocol}"));
                } else {
                    line.push_str(name);
                }
                put(line, format_args!(" {} bytes", self.bytes.len()));
                if offset > 0 {
                    put(line, format_args!(", fragment at {offset}"));
                }
                true
            }
        };
        if self.whole && !right {
            put(line, format_args!(", bad {name} checksum"));
        }
        Ok(())
    }

    fn ports(&self, line: &mut String, source: u16, destination: u16) {
        let end = |address, port| std::net::SocketAddr::new(address, port);
        put(line, format_args!("{} > {} ", end(self.source, source), end(self.destination, destination)));
    }

    fn tcp(&self, line: &mut String) -> Result<bool, Malformed> {
        let packet = self.named(line, tcp::Packet::new_checked(self.bytes))?;
        self.ports(line, packet.source_port(), packet.destination_port());
        put(line, format_args!("TCP {} seq {}", packet.flags(), packet.sequence()));
        if packet.flags().contains(tcp::Flags::ACK) {
            put(line, format_args!(" ack {}", packet.acknowledgement()));
        }
        put(line, format_args!(" win {}", packet.window()));
        if !packet.payload().is_empty() {
            put(line, format_args!(", {} bytes", packet.payload().len()));
        }
        Ok(packet.is_checksum_right(self.addresses))
    }

    fn udp(&self, line: &mut String) -> Result<bool, Malformed> {
        let packet = self.named(line, udp::Packet::new_checked(self.bytes))?;
        self.ports(line, packet.source_port(), packet.destination_port());
        if packet.destination_port() == roce::PORT {
            rdma::line(line, packet.payload())?;
            if self.whole && !roce::icrc::is_right(self.packet) {
                line.push_str(", bad ICRC");
            }
        } else {
            put(line, format_args!("UDP {} bytes", packet.length() - udp::HEADER_LEN));
            if [packet.source_port(), packet.destination_port()].contains(&tpp::UDP_PORT)
                && let Ok(program) = tpp::Packet::new_checked(packet.payload())
            {
                line.push_str(", ");
                program_line(&program, line);
            }
        }
        Ok(packet.is_checksum_right(self.addresses))
    }

    fn icmpv4(&self, line: &mut String) -> Result<bool, Malformed> {
        let packet = self.named(line, icmpv4::Packet::new_checked(self.bytes))?;
        put(line, format_args!("{} > {} ICMP ", self.source, self.destination));
        match icmpv4::Repr::parse(&packet) {
            icmpv4::Repr::EchoRequest { identifier, sequence } => {
                put(line, format_args!("echo request id {identifier} seq {sequence}"));
            }
            icmpv4::Repr::EchoReply { identifier, sequence } => {
                put(line, format_args!("echo reply id {identifier} seq {sequence}"));
            }
            icmpv4::Repr::Unreachable { code, next_mtu } => match code {
                0 => line.push_str("network unreachable"),
                1 => line.push_str("host unreachable"),
                2 => line.push_str("protocol unreachable"),
                3 => line.push_str("port unreachable"),
                4 => put(line, format_args!("too long, must have {next_mtu} bytes")),
                _ => put(line, format_args!("unreachable, code {code}")),
            },
            icmpv4::Repr::TimeExceeded { code: 0 } => line.push_str("time to live exceeded"),
            icmpv4::Repr::TimeExceeded { .. } => line.push_str("reassembly time exceeded"),
            icmpv4::Repr::Other { kind, code, .. } => put(line, format_args!("type {kind} code {code}")),
        }
        Ok(packet.is_checksum_right())
    }

    fn icmpv6(&self, line: &mut String) -> bool {
        put(line, format_args!("{} > {} ICMPv6 ", self.source, self.destination));
        let pair = |at: usize| self.bytes.get(at..at + 2).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]));
        match self.bytes.first() {
            Some(1) => line.push_str("unreachable"),
            Some(2) => line.push_str("packet too big"),
            Some(3) => line.push_str("hop limit exceeded"),
            Some(kind @ (128 | 129)) => {
                let what = if *kind == 128 { "request" } else { "reply" };
                put(line, format_args!("echo {what} id {} seq {}", pair(4), pair(6)));
            }
            Some(133) => line.push_str("router solicitation"),
            Some(134) => line.push_str("router advertisement"),
            Some(135) => line.push_str("neighbour solicitation"),
            Some(136) => line.push_str("neighbour advertisement"),
            Some(143) => line.push_str("multicast listener report"),
            Some(kind) => put(line, format_args!("type {kind}")),
            None => line.push_str("without a header"),
        }
        let sum = self.addresses.pseudo(ipv6::ICMP, self.bytes.len()) + crate::checksum::sum(self.bytes);
        crate::checksum::finish(sum) == 0
    }

    /// Writes the addresses before an error in the inner packet.
    fn named<T>(&self, line: &mut String, parsed: Result<T, Malformed>) -> Result<T, Malformed> {
        if parsed.is_err() {
            put(line, format_args!("{} > {} ", self.source, self.destination));
        }
        parsed
    }
}

#[cfg(test)]
mod tests;
