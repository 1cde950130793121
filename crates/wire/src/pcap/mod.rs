//! Reads and writes capture files: classic pcap in microseconds or nanoseconds and either byte order, and the packet
//! blocks of pcapng.
//!
//! [`Reader`] takes any [`std::io::Read`] and yields frames one by one, so a file of any size takes the memory of one
//! frame. A length in the file is limited to [`MAX_FRAME`]. [`Writer`] writes classic pcap in nanoseconds. Only
//! Ethernet frames are supported; for a file of another link type, the error names the type.
//!
//! Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng, the registry of link types at tcpdump.org.

mod classic;
mod link_type;
mod ng;
mod read;
mod write;

pub use read::Reader;
pub use write::Writer;

/// Maximum length of a frame that is read or written, in bytes; the same as tcpdump's.
pub const MAX_FRAME: u32 = 262_144;

/// One frame of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// The captured bytes, from the Ethernet header on.
    pub data: Vec<u8>,
    /// Capture time in nanoseconds since 1970; 0 where the file has none (simple packet blocks).
    pub time_ns: u64,
    /// Length of the frame on the wire in bytes; more than `data.len()` if the capture truncated it.
    pub original_len: u32,
}

impl Captured {
    /// Whether the capture truncated the frame.
    pub fn is_truncated(&self) -> bool {
        self.original_len as usize > self.data.len()
    }
}

/// The reason why a capture file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum PcapError {
    /// The input has no bytes at all.
    #[error("the file is empty; a capture without packets still has a header of 24 bytes")]
    Empty,
    /// The first four bytes are not those of a capture file.
    #[error("not a capture file: it begins with {magic:02x?}, which is neither pcap nor pcapng{hint}")]
    NotPcap {
        /// The first bytes.
        magic: [u8; 4],
        /// Probable format of the file, as the end of the sentence; may be empty.
        hint: &'static str,
    },
    /// The version of the format is not supported.
    #[error("version {major}.{minor} of {format} is not known; versions {known} are")]
    Version {
        /// `pcap` or `pcapng`.
        format: &'static str,
        /// The version's first number.
        major: u16,
        /// The version's second number.
        minor: u16,
        /// Supported versions.
        known: &'static str,
    },
    /// The frames are not Ethernet.
    #[error(
        "the packets have link type {link_type} ({name}), and only Ethernet (1) can be read; capture on one Ethernet interface (not on `any`)"
    )]
    LinkType {
        /// The number in the file.
        link_type: u32,
        /// Its name in the registry, or `unknown`.
        name: &'static str,
    },
    /// A length exceeds the limit of a frame or block.
    #[error("packet {packet}: {what} of {len} bytes is beyond the limit of {limit}; the file is damaged")]
    TooLong {
        /// Number of the packet, counted from 1.
        packet: u64,
        /// Item with this length.
        what: &'static str,
        /// Length in the file.
        len: u64,
        /// Maximum length.
        limit: u64,
    },
    /// A block of pcapng is inconsistent.
    #[error("packet {packet}: {what}; the file is damaged")]
    Damaged {
        /// Number of the packet, counted from 1.
        packet: u64,
        /// Inconsistency.
        what: &'static str,
    },
    /// The input ends inside a packet or a block.
    #[error("the file ends inside packet {packet}; it was cut, or is still being written")]
    CutShort {
        /// Number of the packet, counted from 1.
        packet: u64,
    },
    /// An I/O error.
    #[error("input or output failed: {0}")]
    Io(#[from] std::io::Error),
}

#[cfg(test)]
mod tests;
