//! Lowers the maximum segment size that the hosts of a TCP connection agree on, so that programs fit beside segments.

use wire::{checksum, ethernet, ipv4, ipv6, tcp};

/// Offsets in a TCP header.
const FLAGS: usize = 13;
const CHECKSUM: usize = 16;

/// Kinds of TCP options (RFC 9293, 3.1).
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;

/// The least maximum segment size over IPv4 in bytes: the one without the option (RFC 9293, 3.7.1), as every host takes
/// packets of 576 bytes. Smaller segments cost a connection most of its throughput, whatever a program measures.
pub const LEAST_IPV4: u16 = 536;

/// The least maximum segment size over IPv6 in bytes, likewise: every link carries packets of 1280 bytes (RFC 8200).
pub const LEAST_IPV6: u16 = 1220;

/// Whether an Ethernet payload may be a SYN. It costs less than a filter.
pub fn is_syn(ethertype: u16, payload: &[u8]) -> bool {
    let start = match (ethertype, payload.first()) {
        (ethernet::IPV4, Some(first)) if payload.get(9) == Some(&ipv4::TCP) => usize::from(first & 0xf) * 4,
        (ethernet::IPV6, Some(_)) if payload.get(6) == Some(&ipv4::TCP) => ipv6::HEADER_LEN,
        _ => return false,
    };
    payload.get(start + FLAGS).is_some_and(|flags| flags & tcp::Flags::SYN.0 as u8 != 0)
}

