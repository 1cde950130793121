//! Keeps the tables of a region equal to those of the switch, and takes its counts.
//!
//! The tables exist twice (the left-right technique of Ramalhete and Correia, 2013). Packets use the copy that the gate
//! names; the writer changes the other, and then the gate. So a packet sees all changes between two calls of
//! [`RegionWriter::update`], or none of them, and nothing changes below it.
//!
//! ```text
//! writer:   wait until no packet uses copy B ─ B: earlier and new changes ─ gate: B      wait ... A ...
//! packet:       epoch odd ─ gate: A ─ lookups in A ─ commit ─ epoch even
//! ```
//!
//! A packet makes the epoch of its processor odd before it reads the gate, and even when it is done. The writer waits
//! for odd epochs to change, at the next update and not at this one: an update that is not followed at once by another
//! waits for nobody. Both copies are brought to the present entries, so a change needs no record of what was before.
//!
//! Direct counters lie in the copies, too. A packet that counts for an entry in the copy that it used therefore never
//! counts for the successor of the entry.

mod key;
mod profile;
mod records;
mod value_set;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use engine::{ActionCall, ActionSpec, ChangedEntry, EntryHandle, Objects, TableEntry};
use ir::{ProfileId, Program, TableId};
use tables::flat::{PrefixWriter, RuleWriter};

use crate::layout::{FlatTable, GATE_OPEN, RegionLayout, TableSearch, chain};
use crate::region::{CountSink, store, take_counts, take_hits};
use key::{WrittenKey, key};
use profile::{CopiedProfile, MAX_RETRIES, ProfileView};
use records::Records;
use value_set::write_set;

/// The tables of a region cannot be brought up to date.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegionError {
    /// A table has more entries than the region has room for. Packets that apply it are handed over.
    #[error("the entries of the table `{table}` do not fit into the memory that is shared with the kernel")]
    TableFull {
        /// Name of the table.
        table: String,
    },
    /// An action profile has more members or groups than the region has room for.
    #[error("the members of the action profile `{profile}` do not fit into the memory that is shared with the kernel")]
    ProfileFull {
        /// Name of the profile.
        profile: String,
    },
    /// A packet that began before the last update still runs, so the other copy cannot be written.
    #[error("a packet has not finished in the kernel in time")]
    Stuck,
    /// The registers or meters of the switch, or its lock of `@atomic` sections, lie in another region.
    #[error("the registers and meters lie in memory that is shared with earlier code")]
    Shared,
}

/// An entry as it was written to a copy.
#[derive(Clone, Debug)]
struct WrittenEntry {
    handle: EntryHandle,
    key: WrittenKey,
    /// Number of its record.
    record: u32,
}

/// The state beside a search, from which its words are changed.
#[derive(Clone, Debug)]
enum KeyWriter {
    Stateless,
    Prefixes(PrefixWriter),
    Rules(RuleWriter),
}

/// The writer's own record of a table in one copy. Lookups do not read it.
#[derive(Clone, Debug)]
struct CopiedTable {
    writer: KeyWriter,
    /// Entries by their number in the switch.
    entries: BTreeMap<u32, WrittenEntry>,
    /// Numbers of records. There may be fewer than the switch has numbers.
    records: Records,
    /// Numbers of entries for which there is no room, and the last one that was tried again.
    missing: BTreeSet<u32>,
    retried: u32,
    /// Whether there may be room for some of them since they were tried.
    has_freed: bool,
}

impl CopiedTable {
    fn new(layout: &FlatTable) -> CopiedTable {
        let writer = match layout.search {
            TableSearch::Prefixes(shape) => KeyWriter::Prefixes(PrefixWriter::new(shape)),
            TableSearch::Rules(shape) => KeyWriter::Rules(RuleWriter::new(shape)),
            TableSearch::None | TableSearch::Chain | TableSearch::Exact(_) => KeyWriter::Stateless,
        };
        CopiedTable {
            writer,
            entries: BTreeMap::new(),
            records: Records::new(layout),
            missing: BTreeSet::new(),
            retried: 0,
            has_freed: false,
        }
    }
}

/// One of the two copies of the tables.
#[derive(Debug, Default)]
struct RegionCopy {
    tables: BTreeMap<TableId, CopiedTable>,
    profiles: BTreeMap<ProfileId, CopiedProfile>,
    /// Changes of the switch's tables that the copy does not have.
    missed: BTreeSet<ChangedEntry>,
}

