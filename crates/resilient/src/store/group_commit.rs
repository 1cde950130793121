//! Collects records for one transaction of a disk, as changes of a table with byte keys.
//!
//! ```text
//!   key:    layout 1 | shard 2, number | row 3, shard, row      | operations 4, shard, index of the first
//!   value:  layout   | ShardState      | newest state of a row  | operations with consecutive indexes
//! ```
//!
//! The table grows with the rows, not with the writes: a row replaces its former state, and operations are removed when
//! no successor needs them. Keys and values have the format of messages.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::record::{ShardChange, ShardState, StoreRecord};
use crate::layout::{ShardId, StoreLayout};
use crate::message::{Operation, RowRecord};
use crate::row::RowId;
use crate::wire_form::MessageWriter;

pub(super) const LAYOUT: u8 = 1;
pub(super) const SHARD: u8 = 2;
pub(super) const ROW: u8 = 3;
pub(super) const OPERATIONS: u8 = 4;

/// Maximum number of operations of an entry.
const MAX_OPERATIONS: usize = 512;

/// A change of a table with byte keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryChange {
    /// Removes all entries whose keys begin with these bytes.
    RemoveAll(Vec<u8>),
    /// Removes the entry with this key, if there is one.
    Remove(Vec<u8>),
    /// Sets the value of a key.
    Put(Vec<u8>, Vec<u8>),
}

/// The records of a transaction. While it is committed, records of the next one are collected.
#[derive(Debug, Default)]
pub struct GroupCommit {
    /// The entries with operations, by the indexes of their first and last ones.
    entries: BTreeMap<ShardId, VecDeque<(u64, u64)>>,
    batch: CommitBatch,
}

/// The changes of a transaction.
#[derive(Debug, Default)]
pub struct CommitBatch {
    up_to: u64,
    records: u64,
    layout: Option<Arc<StoreLayout>>,
    shards: BTreeMap<ShardId, ShardBatch>,
}

#[derive(Debug, Default)]
struct ShardBatch {
    /// Whether all entries from before the batch are removed.
    is_cleared: bool,
    state: ShardState,
    /// The newest states of rows; `None` for one that was removed.
    rows: BTreeMap<RowId, Option<RowRecord>>,
    /// Operations up to the last one of the state.
    operations: VecDeque<Operation>,
    /// Keys of entries with operations that are no longer needed.
    unneeded: Vec<u64>,
    /// New entries with operations, by the indexes of their first and last ones.
    added: Vec<(u64, u64)>,
}

impl GroupCommit {
    /// Adds the next record.
    pub fn push(&mut self, number: u64, record: StoreRecord) {
        self.batch.up_to = number;
        self.batch.records += 1;
        match record {
            StoreRecord::Layout { layout, left } => {
                self.batch.layout = Some(layout);
                left.into_iter().for_each(|shard| self.clear(shard));
            }
            StoreRecord::Shard { shard, state, change } => {
                if change == ShardChange::Cleared {
                    self.clear(shard);
                }
                self.batch.shards.entry(shard).or_default().push(state, change);
            }
        }
    }

    fn clear(&mut self, shard: ShardId) {
        self.entries.remove(&shard);
        self.batch.shards.insert(shard, ShardBatch { is_cleared: true, ..ShardBatch::default() });
    }

    /// Returns the number of records that wait for a transaction.
    pub fn waiting(&self) -> u64 {
        self.batch.records
    }

    /// Returns the changes of all waiting records, or `None` if there are none. They are for one transaction, which
    /// follows those of earlier calls.
    pub fn take(&mut self) -> Option<CommitBatch> {
        if self.batch.records == 0 {
            return None;
        }
        let mut batch = std::mem::take(&mut self.batch);
        for (shard, changes) in &mut batch.shards {
            let entries = self.entries.entry(*shard).or_default();
            while let Some((first, _)) = entries.pop_front_if(|(_, last)| *last < changes.state.first) {
                changes.unneeded.push(first);
            }
            let (mut first, last) = (changes.first_operation(), changes.state.last);
            while first <= last {
                let end = last.min(first + MAX_OPERATIONS as u64 - 1);
                changes.added.push((first, end));
                first = end + 1;
            }
            entries.extend(&changes.added);
        }
        Some(batch)
    }

