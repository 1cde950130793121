//! Keeps the states of `@resilient` rows at this switch, and the changes of a pass to them and to all other objects.
//!
//! A *pass* is one run of a packet through ingress or egress. It uses one row of registers at most. If the switch does
//! not own the row, the pass ends with [`Ending::RowRefused`], and all its changes are undone. The packet runs again,
//! from the beginning of the pass, when the row has arrived. A pass that wrote its row, or read unacknowledged values,
//! has a [`Dependency`]: none of its outputs may leave before the row's writes up to then are acknowledged.
//!
//! A row that other switches read, too, is *shared*: passes read it like an owned one. A pass that changes it ends as
//! if the row were absent, and so do all later passes, until the switch owns the row.

use std::collections::BTreeSet;

use bits::Bits;
use cranelift_entity::SecondaryMap;
use ir::{
    CounterId, MeterId, Program, RegisterId, ReplicationMode, ResilientGroup, SnapshotSettings, StaleAction, TableId,
};

use super::inline_uses::{InlineDependency, InlineUses};
use super::meter::Meter;
use super::row_states::{RowState, RowStates};
use super::row_tables::RowTables;
use super::snapshots::GroupPages;
use super::{CounterValue, EntryError, Objects, RandomStream};
use crate::Ending;
use crate::tables::Handle;

/// Maximum number of rows that are recorded as written by refused packets.
const MAX_WRITE_WISHES: usize = 1 << 16;

/// A row: the cells of all registers of a group at one index, or the entries of all tables of a group with one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateRow {
    /// Place of the group in [`ir::Program::resilient_groups`].
    pub group: u32,
    /// Index in the group's arrays. For a row of tables, a number that stands for its key while the switch owns the row
    /// or waits for it.
    pub index: u64,
}

/// The condition for which a packet's outputs wait: the acknowledgement of all writes to a row up to a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The row.
    pub row: StateRow,
    /// Number of writes, to any row, that this switch had made by then; 0 if the packet has used the row and depends
    /// on nothing.
    pub writes: u64,
}

impl Dependency {
    /// Whether outputs must wait.
    pub fn must_wait(&self) -> bool {
        self.writes > 0
    }
}

/// A write that waits for its replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowWrite {
    /// The row.
    pub row: StateRow,
    /// Number of writes, to any row, with this one.
    pub writes: u64,
}

/// The reason why a pass may not use a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowRefusal {
    /// The switch does not have it, or shares it and the pass changes it. The pass runs again when the switch owns it.
    Absent(StateRow),
    /// The packet has used another row before this one. It is dropped.
    Second(StateRow),
    /// The last snapshot of the row is too old. The packet is dropped.
    Stale(StateRow),
}

/// The rows of a program.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(super) groups: Vec<RowGroup>,
    pub(super) tables: RowTables,
    /// The group of each array, with [`SNAPSHOTS`] if it has snapshots, or [`NO_GROUP`].
    of_register: SecondaryMap<RegisterId, u32>,
    /// The arrays that show whether the snapshots of rows are stale.
    stale_flags: Vec<RegisterId>,
    /// Number of writes so far.
    pub(super) writes: u64,
    pub(super) written: Vec<RowWrite>,
    /// What packets used inline since the last settlement.
    pub(super) inline_uses: InlineUses,
    /// What packets that ran inline depend on.
    pub(super) inline_dependencies: Vec<InlineDependency>,
    /// Rows that packets wait for in order to write them.
    write_wishes: BTreeSet<StateRow>,
    /// Rows with snapshots whose first change since their last cut was made.
    pub(super) changed: Vec<StateRow>,
    /// The row that the last pass may not use.
    pub(super) refusal: Option<RowRefusal>,
    pass: Pass,
    pub(super) undo: Vec<Undo>,
}

/// The group of an array without one, and of a pass that has used no row.
pub(super) const NO_GROUP: u32 = u32::MAX;

