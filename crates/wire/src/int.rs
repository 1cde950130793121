//! Parses and emits In-band Network Telemetry of the kind that packets carry, INT-MD (P4.org Applications Working
//! Group, *INT Dataplane Specification* 2.1, sections 5.7.2 and 5.8), between a UDP or TCP header and its payload.
//!
//! ```text
//! shim    0 type 4 | next protocol type 2 | reserved 2 | length 8, in words | UDP port, IP protocol or DSCP 16
//! header 32 version 4 | discard 1 | hops exceeded 1 | MTU exceeded 1 | reserved 12 | words of a hop 5 | remaining hops 8
//!        64 instruction bitmap 16 | domain 16
//!        96 domain instructions 16 | domain flags 16
//! stack 128 the metadata of each hop, the last hop first
//! ```
//!
//! A word has 4 bytes. The length is that of header and stack, without the shim. [`find`] locates the shim in a frame
//! by the [`Marker`] of a domain; [`report`] has the format of a sink's reports.

mod place;
pub mod report;

pub use place::{IntPlace, find, place_for};

use std::fmt;
use std::str::FromStr;

use crate::Malformed;
use crate::field::{get16, put16, require};

/// Default UDP destination port of packets with INT. The specification leaves the number to IANA, which has assigned
/// none.
pub const UDP_PORT: u16 = 0x4954;
/// Size of the shim in bytes.
pub const SHIM_LEN: usize = 4;
/// Size of the metadata header in bytes.
pub const HEADER_LEN: usize = 12;
/// Version of the metadata header.
pub const VERSION: u8 = 2;
/// Bytes in a word.
pub const WORD: usize = 4;
/// Type of INT-MD. Type 2 is for destinations, 3 is INT-MX.
const MD: u8 = 1;
/// Instructions that request two words: both timestamps, and the interfaces of level 2.
const TWO_WORDS: u16 = 0b0000_1110_0000_0000;
const FORMAT: &str = "INT";

/// Returns the length of the metadata that an instruction bitmap requests of a hop, in bytes.
pub fn metadata_len(instructions: u16) -> usize {
    WORD * (instructions.count_ones() + (instructions & TWO_WORDS).count_ones()) as usize
}

/// The mark of packets with INT, the same in a whole domain (section 5.7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// The UDP destination port.
    UdpPort(u16),
    /// The six bits of the DSCP, in UDP and TCP packets.
    Dscp(u8),
}

impl Default for Marker {
    fn default() -> Self {
        Marker::UdpPort(UDP_PORT)
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Marker::UdpPort(port) => write!(f, "udp:{port}"),
            Marker::Dscp(dscp) => write!(f, "dscp:{dscp}"),
        }
    }
}

/// The reason why a text is no marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected udp:PORT (1 to 65535) or dscp:VALUE (0 to 63)")]
pub struct NotAMarker;

impl FromStr for Marker {
    type Err = NotAMarker;

    fn from_str(text: &str) -> Result<Marker, NotAMarker> {
        let (kind, number) = text.split_once(':').ok_or(NotAMarker)?;
        let number: u16 = number.parse().map_err(|_| NotAMarker)?;
        match (kind, number) {
            ("udp", 1..) => Ok(Marker::UdpPort(number)),
            ("dscp", 0..64) => Ok(Marker::Dscp(number as u8)),
            _ => Err(NotAMarker),
        }
    }
}

/// What a sink restores, and what follows the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextProtocol {
    /// The payload of UDP or TCP; the DSCP was this one (next protocol type 0).
    Payload {
        /// The original DSCP, 0 if the source does not say.
        dscp: u8,
    },
    /// The payload of UDP; its destination port was this one (type 1).
    UdpPayload {
        /// The original port.
        port: u16,
    },
    /// The original header after IP; the source put a UDP header before it (type 2).
    Transport {
        /// The original protocol number of IP.
        protocol: u8,
    },
}

