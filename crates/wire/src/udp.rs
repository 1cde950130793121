//! Parses and emits UDP (RFC 768).
//!
//! ```text
//! source port 2 | destination port 2 | length 2 | checksum 2
//! ```

use crate::Malformed;
use crate::checksum::{self, Addresses};
use crate::field::{get16, put16, require, with_payload};
use crate::ipv4::UDP;

/// Size of the header in bytes.
pub const HEADER_LEN: usize = 8;

/// A datagram with a complete header. The payload may be truncated.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T> {
    bytes: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks that the header is complete and that the length covers it.
    ///
    /// # Errors
    /// Returns an error if not.
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        let all = bytes.as_ref();
        require("UDP", all, HEADER_LEN)?;
        match get16(all, 4) {
            value @ 0..8 => Err(Malformed::Field { format: "UDP", field: "length", value: value.into() }),
            _ => Ok(Packet { bytes }),
        }
    }

    /// Returns the sender's port.
    pub fn source_port(&self) -> u16 {
        get16(self.bytes.as_ref(), 0)
    }

    /// Returns the receiver's port.
    pub fn destination_port(&self) -> u16 {
        get16(self.bytes.as_ref(), 2)
    }

    /// Returns the length of the datagram in bytes, header included.
    pub fn length(&self) -> usize {
        get16(self.bytes.as_ref(), 4).into()
    }

    /// Returns the checksum; 0 if there is none.
    pub fn checksum(&self) -> u16 {
        get16(self.bytes.as_ref(), 6)
    }

    /// Whether the checksum is correct or absent; also true for a truncated datagram, whose checksum cannot be
    /// verified.
    pub fn is_checksum_right(&self, addresses: Addresses) -> bool {
        let all = self.bytes.as_ref();
        let Some(datagram) = all.get(..self.length()) else { return true };
        self.checksum() == 0 || checksum::finish(addresses.pseudo(UDP, datagram.len()) + checksum::sum(datagram)) == 0
    }

    /// Returns the bytes after the header, as far as they are present.
    pub fn payload(&self) -> &[u8] {
        let all = self.bytes.as_ref();
        &all[HEADER_LEN..self.length().min(all.len())]
    }
}

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
}

impl Repr {
    /// Parses the header.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Repr {
        Repr { source_port: packet.source_port(), destination_port: packet.destination_port() }
    }

    /// Writes the header, including the checksum, to the start of `datagram`; the rest is the payload.
    ///
    /// # Panics
    /// Panics if `datagram` is shorter than [`HEADER_LEN`] or longer than 65535 bytes.
    pub fn emit(&self, datagram: &mut [u8], addresses: Addresses) {
        let len = u16::try_from(datagram.len()).expect("a datagram has at most 65535 bytes");
        put16(datagram, 0, self.source_port);
        put16(datagram, 2, self.destination_port);
        put16(datagram, 4, len);
        put16(datagram, 6, checksum::fold(addresses.pseudo(UDP, datagram.len())));
        assert!(checksum::complete(datagram, 0, 6), "the header is inside");
    }

    /// Returns the datagram with this header and this payload.
    ///
    /// # Panics
    /// Panics if it would be longer than 65535 bytes.
    pub fn packet(&self, addresses: Addresses, payload: &[u8]) -> Vec<u8> {
        let mut bytes = with_payload(HEADER_LEN, payload);
        self.emit(&mut bytes, addresses);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_round_trip() {
        let repr = Repr { source_port: 1000, destination_port: 53 };
        for addresses in
            [Addresses::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()), Addresses::V6([1; 16].into(), [2; 16].into())]
        {
            let mut bytes = repr.packet(addresses, b"payload");
            let packet = Packet::new_checked(&bytes).unwrap();
            assert_eq!((Repr::parse(&packet), packet.payload()), (repr, &b"payload"[..]));
            assert!(packet.is_checksum_right(addresses) && packet.checksum() != 0);
            bytes[9] ^= 1;
            assert!(!Packet::new_checked(&bytes).unwrap().is_checksum_right(addresses));
            bytes[6..8].fill(0);
            assert!(Packet::new_checked(&bytes).unwrap().is_checksum_right(addresses));
            bytes[4..6].copy_from_slice(&[0, 7]);
            assert!(Packet::new_checked(&bytes).is_err());
        }
    }
}
