//! Accepts writes of the controller, and plans them.

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::ElasticTable;
use super::operation::CellStep;
use crate::keys::KeyForm;
use crate::mutant::ElasticMutant;
use crate::placement::{EntryId, PlacementPlan};
use crate::record::RecordFault;

/// Key of an entry as a controller writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryKey<'a> {
    /// The fields, as wide as a packet's key.
    pub bytes: &'a [u8],
    /// Length of the prefix, for a table with an `lpm` field.
    pub prefix_length: Option<u32>,
}

/// Reasons for which a write is refused. A refused write changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFault {
    /// The key has a wrong width, or lacks a prefix length, or has a wrong one.
    Key,
    /// The record is not one of the table.
    Record(RecordFault),
    /// An entry to insert exists.
    Exists,
    /// An entry to modify or delete does not exist.
    NotFound,
    /// The table has its largest number of entries.
    Full,
    /// Too many writes are in progress; try again after some of them.
    Busy,
}

/// An accepted change of one cell key, whose key is pinned.
#[derive(Debug)]
struct CellChange {
    kind: ChangeKind,
    entry: EntryId,
    home: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangeKind {
    Insert,
    Modify,
    Remove,
}

/// Accepted changes that are not yet planned, in order. Holds at most one change for each entry, so at most twice as
/// many as the table has entries.
#[derive(Debug, Default)]
pub(super) struct ChangeQueue {
    /// Changes by sequence number.
    changes: BTreeMap<u64, CellChange>,
    /// Sequence number of the waiting change of each entry.
    numbers: HashMap<EntryId, u64, FixedState>,
    next: u64,
    /// The change for which the placement searches.
    current: Option<CellChange>,
}

/// Result of adding a change to the queue.
enum QueuedChange {
    Added,
    /// An earlier change of the entry, which is planned later, has the effect of both.
    Merged,
    /// The earlier change was the entry's insertion. Both are gone.
    Cancelled,
}

impl ChangeQueue {
    pub(super) fn len(&self) -> usize {
        self.changes.len() + usize::from(self.current.is_some())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn add(&mut self, change: CellChange) -> QueuedChange {
        let earlier = self.numbers.get(&change.entry).copied();
        let Some((number, earlier)) = earlier.and_then(|number| Some((number, self.changes.get_mut(&number)?))) else {
            self.numbers.insert(change.entry, self.next);
            self.changes.insert(self.next, change);
            self.next += 1;
            return QueuedChange::Added;
        };
        // The plan of a change uses the record of its own time.
        if change.kind == ChangeKind::Remove {
            if earlier.kind == ChangeKind::Insert {
                self.changes.remove(&number);
                self.numbers.remove(&change.entry);
                return QueuedChange::Cancelled;
            }
            earlier.kind = ChangeKind::Remove;
        }
        QueuedChange::Merged
    }

    fn pop(&mut self) -> Option<CellChange> {
        let (_, change) = self.changes.pop_first()?;
        self.numbers.remove(&change.entry);
        Some(change)
    }
}

impl<P> ElasticTable<P> {
    /// Inserts an entry. Each later lookup sees it.
    ///
    /// # Errors
    /// If it exists, or is refused.
    pub fn insert(&mut self, key: EntryKey<'_>, record: &[u8]) -> Result<(), WriteFault> {
        self.check(key, Some(record))?;
        if self.record(key).is_some() {
            return Err(WriteFault::Exists);
        }
        if self.ledger.len() + self.prefixes.kept() + self.cell_count(key) > self.config.entries as usize
            || self.placement.stashed() >= self.config.limits.stash
        {
            return Err(WriteFault::Full);
        }
        self.set(key, Some(record));
        Ok(())
    }

    /// Replaces the record of an entry. Each later lookup sees the new one.
    ///
    /// # Errors
    /// If it does not exist, or is refused.
    pub fn modify(&mut self, key: EntryKey<'_>, record: &[u8]) -> Result<(), WriteFault> {
        self.check(key, Some(record))?;
        self.record(key).ok_or(WriteFault::NotFound)?;
        self.set(key, Some(record));
        Ok(())
    }

    /// Deletes an entry. No later lookup sees it.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn delete(&mut self, key: EntryKey<'_>) -> Result<(), WriteFault> {
        self.check(key, None)?;
        self.record(key).ok_or(WriteFault::NotFound)?;
        self.set(key, None);
        Ok(())
    }

    /// Returns the record of an entry, from the ledger.
    pub fn record(&self, key: EntryKey<'_>) -> Option<&[u8]> {
        match key.prefix_length {
            Some(length) => self.prefixes.get(key.bytes, length),
            None => {
                let id = self.ledger.find(self.secret.key_hash(key.bytes), key.bytes)?;
                Some(self.ledger.record(id))
            }
        }
    }

    /// Returns the number of cells that an entry takes, at most.
    fn cell_count(&self, key: EntryKey<'_>) -> usize {
        key.prefix_length.map_or(1, |length| self.config.keys.cell_count(length))
    }

