//! Capture files: classic pcap in microseconds or nanoseconds and either byte order, and the packet blocks of pcapng.
//!
//! [`Reader`] takes any [`std::io::Read`] and yields frames one by one, so a file of any size costs the memory of one
//! frame. A length in the file is never believed beyond [`MAX_FRAME`]. [`Writer`] writes classic pcap in nanoseconds.
//! Only Ethernet frames are understood; a file of another link type is refused with its name.
//!
//! Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng, the registry of link types at tcpdump.org.

mod classic;
mod link_type;
mod ng;
mod read;
mod write;

pub use read::Reader;
pub use write::Writer;

/// The longest frame that is read or written, in bytes; what tcpdump allows too.
pub const MAX_FRAME: u32 = 262_144;

/// One frame of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// The bytes that were kept, from the Ethernet header on.
    pub data: Vec<u8>,
    /// When it was seen, in nanoseconds since 1970; 0 where the file does not say (simple packet blocks).
    pub time_ns: u64,
    /// How long the frame was on the wire; more than `data.len()` if the capture cut it.
    pub original_len: u32,
}

impl Captured {
    /// Whether the capture kept only the beginning of the frame.
    pub fn is_truncated(&self) -> bool {
        self.original_len as usize > self.data.len()
    }
}

/// Why a capture file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum PcapError {
    /// The input has no bytes at all.
    #[error("the file is empty; a capture without packets still has a header of 24 bytes")]
    Empty,
    /// The first four bytes are those of no capture file.
    #[error("not a capture file: it begins with {magic:02x?}, which is neither pcap nor pcapng{hint}")]
    NotPcap {
        /// The first bytes.
        magic: [u8; 4],
        /// What the file probably is, as the end of the sentence; may be empty.
        hint: &'static str,
    },
    /// A version of the format that is not known.
    #[error("version {major}.{minor} of {format} is not known; versions {known} are")]
    Version {
        /// `pcap` or `pcapng`.
        format: &'static str,
        /// The version's first number.
        major: u16,
        /// The version's second number.
        minor: u16,
        /// Those that can be read.
        known: &'static str,
    },
    /// Frames that are not Ethernet.
    #[error(
        "the packets have link type {link_type} ({name}), and only Ethernet (1) can be read; capture on one Ethernet interface (not on `any`)"
    )]
    LinkType {
        /// The number in the file.
        link_type: u32,
        /// Its name in the registry, or `unknown`.
        name: &'static str,
    },
    /// A length beyond what any frame or block has.
    #[error("packet {packet}: {what} of {len} bytes is beyond the limit of {limit}; the file is damaged")]
    TooLong {
        /// How many packets came before it, plus one.
        packet: u64,
        /// What claims the length.
        what: &'static str,
        /// The length claimed.
        len: u64,
        /// The greatest one allowed.
        limit: u64,
    },
    /// A block of pcapng that contradicts itself.
    #[error("packet {packet}: {what}; the file is damaged")]
    Damaged {
        /// How many packets came before it, plus one.
        packet: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The input ends inside a packet or a block.
    #[error("the file ends inside packet {packet}; it was cut, or is still being written")]
    CutShort {
        /// The packet it ends in, counted from 1.
        packet: u64,
    },
    /// The input or output failed.
    #[error("input or output failed: {0}")]
    Io(#[from] std::io::Error),
}

#[cfg(test)]
mod tests;
