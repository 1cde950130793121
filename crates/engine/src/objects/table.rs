//! The state of one table: its entries and what is counted with each.

use ir::{ActionId, CounterId, MatchKind, MeterId, ProfileId, TableAction};

use super::{ActionCall, CounterValue, Meter, TableEntry};
use crate::tables::{Backend, Handle, KeyShape, backend_for};

/// An entry that is in a table.
#[derive(Clone, Debug)]
pub struct Installed {
    /// The entry.
    pub entry: TableEntry,
    /// Whether the program gave it and the control plane may not touch it.
    pub constant: bool,
    /// Its direct counter, whether or not the table has one: hits and their bytes.
    pub counter: CounterValue,
    /// Its direct meter.
    pub meter: Meter,
    /// When it was last hit, or written.
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
    entries: Vec<Option<Installed>>,
    free: Vec<Handle>,
}

impl TableState {
    pub(crate) fn new(table: &ir::Table) -> Self {
        let matched = table.keys.iter().filter(|key| key.kind != MatchKind::Selector);
        let shape = |key: &ir::Key| KeyShape { width: key.width, kind: key.kind, signed: key.signed };
        let keys: Vec<_> = matched.map(shape).collect();
        let (index, args) = table.default_action.clone();
        let default = ActionCall { action: table.actions[index as usize].action, args };
        TableState {
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
        self.entries[handle.0 as usize] = Some(installed);
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
