//! Holds the state of one table: its entries and their counts.

use cranelift_entity::PrimaryMap;
use ir::{ActionId, CounterId, MatchKind, MeterId, ProfileId, TableAction, TableId};
use smallvec::SmallVec;

use super::entry_store::{EntryStore, StoredAction};
use super::records::Records;
use super::{ActionCall, ActionSpec, CounterValue, EntryError, MeterConfig, TableEntry};
use crate::tables::{Backend, Handle, KeyShape, KeyWords, backend_for};

/// An entry of a table, with the sums over all workers so far.
#[derive(Clone, Debug)]
pub struct Installed {
    /// The entry.
    pub entry: TableEntry,
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

/// Identifies an entry among the present and removed ones of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryHandle {
    /// Number in the table, from 0. The numbers of removed entries are reused.
    pub number: u32,
    /// Number of entries that have had this number, including it.
    pub generation: u32,
}

/// What is known of an entry that packets see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryStats {
    /// Time at which it was written: inserted or modified.
    pub written_ns: u64,
    /// Hits that this view has counted, and their bytes. `None` if the table has no direct counter, no direct meter
    /// and no idle timeouts.
    pub counter: Option<CounterValue>,
}

/// Capacity of a table that declares no size.
const DEFAULT_CAPACITY: u64 = 1024;

/// Returns the number of entries of a table that declares none.
fn default_capacity(table: &ir::Table) -> u64 {
    if table.waits_for_entries() { ir::DEFAULT_TABLE_ROWS } else { DEFAULT_CAPACITY }
}

/// A table: properties from the program that restrict the control plane, and state.
#[derive(Debug)]
pub(crate) struct TableState {
    /// Key elements that are matched, without selectors.
    pub(crate) keys: Vec<KeyShape>,
    pub(crate) has_selectors: bool,
    pub(crate) actions: Vec<TableAction>,
    pub(crate) const_entries: bool,
    /// Whether the stores of resilient state create its entries.
    pub(crate) is_resilient: bool,
    /// Whether a miss is no answer if rows are under ownership.
    pub(crate) waits_for_entries: bool,
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
    /// Whether its entries are rows that age: the times of hits are kept.
    pub(crate) notes_uses: bool,
    /// The entries, except the actions that are in their records.
    pub(crate) entries: EntryStore,
}

impl Clone for TableState {
    fn clone(&self) -> Self {
        TableState {
            keys: self.keys.clone(),
            has_selectors: self.has_selectors,
            actions: self.actions.clone(),
            const_entries: self.const_entries,
            is_resilient: self.is_resilient,
            waits_for_entries: self.waits_for_entries,
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
            notes_uses: self.notes_uses,
            entries: self.entries.clone(),
        }
    }
}

