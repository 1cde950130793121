//! Keeps the rows of `@resilient` tables: the entries that the stores created and that this switch has.
//! Packets never write them, so any number of switches may have a row.
//!
//! An entry is in its tables as long as the switch shares the row, so a hit needs no test. A miss means that the switch
//! does not have the row: the pass ends with [`Ending::RowRefused`](crate::Ending::RowRefused), and runs again when the
//! stores have granted the row, or have answered that there is none.

use std::ops::Range;

use bits::Bits;
use cranelift_entity::SecondaryMap;
use ir::{ActionId, KeyValue, Program, ResilientGroup, TableId};
use smallvec::SmallVec;

use super::row_index::{RowIndex, RowKey};
use super::row_states::RowState;
use super::rows::{NO_GROUP, RowRefusal, StateRow};
use super::{ActionCall, ControlChange, EntryError, Objects, TableEntry};

/// A row of tables that does not exist, as the stores have said to a packet that does not make it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRow {
    group: u32,
    key: RowKey,
}

/// The rows of all tables.
#[derive(Debug, Default)]
pub(super) struct RowTables {
    /// The group of each table, or [`NO_GROUP`], and whether a miss of it makes the row.
    of_table: SecondaryMap<TableId, Membership>,
    /// By the place of the group; empty for groups of arrays.
    groups: Vec<TableGroup>,
    /// The rows that do not exist, for the pass that runs now: the stores have said so.
    missing: Vec<MissingRow>,
}

#[derive(Clone, Copy, Debug)]
struct Membership {
    group: u32,
    makes_rows: bool,
}

impl Default for Membership {
    fn default() -> Membership {
        Membership { group: NO_GROUP, makes_rows: false }
    }
}

/// Tables that share their rows.
#[derive(Debug, Default)]
struct TableGroup {
    tables: Vec<TableId>,
    /// The action of all entries of each; empty if entries have actions of their own.
    actions: Vec<ActionId>,
    key_widths: Vec<u32>,
    /// The `lpm` element of the key, if it has one. It is the last element of a row's key.
    prefix: Option<usize>,
    data_widths: Vec<u32>,
    rows: Vec<KnownRow>,
    free: Vec<u32>,
    by_key: RowIndex,
}

/// A row that the switch has, or waits for.
#[derive(Debug)]
struct KnownRow {
    key: RowKey,
    state: RowState,
    /// Whether a packet waits for it that makes it if there is none.
    has_maker: bool,
    /// The entry, or its absence, if it is kept here instead of in the table.
    answer: Option<RowAnswer>,
}

/// What a server answered for the row of an `@elastic` table.
#[derive(Clone, Debug)]
struct RowAnswer {
    /// The action of the entry; `None` if there is none.
    call: Option<ActionCall>,
    /// Its record, as compiled code reads it.
    record: SmallVec<[u64; 4]>,
}

/// Result of a miss of a table whose packets may have to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JudgedMiss {
    /// There is no entry.
    Miss,
    /// The row has the entry.
    Answered(StateRow),
    /// The packet has to wait, and its pass has ended.
    Refused,
}

impl RowTables {
    /// Creates a program's groups, without rows. After them, each `@elastic` table forms a group of its own.
    pub fn new(program: &Program, groups: &[ResilientGroup]) -> RowTables {
        let mut tables = RowTables::default();
        for (number, group) in groups.iter().enumerate() {
            for table in &group.tables {
                tables.of_table[table.table] = Membership { group: number as u32, makes_rows: table.makes_rows };
            }
            let first = group.tables.first();
            tables.groups.push(TableGroup {
                tables: group.tables.iter().map(|table| table.table).collect(),
                actions: group.tables.iter().map(|table| table.entry_action(program)).collect(),
                key_widths: first.map(|table| table.key_widths(program)).unwrap_or_default(),
                data_widths: first.map(|table| table.data_widths(program)).unwrap_or_default(),
                ..TableGroup::default()
            });
        }
        for settings in program.elastic_tables().unwrap_or_default() {
            let group = tables.groups.len() as u32;
            tables.of_table[settings.table] = Membership { group, makes_rows: false };
            let prefix = settings.prefix.map(|prefix| prefix.element);
            let widths = program.tables[settings.table].keys.iter().map(|key| key.width).collect();
            tables.groups.push(TableGroup {
                tables: vec![settings.table],
                key_widths: with_prefix_last(widths, prefix),
                prefix,
                ..TableGroup::default()
            });
        }
        tables
    }

