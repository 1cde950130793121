//! Emits accesses of arrays with `@resilient` rows. Packets of a batch access rows that the switch owns inline;
//! functions handle the other cases: see [`crate::pass`].
//!
//! ```text
//!   read    owned? ── yes ─────────────────────────────────────────────────────────> load
//!             └────── no: function
//!   write   owned? ── yes ──> the value there? ── yes ─────────────────────────────> nothing
//!             │                     └── no ──> page with memory, dirty ── yes ─────> note the old value, store
//!             └────── no: function             if it has snapshots? ──── no: function
//! ```
//!
//! If a packet has written its row, or has read one with writes under way, the code records that at its end.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use engine::{
    CELLS_PER_PAGE, DIRTY_PAGE, INLINE_USE_PACKET, InlineArray, InlineRows, OWNED_ROW, UNACKNOWLEDGED_ROW, USES_PLACE,
    ZEROS_PLACE,
};
use ir::{RegisterId, TableId};

use super::Emit;
use super::batch::Lane;
use super::value::{Num, words_of};
use super::words::Word;
use crate::layout::word;
use crate::pass::{self, array_word};
use crate::{Step, code, walk};

/// The place of an element: the address of its page, and its own address.
struct Cell {
    page: Value,
    at: Value,
}

impl Emit<'_, '_> {
    /// Returns an array that the code uses inline, and the first word of the frame with the state of such code.
    fn inline_array(&self, register: RegisterId) -> Option<(InlineArray, u32)> {
        let arrays = self.layout.arrays.as_ref().filter(|_| self.uses_arrays)?;
        Some((arrays.of[register]?, arrays.first))
    }

    /// Whether no packet uses rows after the step that separates ingress from egress. A packet that is refused a row
    /// in egress begins again there if its outputs wait, so it may not be in a batch then.
    pub(super) fn uses_no_rows_in_egress(&self) -> bool {
        let is_stop = |step: &Step| matches!(step, Step::StopIfRequested | Step::StopUnlessWaiting(_));
        let stop = self.steps.iter().position(is_stop).unwrap_or(self.steps.len());
        let (program, behind) = (self.program, &self.steps[stop..]);
        let mut blocks = walk::bodies_of_steps(program, behind).flat_map(|body| program.bodies[body].blocks.values());
        !blocks.any(|block| block.instrs.iter().any(|instr| program.uses_row(&instr.op)))
    }

    /// Reads an element of an array with rows. Ends the unit if the packet may not use its row.
    pub(super) fn row_read(&mut self, register: RegisterId, index: Value) -> Num {
        let width = self.program.registers[register].width;
        let number = self.number(u64::from(register.as_u32()));
        let Some((array, _)) = self.inline_array(register) else {
            let (out, bits) = (self.scratch_words(words_of(width)), self.number(u64::from(width)));
            let status = self.call("row_read", &[self.frame, number, index, bits, out]);
            self.end_if_refused(status.expect("the function returns a word"));
            return self.unspill(out, width);
        };
        let [fast, slow, on] = [(); 3].map(|()| self.b.create_block());
        let value = self.b.append_block_param(on, types::I64);
        self.test_row(&array, index, fast, slow);
        self.b.switch_to_block(fast);
        let cell = self.cell(&array, index);
        let there = self.b.ins().load(types::I64, self.flags.cell, cell.at, 0);
        self.b.ins().jump(on, &[there.into()]);
        self.cold_block(slow, |emit| {
            let (out, bits) = (emit.scratch_words(1), emit.number(u64::from(width)));
            let status = emit.call_cold("row_read", &[emit.frame, number, index, bits, out]);
            emit.end_if_refused(status);
            let there = emit.b.ins().load(types::I64, emit.flags.stack, out, 0);
            emit.b.ins().jump(on, &[there.into()]);
        });
        self.b.switch_to_block(on);
        Num::word(Word::Value(value), width)
    }

