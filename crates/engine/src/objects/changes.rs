//! Records which entries the control plane changed, for copies of the tables that others keep.

use std::collections::BTreeSet;

use ir::{CounterId, ProfileId, TableId, ValueSetId};

use super::control::ControlChange;
use super::{CounterValue, EntryHandle, Objects, TableEntry, ViewRole};
use crate::tables::Handle;

/// The part of a table, or of an action profile, that a write changed. The objects have its present value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangedEntry {
    /// The default action was set.
    Default(TableId),
    /// The entry with this number was added, replaced or removed.
    Entry(TableId, u32),
    /// Members were added to a value set, or removed.
    ValueSet(ValueSetId),
    /// The member with this id was added, modified or removed.
    Member(ProfileId, u32),
    /// The group with this id was added, modified or removed.
    Group(ProfileId, u32),
    /// The port went up or down. Recorded for programs with action profiles, whose groups may watch it.
    Port(u32),
}

impl Objects {
    /// Begins to record changes, for [`Objects::take_changes`].
    pub fn record_changes(&mut self) {
        self.changes.get_or_insert_default();
    }

    /// Takes the changes since the last call, each once. Empty before [`Objects::record_changes`].
    pub fn take_changes(&mut self) -> BTreeSet<ChangedEntry> {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether there are changes to take.
    #[inline]
    pub fn has_changes(&self) -> bool {
        self.changes.as_ref().is_some_and(|changes| !changes.is_empty())
    }

    /// Records a change that is about to be applied, if changes are recorded.
    pub(super) fn note_change(&mut self, change: &ControlChange) {
        let (Some(changes), ViewRole::Owner(writer)) = (&mut self.changes, &self.side) else { return };
        match change {
            ControlChange::Add(table, ..) => {
                let next = writer.latest().tables[*table].entries.next_handle();
                changes.insert(ChangedEntry::Entry(*table, next.0));
            }
            ControlChange::Replace(table, handle, ..) | ControlChange::Take(table, handle) => {
                changes.insert(ChangedEntry::Entry(*table, handle.0));
            }
            ControlChange::Default(table, _) => _ = changes.insert(ChangedEntry::Default(*table)),
            ControlChange::InsertMember(profile, id, _)
            | ControlChange::ModifyMember(profile, id, _)
            | ControlChange::DeleteMember(profile, id) => _ = changes.insert(ChangedEntry::Member(*profile, *id)),
            ControlChange::InsertGroup(profile, id, ..)
            | ControlChange::ModifyGroup(profile, id, _)
            | ControlChange::DeleteGroup(profile, id) => _ = changes.insert(ChangedEntry::Group(*profile, *id)),
            ControlChange::AddToSet(set, _) | ControlChange::TakeFromSet(set, _) | ControlChange::ClearSet(set) => {
                changes.insert(ChangedEntry::ValueSet(*set));
            }
            ControlChange::Port(port, _) if !writer.latest().profiles.is_empty() => {
                changes.insert(ChangedEntry::Port(*port));
            }
            _ => {}
        }
    }

    /// Returns the numbers of all entries that packets see.
    pub fn entry_numbers(&self, table: TableId) -> impl Iterator<Item = u32> {
        self.control().tables[table].entries.handles().map(|handle| handle.0)
    }

    /// Returns the entry with a number, and its handle, which is not reused for later entries. `None` if there is none,
    /// and for tables whose entries lie in the memory of servers.
    pub fn entry_numbered(&self, table: TableId, number: u32) -> Option<(TableEntry, EntryHandle)> {
        let (state, handle) = (&self.control().tables[table], Handle(number));
        let is_present = !self.has_ledger(table) && state.entries.has(handle);
        is_present.then(|| (state.entry(handle), self.entry_handle(table, handle)))
    }

    /// Adds packets that were counted elsewhere to an element of a counter array. An element beyond the end is
    /// ignored.
    pub fn add_to_counter(&mut self, counter: CounterId, index: u64, more: CounterValue) {
        if self.check_counter(counter, index).is_ok() {
            self.tally.set_counter(counter, index, self.tally.counter(counter, index).plus(more));
        }
    }

    /// Adds hits that were counted elsewhere to those of an entry, the last of them at this time. They are ignored if
    /// the entry was removed.
    pub fn add_hits(&mut self, table: TableId, entry: EntryHandle, more: CounterValue, last_ns: u64) {
        let (state, handle) = (&self.control().tables[table], Handle(entry.number));
        if state.entries.has(handle) && state.entries.generation(handle) == entry.generation {
            let generation = u64::from(entry.generation);
            let (counted, before_ns) = self.tally.hits(table, handle, generation).unwrap_or_default();
            self.tally.restore_hits(table, handle, generation, (counted.plus(more), before_ns.max(last_ns)));
        }
    }
}
