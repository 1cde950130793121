//! The state of one table: its entries and what is counted with each.

use cranelift_entity::PrimaryMap;
use ir::{ActionId, CounterId, MatchKind, MeterId, ProfileId, TableAction};

use super::records::Records;
use super::{ActionCall, ActionSpec, CounterValue, Meter, TableEntry};
use crate::tables::{Backend, Handle, KeyShape, KeyWords, backend_for};

/// An entry that is in a table.
#[derive(Clone, Debug)]
pub struct Installed {
    /// The entry.
    pub entry: TableEntry,
    /// Whether the program gave it and the control plane may not touch it.
    pub constant: bool,
    /// Its direct counter: hits and their bytes. Counts if the table has a direct counter, a direct meter or entries
    /// that age.
    pub counter: CounterValue,
    /// Its direct meter.
    pub meter: Meter,
    /// When it was last hit (in the tables whose hits are counted), or written.
    pub last_hit_ns: u64,
}

/// A table: facts of the program that the control plane is held to, and state.
#[derive(Debug)]
pub(crate) struct TableState {
    /// The key elements that are matched, which leaves out selectors.
    pub(crate) keys: Vec<KeyShape>,
    pub(crate) has_selectors: bool,
    pub(crate) actions: Vec<TableAction>,
    pub(crate) const_entries: bool,
    pub(crate) const_default: bool,
    pub(crate) capacity: u64,
    pub(crate) profile: Option<ProfileId>,
    pub(crate) counter: Option<CounterId>,
    pub(crate) meter: Option<MeterId>,
    pub(crate) initial_default: ActionCall,
    pub(crate) default: ActionCall,
    pub(crate) backend: Box<dyn Backend>,
    /// The key in words, selectors included.
    pub(crate) words: KeyWords,
    /// What entries and the default action run, in words.
    pub(crate) records: Records,
    /// Whether hits are counted, metered or timed.
    pub(crate) notes_hits: bool,
    entries: Vec<Option<Installed>>,
    free: Vec<Handle>,
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
            notes_hits: table.counter.is_some() || table.meter.is_some() || table.idle_timeout,
            has_selectors: keys.len() < table.keys.len(),
            backend: backend_for(&keys),
            keys,
            actions: table.actions.clone(),
            const_entries: table.const_entries,
            const_default: table.const_default,
            capacity: table.size.unwrap_or(0).max(1024),
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

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Installed> {
        self.entries.iter().flatten()
    }

    pub(crate) fn entry(&self, handle: Handle) -> &Installed {
        self.entries[handle.0 as usize].as_ref().expect("backends name entries that are there")
    }

    pub(crate) fn entry_mut(&mut self, handle: Handle) -> &mut Installed {
        self.entries[handle.0 as usize].as_mut().expect("backends name entries that are there")
    }

    /// Adds a checked entry that is not there yet.
    pub(crate) fn add(&mut self, installed: Installed) {
        let handle = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            Handle(self.entries.len() as u32 - 1)
        });
        self.backend.insert(&installed.entry.keys, installed.entry.priority, handle);
        self.note(handle, &installed.entry.action);
        self.entries[handle.0 as usize] = Some(installed);
    }

    /// Writes the record of an entry.
    fn note(&mut self, handle: Handle, spec: &ActionSpec) {
        let index = |call: &ActionCall| {
            let found = self.actions.iter().position(|candidate| candidate.action == call.action);
            found.expect("entries are checked against the table's actions")
        };
        self.records.set(handle, spec, index);
    }

    /// Puts another entry in the place of one with the same key and priority, and returns that.
    pub(crate) fn replace(&mut self, handle: Handle, entry: TableEntry) -> TableEntry {
        self.note(handle, &entry.action);
        std::mem::replace(&mut self.entry_mut(handle).entry, entry)
    }

    /// Sets what a miss runs, which is checked.
    pub(crate) fn set_default(&mut self, call: ActionCall) {
        let index = self.action_index(call.action).expect("the default is one of the table's actions");
        self.records.set_default(index, &call);
        self.default = call;
    }

    /// Takes an entry away.
    pub(crate) fn take(&mut self, handle: Handle) -> Installed {
        let installed = self.entries[handle.0 as usize].take().expect("the entry is there");
        let removed = self.backend.remove(&installed.entry.keys, installed.entry.priority);
        assert_eq!(removed, Some(handle), "backend and entries agree");
        self.free.push(handle);
        installed
    }

    /// Moves the entries to another backend.
    pub(crate) fn move_to(&mut self, mut backend: Box<dyn Backend>) {
        for (index, installed) in self.entries.iter().enumerate() {
            if let Some(Installed { entry, .. }) = installed {
                backend.insert(&entry.keys, entry.priority, Handle(index as u32));
            }
        }
        self.backend = backend;
    }

    /// The index of an action in the table's list.
    pub(crate) fn action_index(&self, action: ActionId) -> Option<usize> {
        self.actions.iter().position(|candidate| candidate.action == action)
    }
}
