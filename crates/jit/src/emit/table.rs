//! Emits the application of tables: the key in words, the lookup, the action's arguments and body.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use cranelift_frontend::Switch;
use engine::{NO_ACTION, Objects, RECORD_ACTION, RECORD_HIT, RECORD_NO_ACTION, record_places};
use ir::{ActionId, BlockId, Op, SlotId, TableId};

use super::Emit;
use super::value::{Num, words_of};
use super::versions::{Point, ReturnSite};
use super::words::Word;
use crate::{chain, code};

/// Maximum number of comparisons that select an action; with more actions a jump table is used.
const MAX_COMPARED: usize = 5;

impl Emit<'_, '_> {
    /// Returns the words of the key.
    pub(super) fn key(&mut self, id: TableId) -> Vec<Word> {
        if let Some(key) = &self.lookup_key {
            return key.clone();
        }
        let table = &self.program.tables[id];
        let layout = Objects::key_words(table);
        let mut words = vec![Word::Const(0); layout.words];
        for (key, place) in table.keys.iter().zip(&layout.places) {
            let num = self.expr(&key.expr);
            for (index, word) in num.words.iter().enumerate() {
                let shifted = self.w_shl(*word, place.shift);
                words[place.word + index] = self.w_or(words[place.word + index], shifted);
            }
        }
        words
    }

    /// Looks a key up and returns the record that the table runs, or 0 if the table's result is pending.
    pub(super) fn looked_up(&mut self, id: TableId, key: Vec<Word>) -> Value {
        let count = key.len();
        let key = self.spill(&Num { width: count as u32 * 64, words: key });
        let (number, words) = (self.number(u64::from(id.as_u32())), self.number(count as u64));
        self.call_cold("apply", &[self.frame, number, key, words])
    }

    /// Ends the unit if the record of a table is 0: its result is pending, or the packet may not use the key's row.
    pub(super) fn end_if_pending(&mut self, id: TableId, record: Value) {
        let (pending, known) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(record, known, &[], pending, &[]);
        let waits = self.program.tables[id].waits_for_entries();
        let ending = if waits { code::ROW_REFUSED } else { code::PENDING };
        self.cold_block(pending, |emit| emit.end_unit(ending, id.as_u32()));
        self.b.switch_to_block(known);
    }

    /// Applies a table, for an instruction of a block of the current scope, and generates the code after it. The
    /// current block is terminated.
    pub(super) fn apply(&mut self, id: TableId, block: BlockId, instr: usize) {
        let return_site = ReturnSite { scope: self.scope, block, instr, action: 0 };
        self.probe_rest();
        if let Some(entries) = chain::entries(&self.program.tables[id]) {
            return self.apply_chain(id, &entries, return_site);
        }
        let record = self.record(id, return_site);
        self.run_record(id, record, return_site);
    }

    /// Runs the action of a record and generates the code after the table. The current block is terminated.
    pub(super) fn run_record(&mut self, id: TableId, record: Value, return_site: ReturnSite) {
        let table = &self.program.tables[id];
        let head = Word::Value(self.b.ins().load(types::I64, self.flags.record, record, 0));
        let index = self.w_and(head, Word::Const(RECORD_ACTION));
        self.record_hit(id, head, return_site);
        let done = self.b.create_block();
        let mut may_run_none = true;
        let mut bodies: Vec<(Block, ActionId)> = Vec::new();
        for action in &table.actions {
            bodies.push((self.b.create_block(), action.action));
        }
        match &bodies[..] {
            [(only, _)] if table.profile.is_none() => {
                may_run_none = false;
                self.b.ins().jump(*only, &[]);
            }
            [(only, _)] => {
                let none = self.w_cmp(IntCC::Equal, index, Word::Const(RECORD_NO_ACTION));
                self.branch(none, done, *only);
            }
            // A few comparisons are predicted better than a jump table.
            [rest @ .., (last, _)] if rest.len() < MAX_COMPARED && table.profile.is_none() => {
                for (at, (block, _)) in rest.iter().enumerate() {
                    let next = self.b.create_block();
                    let this = self.w_cmp(IntCC::Equal, index, Word::Const(at as u64));
                    self.branch(this, *block, next);
                    self.b.switch_to_block(next);
                }
                may_run_none = false;
                self.b.ins().jump(*last, &[]);
            }
            all => {
                let mut switch = Switch::new();
                for (at, (block, _)) in all.iter().enumerate() {
                    switch.set_entry(at as u128, *block);
                }
                let index = self.value(index);
                switch.emit(&mut self.b, index, done);
            }
        }
        let known = self.facts.clone();
        for (number, (begin, action)) in bodies.into_iter().enumerate() {
            self.b.switch_to_block(begin);
            self.facts = known.clone();
            self.in_scope(return_site.scope);
            self.arguments(action, record);
            self.run_action(action, ReturnSite { action: number, ..return_site });
        }
        if may_run_none {
            self.b.switch_to_block(done);
            self.facts = known;
            self.after_action(None, return_site);
        }
    }

