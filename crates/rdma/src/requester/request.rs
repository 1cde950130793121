//! A request that has not ended.

use wire::roce::{AtomicEth, Extension, Opcode, Psn, Reth};

use super::MemoryRange;
use crate::memory::MemoryKey;

/// The work of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    Read(MemoryRange),
    Write(MemoryRange),
    FetchAdd { address: u64, key: MemoryKey, add: u64 },
    CompareSwap { address: u64, key: MemoryKey, compare: u64, swap: u64 },
}

impl Work {
    /// Whether it is completed by an answer of its own, and not by any acknowledgement.
    pub fn has_answer(&self) -> bool {
        !matches!(self, Work::Write(_))
    }

    /// Returns the opcode and header of an atomic operation.
    pub fn atomic(&self) -> Option<(Opcode, AtomicEth)> {
        match *self {
            Work::FetchAdd { address, key, add } => {
                Some((Opcode::FetchAdd, AtomicEth { address, key: key.0, swap_or_add: add, compare: 0 }))
            }
            Work::CompareSwap { address, key, compare, swap } => {
                Some((Opcode::CompareSwap, AtomicEth { address, key: key.0, swap_or_add: swap, compare }))
            }
            Work::Read(_) | Work::Write(_) => None,
        }
    }
}

/// A request that has not ended.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub token: u64,
    pub work: Work,
    /// Number of its first packet, or of the first packet of its answer.
    pub first: Psn,
    /// Number of its packets, or of the packets of its answer.
    pub packets: u32,
    /// Number of them that are completed.
    pub done: u32,
    /// Whether it counts as outstanding: it was sent since the last time that the queue pair went back.
    pub is_outstanding: bool,
    /// The data of a WRITE, or the bytes of a READ that have arrived.
    pub data: Vec<u8>,
}

impl PendingRequest {
    pub fn new(token: u64, work: Work, packets: u32, data: Vec<u8>) -> PendingRequest {
        PendingRequest { token, work, first: Psn::default(), packets, done: 0, is_outstanding: false, data }
    }

    /// Returns the number after its last one.
    pub fn end(&self) -> Psn {
        self.first.plus(self.packets)
    }
}

/// Returns the header that names the rest of a range after the first `offset` bytes.
pub(super) fn rest_of(range: &MemoryRange, offset: u32) -> Extension {
    let address = range.address.wrapping_add(offset.into());
    Extension::Reth(Reth { address, key: range.key.0, len: range.len - offset })
}