/// Bit of the number of a group with snapshots.
const SNAPSHOTS: u32 = 1 << 31;

#[derive(Debug)]
pub(super) struct RowGroup {
    pub registers: Vec<RegisterId>,
    pub states: RowStates,
    pub snapshots: Option<GroupPages>,
}

/// The kind of row to which an element belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UsedRow {
    /// None.
    None,
    /// A row that is replicated with each write.
    EveryWrite,
    /// A row of this group, with snapshots.
    Snapshots(u32),
}

/// The changes of the running pass.
#[derive(Debug)]
struct Pass {
    is_running: bool,
    /// The row that the packet has used, in this pass or before; its group is [`NO_GROUP`] if there is none.
    used: Dependency,
    /// Whether this pass has used it. The switch may have lost it since an earlier pass, or written it.
    is_tested: bool,
    /// Whether the pass may only read the row.
    is_shared: bool,
    has_written: bool,
}

impl Pass {
    fn new(used: Option<Dependency>) -> Pass {
        let used = used.unwrap_or(NOTHING_USED);
        Pass { is_running: false, used, is_tested: false, is_shared: false, has_written: false }
    }

    fn must_wait(&self) -> bool {
        self.has_written || self.used.must_wait()
    }
}

/// A change of the running pass, with what undoes it.
#[derive(Debug)]
pub(crate) enum Undo {
    Register(RegisterId, u64, Bits),
    /// An element of at most 64 bits.
    Word(RegisterId, u64, u64),
    Counter(CounterId, u64, CounterValue),
    Meter(MeterId, u64, (u64, Meter)),
    Hit(TableId, Handle, u64, (CounterValue, u64)),
    DirectMeter(TableId, u32, (u64, Meter)),
    Random(RandomStream),
}

impl Objects {
    /// Puts the rows of these groups under ownership: afterwards, a packet uses a row only if the switch owns it. The
    /// groups are those of the program that the objects belong to.
    /// The entries of `@elastic` tables move to ledgers: packets find those that the owner adds for them.
    pub fn own_rows(&mut self, program: &Program, groups: &[ResilientGroup]) {
        let tables = RowTables::new(program, groups);
        let mut of_register = SecondaryMap::with_default(NO_GROUP);
        for (number, group) in groups.iter().enumerate() {
            let kind = if group.mode == ReplicationMode::EveryWrite { 0 } else { SNAPSHOTS };
            group.registers.iter().for_each(|register| of_register[*register] = number as u32 | kind);
        }
        let stale_flags = groups.iter().filter_map(|group| match &group.mode {
            ReplicationMode::Snapshots(SnapshotSettings { when_stale: StaleAction::Flag(flag), .. }) => Some(*flag),
            _ => None,
        });
        let stale_flags = stale_flags.collect();
        let groups = groups.iter().map(|group| RowGroup {
            registers: group.registers.clone(),
            states: RowStates::new(group.rows),
            snapshots: GroupPages::new(group),
        });
        self.rows = Some(Box::new(Rows {
            groups: groups.collect(),
            tables,
            of_register,
            stale_flags,
            writes: 0,
            written: Vec::new(),
            inline_uses: InlineUses::new(),
            inline_dependencies: Vec::new(),
            write_wishes: BTreeSet::new(),
            changed: Vec::new(),
            refusal: None,
            pass: Pass::new(None),
            undo: Vec::new(),
        }));
        self.renew_array_addresses();
        self.open_ledgers(program.elastic_tables().unwrap_or_default());
    }

    /// Whether there is a row of registers with this name.
    pub fn has_row(&self, row: StateRow) -> bool {
        let groups = self.rows.iter().flat_map(|rows| rows.groups.get(row.group as usize));
        groups.into_iter().any(|group| row.index < group.states.len())
    }

