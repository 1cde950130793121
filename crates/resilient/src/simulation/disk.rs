//! The disk of a simulated node. Entries have the bytes that a real disk gets.

use std::collections::{BTreeMap, VecDeque};

use switch::Time;

use crate::layout::ChainMember;
use crate::row::RowId;
use crate::store::{EntryChange, GroupCommit, StoreConfig, StoreNode, StoreRecord, StoreRecovery};
use crate::wire_form::MessageReader;

/// Kind of entries with rows, and the length of their keys before the row.
const ROW: u8 = 3;
const ROW_KEY: usize = 3;

/// Entries that are safe, and records that are being written.
#[derive(Debug, Default)]
pub struct NodeDisk {
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    writing: VecDeque<(u64, StoreRecord)>,
    commit: GroupCommit,
}

impl NodeDisk {
    /// Returns the number of records that are being written.
    pub fn writing(&self) -> usize {
        self.writing.len()
    }

    /// Adds a record.
    pub fn write(&mut self, number: u64, record: StoreRecord) {
        self.writing.push_back((number, record));
    }

    /// Commits the records up to this one.
    pub fn sync(&mut self, up_to: u64) {
        let count = self.writing.iter().take_while(|(number, _)| *number <= up_to).count();
        self.commit(count);
    }

    /// Commits this number of records, and loses the others.
    pub fn crash(&mut self, count: usize) {
        self.commit(count);
        self.writing.clear();
    }

    fn commit(&mut self, count: usize) {
        for (number, record) in self.writing.drain(..count) {
            self.commit.push(number, record);
        }
        let Some(batch) = self.commit.take() else { return };
        for change in batch.changes() {
            match change {
                EntryChange::RemoveAll(prefix) => self.entries.retain(|key, _| !key.starts_with(&prefix)),
                EntryChange::Remove(key) => {
                    // A row may come and go within a transaction.
                    let (is_row, removed) = (key.first() == Some(&ROW), self.entries.remove(&key));
                    assert!(is_row || removed.is_some(), "an entry is removed once");
                }
                EntryChange::Put(key, value) => drop(self.entries.insert(key, value)),
            }
        }
    }

    /// Returns the entries in the order of keys.
    pub fn entries(&self) -> &BTreeMap<Vec<u8>, Vec<u8>> {
        &self.entries
    }

    /// Returns the rows that are on the disk.
    pub fn rows(&self) -> impl Iterator<Item = RowId> + '_ {
        let row = |key: &Vec<u8>| MessageReader(key.get(ROW_KEY..)?).row().ok();
        self.entries.keys().filter(|key| key.first() == Some(&ROW)).filter_map(row)
    }

    /// Restores the node.
    ///
    /// # Panics
    /// If the entries are not those of a node.
    pub fn recover(&mut self, config: StoreConfig, me: ChainMember, seed: u64, now: Time) -> StoreNode {
        let mut recovery = StoreRecovery::new(config, me, seed, now);
        for (key, value) in &self.entries {
            recovery.entry(key, value).expect("the disk has what was written");
        }
        let (node, commit) = recovery.finish().expect("the disk has all that was written");
        self.commit = commit;
        node
    }
}
