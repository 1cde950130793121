//! IPv4 (RFC 791), with the traffic class of RFC 2474 and RFC 3168.
//!
//! ```text
//! version 4 bits, header words 4 bits | traffic class 1 | total length 2
//! identification 2                    | flags 3 bits, fragment offset 13 bits
//! time to live 1 | protocol 1         | header checksum 2
//! source 4 | destination 4 | options, up to 40
//! ```

use std::net::Ipv4Addr;

use crate::Malformed;
use crate::checksum::{self, Addresses};
use crate::field::{array, get16, put16, require, with_payload};

/// The protocol number of ICMP.
pub const ICMP: u8 = 1;
/// The protocol number of TCP.
pub const TCP: u8 = 6;
/// The protocol number of UDP.
pub const UDP: u8 = 17;

/// Bytes of a header without options.
pub const HEADER_LEN: usize = 20;

/// A datagram whose header is whole. The payload may be cut short.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T> {
    bytes: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks that the header with its options is whole and that the lengths agree with each other.
    ///
    /// # Errors
    /// If not. A payload that is cut short is no error; see [`is_cut`](Self::is_cut).
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        let all = bytes.as_ref();
        require("IPv4", all, HEADER_LEN)?;
        let wrong = |field, value: usize| Err(Malformed::Field { format: "IPv4", field, value: value as u32 });
        let packet = Packet { bytes: all };
        if all[0] >> 4 != 4 {
            return wrong("version", usize::from(all[0] >> 4));
        }
        if packet.header_len() < HEADER_LEN {
            return wrong("header length", packet.header_len());
        }
        if packet.total_len() < packet.header_len() {
            return wrong("total length", packet.total_len());
        }
        require("IPv4", all, packet.header_len())?;
        Ok(Packet { bytes })
    }

    /// Bytes of the header, options included.
    pub fn header_len(&self) -> usize {
        usize::from(self.bytes.as_ref()[0] & 0xf) * 4
    }

    /// The traffic class: six bits of DSCP, two of ECN.
    pub fn traffic_class(&self) -> u8 {
        self.bytes.as_ref()[1]
    }

    /// Bytes of the datagram, header included.
    pub fn total_len(&self) -> usize {
        get16(self.bytes.as_ref(), 2).into()
    }

    /// What fragments of one datagram have in common.
    pub fn identification(&self) -> u16 {
        get16(self.bytes.as_ref(), 4)
    }

    /// Whether it must not be fragmented.
    pub fn dont_fragment(&self) -> bool {
        self.bytes.as_ref()[6] & 0x40 != 0
    }

    /// Whether fragments follow.
    pub fn more_fragments(&self) -> bool {
        self.bytes.as_ref()[6] & 0x20 != 0
    }

    /// Where in the datagram this fragment begins, in bytes.
    pub fn fragment_offset(&self) -> usize {
        usize::from(get16(self.bytes.as_ref(), 6) & 0x1fff) * 8
    }

    /// How many routers it may still pass.
    pub fn ttl(&self) -> u8 {
        self.bytes.as_ref()[8]
    }

    /// What the payload is.
    pub fn protocol(&self) -> u8 {
        self.bytes.as_ref()[9]
    }

    /// The header's checksum.
    pub fn checksum(&self) -> u16 {
        get16(self.bytes.as_ref(), 10)
    }

    /// Whether the header's checksum is right.
    pub fn is_checksum_right(&self) -> bool {
        checksum::checksum(&self.bytes.as_ref()[..self.header_len()]) == 0
    }

    /// Who sent it.
    pub fn source(&self) -> Ipv4Addr {
        array(self.bytes.as_ref(), 12).into()
    }

    /// Who it is for.
    pub fn destination(&self) -> Ipv4Addr {
        array(self.bytes.as_ref(), 16).into()
    }

    /// The options, as they are.
    pub fn options(&self) -> &[u8] {
        &self.bytes.as_ref()[HEADER_LEN..self.header_len()]
    }

    /// Whether fewer bytes are there than the header says.
    pub fn is_cut(&self) -> bool {
        self.bytes.as_ref().len() < self.total_len()
    }

    /// What is behind the header, as far as it is there; padding of the frame is left out.
    pub fn payload(&self) -> &[u8] {
        let all = self.bytes.as_ref();
        &all[self.header_len()..self.total_len().min(all.len())]
    }
}