/// Lowers the maximum segment size in the Ethernet payload of a SYN, so that an IP packet with a segment of this size
/// is `room` bytes at most, but not below [`LEAST_IPV4`] and [`LEAST_IPV6`]. Leaves other packets, and those without
/// the option, as they are. Returns whether it changed.
pub fn lower(ethertype: u16, payload: &mut [u8], room: usize) -> bool {
    let (start, headers, least) = match ethertype {
        ethernet::IPV4 => match ipv4::Packet::new_checked(&payload[..]) {
            Ok(packet) if packet.protocol() == ipv4::TCP && packet.fragment_offset() == 0 => {
                (packet.header_len(), ipv4::HEADER_LEN + tcp::HEADER_LEN, LEAST_IPV4)
            }
            _ => return false,
        },
        ethernet::IPV6 => match ipv6::Packet::new_checked(&payload[..]) {
            Ok(packet) if packet.next_header() == ipv4::TCP => {
                (ipv6::HEADER_LEN, ipv6::HEADER_LEN + tcp::HEADER_LEN, LEAST_IPV6)
            }
            _ => return false,
        },
        _ => return false,
    };
    let Some(segment) = payload.get_mut(start..) else { return false };
    let Ok(header) = tcp::Packet::new_checked(&segment[..]) else { return false };
    let end = header.header_len();
    if segment[FLAGS] & tcp::Flags::SYN.0 as u8 == 0 {
        return false;
    }
    let Some(at) = option(&segment[..end]) else { return false };
    let old = u16::from_be_bytes([segment[at], segment[at + 1]]);
    let room = u16::try_from(room.saturating_sub(headers)).unwrap_or(u16::MAX);
    // A host that asked for less gets it.
    let new = old.min(room.max(least));
    if new == old {
        return false;
    }
    segment[at..at + 2].copy_from_slice(&new.to_be_bytes());
    let mut sum = u16::from_be_bytes([segment[CHECKSUM], segment[CHECKSUM + 1]]);
    // An option at an odd offset lies in two words of the checksum.
    if at % 2 == 0 {
        sum = checksum::update(sum, old, new);
    } else {
        sum = checksum::update(sum, old >> 8, new >> 8);
        sum = checksum::update(sum, old << 8, new << 8);
    }
    segment[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

/// Returns the offset of the maximum segment size in a TCP header.
fn option(header: &[u8]) -> Option<usize> {
    let mut at = tcp::HEADER_LEN;
    loop {
        match *header.get(at)? {
            END => return None,
            NO_OPERATION => at += 1,
            kind => {
                let len = usize::from(*header.get(at + 1)?);
                if kind == MAXIMUM_SEGMENT_SIZE {
                    return (len == 4 && at + 4 <= header.len()).then_some(at + 2);
                }
                at += len.max(2);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    /// Returns a SYN with these options, over IPv4.
    fn syn(options: &[u8]) -> Vec<u8> {
        let address = Ipv4Addr::new(10, 0, 0, 1);
        let repr = ipv4::Repr::new(address, Ipv4Addr::new(10, 0, 0, 2), ipv4::TCP);
        let mut segment = vec![0; tcp::HEADER_LEN];
        (segment[12], segment[FLAGS]) = (((tcp::HEADER_LEN + options.len()) / 4) as u8 * 16, 2);
        segment.extend(options);
        let sum = checksum::finish(repr.addresses().pseudo(ipv4::TCP, segment.len()) + checksum::sum(&segment));
        segment[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        repr.packet(&segment)
    }

    #[test]
    fn segments_become_smaller_and_checksums_remain_right() {
        for (options, at) in
            [(&[2, 4, 5, 180][..], 42), (&[1, 2, 4, 5, 180, 0, 0, 0], 43), (&[3, 3, 7, 2, 4, 5, 180, 0], 45)]
        {
            let mut packet = syn(options);
            assert!(is_syn(ethernet::IPV4, &packet));
            assert!(lower(ethernet::IPV4, &mut packet, 1446));
            assert_eq!(u16::from_be_bytes([packet[at], packet[at + 1]]), 1406);
            let ip = ipv4::Packet::new_checked(&packet[..]).expect("it is whole");
            let addresses = ipv4::Repr::parse(&ip).addresses();
            assert!(tcp::Packet::new_checked(ip.payload()).expect("it is whole").is_checksum_right(addresses));
            assert!(!lower(ethernet::IPV4, &mut packet, 1446), "it is small enough");
        }
    }

    #[test]
    fn segments_stay_as_large_as_every_link_permits() {
        let option = [2, 4, 5, 180];
        let ipv6 = ipv6::Repr::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, ipv4::TCP);
        let ipv6 = ipv6.packet(&syn(&option)[ipv4::HEADER_LEN..]);
        let size = |packet: &[u8]| u16::from_be_bytes(*packet.last_chunk().expect("the option is last"));
        for (ethertype, packet, least) in [(ethernet::IPV4, syn(&option), 536), (ethernet::IPV6, ipv6, 1220)] {
            for room in [0, 100, 575, 1270] {
                let mut packet = packet.clone();
                assert!(is_syn(ethertype, &packet) && lower(ethertype, &mut packet, room));
                let room = room.saturating_sub(if ethertype == ethernet::IPV4 { 40 } else { 60 });
                assert_eq!(usize::from(size(&packet)), room.max(least), "{ethertype:#x}");
            }
            let mut small = packet.clone();
            *small.last_chunk_mut().expect("the option is last") = [1, 0];
            assert!(!lower(ethertype, &mut small, 100) && size(&small) == 256, "it is never raised");
        }
    }

    #[test]
    fn other_packets_and_malformed_options_stay() {
        let mut established = syn(&[2, 4, 5, 180]);
        established[20 + FLAGS] = 0x10;
        let mut fragment = syn(&[2, 4, 5, 180]);
        fragment[7] = 1;
        let rest = [syn(&[]), syn(&[2, 3, 5, 180]), syn(&[0, 0, 0, 0]), syn(&[1, 1, 1, 2]), syn(&[3, 0, 2, 9])];
        for packet in [established, fragment].into_iter().chain(rest) {
            let mut same = packet.clone();
            assert!(!lower(ethernet::IPV4, &mut same, 100) && same == packet, "{packet:?}");
            for len in 0..packet.len() {
                lower(ethernet::IPV4, &mut same[..len], 100);
                lower(ethernet::IPV6, &mut same[..len], 100);
                is_syn(ethernet::IPV4, &packet[..len]);
                is_syn(ethernet::IPV6, &packet[..len]);
            }
        }
    }
}
