//! Implements the control plane's operations on tables.

use ir::{KeyValue, TableId};

use super::control::ControlChange;
use super::profile::check_weights;
use super::{
    ActionCall, ActionSpec, CounterValue, EntryError, EntryHandle, EntryStats, Installed, MeterConfig, Objects,
    TableEntry, TableState,
};
use crate::tables::{Backend, Handle, KeyShape, canonical, needs_priority};

impl Objects {
    /// Adds an entry.
    ///
    /// # Errors
    /// All errors of an entry, `Duplicate` if there is an entry with this key and priority, and `Full` at
    /// [`Objects::capacity`].
    pub fn insert(&mut self, table: TableId, entry: TableEntry) -> Result<(), EntryError> {
        self.check_not_rows(table)?;
        if self.control().tables[table].const_entries {
            return Err(EntryError::ConstEntries(table));
        }
        let entry = self.checked_entry(table, entry)?;
        if self.has_ledger(table) { self.insert_into_ledger(table, &entry) } else { self.add_checked(table, entry) }
    }

    /// Announces that about `more` entries will be inserted into a table before [`Objects::finish_load`], so that they
    /// take less time. Lookups find every entry in the meantime, but may take longer.
    pub fn begin_load(&mut self, table: TableId, more: usize) {
        if self.has_ledger(table) {
            return;
        }
        self.change(ControlChange::BeginLoad(table, more));
    }

    /// Ends a load.
    pub fn finish_load(&mut self, table: TableId) {
        if self.has_ledger(table) {
            return;
        }
        self.change(ControlChange::FinishLoad(table));
    }

    /// Sets another action, metadata and idle timeout of an entry. Counter and meter keep their values.
    ///
    /// # Errors
    /// As [`Objects::insert`]; `NotFound` if there is no entry with this key and priority, `ConstEntry` if the program
    /// declares it constant.
    pub fn modify(&mut self, table: TableId, entry: TableEntry) -> Result<(), EntryError> {
        self.check_not_rows(table)?;
        if self.control().tables[table].const_entries {
            return Err(EntryError::ConstEntries(table));
        }
        let entry = self.checked_entry(table, entry)?;
        if self.has_ledger(table) {
            return self.modify_in_ledger(table, &entry);
        }
        let state = &self.control().tables[table];
        let handle = state.backend.find(&entry.keys, entry.priority).ok_or(EntryError::NotFound)?;
        state.check_may_change(table, handle)?;
        self.change(ControlChange::Replace(table, handle, Box::new(entry), self.now_ns));
        Ok(())
    }

    /// Removes an entry.
    ///
    /// # Errors
    /// `NotFound`, `ConstEntries`, `ConstEntry`, and all errors of a key.
    pub fn delete(&mut self, table: TableId, keys: &[KeyValue], priority: i32) -> Result<(), EntryError> {
        self.check_not_rows(table)?;
        if self.control().tables[table].const_entries {
            return Err(EntryError::ConstEntries(table));
        }
        let handle = self.find_written(table, keys, priority)?;
        self.written_entries(table).check_may_change(table, handle)?;
        self.take_written(table, handle);
        Ok(())
    }

    /// Removes all entries except those that the program declares constant.
    ///
    /// # Errors
    /// `ConstEntries`.
    pub fn clear(&mut self, table: TableId) -> Result<(), EntryError> {
        self.check_not_rows(table)?;
        let state = self.written_entries(table);
        if state.const_entries && state.len() > 0 {
            return Err(EntryError::ConstEntries(table));
        }
        let all: Vec<_> = state.entries.handles().filter(|handle| !state.entries.is_constant(*handle)).collect();
        all.into_iter().for_each(|handle| self.take_written(table, handle));
        Ok(())
    }

    /// Removes an entry that the control plane wrote.
    fn take_written(&mut self, table: TableId, handle: Handle) {
        if self.has_ledger(table) {
            self.take_from_ledger(table, handle);
        } else {
            self.change(ControlChange::Take(table, handle));
        }
    }