    /// Begins a pass: no row is known not to exist.
    pub fn forget_missing(&mut self) {
        self.missing.clear();
    }

    /// Returns the state of a row; `None` for rows of arrays.
    pub fn state(&self, row: StateRow) -> Option<RowState> {
        self.known(row).map(|known| known.state)
    }

    fn known(&self, row: StateRow) -> Option<&KnownRow> {
        let known = self.groups.get(row.group as usize)?.rows.get(row.index as usize)?;
        (!known.key.is_empty()).then_some(known)
    }

    fn known_mut(&mut self, row: StateRow) -> Option<&mut KnownRow> {
        let known = self.groups.get_mut(row.group as usize)?.rows.get_mut(row.index as usize)?;
        (!known.key.is_empty()).then_some(known)
    }

    /// Judges a miss. The packet has to wait for the row if the table has rows, no answer has come, and the stores have
    /// not just answered that there is none. Returns that row as `Err`.
    fn missed(&mut self, table: TableId, key: &[Bits]) -> Result<JudgedMiss, StateRow> {
        let Membership { group: number, makes_rows } = self.of_table[table];
        let Some(group) = self.groups.get_mut(number as usize) else { return Ok(JudgedMiss::Miss) };
        let key = group.row_key(key);
        if key.is_empty() {
            return Ok(JudgedMiss::Miss);
        }
        if !makes_rows && self.missing.iter().any(|missing| missing.group == number && missing.key == key) {
            return Ok(JudgedMiss::Miss);
        }
        let index = group.insert(key);
        let (known, row) = (&mut group.rows[index as usize], StateRow { group: number, index: u64::from(index) });
        match &known.answer {
            Some(RowAnswer { call: Some(_), .. }) => Ok(JudgedMiss::Answered(row)),
            Some(RowAnswer { call: None, .. }) => Ok(JudgedMiss::Miss),
            None => {
                known.has_maker |= makes_rows;
                Err(row)
            }
        }
    }
}

/// Moves the `lpm` element of a key, if it has one, to its end.
pub(super) fn with_prefix_last<T>(mut elements: Vec<T>, prefix: Option<usize>) -> Vec<T> {
    if let Some(prefix) = prefix {
        let element = elements.remove(prefix);
        elements.push(element);
    }
    elements
}

impl TableGroup {
    /// Returns the key of a row.
    fn row_key(&self, key: &[Bits]) -> RowKey {
        let Some(prefix) = self.prefix else { return key.iter().flat_map(Bits::to_be_bytes).collect() };
        let exact = key.iter().enumerate().filter(|(at, _)| *at != prefix).map(|(_, value)| value);
        exact.chain(key.get(prefix)).flat_map(Bits::to_be_bytes).collect()
    }

    /// Returns the values of a key; `None` if it has another length. An `lpm` element matches all its bits.
    fn key_values(&self, key: &[u8]) -> Option<Vec<KeyValue>> {
        let mut values: Vec<KeyValue> =
            Bits::list_from_be_bytes(&self.key_widths, key)?.into_iter().map(KeyValue::Exact).collect();
        if let Some(prefix) = self.prefix
            && let Some(KeyValue::Exact(value)) = values.pop()
        {
            let width = value.width();
            values.insert(prefix, KeyValue::Lpm(value, width));
        }
        Some(values)
    }

    /// Returns the indices of the rows whose keys have a prefix of this length, or that have this key if there is none.
    fn rows_under(&self, key: &[u8], prefix_length: Option<u32>) -> Vec<u32> {
        let Some((length, width)) = prefix_length.zip(self.key_widths.last()) else {
            return self.by_key.get(key).into_iter().collect();
        };
        // The last key that has the prefix: the bits after it are ones.
        let mut last = RowKey::from_slice(key);
        let spare = width - length;
        for (at, byte) in last.iter_mut().rev().enumerate().take(spare.div_ceil(8) as usize) {
            let ones = (spare - 8 * at as u32).min(8);
            *byte |= (0xffu32 >> (8 - ones)) as u8;
        }
        self.by_key.range(key, &last)
    }

    /// Returns the index of a key's row.
    fn insert(&mut self, key: RowKey) -> u32 {
        if let Some(index) = self.by_key.get(&key) {
            return index;
        }
        let row = KnownRow { key: key.clone(), state: RowState::Absent, has_maker: false, answer: None };
        let index = match self.free.pop() {
            Some(index) => {
                self.rows[index as usize] = row;
                index
            }
            None => {
                self.rows.push(row);
                self.rows.len() as u32 - 1
            }
        };
        self.by_key.insert(key, index);
        index
    }
}

