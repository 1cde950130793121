//! The rows of a shard at a node, and the operations on them.

use std::hash::BuildHasher;

use super::group_tally::GroupTally;
use super::row_index::RowIndex;
use crate::holders::{RowHolders, RowReader};
use crate::message::{CreatedRow, Operation, RefusalReason, ReplyBody, RowRecord};
use crate::mutant::{Mutant, Mutation};
use crate::row::{RowId, RowValues};

/// Rows at stable positions. Positions of removed rows are reused.
#[cfg_attr(feature = "simulation", derive(Clone))]
#[derive(Debug)]
pub(super) struct RowTable {
    index: RowIndex,
    rows: Vec<StoredRow>,
    free: Vec<u32>,
    /// The highest epoch of a row that was removed. It fences late messages: later grants have higher epochs.
    epoch_floor: u64,
    /// Number of writes so far that left a row without values.
    cleared: u64,
    tally: GroupTally,
}

/// A row in two cache lines that are fetched together, or a free position.
#[cfg_attr(feature = "simulation", derive(Clone))]
#[derive(Debug)]
#[repr(align(128))]
struct StoredRow(Option<RowRecord>);

const _: () = assert!(size_of::<StoredRow>() == 128, "a row fits two cache lines");

impl StoredRow {
    fn is(&self, row: &RowId) -> bool {
        self.0.as_ref().is_some_and(|state| state.row == *row)
    }
}

