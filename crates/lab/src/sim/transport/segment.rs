//! Reads and changes TCP segments in the IPv4 packets that the stack creates.

use std::net::Ipv4Addr;

use smoltcp::wire::{IpAddress, Ipv4Packet, TcpPacket, TcpSeqNumber};

/// The flags and fields of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub from: (Ipv4Addr, u16),
    pub to: (Ipv4Addr, u16),
    pub number: u32,
    /// The acknowledgement number, if the segment has one.
    pub acknowledged: Option<u32>,
    pub window: u16,
    /// Length in sequence numbers: bytes of payload, plus one each for SYN and FIN.
    pub len: u32,
    pub syn: bool,
    pub fin: bool,
    pub rst: bool,
    pub ece: bool,
    pub cwr: bool,
    /// The ECN field of the packet.
    pub ecn: u8,
    /// Selectively acknowledged ranges beyond the acknowledgement number (RFC 2018).
    pub ranges: [Option<(u32, u32)>; 3],
}

/// Codepoints of the ECN field (RFC 3168 section 5).
pub const ECT0: u8 = 0b10;
pub const CE: u8 = 0b11;

/// The bits of a packet that belong to ECN.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bits {
    pub ece: bool,
    pub cwr: bool,
    /// Whether the packet is ECN-capable.
    pub ect: bool,
}

impl Head {
    /// Parses a packet; `None` if it is not a complete, valid TCP segment.
    pub fn read(packet: &[u8]) -> Option<Head> {
        let ip = Ipv4Packet::new_checked(packet).ok()?;
        let (from, to, ecn) = (ip.src_addr(), ip.dst_addr(), ip.ecn());
        if ip.next_header() != smoltcp::wire::IpProtocol::Tcp {
            return None;
        }
        let tcp = TcpPacket::new_checked(ip.payload()).ok()?;
        if !tcp.verify_checksum(&IpAddress::Ipv4(from), &IpAddress::Ipv4(to)) {
            return None;
        }
        Some(Head {
            from: (from, tcp.src_port()),
            to: (to, tcp.dst_port()),
            number: tcp.seq_number().0 as u32,
            acknowledged: tcp.ack().then(|| tcp.ack_number().0 as u32),
            window: tcp.window_len(),
            len: tcp.segment_len() as u32,
            syn: tcp.syn(),
            fin: tcp.fin(),
            rst: tcp.rst(),
            ece: tcp.ece(),
            cwr: tcp.cwr(),
            ecn,
            ranges: tcp.selective_ack_ranges().unwrap_or_default(),
        })
    }
}

/// Changes a packet whose header [`Head::read`] has parsed, and updates its checksums.
fn change(packet: &mut [u8], ect: bool, change: impl FnOnce(&mut TcpPacket<&mut [u8]>)) {
    let mut ip = Ipv4Packet::new_unchecked(packet);
    if ect {
        ip.set_ecn(ECT0);
    }
    ip.fill_checksum();
    let (from, to) = (IpAddress::Ipv4(ip.src_addr()), IpAddress::Ipv4(ip.dst_addr()));
    let mut tcp = TcpPacket::new_unchecked(ip.payload_mut());
    change(&mut tcp);
    tcp.fill_checksum(&from, &to);
}

/// Sets the ECN bits, the acknowledgement number and the window of a segment.
pub fn stamp(packet: &mut [u8], acknowledged: u32, window: u16, bits: Bits) {
    change(packet, bits.ect, |tcp| {
        tcp.set_ack_number(TcpSeqNumber(acknowledged as i32));
        tcp.set_window_len(window);
        mark(tcp, bits);
    });
}

/// Sets the ECN bits of a SYN.
pub fn negotiate(packet: &mut [u8], bits: Bits) {
    change(packet, false, |tcp| mark(tcp, bits));
}

fn mark(tcp: &mut TcpPacket<&mut [u8]>, bits: Bits) {
    if bits.ece {
        tcp.set_ece(true);
    }
    if bits.cwr {
        tcp.set_cwr(true);
    }
}

/// Sets the sequence number of a segment without payload.
pub fn renumber(packet: &mut [u8], number: u32) {
    change(packet, false, |tcp| tcp.set_seq_number(TcpSeqNumber(number as i32)));
}

/// Returns the segment without its first `bytes` bytes of payload; if `bytes` is `None`, without any payload and
/// without FIN.
pub fn cut(packet: &[u8], bytes: Option<u32>) -> Vec<u8> {
    let ip_len = usize::from(Ipv4Packet::new_unchecked(packet).header_len());
    let tcp_len = usize::from(TcpPacket::new_unchecked(&packet[ip_len..]).header_len());
    let payload = &packet[ip_len + tcp_len..];
    let rest = bytes.map_or(&[][..], |bytes| &payload[(bytes as usize).min(payload.len())..]);
    let mut packet = [&packet[..ip_len + tcp_len], rest].concat();
    let len = packet.len() as u16;
    Ipv4Packet::new_unchecked(&mut packet[..]).set_total_len(len);
    change(&mut packet, false, |tcp| match bytes {
        Some(bytes) => tcp.set_seq_number(tcp.seq_number() + bytes as usize),
        None => {
            tcp.set_fin(false);
            tcp.set_psh(false);
        }
    });
    packet
}
