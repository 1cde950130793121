//! Parses and emits RoCEv2 (InfiniBand Architecture Specification, volume 1, chapter 9, and its annex A17): RDMA in UDP
//! datagrams to port [`PORT`], with the headers of the reliable connection.
//!
//! ```text
//! IP | UDP | BTH 12 | headers of the opcode | payload | pad 0-3 | ICRC 4
//!
//! headers of an opcode: RETH 16, AETH 4, AtomicETH 28, AtomicAckETH 8, ImmDt 4
//! ```
//!
//! [`Packet`] is a view of the UDP payload, and [`Repr`] its headers. The integrity check covers bytes of IP and UDP,
//! so [`icrc`] works on complete IP packets. [`Psn`] is a packet sequence number, [`Mtu`] the maximum payload of a
//! packet; longer messages take several.

mod extension;
pub mod icrc;
mod mtu;
mod opcode;
mod psn;
mod syndrome;
#[cfg(test)]
mod tests;

use crate::Malformed;
use crate::field::{get16, get32, put16, put32, require};

pub use extension::{Aeth, AtomicEth, Extension, Reth};
pub use mtu::Mtu;
pub use opcode::{Opcode, Position};
pub use psn::{PSN_MASK, Psn};
pub use syndrome::{NakCode, Syndrome, rnr_timer_ns};

/// The UDP destination port of RoCEv2 (annex A17, assigned by IANA).
pub const PORT: u16 = 4791;
/// Size of the base transport header in bytes.
pub const BTH_LEN: usize = 12;
/// Size of the integrity check at the end of a packet, in bytes.
pub const ICRC_LEN: usize = 4;
/// Partition key of the default partition, with full membership.
pub const DEFAULT_PARTITION: u16 = 0xffff;
/// Number of bits of a queue pair number.
pub const QP_BITS: u32 = 24;

pub(crate) const FORMAT: &str = "RoCE";

/// The payload of a UDP datagram with complete headers, pad and integrity check.
#[derive(Clone, Copy, Debug)]
pub struct Packet<T> {
    bytes: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks that the headers of the opcode, the pad and the integrity check are complete. Does not verify the
    /// integrity check; see [`icrc::is_right`].
    ///
    /// # Errors
    /// Returns an error if they are not, or if the version of the headers is not 0.
    pub fn new_checked(bytes: T) -> Result<Self, Malformed> {
        let all = bytes.as_ref();
        require(FORMAT, all, BTH_LEN + ICRC_LEN)?;
        let version = all[1] & 0xf;
        if version != 0 {
            return Err(Malformed::Field { format: FORMAT, field: "version", value: version.into() });
        }
        let packet = Packet { bytes: all };
        require(FORMAT, all, packet.header_len() + packet.pad_len() + ICRC_LEN)?;
        Ok(Packet { bytes })
    }

    /// Returns the operation, and the place of the packet in its message.
    pub fn opcode(&self) -> Opcode {
        Opcode::from(self.bytes.as_ref()[0])
    }

    /// Whether the receiver is asked to raise an event.
    pub fn is_solicited(&self) -> bool {
        self.bytes.as_ref()[1] & 0x80 != 0
    }

    /// Returns the number of bytes between the payload and the integrity check, 0 to 3.
    pub fn pad_len(&self) -> usize {
        usize::from(self.bytes.as_ref()[1] >> 4 & 3)
    }

    /// Returns the partition key.
    pub fn partition_key(&self) -> u16 {
        get16(self.bytes.as_ref(), 2)
    }

    /// Whether the sender reports congestion on the path back (BECN), or a switch on this path (FECN).
    pub fn is_congested(&self) -> bool {
        self.bytes.as_ref()[4] & 0xc0 != 0
    }

    /// Returns the number of the receiver's queue pair, 24 bits.
    pub fn destination_qp(&self) -> u32 {
        get32(self.bytes.as_ref(), 4) & PSN_MASK
    }

    /// Whether an acknowledgement is requested.
    pub fn is_ack_requested(&self) -> bool {
        self.bytes.as_ref()[8] & 0x80 != 0
    }