impl Objects {
    fn row_tables(&self) -> Option<&RowTables> {
        self.rows.as_deref().map(|rows| &rows.tables)
    }

    fn row_tables_mut(&mut self) -> Option<&mut RowTables> {
        self.rows.as_deref_mut().map(|rows| &mut rows.tables)
    }

    /// Refuses a change of the control plane to a table whose entries the stores create, even while there are none.
    ///
    /// # Errors
    /// [`EntryError::RowEntries`].
    pub fn check_not_rows(&self, table: TableId) -> Result<(), EntryError> {
        if self.control().tables[table].is_resilient { Err(EntryError::RowEntries(table)) } else { Ok(()) }
    }

    /// Finds the rows of `@elastic` tables with exact keys by hashes under this seed, which packets do not know. Call
    /// it before there are rows.
    pub fn hash_rows(&mut self, seed: u64) {
        let first = self.rows.as_ref().map_or(0, |rows| rows.groups.len());
        let groups = self.row_tables_mut().into_iter().flat_map(|tables| &mut tables.groups[first..]);
        for group in groups.filter(|group| group.prefix.is_none() && group.by_key.is_empty()) {
            group.by_key = RowIndex::hashed(seed);
        }
    }

    /// Judges a miss of a table of [`Objects::judges_misses`]. Refuses the pass if the packet has to wait for the row.
    pub(crate) fn judge_miss(&mut self, table: TableId, key: &[Bits]) -> JudgedMiss {
        let Some(rows) = &mut self.rows else { return JudgedMiss::Miss };
        rows.tables.missed(table, key).unwrap_or_else(|row| {
            rows.refusal = Some(RowRefusal::Absent(row));
            JudgedMiss::Refused
        })
    }

    /// Returns the record of a row that has its entry.
    pub(crate) fn answer_record(&self, row: StateRow) -> &[u64] {
        &self.row_answer(row).expect("the row has its entry").record
    }

    /// Returns the action of a row that has its entry.
    pub(crate) fn answer_call(&self, row: StateRow) -> Option<&ActionCall> {
        self.row_answer(row)?.call.as_ref()
    }

    /// Returns the entry of a row that has it, as its table would.
    pub(crate) fn answer_entry(&self, row: StateRow) -> Option<TableEntry> {
        let call = self.answer_call(row)?;
        let tables = self.row_tables()?;
        let keys = tables.groups[row.group as usize].key_values(&tables.known(row)?.key)?;
        Some(TableEntry::new(keys, 0, call.action, call.args.clone()))
    }

    fn row_answer(&self, row: StateRow) -> Option<&RowAnswer> {
        self.row_tables()?.known(row)?.answer.as_ref()
    }

    /// Sets what a server answered for a row of an `@elastic` table: the action of its entry, or `None` if there is no
    /// entry. Lookups find the answer in the row until it is removed, or [moved to the table](Objects::keep_answer).
    /// Returns false, and sets nothing, if the table cannot have such an entry.
    ///
    /// # Panics
    /// If it is no row of tables, or its entry is there.
    pub fn set_row_answer(&mut self, row: StateRow, call: Option<ActionCall>) -> bool {
        let tables = self.row_tables().expect("rows are under ownership");
        let known = tables.known(row).expect("the switch waits for the row");
        assert_eq!(known.state, RowState::Absent, "a row that the switch has is not answered again");
        let table = tables.groups[row.group as usize].tables[0];
        let record = match &call {
            None => SmallVec::new(),
            Some(call) if self.check_call(table, call).is_ok() => self.control().tables[table].record_of(call),
            Some(_) => return false,
        };
        if let Some(known) = self.row_tables_mut().and_then(|tables| tables.known_mut(row)) {
            known.answer = Some(RowAnswer { call, record });
            known.state = RowState::Shared;
        }
        true
    }

    /// Moves the entry of a row from there to its table, if it is there.
    pub fn keep_answer(&mut self, row: StateRow) {
        let Some(known) = self.row_tables_mut().and_then(|tables| tables.known_mut(row)) else { return };
        if let Some(RowAnswer { call: Some(call), .. }) = known.answer.take_if(|answer| answer.call.is_some()) {
            known.state = RowState::Absent;
            let is_added = self.add_row_entry(row, call);
            assert!(is_added, "the entry was checked when it came");
        }
    }

