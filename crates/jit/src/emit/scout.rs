//! The scout of a unit: what it does up to its last noted table, as far as that can be known without being noticed.
//!
//! Nothing is stored but notes; frame, packet and objects stay as they are. See [`crate::scout`].

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
use crate::scout::{Noted, Row};
use crate::walk::{self, Use};

/// Where a scout writes, and which packet it is at.
#[derive(Clone)]
pub(super) struct Scouting {
    pub notes: Value,
    /// The number of the packet in the batch, and the bit with that number.
    pub number: Value,
    bit: Value,
    /// For each noted table, the bits of the packets that came to it.
    reached: Vec<Variable>,
    /// Whether what was found before is followed.
    pub follows: bool,
}

impl Emit<'_, '_> {
    /// Generates the scout of a unit that has something to note: a function of the frame, the rows and notes of the batch
    /// and the number of its packets, of which there is one at least. One that `follows` what was found notes only keys for
    /// which nothing was.
    pub(crate) fn scout(mut self, follows: bool) {
        let entry = self.b.current_block().expect("a function begins with a block");
        let [rows, notes, end] = [1, 2, 3].map(|at| self.b.block_params(entry)[at]);
        let zero = self.number(0);
        let reached: Vec<Variable> = self.notes.tables.iter().map(|_| self.b.declare_var(types::I64)).collect();
        reached.iter().for_each(|bits| self.b.def_var(*bits, zero));
        let (head, done) = (self.b.create_block(), self.b.create_block());
        let [row, at, bit] = [(); 3].map(|()| self.b.append_block_param(head, types::I64));
        let one = self.number(1);
        self.b.ins().jump(head, &[rows.into(), zero.into(), one.into()]);
        self.b.switch_to_block(head);
        self.packet = self.b.ins().load(types::I64, self.flags.record, row, offset_of!(Row, packet) as i32);
        self.length = self.b.ins().load(types::I64, self.flags.record, row, offset_of!(Row, length) as i32);
        self.scouting = Some(Scouting { notes, number: at, bit, reached: reached.clone(), follows });
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
        for (noted, bits) in self.notes.tables.iter().zip(reached) {
            let bits = self.b.use_var(bits);
            let word = if follows { noted.fresh } else { noted.reached };
            self.b.ins().store(self.flags.record, bits, notes, word as i32 * 8);
        }
        let ending = self.number(code::RETURN);
        self.b.ins().return_(&[ending]);
        self.seal();
    }

    /// Parsers say where headers are; of the other bodies only those with noted tables matter.
    pub(super) fn leads_to_notes(&self, id: ir::BodyId) -> bool {
        let body = &self.program.bodies[id];
        let mut noted = body.kind == BodyKind::Parser;
        walk::body(self.program, body, &mut |used| {
            if let Use::Apply(table) = used {
                noted |= self.notes.of(table).is_some();
            }
        });
        noted
    }

    /// An instruction, or nothing in its place if it could be noticed, or if what it gives is not known yet.
    pub(super) fn scout_instr(&mut self, op: &Op) {
        match op {
            Op::Assign(LValue::Slot(slot), value) if self.is_variable(*slot) => {
                let value = self.expr(value);
                self.set_slot(*slot, &value);
            }
            Op::SetValid(header @ HeaderRef::Header(_)) => {
                let which = self.which(header);
                self.set_valid(which, Word::Known(1));
            }
            Op::SetInvalid(header @ HeaderRef::Header(_)) => {
                let which = self.which(header);
                self.set_valid(which, Word::Known(0));
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

    /// A table is applied: its key is noted, and what comes of it is guessed.
    pub(super) fn scout_apply(&mut self, table: TableId, hit: Option<SlotId>, action: Option<SlotId>) {
        self.note_key(table);
        self.guess(hit, 1);
        self.guess(action, 0);
    }

    fn note_key(&mut self, id: TableId) {
        let Some(at) = self.notes.tables.iter().position(|noted| noted.table == id) else { return };
        let noted = self.notes.tables[at];
        let scouting = self.scouting.clone().expect("only scouts write notes");
        self.write_key(&scouting, &noted);
        let reached = scouting.reached[at];
        let before = self.b.use_var(reached);
        let with = self.b.ins().bor(before, scouting.bit);
        self.b.def_var(reached, with);
    }

    /// Writes the key with which the packet came to a table.
    pub(super) fn write_key(&mut self, scouting: &Scouting, noted: &Noted) {
        for (index, word) in self.key(noted.table).into_iter().enumerate() {
            let word = self.value(word);
            let (address, offset) = self.key_at(scouting.notes, scouting.number, noted, index);
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
