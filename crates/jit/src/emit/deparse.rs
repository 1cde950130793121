//! The outgoing packet.
//!
//! Headers that were extracted one after the other and are emitted in the same order are in front of the payload
//! already: nothing is copied. A deparser that emits one header after the other, all of known sizes, is handled as a
//! whole at its end: see [`super::front`]. In other deparsers, the code extends the current run of bytes with each
//! emitted header, and appends interrupted runs to a list. A call moves bytes only if this list is not empty at the end
//! or the last run does not touch the payload. Where runs do not apply (headers that are not whole bytes, loops, bodies
//! that change headers between emissions), each emission appends to a bit string instead.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, StackSlot, Value, types};
use cranelift_frontend::Variable;
use ir::{BodyId, HeaderRef, LocId, Op};

use super::Emit;
use super::words::Word;
use crate::Step;
use crate::layout::word;
use crate::scout::Row;

/// Runs of a body that emits headers.
#[derive(Clone, Copy)]
pub(super) struct Runs {
    /// Stack memory for one run more than there are emissions.
    list: StackSlot,
    /// Number of runs in the list.
    count: Variable,
    /// Start and end of the last run.
    first: Variable,
    end: Variable,
}

impl Emit<'_, '_> {
    pub(super) fn begin_emitting(&mut self, id: BodyId) {
        if self.program_facts.deparser != Some(id) || self.fronted.is_some() {
            return;
        }
        self.fronted = self.plain_emissions(id);
        if self.fronted.is_some() {
            return;
        }
        let runs = match self.run {
            Some(runs) => runs,
            None => self.new_runs(id),
        };
        let zero = self.number(0);
        self.b.def_var(runs.count, zero);
        self.b.def_var(runs.first, self.packet);
        self.b.def_var(runs.end, self.packet);
        self.run = Some(runs);
    }

    fn new_runs(&mut self, id: BodyId) -> Runs {
        let body = &self.program.bodies[id];
        let instrs = body.blocks.values().flat_map(|block| &block.instrs);
        let emissions = instrs.filter(|instr| matches!(instr.op, Op::Emit(_))).count();
        let list = self.stack_slot((emissions + 1) * 2);
        let mut word = || self.b.declare_var(types::I64);
        Runs { list, count: word(), first: word(), end: word() }
    }

    fn list(&mut self, runs: Runs) -> Value {
        self.b.ins().stack_addr(types::I64, runs.list, 0)
    }

    pub(super) fn emit(&mut self, header: &HeaderRef, loc: LocId) {
        if self.fronted.is_some() {
            return;
        }
        let resolved = self.resolve(header);
        let valid = self.valid(resolved);
        let (there, on) = (self.b.create_block(), self.b.create_block());
        self.branch(valid, there, on);
        self.b.switch_to_block(there);
        let place = self.place_to_read(resolved);
        let width = self.varbit_width(resolved);
        let fixed = self.ty(resolved).fixed_bits;
        match self.run {
            Some(runs) => {
                let varbit = self.w_shr(width, 3);
                let bytes = self.w_add(Word::Const(u64::from(fixed / 8)), varbit);
                self.extend_run(runs, place, bytes);
            }
            None => {
                if self.fuel.is_some() {
                    let bits = self.w_add(Word::Const(u64::from(fixed)), width);
                    let blocks = self.w_shr(bits, 10);
                    self.spend_word(blocks, loc);
                }
                let sample = self.number(u64::from(self.sample(resolved).as_u32()));
                let width = self.value(width);
                self.call("emit", &[self.frame, sample, place, width]);
            }
        }
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
    }

    fn extend_run(&mut self, runs: Runs, place: Value, bytes: Word) {
        let (new, joined) = (self.b.create_block(), self.b.create_block());
        let end = self.b.use_var(runs.end);
        let touches = self.b.ins().icmp(IntCC::Equal, place, end);
        self.b.ins().brif(touches, joined, &[], new, &[]);
        self.b.switch_to_block(new);
        self.break_run(runs);
        self.b.def_var(runs.first, place);
        self.b.ins().jump(joined, &[]);
        self.b.switch_to_block(joined);
        let end = self.w_add(Word::Value(place), bytes);
        let end = self.value(end);
        self.b.def_var(runs.end, end);
    }

    /// Appends the last run to the list.
    fn break_run(&mut self, runs: Runs) {
        let count = self.b.use_var(runs.count);
        let offset = self.w_shl(Word::Value(count), 4);
        let offset = self.value(offset);
        let list = self.list(runs);
        let at = self.b.ins().iadd(list, offset);
        let (first, end) = (self.b.use_var(runs.first), self.b.use_var(runs.end));
        let length = self.b.ins().isub(end, first);
        self.b.ins().store(self.flags.stack, first, at, 0);
        self.b.ins().store(self.flags.stack, length, at, 8);
        // Before the first emission there is no run to append.
        let some = self.w_cmp(IntCC::NotEqual, Word::Value(length), Word::Const(0));
        let count = self.w_add(Word::Value(count), some);
        let count = self.value(count);
        self.b.def_var(runs.count, count);
    }

    /// Ends the body of a step; code continues in the current block.
    pub(super) fn end_emitting(&mut self, step: usize) {
        if !matches!(self.steps[step], Step::Run(body) if self.program_facts.deparser == Some(body))
            || self.scouting.is_some()
        {
            return;
        }
        if let Some(headers) = self.fronted.clone() {
            return self.put_in_front(&headers);
        }
        let Some(runs) = self.run else { return };
        let payload = self.payload();
        let (end, count) = (self.b.use_var(runs.end), self.b.use_var(runs.count));
        let touches = self.w_cmp(IntCC::Equal, Word::Value(end), Word::Value(payload));
        let alone = self.w_cmp(IntCC::Equal, Word::Value(count), Word::Const(0));
        let in_place = self.w_and(touches, alone);
        let (stays, moves, on) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.branch(in_place, stays, moves);
        self.b.switch_to_block(stays);
        let first = self.b.use_var(runs.first);
        self.set_out(first, false);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(moves);
        self.break_run(runs);
        let count = self.b.use_var(runs.count);
        let list = self.list(runs);
        let out = self.assemble(list, count, payload);
        self.set_out(out, false);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
    }

    /// Returns the address of the payload.
    pub(super) fn payload(&mut self) -> Value {
        let cursor = self.cursor();
        let payload = self.w_add(Word::Value(self.packet), cursor);
        self.value(payload)
    }

    /// Moves the runs of a list in front of the payload. Returns the form of the outgoing packet.
    pub(super) fn assemble(&mut self, list: Value, count: Value, payload: Value) -> Value {
        let buffer = self.buffer();
        self.call_cold("assemble", &[self.frame, list, count, payload, buffer])
    }

    /// Returns the address of the packet's buffer.
    pub(super) fn buffer(&mut self) -> Value {
        match self.lane {
            Some(lane) => self.row_load(lane, offset_of!(Row, buffer)),
            None => self.frame_load(word::BUFFER as u32),
        }
    }

    /// Sets the form of the outgoing packet, and whether it certainly lies in the buffer.
    pub(super) fn set_out(&mut self, out: Value, is_placed: bool) {
        self.facts.is_placed = is_placed;
        match self.lane {
            Some(lane) => self.b.def_var(lane.out, out),
            None => self.frame_store(word::OUT as u32, out),
        }
    }
}
