//! Parses and emits IPv6 (RFC 8200): the fixed header, and traversal of the extension headers.
//!
//! ```text
//! version 4 bits, traffic class 8 bits, flow label 20 bits
//! payload length 2 | next header 1 | hop limit 1
//! source 16 | destination 16 | extension headers
//! ```

use std::net::Ipv6Addr;

use crate::Malformed;
use crate::checksum::Addresses;
use crate::field::{array, get16, get32, put16, put32, require, with_payload};

/// The next-header number of ICMPv6.
pub const ICMP: u8 = 58;

/// Size of the fixed header in bytes.
pub const HEADER_LEN: usize = 40;

/// A packet with a complete fixed header. The payload may be truncated.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T> {
    bytes: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks that the fixed header is complete.
    ///
    /// # Errors
    /// Returns an error if it is not, or if the version is another.
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        let all = bytes.as_ref();
        require("IPv6", all, HEADER_LEN)?;
        match all[0] >> 4 {
            6 => Ok(Packet { bytes }),
            version => Err(Malformed::Field { format: "IPv6", field: "version", value: version.into() }),
        }
    }

    /// Returns the traffic class: six bits of DSCP, two of ECN.
    pub fn traffic_class(&self) -> u8 {
        (get16(self.bytes.as_ref(), 0) >> 4) as u8
    }

    /// Returns the flow label, 20 bits.
    pub fn flow_label(&self) -> u32 {
        get32(self.bytes.as_ref(), 0) & 0xf_ffff
    }

    /// Returns the number of bytes after the fixed header.
    pub fn payload_len(&self) -> usize {
        get16(self.bytes.as_ref(), 4).into()
    }

    /// Returns the type of the header after the fixed header: an extension header or a protocol.
    pub fn next_header(&self) -> u8 {
        self.bytes.as_ref()[6]
    }

    /// Returns the hop limit.
    pub fn hop_limit(&self) -> u8 {
        self.bytes.as_ref()[7]
    }

    /// Returns the source address.
    pub fn source(&self) -> Ipv6Addr {
        array(self.bytes.as_ref(), 8).into()
    }

    /// Returns the destination address.
    pub fn destination(&self) -> Ipv6Addr {
        array(self.bytes.as_ref(), 24).into()
    }

    /// Whether the packet is truncated: it has fewer bytes than the header says.
    pub fn is_cut(&self) -> bool {
        self.bytes.as_ref().len() < HEADER_LEN + self.payload_len()
    }

    /// Returns the bytes after the fixed header, as far as they are present.
    pub fn payload(&self) -> &[u8] {
        let all = self.bytes.as_ref();
        &all[HEADER_LEN..(HEADER_LEN + self.payload_len()).min(all.len())]
    }

    /// Returns the protocol after the extension headers, the offset of this fragment in its datagram (in bytes; 0 for
    /// an unfragmented packet or a first fragment), and the present bytes of the payload. Stops at a truncated header.
    pub fn transport(&self) -> (u8, usize, &[u8]) {
        let (mut next, mut rest, mut offset) = (self.next_header(), self.payload(), 0);
        while is_extension(next)
            && let [following, words, third, fourth, ..] = rest
        {
            let len = if next == 44 { 8 } else { (usize::from(*words) + 1) * 8 };
            if next == 44 {
                offset = usize::from(u16::from_be_bytes([*third, *fourth]) & 0xfff8);
            }
            let Some(behind) = rest.get(len..) else { break };
            (next, rest) = (*following, behind);
            if offset > 0 {
                break;
            }
        }
        (next, offset, rest)
    }
}

/// Whether a next header is an extension header that another header follows: hop-by-hop options, routing, fragment or
/// destination options (RFC 8200, 4).
pub fn is_extension(next_header: u8) -> bool {
    matches!(next_header, 0 | 43 | 44 | 60)
}

