//! The scout of a unit: what it does up to its last noted table, as far as that can be known without being noticed.
//!
//! Nothing is stored but notes; frame, packet and objects stay as they are. See [`crate::scout`].

use cranelift_codegen::ir::{InstBuilder, Value, types};
use ir::{BodyKind, HeaderRef, Op, Place, SlotId, TableId};

use super::Emit;
use super::body::Ways;
use super::value::{Num, Word};
use crate::scout::{KEY, Noted, Notes, RECORD};
use crate::walk::{self, Use};
use crate::{Step, code};

impl<'a> Emit<'a, '_> {
    /// Generates the scout of a unit that has something to note.
    pub(crate) fn scout(mut self, notes: &'a Notes, steps: &[Step]) {
        let entry = self.b.current_block().expect("a function begins with a block");
        let at = self.b.block_params(entry)[1];
        self.notes = Some(notes);
        self.scouting = Some(at);
        let zero = self.number(0);
        for noted in &notes.tables {
            self.store_note(noted, RECORD, zero);
        }
        self.enter();
        for step in &steps[..notes.steps] {
            match step {
                Step::Run(body) if self.leads_to_notes(*body) => self.top_body(*body),
                Step::ErrorTo(_) | Step::Copy(..) | Step::Set(..) => self.one_step(step),
                _ => {}
            }
        }
        let finish = self.finish;
        self.b.ins().jump(finish, &[]);
        self.b.switch_to_block(finish);
        let ending = self.number(code::RETURN);
        self.b.ins().return_(&[ending]);
        self.seal();
    }

    /// Parsers say where headers are; of the other bodies only those with noted tables matter.
    fn leads_to_notes(&self, id: ir::BodyId) -> bool {
        let body = &self.program.bodies[id];
        let mut noted = body.kind == BodyKind::Parser;
        walk::body(self.program, body, &mut |used| {
            if let Use::Apply(table) = used {
                noted |= self.note_of(table).is_some();
            }
        });
        noted
    }

    /// The note of a table, if the unit has one.
    pub(super) fn note_of(&self, table: TableId) -> Option<Noted> {
        self.notes.and_then(|notes| notes.of(table))
    }

    fn store_note(&mut self, noted: &Noted, word: usize, value: Value) {
        let notes = self.scouting.expect("only scouts write notes");
        self.b.ins().store(self.flags.record, value, notes, ((noted.at + word) * 8) as i32);
    }

    /// An instruction, or nothing in its place if it could be noticed, or if what it gives is not known yet.
    pub(super) fn scout_instr(&mut self, op: &Op, ways: Ways) {
        match op {
            Op::Assign(Place::Slot(slot), value) if self.is_variable(*slot) => {
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
            Op::Extract(header, width) => self.extract(header, width.as_ref(), ways),
            Op::Lookahead { dst: dst @ Place::Slot(slot), skip } if self.is_variable(*slot) => {
                self.lookahead(dst, *skip, ways);
            }
            Op::Advance(width) => self.advance(width, ways),
            Op::Verify(condition, error) => self.verify(condition, error, ways),
            Op::Apply { table, hit, action } => {
                self.note_key(*table);
                self.guess(*hit, 1);
                self.guess(*action, 0);
            }
            _ => {}
        }
    }

    fn note_key(&mut self, id: TableId) {
        let Some(noted) = self.note_of(id) else { return };
        for (index, word) in self.key(id).into_iter().enumerate() {
            let word = self.value(word);
            self.store_note(&noted, KEY + index, word);
        }
        let asked = self.number(1);
        self.store_note(&noted, RECORD, asked);
    }

    fn guess(&mut self, slot: Option<SlotId>, number: u64) {
        if let Some(slot) = slot
            && self.is_variable(slot)
        {
            let num = Num::number(number, self.program.slots[slot].width);
            self.set_slot(slot, &num);
        }
    }

    /// The record of what a table runs for a key: the noted one if that is the key which was noted, else what a lookup
    /// gives. Ends the unit if the table does not answer yet.
    pub(super) fn record(&mut self, id: TableId, key: Vec<Word>) -> Value {
        let Some(noted) = self.note_of(id) else { return self.looked_up(id, key) };
        let word = |e: &mut Self, at: Value, word: usize| {
            e.b.ins().load(types::I64, e.flags.record, at, ((noted.at + word) * 8) as i32)
        };
        let notes = self.frame_load(crate::layout::word::NOTES as u32);
        let record = word(self, notes, RECORD);
        let mut differs = Word::Known(0);
        for (index, part) in key.iter().enumerate() {
            let noted = word(self, notes, KEY + index);
            let other = self.w_xor(Word::Value(noted), *part);
            differs = self.w_or(differs, other);
        }
        let (known, noted_key, other) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let chosen = self.b.declare_var(types::I64);
        let on = self.b.create_block();
        self.b.ins().brif(record, noted_key, &[], other, &[]);
        self.b.switch_to_block(noted_key);
        self.branch(differs, other, known);
        self.b.switch_to_block(known);
        let record = match noted.counts {
            true => {
                let table = self.number(u64::from(id.as_u32()));
                let at = self.number(noted.at as u64 * 8);
                let note = self.b.ins().iadd(notes, at);
                self.call("apply_noted", &[self.frame, table, note]).expect("it has a result")
            }
            false => record,
        };
        self.b.def_var(chosen, record);
        self.b.ins().jump(on, &[]);
        self.b.set_cold_block(other);
        self.b.switch_to_block(other);
        let record = self.looked_up(id, key);
        self.b.def_var(chosen, record);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
        self.b.use_var(chosen)
    }
}