/// Writes the tables of one region, and takes its counts. There is one for each region.
#[derive(Debug)]
pub struct RegionWriter {
    layout: RegionLayout,
    copies: [RegionCopy; 2],
    /// The copy that packets use.
    current: usize,
    is_open: bool,
    /// Epochs of processors that may still use the other copy.
    busy: Vec<(u32, u64)>,
    /// Whether the last wait for them was given up.
    is_stuck: bool,
    waits: WaitForPacket,
}

/// Waits a little for a packet to end. The argument is the number of earlier calls for the same packet. Returns false
/// to give up. A packet takes less than a microsecond; a processor that a hypervisor has suspended takes longer.
pub type WaitForPacket = fn(u64) -> bool;

impl RegionWriter {
    /// Creates the writer of a blank region: all words 0.
    pub fn new(layout: &RegionLayout, waits: WaitForPacket) -> RegionWriter {
        let copy = || {
            let tables = layout.tables.iter().map(|(id, table)| (*id, CopiedTable::new(table)));
            let profiles = layout.profiles.iter().map(|(id, profile)| (*id, CopiedProfile::new(profile)));
            RegionCopy { tables: tables.collect(), profiles: profiles.collect(), missed: BTreeSet::new() }
        };
        RegionWriter {
            layout: layout.clone(),
            copies: [copy(), copy()],
            current: 0,
            is_open: false,
            busy: Vec::new(),
            is_stuck: false,
            waits,
        }
    }

    /// Returns the layout of the region.
    pub fn layout(&self) -> &RegionLayout {
        &self.layout
    }

    /// Whether packets may run in the kernel.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns a table whose packets are handed over, as it has more entries than there is room for.
    pub fn full_table(&self) -> Option<TableId> {
        self.copies[self.current].tables.iter().find(|(_, table)| !table.missing.is_empty()).map(|(id, _)| *id)
    }

    /// Writes all entries and default actions into the blank region, and opens the gate.
    ///
    /// # Errors
    /// As [`RegionWriter::update`].
    ///
    /// # Panics
    /// If the region is smaller than [`RegionLayout::bytes`].
    pub fn fill(&mut self, region: &[AtomicU64], program: &Program, objects: &Objects) -> Result<(), RegionError> {
        for (crc, first) in &self.layout.crc_tables {
            (first / 8..).zip(crc.table()).for_each(|(at, remainder)| store(region, at, remainder));
        }
        let mut all = BTreeSet::new();
        for id in self.layout.profiles.keys() {
            all.extend(objects.members(*id).map(|(member, _)| ChangedEntry::Member(*id, member)));
            all.extend(objects.groups(*id).map(|(group, ..)| ChangedEntry::Group(*id, group)));
        }
        all.extend(self.layout.value_sets.keys().map(|id| ChangedEntry::ValueSet(*id)));
        for (id, table) in &self.layout.tables {
            all.insert(ChangedEntry::Default(*id));
            if table.search == TableSearch::Chain {
                self.write_chain(*id, table, region, program).ok_or_else(|| full(program, *id))?;
            } else {
                all.extend(objects.entry_numbers(*id).map(|number| ChangedEntry::Entry(*id, number)));
            }
        }
        self.update(region, program, objects, &all, &mut NoCounts)
    }

    /// Brings the tables up to date, given what has changed since the last call, and opens the gate. All packets that
    /// begin from now on see all changes. Hits of entries that are replaced go to `sink`.
    ///
    /// # Errors
    /// [`RegionError`]. The gate is closed then, and all packets are handed over. A table that has too many entries is
    /// no error: see [`RegionWriter::full_table`].
    ///
    /// # Panics
    /// If the region is smaller than [`RegionLayout::bytes`].
    pub fn update(
        &mut self,
        region: &[AtomicU64],
        program: &Program,
        objects: &Objects,
        changes: &BTreeSet<ChangedEntry>,
        sink: &mut dyn CountSink,
    ) -> Result<(), RegionError> {
        for copy in &mut self.copies {
            copy.missed.extend(changes);
        }
        let next = 1 - self.current;
        let result = self.wait_for_packets(region).and_then(|()| self.catch_up(next, region, program, objects, sink));
        if let Err(error) = result {
            self.close(region);
            return Err(error);
        }
        (self.current, self.is_open) = (next, true);
        let gate = GATE_OPEN | (u64::from(self.layout.copy_bytes) * next as u64);
        self.flip(region, gate);
        Ok(())
    }

