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
//! A change takes the entry out of the table at once, so that no later packet finds the old one. In a table with an
//! `lpm` element, the owner adds entries of whole addresses, and a change of a prefix takes out all below it.

use std::collections::BTreeMap;

use ir::{ElasticPrefix, ElasticSettings, KeyValue, TableId};

use super::control::ControlChange;
use super::row_tables::with_prefix_last;
use super::{ActionCall, ActionSpec, EntryError, Objects, TableEntry, TableState};
use crate::tables::Handle;

/// A change of an entry in a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerChange {
    /// The table.
    pub table: TableId,
    /// The key: its elements, each in whole bytes, the most significant first. An `lpm` element is the last.
    pub key: Vec<u8>,
    /// Length of the prefix, if the table has an `lpm` element.
    pub prefix_length: Option<u32>,
    /// The action that the entry has now; `None` if it was deleted.
    pub call: Option<ActionCall>,
}

/// The entries of an `@elastic` table.
#[derive(Debug)]
struct Ledger {
    state: TableState,
    prefix: Option<ElasticPrefix>,
    /// How much of the table's size its entries take.
    cells: u64,
}

/// The entries of all `@elastic` tables, and the changes that their owner has not taken.
#[derive(Debug, Default)]
pub(super) struct Ledgers {
    tables: BTreeMap<TableId, Ledger>,
    changes: Vec<LedgerChange>,
}

impl Ledger {
    /// Returns how much of the table's size an entry takes: a prefix, its maximum number of cells.
    fn cell_count(&self, keys: &[KeyValue]) -> u64 {
        let length = prefix_length(keys);
        self.prefix.as_ref().zip(length).map_or(1, |(prefix, length)| prefix.cell_count(length))
    }

    /// Returns the change of an entry.
    fn change(&self, table: TableId, keys: &[KeyValue], call: Option<ActionCall>) -> LedgerChange {
        let values = keys.iter().map(|key| match key {
            KeyValue::Exact(value) | KeyValue::Lpm(value, _) => value.to_be_bytes(),
            _ => unreachable!("the keys of @elastic tables are exact, except for one prefix"),
        });
        let element = self.prefix.as_ref().map(|prefix| prefix.element);
        let key = with_prefix_last(values.collect(), element).concat();
        LedgerChange { table, key, prefix_length: prefix_length(keys), call }
    }
}

/// Returns the length of the prefix among the values of a key.
fn prefix_length(keys: &[KeyValue]) -> Option<u32> {
    keys.iter().find_map(|key| if let KeyValue::Lpm(_, length) = key { Some(*length) } else { None })
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
    pub(super) fn open_ledgers(&mut self, tables: Vec<ElasticSettings>) {
        for ElasticSettings { table, prefix, .. } in tables {
            let state = self.control().tables[table].clone();
            let handles: Vec<Handle> = state.entries.handles().collect();
            handles.iter().for_each(|handle| self.change(ControlChange::Take(table, *handle)));
            let mut ledger = Ledger { state, prefix, cells: 0 };
            let ledgers = self.ledgers.get_or_insert_default();
            for handle in handles {
                let entry = ledger.state.entry(handle);
                ledger.cells += ledger.cell_count(&entry.keys);
                ledgers.changes.push(ledger.change(table, &entry.keys, Some(call_of(&entry.action))));
            }
            ledgers.tables.insert(table, ledger);
        }
    }

    /// Returns the state with the entries that the control plane wrote.
    pub(super) fn written_entries(&self, table: TableId) -> &TableState {
        self.ledger(table).map_or(&self.control().tables[table], |ledger| &ledger.state)
    }

    fn ledger(&self, table: TableId) -> Option<&Ledger> {
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
        let ledger = self.ledger(table).expect("the table has a ledger");
        let state = &ledger.state;
        if state.backend.find(&entry.keys, entry.priority).is_some() {
            return Err(EntryError::Duplicate);
        }
        let more = ledger.cell_count(&entry.keys);
        if ledger.cells + more > state.capacity {
            return Err(if more == 1 {
                EntryError::Full(state.capacity)
            } else {
                EntryError::NoCells(more, state.capacity)
            });
        }
        let now_ns = self.now_ns;
        self.change_ledger(table, &entry.keys, Some(call_of(&entry.action)), |ledger| {
            ledger.state.add(entry, false, now_ns);
            ledger.cells += more;
        });
        Ok(())
    }

    /// Replaces an entry of a ledger by a checked one with the same key.
    pub(super) fn modify_in_ledger(&mut self, table: TableId, entry: &TableEntry) -> Result<(), EntryError> {
        let handle =
            self.written_entries(table).backend.find(&entry.keys, entry.priority).ok_or(EntryError::NotFound)?;
        let now_ns = self.now_ns;
        self.change_ledger(table, &entry.keys, Some(call_of(&entry.action)), |ledger| {
            ledger.state.replace(handle, entry, now_ns);
        });
        Ok(())
    }

    /// Removes an entry from a ledger.
    pub(super) fn take_from_ledger(&mut self, table: TableId, handle: Handle) {
        let keys = self.written_entries(table).entries.keys(handle);
        self.change_ledger(table, &keys, None, |ledger| {
            ledger.state.take(handle);
            ledger.cells -= ledger.cell_count(&keys);
        });
    }

    fn change_ledger(
        &mut self,
        table: TableId,
        keys: &[KeyValue],
        call: Option<ActionCall>,
        change: impl FnOnce(&mut Ledger),
    ) {
        let ledgers = self.ledgers.as_mut().expect("the table has a ledger");
        let ledger = ledgers.tables.get_mut(&table).expect("the table has a ledger");
        change(ledger);
        let change = ledger.change(table, keys, call);
        let (key, prefix_length) = (change.key.clone(), change.prefix_length);
        ledgers.changes.push(change);
        self.remove_entries_under(table, &key, prefix_length);
    }
}
