//! The rows of a shard at a node, and the operations on them.

use std::hash::BuildHasher;

use super::row_index::RowIndex;
use crate::message::{CreatedRow, Operation, OwnerId, RefusalReason, ReplyBody, RowRecord};
use crate::mutant::{Mutant, Mutation};
use crate::row::{RowId, RowValues};

/// Rows in the order of their first grant. A row is never forgotten: its epoch fences late writes.
#[derive(Debug)]
pub(super) struct RowTable {
    index: RowIndex,
    rows: Vec<StoredRow>,
    /// Number of removals of rows so far.
    removals: u64,
}

/// A row in two cache lines that are fetched together.
#[derive(Debug)]
#[repr(align(128))]
struct StoredRow(RowRecord);

impl RowTable {
    /// Creates a table without rows. `seed` is random.
    pub fn new(seed: u64) -> RowTable {
        RowTable { index: RowIndex::new(seed), rows: Vec::new(), removals: 0 }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the number of times that a row has lost its values here.
    pub fn removals(&self) -> u64 {
        self.removals
    }

    pub fn get(&self, row: &RowId) -> Option<&RowRecord> {
        self.find(self.index.hash(row), row).map(|position| &self.rows[position].0)
    }

    /// Reads rows that are about to be used, so that the processor fetches them from memory at the same time. One after
    /// the other, a million rows are not in its cache, and each search waits twice.
    pub fn fetch<'r>(&self, rows: impl Iterator<Item = &'r RowId>) {
        let fetched = rows
            .filter_map(|row| self.get(row))
            .fold(0, |sum, state| sum ^ state.epoch ^ state.seq ^ u64::from(state.values.is_some()));
        std::hint::black_box(fetched);
    }

    fn find(&self, hash: u64, row: &RowId) -> Option<usize> {
        self.index.find(hash, |position| self.rows[position].0.row == *row)
    }

    /// Returns the rows at these positions.
    pub fn range(&self, range: std::ops::Range<usize>) -> impl ExactSizeIterator<Item = &RowRecord> {
        self.rows[range].iter().map(|row| &row.0)
    }

    /// Makes all rows free, for a mutant.
    pub fn free_all(&mut self) {
        self.rows.iter_mut().for_each(|row| row.0.owner = None);
    }

    fn get_mut(&mut self, row: &RowId) -> Option<&mut RowRecord> {
        self.find(self.index.hash(row), row).map(|position| &mut self.rows[position].0)
    }

    fn get_or_insert(&mut self, row: &RowId) -> &mut RowRecord {
        let hash = self.index.hash(row);
        let position = self.find(hash, row).unwrap_or_else(|| {
            let (index, rows) = (&mut self.index, &mut self.rows);
            let hasher = index.hasher();
            index.insert(hash, rows.len() as u32, |at| hasher.hash_one(rows[at].0.row));
            let state = RowRecord { row: *row, owner: None, ask: 0, epoch: 0, seq: 0, values: None };
            rows.push(StoredRow(state));
            rows.len() - 1
        });
        &mut self.rows[position].0
    }

    /// Takes a copied row, unless operations have made a newer one.
    pub fn merge(&mut self, copied: &RowRecord) {
        let state = self.get_or_insert(&copied.row);
        if (copied.epoch, copied.seq) >= (state.epoch, state.seq) {
            state.clone_from(copied);
        }
    }

    /// Applies an operation, and returns the reply of the tail.
    pub fn apply(&mut self, operation: &Operation, mutation: Mutation) -> Option<ReplyBody> {
        match operation {
            Operation::Renew { .. } => None,
            Operation::Grant { owner, row, ask, epoch, created } => {
                created.iter().for_each(|created| self.create(row, created, mutation));
                Some(self.grant(*owner, row, *ask, *epoch, mutation))
            }
            Operation::Miss { row, ask, .. } => {
                let is_missing = self.get(row).is_none_or(|state| state.values.is_none());
                let reason = RefusalReason::NoSuchRow;
                is_missing.then_some(ReplyBody::Refused { row: *row, ask: *ask, reason })
            }
            Operation::Write { row, epoch, seq, values, .. } => {
                let (row, epoch, seq) = (*row, *epoch, *seq);
                let stale = ReplyBody::Stale { row, epoch };
                let Some(state) = self.get_mut(&row) else { return Some(stale) };
                if state.epoch != epoch && !mutation.is(Mutant::SeqFence) {
                    let acked = ReplyBody::Acked { row, epoch, seq };
                    return Some(if mutation.is(Mutant::AckedUnapplied) { acked } else { stale });
                }
                if seq > state.seq || mutation.is(Mutant::SeqUnchecked) {
                    state.seq = seq;
                    let is_removed = state.values.is_some() && values.is_none();
                    state.values.clone_from(values);
                    if values.is_none() && mutation.is(Mutant::RemovalForgetsEpoch) {
                        (state.epoch, state.seq, state.owner) = (0, 0, None);
                    }
                    let newest = seq.max(state.seq);
                    self.removals += u64::from(is_removed);
                    return Some(ReplyBody::Acked { row, epoch, seq: newest });
                }
                Some(ReplyBody::Acked { row, epoch, seq: seq.max(state.seq) })
            }
            Operation::Release { row, epoch, .. } => {
                let of_any_epoch = mutation.is(Mutant::ReleaseOfAnyEpoch);
                if let Some(state) = self.get_mut(row).filter(|state| state.epoch == *epoch || of_any_epoch) {
                    state.owner = None;
                }
                Some(ReplyBody::Released { row: *row, epoch: *epoch })
            }
        }
    }