    /// Returns the state of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row_state(&self, row: StateRow) -> RowState {
        let rows = self.rows.as_ref().expect("rows are under ownership");
        if let Some(state) = rows.tables.state(row) {
            return state;
        }
        rows.groups[row.group as usize].states.get(row.index).expect("there is such a row")
    }

    /// Sets the state of a row of registers.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn set_row_state(&mut self, row: StateRow, state: RowState) {
        let rows = self.rows.as_mut().expect("rows are under ownership");
        rows.groups[row.group as usize].states.set(row.index, state);
        if state != RowState::Absent {
            rows.write_wishes.remove(&row);
        }
    }

    /// Whether this switch has the value of an element of a register array. Otherwise its row is under ownership, and
    /// another switch may have it.
    pub fn has_element(&self, register: RegisterId, index: u64) -> bool {
        let Some(rows) = &self.rows else { return true };
        if rows.of_register[register] == NO_GROUP {
            return true;
        }
        let group = &rows.groups[(rows.of_register[register] & !SNAPSHOTS) as usize];
        let row = index >> group.snapshots.as_ref().map_or(0, |pages| pages.row_shift);
        group.states.get(row).is_some_and(|state| state != RowState::Absent)
    }

    /// Refuses a write of the control plane to an array under ownership, which only packets write, and to one that
    /// shows whether snapshots are stale.
    ///
    /// # Errors
    /// [`EntryError::RowRegister`].
    pub fn check_not_in_rows(&self, register: RegisterId) -> Result<(), EntryError> {
        let is_free = |rows: &Rows| rows.of_register[register] == NO_GROUP && !rows.stale_flags.contains(&register);
        let is_plain = self.rows.as_ref().is_none_or(|rows| is_free(rows));
        if is_plain { Ok(()) } else { Err(EntryError::RowRegister(register)) }
    }

    /// Whether a packet waits for a row of registers in order to write it. A row that was shared is then absent: the
    /// switch has to give it up.
    pub fn has_write_wish(&self, row: StateRow) -> bool {
        self.rows.as_ref().is_some_and(|rows| rows.write_wishes.contains(&row))
    }

    /// Returns the values of a row of registers, one for each array of its group.
    pub fn row_values(&self, row: StateRow) -> Vec<Bits> {
        let rows = self.rows.as_ref().expect("rows are under ownership");
        let registers = &rows.groups[row.group as usize].registers;
        registers.iter().map(|register| self.read_register(*register, row.index)).collect()
    }

    /// Sets the values of a row of registers, one for each array of its group, of the array's width.
    pub fn set_row_values(&mut self, row: StateRow, values: &[Bits]) {
        let rows = self.rows.as_ref().expect("rows are under ownership");
        let registers = &rows.groups[row.group as usize].registers;
        for (register, value) in registers.iter().zip(values) {
            self.shared.registers[*register].set(row.index, value, self.several);
        }
    }

    /// Appends the values of a row of registers: those of each array of its group in whole bytes, the most significant
    /// first.
    ///
    /// # Panics
    /// If rows are not under ownership.
    pub fn append_row_bytes(&self, row: StateRow, bytes: &mut Vec<u8>) {
        let rows = self.rows.as_ref().expect("rows are under ownership");
        for register in &rows.groups[row.group as usize].registers {
            self.shared.registers[*register].get_bytes(row.index..row.index + 1, self.several, bytes);
        }
    }

    /// Removes and returns the writes since the last call, oldest first.
    pub fn take_row_writes(&mut self) -> Vec<RowWrite> {
        self.rows.as_mut().map(|rows| std::mem::take(&mut rows.written)).unwrap_or_default()
    }

    /// Exchanges the writes since the last call, oldest first, for an empty list, whose memory is used for the next.
    pub fn swap_row_writes(&mut self, into: &mut Vec<RowWrite>) {
        into.clear();
        if let Some(rows) = &mut self.rows {
            std::mem::swap(&mut rows.written, into);
        }
    }

    /// Whether packets have written rows, or changed rows with snapshots, since these were taken.
    #[inline]
    pub fn has_row_changes(&self) -> bool {
        self.rows.as_ref().is_some_and(|rows| !rows.written.is_empty() || !rows.changed.is_empty())
    }

    /// Removes and returns the row that the last pass may not use.
    pub fn take_refusal(&mut self) -> Option<RowRefusal> {
        self.rows.as_mut()?.refusal.take()
    }

    /// Begins a pass of a packet that has used this row before, if any.
    #[inline]
    pub fn begin_pass(&mut self, used: Option<Dependency>) {
        if let Some(rows) = &mut self.rows {
            rows.undo.clear();
            rows.refusal = None;
            rows.tables.forget_missing();
            rows.pass = Pass { is_running: true, ..Pass::new(used) };
        }
    }

    /// Ends a pass. Returns the row that the packet has used, if any, with what its outputs depend on.
    pub fn end_pass(&mut self) -> Option<Dependency> {
        let rows = self.rows.as_mut()?;
        if !std::mem::take(&mut rows.pass.is_running) || rows.pass.used.row.group == NO_GROUP {
            return None;
        }
        let mut used = rows.pass.used;
        if rows.pass.has_written {
            rows.writes += 1;
            used.writes = rows.writes;
            rows.written.push(RowWrite { row: used.row, writes: rows.writes });
            rows.groups[used.row.group as usize].states.set(used.row.index, RowState::Unacknowledged);
        }
        Some(used)
    }

    /// Ends a pass and undoes its changes, in reverse order.
    pub fn undo_pass(&mut self) {
        let Some(rows) = &mut self.rows else { return };
        if !std::mem::take(&mut rows.pass.is_running) {
            return;
        }
        let mut undo = std::mem::take(&mut rows.undo);
        for change in undo.drain(..).rev() {
            match change {
                Undo::Register(register, index, value) => {
                    self.shared.registers[register].set(index, &value, self.several);
                }
                Undo::Word(register, index, value) => self.shared.registers[register].set_word(index, value),
                Undo::Counter(counter, index, value) => self.tally.set_counter(counter, index, value),
                Undo::Meter(meter, index, state) => {
                    if let Some(array) = &self.shared.meters[meter] {
                        array.restore(index, state, self.several);
                    }
                }
                Undo::Hit(table, handle, generation, hits) => self.tally.restore_hits(table, handle, generation, hits),
                Undo::DirectMeter(table, handle, state) => {
                    self.shared.direct[table].restore(u64::from(handle), state, self.several);
                }
                Undo::Random(stream) => self.random = stream,
            }
        }
        if let Some(rows) = &mut self.rows {
            rows.undo = undo;
        }
    }

    /// Whether changes are recorded.
    #[inline]
    pub(crate) fn is_recording(&self) -> bool {
        self.rows.as_ref().is_some_and(|rows| rows.pass.is_running)
    }

    /// Records what undoes a change of the running pass.
    pub(crate) fn record(&mut self, undo: Undo) {
        if let Some(rows) = &mut self.rows {
            rows.undo.push(undo);
        }
    }

    /// Reads an element of a register array for the running pass; 0 beyond the end.
    ///
    /// # Errors
    /// [`Ending::RowRefused`] if the switch does not own the element's row, or the packet has used another one.
    pub fn read_in_pass(&mut self, register: RegisterId, index: u64) -> Result<Bits, Ending> {
        if let Some(rows) = &mut self.rows {
            rows.use_row(register, index)?;
        }
        Ok(self.read_register(register, index))
    }

    /// Writes an element of a register array for the running pass. Does nothing beyond the end.
    ///
    /// # Errors
    /// As [`Objects::read_in_pass`].
    pub fn write_in_pass(&mut self, register: RegisterId, index: u64, value: &Bits) -> Result<(), Ending> {
        let Some(rows) = &mut self.rows else {
            self.write_register(register, index, value);
            return Ok(());
        };
        let used = rows.use_row_for_write(register, index)?;
        let Some(before) = self.shared.registers[register].get(index, self.several) else { return Ok(()) };
        if before != *value {
            rows.check_not_shared(used)?;
            rows.wrote(used, || Undo::Register(register, index, before));
            if let UsedRow::Snapshots(group) = used {
                self.before_snapshot_write(group, index);
            }
            self.write_register(register, index, value);
        }
        Ok(())
    }

    /// Reads an element of at most 64 bits, as [`Objects::read_in_pass`].
    ///
    /// # Errors
    /// As [`Objects::read_in_pass`].
    #[inline]
    pub fn read_word_in_pass(&mut self, register: RegisterId, index: u64) -> Result<u64, Ending> {
        if let Some(rows) = &mut self.rows {
            rows.use_row(register, index)?;
        }
        Ok(self.register_word(register, index))
    }

    /// Writes an element of at most 64 bits, as [`Objects::write_in_pass`]. The value has the element's width.
    ///
    /// # Errors
    /// As [`Objects::read_in_pass`].
    #[inline]
    pub fn write_word_in_pass(&mut self, register: RegisterId, index: u64, value: u64) -> Result<(), Ending> {
        let Some(rows) = &mut self.rows else {
            self.set_register_word(register, index, value);
            return Ok(());
        };
        let used = rows.use_row_for_write(register, index)?;
        let registers = &self.shared.registers[register];
        let before = registers.word(index);
        if before != value && index < registers.size() {
            rows.check_not_shared(used)?;
            rows.wrote(used, || Undo::Word(register, index, before));
            if let UsedRow::Snapshots(group) = used {
                self.before_snapshot_write(group, index);
            }
            self.shared.registers[register].set_word(index, value);
        }
        Ok(())
    }

    /// Whether what the running pass sends must wait.
    #[inline]
    pub fn pass_must_wait(&self) -> bool {
        self.rows.as_ref().is_some_and(|rows| rows.pass.is_running && rows.pass.must_wait())
    }
}