    /// Whether a lookup in a table may have an effect that may be undone, or end the pass.
    #[inline]
    pub fn may_undo_lookup(&self, table: TableId) -> bool {
        let state = &self.control().tables[table];
        self.rows.is_some() && (state.records_hits || state.waits_for_entries)
    }

    /// Whether packets may have to wait when a table has no entry for their key.
    #[inline]
    pub(crate) fn judges_misses(&self, table: TableId) -> bool {
        self.rows.is_some() && self.control().tables[table].waits_for_entries
    }

    /// Returns the key of a row of tables: the elements of the tables' keys, each in whole bytes, the most significant
    /// first. An `lpm` element is the last. `None` if it is a row of arrays.
    pub fn row_key(&self, row: StateRow) -> Option<&[u8]> {
        Some(&self.row_tables()?.known(row)?.key)
    }

    /// Returns the row of a group of tables with this key, if the switch owns it or waits for it.
    pub fn row_with_key(&self, group: u32, key: &[u8]) -> Option<StateRow> {
        let index = self.row_tables()?.groups.get(group as usize)?.by_key.get(key)?;
        Some(StateRow { group, index: u64::from(index) })
    }

    /// Returns the row of a group of tables with this key, which is known until it is forgotten. `None` if
    /// the key is not one of the group.
    pub fn track_row(&mut self, group: u32, key: &[u8]) -> Option<StateRow> {
        let tables = self.row_tables_mut()?.groups.get_mut(group as usize)?;
        Bits::list_from_be_bytes(&tables.key_widths, key).filter(|key| !key.is_empty())?;
        Some(StateRow { group, index: u64::from(tables.insert(key.into())) })
    }

    /// Whether a packet waits for a row of tables that makes it if there is none.
    pub fn row_has_maker(&self, row: StateRow) -> bool {
        self.row_tables().and_then(|tables| tables.known(row)).is_some_and(|known| known.has_maker)
    }

    /// Returns a row as one that does not exist; `None` if it is no row of tables.
    pub fn missing_row(&self, row: StateRow) -> Option<MissingRow> {
        Some(MissingRow { group: row.group, key: self.row_key(row)?.into() })
    }

    /// Sets the rows that do not exist for the pass that has begun: their tables have a miss, except those that make
    /// them.
    pub fn set_missing_rows(&mut self, rows: &[MissingRow]) {
        if let Some(tables) = self.row_tables_mut() {
            tables.missing.clear();
            tables.missing.extend_from_slice(rows);
        }
    }

    /// Adds the entries of a row to its tables: the switch shares it. `data` are the values of the action's parameters,
    /// each in whole bytes. Returns false, and adds nothing, if they are of another length, or a table is full.
    ///
    /// # Panics
    /// If it is no row of tables, or its entries are there.
    pub fn add_row_entries(&mut self, row: StateRow, data: &[u8]) -> bool {
        let tables = self.row_tables().expect("rows are under ownership");
        let (group, known) =
            (&tables.groups[row.group as usize], tables.known(row).expect("the switch waits for the row"));
        assert_eq!(known.state, RowState::Absent, "a row that the switch has is not added again");
        let Some(args) = Bits::list_from_be_bytes(&group.data_widths, data) else { return false };
        let keys = group.key_values(&known.key).expect("the key is one of the table's");
        let members: Vec<_> = group.tables.iter().copied().zip(group.actions.iter().copied()).collect();
        for (at, (table, action)) in members.iter().enumerate() {
            let entry = TableEntry::new(keys.clone(), 0, *action, args.clone());
            let added = self.checked_entry(*table, entry).and_then(|entry| self.add_checked(*table, entry));
            if added.is_err() {
                members[..at].iter().for_each(|(table, _)| self.take_row_entry(*table, &keys));
                return false;
            }
        }
        self.set_table_row_state(row, RowState::Shared);
        true
    }

    /// Adds the entry of an `@elastic` table for which packets wait, with the action that a server returned. Returns
    /// false, and adds nothing, if the table cannot have such an entry.
    ///
    /// # Panics
    /// If it is no row of tables, or its entry is there.
    fn add_row_entry(&mut self, row: StateRow, call: ActionCall) -> bool {
        let tables = self.row_tables().expect("rows are under ownership");
        let (group, known) =
            (&tables.groups[row.group as usize], tables.known(row).expect("the switch waits for the row"));
        assert_eq!(known.state, RowState::Absent, "a row that the switch has is not added again");
        let (table, Some(keys)) = (group.tables[0], group.key_values(&known.key)) else { return false };
        let entry = TableEntry::new(keys, 0, call.action, call.args);
        let Ok(entry) = self.checked_entry(table, entry) else { return false };
        // The owner bounds the number of entries that it adds. With prefixes it may exceed the table's size.
        self.change(ControlChange::Add(table, Box::new(entry), false, self.now_ns));
        self.set_table_row_state(row, RowState::Shared);
        true
    }