impl TableState {
    /// Creates the state of a table. `notes_uses` is true if its entries are rows that age.
    pub(crate) fn new(table: &ir::Table, params: &PrimaryMap<ActionId, Vec<u32>>, notes_uses: bool) -> Self {
        let matched = table.keys.iter().filter(|key| key.kind != MatchKind::Selector);
        let keys: Vec<_> = matched.map(KeyShape::from).collect();
        let (index, args) = table.default_action.clone();
        let default = ActionCall { action: table.actions[index as usize].action, args };
        let widths: Vec<&[u32]> = table.actions.iter().map(|action| params[action.action].as_slice()).collect();
        let mut records = Records::new(&widths);
        records.set_default(index as usize, &default);
        TableState {
            words: KeyWords::new(table.keys.iter().map(|key| (key.width, key.kind))),
            records,
            records_hits: table.records_hits(),
            notes_uses,
            has_selectors: keys.len() < table.keys.len(),
            backend: backend_for(&keys),
            entries: EntryStore::new(&keys, table.idle_timeout, table.profile.is_some()),
            keys,
            actions: table.actions.clone(),
            const_entries: table.const_entries,
            is_resilient: table.is_resilient(),
            waits_for_entries: table.waits_for_entries(),
            const_default: table.const_default,
            capacity: table.size.unwrap_or(default_capacity(table)).max(table.entries.len() as u64),
            profile: table.profile,
            counter: table.counter,
            meter: table.meter,
            initial_default: default.clone(),
            default,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the action of an entry.
    pub(crate) fn action(&self, handle: Handle) -> ActionSpec {
        match self.entries.action(handle) {
            StoredAction::InRecord => ActionSpec::Direct(self.recorded_call(handle)),
            StoredAction::Member(id) => ActionSpec::Member(id),
            StoredAction::Group(id) => ActionSpec::Group(id),
            StoredAction::Other(spec) => spec.clone(),
        }
    }

    /// Returns the action in the record of an entry.
    pub(crate) fn recorded_call(&self, handle: Handle) -> ActionCall {
        let (index, args) = self.records.call(handle);
        ActionCall { action: self.actions[index].action, args }
    }

    /// Returns an entry.
    pub(crate) fn entry(&self, handle: Handle) -> TableEntry {
        TableEntry {
            keys: self.entries.keys(handle),
            priority: self.entries.priority(handle),
            action: self.action(handle),
            metadata: self.entries.metadata(handle),
            idle_timeout_ns: self.entries.idle_timeout_ns(handle),
        }
    }

    /// Returns the record of an entry with this action of the table.
    pub(crate) fn record_of(&self, call: &ActionCall) -> SmallVec<[u64; 4]> {
        self.records.of(call, self.action_index(call.action).expect("entries are checked against the table's actions"))
    }

    /// # Errors
    /// `ConstEntry` if the program declares the entry constant.
    pub(crate) fn check_may_change(&self, table: TableId, handle: Handle) -> Result<(), EntryError> {
        if self.entries.is_constant(handle) { Err(EntryError::ConstEntry(table)) } else { Ok(()) }
    }

    /// Adds a checked entry with a new key.
    pub(crate) fn add(&mut self, entry: &TableEntry, constant: bool, written_ns: u64) {
        let handle = self.entries.add(entry, self.is_recorded(&entry.action), constant, written_ns);
        self.backend.insert(&entry.keys, entry.priority, handle);
        self.note(handle, &entry.action);
    }

    /// Whether the record of an entry holds its action.
    fn is_recorded(&self, spec: &ActionSpec) -> bool {
        matches!(spec, ActionSpec::Direct(call) if Records::can_hold(self.known_index(call)))
    }

    fn known_index(&self, call: &ActionCall) -> usize {
        self.action_index(call.action).expect("entries are checked against the table's actions")
    }

    /// Writes the record of an entry.
    fn note(&mut self, handle: Handle, spec: &ActionSpec) {
        let index = if let ActionSpec::Direct(call) = spec { self.known_index(call) } else { 0 };
        self.records.set(handle, spec, index);
    }

    /// Replaces an entry with the same key and priority. Returns the previous action.
    pub(crate) fn replace(&mut self, handle: Handle, entry: &TableEntry, written_ns: u64) -> ActionSpec {
        let before = self.action(handle);
        self.entries.replace(handle, entry, self.is_recorded(&entry.action), written_ns);
        self.note(handle, &entry.action);
        before
    }

    /// Sets the checked default action.
    pub(crate) fn set_default(&mut self, call: ActionCall) {
        let index = self.action_index(call.action).expect("the default is one of the table's actions");
        self.records.set_default(index, &call);
        self.default = call;
    }

    /// Removes an entry and returns its action.
    pub(crate) fn take(&mut self, handle: Handle) -> ActionSpec {
        let action = self.action(handle);
        let removed = self.backend.remove(&self.entries.keys(handle), self.entries.priority(handle));
        assert_eq!(removed, Some(handle), "backend and entries agree");
        self.entries.take(handle);
        action
    }

    /// Moves the entries to another backend.
    pub(crate) fn move_to(&mut self, mut backend: Box<dyn Backend>) {
        backend.begin_load(self.entries.len());
        for handle in self.entries.handles() {
            backend.insert(&self.entries.keys(handle), self.entries.priority(handle), handle);
        }
        backend.finish_load();
        self.backend = backend;
    }

    /// Returns the index of an action in the table's list.
    pub(crate) fn action_index(&self, action: ActionId) -> Option<usize> {
        self.actions.iter().position(|candidate| candidate.action == action)
    }
}
