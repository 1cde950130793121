//! Holds the state of one table: its entries and their counts.

use std::sync::Arc;

use cranelift_entity::PrimaryMap;
use ir::{ActionId, CounterId, MatchKind, MeterId, ProfileId, TableAction, TableId};

use super::records::Records;
use super::{ActionCall, ActionSpec, CounterValue, EntryError, MeterConfig, TableEntry};
use crate::tables::{Backend, Handle, KeyShape, KeyWords, backend_for};

/// An entry of a table, with the sums over all workers so far.
#[derive(Clone, Debug)]
pub struct Installed<'a> {
    /// The entry.
    pub entry: &'a TableEntry,
    /// Whether the program declares it constant, so the control plane cannot change it.
    pub constant: bool,
    /// Direct counter: hits and their bytes. It counts if the table has a direct counter, a direct meter or entries
    /// with an idle timeout.
    pub counter: CounterValue,
    /// Configuration of the direct meter.
    pub meter_config: Option<MeterConfig>,
    /// Time of the last hit (in tables that record hits), or of the write.
    pub last_hit_ns: u64,
}

/// An entry as stored in a version of a table; versions share entries that do not change.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) entry: Arc<TableEntry>,
    pub(crate) constant: bool,
    /// Number of entries that have had this handle, including this one; a worker's counts belong to one of them.
    pub(crate) generation: u32,
    pub(crate) written_ns: u64,
}

/// Capacity of a table that declares no size.
const DEFAULT_CAPACITY: u64 = 1024;

/// A table: properties from the program that restrict the control plane, and state.
#[derive(Debug)]
pub(crate) struct TableState {
    /// Key elements that are matched, without selectors.
    pub(crate) keys: Vec<KeyShape>,
    pub(crate) has_selectors: bool,
    pub(crate) actions: Vec<TableAction>,
    pub(crate) const_entries: bool,
    pub(crate) const_default: bool,
    /// The size that the program declares, but at least the number of its own entries, so that removed ones can be
    /// added again.
    pub(crate) capacity: u64,
    pub(crate) profile: Option<ProfileId>,
    pub(crate) counter: Option<CounterId>,
    pub(crate) meter: Option<MeterId>,
    pub(crate) initial_default: ActionCall,
    pub(crate) default: ActionCall,
    pub(crate) backend: Box<dyn Backend>,
    /// Packing of the key, selectors included.
    pub(crate) words: KeyWords,
    /// Records of entries and the default action.
    pub(crate) records: Records,
    /// Whether hits are counted, metered or timed.
    pub(crate) records_hits: bool,
    entries: Vec<Option<Stored>>,
    /// Handles available for reuse, and their generations.
    free: Vec<(Handle, u32)>,
}

impl Clone for TableState {
    fn clone(&self) -> Self {
        TableState {
            keys: self.keys.clone(),
            has_selectors: self.has_selectors,
            actions: self.actions.clone(),
            const_entries: self.const_entries,
            const_default: self.const_default,
            capacity: self.capacity,
            profile: self.profile,
            counter: self.counter,
            meter: self.meter,
            initial_default: self.initial_default.clone(),
            default: self.default.clone(),
            backend: self.backend.copy(),
            words: self.words.clone(),
            records: self.records.clone(),
            records_hits: self.records_hits,
            entries: self.entries.clone(),
            free: self.free.clone(),
        }
    }
}

impl TableState {
    pub(crate) fn new(table: &ir::Table, params: &PrimaryMap<ActionId, Vec<u32>>) -> Self {
        let matched = table.keys.iter().filter(|key| key.kind != MatchKind::Selector);
        let shape = |key: &ir::Key| KeyShape { width: key.width, kind: key.kind, signed: key.signed };
        let keys: Vec<_> = matched.map(shape).collect();
        let (index, args) = table.default_action.clone();
        let default = ActionCall { action: table.actions[index as usize].action, args };
        let widths: Vec<&[u32]> = table.actions.iter().map(|action| params[action.action].as_slice()).collect();
        let mut records = Records::new(&widths);
        records.set_default(index as usize, &default);
        TableState {
            words: KeyWords::new(table.keys.iter().map(|key| (key.width, key.kind))),
            records,
            records_hits: table.records_hits(),
            has_selectors: keys.len() < table.keys.len(),
            backend: backend_for(&keys),
            keys,
            actions: table.actions.clone(),
            const_entries: table.const_entries,
            const_default: table.const_default,
            capacity: table.size.unwrap_or(DEFAULT_CAPACITY).max(table.entries.len() as u64),
            profile: table.profile,
            counter: table.counter,
            meter: table.meter,
            initial_default: default.clone(),
            default,
            entries: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Handle, &Stored)> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(|(index, stored)| Some((Handle(index as u32), stored.as_ref()?)))
    }

    #[inline]
    pub(crate) fn stored(&self, handle: Handle) -> &Stored {
        self.entries[handle.0 as usize].as_ref().expect("backends name entries that are there")
    }

    /// # Errors
    /// `ConstEntry` if the program declares the entry constant.
    pub(crate) fn check_may_change(&self, table: TableId, handle: Handle) -> Result<(), EntryError> {
        if self.stored(handle).constant { Err(EntryError::ConstEntry(table)) } else { Ok(()) }
    }

    /// Adds a checked entry with a new key.
    pub(crate) fn add(&mut self, entry: Arc<TableEntry>, constant: bool, written_ns: u64) {
        let (handle, before) = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            (Handle(self.entries.len() as u32 - 1), 0)
        });
        self.backend.insert(&entry.keys, entry.priority, handle);
        self.note(handle, &entry.action);
        let generation = before.wrapping_add(1);
        self.entries[handle.0 as usize] = Some(Stored { entry, constant, generation, written_ns });
    }

    /// Writes the record of an entry.
    fn note(&mut self, handle: Handle, spec: &ActionSpec) {
        let index = |call: &ActionCall| {
            let found = self.actions.iter().position(|candidate| candidate.action == call.action);
            found.expect("entries are checked against the table's actions")
        };
        self.records.set(handle, spec, index);
    }

    /// Replaces an entry with the same key and priority. Returns the previous entry.
    pub(crate) fn replace(&mut self, handle: Handle, entry: Arc<TableEntry>, written_ns: u64) -> Arc<TableEntry> {
        self.note(handle, &entry.action);
        let stored = self.entries[handle.0 as usize].as_mut().expect("the entry is there");
        stored.written_ns = written_ns;
        std::mem::replace(&mut stored.entry, entry)
    }

    /// Sets the checked default action.
    pub(crate) fn set_default(&mut self, call: ActionCall) {
        let index = self.action_index(call.action).expect("the default is one of the table's actions");
        self.records.set_default(index, &call);
        self.default = call;
    }

    /// Removes an entry.
    pub(crate) fn take(&mut self, handle: Handle) -> Arc<TableEntry> {
        let Stored { entry, generation, .. } = self.entries[handle.0 as usize].take().expect("the entry is there");
        let removed = self.backend.remove(&entry.keys, entry.priority);
        assert_eq!(removed, Some(handle), "backend and entries agree");
        self.free.push((handle, generation));
        entry
    }

    /// Moves the entries to another backend.
    pub(crate) fn move_to(&mut self, mut backend: Box<dyn Backend>) {
        for (handle, stored) in self.iter() {
            backend.insert(&stored.entry.keys, stored.entry.priority, handle);
        }
        self.backend = backend;
    }

    /// Returns the index of an action in the table's list.
    pub(crate) fn action_index(&self, action: ActionId) -> Option<usize> {
        self.actions.iter().position(|candidate| candidate.action == action)
    }
}