/// The state of a pass that has used nothing.
const NOTHING_USED: Dependency = Dependency { row: StateRow { group: NO_GROUP, index: 0 }, writes: 0 };

impl Rows {
    /// Returns the row with a number of [`InlineRows::EveryWrite`](super::InlineRows).
    pub(super) fn row_of_number(&self, number: u64) -> StateRow {
        let mut index = number;
        for (group, rows) in self.groups.iter().enumerate().filter(|(_, group)| group.snapshots.is_none()) {
            let count = rows.states.len();
            if index < count {
                return StateRow { group: group as u32, index };
            }
            index -= count;
        }
        unreachable!("compiled code counts the rows of the same groups")
    }

    /// Notes that the running pass has used an owned row of registers inline. Its number is that of
    /// [`InlineRows::EveryWrite`](super::InlineRows).
    pub(super) fn note_use(&mut self, number: u64) {
        let row = self.row_of_number(number);
        let is_acknowledged = self.groups[row.group as usize].states.get(row.index) != Some(RowState::Unacknowledged);
        let writes = if is_acknowledged { 0 } else { self.writes };
        (self.pass.used, self.pass.is_tested) = (Dependency { row, writes }, true);
    }

    /// Notes a write that the running pass made inline, and what undoes it.
    pub(super) fn note_inline_write(&mut self, register: RegisterId, index: u64, before: u64) {
        self.pass.has_written |= self.of_register[register] & SNAPSHOTS == 0;
        self.undo.push(Undo::Word(register, index, before));
    }