    /// Hands over all packets that begin from now on.
    ///
    /// # Panics
    /// If the region is smaller than [`RegionLayout::bytes`].
    pub fn close(&mut self, region: &[AtomicU64]) {
        self.is_open = false;
        self.flip(region, 0);
    }

    /// Sets the gate, and notes which processors may have read it before.
    fn flip(&mut self, region: &[AtomicU64], gate: u64) {
        region[self.layout.gate as usize / 8].store(gate, Ordering::SeqCst);
        // A packet makes its epoch odd, by an atomic operation that is a barrier, and then reads the gate.
        fence(Ordering::SeqCst);
        let epochs = (0..self.layout.options.cpus).map(|cpu| (cpu, self.epoch(region, cpu)));
        self.busy = epochs.filter(|(_, epoch)| epoch % 2 == 1).collect();
    }

    fn epoch(&self, region: &[AtomicU64], cpu: u32) -> u64 {
        region[(cpu * self.layout.cpu_bytes / 8) as usize].load(Ordering::Acquire)
    }

    /// Waits until no packet runs that began before the last update or close.
    ///
    /// # Errors
    /// [`RegionError::Stuck`]
    ///
    /// # Panics
    /// If the region is smaller than [`RegionLayout::bytes`].
    pub fn wait_for_packets(&mut self, region: &[AtomicU64]) -> Result<(), RegionError> {
        let mut waited = 0;
        loop {
            let mut busy = std::mem::take(&mut self.busy);
            busy.retain(|(cpu, epoch)| self.epoch(region, *cpu) == *epoch);
            self.busy = busy;
            if self.busy.is_empty() {
                self.is_stuck = false;
                return Ok(());
            }
            // Nobody waits a second time for the same packet.
            if self.is_stuck || !(self.waits)(waited) {
                self.is_stuck = true;
                return Err(RegionError::Stuck);
            }
            waited += 1;
        }
    }

    /// Takes all counts out of the region.
    ///
    /// # Panics
    /// If the region is smaller than [`RegionLayout::bytes`].
    pub fn collect_counts(&mut self, region: &[AtomicU64], sink: &mut dyn CountSink) {
        take_counts(&self.layout, region, sink);
        self.layout.tables.keys().for_each(|table| self.collect_hits(region, *table, sink));
    }

    /// Takes the hits of a table's entries out of the region.
    ///
    /// # Panics
    /// If the region is smaller than [`RegionLayout::bytes`].
    pub fn collect_hits(&self, region: &[AtomicU64], table: TableId, sink: &mut dyn CountSink) {
        let layout = self.layout.tables.get(&table);
        let Some(layout) = layout.filter(|layout| layout.counts.is_some()) else { return };
        for (number, copy) in (0..).zip(&self.copies) {
            for entry in copy.tables[&table].entries.values() {
                let hits = take_hits(region, layout, number * self.layout.copy_bytes, entry.record);
                hits.into_iter().for_each(|hits| sink.hit(table, entry.handle, hits));
            }
        }
    }