/// A header without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The traffic class: six bits of DSCP, two of ECN.
    pub traffic_class: u8,
    /// What fragments of one datagram have in common.
    pub identification: u16,
    /// Whether it must not be fragmented.
    pub dont_fragment: bool,
    /// How many routers it may still pass.
    pub ttl: u8,
    /// What the payload is.
    pub protocol: u8,
    /// Who sent it.
    pub source: Ipv4Addr,
    /// Who it is for.
    pub destination: Ipv4Addr,
}

impl Repr {
    /// A header as a host sends it: time to live 64, not to be fragmented.
    pub fn new(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8) -> Repr {
        Repr { traffic_class: 0, identification: 0, dont_fragment: true, ttl: 64, protocol, source, destination }
    }

    /// Reads the header. Options and fragmentation are not part of it; ask the packet.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Repr {
        Repr {
            traffic_class: packet.traffic_class(),
            identification: packet.identification(),
            dont_fragment: packet.dont_fragment(),
            ttl: packet.ttl(),
            protocol: packet.protocol(),
            source: packet.source(),
            destination: packet.destination(),
        }
    }

    /// Writes the header, checksum included, to the start of `buffer`, for `payload_len` bytes behind it.
    ///
    /// # Panics
    /// If `buffer` is shorter than [`HEADER_LEN`] or the datagram would be longer than 65535 bytes.
    pub fn emit(&self, buffer: &mut [u8], payload_len: usize) {
        let total_len = u16::try_from(HEADER_LEN + payload_len).expect("a datagram has at most 65535 bytes");
        buffer[0] = 0x45;
        buffer[1] = self.traffic_class;
        put16(buffer, 2, total_len);
        put16(buffer, 4, self.identification);
        put16(buffer, 6, u16::from(self.dont_fragment) << 14);
        buffer[8] = self.ttl;
        buffer[9] = self.protocol;
        put16(buffer, 10, 0);
        buffer[12..16].copy_from_slice(&self.source.octets());
        buffer[16..20].copy_from_slice(&self.destination.octets());
        let value = checksum::checksum(&buffer[..HEADER_LEN]);
        put16(buffer, 10, value);
    }

    /// The datagram with this header and this payload.
    ///
    /// # Panics
    /// If it would be longer than 65535 bytes.
    pub fn packet(&self, payload: &[u8]) -> Vec<u8> {
        let mut bytes = with_payload(HEADER_LEN, payload);
        self.emit(&mut bytes, payload.len());
        bytes
    }

    /// The addresses, for the checksum of what is inside.
    pub fn addresses(&self) -> Addresses {
        Addresses::V4(self.source, self.destination)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repr() -> Repr {
        Repr { traffic_class: 0xb8, identification: 7, ..Repr::new([10, 0, 1, 1].into(), [10, 0, 2, 2].into(), ICMP) }
    }

    #[test]
    fn headers_round_trip() {
        let mut bytes = repr().packet(b"payload");
        bytes.extend(b"padding of the frame");
        let packet = Packet::new_checked(&bytes).unwrap();
        assert_eq!((Repr::parse(&packet), packet.payload()), (repr(), &b"payload"[..]));
        assert!(packet.is_checksum_right() && !packet.is_cut());
        assert!(Packet::new_checked(&bytes[..25]).unwrap().is_cut());
        bytes[8] -= 1;
        assert!(!Packet::new_checked(&bytes).unwrap().is_checksum_right());
    }

    #[test]
    fn lengths_that_contradict_are_refused() {
        let bytes = repr().packet(b"payload");
        let refused = |at: usize, value: u8, why: &str| {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            let error = Packet::new_checked(&bytes).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        };
        refused(0, 0x65, "version cannot be 6");
        refused(0, 0x44, "header length cannot be 16");
        refused(3, 19, "total length cannot be 19");
        assert!(Packet::new_checked(&bytes[..19]).unwrap_err().to_string().contains("20 bytes are needed"));
    }
}
