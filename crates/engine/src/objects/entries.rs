//! The control plane's requests to tables.

use ir::{KeyValue, TableId};

use super::profile::check_weights;
use super::{ActionCall, ActionSpec, CounterValue, EntryError, Installed, Meter, MeterConfig, Objects, TableEntry};
use crate::tables::{Backend, Handle, KeyShape, canonical, needs_priority};

impl Objects {
    /// Adds an entry.
    ///
    /// # Errors
    /// Everything that [`EntryError`] says of entries, `Duplicate` if one with this key and priority is there, and
    /// `Full` at the larger of the table's size and 1024.
    pub fn insert(&mut self, table: TableId, entry: TableEntry) -> Result<(), EntryError> {
        if self.tables[table].const_entries {
            return Err(EntryError::ConstEntries(table));
        }
        let entry = self.checked_entry(table, entry)?;
        self.add_checked(table, entry, false)
    }

    /// Gives an entry another action, metadata and idle timeout. Counter and meter go on.
    ///
    /// # Errors
    /// As [`Objects::insert`]; `NotFound` if there is no entry with this key and priority.
    pub fn modify(&mut self, table: TableId, entry: TableEntry) -> Result<(), EntryError> {
        if self.tables[table].const_entries {
            return Err(EntryError::ConstEntries(table));
        }
        let entry = self.checked_entry(table, entry)?;
        let handle = self.tables[table].backend.find(&entry.keys, entry.priority).ok_or(EntryError::NotFound)?;
        self.use_action(table, &entry.action);
        let now_ns = self.now_ns;
        let installed = self.tables[table].entry_mut(handle);
        installed.last_hit_ns = now_ns;
        let before = self.tables[table].replace(handle, entry);
        self.release_action(table, &before.action);
        Ok(())
    }

    /// Takes an entry away and returns it.
    ///
    /// # Errors
    /// `NotFound`, `ConstEntries`, and what can be wrong with a key.
    pub fn delete(&mut self, table: TableId, keys: &[KeyValue], priority: i32) -> Result<Installed, EntryError> {
        if self.tables[table].const_entries {
            return Err(EntryError::ConstEntries(table));
        }
        let handle = self.find(table, keys, priority)?;
        let installed = self.tables[table].take(handle);
        self.release_action(table, &installed.entry.action);
        Ok(installed)
    }

    /// Takes all entries away.
    ///
    /// # Errors
    /// `ConstEntries`.
    pub fn clear(&mut self, table: TableId) -> Result<(), EntryError> {
        let all: Vec<_> = self.entries(table).map(|it| (it.entry.keys.clone(), it.entry.priority)).collect();
        all.into_iter().try_for_each(|(keys, priority)| self.delete(table, &keys, priority).map(drop))
    }

    /// The entry with this key and priority.
    ///
    /// # Errors
    /// `NotFound`, and what can be wrong with a key.
    pub fn get(&self, table: TableId, keys: &[KeyValue], priority: i32) -> Result<&Installed, EntryError> {
        Ok(self.tables[table].entry(self.find(table, keys, priority)?))
    }

    /// All entries, in no particular order.
    pub fn entries(&self, table: TableId) -> impl Iterator<Item = &Installed> {
        self.tables[table].iter()
    }

    /// How many entries there are.
    pub fn entry_count(&self, table: TableId) -> usize {
        self.tables[table].len()
    }

    /// How many entries there can be.
    pub fn capacity(&self, table: TableId) -> u64 {
        self.tables[table].capacity
    }

    /// What a miss runs.
    pub fn default_action(&self, table: TableId) -> &ActionCall {
        &self.tables[table].default
    }

    /// Sets what a miss runs.
    ///
    /// # Errors
    /// `ConstDefault`, `ActionNotInTable`, `TableOnly`, and what can be wrong with arguments.
    pub fn set_default_action(&mut self, table: TableId, call: ActionCall) -> Result<(), EntryError> {
        let state = &self.tables[table];
        // P4Runtime allows to set a constant default to what it is already.
        if state.const_default && state.default != call {
            return Err(EntryError::ConstDefault(table));
        }
        let index = state.action_index(call.action);
        let index = index.ok_or(EntryError::ActionNotInTable { table, action: call.action })?;
        if state.actions[index].table_only {
            return Err(EntryError::TableOnly(call.action));
        }
        self.check_args(&call)?;
        self.tables[table].set_default(call);
        Ok(())
    }

    /// Sets what a miss runs back to what the program says.
    pub fn reset_default_action(&mut self, table: TableId) {
        let state = &mut self.tables[table];
        state.set_default(state.initial_default.clone());
    }

    /// Sets the direct counter of an entry.
    ///
    /// # Errors
    /// `NoSuchResource` if the table has no direct counter, `NotFound`, and what can be wrong with a key.
    pub fn set_entry_counter(
        &mut self,
        table: TableId,
        keys: &[KeyValue],
        priority: i32,
        value: CounterValue,
    ) -> Result<(), EntryError> {
        self.tables[table].counter.ok_or(EntryError::NoSuchResource)?;
        let handle = self.find(table, keys, priority)?;
        self.tables[table].entry_mut(handle).counter = value;
        Ok(())
    }

