//! The headers between BTH and payload (volume 1, section 9.3).

use super::{Opcode, PSN_MASK, Position, Syndrome};
use crate::field::{array, get32, put32};

/// Sizes in bytes.
pub(super) const AETH_LEN: usize = 4;
pub(super) const ATOMIC_ACK_LEN: usize = 8;
pub(super) const IMMEDIATE_LEN: usize = 4;

/// The memory that a request names: the RDMA extended transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reth {
    /// Virtual address of the first byte.
    pub address: u64,
    /// Key of the memory region.
    pub key: u32,
    /// Number of bytes.
    pub len: u32,
}

/// An acknowledgement: the acknowledge extended transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aeth {
    /// The verdict.
    pub syndrome: Syndrome,
    /// Number of messages that the responder has completed, 24 bits.
    pub message_number: u32,
}

/// An atomic operation: the atomic extended transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicEth {
    /// Virtual address of the eight bytes, a multiple of eight.
    pub address: u64,
    /// Key of the memory region.
    pub key: u32,
    /// Value to swap in, or to add.
    pub swap_or_add: u64,
    /// Value to compare with; unused by an addition.
    pub compare: u64,
}

/// The headers between BTH and payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// None.
    None,
    /// A memory range.
    Reth(Reth),
    /// An acknowledgement.
    Aeth(Aeth),
    /// An atomic operation.
    AtomicEth(AtomicEth),
    /// An acknowledgement with the value before the atomic operation.
    AtomicAckEth(Aeth, u64),
    /// Immediate data.
    Immediate([u8; IMMEDIATE_LEN]),
    /// A memory range and immediate data.
    RethImmediate(Reth, [u8; IMMEDIATE_LEN]),
}

impl Reth {
    /// Size in bytes.
    pub const LEN: usize = 16;

    #[inline]
    fn parse(bytes: &[u8]) -> Reth {
        Reth { address: u64::from_be_bytes(array(bytes, 0)), key: get32(bytes, 8), len: get32(bytes, 12) }
    }

    #[inline]
    fn emit(&self, bytes: &mut [u8]) {
        bytes[..8].copy_from_slice(&self.address.to_be_bytes());
        put32(bytes, 8, self.key);
        put32(bytes, 12, self.len);
    }
}

impl Aeth {
    #[inline]
    fn parse(bytes: &[u8]) -> Aeth {
        Aeth { syndrome: bytes[0].into(), message_number: get32(bytes, 0) & PSN_MASK }
    }

    #[inline]
    fn emit(&self, bytes: &mut [u8]) {
        put32(bytes, 0, u32::from(u8::from(self.syndrome)) << 24 | self.message_number & PSN_MASK);
    }
}

impl AtomicEth {
    /// Size in bytes.
    pub const LEN: usize = 28;

    #[inline]
    fn parse(bytes: &[u8]) -> AtomicEth {
        AtomicEth {
            address: u64::from_be_bytes(array(bytes, 0)),
            key: get32(bytes, 8),
            swap_or_add: u64::from_be_bytes(array(bytes, 12)),
            compare: u64::from_be_bytes(array(bytes, 20)),
        }
    }

    #[inline]
    fn emit(&self, bytes: &mut [u8]) {
        bytes[..8].copy_from_slice(&self.address.to_be_bytes());
        put32(bytes, 8, self.key);
        bytes[12..20].copy_from_slice(&self.swap_or_add.to_be_bytes());
        bytes[20..28].copy_from_slice(&self.compare.to_be_bytes());
    }
}

impl Extension {
    /// Parses the headers of an opcode. The caller has checked the length.
    #[inline]
    pub(super) fn parse(opcode: Opcode, bytes: &[u8]) -> Extension {
        match opcode {
            Opcode::ReadRequest | Opcode::Write(Position::First | Position::Only) => {
                Extension::Reth(Reth::parse(bytes))
            }
            Opcode::ReadResponse(Position::Middle) => Extension::None,
            Opcode::ReadResponse(_) | Opcode::Acknowledge => Extension::Aeth(Aeth::parse(bytes)),
            Opcode::AtomicAcknowledge => {
                Extension::AtomicAckEth(Aeth::parse(bytes), u64::from_be_bytes(array(bytes, AETH_LEN)))
            }
            Opcode::CompareSwap | Opcode::FetchAdd => Extension::AtomicEth(AtomicEth::parse(bytes)),
            Opcode::SendImmediate(_) | Opcode::WriteImmediate(false) => Extension::Immediate(array(bytes, 0)),
            Opcode::WriteImmediate(true) => Extension::RethImmediate(Reth::parse(bytes), array(bytes, Reth::LEN)),
            Opcode::Send(_) | Opcode::Write(_) | Opcode::Other(_) => Extension::None,
        }
    }

    /// Writes the headers to the start of `bytes`.
    ///
    /// # Panics
    /// Panics if `bytes` is shorter than they are.
    #[inline]
    pub fn emit(&self, bytes: &mut [u8]) {
        match self {
            Extension::None => {}
            Extension::Reth(reth) => reth.emit(bytes),
            Extension::Aeth(aeth) => aeth.emit(bytes),
            Extension::AtomicEth(atomic) => atomic.emit(bytes),
            Extension::AtomicAckEth(aeth, original) => {
                aeth.emit(bytes);
                bytes[AETH_LEN..][..ATOMIC_ACK_LEN].copy_from_slice(&original.to_be_bytes());
            }
            Extension::Immediate(data) => bytes[..IMMEDIATE_LEN].copy_from_slice(data),
            Extension::RethImmediate(reth, data) => {
                reth.emit(bytes);
                bytes[Reth::LEN..][..IMMEDIATE_LEN].copy_from_slice(data);
            }
        }
    }

    /// Returns the size in bytes.
    #[expect(clippy::len_without_is_empty, reason = "the size of a header")]
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Extension::None => 0,
            Extension::Reth(_) => Reth::LEN,
            Extension::Aeth(_) => AETH_LEN,
            Extension::AtomicEth(_) => AtomicEth::LEN,
            Extension::AtomicAckEth(..) => AETH_LEN + ATOMIC_ACK_LEN,
            Extension::Immediate(_) => IMMEDIATE_LEN,
            Extension::RethImmediate(..) => Reth::LEN + IMMEDIATE_LEN,
        }
    }
}
