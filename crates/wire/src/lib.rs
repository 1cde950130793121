//! Defines packet formats: views of the bytes on a wire, and their meaning.
//!
//! Each format has a module with the same two types. A *view*, `Packet<T>`, gives access to named fields of bytes that
//! were checked to be long enough. A *meaning*, `Repr`, is a plain struct that is `parse`d from a view and `emit`ted as
//! bytes. `Repr::packet` puts a header in front of a payload, so formats stack:
//!
//! ```
//! use wire::{ethernet, ipv4, udp};
//! let udp = udp::Repr { source_port: 1000, destination_port: 53 };
//! let ip = ipv4::Repr::new([10, 0, 1, 1].into(), [10, 0, 2, 2].into(), ipv4::UDP);
//! let ethernet = ethernet::Repr {
//!     destination: "08:00:00:00:02:02".parse()?,
//!     source: "08:00:00:00:01:01".parse()?,
//!     ethertype: ethernet::IPV4,
//! };
//! let frame = ethernet.packet(&ip.packet(&udp.packet(ip.addresses(), b"question")));
//! assert_eq!(wire::describe(&frame), "10.0.1.1:1000 > 10.0.2.2:53 UDP 8 bytes, ttl 64");
//! # Ok::<(), wire::ethernet::NotAnAddress>(())
//! ```
//!
//! [`checksum`] has the Internet checksum, [`offload`] finishes frames that a network stack left to a network card
//! (partial checksums, over-long TCP segments), [`describe`] summarises a frame in one line, and [`pcap`] reads and
//! writes capture files.
//!
//! No input causes a panic: a view is only created from bytes that contain its header, and its length fields stay
//! inside. The crate does no I/O of its own: capture files are read from any [`std::io::Read`]. It knows nothing of P4,
//! of ports or of clocks.

#![forbid(unsafe_code)]

pub mod arp;
pub mod checksum;
mod describe;
pub mod ethernet;
mod field;
pub mod icmpv4;
pub mod int;
pub mod ipv4;
pub mod ipv6;
pub mod itch;
mod marks;
pub mod moldudp64;
pub mod offload;
pub mod pcap;
pub mod roce;
pub mod tcp;
pub mod tpp;
pub mod udp;
pub mod vlan;

pub use describe::describe;
pub use marks::FrameMarks;

/// The reason why bytes are not a packet of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Too few bytes for the header, or for the length that the header names.
    #[error("{format}: {needed} bytes are needed and {have} are there")]
    Truncated {
        /// The format.
        format: &'static str,
        /// Number of bytes needed.
        needed: usize,
        /// Number of bytes available.
        have: usize,
    },
    /// A field has a value that the format does not allow.
    #[error("{format}: {field} cannot be {value}")]
    Field {
        /// The format.
        format: &'static str,
        /// The field.
        field: &'static str,
        /// Its value.
        value: u32,
    },
}
