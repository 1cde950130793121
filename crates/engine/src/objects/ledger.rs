//! Keeps the entries of `@elastic` tables as the control plane wrote them, while packets look them up in the memory of
//! servers.
//!
//! As long as rows are under ownership ([`Objects::own_rows`]), such a table has two parts:
//!
//! ```text
//!   control plane ── insert, modify, delete, get ──> ledger ── changes ──> owner of the rows ──> servers
//!   packets ── lookup ──> table: the entries that the owner has added for them <── answers ──────────┘
//! ```
//!
//! A change takes the entry out of the table at once, so that no later packet finds the old one.

use std::collections::BTreeMap;

use ir::{KeyValue, TableId};

use super::control::ControlChange;
use super::{ActionCall, ActionSpec, EntryError, Objects, TableEntry, TableState};
use crate::tables::Handle;

/// A change of an entry in a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerChange {
    /// The table.
    pub table: TableId,
    /// The key: its elements, each in whole bytes, the most significant first.
    pub key: Vec<u8>,
    /// The action that the entry has now; `None` if it was deleted.
    pub call: Option<ActionCall>,
}

/// The entries of all `@elastic` tables, and the changes that their owner has not taken.
#[derive(Debug, Default)]
pub(super) struct Ledgers {
    tables: BTreeMap<TableId, TableState>,
    changes: Vec<LedgerChange>,
}

/// Returns the key of an entry: its elements, each in whole bytes, the most significant first.
fn key_bytes(keys: &[KeyValue]) -> Vec<u8> {
    let exact = |key: &KeyValue| match key {
        KeyValue::Exact(value) => value.to_be_bytes(),
        _ => unreachable!("the keys of @elastic tables are exact"),
    };
    keys.iter().flat_map(exact).collect()
}

/// Returns the call of an entry of a table without a profile.
fn call_of(action: &ActionSpec) -> ActionCall {
    match action {
        ActionSpec::Direct(call) => call.clone(),
        _ => unreachable!("@elastic tables have no action profile"),
    }
}

impl Objects {
    /// Moves the entries of these tables to ledgers. All of them count as changes.
    pub(super) fn open_ledgers(&mut self, tables: impl Iterator<Item = TableId>) {
        for table in tables {
            let state = self.control().tables[table].clone();
            let handles: Vec<Handle> = state.entries.handles().collect();
            handles.iter().for_each(|handle| self.change(ControlChange::Take(table, *handle)));
            let ledgers = self.ledgers.get_or_insert_default();
            for handle in handles {
                let entry = state.entry(handle);
                let (key, call) = (key_bytes(&entry.keys), Some(call_of(&entry.action)));
                ledgers.changes.push(LedgerChange { table, key, call });
            }
            ledgers.tables.insert(table, state);
        }
    }

    /// Returns the state with the entries that the control plane wrote.
    pub(super) fn written_entries(&self, table: TableId) -> &TableState {
        self.ledger(table).unwrap_or(&self.control().tables[table])
    }

    fn ledger(&self, table: TableId) -> Option<&TableState> {
        self.ledgers.as_ref()?.tables.get(&table)
    }

    /// Whether the entries of a table are in a ledger.
    pub fn has_ledger(&self, table: TableId) -> bool {
        self.ledger(table).is_some()
    }

    /// Whether there are changes of ledgers that were not taken.
    #[inline]
    pub fn has_ledger_changes(&self) -> bool {
        self.ledgers.as_ref().is_some_and(|ledgers| !ledgers.changes.is_empty())
    }

    /// Removes and returns the changes of ledgers since the last call, oldest first.
    pub fn take_ledger_changes(&mut self) -> Vec<LedgerChange> {
        self.ledgers.as_mut().map(|ledgers| std::mem::take(&mut ledgers.changes)).unwrap_or_default()
    }

    /// Adds a checked entry to a ledger.
    pub(super) fn insert_into_ledger(&mut self, table: TableId, entry: &TableEntry) -> Result<(), EntryError> {
        let ledger = self.written_entries(table);
        if ledger.backend.find(&entry.keys, entry.priority).is_some() {
            return Err(EntryError::Duplicate);
        }
        if ledger.len() as u64 >= ledger.capacity {
            return Err(EntryError::Full(ledger.capacity));
        }
        let now_ns = self.now_ns;
        self.change_ledger(table, &entry.keys, Some(call_of(&entry.action)), |ledger| ledger.add(entry, false, now_ns));
        Ok(())
    }

    /// Replaces an entry of a ledger by a checked one with the same key.
    pub(super) fn modify_in_ledger(&mut self, table: TableId, entry: &TableEntry) -> Result<(), EntryError> {
        let handle =
            self.written_entries(table).backend.find(&entry.keys, entry.priority).ok_or(EntryError::NotFound)?;
        let now_ns = self.now_ns;
        self.change_ledger(table, &entry.keys, Some(call_of(&entry.action)), |ledger| {
            ledger.replace(handle, entry, now_ns);
        });
        Ok(())
    }

    /// Removes an entry from a ledger.
    pub(super) fn take_from_ledger(&mut self, table: TableId, handle: Handle) {
        let keys = self.written_entries(table).entries.keys(handle);
        self.change_ledger(table, &keys, None, |ledger| _ = ledger.take(handle));
    }

    fn change_ledger(
        &mut self,
        table: TableId,
        keys: &[KeyValue],
        call: Option<ActionCall>,
        change: impl FnOnce(&mut TableState),
    ) {
        let key = key_bytes(keys);
        let ledgers = self.ledgers.as_mut().expect("the table has a ledger");
        change(ledgers.tables.get_mut(&table).expect("the table has a ledger"));
        ledgers.changes.push(LedgerChange { table, key: key.clone(), call });
        self.remove_entry_with_key(table, &key);
    }
}