    /// Lets the running pass use the row of an element. Returns the kind of row that the element belongs to.
    #[inline]
    fn use_row(&mut self, register: RegisterId, index: u64) -> Result<UsedRow, Ending> {
        let row = StateRow { group: self.of_register[register], index };
        if row.group == NO_GROUP {
            return Ok(UsedRow::None);
        }
        if row.group & SNAPSHOTS != 0 {
            return self.use_snapshot_row(row.group & !SNAPSHOTS, index);
        }
        if self.pass.is_tested && self.pass.used.row == row { Ok(UsedRow::EveryWrite) } else { self.test_row(row) }
    }

    /// Lets the running pass use a row with snapshots. Outputs do not depend on it, and a pass may use several.
    #[inline]
    fn use_snapshot_row(&mut self, number: u32, index: u64) -> Result<UsedRow, Ending> {
        let group = &self.groups[number as usize];
        let row = index >> group.snapshots.as_ref().map_or(0, |pages| pages.row_shift);
        match group.states.get(row) {
            Some(RowState::Owned) => return Ok(UsedRow::Snapshots(number)),
            Some(_) if !self.pass.is_running => return Ok(UsedRow::None),
            Some(RowState::Stale) => self.refusal = Some(RowRefusal::Stale(StateRow { group: number, index: row })),
            Some(_) => self.refusal = Some(RowRefusal::Absent(StateRow { group: number, index: row })),
            None => return Ok(UsedRow::None),
        }
        Err(Ending::RowRefused)
    }