    /// Applies what a copy has missed. No packet uses it.
    fn catch_up(
        &mut self,
        number: usize,
        region: &[AtomicU64],
        program: &Program,
        objects: &Objects,
        sink: &mut dyn CountSink,
    ) -> Result<(), RegionError> {
        let RegionCopy { tables, profiles, missed } = &mut self.copies[number];
        let base = number as u32 * self.layout.copy_bytes;
        let entries = || {
            missed.iter().filter_map(|change| match change {
                ChangedEntry::Entry(id, number) if self.layout.tables.contains_key(id) => Some((*id, *number)),
                _ => None,
            })
        };
        let table_view = |id: TableId| TableView { id, layout: &self.layout.tables[&id], region, base };
        let profile_view = |id| ProfileView { id, layout: &self.layout.profiles[&id], region, base, objects };
        let profile_of = |id: TableId| self.layout.tables[&id].profile.map(|(profile, _)| profile);
        // Removals come first: they make room for insertions.
        for (id, number) in entries() {
            let (table, at) = (tables.get_mut(&id).expect("every table has its copy"), table_view(id));
            table.missing.remove(&number);
            let is_outdated = at.is_outdated(table, number, program, objects);
            if is_outdated {
                at.remove(table, number, sink);
            }
            // An entry whose key had no room may have a group all the same.
            if (is_outdated || !table.entries.contains_key(&number))
                && let Some(profile) = profile_of(id)
            {
                let copied = profiles.get_mut(&profile).expect("every profile has its copy");
                profile_view(profile).release(copied, (id, number));
            }
        }
        let full_profile = |id: ProfileId| RegionError::ProfileFull { profile: program.profiles[id].name.clone() };
        for (id, copied) in profiles.iter_mut() {
            profile_view(*id).catch_up(copied, missed).ok_or_else(|| full_profile(*id))?;
        }
        for (id, number) in entries() {
            let (table, at) = (tables.get_mut(&id).expect("every table has its copy"), table_view(id));
            if let Some((entry, handle)) = objects.entry_numbered(id, number) {
                let profile = profile_of(id).and_then(|id| Some((profile_view(id), profiles.get_mut(&id)?)));
                if at.insert(table, (number, &entry, handle), profile, program).is_none() {
                    table.missing.insert(number);
                }
            }
        }
        for (id, copied) in profiles.iter_mut() {
            profile_view(*id).retry(copied).ok_or_else(|| full_profile(*id))?;
        }
        let mut changed: BTreeSet<TableId> = entries().map(|(id, _)| id).collect();
        // Entries without room may need that of a profile.
        let may_fit = |id: TableId, table: &CopiedTable| table.has_freed || profile_of(id).is_some();
        for (id, table) in tables.iter_mut().filter(|(id, table)| !table.missing.is_empty() && may_fit(**id, table)) {
            let profile = profile_of(*id).and_then(|id| Some((profile_view(id), profiles.get_mut(&id)?)));
            table_view(*id).retry(table, profile, program, objects);
            changed.insert(*id);
        }
        for id in changed {
            table_view(id).finish(tables.get_mut(&id).expect("every table has its copy"));
        }
        for (id, table) in tables.iter() {
            let state = self.layout.tables[id].state + base;
            store(region, state / 8, (!table.missing.is_empty()).into());
        }
        for change in missed.iter() {
            match change {
                ChangedEntry::Default(id) if self.layout.tables.contains_key(id) => {
                    let profile = self.layout.tables[id].profile.map(|(id, number)| (profile_view(id), number));
                    let call = objects.default_action(*id);
                    table_view(*id).write_default(program, call, profile).ok_or_else(|| full(program, *id))?;
                }
                ChangedEntry::ValueSet(id) => {
                    if let Some(layout) = self.layout.value_sets.get(id) {
                        write_set(region, (layout, base), &program.value_sets[*id], objects.value_set(*id));
                    }
                }
                _ => {}
            }
        }
        missed.clear();
        Ok(())
    }

    /// Writes the records of constant entries, which the code compares.
    fn write_chain(&self, id: TableId, layout: &FlatTable, region: &[AtomicU64], program: &Program) -> Option<()> {
        for base in [0, self.layout.copy_bytes] {
            let at = TableView { id, layout, region, base };
            for (number, entry) in (1..).zip(chain(&program.tables[id])?) {
                let action = program.tables[id].actions.get(entry.action as usize)?.action;
                at.write_record(program, number, &ActionCall { action, args: entry.args.clone() })?;
            }
        }
        Some(())
    }
}

fn full(program: &Program, table: TableId) -> RegionError {
    RegionError::TableFull { table: program.tables[table].name.clone() }
}

/// A table of one copy in a region.
struct TableView<'r> {
    id: TableId,
    layout: &'r FlatTable,
    region: &'r [AtomicU64],
    /// Offset of the copy in bytes.
    base: u32,
}