    fn check(&self, key: EntryKey<'_>, record: Option<&[u8]>) -> Result<(), WriteFault> {
        let is_key = match (&self.config.keys, key.prefix_length) {
            (KeyForm::Exact { .. }, None) => true,
            (KeyForm::Prefix { bits, .. }, Some(length)) => length <= *bits,
            _ => false,
        };
        if !is_key || key.bytes.len() != self.config.keys.lookup_bytes() {
            return Err(WriteFault::Key);
        }
        record.map_or(Ok(()), |record| self.config.records.validate(record)).map_err(WriteFault::Record)?;
        if self.changes.len().saturating_add(self.cell_count(key)) > self.config.limits.changes {
            return Err(WriteFault::Busy);
        }
        Ok(())
    }

    fn set(&mut self, key: EntryKey<'_>, record: Option<&[u8]>) {
        let keeps = self.config.mutation.is(ElasticMutant::CacheKeepsDeleted);
        match key.prefix_length {
            None => {
                self.change(key.bytes, record);
                if !keeps {
                    self.cache.invalidate(key.bytes);
                }
            }
            Some(length) => {
                for change in self.prefixes.set(key.bytes, length, record) {
                    self.change(&change.key, change.record.as_deref());
                }
                if !keeps {
                    let (first, last) = self.config.keys.range(key.bytes, length);
                    self.cache.invalidate_range(&first, &last);
                }
            }
        }
    }

    /// Changes the record of a cell key: in the ledger and the overlay at once, in remote memory later.
    fn change(&mut self, key: &[u8], record: Option<&[u8]>) {
        let hash = self.secret.key_hash(key);
        let home = self.layout.home(hash);
        let (kind, entry) = match (self.ledger.find(hash, key), record) {
            (None, None) => return,
            (None, Some(record)) => (ChangeKind::Insert, self.ledger.add(hash, key, record)),
            (Some(id), Some(record)) => {
                self.ledger.set_record(id, record);
                (ChangeKind::Modify, id)
            }
            (Some(id), None) => {
                self.ledger.unlink(hash, id);
                (ChangeKind::Remove, id)
            }
        };
        self.overlay.put(key, record);
        let next_lookup = self.numbers.next();
        match self.changes.add(CellChange { kind, entry, home }) {
            QueuedChange::Added => {}
            QueuedChange::Merged => self.overlay.unpin(key, next_lookup),
            QueuedChange::Cancelled => {
                // The pin of each of the two changes.
                (0..2).for_each(|_| self.overlay.unpin(key, next_lookup));
                self.overlay.retire(self.numbers.oldest());
                self.ledger.release(entry);
            }
        }
    }

    /// Plans accepted changes, visiting at most about `budget` cells.
    pub(super) fn plan_changes(&mut self, mut budget: u32) {
        while budget > 0 && self.operations.len() < self.config.limits.operations {
            if self.changes.current.is_none() {
                let Some(change) = self.changes.pop() else { return };
                match change.kind {
                    ChangeKind::Insert => self.placement.begin_insert(change.entry, change.home),
                    ChangeKind::Remove => self.placement.begin_remove(change.entry, change.home),
                    ChangeKind::Modify => {
                        budget -= 1;
                        self.rewrite(change.entry, change.home);
                        continue;
                    }
                }
                self.changes.current = Some(change);
            }
            let Some(plan) = self.placement.advance(&mut budget) else { return };
            let change = self.changes.current.take().expect("a change is planned");
            self.carry_out(&change, &plan);
        }
    }

    /// Writes the new record of an entry. One in the stash needs no write.
    fn rewrite(&mut self, entry: EntryId, home: u32) {
        let key = self.ledger.key(entry).into();
        let step = self.placement.cell_of(entry, home).map(|cell| self.step(cell, Some(entry)));
        self.operate(step.into_iter().collect(), vec![key]);
    }

    fn step(&self, cell: u32, entry: Option<EntryId>) -> CellStep {
        CellStep { cell, entry: entry.map(|entry| self.ledger.entry(entry).into()) }
    }

    fn carry_out(&mut self, change: &CellChange, plan: &PlacementPlan) {
        let mut pins = Vec::with_capacity(plan.writes.len() + 1);
        // The pin of the change is removed with its operation, unless the stash takes it over.
        if plan.stashed != Some(change.entry) {
            pins.push(self.ledger.key(change.entry).into());
        }
        // So does the pin of an entry that leaves the stash.
        if let Some(entry) = plan.unstashed {
            pins.push(self.ledger.key(entry).into());
        }
        let is_pinned = |entry: &EntryId| *entry == change.entry || plan.unstashed == Some(*entry);
        let moved = plan.writes.iter().filter_map(|write| write.entry).filter(|entry| !is_pinned(entry));
        if !self.config.mutation.is(ElasticMutant::VictimFirst) {
            for entry in moved {
                let (key, record) = self.ledger.entry(entry).split_at(self.layout.form().key_bytes());
                self.overlay.pin(key, Some(record));
                pins.push(key.into());
            }
        }
        let steps = plan.writes.iter().map(|write| self.step(write.cell, write.entry)).collect();
        if change.kind == ChangeKind::Remove {
            self.ledger.release(change.entry);
        }
        self.operate(steps, pins);
    }
}