    /// Lets the running pass use a row for the first time.
    #[inline]
    fn test_row(&mut self, row: StateRow) -> Result<UsedRow, Ending> {
        let state = self.groups[row.group as usize].states.get(row.index);
        let (Some(state), true) = (state, self.pass.is_running) else { return Ok(UsedRow::None) };
        if ![NOTHING_USED.row, row].contains(&self.pass.used.row) {
            self.refusal = Some(RowRefusal::Second(row));
            return Err(Ending::RowRefused);
        }
        let writes = match state {
            RowState::Absent => {
                self.refusal = Some(RowRefusal::Absent(row));
                return Err(Ending::RowRefused);
            }
            RowState::Shared | RowState::Owned | RowState::Stale => self.pass.used.writes,
            RowState::Unacknowledged => self.writes,
        };
        self.pass.is_shared = state == RowState::Shared;
        (self.pass.used, self.pass.is_tested) = (Dependency { row, writes }, true);
        Ok(UsedRow::EveryWrite)
    }

    /// Lets the running pass use the row of an element, which it may write.
    #[inline]
    fn use_row_for_write(&mut self, register: RegisterId, index: u64) -> Result<UsedRow, Ending> {
        let used = self.use_row(register, index);
        if used.is_err() {
            self.note_write_wish();
        }
        used
    }

    /// Records that a packet whose pass was refused an absent row writes this row.
    #[cold]
    fn note_write_wish(&mut self) {
        if let Some(RowRefusal::Absent(row)) = self.refusal
            && self.groups[row.group as usize].snapshots.is_none()
        {
            if self.write_wishes.len() >= MAX_WRITE_WISHES {
                // The set is bounded, as packets choose rows and most of these packets may have been dropped. A
                // forgotten row is asked for twice.
                self.write_wishes.clear();
            }
            self.write_wishes.insert(row);
        }
    }

    /// Refuses a change of a shared row by the running pass. The row becomes absent, so later packets wait after this
    /// one.
    #[inline]
    fn check_not_shared(&mut self, used: UsedRow) -> Result<(), Ending> {
        if !self.pass.is_shared || used != UsedRow::EveryWrite || !self.pass.is_running {
            return Ok(());
        }
        let row = self.pass.used.row;
        self.groups[row.group as usize].states.set(row.index, RowState::Absent);
        self.refusal = Some(RowRefusal::Absent(row));
        self.note_write_wish();
        Err(Ending::RowRefused)
    }

    /// Records a write, and how to undo it.
    fn wrote(&mut self, used: UsedRow, undo: impl FnOnce() -> Undo) {
        if self.pass.is_running {
            self.pass.has_written |= used == UsedRow::EveryWrite;
            self.undo.push(undo());
        }
    }
}