impl RowTable {
    /// Creates a table without rows. `seed` is random.
    pub fn new(seed: u64) -> RowTable {
        RowTable {
            index: RowIndex::new(seed),
            rows: Vec::new(),
            free: Vec::new(),
            epoch_floor: 0,
            cleared: 0,
            tally: GroupTally::default(),
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len() - self.free.len()
    }

    /// Returns the number of positions, which is the largest number of rows so far.
    pub fn positions(&self) -> usize {
        self.rows.len()
    }

    /// Returns the highest epoch of a row that was removed.
    pub fn epoch_floor(&self) -> u64 {
        self.epoch_floor
    }

    /// Raises the floor of epochs to that of another node, or of the disk.
    pub fn raise_epoch_floor(&mut self, epoch: u64) {
        self.epoch_floor = self.epoch_floor.max(epoch);
    }

    /// Returns the number of times that a row has lost its values here, except by its removal.
    pub fn cleared(&self) -> u64 {
        self.cleared
    }

    /// Returns the numbers of rows with values.
    pub fn tally(&self) -> &GroupTally {
        &self.tally
    }

    pub fn get(&self, row: &RowId) -> Option<&RowRecord> {
        self.find_row(row).map(|(_, state)| state)
    }

    /// Returns the position and the state of a row.
    pub fn find_row(&self, row: &RowId) -> Option<(usize, &RowRecord)> {
        let position = self.find(self.index.hash(row), row)?;
        Some((position, self.rows[position].0.as_ref()?))
    }

    /// Returns the row at a position.
    pub fn at(&self, position: usize) -> Option<&RowRecord> {
        self.rows.get(position)?.0.as_ref()
    }

    /// Returns the partner of a row, if it has one: each has the key of the other as its values.
    pub fn partner(&self, state: &RowRecord) -> Option<&RowRecord> {
        let partner = self.get(&state.row.partner(state.values.as_ref()?.bytes())?)?;
        partner.values.as_ref().filter(|values| values.bytes() == state.row.key())?;
        Some(partner)
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
        self.index.find(hash, |position| self.rows[position].is(row))
    }

    /// Returns the rows from one position to another, with their positions.
    pub fn range(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = (usize, &RowRecord)> {
        range.filter_map(|position| Some((position, self.at(position)?)))
    }

    /// Frees all rows, for a mutant.
    pub fn free_all(&mut self) {
        self.rows.iter_mut().filter_map(|row| row.0.as_mut()).for_each(|state| state.holders = RowHolders::Nobody);
    }

    /// Forgets the readers of rows, for a mutant.
    pub fn forget_readers(&mut self) {
        let states = self.rows.iter_mut().filter_map(|row| row.0.as_mut());
        states.filter(|state| state.holders.is_shared()).for_each(|state| state.holders = RowHolders::Nobody);
    }

    fn get_mut(&mut self, row: &RowId) -> Option<&mut RowRecord> {
        self.find(self.index.hash(row), row).and_then(|position| self.rows[position].0.as_mut())
    }

    fn get_or_insert(&mut self, row: &RowId) -> &mut RowRecord {
        let hash = self.index.hash(row);
        let position = self.find(hash, row).unwrap_or_else(|| self.insert(hash, row));
        let new =
            || RowRecord { row: *row, holders: RowHolders::Nobody, ask: 0, epoch: 0, seq: 0, values: None, idle_ms: 0 };
        self.rows[position].0.get_or_insert_with(new)
    }

    /// Finds a position for a new row.
    fn insert(&mut self, hash: u64, row: &RowId) -> usize {
        let position = self.free.pop().map_or(self.rows.len(), |position| position as usize);
        if position == self.rows.len() {
            self.rows.push(StoredRow(None));
        }
        let (rows, hasher) = (&self.rows, self.index.hasher());
        // The row itself is not in the table yet.
        let hash_of = |at: usize| hasher.hash_one(rows[at].0.as_ref().map_or(row, |state| &state.row));
        self.index.insert(hash, position as u32, hash_of);
        position
    }

    /// Removes a row.
    fn remove(&mut self, row: &RowId) {
        let hash = self.index.hash(row);
        let Some(position) = self.find(hash, row) else { return };
        let (rows, hasher) = (&self.rows, self.index.hasher());
        let hash_of = |at: usize| hasher.hash_one(rows[at].0.as_ref().map_or(row, |state| &state.row));
        self.index.remove(hash, position as u32, hash_of);
        if let Some(state) = self.rows[position].0.take() {
            self.tally.changed(row, state.values.is_some(), false);
        }
        self.free.push(position as u32);
    }

    /// Adds a copied row, unless operations have created a newer one.
    pub fn merge(&mut self, copied: &RowRecord) {
        let state = self.get_or_insert(&copied.row);
        if (copied.epoch, copied.seq) >= (state.epoch, state.seq) {
            let had_values = state.values.is_some();
            state.clone_from(copied);
            self.tally.changed(&copied.row, had_values, copied.values.is_some());
        }
    }

    /// Applies an operation, and returns the reply of the tail.
    pub fn apply(&mut self, operation: &Operation, mutation: Mutation) -> Option<ReplyBody> {
        match operation {
            Operation::Renew { .. } => None,
            Operation::Grant { owner, row, ask, epoch, created, idle_ms, is_shared } => {
                created.iter().for_each(|created| self.create(row, created, *idle_ms, mutation));
                let reader = RowReader { owner: *owner, ask: *ask, epoch: *epoch };
                Some(self.grant(reader, *is_shared, row, *idle_ms, mutation))
            }
            Operation::Remove { row, partner, epoch } => {
                self.remove(row);
                partner.iter().for_each(|partner| self.remove(partner));
                self.raise_epoch_floor(*epoch);
                None
            }
            Operation::Miss { row, ask, .. } => {
                let is_missing = self.get(row).is_none_or(|state| state.values.is_none());
                let reason = RefusalReason::NoSuchRow;
                is_missing.then_some(ReplyBody::Refused { row: *row, ask: *ask, reason })
            }
            Operation::Write { row, epoch, seq, values, outputs, .. } => {
                let (row, epoch, seq) = (*row, *epoch, *seq);
                let stale = ReplyBody::Stale { row, epoch };
                let Some(state) = self.get_mut(&row) else { return Some(stale) };
                let is_writer = state.epoch == epoch && !state.holders.is_shared();
                if !is_writer && !mutation.is(Mutant::SeqFence) {
                    let acked = ReplyBody::Acked { row, epoch, seq, outputs: None };
                    return Some(if mutation.is(Mutant::AckedUnapplied) { acked } else { stale });
                }
                if seq > state.seq || mutation.is(Mutant::SeqUnchecked) {
                    state.seq = seq;
                    let had_values = state.values.is_some();
                    state.values.clone_from(values);
                    if values.is_none() && mutation.is(Mutant::RemovalForgetsEpoch) {
                        (state.epoch, state.seq, state.holders) = (0, 0, RowHolders::Nobody);
                    }
                    let newest = seq.max(state.seq);
                    self.cleared += u64::from(had_values && values.is_none());
                    self.tally.changed(&row, had_values, values.is_some());
                    return Some(ReplyBody::Acked { row, epoch, seq: newest, outputs: outputs.clone() });
                }
                // The outputs have left with the first copy of the write, or came too late.
                let outputs = outputs.clone().filter(|_| mutation.is(Mutant::OutputsOfRepeatedWrite));
                Some(ReplyBody::Acked { row, epoch, seq: seq.max(state.seq), outputs })
            }
            Operation::Release { row, epoch, .. } => {
                let of_any_epoch = mutation.is(Mutant::ReleaseOfAnyEpoch);
                match self.get_mut(row) {
                    Some(state) if state.holders.is_shared() && !of_any_epoch => state.holders.remove_reader(*epoch),
                    Some(state) if state.epoch == *epoch || of_any_epoch => state.holders = RowHolders::Nobody,
                    _ => {}
                }
                Some(ReplyBody::Released { row: *row, epoch: *epoch })
            }
        }
    }

    /// Gives a row its first values, and the row of its number with it.
    fn create(&mut self, row: &RowId, created: &CreatedRow, idle_ms: u32, mutation: Mutation) {
        let state = self.get_or_insert(row);
        if state.values.is_none() {
            state.seq = state.seq.saturating_add(1);
            state.values = Some(created.values.clone());
            self.tally.changed(row, false, true);
        }
        let Some(number) = created.number.filter(|_| !mutation.is(Mutant::NumberWithoutRow)) else { return };
        let state = self.get_or_insert(&number);
        state.seq = state.seq.saturating_add(1);
        let had_values = state.values.is_some();
        state.values = RowValues::new(row.key());
        state.idle_ms = idle_ms;
        self.tally.changed(&number, had_values, true);
    }

    fn grant(
        &mut self,
        reader: RowReader,
        is_shared: bool,
        row: &RowId,
        idle_ms: u32,
        mutation: Mutation,
    ) -> ReplyBody {
        let RowReader { owner, ask, epoch } = reader;
        let state = self.get_or_insert(row);
        state.idle_ms = idle_ms;
        let keeps_epoch = mutation.is(Mutant::EpochKept) || mutation.is(Mutant::NewerAskSameEpoch);
        // Otherwise the grant is repeated.
        if epoch > state.epoch || keeps_epoch || (is_shared && mutation.is(Mutant::SharedEpochKept)) {
            match is_shared {
                true => state.holders.add_reader(reader),
                false => state.holders = RowHolders::Owner(owner),
            }
            (state.ask, state.epoch) = (ask, epoch.max(state.epoch));
        }
        ReplyBody::Granted { row: *row, ask, epoch, seq: state.seq, values: state.values.clone(), is_shared }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::SwitchId;
    use crate::message::OwnerId;

    const ROW: RowId = RowId::empty(1);

    fn owner(switch: u32) -> OwnerId {
        OwnerId { switch: SwitchId(switch), incarnation: 1 }
    }

    fn write(epoch: u64, seq: u64, value: u8) -> Operation {
        Operation::Write { owner: owner(1), row: ROW, epoch, seq, values: RowValues::new(&[value]), outputs: None }
    }

    fn apply(table: &mut RowTable, operation: &Operation) -> String {
        format!("{:?}", table.apply(operation, Mutation::default()).unwrap())
    }

    #[test]
    fn a_late_write_of_an_earlier_owner_is_stale_whatever_its_number() {
        let mut table = RowTable::new(1);
        let grant = |switch, epoch| Operation::Grant {
            owner: owner(switch),
            row: ROW,
            ask: 1,
            epoch,
            created: None,
            idle_ms: 0,
            is_shared: false,
        };
        assert_eq!(apply(&mut table, &write(1, 1, 1)), "Stale { row: 1:, epoch: 1 }");
        assert_eq!(
            apply(&mut table, &grant(1, 1)),
            "Granted { row: 1:, ask: 1, epoch: 1, seq: 0, values: None, is_shared: false }"
        );
        assert_eq!(apply(&mut table, &write(1, 2, 7)), "Acked { row: 1:, epoch: 1, seq: 2, outputs: None }");
        assert_eq!(apply(&mut table, &write(1, 1, 6)), "Acked { row: 1:, epoch: 1, seq: 2, outputs: None }");
        assert_eq!(
            apply(&mut table, &grant(2, 2)),
            "Granted { row: 1:, ask: 1, epoch: 2, seq: 2, values: Some(07), is_shared: false }"
        );
        assert_eq!(apply(&mut table, &write(1, 9, 9)), "Stale { row: 1:, epoch: 1 }");
        assert_eq!(table.get(&ROW).unwrap().values, RowValues::new(&[7]));
    }

    #[test]
    fn a_row_without_values_keeps_its_epoch() {
        let mut table = RowTable::new(1);
        apply(
            &mut table,
            &Operation::Grant {
                owner: owner(1),
                row: ROW,
                ask: 1,
                epoch: 5,
                created: None,
                idle_ms: 0,
                is_shared: false,
            },
        );
        apply(
            &mut table,
            &Operation::Write { owner: owner(1), row: ROW, epoch: 5, seq: 1, values: None, outputs: None },
        );
        apply(&mut table, &Operation::Release { owner: owner(1), row: ROW, epoch: 5 });
        let state = table.get(&ROW).unwrap();
        assert_eq!((state.holders.is_empty(), state.epoch, state.seq), (true, 5, 1));
    }

    #[test]
    fn removed_rows_leave_their_positions_and_their_highest_epoch() {
        let mut table = RowTable::new(1);
        let row = |number: u32| RowId::of_index(2, number);
        for number in 0..1000_u32 {
            let (owner, epoch) = (owner(1), table.epoch_floor() + 1);
            let grant = Operation::Grant {
                owner,
                row: row(number),
                ask: 1,
                epoch,
                created: None,
                idle_ms: 5,
                is_shared: false,
            };
            table.apply(&grant, Mutation::default());
            if number >= 3 {
                let epoch = table.get(&row(number - 3)).unwrap().epoch;
                table.apply(&Operation::Remove { row: row(number - 3), partner: None, epoch }, Mutation::default());
            }
        }
        assert_eq!((table.len(), table.positions()), (3, 4));
        assert!(table.epoch_floor() >= 240, "{}", table.epoch_floor());
        let found: Vec<u32> = (0..1000).filter(|number| table.get(&row(*number)).is_some()).collect();
        assert_eq!(found, [997, 998, 999]);
        assert_eq!(table.range(0..4).count(), 3);
    }

    #[test]
    fn a_copied_row_replaces_only_older_ones() {
        let mut table = RowTable::new(1);
        let state = |epoch, seq| RowRecord {
            row: ROW,
            holders: RowHolders::Nobody,
            ask: 0,
            epoch,
            seq,
            values: None,
            idle_ms: 0,
        };
        for (copied, kept) in [((2, 3), (2, 3)), ((2, 2), (2, 3)), ((1, 9), (2, 3)), ((3, 1), (3, 1))] {
            table.merge(&state(copied.0, copied.1));
            assert_eq!(table.get(&ROW).map(|state| (state.epoch, state.seq)), Some(kept));
        }
    }
}
