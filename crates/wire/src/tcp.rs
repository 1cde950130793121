//! Parses and emits TCP (RFC 9293).
//!
//! ```text
//! source port 2 | destination port 2 | sequence 4 | acknowledgement 4
//! header words 4 bits, flags 12 bits | window 2 | checksum 2 | urgent pointer 2 | options, up to 40
//! ```

use std::fmt;

use crate::Malformed;
use crate::checksum::{self, Addresses};
use crate::field::{get16, get32, put16, put32, require};
use crate::ipv4::TCP;

/// Size of a header without options, in bytes.
pub const HEADER_LEN: usize = 20;

/// The flags, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u16);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(1);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(2);
    /// Reset the connection.
    pub const RST: Flags = Flags(4);
    /// Push to the application.
    pub const PSH: Flags = Flags(8);
    /// The acknowledgement number is valid.
    pub const ACK: Flags = Flags(16);
    /// The urgent pointer is valid.
    pub const URG: Flags = Flags(32);
    /// Congestion was experienced (RFC 3168).
    pub const ECE: Flags = Flags(64);
    /// The congestion window was reduced (RFC 3168).
    pub const CWR: Flags = Flags(128);

    /// Whether all of `other` are set.
    pub fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Flags {
    type Output = Flags;

    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl fmt::Display for Flags {
    /// `SYN,ACK`, or `no flags`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["SYN", "FIN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        let flags = [Self::SYN, Self::FIN, Self::RST, Self::PSH, Self::ACK, Self::URG, Self::ECE, Self::CWR];
        let mut separator = "";
        for (name, flag) in names.iter().zip(flags) {
            if self.contains(flag) {
                write!(f, "{separator}{name}")?;
                separator = ",";
            }
        }
        if separator.is_empty() { f.write_str("no flags") } else { Ok(()) }
    }
}

/// A segment with a complete header.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T> {
    bytes: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks that the header with its options is complete.
    ///
    /// # Errors
    /// Returns an error if not.
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        let all = bytes.as_ref();
        require("TCP", all, HEADER_LEN)?;
        let header_len = usize::from(all[12] >> 4) * 4;
        if header_len < HEADER_LEN {
            return Err(Malformed::Field { format: "TCP", field: "header length", value: header_len as u32 });
        }
        require("TCP", all, header_len)?;
        Ok(Packet { bytes })
    }

    /// Returns the sender's port.
    pub fn source_port(&self) -> u16 {
        get16(self.bytes.as_ref(), 0)
    }

    /// Returns the receiver's port.
    pub fn destination_port(&self) -> u16 {
        get16(self.bytes.as_ref(), 2)
    }

    /// Returns the number of the first byte of the payload.
    pub fn sequence(&self) -> u32 {
        get32(self.bytes.as_ref(), 4)
    }

    /// Returns the number of the next byte expected from the receiver.
    pub fn acknowledgement(&self) -> u32 {
        get32(self.bytes.as_ref(), 8)
    }

    /// Returns the size of the header in bytes, options included.
    pub fn header_len(&self) -> usize {
        usize::from(self.bytes.as_ref()[12] >> 4) * 4
    }

    /// Returns the flags.
    pub fn flags(&self) -> Flags {
        Flags(get16(self.bytes.as_ref(), 12) & 0xfff)
    }

    /// Returns the receive window in bytes, before scaling.
    pub fn window(&self) -> u16 {
        get16(self.bytes.as_ref(), 14)
    }

    /// Returns the checksum.
    pub fn checksum(&self) -> u16 {
        get16(self.bytes.as_ref(), 16)
    }

    /// Whether the checksum is correct, if these bytes are the whole segment.
    pub fn is_checksum_right(&self, addresses: Addresses) -> bool {
        let all = self.bytes.as_ref();
        checksum::finish(addresses.pseudo(TCP, all.len()) + checksum::sum(all)) == 0
    }

    /// Returns the end of the urgent data.
    pub fn urgent(&self) -> u16 {
        get16(self.bytes.as_ref(), 18)
    }

    /// Returns the raw options.
    pub fn options(&self) -> &[u8] {
        &self.bytes.as_ref()[HEADER_LEN..self.header_len()]
    }

    /// Returns the bytes after the header.
    pub fn payload(&self) -> &[u8] {
        &self.bytes.as_ref()[self.header_len()..]
    }
}

/// A header without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The number of the first byte of the payload.
    pub sequence: u32,
    /// The number of the next byte expected from the receiver.
    pub acknowledgement: u32,
    /// The flags.
    pub flags: Flags,
    /// Receive window in bytes, before scaling.
    pub window: u16,
}

impl Repr {
    /// Parses the header. Options and urgent data are not part of it; the packet has them.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Repr {
        Repr {
            source_port: packet.source_port(),
            destination_port: packet.destination_port(),
            sequence: packet.sequence(),
            acknowledgement: packet.acknowledgement(),
            flags: packet.flags(),
            window: packet.window(),
        }
    }

    /// Writes the header, including the checksum, to the start of `segment`; the rest is the payload.
    ///
    /// # Panics
    /// Panics if `segment` is shorter than [`HEADER_LEN`].
    pub fn emit(&self, segment: &mut [u8], addresses: Addresses) {
        put16(segment, 0, self.source_port);
        put16(segment, 2, self.destination_port);
        put32(segment, 4, self.sequence);
        put32(segment, 8, self.acknowledgement);
        put16(segment, 12, 5 << 12 | self.flags.0 & 0xfff);
        put16(segment, 14, self.window);
        put16(segment, 16, 0);
        put16(segment, 18, 0);
        let value = checksum::finish(addresses.pseudo(TCP, segment.len()) + checksum::sum(segment));
        put16(segment, 16, value);
    }

    /// Returns the segment with this header and this payload.
    pub fn packet(&self, addresses: Addresses, payload: &[u8]) -> Vec<u8> {
        let mut bytes = crate::field::with_payload(HEADER_LEN, payload);
        self.emit(&mut bytes, addresses);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_round_trip() {
        let repr = Repr {
            source_port: 40000,
            destination_port: 80,
            sequence: 0x0102_0304,
            acknowledgement: 5,
            flags: Flags::SYN | Flags::ACK,
            window: 1024,
        };
        let addresses = Addresses::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let mut bytes = repr.packet(addresses, b"payload");
        let packet = Packet::new_checked(&bytes).unwrap();
        assert_eq!((Repr::parse(&packet), packet.payload()), (repr, &b"payload"[..]));
        assert!(packet.is_checksum_right(addresses));
        bytes[25] ^= 1;
        assert!(!Packet::new_checked(&bytes).unwrap().is_checksum_right(addresses));
        bytes[12] = 0x70;
        assert!(Packet::new_checked(&bytes).unwrap_err().to_string().contains("28 bytes are needed and 27"));
        bytes[12] = 0x40;
        assert!(Packet::new_checked(&bytes).is_err());
    }

    #[test]
    fn flags_have_names() {
        assert_eq!((Flags::SYN | Flags::ACK).to_string(), "SYN,ACK");
        assert_eq!(Flags(0xf00).to_string(), "no flags");
    }
}
