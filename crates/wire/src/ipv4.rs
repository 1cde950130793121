//! Parses and emits IPv4 (RFC 791), with the traffic class of RFC 2474 and RFC 3168.
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

/// Size of a header without options, in bytes.
pub const HEADER_LEN: usize = 20;

/// A datagram with a complete header. The payload may be truncated.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T> {
    bytes: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks that the header with its options is complete and that the lengths are consistent.
    ///
    /// # Errors
    /// Returns an error if not. A truncated payload is not an error; see [`is_cut`](Self::is_cut).
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

    /// Returns the size of the header in bytes, options included.
    pub fn header_len(&self) -> usize {
        usize::from(self.bytes.as_ref()[0] & 0xf) * 4
    }

    /// Returns the traffic class: six bits of DSCP, two of ECN.
    pub fn traffic_class(&self) -> u8 {
        self.bytes.as_ref()[1]
    }

    /// Returns the length of the datagram in bytes, header included.
    pub fn total_len(&self) -> usize {
        get16(self.bytes.as_ref(), 2).into()
    }

    /// Returns the identification that the fragments of one datagram share.
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

    /// Returns the offset of this fragment in the datagram, in bytes.
    pub fn fragment_offset(&self) -> usize {
        usize::from(get16(self.bytes.as_ref(), 6) & 0x1fff) * 8
    }

    /// Returns the time to live.
    pub fn ttl(&self) -> u8 {
        self.bytes.as_ref()[8]
    }

    /// Returns the protocol of the payload.
    pub fn protocol(&self) -> u8 {
        self.bytes.as_ref()[9]
    }

    /// Returns the header's checksum.
    pub fn checksum(&self) -> u16 {
        get16(self.bytes.as_ref(), 10)
    }

    /// Whether the header's checksum is correct.
    pub fn is_checksum_right(&self) -> bool {
        checksum::checksum(&self.bytes.as_ref()[..self.header_len()]) == 0
    }

    /// Returns the source address.
    pub fn source(&self) -> Ipv4Addr {
        array(self.bytes.as_ref(), 12).into()
    }

    /// Returns the destination address.
    pub fn destination(&self) -> Ipv4Addr {
        array(self.bytes.as_ref(), 16).into()
    }

    /// Returns the raw options.
    pub fn options(&self) -> &[u8] {
        &self.bytes.as_ref()[HEADER_LEN..self.header_len()]
    }

    /// Whether the packet is truncated: it has fewer bytes than the header says.
    pub fn is_cut(&self) -> bool {
        self.bytes.as_ref().len() < self.total_len()
    }

    /// Returns the bytes after the header, as far as they are present, without the frame's padding.
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
    /// Identification that the fragments of one datagram share.
    pub identification: u16,
    /// Whether it must not be fragmented.
    pub dont_fragment: bool,
    /// Time to live.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
}

impl Repr {
    /// Creates a header as a host sends it: time to live 64, not to be fragmented.
    pub fn new(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8) -> Repr {
        Repr { traffic_class: 0, identification: 0, dont_fragment: true, ttl: 64, protocol, source, destination }
    }

    /// Parses the header. Options and fragmentation are not part of it; the packet has them.
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

    /// Writes the header, including the checksum, to the start of `buffer`, for `payload_len` bytes after it.
    ///
    /// # Panics
    /// Panics if `buffer` is shorter than [`HEADER_LEN`] or the datagram would be longer than 65535 bytes.
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

    /// Returns the datagram with this header and this payload.
    ///
    /// # Panics
    /// Panics if it would be longer than 65535 bytes.
    pub fn packet(&self, payload: &[u8]) -> Vec<u8> {
        let mut bytes = with_payload(HEADER_LEN, payload);
        self.emit(&mut bytes, payload.len());
        bytes
    }

    /// Returns the addresses, for the checksum of the payload.
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
