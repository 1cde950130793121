//! Emits comparisons with the members of a value set.

use ir::ValueSetId;
use tables::flat::RuleElement;

use super::scratch::ScratchWord;
use super::{Emitter, HandOverReason, R0, R1, R2, R3, R4};
use crate::asm::{AccessSize, Alu, Cond, Instruction, Label};
use crate::layout::MAX_MEMBERS;

impl Emitter<'_> {
    /// Jumps unless the next keys, one for each element of a set, are a member of it.
    pub(super) fn search_value_set(
        &mut self,
        set: ValueSetId,
        keys: &mut dyn Iterator<Item = ScratchWord>,
        others: Label,
    ) {
        let layout = self.layout;
        let set = &layout.value_sets[&set];
        let keys: Vec<ScratchWord> = keys.take(set.elements.len()).collect();
        let [again, next, found] = [(); 3].map(|()| self.code.label());
        self.load_table_address(R2, set.first);
        self.push(Instruction::Load(AccessSize::B8, R3, R2, 0));
        self.hand_over_if(Cond::Gt, R3, MAX_MEMBERS as i32, HandOverReason::ValueSet);
        self.alu(Alu::Add, R2, 8);
        self.bind(again);
        self.jump_if(Cond::Eq, R3, 0, others);
        for (at, (element, key)) in (0..).step_by(16).zip(set.elements.iter().zip(keys)) {
            self.load_word(R1, key);
            self.push(Instruction::Load(AccessSize::B8, R0, R2, at));
            match element {
                RuleElement::Range => {
                    self.jump_if(Cond::Lt, R1, R0, next);
                    self.push(Instruction::Load(AccessSize::B8, R0, R2, at + 8));
                    self.jump_if(Cond::Gt, R1, R0, next);
                }
                RuleElement::Ternary => {
                    // The mask is behind the value.
                    self.push(Instruction::Load(AccessSize::B8, R4, R2, at + 8));
                    self.alu(Alu::And, R1, R4);
                    self.jump_if(Cond::Ne, R1, R0, next);
                }
            }
        }
        self.jump(found);
        self.bind(next);
        self.alu(Alu::Add, R2, set.elements.len() as i32 * 16);
        self.alu(Alu::Sub, R3, 1);
        self.jump(again);
        self.bind(found);
    }
}