    /// Returns the entry with this key and priority.
    ///
    /// # Errors
    /// `NotFound`, and all errors of a key.
    pub fn get(&self, table: TableId, keys: &[KeyValue], priority: i32) -> Result<Installed, EntryError> {
        let handle = self.find_written(table, keys, priority)?;
        Ok(self.installed(table, handle))
    }

    /// Returns all entries, in no particular order.
    pub fn entries(&self, table: TableId) -> impl Iterator<Item = Installed> {
        self.written_entries(table).entries.handles().map(move |handle| self.installed(table, handle))
    }

    /// Returns an entry with its counter, meter and time of last hit.
    fn installed(&self, table: TableId, handle: Handle) -> Installed {
        let state = self.written_entries(table);
        let generation = u64::from(state.entries.generation(handle));
        let (mut counter, mut last_hit_ns) = (CounterValue::default(), state.entries.written_ns(handle));
        for tally in std::iter::once(&self.tally).chain(&self.tallies) {
            if let Some((counted, last_ns)) = tally.hits(table, handle, generation) {
                counter = counter.plus(counted);
                last_hit_ns = last_hit_ns.max(last_ns);
            }
        }
        let meter_config = self.shared.direct[table].direct_config(handle.0, generation, self.several);
        Installed {
            entry: state.entry(handle),
            constant: state.entries.is_constant(handle),
            counter,
            meter_config,
            last_hit_ns,
        }
    }

    /// Returns the time of the last hit of an entry whose uses are recorded, or of its write.
    pub(super) fn last_use_ns(&self, table: TableId, handle: Handle) -> u64 {
        let entries = &self.control().tables[table].entries;
        let written = entries.written_ns(handle).max(self.use_times.of(table, handle));
        let generation = u64::from(entries.generation(handle));
        let tallies = std::iter::once(&self.tally).chain(&self.tallies);
        tallies.filter_map(|tally| tally.hits(table, handle, generation)).fold(written, |last, (_, hit)| last.max(hit))
    }

    /// Returns the lasting handle of an entry that packets see now.
    pub(crate) fn entry_handle(&self, table: TableId, handle: Handle) -> EntryHandle {
        EntryHandle { number: handle.0, generation: self.control().tables[table].entries.generation(handle) }
    }

    /// Returns what is known of an entry that packets see now. `None` if it has been removed, and for tables whose
    /// entries lie in the memory of servers.
    pub fn entry_stats(&self, table: TableId, entry: EntryHandle) -> Option<EntryStats> {
        let state = self.control().tables.get(table)?;
        let entries = &state.entries;
        let handle = Handle(entry.number);
        if self.has_ledger(table) || !entries.has(handle) || entries.generation(handle) != entry.generation {
            return None;
        }
        let counted = self.tally.hits(table, handle, entry.generation.into()).map(|(counter, _)| counter);
        let counter = state.records_hits.then(|| counted.unwrap_or_default());
        Some(EntryStats { written_ns: entries.written_ns(handle), counter })
    }

    /// Returns the number of entries.
    pub fn entry_count(&self, table: TableId) -> usize {
        self.written_entries(table).len()
    }

    /// Returns the version of a table's entries: one higher after each of them that is added, replaced or removed, the
    /// program's own included. It wraps around.
    pub fn table_version(&self, table: TableId) -> u32 {
        self.written_entries(table).entries.version()
    }

    /// Returns the maximum number of entries: the table's size (1024 if it has none), or the number of the program's
    /// own entries if that is larger.
    pub fn capacity(&self, table: TableId) -> u64 {
        self.control().tables[table].capacity
    }

    /// Returns the action of a miss.
    pub fn default_action(&self, table: TableId) -> &ActionCall {
        &self.control().tables[table].default
    }

