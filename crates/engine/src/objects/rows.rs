//! Knows which rows of `@resilient` state this switch owns, and what a pass did to them and to everything else.
//!
//! A *pass* is one run of a packet through ingress or egress. It uses one row of registers at most. If the switch does
//! not own the row, the pass ends with [`Ending::RowRefused`], and everything that it changed is undone. The packet
//! runs again, from the beginning of the pass, when the row has come. A pass that wrote its row, or read what is not
//! acknowledged yet, has a [`Dependency`]: nothing that it sends may be seen before the row's writes up to then are
//! acknowledged.

use bits::Bits;
use cranelift_entity::SecondaryMap;
use ir::{CounterId, MeterId, Program, RegisterId, ResilientGroup, TableId};

use super::meter::Meter;
use super::row_tables::RowTables;
use super::{CounterValue, Objects, RandomStream};
use crate::Ending;
use crate::tables::Handle;

/// A row: the cells of all registers of a group at one index, or the entries of all tables of a group with one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateRow {
    /// Place of the group in [`ir::Program::resilient_groups`].
    pub group: u32,
    /// Index in the group's arrays. For a row of tables, a number that stands for its key while the switch owns the row
    /// or waits for it.
    pub index: u64,
}

/// What a packet's outputs wait for: the acknowledgement of all writes to a row up to a moment.
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
    /// The switch does not own it. The pass runs again when it does.
    Absent(StateRow),
    /// The packet has used another row before this one. It is dropped.
    Second(StateRow),
}

/// What this switch may do with a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowState {
    /// Another switch may own it.
    #[default]
    Absent,
    /// It may be read and written.
    Owned,
    /// So may this one, and some of its writes are not acknowledged.
    Unacknowledged,
}

/// The rows of a program.
#[derive(Debug)]
pub(crate) struct Rows {
    groups: Vec<RowGroup>,
    pub(super) tables: RowTables,
    /// The group of each array, or [`NO_GROUP`].
    of_register: SecondaryMap<RegisterId, u32>,
    /// Number of writes so far.
    writes: u64,
    written: Vec<RowWrite>,
    /// The row that the last pass may not use.
    pub(super) refusal: Option<RowRefusal>,
    pass: Pass,
    undo: Vec<Undo>,
}

/// The group of an array without one, and of a pass that has used no row.
pub(super) const NO_GROUP: u32 = u32::MAX;

#[derive(Debug)]
struct RowGroup {
    registers: Vec<RegisterId>,
    states: Vec<RowState>,
}

/// What the running pass has done.
#[derive(Debug)]
struct Pass {
    is_running: bool,
    /// The row that the packet has used, in this pass or before; its group is [`NO_GROUP`] if there is none.
    used: Dependency,
    /// Whether this pass has used it. The switch may have lost it since an earlier pass, or written it.
    is_tested: bool,
    has_written: bool,
    random: RandomStream,
}

impl Pass {
    fn new(used: Option<Dependency>, random: &RandomStream) -> Pass {
        let used = used.unwrap_or(NOTHING_USED);
        Pass { is_running: false, used, is_tested: false, has_written: false, random: random.clone() }
    }

    fn must_wait(&self) -> bool {
        self.has_written || self.used.must_wait()
    }
}

/// A change of the running pass, with what undoes it.
#[derive(Debug)]
pub(crate) enum Undo {
    Register(RegisterId, u64, Bits),
    Counter(CounterId, u64, CounterValue),
    Meter(MeterId, u64, (u64, Meter)),
    Hit(TableId, Handle, u64, (CounterValue, u64)),
    DirectMeter(TableId, u32, (u64, Meter)),
}

impl Objects {
    /// Puts the rows of these groups under ownership: from now on a packet uses a row only if the switch owns it. The
    /// groups are those of the program that the objects belong to.
    pub fn own_rows(&mut self, program: &Program, groups: &[ResilientGroup]) {
        let tables = RowTables::new(program, groups);
        let mut of_register = SecondaryMap::with_default(NO_GROUP);
        for (number, group) in groups.iter().enumerate() {
            group.registers.iter().for_each(|register| of_register[*register] = number as u32);
        }
        let groups = groups.iter().map(|group| RowGroup {
            registers: group.registers.clone(),
            states: vec![RowState::default(); group.rows as usize],
        });
        self.rows = Some(Box::new(Rows {
            groups: groups.collect(),
            tables,
            of_register,
            writes: 0,
            written: Vec::new(),
            refusal: None,
            pass: Pass::new(None, &self.random),
            undo: Vec::new(),
        }));
    }

