//! The operations of a shard that a successor may still need.

use std::collections::VecDeque;

use crate::message::Operation;

/// Maximum index of an operation, which no store reaches.
pub(super) const MAX_INDEX: u64 = u64::MAX / 2;

/// Operations with consecutive indexes. Indexes begin at 1.
#[cfg_attr(feature = "simulation", derive(Clone, Hash))]
#[derive(Debug, Default)]
pub(super) struct OperationLog {
    kept: VecDeque<Operation>,
    last: u64,
    /// Length of the outputs of operations that were not forwarded yet, in bytes.
    carried_bytes: usize,
}

impl OperationLog {
    /// Creates a log whose last operation has this index.
    pub fn ending_at(last: u64) -> OperationLog {
        OperationLog { last, ..OperationLog::default() }
    }

    /// Returns the index of the last operation.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns the index of the oldest operation that is kept, or the next index.
    pub fn first(&self) -> u64 {
        self.last + 1 - self.kept.len() as u64
    }

    /// Returns the number of operations that are kept.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Appends an operation, and keeps it if a successor will need it.
    pub fn push(&mut self, operation: Operation, is_needed: bool) {
        self.last += 1;
        if is_needed {
            self.carried_bytes += operation.carried_bytes();
            self.kept.push_back(operation);
        } else {
            self.kept.clear();
            self.carried_bytes = 0;
        }
    }

    /// Forgets the operations up to an index.
    pub fn trim(&mut self, up_to: u64) {
        let count = (up_to + 1).saturating_sub(self.first()).min(self.kept.len() as u64);
        let bytes: usize = self.kept.drain(..count as usize).map(|operation| operation.carried_bytes()).sum();
        self.carried_bytes -= bytes;
    }

    /// Returns the length of the outputs that were not forwarded yet, in bytes.
    pub fn carried_bytes(&self) -> usize {
        self.carried_bytes
    }

    /// Drops the outputs of this many operations from an index: they were forwarded.
    pub fn forget_outputs(&mut self, index: u64, count: usize) {
        if self.carried_bytes == 0 {
            return;
        }
        let start = index.saturating_sub(self.first()).min(self.kept.len() as u64) as usize;
        let end = (start + count).min(self.kept.len());
        for outputs in self.kept.range_mut(start..end).filter_map(Operation::take_outputs) {
            self.carried_bytes -= outputs.bytes().len();
        }
    }

    /// Returns the operations that are kept, from this index on.
    pub fn from(&self, index: u64) -> impl Iterator<Item = &Operation> {
        self.kept.range(index.saturating_sub(self.first()).min(self.kept.len() as u64) as usize..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::SwitchId;
    use crate::message::OwnerId;

    fn renew(nonce: u64) -> Operation {
        Operation::Renew { owner: OwnerId { switch: SwitchId(1), incarnation: 1 }, nonce }
    }

    #[test]
    fn indexes_stay_those_of_the_operations() {
        let mut log = OperationLog::ending_at(10);
        (11..=14).for_each(|nonce| log.push(renew(nonce), true));
        log.trim(12);
        assert_eq!((log.first(), log.last(), log.len()), (13, 14, 2));
        assert_eq!(log.from(14).cloned().collect::<Vec<_>>(), [renew(14)]);
        assert_eq!(log.from(15).count() + log.from(99).count(), 0);
        log.trim(99);
        assert_eq!((log.first(), log.last(), log.len()), (15, 14, 0));
    }

    #[test]
    fn outputs_are_kept_until_they_are_sent() {
        let outputs = crate::carried::CarriedOutputs::new(&[7; 100]);
        let owner = OwnerId { switch: SwitchId(1), incarnation: 1 };
        let row = crate::row::RowId::empty(1);
        let mut log = OperationLog::default();
        let write = |seq| Operation::Write { owner, row, epoch: 1, seq, values: None, outputs: outputs.clone() };
        (1..=4).for_each(|seq| log.push(write(seq), true));
        assert_eq!(log.carried_bytes(), 400);
        log.forget_outputs(1, 2);
        log.forget_outputs(1, 2);
        assert_eq!(log.carried_bytes(), 200);
        assert_eq!(log.from(1).map(Operation::carried_bytes).collect::<Vec<_>>(), [0, 0, 100, 100]);
        log.trim(3);
        assert_eq!(log.carried_bytes(), 100);
        log.push(write(5), false);
        assert_eq!(log.carried_bytes(), 0);
    }
}