    /// Sets the action of a miss.
    ///
    /// # Errors
    /// `ConstDefault`, `ActionNotInTable`, `TableOnly`, and all errors of arguments.
    pub fn set_default_action(&mut self, table: TableId, call: ActionCall) -> Result<(), EntryError> {
        let state = &self.control().tables[table];
        // P4Runtime allows setting a constant default action to its current value.
        if state.const_default && state.default != call {
            return Err(EntryError::ConstDefault(table));
        }
        let index = state.action_index(call.action);
        let index = index.ok_or(EntryError::ActionNotInTable { table, action: call.action })?;
        if state.actions[index].table_only {
            return Err(EntryError::TableOnly(call.action));
        }
        self.check_args(&call)?;
        self.change(ControlChange::Default(table, call));
        Ok(())
    }

    /// Resets the action of a miss to the program's.
    pub fn reset_default_action(&mut self, table: TableId) {
        let initial = self.control().tables[table].initial_default.clone();
        self.change(ControlChange::Default(table, initial));
    }

    /// Sets the direct counter of an entry.
    ///
    /// # Errors
    /// `NoSuchResource` if the table has no direct counter, `NotFound`, and all errors of a key.
    pub fn set_entry_counter(
        &mut self,
        table: TableId,
        keys: &[KeyValue],
        priority: i32,
        value: CounterValue,
    ) -> Result<(), EntryError> {
        self.check_not_rows(table)?;
        self.control().tables[table].counter.ok_or(EntryError::NoSuchResource)?;
        let handle = self.find(table, keys, priority)?;
        let generation = u64::from(self.control().tables[table].entries.generation(handle));
        let counted = self.tallies.iter().filter_map(|tally| tally.hits(table, handle, generation));
        let own = counted.fold(value, |value, (counted, _)| value.minus(counted));
        self.tally.set_hits(table, handle, generation, own);
        Ok(())
    }

    /// Configures the direct meter of an entry.
    ///
    /// # Errors
    /// `NoSuchResource` if the table has no direct meter, `NotFound`, `PeakBelowCommitted`, and all errors of a key.
    pub fn configure_entry_meter(
        &mut self,
        table: TableId,
        keys: &[KeyValue],
        priority: i32,
        config: Option<MeterConfig>,
    ) -> Result<(), EntryError> {
        self.check_not_rows(table)?;
        self.control().tables[table].meter.ok_or(EntryError::NoSuchResource)?;
        let handle = self.find(table, keys, priority)?;
        let generation = u64::from(self.control().tables[table].entries.generation(handle));
        self.shared.direct[table].configure_direct(handle.0, generation, config, self.several)
    }

    /// Returns the entries that have exceeded their idle timeout.
    pub fn idle_entries(&self, table: TableId, now_ns: u64) -> impl Iterator<Item = Installed> {
        let aging = self.control().tables[table].entries.aging().map(move |handle| self.installed(table, handle));
        aging.filter(move |it| now_ns.saturating_sub(it.last_hit_ns) >= it.entry.idle_timeout_ns)
    }

    /// Whether a table has an entry with an idle timeout.
    pub fn has_aging_entries(&self, table: TableId) -> bool {
        self.control().tables[table].entries.aging().next().is_some()
    }

    /// Returns the key elements of a table that are matched, without selectors.
    pub fn key_shape(&self, table: TableId) -> &[KeyShape] {
        &self.control().tables[table].keys
    }

    /// Moves a table's entries to another backend and uses that from now on. Compiled code does not use the backend of
    /// a small constant table: it compares with the entries itself.
    pub fn set_backend(&mut self, table: TableId, backend: Box<dyn Backend>) {
        self.change(ControlChange::Backend(table, backend));
    }

