//! Emits lookups of rules.

use ir::TableId;
use tables::flat::{FlatRules, MAX_STEPS, MAX_TUPLES, RuleElement};

use super::scratch::ScratchWord;
use super::{Emitter, HandOverReason, R0, R1, R2, R3, R4};
use crate::asm::{AccessSize, Alu, Cond, Instruction, Label, Reg};
use crate::layout::{FlatTable, matched_keys, sign_mask};

impl Emitter<'_> {
    /// [`FlatRules::lookup`]
    pub(super) fn search_rules(
        &mut self,
        shape: &FlatRules,
        table: TableId,
        layout: &FlatTable,
        key: &[ScratchWord],
        record: ScratchWord,
    ) {
        let keys = matched_keys(&self.program.tables[table]);
        let masks = keys.into_iter().map(|element| sign_mask(element.into()));
        for (mask, word) in masks.zip(key).filter(|(mask, _)| *mask != 0) {
            self.load_word(R1, *word);
            self.number(R2, mask);
            self.alu(Alu::Xor, R1, R2);
            self.store_word(*word, R1);
        }
        // What lies in memory is the same to the verifier in every step, so it looks at each step once. r3 counts the
        // steps left.
        let [tuple, best, rule] = [(); 3].map(|()| self.spill());
        let [next_tuple, next_rule, others, unknown, end] = [(); 5].map(|()| self.code.label());
        self.store_imm(tuple, 0);
        self.store_imm(best, 0);
        self.alu(Alu::Mov, R3, MAX_STEPS as i32 + 1);

        self.bind(next_tuple);
        self.load_word(R1, tuple);
        self.jump_if(Cond::Ge, R1, MAX_TUPLES as i32, end);
        self.mov(R4, R1);
        self.alu(Alu::Add, R1, 1);
        self.store_word(tuple, R1);
        self.alu(Alu::Mul, R4, (shape.tuple_words() * 8) as i32);
        self.load_table_address(R2, layout.words);
        self.alu(Alu::Add, R4, R2);
        self.push(Instruction::Load(AccessSize::B8, R0, R4, 0));
        self.jump_if(Cond::Eq, R0, 0, end);
        self.load_word(R1, best);
        self.jump_if(Cond::Lt, R0, R1, end);
        self.take_step(unknown);
        self.push(Instruction::Load(AccessSize::B8, R1, R4, 8));
        for (at, word) in (2..).zip(key) {
            self.load_word(R2, *word);
            self.push(Instruction::Load(AccessSize::B8, R0, R4, at * 8));
            self.alu(Alu::And, R2, R0);
            self.hash_step();
        }
        self.hash_home();
        self.alu(Alu::And, R1, (shape.buckets() - 1) as i32);
        self.alu(Alu::Lsh, R1, 3);
        self.load_table_address(R2, layout.words + (shape.first_bucket() * 8) as u32);
        self.alu(Alu::Add, R2, R1);
        self.push(Instruction::Load(AccessSize::B8, R1, R2, 0));

        self.bind(next_rule);
        self.jump_if(Cond::Eq, R1, 0, next_tuple);
        // No bucket has another number, unless the region is not as it was left.
        self.jump_if_number(Cond::Gt, R1, shape.capacity().into(), self.abort);
        self.take_step(unknown);
        self.store_word(rule, R1);
        self.alu(Alu::Mul, R1, (shape.rule_words() * 8) as i32);
        self.load_table_address(R2, layout.words + (shape.first_rule() * 8) as u32);
        self.alu(Alu::Add, R2, R1);
        self.push(Instruction::Load(AccessSize::B8, R0, R2, 0));
        self.load_word(R1, best);
        self.jump_if(Cond::Lt, R0, R1, next_tuple);
        for ((at, word), kind) in (1..).zip(key).zip(shape.elements()) {
            self.compare_pair(kind, *word, [16 * at, 16 * at + 8], others);
        }
        self.load_word(R4, rule);
        self.load_word(R0, record);
        self.jump_if(Cond::Eq, R0, R4, others);
        self.push(Instruction::Load(AccessSize::B8, R0, R2, 0));
        self.jump_if(Cond::Eq, R0, R1, unknown);
        self.store_word(best, R0);
        self.store_word(record, R4);
        self.bind(others);
        self.push(Instruction::Load(AccessSize::B8, R1, R2, 8));
        self.jump(next_rule);

        self.bind(unknown);
        self.hand_over(HandOverReason::Rules);
        self.bind(end);
        self.give_back(3);
    }

    /// Takes one of the steps of r3; jumps if none is left.
    fn take_step(&mut self, none: Label) {
        self.alu(Alu::Sub, R3, 1);
        self.jump_if(Cond::Eq, R3, 0, none);
    }

    /// Compares an element with the pair of the rule at r2, in r0 and r4. Jumps if it does not match.
    fn compare_pair(&mut self, kind: RuleElement, word: ScratchWord, [first, second]: [i16; 2], others: Label) {
        let load = |to: Reg, at: i16| Instruction::Load(AccessSize::B8, to, R2, at);
        self.load_word(R4, word);
        match kind {
            RuleElement::Ternary => {
                self.push(load(R0, second));
                self.alu(Alu::And, R4, R0);
                self.push(load(R0, first));
                self.jump_if(Cond::Ne, R4, R0, others);
            }
            RuleElement::Range => {
                self.push(load(R0, first));
                self.jump_if(Cond::Lt, R4, R0, others);
                self.push(load(R0, second));
                self.jump_if(Cond::Gt, R4, R0, others);
            }
        }
    }
}