    /// Removes the entries that were added for packets, and that a change of this key affects: those whose keys have
    /// the prefix, or the one with this key if the table has no `lpm` element.
    pub(super) fn remove_entries_under(&mut self, table: TableId, key: &[u8], prefix_length: Option<u32>) {
        let Some(tables) = self.row_tables() else { return };
        let number = tables.of_table[table].group;
        let Some(group) = tables.groups.get(number as usize) else { return };
        for index in group.rows_under(key, prefix_length) {
            self.remove_row_entries(StateRow { group: number, index: u64::from(index) });
        }
    }

    /// Whether a row is an entry of an `@elastic` table.
    pub fn is_elastic_row(&self, row: StateRow) -> bool {
        let resilient = self.rows.as_ref().map_or(0, |rows| rows.groups.len());
        self.row_tables().is_some_and(|tables| (resilient..tables.groups.len()).contains(&(row.group as usize)))
    }

    /// Returns the number of the group that an `@elastic` table is, if rows are under ownership.
    pub fn elastic_group(&self, table: TableId) -> Option<u32> {
        let group = self.row_tables()?.of_table[table].group;
        self.is_elastic_row(StateRow { group, index: 0 }).then_some(group)
    }

    /// Returns the number of positions of rows of a group of tables: each position has a row that the switch owns or
    /// waits for, or none. It is 0 if no position has a row.
    pub fn row_positions(&self, group: u32) -> usize {
        let group = self.row_tables().and_then(|tables| tables.groups.get(group as usize));
        group.filter(|group| !group.by_key.is_empty()).map_or(0, |group| group.rows.len())
    }

    /// Returns the rows at these positions of a group of tables that the switch has, and that no packet has used
    /// since `before_ns`.
    pub fn idle_rows(&self, group: u32, positions: Range<usize>, before_ns: u64) -> Vec<StateRow> {
        let Some(tables) = self.row_tables().and_then(|tables| tables.groups.get(group as usize)) else {
            return Vec::new();
        };
        let is_idle = |position: &usize| {
            let row = tables.rows.get(*position).filter(|row| row.state != RowState::Absent && !row.key.is_empty());
            row.and_then(|row| tables.key_values(&row.key)).is_some_and(|keys| {
                tables.tables.iter().all(|table| {
                    self.find(*table, &keys, 0).is_ok_and(|entry| self.last_use_ns(*table, entry) <= before_ns)
                })
            })
        };
        positions.filter(is_idle).map(|position| StateRow { group, index: position as u64 }).collect()
    }

    /// Removes the entries of a row, if they are there: the switch does not own it any more.
    pub fn remove_row_entries(&mut self, row: StateRow) {
        let Some(tables) = self.row_tables() else { return };
        let Some(known) = tables.known(row).filter(|known| known.state != RowState::Absent) else { return };
        if known.answer.is_some() {
            if let Some(known) = self.row_tables_mut().and_then(|tables| tables.known_mut(row)) {
                (known.answer, known.state) = (None, RowState::Absent);
            }
            return;
        }
        let group = &tables.groups[row.group as usize];
        let keys = group.key_values(&known.key).expect("the key is one of the table's");
        for table in group.tables.clone() {
            self.take_row_entry(table, &keys);
        }
        self.set_table_row_state(row, RowState::Absent);
    }

    /// Forgets a row that the switch neither owns nor waits for.
    pub fn forget_row(&mut self, row: StateRow) {
        self.remove_row_entries(row);
        let Some(tables) = self.row_tables_mut() else { return };
        let Some(known) = tables.known_mut(row) else { return };
        let key = std::mem::take(&mut known.key);
        let group = &mut tables.groups[row.group as usize];
        group.by_key.remove(&key);
        group.free.push(row.index as u32);
    }

    fn take_row_entry(&mut self, table: TableId, keys: &[KeyValue]) {
        if let Ok(handle) = self.find(table, keys, 0) {
            self.change(ControlChange::Take(table, handle));
        }
    }

    fn set_table_row_state(&mut self, row: StateRow, state: RowState) {
        if let Some(known) = self.row_tables_mut().and_then(|tables| tables.known_mut(row)) {
            known.state = state;
        }
    }
}
