//! Knows which rows of `@resilient` registers this switch owns, and what a pass did to them and to everything else.
//!
//! A *pass* is one run of a packet through ingress or egress. It uses one row at most. If the switch does not own the
//! row, the pass ends with [`Ending::RowRefused`], and everything that it changed is undone: the packet runs again, from
//! the beginning of the pass, when the row has come. A pass that wrote its row, or read what is not acknowledged yet,
//! has a [`Dependency`]: nothing that it sends may be seen before the row's writes up to then are acknowledged.

use bits::Bits;
use cranelift_entity::SecondaryMap;
use ir::{CounterId, MeterId, RegisterId, ResilientGroup, TableId};

use super::meter::Meter;
use super::{CounterValue, Objects, RandomStream};
use crate::Ending;
use crate::tables::Handle;

/// A row: the cells of all registers of a group at one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    /// Place of the group in [`ir::Program::resilient_groups`].
    pub group: u32,
    /// Index in the group's arrays.
    pub index: u64,
}

/// What a packet's outputs wait for: the acknowledgement of all writes to a row up to a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The row.
    pub row: Row,
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
    pub row: Row,
    /// Number of writes, to any row, with this one.
    pub writes: u64,
}

/// The reason why a pass may not use a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowRefusal {
    /// The switch does not own it. The pass runs again when it does.
    Absent(Row),
    /// The packet has used another row before this one. It is dropped.
    Second(Row),
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
    of_register: SecondaryMap<RegisterId, Option<u32>>,
    /// Number of writes so far.
    writes: u64,
    written: Vec<RowWrite>,
    /// The row that the last pass may not use.
    refusal: Option<RowRefusal>,
    pass: Option<Pass>,
    undo: Vec<Undo>,
}

#[derive(Debug)]
struct RowGroup {
    registers: Vec<RegisterId>,
    states: Vec<RowState>,
}

/// What the running pass has done.
#[derive(Debug)]
struct Pass {
    used: Option<Dependency>,
    has_written: bool,
    random: RandomStream,
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
    pub fn own_rows(&mut self, groups: &[ResilientGroup]) {
        let mut of_register = SecondaryMap::new();
        for (number, group) in groups.iter().enumerate() {
            group.registers.iter().for_each(|register| of_register[*register] = Some(number as u32));
        }
        let groups = groups.iter().map(|group| RowGroup {
            registers: group.registers.clone(),
            states: vec![RowState::default(); group.rows as usize],
        });
        self.rows = Some(Box::new(Rows {
            groups: groups.collect(),
            of_register,
            writes: 0,
            written: Vec::new(),
            refusal: None,
            pass: None,
            undo: Vec::new(),
        }));
    }

    /// Whether rows are under ownership.
    #[inline]
    pub fn has_rows(&self) -> bool {
        self.rows.is_some()
    }

    /// Whether there is a row with this name.
    pub fn has_row(&self, row: Row) -> bool {
        let groups = self.rows.iter().flat_map(|rows| rows.groups.get(row.group as usize));
        groups.into_iter().any(|group| row.index < group.states.len() as u64)
    }

