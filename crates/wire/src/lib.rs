//! Packet formats: the bytes on a wire and what they mean.
//!
//! Each format has a module with the same two types: a *view*, `Packet<T>`, which lays named fields over bytes that
//! were checked to be long enough, and a *meaning*, `Repr`, a plain struct that is `parse`d from a view and `emit`ted
//! as bytes. `Repr::packet` puts a header before a payload, so that formats stack:
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
//! [`checksum`] has the Internet checksum, [`offload`] finishes what a network stack left to a network card (partial
//! checksums, over-long TCP segments), [`describe`] says in one line what a frame is, and [`pcap`] reads and writes
//! capture files.
//!
//! No input makes anything here panic: a view is only made of bytes that hold its header and whose length fields stay
//! inside. The crate does no input or output of its own: capture files are read from whatever [`std::io::Read`] it is
//! handed. It knows nothing of P4, of ports or of clocks.

#![forbid(unsafe_code)]

pub mod arp;
pub mod checksum;
mod describe;
pub mod ethernet;
mod field;
pub mod icmpv4;
pub mod ipv4;
pub mod ipv6;
pub mod itch;
pub mod moldudp64;
pub mod offload;
pub mod pcap;
pub mod tcp;
pub mod udp;
pub mod vlan;

pub use describe::describe;

/// Why bytes are not a packet of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Too few bytes for the header, or for the length that the header names.
    #[error("{format}: {needed} bytes are needed and {have} are there")]
    Truncated {
        /// The format.
        format: &'static str,
        /// Bytes that are needed.
        needed: usize,
        /// Bytes that are there.
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