    /// Gives a row its first values, and the row of its number with it.
    fn create(&mut self, row: &RowId, created: &CreatedRow, mutation: Mutation) {
        let state = self.get_or_insert(row);
        if state.values.is_none() {
            state.seq = state.seq.saturating_add(1);
            state.values = Some(created.values.clone());
        }
        let Some(number) = created.number.filter(|_| !mutation.is(Mutant::NumberWithoutRow)) else { return };
        let state = self.get_or_insert(&number);
        state.seq = state.seq.saturating_add(1);
        state.values = RowValues::new(row.key());
    }

    fn grant(&mut self, owner: OwnerId, row: &RowId, ask: u64, epoch: u64, mutation: Mutation) -> ReplyBody {
        let state = self.get_or_insert(row);
        if epoch > state.epoch || (mutation.is(Mutant::EpochKept) && state.owner.is_none()) {
            (state.owner, state.ask, state.epoch) = (Some(owner), ask, epoch);
        } else if mutation.is(Mutant::EpochKept) || mutation.is(Mutant::NewerAskSameEpoch) {
            (state.owner, state.ask) = (Some(owner), ask);
        }
        ReplyBody::Granted { row: *row, ask, epoch, seq: state.seq, values: state.values.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::SwitchId;

    const ROW: RowId = RowId::empty(1);

    fn owner(switch: u32) -> OwnerId {
        OwnerId { switch: SwitchId(switch), incarnation: 1 }
    }

    fn write(epoch: u64, seq: u64, value: u8) -> Operation {
        Operation::Write { owner: owner(1), row: ROW, epoch, seq, values: RowValues::new(&[value]) }
    }

    fn apply(table: &mut RowTable, operation: &Operation) -> String {
        format!("{:?}", table.apply(operation, Mutation::default()).unwrap())
    }

    #[test]
    fn a_late_write_of_an_earlier_owner_is_stale_whatever_its_number() {
        let mut table = RowTable::new(1);
        let grant = |switch, epoch| Operation::Grant { owner: owner(switch), row: ROW, ask: 1, epoch, created: None };
        assert_eq!(apply(&mut table, &write(1, 1, 1)), "Stale { row: 1:, epoch: 1 }");
        assert_eq!(apply(&mut table, &grant(1, 1)), "Granted { row: 1:, ask: 1, epoch: 1, seq: 0, values: None }");
        assert_eq!(apply(&mut table, &write(1, 2, 7)), "Acked { row: 1:, epoch: 1, seq: 2 }");
        assert_eq!(apply(&mut table, &write(1, 1, 6)), "Acked { row: 1:, epoch: 1, seq: 2 }");
        assert_eq!(apply(&mut table, &grant(2, 2)), "Granted { row: 1:, ask: 1, epoch: 2, seq: 2, values: Some(07) }");
        assert_eq!(apply(&mut table, &write(1, 9, 9)), "Stale { row: 1:, epoch: 1 }");
        assert_eq!(table.get(&ROW).unwrap().values, RowValues::new(&[7]));
    }

    #[test]
    fn a_removed_row_keeps_its_epoch() {
        let mut table = RowTable::new(1);
        apply(&mut table, &Operation::Grant { owner: owner(1), row: ROW, ask: 1, epoch: 5, created: None });
        apply(&mut table, &Operation::Write { owner: owner(1), row: ROW, epoch: 5, seq: 1, values: None });
        apply(&mut table, &Operation::Release { owner: owner(1), row: ROW, epoch: 5 });
        let state = table.get(&ROW).unwrap();
        assert_eq!((state.owner, state.epoch, state.seq), (None, 5, 1));
    }

    #[test]
    fn a_copied_row_replaces_only_older_ones() {
        let mut table = RowTable::new(1);
        let state = |epoch, seq| RowRecord { row: ROW, owner: None, ask: 0, epoch, seq, values: None };
        for (copied, kept) in [((2, 3), (2, 3)), ((2, 2), (2, 3)), ((1, 9), (2, 3)), ((3, 1), (3, 1))] {
            table.merge(&state(copied.0, copied.1));
            assert_eq!(table.get(&ROW).map(|state| (state.epoch, state.seq)), Some(kept));
        }
    }
}