impl<'r> TableView<'r> {
    /// Returns the words of the search.
    fn words(&self, count: usize) -> &'r [AtomicU64] {
        let first = (self.layout.words + self.base) as usize / 8;
        &self.region[first..first + count]
    }

    /// Whether the copy has an entry with this number that is no longer there, or has another key now.
    fn is_outdated(&self, table: &CopiedTable, number: u32, program: &Program, objects: &Objects) -> bool {
        table.entries.get(&number).is_some_and(|before| {
            objects.entry_numbered(self.id, number).is_none_or(|(entry, handle)| {
                let now = key(self.layout, &program.tables[self.id], &entry);
                handle != before.handle || now.as_ref() != Some(&before.key)
            })
        })
    }

    /// Removes an entry, and takes its hits.
    fn remove(&self, table: &mut CopiedTable, number: u32, sink: &mut dyn CountSink) {
        let Some(entry) = table.entries.remove(&number) else { return };
        match (&self.layout.search, entry.key, &mut table.writer) {
            (TableSearch::Exact(shape), WrittenKey::Exact(key), _) => _ = shape.remove(self.words(shape.words()), &key),
            (TableSearch::Prefixes(shape), WrittenKey::Prefix(value, length), KeyWriter::Prefixes(writer)) => {
                writer.remove(self.words(shape.words()), value, length);
            }
            (TableSearch::Rules(shape), WrittenKey::Rule(_), KeyWriter::Rules(writer)) => {
                writer.remove(self.words(shape.words()), entry.record);
            }
            _ => {}
        }
        if let Some(hits) = take_hits(self.region, self.layout, self.base, entry.record) {
            sink.hit(self.id, entry.handle, hits);
        }
        self.free_record(&mut table.records, entry.record);
        table.has_freed = true;
    }

    /// Adds an entry, or gives it another action. `None` if there is no room.
    fn insert(
        &self,
        table: &mut CopiedTable,
        (number, entry, handle): (u32, &TableEntry, EntryHandle),
        profile: Option<(ProfileView<'_>, &mut CopiedProfile)>,
        program: &Program,
    ) -> Option<()> {
        let present = table.entries.get(&number).map(|entry| entry.record);
        let record = if self.layout.shares_records() {
            // There may be fewer records than entries.
            if present.is_none() && table.entries.len() >= self.layout.capacity as usize {
                return None;
            }
            let ActionSpec::Direct(call) = &entry.action else { return None };
            self.share_record(&mut table.records, present, &self.record_words(program, call)?)?
        } else {
            let record = present.or_else(|| table.records.take())?;
            self.write_meter(record, handle);
            if self.write_action(record, (number, &entry.action), profile, program).is_none() {
                if present.is_none() {
                    table.records.free(record);
                }
                return None;
            }
            if present.is_some() {
                return Some(());
            }
            record
        };
        let key = key(self.layout, &program.tables[self.id], entry);
        let Some(key) = key.filter(|key| self.insert_key(table, key, record).is_some()) else {
            self.free_record(&mut table.records, record);
            return None;
        };
        table.entries.insert(number, WrittenEntry { handle, key, record });
        Some(())
    }

    /// Adds a key to the search; `None` if there is no room.
    fn insert_key(&self, table: &mut CopiedTable, key: &WrittenKey, record: u32) -> Option<()> {
        match (&self.layout.search, key, &mut table.writer) {
            (TableSearch::Exact(shape), WrittenKey::Exact(key), _) => {
                shape.insert(self.words(shape.words()), key, record).ok()
            }
            (TableSearch::Prefixes(shape), WrittenKey::Prefix(value, length), KeyWriter::Prefixes(writer)) => {
                writer.insert(self.words(shape.words()), *value, *length, record).ok()
            }
            (TableSearch::Rules(shape), WrittenKey::Rule(rule), KeyWriter::Rules(writer)) => {
                writer.insert(self.words(shape.words()), record, rule).ok()
            }
            _ => None,
        }
    }

    /// Adds entries that had no room before, until too many of them have none. The others wait for the next update.
    fn retry(
        &self,
        table: &mut CopiedTable,
        mut profile: Option<(ProfileView<'_>, &mut CopiedProfile)>,
        program: &Program,
        objects: &Objects,
    ) {
        let mut failures = 0;
        table.has_freed = false;
        for _ in 0..table.missing.len() {
            let later = table.missing.range(table.retried.saturating_add(1)..).next();
            let Some(number) = later.or_else(|| table.missing.first()).copied() else { return };
            table.retried = number;
            let present = objects.entry_numbered(self.id, number);
            let has_room = present.is_none_or(|(entry, handle)| {
                let profile = profile.as_mut().map(|(view, copied)| {
                    view.release(copied, (self.id, number));
                    (*view, &mut **copied)
                });
                self.insert(table, (number, &entry, handle), profile, program).is_some()
            });
            if has_room {
                table.missing.remove(&number);
            } else {
                failures += 1;
            }
            if failures == MAX_RETRIES {
                table.has_freed = true;
                return;
            }
        }
    }

    /// Completes the changes of rules.
    fn finish(&self, table: &mut CopiedTable) {
        if let (TableSearch::Rules(shape), KeyWriter::Rules(writer)) = (&self.layout.search, &mut table.writer) {
            table.has_freed |= writer.finish(self.words(shape.words()));
        }
    }
}

/// Receives the counts of a region that no packet has used.
struct NoCounts;

impl CountSink for NoCounts {}