/// A shim and a metadata header, complete with their stack.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T> {
    bytes: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks type, version and lengths. Bytes after the stack are payload.
    ///
    /// The stack has to be a multiple of a hop's length, unless domain instructions let the source add more.
    ///
    /// # Errors
    /// Returns an error if a length is wrong or a value is unknown.
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        let all = bytes.as_ref();
        require(FORMAT, all, SHIM_LEN + HEADER_LEN)?;
        let field = |field, value: usize| Err(Malformed::Field { format: FORMAT, field, value: value as u32 });
        if all[0] >> 4 != MD {
            return field("type", (all[0] >> 4).into());
        }
        if all[0] >> 2 & 3 == 3 {
            return field("next protocol type", 3);
        }
        let packet = Packet { bytes: all };
        let Some(stack) = packet.length().checked_sub(SHIM_LEN + HEADER_LEN) else {
            return field("length", all[1].into());
        };
        require(FORMAT, all, packet.length())?;
        if all[4] >> 4 != VERSION {
            return field("version", (all[4] >> 4).into());
        }
        let hop = packet.hop_len();
        if hop < metadata_len(packet.instructions()) || hop == 0 {
            return field("length of a hop", hop);
        }
        if packet.ds_instructions() == 0 && !stack.is_multiple_of(hop) {
            return field("length of the stack", stack);
        }
        Ok(Packet { bytes })
    }

    fn all(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Returns the length of shim, header and stack in bytes.
    pub fn length(&self) -> usize {
        SHIM_LEN + WORD * usize::from(self.all()[1])
    }

    /// Returns what the sink restores.
    pub fn next_protocol(&self) -> NextProtocol {
        let all = self.all();
        match all[0] >> 2 & 3 {
            1 => NextProtocol::UdpPayload { port: get16(all, 2) },
            2 => NextProtocol::Transport { protocol: all[3] },
            _ => NextProtocol::Payload { dscp: all[3] >> 2 },
        }
    }

    /// Whether the sink has to discard the packet.
    pub fn is_discarded(&self) -> bool {
        self.all()[4] & 8 != 0
    }

    /// Whether a hop added nothing because no hops remained.
    pub fn is_hops_exceeded(&self) -> bool {
        self.all()[4] & 4 != 0
    }

    /// Whether a hop added nothing because the packet would have exceeded the MTU.
    pub fn is_mtu_exceeded(&self) -> bool {
        self.all()[4] & 2 != 0
    }

    /// Returns the length of the metadata of a hop in bytes.
    pub fn hop_len(&self) -> usize {
        WORD * usize::from(self.all()[6] & 0x1f)
    }

    /// Returns the number of hops that may still add metadata.
    pub fn remaining_hops(&self) -> u8 {
        self.all()[7]
    }

    /// Returns the instruction bitmap. Bit 0 of the specification is the most significant.
    pub fn instructions(&self) -> u16 {
        get16(self.all(), 8)
    }

    /// Returns the number of the domain; 0 is known to all.
    pub fn domain(&self) -> u16 {
        get16(self.all(), 10)
    }

    /// Returns the domain's own instructions.
    pub fn ds_instructions(&self) -> u16 {
        get16(self.all(), 12)
    }

    /// Returns the domain's own flags.
    pub fn ds_flags(&self) -> u16 {
        get16(self.all(), 14)
    }

    /// Returns the metadata of all hops, the last hop first.
    pub fn stack(&self) -> &[u8] {
        &self.all()[SHIM_LEN + HEADER_LEN..self.length()]
    }
}

/// Shim and metadata header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// What the sink restores.
    pub next: NextProtocol,
    /// Whether the sink discards the packet.
    pub is_discarded: bool,
    /// Whether a hop added nothing because no hops remained.
    pub is_hops_exceeded: bool,
    /// Whether a hop added nothing because of the MTU.
    pub is_mtu_exceeded: bool,
    /// Length of the metadata of a hop in words, at most 31.
    pub hop_words: u8,
    /// Number of hops that may still add metadata.
    pub remaining_hops: u8,
    /// Instruction bitmap.
    pub instructions: u16,
    /// Number of the domain.
    pub domain: u16,
    /// The domain's own instructions.
    pub ds_instructions: u16,
    /// The domain's own flags.
    pub ds_flags: u16,
}

impl Repr {
    /// Creates the header of a source that adds no metadata of its own, for at most `hops` hops.
    pub fn new(next: NextProtocol, instructions: u16, hops: u8) -> Repr {
        Repr {
            next,
            is_discarded: false,
            is_hops_exceeded: false,
            is_mtu_exceeded: false,
            hop_words: (metadata_len(instructions) / WORD) as u8,
            remaining_hops: hops,
            instructions,
            domain: 0,
            ds_instructions: 0,
            ds_flags: 0,
        }
    }

    /// Parses shim and header.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Repr {
        Repr {
            next: packet.next_protocol(),
            is_discarded: packet.is_discarded(),
            is_hops_exceeded: packet.is_hops_exceeded(),
            is_mtu_exceeded: packet.is_mtu_exceeded(),
            hop_words: (packet.hop_len() / WORD) as u8,
            remaining_hops: packet.remaining_hops(),
            instructions: packet.instructions(),
            domain: packet.domain(),
            ds_instructions: packet.ds_instructions(),
            ds_flags: packet.ds_flags(),
        }
    }

    /// Returns shim, header and this stack. Reserved bits are zero.
    ///
    /// # Panics
    /// Panics if the stack does not consist of words, or is longer than 1008 bytes.
    pub fn packet(&self, stack: &[u8]) -> Vec<u8> {
        let words = (HEADER_LEN + stack.len()) / WORD;
        assert!(stack.len().is_multiple_of(WORD) && words <= 0xff, "a stack has at most 252 words");
        let mut bytes = vec![0; SHIM_LEN + HEADER_LEN];
        let (kind, value) = match self.next {
            NextProtocol::Payload { dscp } => (0, u16::from(dscp & 0x3f) << 2),
            NextProtocol::UdpPayload { port } => (1, port),
            NextProtocol::Transport { protocol } => (2, protocol.into()),
        };
        bytes[0] = MD << 4 | kind << 2;
        bytes[1] = words as u8;
        put16(&mut bytes, 2, value);
        let flags = [(self.is_discarded, 8), (self.is_hops_exceeded, 4), (self.is_mtu_exceeded, 2)];
        bytes[4] = flags.iter().filter(|(is_set, _)| *is_set).fold(VERSION << 4, |byte, (_, bit)| byte | bit);
        bytes[6] = self.hop_words & 0x1f;
        bytes[7] = self.remaining_hops;
        let words = [self.instructions, self.domain, self.ds_instructions, self.ds_flags];
        (8..).step_by(2).zip(words).for_each(|(at, word)| put16(&mut bytes, at, word));
        bytes.extend_from_slice(stack);
        bytes
    }
}

#[cfg(test)]
mod tests;