    /// Returns the state of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row_state(&self, row: Row) -> RowState {
        let rows = self.rows.as_ref().expect("rows are under ownership");
        rows.groups[row.group as usize].states[row.index as usize]
    }

    /// Sets the state of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn set_row_state(&mut self, row: Row, state: RowState) {
        let rows = self.rows.as_mut().expect("rows are under ownership");
        rows.groups[row.group as usize].states[row.index as usize] = state;
    }

    /// Returns the values of a row, one for each array of its group.
    pub fn row_values(&self, row: Row) -> Vec<Bits> {
        let rows = self.rows.as_ref().expect("rows are under ownership");
        let registers = &rows.groups[row.group as usize].registers;
        registers.iter().map(|register| self.read_register(*register, row.index)).collect()
    }

    /// Sets the values of a row, one for each array of its group, of the array's width.
    pub fn set_row_values(&mut self, row: Row, values: &[Bits]) {
        let rows = self.rows.as_ref().expect("rows are under ownership");
        let registers = &rows.groups[row.group as usize].registers;
        for (register, value) in registers.iter().zip(values) {
            self.shared.registers[*register].set(row.index, value, self.several);
        }
    }

    /// Returns the widths of a row's values in bits.
    pub fn row_widths(&self, group: u32) -> Vec<u32> {
        let rows = self.rows.as_ref().expect("rows are under ownership");
        let registers = &rows.groups[group as usize].registers;
        registers.iter().map(|register| self.shared.registers[*register].width()).collect()
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
            rows.pass = Some(Pass { used, has_written: false, random: self.random.clone() });
        }
    }

    /// Whether what the running pass sends must wait.
    #[inline]
    pub fn pass_must_wait(&self) -> bool {
        let pass = self.rows.as_ref().and_then(|rows| rows.pass.as_ref());
        pass.is_some_and(|pass| pass.has_written || pass.used.is_some_and(|used| used.must_wait()))
    }

    /// Ends a pass. Returns the row that the packet has used, if any, with what its outputs depend on.
    pub fn end_pass(&mut self) -> Option<Dependency> {
        let rows = self.rows.as_mut()?;
        let Pass { mut used, has_written, .. } = rows.pass.take()?;
        if let (Some(used), true) = (&mut used, has_written) {
            rows.writes += 1;
            used.writes = rows.writes;
            rows.written.push(RowWrite { row: used.row, writes: rows.writes });
            rows.groups[used.row.group as usize].states[used.row.index as usize] = RowState::Unacknowledged;
        }
        used
    }

    /// Ends a pass and undoes what it did, in reverse order.
    pub fn undo_pass(&mut self) {
        let Some(rows) = &mut self.rows else { return };
        let Some(pass) = rows.pass.take() else { return };
        let mut undo = std::mem::take(&mut rows.undo);
        self.random = pass.random;
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
        self.rows.as_ref().is_some_and(|rows| rows.pass.is_some())
    }

    /// Records what undoes a change of the running pass.
    pub(crate) fn record(&mut self, undo: Undo) {
        if let Some(rows) = &mut self.rows {
            rows.undo.push(undo);
        }
    }

    /// Lets the running pass read an element of a register array.
    ///
    /// # Errors
    /// [`Ending::RowRefused`] if the switch does not own the element's row, or the packet has used another one.
    #[inline]
    pub fn use_for_read(&mut self, register: RegisterId, index: u64) -> Result<(), Ending> {
        match &mut self.rows {
            None => Ok(()),
            Some(rows) => rows.use_row(register, index).map(drop),
        }
    }

    /// Lets the running pass write an element of a register array, and records its value.
    ///
    /// # Errors
    /// As [`Objects::use_for_read`].
    #[inline]
    pub fn use_for_write(&mut self, register: RegisterId, index: u64, value: &Bits) -> Result<(), Ending> {
        if self.rows.is_none() { Ok(()) } else { self.record_write(register, index, value) }
    }

    fn record_write(&mut self, register: RegisterId, index: u64, value: &Bits) -> Result<(), Ending> {
        let Some(before) = self.shared.registers[register].get(index, self.several) else { return Ok(()) };
        let Some(rows) = &mut self.rows else { return Ok(()) };
        let row = rows.use_row(register, index)?;
        if before == *value {
            return Ok(());
        }
        if let Some(pass) = &mut rows.pass {
            pass.has_written |= row.is_some();
            rows.undo.push(Undo::Register(register, index, before));
        }
        Ok(())
    }
}

impl Rows {
    /// Lets the running pass use the row of an element, if it belongs to one.
    fn use_row(&mut self, register: RegisterId, index: u64) -> Result<Option<Row>, Ending> {
        let Some(group) = self.of_register[register] else { return Ok(None) };
        let state = self.groups[group as usize].states.get(index as usize);
        let (Some(state), Some(pass)) = (state, &mut self.pass) else { return Ok(None) };
        let row = Row { group, index };
        let used = match &mut pass.used {
            Some(used) if used.row != row => {
                self.refusal = Some(RowRefusal::Second(row));
                return Err(Ending::RowRefused);
            }
            used => used.get_or_insert(Dependency { row, writes: 0 }),
        };
        match state {
            RowState::Absent => {
                self.refusal = Some(RowRefusal::Absent(row));
                return Err(Ending::RowRefused);
            }
            RowState::Owned => {}
            RowState::Unacknowledged => used.writes = self.writes,
        }
        Ok(Some(row))
    }
}