    /// Writes an element of an array with rows. Ends the unit if the packet may not use its row.
    pub(super) fn row_write(&mut self, register: RegisterId, index: Value, value: &Num) {
        let (number, bits) = (self.number(u64::from(register.as_u32())), self.number(u64::from(value.width)));
        let Some((array, words)) = self.inline_array(register) else {
            let from = self.spill(value);
            let status = self.call("row_write", &[self.frame, number, index, bits, from]);
            return self.end_if_refused(status.expect("the function returns a word"));
        };
        let [fast, changes, slow, on] = [(); 4].map(|()| self.b.create_block());
        let written = self.value(value.low());
        self.test_row(&array, index, fast, slow);
        self.b.switch_to_block(fast);
        let cell = self.cell(&array, index);
        let before = self.b.ins().load(types::I64, self.flags.cell, cell.at, 0);
        let is_same = self.b.ins().icmp(IntCC::Equal, before, written);
        self.b.ins().brif(is_same, on, &[], changes, &[]);
        self.b.switch_to_block(changes);
        let used = self.frame_load(word::PASS as u32);
        let owned = self.if_free(used, |emit| emit.store_if_allocated(&cell, written, slow, on));
        self.b.switch_to_block(owned);
        match array.rows {
            InlineRows::EveryWrite { .. } if !self.waits_inline => _ = self.b.ins().jump(slow, &[]),
            rows => {
                self.before_write(rows, (index, &cell), used, slow);
                self.note_write((register, index), before, words, slow);
                if let InlineRows::EveryWrite { .. } = rows {
                    let pass = self.b.ins().bor_imm_s(used, (pass::WAITS | pass::WRITES) as i64);
                    let state = self.state_of_row(&array, index);
                    self.wait(pass, state, words);
                }
                self.b.ins().store(self.flags.cell, written, cell.at, 0);
                self.b.ins().jump(on, &[]);
            }
        }
        self.cold_block(slow, |emit| {
            let from = emit.spill(value);
            let status = emit.call_cold("row_write", &[emit.frame, number, index, bits, from]);
            emit.end_if_refused(status);
            emit.b.ins().jump(on, &[]);
        });
        self.b.switch_to_block(on);
    }

    /// Continues in a new block if an element may be written inline, else at `slow`.
    fn before_write(&mut self, rows: InlineRows, (index, cell): (Value, &Cell), used: Value, slow: Block) {
        match rows {
            InlineRows::EveryWrite { .. } => self.if_allocated(cell, slow),
            InlineRows::Snapshots { page_shift, page_states, .. } => {
                self.unless_running(used, slow);
                let page = self.b.ins().ushr_imm_u(index, i64::from(page_shift));
                self.if_byte(page_states, page, DIRTY_PAGE, slow);
            }
        }
    }

    /// Ends the unit if the packet may not use a row.
    fn end_if_refused(&mut self, status: Value) {
        let (refused, on) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(status, refused, &[], on, &[]);
        self.cold_block(refused, |emit| emit.end_unit(code::ROW_REFUSED, 0));
        self.b.switch_to_block(on);
    }