    /// Loads the program's own entries, which the validator has checked. Of two with the same key the first one stays,
    /// since the second could never be hit.
    pub(super) fn load_program_entries(&mut self, id: TableId, table: &ir::Table) {
        for given in &table.entries {
            let shape = &self.control().tables[id].keys;
            let call = ActionCall { action: table.actions[given.action as usize].action, args: given.args.clone() };
            let keys = canonical(shape, given.keys.clone()).expect("the validator checks the program's entries");
            let entry = TableEntry {
                keys,
                priority: if needs_priority(shape) { given.priority } else { 0 },
                action: ActionSpec::Direct(call),
                metadata: Vec::new(),
                idle_timeout_ns: 0,
            };
            if self.control().tables[id].backend.find(&entry.keys, entry.priority).is_none() {
                let constant = table.const_entries || given.constant;
                self.change(ControlChange::Add(id, Box::new(entry), constant, 0));
            }
        }
    }

    pub(super) fn add_checked(&mut self, table: TableId, entry: TableEntry) -> Result<(), EntryError> {
        let state = &self.control().tables[table];
        if state.backend.find(&entry.keys, entry.priority).is_some() {
            return Err(EntryError::Duplicate);
        }
        if state.len() as u64 >= state.capacity {
            return Err(EntryError::Full(state.capacity));
        }
        self.change(ControlChange::Add(table, Box::new(entry), false, self.now_ns));
        Ok(())
    }

    /// Returns the entry that packets find.
    pub(super) fn find(&self, table: TableId, keys: &[KeyValue], priority: i32) -> Result<Handle, EntryError> {
        find_in(&self.control().tables[table], keys, priority)
    }

    /// Returns the entry that the control plane wrote.
    fn find_written(&self, table: TableId, keys: &[KeyValue], priority: i32) -> Result<Handle, EntryError> {
        find_in(self.written_entries(table), keys, priority)
    }

    /// Returns the entry with its values in canonical form, if it has no error.
    pub(super) fn checked_entry(&self, table: TableId, mut entry: TableEntry) -> Result<TableEntry, EntryError> {
        let state = &self.control().tables[table];
        if state.keys.is_empty() && !state.has_selectors {
            return Err(EntryError::Keyless(table));
        }
        entry.keys = canonical(&state.keys, entry.keys)?;
        match needs_priority(&state.keys) {
            true if entry.priority <= 0 => return Err(EntryError::PriorityMissing(entry.priority)),
            false if entry.priority != 0 => return Err(EntryError::PriorityNeedless(entry.priority)),
            _ => {}
        }
        self.check_action(table, &entry.action)?;
        Ok(entry)
    }

    fn check_action(&self, table: TableId, spec: &ActionSpec) -> Result<(), EntryError> {
        let state = &self.control().tables[table];
        match (spec, state.profile.map(|profile| &self.control().profiles[profile])) {
            (ActionSpec::Direct(_), Some(_)) => Err(EntryError::NeedsProfile(table)),
            (ActionSpec::Direct(call), None) => self.check_call(table, call),
            (_, None) => Err(EntryError::NoProfile(table)),
            (ActionSpec::Member(id), Some(profile)) => {
                profile.member(*id).map(drop).ok_or(EntryError::NoSuchMember(*id))
            }
            (_, Some(profile)) if profile.selector.is_none() => Err(EntryError::NoSelector),
            (ActionSpec::Group(id), Some(profile)) => profile.group(*id).map(drop).ok_or(EntryError::NoSuchGroup(*id)),
            (ActionSpec::OneShot(calls), Some(_)) => {
                check_weights(calls)?;
                calls.iter().try_for_each(|weighted| self.check_call(table, &weighted.call))
            }
        }
    }

    pub(super) fn check_call(&self, table: TableId, call: &ActionCall) -> Result<(), EntryError> {
        let state = &self.control().tables[table];
        let index = state.action_index(call.action);
        let index = index.ok_or(EntryError::ActionNotInTable { table, action: call.action })?;
        if state.actions[index].default_only {
            return Err(EntryError::DefaultOnly(call.action));
        }
        self.check_args(call)
    }
}

fn find_in(state: &TableState, keys: &[KeyValue], priority: i32) -> Result<Handle, EntryError> {
    let keys = canonical(&state.keys, keys.to_vec())?;
    state.backend.find(&keys, priority).ok_or(EntryError::NotFound)
}
