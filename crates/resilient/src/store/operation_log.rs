//! The operations of a shard that a successor may still need.

use std::collections::VecDeque;

use crate::message::Operation;

/// Maximum index of an operation, which no store reaches.
pub(super) const MAX_INDEX: u64 = u64::MAX / 2;

/// Operations with consecutive indexes. Indexes begin at 1.
#[derive(Debug, Default)]
pub(super) struct OperationLog {
    kept: VecDeque<Operation>,
    last: u64,
}

impl OperationLog {
    /// Creates a log whose last operation has this index.
    pub fn ending_at(last: u64) -> OperationLog {
        OperationLog { kept: VecDeque::new(), last }
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
            self.kept.push_back(operation);
        } else {
            self.kept.clear();
        }
    }

    /// Forgets the operations up to an index.
    pub fn trim(&mut self, up_to: u64) {
        let count = (up_to + 1).saturating_sub(self.first()).min(self.kept.len() as u64);
        self.kept.drain(..count as usize);
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
}