    /// Continues at `fast` if the packet may use the row of an element inline, else at `slow`. The current block is
    /// terminated.
    fn test_row(&mut self, array: &InlineArray, index: Value, fast: Block, slow: Block) {
        let is_there = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, index, array.size as i64);
        self.go_on_if(is_there, slow);
        match array.rows {
            InlineRows::EveryWrite { first } => {
                let number = self.b.ins().iadd_imm_s(index, (first + pass::FIRST_ROW) as i64);
                let used = self.frame_load(word::PASS as u32);
                let row = self.b.ins().band_imm_s(used, pass::ROW_BITS as i64);
                let is_tested = self.b.ins().icmp(IntCC::Equal, row, number);
                let other = self.b.create_block();
                self.b.ins().brif(is_tested, fast, &[], other, &[]);
                self.b.switch_to_block(other);
                let (is_new, new) =
                    (self.b.ins().icmp_imm_u(IntCC::Equal, used, pass::NEW as i64), self.b.create_block());
                let other = self.b.create_block();
                self.b.ins().brif(is_new, new, &[], other, &[]);
                self.b.switch_to_block(other);
                let is_free = self.b.ins().icmp_imm_u(IntCC::Equal, used, pass::FREE as i64);
                self.b.ins().brif(is_free, fast, &[], slow, &[]);
                self.b.switch_to_block(new);
                self.test_new_row(array, index, number, slow);
            }
            InlineRows::Snapshots { row_shift, .. } => {
                let states = self.array_address(array.states);
                let are_owned = self.b.create_block();
                self.b.ins().brif(states, are_owned, &[], fast, &[]);
                self.b.switch_to_block(are_owned);
                let row = self.b.ins().ushr_imm_u(index, i64::from(row_shift));
                self.if_byte(array.states, row, OWNED_ROW, slow);
            }
        }
        self.b.ins().jump(fast, &[]);
    }

    /// Lets a pass use a row as its first one, or continues at `slow` if the switch does not own the row.
    fn test_new_row(&mut self, array: &InlineArray, index: Value, number: Value, slow: Block) {
        let words = self.layout.arrays.as_ref().expect("the array is one of them").first;
        let at = self.state_of_row(array, index);
        let state = self.b.ins().uload8(types::I64, self.flags.cell, at, 0);
        let is_owned = self.b.ins().icmp_imm_u(IntCC::Equal, state, i64::from(OWNED_ROW));
        if !self.waits_inline {
            self.go_on_if(is_owned, slow);
            return self.frame_store(word::PASS as u32, number);
        }
        let [owned, other, on] = [(); 3].map(|()| self.b.create_block());
        self.b.ins().brif(is_owned, owned, &[], other, &[]);
        self.b.switch_to_block(other);
        let is_written = self.b.ins().icmp_imm_u(IntCC::Equal, state, i64::from(UNACKNOWLEDGED_ROW));
        self.go_on_if(is_written, slow);
        let waits = self.b.ins().bor_imm_s(number, pass::WAITS as i64);
        self.wait(waits, at, words);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(owned);
        self.frame_store(word::PASS as u32, number);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
    }

    /// Notes that the packet's outputs wait for writes of its row, whose state is at this address.
    fn wait(&mut self, pass: Value, state: Value, words: u32) {
        self.frame_store(word::PASS as u32, pass);
        self.frame_store(words + array_word::STATE, state);
    }

    /// Returns the address of the state of the row of an element that is a row.
    fn state_of_row(&mut self, array: &InlineArray, index: Value) -> Value {
        let states = self.array_address(array.states);
        self.b.ins().iadd(states, index)
    }

    /// Ends the pass of a packet of a batch that has completed: notes for the objects what its outputs wait for.
    pub(super) fn end_pass(&mut self, lane: Lane) {
        let arrays = self.layout.arrays.as_ref().filter(|arrays| self.waits_inline && arrays.has_waiting_outputs());
        let Some(words) = arrays.map(|arrays| arrays.first) else { return };
        let pass = self.frame_load(word::PASS as u32);
        let waits = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, pass, 0);
        let (must_wait, on) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(waits, must_wait, &[], on, &[]);
        self.b.switch_to_block(must_wait);
        let state = self.frame_load(words + array_word::STATE);
        let unacknowledged = self.number(u64::from(UNACKNOWLEDGED_ROW));
        self.b.ins().istore8(self.flags.cell, unacknowledged, state, 0);
        let number = self.lane_number(lane);
        let number = self.b.ins().ishl_imm_u(number, i64::from(INLINE_USE_PACKET));
        let pass = self.b.ins().iadd_imm_s(pass, -(pass::FIRST_ROW as i64));
        let used = self.b.ins().bor(pass, number);
        let list = self.array_address(USES_PLACE);
        let count = self.b.ins().load(types::I64, self.flags.cell, list, 0);
        let behind = self.b.ins().ishl_imm_u(count, 3);
        let at = self.b.ins().iadd(list, behind);
        self.b.ins().store(self.flags.cell, used, at, 8);
        let count = self.b.ins().iadd_imm_s(count, 1);
        self.b.ins().store(self.flags.cell, count, list, 0);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
    }

    /// Continues in a new block if a condition holds, else at `other`.
    fn go_on_if(&mut self, condition: Value, other: Block) {
        let on = self.b.create_block();
        self.b.ins().brif(condition, on, &[], other, &[]);
        self.b.switch_to_block(on);
    }

    /// Continues in a new block if a byte of a list is this one, else at `other`.
    fn if_byte(&mut self, list: usize, index: Value, byte: u8, other: Block) {
        let list = self.array_address(list);
        let at = self.b.ins().iadd(list, index);
        let there = self.b.ins().uload8(types::I64, self.flags.cell, at, 0);
        let is_byte = self.b.ins().icmp_imm_u(IntCC::Equal, there, i64::from(byte));
        self.go_on_if(is_byte, other);
    }

    /// Emits code for the case that rows are not under ownership, and terminates the current block. Returns the block
    /// for the other case.
    fn if_free(&mut self, used: Value, generate: impl FnOnce(&mut Self)) -> Block {
        let is_free = self.b.ins().icmp_imm_u(IntCC::Equal, used, pass::FREE as i64);
        let (free, owned) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(is_free, free, &[], owned, &[]);
        self.b.switch_to_block(free);
        generate(self);
        owned
    }

    /// Continues at `slow` if the pass runs in the objects, which undo it.
    fn unless_running(&mut self, used: Value, slow: Block) {
        let is_pending = self.b.ins().icmp_imm_u(IntCC::NotEqual, used, pass::RUNNING as i64);
        self.go_on_if(is_pending, slow);
    }

    /// Stores a value and continues at `on`, or at `slow` if the element has no memory.
    fn store_if_allocated(&mut self, cell: &Cell, value: Value, slow: Block, on: Block) {
        self.if_allocated(cell, slow);
        self.b.ins().store(self.flags.cell, value, cell.at, 0);
        self.b.ins().jump(on, &[]);
    }

    /// Continues in a new block if an element has memory, else at `slow`.
    fn if_allocated(&mut self, cell: &Cell, slow: Block) {
        let zeros = self.array_address(ZEROS_PLACE);
        let is_allocated = self.b.ins().icmp(IntCC::NotEqual, cell.page, zeros);
        self.go_on_if(is_allocated, slow);
    }

    /// Records the value of an element before a write, in case the packet is refused another row later.
    /// Continues at `slow` if there is no room.
    fn note_write(&mut self, (register, index): (RegisterId, Value), before: Value, words: u32, slow: Block) {
        let count = self.frame_load(words + array_word::WRITES);
        let has_room = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, count, i64::from(array_word::MAX_WRITES));
        self.go_on_if(has_room, slow);
        let cell = self.w_or(Word::Value(index), Word::Const(pass::cell_of(register, 0)));
        let (cell, behind) = (self.value(cell), self.b.ins().ishl_imm_u(count, 4));
        let at = self.b.ins().iadd(self.frame, behind);
        let offset = (words + array_word::FIRST_WRITE) as i32 * 8;
        self.b.ins().store(self.flags.frame, cell, at, offset);
        self.b.ins().store(self.flags.frame, before, at, offset + 8);
        let count = self.b.ins().iadd_imm_s(count, 1);
        self.frame_store(words + array_word::WRITES, count);
    }

    /// Returns the place of an element of an array.
    fn cell(&mut self, array: &InlineArray, index: Value) -> Cell {
        let directory = self.array_address(array.directory);
        let page = self.b.ins().ushr_imm_u(index, i64::from(CELLS_PER_PAGE.ilog2()));
        let behind = self.b.ins().ishl_imm_u(page, 3);
        let at = self.b.ins().iadd(directory, behind);
        let page = self.b.ins().load(types::I64, self.flags.cell, at, 0);
        let behind = self.b.ins().band_imm_u(index, CELLS_PER_PAGE as i64 - 1);
        let behind = self.b.ins().ishl_imm_u(behind, 3);
        Cell { page, at: self.b.ins().iadd(page, behind) }
    }

    /// Returns one of [`engine::Objects::array_addresses`].
    fn array_address(&mut self, place: usize) -> Value {
        let first = self.layout.arrays.as_ref().expect("the program has arrays that code uses inline").first;
        let addresses = self.frame_load(first + array_word::ADDRESSES);
        self.b.ins().load(types::I64, self.flags.record, addresses, place as i32 * 8)
    }

    /// Records the time of a hit, if the rows of the table age.
    pub(super) fn note_use(&mut self, table: TableId, found: Value) {
        let Some((times, now)) = self.layout.aging.as_ref().and_then(|aging| aging.words(table)) else { return };
        let (times, now) = (self.frame_load(times), self.frame_load(now));
        let behind = self.b.ins().ishl_imm_u(found, 3);
        let at = self.b.ins().iadd(times, behind);
        // A store whose address depends on the lookup costs 3 ns a packet, a load and a comparison almost nothing.
        let before = self.b.ins().load(types::I64, self.flags.cell, at, 0);
        let is_noted = self.b.ins().icmp(IntCC::Equal, before, now);
        let (new, on) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(is_noted, on, &[], new, &[]);
        self.b.set_cold_block(new);
        self.b.switch_to_block(new);
        self.b.ins().store(self.flags.cell, now, at, 0);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
    }

    /// Begins the pass of a packet of a batch.
    pub(super) fn begin_pass(&mut self) {
        let begin = match &self.layout.arrays {
            Some(arrays) => {
                let (first, none) = (arrays.first, self.number(0));
                self.frame_store(first + array_word::WRITES, none);
                self.frame_load(first + array_word::BEGIN)
            }
            None => self.number(pass::NEW),
        };
        self.frame_store(word::PASS as u32, begin);
    }
}