    /// Whether there is a row of registers with this name.
    pub fn has_row(&self, row: StateRow) -> bool {
        let groups = self.rows.iter().flat_map(|rows| rows.groups.get(row.group as usize));
        groups.into_iter().any(|group| row.index < group.states.len() as u64)
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
        rows.groups[row.group as usize].states[row.index as usize]
    }

    /// Sets the state of a row of registers.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn set_row_state(&mut self, row: StateRow, state: RowState) {
        let rows = self.rows.as_mut().expect("rows are under ownership");
        rows.groups[row.group as usize].states[row.index as usize] = state;
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

    /// Removes and returns the writes since the last call, oldest first.
    pub fn take_row_writes(&mut self) -> Vec<RowWrite> {
        self.rows.as_mut().map(|rows| std::mem::take(&mut rows.written)).unwrap_or_default()
    }

    /// Removes and returns the row that the last pass may not use.
    pub fn take_refusal(&mut self) -> Option<RowRefusal> {
        self.rows.as_mut()?.refusal.take()
    }

    /// Begins a pass of a packet that has used this row before, if any.
    pub fn begin_pass(&mut self, used: Option<Dependency>) {
        if let Some(rows) = &mut self.rows {
            rows.undo.clear();
            rows.refusal = None;
            rows.tables.forget_missing();
            rows.pass = Pass { is_running: true, ..Pass::new(used, &self.random) };
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
            rows.groups[used.row.group as usize].states[used.row.index as usize] = RowState::Unacknowledged;
        }
        Some(used)
    }

    /// Ends a pass and undoes what it did, in reverse order.
    pub fn undo_pass(&mut self) {
        let Some(rows) = &mut self.rows else { return };
        if !std::mem::take(&mut rows.pass.is_running) {
            return;
        }
        let mut undo = std::mem::take(&mut rows.undo);
        self.random = rows.pass.random.clone();
        for change in undo.drain(..).rev() {
            match change {
                Undo::Register(register, index, value) => {
                    self.shared.registers[register].set(index, &value, self.several);
                }
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
        let is_in_row = rows.use_row(register, index)?;
        let Some(before) = self.shared.registers[register].get(index, self.several) else { return Ok(()) };
        if before != *value {
            rows.wrote(is_in_row, || Undo::Register(register, index, before));
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
        let is_in_row = rows.use_row(register, index)?;
        let registers = &self.shared.registers[register];
        let before = registers.word(index);
        if before != value && index < registers.size() {
            let before = || Undo::Register(register, index, Bits::new(u128::from(before), registers.width()));
            rows.wrote(is_in_row, before);
            registers.set_word(index, value);
        }
        Ok(())
    }

    /// Whether what the running pass sends must wait.
    #[inline]
    pub fn pass_must_wait(&self) -> bool {
        self.rows.as_ref().is_some_and(|rows| rows.pass.is_running && rows.pass.must_wait())
    }
}

/// What a pass has used that has used nothing.
const NOTHING_USED: Dependency = Dependency { row: StateRow { group: NO_GROUP, index: 0 }, writes: 0 };

impl Rows {
    /// Lets the running pass use the row of an element. Returns whether the element belongs to one.
    #[inline]
    fn use_row(&mut self, register: RegisterId, index: u64) -> Result<bool, Ending> {
        let row = StateRow { group: self.of_register[register], index };
        if row.group == NO_GROUP {
            return Ok(false);
        }
        if self.pass.is_tested && self.pass.used.row == row { Ok(true) } else { self.test_row(row) }
    }

    /// Lets the running pass use a row for the first time.
    fn test_row(&mut self, row: StateRow) -> Result<bool, Ending> {
        let state = self.groups[row.group as usize].states.get(row.index as usize);
        let (Some(state), true) = (state, self.pass.is_running) else { return Ok(false) };
        if ![NOTHING_USED.row, row].contains(&self.pass.used.row) {
            self.refusal = Some(RowRefusal::Second(row));
            return Err(Ending::RowRefused);
        }
        let writes = match state {
            RowState::Absent => {
                self.refusal = Some(RowRefusal::Absent(row));
                return Err(Ending::RowRefused);
            }
            RowState::Owned => self.pass.used.writes,
            RowState::Unacknowledged => self.writes,
        };
        (self.pass.used, self.pass.is_tested) = (Dependency { row, writes }, true);
        Ok(true)
    }

    /// Notes a write, and what undoes it.
    fn wrote(&mut self, is_in_row: bool, undo: impl FnOnce() -> Undo) {
        if self.pass.is_running {
            self.pass.has_written |= is_in_row;
            self.undo.push(undo());
        }
    }
}