    /// Keeps the first word of a record, or the hit flag derived from it, where the program queries it.
    pub(super) fn record_hit(&mut self, id: TableId, head: Word, return_site: ReturnSite) {
        if self.applied(return_site).1.is_some() {
            let variable = match self.heads.get(&id) {
                Some(variable) => *variable,
                None => self.b.declare_var(types::I64),
            };
            self.heads.insert(id, variable);
            let head = self.value(head);
            self.b.def_var(variable, head);
        }
    }

    /// Runs an action whose arguments are set, and generates the code after the table.
    pub(super) fn run_action(&mut self, action: ActionId, return_site: ReturnSite) {
        let inner = self.scope_of_action(self.program.actions[action].body, return_site);
        self.in_scope(inner);
        self.go_to(self.block_point(BlockId::from_u32(0)));
    }

    /// Returns the table that an instruction applies, and the slots that receive hit and action.
    pub(super) fn applied(&self, return_site: ReturnSite) -> (TableId, Option<SlotId>, Option<SlotId>) {
        let body = self.versions.scope(return_site.scope).body;
        match self.program.bodies[body].blocks[return_site.block].instrs[return_site.instr].op {
            Op::Apply { table, hit, action } => (table, hit, action),
            _ => unreachable!("only tables run actions"),
        }
    }

    /// Continues after the table application, given the action that ran, if any.
    pub(super) fn after_action(&mut self, ran: Option<usize>, return_site: ReturnSite) {
        let (id, hit, action) = self.applied(return_site);
        self.in_scope(return_site.scope);
        self.probe(crate::ProbedPart::Table(id));
        let is_kept = |emit: &Self, slot: &SlotId| emit.scouting.is_none() || emit.is_variable(*slot);
        if let Some(slot) = hit.filter(|slot| is_kept(self, slot)) {
            let head = Word::Value(self.b.use_var(self.heads[&id]));
            let hit = self.w_shr(head, RECORD_HIT.trailing_zeros());
            let hit = self.w_and(hit, Word::Const(1));
            self.set_number(slot, hit);
        }
        if let Some(slot) = action.filter(|slot| is_kept(self, slot)) {
            let number = ran.map_or(NO_ACTION, |ran| ran as u64);
            self.set_number(slot, Word::Const(number));
        }
        self.go_to(Point::Code { scope: return_site.scope, block: return_site.block, instr: return_site.instr + 1 });
    }

    /// Sets a slot to a word, truncated to its width.
    pub(super) fn set_number(&mut self, slot: SlotId, word: Word) {
        let num = self.resize(&Num { width: 64, words: vec![word] }, self.program.slots[slot].width);
        self.set_slot(slot, &num);
    }

    fn arguments(&mut self, action: ActionId, record: Value) {
        let params = &self.program.actions[action].params;
        let widths: Vec<u32> = params.iter().map(|param| self.program.slots[param.slot].width).collect();
        for (param, (word, bit)) in params.iter().zip(record_places(&widths)) {
            if self.scouting.is_some() && !self.is_variable(param.slot) {
                continue;
            }
            let width = self.program.slots[param.slot].width;
            let words: Vec<Word> = (0..words_of(width))
                .map(|index| {
                    let offset = (word + index) as i32 * 8;
                    Word::Value(self.b.ins().load(types::I64, self.flags.record, record, offset))
                })
                .collect();
            let loaded = Num { width: words.len() as u32 * 64, words };
            let argument = self.slice(&loaded, bit, width);
            self.set_slot(param.slot, &argument);
        }
    }
}
