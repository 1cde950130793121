//! What tables gave before the packet came to them: where code finds it, and what it does where there is nothing.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use ir::{BlockId, TableId};

use super::Emit;
use super::scout::Scouting;
use super::versions::{Back, Point};
use super::words::Word;
use crate::scout::{Noted, UNKNOWN};

impl Emit<'_, '_> {
    /// Where the word of a packet's key lies that `noted` tells of: an address and what lies behind it.
    pub(super) fn key_at(&mut self, notes: Value, number: Value, noted: &Noted, word: usize) -> (Value, i32) {
        let words = if noted.words == 1 { number } else { self.b.ins().imul_imm_s(number, noted.words as i64) };
        let offset = self.b.ins().ishl_imm_u(words, 3);
        (self.b.ins().iadd(notes, offset), ((noted.keys + word) * 8) as i32)
    }

    /// What was found for a packet's key in a table.
    fn found(&mut self, notes: Value, number: Value, noted: &Noted) -> Value {
        let offset = self.b.ins().ishl_imm_u(number, 2);
        let at = self.b.ins().iadd(notes, offset);
        self.b.ins().sload32(self.flags.record, at, noted.found as i32 * 8)
    }

    /// The record of what was found, which is known.
    fn found_record(&mut self, notes: Value, noted: &Noted, found: Value) -> Value {
        let first = self.word_of(notes, noted.records);
        let behind = self.b.ins().imul_imm_s(found, noted.stride as i64 * 8);
        self.b.ins().iadd(first, behind)
    }

    pub(super) fn word_of(&mut self, notes: Value, word: usize) -> Value {
        self.b.ins().load(types::I64, self.flags.record, notes, word as i32 * 8)
    }

    /// Goes on where the key is the one that was noted, if there was anything found for it, and to `other` where not.
    fn if_found(&mut self, notes: Value, number: Value, noted: &Noted, found: Value, known: Block, other: Block) {
        let is_known = self.b.ins().icmp_imm_s(IntCC::NotEqual, found, i64::from(UNKNOWN as i32));
        if noted.sure {
            self.b.ins().brif(is_known, known, &[found.into()], other, &[]);
            return;
        }
        let (compare, same) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(is_known, compare, &[], other, &[]);
        self.b.switch_to_block(compare);
        let mut differs = Word::Known(0);
        for (index, part) in self.key(noted.table).into_iter().enumerate() {
            let (address, offset) = self.key_at(notes, number, noted, index);
            let noted = self.b.ins().load(types::I64, self.flags.record, address, offset);
            let other = self.w_xor(Word::Value(noted), part);
            differs = self.w_or(differs, other);
        }
        self.branch(differs, other, same);
        self.b.switch_to_block(same);
        self.b.ins().jump(known, &[found.into()]);
    }

    /// The note of a table of which a scout may know what it gives, if this is one.
    pub(super) fn followed(&self, table: TableId) -> Option<Noted> {
        let scouting = self.scouting.as_ref()?;
        // What one table gives takes a scout nowhere, and if it is looked up in place, there is no scout.
        if self.notes.tables.len() < 2 {
            return None;
        }
        self.notes.of(table).filter(|noted| scouting.follows || noted.is_ever_in_place())
    }

    /// A table is applied by a scout, as an instruction of a block of the current scope says: what is found for the key runs,
    /// and where nothing is known yet, the key is noted. The current block is done with.
    pub(super) fn follow(&mut self, noted: &Noted, block: BlockId, instr: usize) {
        let id = noted.table;
        let Scouting { notes, number, follows, .. } = self.scouting.clone().expect("only scouts follow");
        let (known, unknown, runs) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let found = self.b.append_block_param(known, types::I64);
        let record = self.b.append_block_param(runs, types::I64);
        self.look_up_each(notes, noted, runs);
        self.look_up_close(notes, noted, known);
        if follows {
            let (found, other) = (self.found(notes, number, noted), self.b.create_block());
            self.if_found(notes, number, noted, found, known, other);
            self.b.switch_to_block(other);
        }
        let there = self.b.create_block();
        let found_there = self.b.append_block_param(there, types::I64);
        if self.look_up_in_place(notes, noted, there) {
            // What is not done at once is noted, and not done twice.
            let other = self.b.current_block().expect("there is a block for keys that are not");
            self.b.switch_to_block(there);
            let scouting = self.scouting.clone().expect("only scouts follow");
            self.write_key(&scouting, noted);
            let offset = self.b.ins().ishl_imm_u(number, 2);
            let at = self.b.ins().iadd(notes, offset);
            self.b.ins().istore32(self.flags.record, found_there, at, noted.found as i32 * 8);
            self.b.ins().jump(known, &[found_there.into()]);
            self.b.switch_to_block(other);
        }
        self.b.ins().jump(unknown, &[]);
        let facts = self.known.clone();
        self.b.switch_to_block(unknown);
        let back = Back { scope: self.scope, block, instr, action: 0 };
        let (_, hit, action) = self.applied(back);
        self.scout_apply(id, hit, action);
        self.go_to(Point::Code { scope: self.scope, block, instr: instr + 1 });
        self.known = facts;
        self.b.switch_to_block(known);
        let found_record = self.found_record(notes, noted, found);
        self.b.ins().jump(runs, &[found_record.into()]);
        self.b.switch_to_block(runs);
        self.run_record(id, record, back);
    }

    /// The record of what a table runs: what was found for the packet's key, else what a lookup gives. Ends the unit if the
    /// table does not answer yet.
    pub(super) fn record(&mut self, id: TableId) -> Value {
        let (Some(lane), Some(noted)) = (self.lane, self.notes.of(id)) else {
            let key = self.key(id);
            return self.looked_up(id, key);
        };
        let (known, other, on) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let found = self.b.append_block_param(known, types::I64);
        let chosen = self.b.append_block_param(on, types::I64);
        self.look_up_each(lane.notes, &noted, on);
        self.look_up_close(lane.notes, &noted, known);
        let number = self.lane_number(lane);
        let (noted_found, not_noted) = (self.found(lane.notes, number, &noted), self.b.create_block());
        self.if_found(lane.notes, number, &noted, noted_found, known, not_noted);
        self.b.switch_to_block(not_noted);
        self.look_up_in_place(lane.notes, &noted, known);
        self.b.ins().jump(other, &[]);
        self.b.switch_to_block(known);
        let record = if noted.counts {
            let table = self.number(u64::from(id.as_u32()));
            self.call("apply_noted", &[self.frame, table, found]).expect("it has a result")
        } else {
            self.found_record(lane.notes, &noted, found)
        };
        self.b.ins().jump(on, &[record.into()]);
        self.b.set_cold_block(other);
        self.b.switch_to_block(other);
        let key = self.key(id);
        let record = self.looked_up(id, key);
        self.b.ins().jump(on, &[record.into()]);
        self.b.switch_to_block(on);
        chosen
    }
}
