//! Records the uses of rows by packets of a batch whose complete passes compiled code has run inline.
//!
//! Such a packet writes its row, or reads unacknowledged values, without a call. At its end, code records the packet
//! and its row in this list, in the order of the packets, and sets the row to `Unacknowledged`, so that later
//! packets of the batch depend on it. The objects [settle](Objects::settle_inline_uses) the list before anything else
//! counts a write, so that writes get the same numbers as when packets run one by one.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Objects;
use super::rows::{Dependency, RowWrite};

/// Maximum number of packets that use rows inline between two calls of [`Objects::settle_inline_uses`].
pub const MAX_INLINE_USES: usize = 32;

/// The word of a use: the number of the row ([`super::InlineRows::EveryWrite`]) in the lowest bits, then the index of
/// the packet in its batch, which has 8 bits.
pub const INLINE_USE_PACKET: u32 = 48;
/// Bit of a use that wrote its row.
pub const INLINE_USE_WRITES: u64 = 1 << 62;

/// The dependency of the outputs of a packet of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlineDependency {
    /// Index of the packet in its batch.
    pub packet: usize,
    /// Its dependency.
    pub dependency: Dependency,
}

/// The list as code sees it: the number of uses, and then a word for each.
#[derive(Debug)]
pub(super) struct InlineUses {
    words: Box<[AtomicU64; 1 + MAX_INLINE_USES]>,
}

impl InlineUses {
    pub fn new() -> InlineUses {
        InlineUses { words: Box::new([const { AtomicU64::new(0) }; 1 + MAX_INLINE_USES]) }
    }

    pub fn address(&self) -> u64 {
        self.words.as_ptr() as u64
    }

    #[inline]
    fn len(&self) -> usize {
        self.words[0].load(Ordering::Relaxed) as usize
    }
}

impl Objects {
    /// Counts the writes that packets made inline since the last call, in order.
    #[inline]
    pub fn settle_inline_uses(&mut self) {
        if self.rows.as_ref().is_some_and(|rows| rows.inline_uses.len() > 0) {
            self.settle_uses();
        }
    }

    #[inline(never)]
    fn settle_uses(&mut self) {
        let Some(rows) = self.rows.as_deref_mut() else { return };
        let count = rows.inline_uses.len();
        rows.inline_uses.words[0].store(0, Ordering::Relaxed);
        for at in 1..=count {
            let used = rows.inline_uses.words[at].load(Ordering::Relaxed);
            let row = rows.row_of_number(used & ((1 << INLINE_USE_PACKET) - 1));
            if used & INLINE_USE_WRITES != 0 {
                rows.writes += 1;
                rows.written.push(RowWrite { row, writes: rows.writes });
            }
            let packet = usize::from((used >> INLINE_USE_PACKET) as u8);
            let dependency = Dependency { row, writes: rows.writes };
            rows.inline_dependencies.push(InlineDependency { packet, dependency });
        }
    }

    /// Exchanges the dependencies of packets that ran inline, in the order of the packets, for an empty list.
    /// Packets that depend on nothing are not in it.
    #[inline]
    pub fn take_inline_dependencies(&mut self, into: &mut Vec<InlineDependency>) {
        into.clear();
        if let Some(rows) = self.rows.as_deref_mut().filter(|rows| !rows.inline_dependencies.is_empty()) {
            std::mem::swap(&mut rows.inline_dependencies, into);
        }
    }
}