    /// Records an entry with operations that the disk has.
    pub(super) fn found_operations(&mut self, shard: ShardId, first: u64, last: u64) {
        self.entries.entry(shard).or_default().push_back((first, last));
    }
}

impl ShardBatch {
    fn push(&mut self, state: ShardState, change: ShardChange) {
        self.state = state;
        match change {
            ShardChange::Nothing | ShardChange::Cleared => {}
            ShardChange::Copied(rows) => self.rows.extend(rows.into_iter().map(|row| (row.row, Some(row)))),
            ShardChange::Applied { row, number, kept } => {
                self.rows.extend(number.map(|row| (row.row, Some(*row))));
                self.rows.extend(row.map(|row| (row.row, Some(row))));
                self.keep(kept);
            }
            ShardChange::Removed { row, partner, kept } => {
                self.rows.extend(partner.into_iter().chain([row]).map(|row| (row, None)));
                self.keep(kept);
            }
        }
        let unneeded = state.first.saturating_sub(self.first_operation()).min(self.operations.len() as u64);
        self.operations.drain(..unneeded as usize);
    }

    fn keep(&mut self, operation: Option<Operation>) {
        match operation {
            Some(operation) => self.operations.push_back(operation),
            None => self.operations.clear(),
        }
    }

    /// Returns the index of the first operation of the batch.
    fn first_operation(&self) -> u64 {
        (self.state.last + 1).saturating_sub(self.operations.len() as u64)
    }

    fn changes(&self, shard: ShardId) -> impl Iterator<Item = EntryChange> + '_ {
        let cleared = [ROW, OPERATIONS].into_iter().filter(|_| self.is_cleared);
        let cleared = cleared.map(move |kind| EntryChange::RemoveAll(bytes(|writer| writer.entry_key(kind, shard))));
        let state = EntryChange::Put(
            bytes(|writer| writer.entry_key(SHARD, shard)),
            bytes(|writer| {
                writer.content(self.state.content);
                writer.u8(u8::from(self.state.is_active));
                writer.u64(self.state.first);
                writer.u64(self.state.last);
                writer.u64(self.state.epoch_floor);
            }),
        );
        let row = move |(row, state): (&RowId, &Option<RowRecord>)| {
            let key = bytes(|writer| {
                writer.entry_key(ROW, shard);
                writer.row(row);
            });
            match state {
                Some(state) => EntryChange::Put(key, bytes(|writer| writer.row_state(state))),
                None => EntryChange::Remove(key),
            }
        };
        let key = move |first: u64| {
            bytes(|writer| {
                writer.entry_key(OPERATIONS, shard);
                writer.u64(first);
            })
        };
        let unneeded = self.unneeded.iter().map(move |first| EntryChange::Remove(key(*first)));
        let base = self.first_operation();
        let added = self.added.iter().map(move |(first, last)| {
            let range = (first - base) as usize..=(last - base) as usize;
            let operations = self.operations.range(range);
            EntryChange::Put(key(*first), bytes(|writer| operations.for_each(|operation| writer.operation(operation))))
        });
        cleared.chain([state]).chain(unneeded).chain(self.rows.iter().map(row)).chain(added)
    }
}

impl CommitBatch {
    /// Returns the number of the last record.
    pub fn up_to(&self) -> u64 {
        self.up_to
    }

    /// Returns the number of records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the number of rows that are set or removed.
    pub fn rows(&self) -> usize {
        self.shards.values().map(|shard| shard.rows.len()).sum()
    }

    /// Returns the changes in the order in which they are made.
    pub fn changes(&self) -> impl Iterator<Item = EntryChange> + '_ {
        let layout = self.layout.iter().map(|layout| {
            let key = bytes(|writer| writer.u8(LAYOUT));
            EntryChange::Put(key, bytes(|writer| writer.layout(layout)))
        });
        layout.chain(self.shards.iter().flat_map(|(shard, changes)| changes.changes(*shard)))
    }
}

impl MessageWriter<'_> {
    fn entry_key(&mut self, kind: u8, shard: ShardId) {
        self.u8(kind);
        self.u16(shard.0);
    }
}

fn bytes(write: impl FnOnce(&mut MessageWriter<'_>)) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(96);
    write(&mut MessageWriter(&mut bytes));
    bytes
}