    /// Returns the sequence number of the packet.
    pub fn psn(&self) -> Psn {
        Psn::new(get32(self.bytes.as_ref(), 8))
    }

    /// Returns the size of BTH and the opcode's other headers in bytes.
    pub fn header_len(&self) -> usize {
        BTH_LEN + self.opcode().extension_len()
    }

    /// Returns the headers of the opcode.
    pub fn extension(&self) -> Extension {
        Extension::parse(self.opcode(), &self.bytes.as_ref()[BTH_LEN..])
    }

    /// Returns the bytes between headers and pad.
    pub fn payload(&self) -> &[u8] {
        let all = self.bytes.as_ref();
        &all[self.header_len()..all.len() - ICRC_LEN - self.pad_len()]
    }

    /// Returns the integrity check as sent. It is stored with the lowest byte first.
    pub fn icrc(&self) -> u32 {
        let all = self.bytes.as_ref();
        get32(all, all.len() - ICRC_LEN).swap_bytes()
    }
}

/// The headers of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Operation, and place of the packet in its message.
    pub opcode: Opcode,
    /// Whether the receiver is asked to raise an event.
    pub is_solicited: bool,
    /// Partition key, usually [`DEFAULT_PARTITION`].
    pub partition_key: u16,
    /// Number of the receiver's queue pair, 24 bits.
    pub destination_qp: u32,
    /// Whether an acknowledgement is requested.
    pub is_ack_requested: bool,
    /// Sequence number of the packet.
    pub psn: Psn,
    /// The other headers; they must be those of the opcode.
    pub extension: Extension,
}

impl Repr {
    /// Creates the headers of a packet in the default partition that requests no acknowledgement.
    pub fn new(opcode: Opcode, destination_qp: u32, psn: Psn, extension: Extension) -> Repr {
        Repr {
            opcode,
            is_solicited: false,
            partition_key: DEFAULT_PARTITION,
            destination_qp,
            is_ack_requested: false,
            psn,
            extension,
        }
    }

    /// Parses the headers, without the congestion bits of the packet.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Repr {
        Repr {
            opcode: packet.opcode(),
            is_solicited: packet.is_solicited(),
            partition_key: packet.partition_key(),
            destination_qp: packet.destination_qp(),
            is_ack_requested: packet.is_ack_requested(),
            psn: packet.psn(),
            extension: packet.extension(),
        }
    }

    /// Returns the size of the headers in bytes.
    pub fn header_len(&self) -> usize {
        BTH_LEN + self.extension.len()
    }

    /// Returns the size of the UDP payload with `payload_len` bytes of payload.
    pub fn packet_len(&self, payload_len: usize) -> usize {
        self.header_len() + payload_len + pad_len(payload_len) + ICRC_LEN
    }

    /// Writes the headers to the start of `buffer`, for `payload_len` bytes after them. Pad and integrity check are
    /// left to the caller.
    ///
    /// # Panics
    /// Panics if `buffer` is shorter than the headers, or if the headers are not those of the opcode.
    pub fn emit(&self, buffer: &mut [u8], payload_len: usize) {
        assert_eq!(self.extension.len(), self.opcode.extension_len(), "{:?} has other headers", self.opcode);
        buffer[0] = self.opcode.into();
        buffer[1] = u8::from(self.is_solicited) << 7 | (pad_len(payload_len) as u8) << 4;
        put16(buffer, 2, self.partition_key);
        put32(buffer, 4, self.destination_qp & PSN_MASK);
        put32(buffer, 8, u32::from(self.is_ack_requested) << 31 | self.psn.number());
        self.extension.emit(&mut buffer[BTH_LEN..]);
    }

    /// Returns the UDP payload with these headers, this payload, its pad, and zeros for the integrity check, which
    /// [`icrc::seal`] fills in once the packet has its IP header.
    pub fn packet(&self, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; self.packet_len(payload.len())];
        self.emit(&mut bytes, payload.len());
        bytes[self.header_len()..][..payload.len()].copy_from_slice(payload);
        bytes
    }
}

/// Returns the number of bytes that make a payload a multiple of four.
#[inline]
pub fn pad_len(payload_len: usize) -> usize {
    payload_len.wrapping_neg() & 3
}
