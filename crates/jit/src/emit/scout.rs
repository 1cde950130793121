//! Generates the code of scouts: a unit up to its last prefetched table, without side effects.
//!
//! A scout stores only to the prefetch memory; frame, packet and objects stay unchanged. See [`crate::scout`].

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::Variable;
use ir::{BodyKind, HeaderRef, LValue, Op, SlotId, TableId};

use super::Emit;
use super::batch::ROW;
use super::value::Num;
use super::words::Word;
use crate::code;
use crate::scout::{PrefetchedTable, Row};
use crate::walk::{self, Use};

/// The prefetch memory that a scout writes, and the current packet.
#[derive(Clone)]
pub(super) struct ScoutState {
    pub prefetch: Value,
    /// Index of the packet in the batch, and the bit at that index.
    pub number: Value,
    bit: Value,
    /// For each prefetched table, the bitmap of the packets that reached it; empty in large units, where they are in
    /// the prefetch memory.
    reached: Vec<Variable>,
    /// Whether earlier results are followed.
    pub follows: bool,
}

impl ScoutState {
    /// Returns the state for a lookup, which records no packets.
    pub fn for_lookup(prefetch: Value, number: Value, follows: bool) -> ScoutState {
        ScoutState { prefetch, number, bit: number, reached: Vec::new(), follows }
    }
}

impl Emit<'_, '_> {
    /// Generates the scout of a unit with prefetched tables: a function of the frame, the rows and the prefetch memory
    /// of the batch and the number of its packets, which is at least one. A scout that `follows` earlier results
    /// records only keys without a result.
    pub(crate) fn scout(mut self, follows: bool) {
        let entry = self.b.current_block().expect("a function begins with a block");
        let [rows, prefetch, end] = [1, 2, 3].map(|at| self.b.block_params(entry)[at]);
        let zero = self.number(0);
        let mut reached: Vec<Variable> = Vec::new();
        for prefetched in &self.prefetch.tables {
            if self.state.is_large {
                self.b.ins().store(self.flags.record, zero, prefetch, Self::reached_at(prefetched, follows));
            } else {
                let bits = self.b.declare_var(types::I64);
                self.b.def_var(bits, zero);
                reached.push(bits);
            }
        }
        let (head, done) = (self.b.create_block(), self.b.create_block());
        let [row, at, bit] = [(); 3].map(|()| self.b.append_block_param(head, types::I64));
        let one = self.number(1);
        self.b.ins().jump(head, &[rows.into(), zero.into(), one.into()]);
        self.b.switch_to_block(head);
        self.packet = self.b.ins().load(types::I64, self.flags.record, row, offset_of!(Row, packet) as i32);
        self.length = self.b.ins().load(types::I64, self.flags.record, row, offset_of!(Row, length) as i32);
        self.scouting = Some(ScoutState { prefetch, number: at, bit, reached: reached.clone(), follows });
        self.specialise();
        self.enter();
        self.steps_from(0);
        self.all_points();
        let finish = self.finish;
        self.b.switch_to_block(finish);
        let next_row = self.b.ins().iadd_imm_s(row, ROW);
        let next = self.b.ins().iadd_imm_s(at, 1);
        let next_bit = self.b.ins().iadd(bit, bit);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, next, end);
        self.b.ins().brif(more, head, &[next_row.into(), next.into(), next_bit.into()], done, &[]);
        self.b.switch_to_block(done);
        for (prefetched, bits) in self.prefetch.tables.iter().zip(reached) {
            let bits = self.b.use_var(bits);
            self.b.ins().store(self.flags.record, bits, prefetch, Self::reached_at(prefetched, follows));
        }
        let ending = self.number(code::RETURN);
        self.b.ins().return_(&[ending]);
        self.seal();
    }

    /// Whether the scout needs a body: parsers locate headers; of the other bodies, only those with prefetched tables
    /// matter.
    pub(super) fn leads_to_prefetched(&self, id: ir::BodyId) -> bool {
        let body = &self.program.bodies[id];
        let mut prefetched = body.kind == BodyKind::Parser;
        walk::body(self.program, body, &mut |used| {
            if let Use::Apply(table) = used {
                prefetched |= self.prefetch.of(table).is_some();
            }
        });
        prefetched
    }

    /// Generates an instruction, unless it has side effects or a result that is not known yet.
    pub(super) fn scout_instr(&mut self, op: &Op) {
        match op {
            Op::Assign(LValue::Slot(slot), value) if self.is_variable(*slot) => {
                let value = self.expr(value);
                self.set_slot(*slot, &value);
            }
            Op::SetValid(header @ HeaderRef::Header(_)) => {
                let resolved = self.resolve(header);
                self.set_valid(resolved, Word::Const(1));
            }
            Op::SetInvalid(header @ HeaderRef::Header(_)) => {
                let resolved = self.resolve(header);
                self.set_valid(resolved, Word::Const(0));
            }
            Op::Extract(header, width) => self.extract(header, width.as_ref()),
            Op::Lookahead { dst: dst @ LValue::Slot(slot), skip } if self.is_variable(*slot) => {
                self.lookahead(dst, *skip);
            }
            Op::Advance(width) => self.advance(width),
            Op::Verify(condition, error) => self.verify(condition, error),
            _ => {}
        }
    }

    /// Generates the application of a table: its key is recorded, and its result is guessed.
    pub(super) fn scout_apply(&mut self, table: TableId, hit: Option<SlotId>, action: Option<SlotId>) {
        self.record_key(table);
        self.guess(hit, 1);
        self.guess(action, 0);
    }

    fn record_key(&mut self, id: TableId) {
        let Some(at) = self.prefetch.tables.iter().position(|prefetched| prefetched.table == id) else { return };
        let prefetched = self.prefetch.tables[at];
        let scouting = self.scouting.clone().expect("only scouts write prefetch");
        self.write_key(&scouting, &prefetched);
        let Some(reached) = scouting.reached.get(at).copied() else {
            let at = Self::reached_at(&prefetched, scouting.follows);
            let before = self.b.ins().load(types::I64, self.flags.record, scouting.prefetch, at);
            let with = self.b.ins().bor(before, scouting.bit);
            self.b.ins().store(self.flags.record, with, scouting.prefetch, at);
            return;
        };
        let before = self.b.use_var(reached);
        let with = self.b.ins().bor(before, scouting.bit);
        self.b.def_var(reached, with);
    }

    /// Returns the offset in the prefetch memory of the bitmap of the packets that reached a table.
    fn reached_at(prefetched: &PrefetchedTable, follows: bool) -> i32 {
        (if follows { prefetched.fresh } else { prefetched.reached }) as i32 * 8
    }

    /// Records the key with which the packet reached a table.
    pub(super) fn write_key(&mut self, scouting: &ScoutState, prefetched: &PrefetchedTable) {
        for (index, word) in self.key(prefetched.table).into_iter().enumerate() {
            let word = self.value(word);
            let (address, offset) = self.key_at(scouting.prefetch, scouting.number, prefetched, index);
            self.b.ins().store(self.flags.record, word, address, offset);
        }
    }

    fn guess(&mut self, slot: Option<SlotId>, number: u64) {
        if let Some(slot) = slot
            && self.is_variable(slot)
        {
            let num = Num::number(number, self.program.slots[slot].width);
            self.set_slot(slot, &num);
        }
    }
}
