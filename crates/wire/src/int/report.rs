//! Parses and emits reports of INT sinks (P4.org Applications Working Group, *Telemetry Report Format* 2.0), the
//! payload of UDP datagrams to a collector.
//!
//! ```text
//! group  0 version 4 | hardware 6 | sequence number 22 | node 32
//! report 0 report type 4 | inner type 4 | length 8 | metadata length 8 | dropped 1 | queue 1 | flow 1 | transit 1 | 0 4
//!       32 bitmap of the metadata 16 | domain 16 | domain bitmap 16 | domain status 16
//!       96 metadata of the sink | the packet, cut
//! ```
//!
//! Lengths are in words of 4 bytes, without the first one. One report a datagram; the packet begins with its IP header
//! and ends with the INT stack of the hops before the sink.

use crate::Malformed;
use crate::field::{get16, get32, put16, put32, require};

/// Size of the group header in bytes.
pub const GROUP_LEN: usize = 8;
/// Size of the fixed part of a report in bytes.
pub const FIXED_LEN: usize = 12;
/// The number after the highest sequence number.
pub const SEQUENCE_END: u32 = 1 << 22;

const FORMAT: &str = "telemetry report";
const VERSION: u8 = 2;
/// Report type of INT.
const INT: u8 = 1;
/// Inner types of IP packets.
const IPV4: u8 = 4;
const IPV6: u8 = 5;
/// Maximum number of words after the first one.
const MAX_WORDS: usize = 0xff;
/// The bit for a tracked flow: the packet carried INT.
const FLOW: u8 = 0x20;

/// A datagram with one report.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T> {
    bytes: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks version, types and lengths. Further reports of the datagram are ignored.
    ///
    /// # Errors
    /// Returns an error if a length is wrong, or if it is no report about an IP packet with INT.
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        let all = bytes.as_ref();
        require(FORMAT, all, GROUP_LEN + FIXED_LEN)?;
        let field = |field, value: u8| Err(Malformed::Field { format: FORMAT, field, value: value.into() });
        if all[0] >> 4 != VERSION {
            return field("version", all[0] >> 4);
        }
        if all[8] >> 4 != INT {
            return field("report type", all[8] >> 4);
        }
        if !matches!(all[8] & 0xf, IPV4 | IPV6) {
            return field("inner type", all[8] & 0xf);
        }
        if usize::from(all[9]) < 2 + usize::from(all[10]) {
            return field("length", all[9]);
        }
        require(FORMAT, all, GROUP_LEN + 4 + 4 * usize::from(all[9]))?;
        Ok(Packet { bytes })
    }

    /// Returns the number of the node that sends the report.
    pub fn node(&self) -> u32 {
        get32(self.bytes.as_ref(), 4)
    }

    /// Returns the number of the report, modulo 2^22.
    pub fn sequence(&self) -> u32 {
        get32(self.bytes.as_ref(), 0) & (SEQUENCE_END - 1)
    }

    /// Returns the bitmap of the metadata. Bits 1 to 8 are those of INT instructions.
    pub fn metadata_bits(&self) -> u16 {
        get16(self.bytes.as_ref(), 12)
    }

    /// Returns the metadata of the node that sends the report.
    pub fn metadata(&self) -> &[u8] {
        let all = self.bytes.as_ref();
        &all[GROUP_LEN + FIXED_LEN..][..4 * usize::from(all[10])]
    }

    /// Whether the packet is one of IPv6.
    pub fn is_ipv6(&self) -> bool {
        self.bytes.as_ref()[8] & 0xf == IPV6
    }

    /// Returns the first bytes of the packet, from its IP header on.
    pub fn packet(&self) -> &[u8] {
        let all = self.bytes.as_ref();
        let start = GROUP_LEN + FIXED_LEN + 4 * usize::from(all[10]);
        &all[start..GROUP_LEN + 4 + 4 * usize::from(all[9])]
    }
}

/// A report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr<'a> {
    /// The number of the node that sends it.
    pub node: u32,
    /// The number of the report; its low 22 bits are sent.
    pub sequence: u32,
    /// Bitmap of the metadata.
    pub metadata_bits: u16,
    /// The metadata of this node, whole words.
    pub metadata: &'a [u8],
    /// Whether the packet is one of IPv6.
    pub is_ipv6: bool,
    /// The packet, from its IP header on. A part that does not fit, or is no whole word, is cut off.
    pub packet: &'a [u8],
}

impl Repr<'_> {
    /// Returns the payload of the datagram.
    ///
    /// # Panics
    /// Panics if the metadata do not consist of words, or are longer than 1012 bytes.
    pub fn emit(&self) -> Vec<u8> {
        let metadata = self.metadata.len() / 4;
        assert!(self.metadata.len().is_multiple_of(4) && metadata <= MAX_WORDS - 2, "metadata are at most 253 words");
        let packet = (self.packet.len() / 4).min(MAX_WORDS - 2 - metadata);
        let mut bytes = vec![0; GROUP_LEN + FIXED_LEN];
        put32(&mut bytes, 0, u32::from(VERSION) << 28 | self.sequence & (SEQUENCE_END - 1));
        put32(&mut bytes, 4, self.node);
        bytes[8] = INT << 4 | if self.is_ipv6 { IPV6 } else { IPV4 };
        bytes[9] = (2 + metadata + packet) as u8;
        bytes[10] = metadata as u8;
        bytes[11] = FLOW;
        put16(&mut bytes, 12, self.metadata_bits);
        bytes.extend_from_slice(self.metadata);
        bytes.extend_from_slice(&self.packet[..4 * packet]);
        bytes
    }
}