    /// Configures the direct meter of an entry.
    ///
    /// # Errors
    /// `NoSuchResource` if the table has no direct meter, `NotFound`, `PeakBelowCommitted`, and what can be wrong
    /// with a key.
    pub fn configure_entry_meter(
        &mut self,
        table: TableId,
        keys: &[KeyValue],
        priority: i32,
        config: Option<MeterConfig>,
    ) -> Result<(), EntryError> {
        self.tables[table].meter.ok_or(EntryError::NoSuchResource)?;
        let handle = self.find(table, keys, priority)?;
        self.tables[table].entry_mut(handle).meter.configure(config)
    }

    /// Entries that have gone without a hit for longer than they may.
    pub fn idle_entries(&self, table: TableId, now_ns: u64) -> impl Iterator<Item = &Installed> {
        self.tables[table].iter().filter(move |installed| {
            let timeout_ns = installed.entry.idle_timeout_ns;
            timeout_ns > 0 && now_ns.saturating_sub(installed.last_hit_ns) >= timeout_ns
        })
    }

    /// The key elements of a table that are matched, which leaves out selectors.
    pub fn key_shape(&self, table: TableId) -> &[KeyShape] {
        &self.tables[table].keys
    }

    /// Keeps a table's entries in another backend from now on, which gets those that are there.
    pub fn set_backend(&mut self, table: TableId, backend: Box<dyn Backend>) {
        self.tables[table].move_to(backend);
    }

    /// Loads the entries that the program gives. The validator has seen them; of two with one key the first stays,
    /// since the second could never be hit.
    pub(super) fn load_program_entries(&mut self, id: TableId, table: &ir::Table) {
        for entry in &table.entries {
            let shape = &self.tables[id].keys;
            let call = ActionCall { action: table.actions[entry.action as usize].action, args: entry.args.clone() };
            let keys = canonical(shape, entry.keys.clone()).expect("the validator checks the program's entries");
            let entry = TableEntry {
                keys,
                priority: if needs_priority(shape) { entry.priority } else { 0 },
                action: ActionSpec::Direct(call),
                metadata: Vec::new(),
                idle_timeout_ns: 0,
            };
            if self.tables[id].backend.find(&entry.keys, entry.priority).is_none() {
                self.tables[id].add(Installed {
                    entry,
                    constant: table.const_entries,
                    counter: CounterValue::default(),
                    meter: Meter::default(),
                    last_hit_ns: 0,
                });
            }
        }
    }

    fn add_checked(&mut self, table: TableId, entry: TableEntry, constant: bool) -> Result<(), EntryError> {
        let state = &self.tables[table];
        if state.backend.find(&entry.keys, entry.priority).is_some() {
            return Err(EntryError::Duplicate);
        }
        if state.len() as u64 >= state.capacity {
            return Err(EntryError::Full(state.capacity));
        }
        self.use_action(table, &entry.action);
        let last_hit_ns = self.now_ns;
        let (counter, meter) = (CounterValue::default(), Meter::default());
        self.tables[table].add(Installed { entry, constant, counter, meter, last_hit_ns });
        Ok(())
    }

    fn find(&self, table: TableId, keys: &[KeyValue], priority: i32) -> Result<Handle, EntryError> {
        let state = &self.tables[table];
        let keys = canonical(&state.keys, keys.to_vec())?;
        state.backend.find(&keys, priority).ok_or(EntryError::NotFound)
    }

    /// The entry with its values in their canonical form, if nothing is wrong with it.
    fn checked_entry(&self, table: TableId, mut entry: TableEntry) -> Result<TableEntry, EntryError> {
        let state = &self.tables[table];
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
        let state = &self.tables[table];
        match (spec, state.profile.map(|profile| &self.profiles[profile])) {
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

    fn check_call(&self, table: TableId, call: &ActionCall) -> Result<(), EntryError> {
        let state = &self.tables[table];
        let index = state.action_index(call.action);
        let index = index.ok_or(EntryError::ActionNotInTable { table, action: call.action })?;
        if state.actions[index].default_only {
            return Err(EntryError::DefaultOnly(call.action));
        }
        self.check_args(call)
    }

    fn use_action(&mut self, table: TableId, spec: &ActionSpec) {
        let profile = self.tables[table].profile.map(|profile| &mut self.profiles[profile]);
        match (spec, profile) {
            (ActionSpec::Member(id), Some(profile)) => profile.use_member(*id),
            (ActionSpec::Group(id), Some(profile)) => profile.use_group(*id),
            _ => {}
        }
    }

    fn release_action(&mut self, table: TableId, spec: &ActionSpec) {
        let profile = self.tables[table].profile.map(|profile| &mut self.profiles[profile]);
        match (spec, profile) {
            (ActionSpec::Member(id), Some(profile)) => profile.release_member(*id),
            (ActionSpec::Group(id), Some(profile)) => profile.release_group(*id),
            _ => {}
        }
    }
}