/// A header without extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The traffic class: six bits of DSCP, two of ECN.
    pub traffic_class: u8,
    /// The flow label, 20 bits.
    pub flow_label: u32,
    /// Type of the next header.
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source address.
    pub source: Ipv6Addr,
    /// Destination address.
    pub destination: Ipv6Addr,
}

impl Repr {
    /// Creates a header as a host sends it: hop limit 64, no flow.
    pub fn new(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8) -> Repr {
        Repr { traffic_class: 0, flow_label: 0, next_header, hop_limit: 64, source, destination }
    }

    /// Parses the fixed header.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Repr {
        Repr {
            traffic_class: packet.traffic_class(),
            flow_label: packet.flow_label(),
            next_header: packet.next_header(),
            hop_limit: packet.hop_limit(),
            source: packet.source(),
            destination: packet.destination(),
        }
    }

    /// Writes the header to the start of `buffer`, for `payload_len` bytes after it.
    ///
    /// # Panics
    /// Panics if `buffer` is shorter than [`HEADER_LEN`] or the payload longer than 65535 bytes.
    pub fn emit(&self, buffer: &mut [u8], payload_len: usize) {
        let payload_len = u16::try_from(payload_len).expect("a payload has at most 65535 bytes");
        put32(buffer, 0, 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & 0xf_ffff);
        put16(buffer, 4, payload_len);
        buffer[6] = self.next_header;
        buffer[7] = self.hop_limit;
        buffer[8..24].copy_from_slice(&self.source.octets());
        buffer[24..40].copy_from_slice(&self.destination.octets());
    }

    /// Returns the packet with this header and this payload.
    ///
    /// # Panics
    /// Panics if the payload is longer than 65535 bytes.
    pub fn packet(&self, payload: &[u8]) -> Vec<u8> {
        let mut bytes = with_payload(HEADER_LEN, payload);
        self.emit(&mut bytes, payload.len());
        bytes
    }

    /// Returns the addresses, for the checksum of the payload.
    pub fn addresses(&self) -> Addresses {
        Addresses::V6(self.source, self.destination)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repr() -> Repr {
        let addresses: [Ipv6Addr; 2] = ["fd00::1".parse().unwrap(), "fd00::2".parse().unwrap()];
        Repr { traffic_class: 0xab, flow_label: 0x12345, ..Repr::new(addresses[0], addresses[1], 17) }
    }

    #[test]
    fn headers_round_trip() {
        let bytes = repr().packet(b"payload");
        assert_eq!(bytes[..8], [0x6a, 0xb1, 0x23, 0x45, 0, 7, 17, 64]);
        let packet = Packet::new_checked(&bytes).unwrap();
        assert_eq!((Repr::parse(&packet), packet.payload()), (repr(), &b"payload"[..]));
        assert!(Packet::new_checked(&bytes[..39]).is_err());
        assert!(!packet.is_cut() && Packet::new_checked(&bytes[..46]).unwrap().is_cut());
    }

    #[test]
    fn extension_headers_are_passed_over() {
        let repr = Repr { next_header: 0, ..repr() };
        let hop_by_hop = [60, 0, 1, 4, 0, 0, 0, 0];
        let destination_options = [44, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let fragment = |offset: u8| [17, 0, 0, offset, 0, 0, 0, 1];
        let whole = |offset| [&hop_by_hop[..], &destination_options, &fragment(offset), b"udp"].concat();
        let first = repr.packet(&whole(1));
        assert_eq!(Packet::new_checked(&first).unwrap().transport(), (17, 0, &b"udp"[..]));
        let later = repr.packet(&whole(16));
        assert_eq!(Packet::new_checked(&later).unwrap().transport(), (17, 16, &b"udp"[..]));
        let cut = repr.packet(&hop_by_hop[..6]);
        assert_eq!(Packet::new_checked(&cut).unwrap().transport(), (0, 0, &hop_by_hop[..6]));
    }
}
