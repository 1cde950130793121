//! Emits lookups and the actions that they select.

use engine::NO_ACTION;
use ir::{Action, CounterId, Expr, Key, KeyValue, SlotId, TableId};
use tables::flat::{FlatExact, HASH_MULTIPLIER, HOME_MULTIPLIER, NUMBER_BITS, PROBES};

use super::scratch::ScratchWord;
use super::{Emitter, HandOverReason, R0, R1, R2, R3, R4, small};
use crate::asm::{AccessSize, Alu, Cond, Instruction, Label};
use crate::layout::{FlatTable, TableSearch, chain, matched_keys};

impl Emitter<'_> {
    pub(super) fn table_problem(&self, table: TableId) -> Option<HandOverReason> {
        if let Some(reason) = self.layout.refused.get(&table) {
            return Some(*reason);
        }
        matched_keys(&self.program.tables[table]).into_iter().find_map(|key| self.expr_problem(&key.expr))
    }

    /// Applies a table that has a place in the region.
    pub(super) fn apply(&mut self, table: TableId, hit: Option<SlotId>, action: Option<SlotId>, exit: Label) {
        let layout = self.layout.tables[&table];
        let program = self.program;
        let record = self.scratch.pending_word();
        self.search(table, &layout, record);
        if layout.counts.is_some() {
            self.hits.push((record, table));
        }
        self.execute_direct_meter(table, record);
        // r2 = the record or the call, r3 = its action
        self.load_word(R1, record);
        self.jump_if_number(Cond::Gt, R1, layout.capacity.into(), self.abort);
        self.alu(Alu::Mul, R1, (layout.record_words * 8) as i32);
        self.load_table_address(R2, layout.records);
        self.alu(Alu::Add, R2, R1);
        let (none, end) = (self.code.label(), self.code.label());
        if let Some((profile, _)) = layout.profile {
            self.find_call(table, profile, none);
        }
        self.push(Instruction::Load(AccessSize::B8, R3, R2, 0));
        let loc = self.loc;
        for (number, called) in (0..).zip(&program.tables[table].actions) {
            if self.is_full() {
                return;
            }
            let (others, done) = (self.code.label(), self.code.label());
            // Calls are shared by tables with other lists of actions.
            let name = if layout.profile.is_some() { called.action.as_u32() } else { number };
            self.jump_if(Cond::Ne, R3, name as i32 + 1, others);
            self.call(&program.actions[called.action], done, exit);
            self.bind(done);
            self.note_action(action, number.into());
            self.jump(end);
            self.bind(others);
            self.loc = loc;
        }
        // No record has another action, unless the region is not as it was left.
        self.jump(self.abort);
        if layout.profile.is_some() {
            self.bind(none);
            self.note_action(action, NO_ACTION);
        }
        self.bind(end);
        if let Some(word) = hit.and_then(|slot| self.read_slot(slot)) {
            let is_miss = self.code.label();
            self.load_word(R1, record);
            self.jump_if(Cond::Eq, R1, 0, is_miss);
            self.alu(Alu::Mov, R1, 1);
            self.bind(is_miss);
            self.store_word(word, R1);
        }
    }

    /// Runs an action with the arguments behind the word to which r2 points.
    fn call(&mut self, called: &Action, done: Label, exit: Label) {
        if called.params.iter().any(|param| self.is_wide_argument(param.slot)) {
            self.loc = called.loc;
            return self.hand_over(HandOverReason::WideValue);
        }
        for (at, param) in (1..).zip(&called.params) {
            if let Some(word) = self.read_slot(param.slot) {
                self.push(Instruction::Load(AccessSize::B8, R1, R2, at * 8));
                self.store_word(word, R1);
            }
        }
        self.control(called.body, done, exit);
    }

    /// Stores the number of the action that ran, if it is asked for.
    fn note_action(&mut self, to: Option<SlotId>, number: u64) {
        if let Some((slot, word)) = to.and_then(|slot| Some((slot, self.read_slot(slot)?))) {
            let number = number & u64::MAX.checked_shr(64 - self.program.slots[slot].width).unwrap_or(0);
            match small(number) {
                Some(number) => self.store_imm(word, number),
                None => {
                    self.number(R1, number);
                    self.store_word(word, R1);
                }
            }
        }
    }

    /// Whether an argument of more than 64 bits is read.
    fn is_wide_argument(&self, slot: SlotId) -> bool {
        self.program.slots[slot].width > 64 && self.usage.slots_read.contains(&slot)
    }

    /// Looks the key up and stores the number of the record.
    fn search(&mut self, table: TableId, layout: &FlatTable, record: ScratchWord) {
        self.store_imm(record, 0);
        if !matches!(layout.search, TableSearch::None | TableSearch::Chain) {
            self.load_table_address(R2, layout.state);
            self.push(Instruction::Load(AccessSize::B8, R1, R2, 0));
            self.jump_if(Cond::Ne, R1, 0, self.slow);
        }
        let words = self.spill_all(matched_keys(&self.program.tables[table]).into_iter().map(|key| &key.expr));
        match layout.search {
            TableSearch::None => {}
            TableSearch::Chain => self.compare_entries(table, &words, record),
            TableSearch::Exact(shape) => self.search_exact(&shape, layout.words, &words, record),
            TableSearch::Prefixes(shape) => self.search_prefixes(&shape, layout.words, &words, record),
            TableSearch::Rules(shape) => self.search_rules(&shape, table, layout, &words, record),
        }
        self.give_back(words.len() as u32);
    }

    /// Compares the key with constant entries.
    fn compare_entries(&mut self, table: TableId, key: &[ScratchWord], record: ScratchWord) {
        let table = &self.program.tables[table];
        let end = self.code.label();
        for (number, entry) in (1..).zip(chain(table).unwrap_or_default()) {
            let others = self.code.label();
            for ((part, word), value) in table.keys.iter().zip(key).zip(&entry.keys) {
                self.compare_value(part, *word, value, others);
            }
            self.store_imm(record, number);
            self.jump(end);
            self.bind(others);
        }
        self.bind(end);
    }

    /// Jumps unless an element of the key matches a value.
    fn compare_value(&mut self, key: &Key, word: ScratchWord, value: &KeyValue, others: Label) {
        if *value == KeyValue::Any {
            return;
        }
        self.load_word(R1, word);
        match value {
            KeyValue::Any => {}
            KeyValue::Exact(value) => self.jump_if_number(Cond::Ne, R1, value.low_u64(), others),
            KeyValue::Lpm(_, 0) => {}
            KeyValue::Lpm(value, length) => {
                self.shift_right(R1, key.width - length);
                self.jump_if_number(Cond::Ne, R1, value.low_u64() >> (key.width - length), others);
            }
            KeyValue::Ternary(value, mask) => {
                self.number(R2, mask.low_u64());
                self.alu(Alu::And, R1, R2);
                self.jump_if_number(Cond::Ne, R1, value.low_u64(), others);
            }
            KeyValue::Range(low, high) if key.signed => {
                self.sign_extend(R1, key.width);
                self.jump_if_number(Cond::SLt, R1, low.sign_extend(64).low_u64(), others);
                self.jump_if_number(Cond::SGt, R1, high.sign_extend(64).low_u64(), others);
            }
            KeyValue::Range(low, high) => {
                self.jump_if_number(Cond::Lt, R1, low.low_u64(), others);
                self.jump_if_number(Cond::Gt, R1, high.low_u64(), others);
            }
        }
    }

    /// [`FlatExact::lookup`]
    fn search_exact(&mut self, shape: &FlatExact, table: u32, key: &[ScratchWord], record: ScratchWord) {
        let slot_bytes = (shape.slot_words() * 8) as i32;
        let packed: Vec<ScratchWord> = (0..shape.slot_words()).map(|_| self.spill()).collect();
        let has_first = shape.places().iter().any(|place| place.word == 0);
        self.alu(Alu::Mov, R1, 0);
        for (at, word) in packed.iter().enumerate() {
            let mut elements = shape.places().iter().zip(key).filter(|(place, _)| place.word == at);
            // The first word of the hash has no effect if it is 0.
            let Some((_, element)) = elements.next() else { continue };
            self.load_word(R2, *element);
            for (place, element) in elements {
                self.load_word(R0, *element);
                self.alu(Alu::Lsh, R0, place.shift as i32);
                self.alu(Alu::Or, R2, R0);
            }
            self.store_word(*word, R2);
            self.hash_step();
        }
        self.hash_home();
        self.alu(Alu::Mul, R1, shape.home_slots() as i32);
        self.alu(Alu::Rsh, R1, 32);
        self.alu(Alu::Mul, R1, slot_bytes);
        self.load_table_address(R2, table);
        self.alu(Alu::Add, R2, R1);
        self.alu(Alu::Mov, R3, PROBES as i32);
        let (again, others, end) = (self.code.label(), self.code.label(), self.code.label());
        self.bind(again);
        self.push(Instruction::Load(AccessSize::B8, R1, R2, 0));
        self.jump_if(Cond::Eq, R1, 0, end);
        for (at, word) in (0..).zip(&packed).filter(|(at, _)| *at > 0 || has_first) {
            if at == 0 {
                self.mov(R0, R1);
                self.alu(Alu::Rsh, R0, NUMBER_BITS as i32);
            } else {
                self.push(Instruction::Load(AccessSize::B8, R0, R2, at * 8));
            }
            self.load_word(R4, *word);
            self.jump_if(Cond::Ne, R0, R4, others);
        }
        self.truncate(R1, NUMBER_BITS);
        self.store_word(record, R1);
        self.jump(end);
        self.bind(others);
        self.alu(Alu::Add, R2, slot_bytes);
        self.alu(Alu::Sub, R3, 1);
        self.jump_if(Cond::Ne, R3, 0, again);
        self.bind(end);
        self.give_back(packed.len() as u32);
    }

    /// Adds a word in r2 to the hash in r1.
    pub(super) fn hash_step(&mut self) {
        self.alu(Alu::Xor, R1, R2);
        self.push(Instruction::Load64(R0, HASH_MULTIPLIER));
        self.alu(Alu::Mul, R1, R0);
        self.alu(Alu::Mov, R0, R1);
        self.alu(Alu::Rsh, R0, 32);
        self.alu(Alu::Xor, R1, R0);
    }

    /// Turns the hash in r1 into a number of 32 bits that depends on each of its bits.
    pub(super) fn hash_home(&mut self) {
        self.push(Instruction::Load64(R0, HOME_MULTIPLIER));
        self.alu(Alu::Mul, R1, R0);
        self.alu(Alu::Rsh, R1, 32);
    }

    /// Enters a count among the pending ones.
    pub(super) fn count(&mut self, counter: CounterId, index: &Expr) {
        let (_, size) = self.layout.counters[&counter];
        let word = self.scratch.pending_word();
        let is_outside = self.code.label();
        self.eval(index, 0);
        self.jump_if_number(Cond::Ge, R1, size.into(), is_outside);
        self.alu(Alu::Add, R1, 1);
        self.store_word(word, R1);
        self.bind(is_outside);
        self.counts.push((word, counter));
    }
}
