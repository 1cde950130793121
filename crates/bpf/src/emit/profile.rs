//! Emits the way from an entry of a table with an action profile to the call that runs.

use ir::{HashInput, MatchKind, ProfileId, TableId};
use tables::flat::BLOCK_SIZE_BITS;

use super::{Emitter, HandOverReason, R0, R1, R2, R3, R4};
use crate::asm::{AccessSize, Alu, Cond, Instruction, Label, Reg};
use crate::layout::{FlatGroups, GROUP, NO_BLOCK};

impl Emitter<'_> {
    /// Finds the call for the record whose address is in r2, and loads its address to r2. Jumps to `none` for a group
    /// without a member whose port is up.
    pub(super) fn find_call(&mut self, table: TableId, profile: ProfileId, none: Label) {
        let layout = self.layout.profiles[&profile];
        let is_call = self.code.label();
        self.push(Instruction::Load(AccessSize::B8, R1, R2, 0));
        self.jump_if(Cond::Lt, R1, GROUP as i32, is_call);
        match layout.groups {
            None => self.jump(self.abort),
            Some(groups) => self.choose_member(table, &groups, none),
        }
        self.bind(is_call);
        self.jump_if(Cond::Eq, R1, 0, none);
        self.jump_if_number(Cond::Ge, R1, layout.call_count.into(), self.abort);
        self.alu(Alu::Mul, R1, (layout.call_words * 8) as i32);
        self.load_table_address(R2, layout.calls);
        self.alu(Alu::Add, R2, R1);
    }

    /// Chooses a member of the group to which r1 refers, and loads the number of its call to r1.
    fn choose_member(&mut self, table: TableId, groups: &FlatGroups, none: Label) {
        self.alu(Alu::Sub, R1, GROUP as i32);
        self.jump_if_number(Cond::Ge, R1, groups.count.into(), self.abort);
        self.alu(Alu::Lsh, R1, 3);
        self.load_table_address(R2, groups.blocks);
        self.alu(Alu::Add, R2, R1);
        self.push(Instruction::Load(AccessSize::B8, R1, R2, 0));
        self.jump_if(Cond::Eq, R1, 0, none);
        // The group has too many members, or there was no room for them.
        self.number(R0, NO_BLOCK);
        self.jump_if(Cond::Eq, R1, R0, self.slow);
        let keys = self.program.tables[table].keys.iter().filter(|key| key.kind == MatchKind::Selector);
        let keys: Vec<HashInput> = keys.map(|key| HashInput::Value(key.expr.clone())).collect();
        if self.hash_problem(groups.algorithm, &keys).is_some() {
            return self.hand_over(HandOverReason::Profile);
        }
        let block = self.spill();
        self.store_word(block, R1);
        // The hash has the algorithm's own width, whatever the profile declares.
        self.hash(groups.algorithm, &keys, u64::BITS);
        self.load_word(R4, block);
        self.give_back(1);
        self.search_choices(groups);
    }

    /// [`tables::flat::FlatChoices::lookup`] of the hash in r1 in the block in r4, to r1. Whatever the region has, each
    /// load is that of a choice.
    fn search_choices(&mut self, groups: &FlatGroups) {
        let (again, end) = (self.code.label(), self.code.label());
        self.mov(R3, R4);
        self.alu(Alu::And, R3, (1 << BLOCK_SIZE_BITS) - 1);
        self.alu(Alu::Rsh, R4, BLOCK_SIZE_BITS as i32);
        self.mov(R2, R4);
        self.load_choice(groups, R2);
        self.alu(Alu::Rsh, R2, 32);
        self.alu(Alu::Mod, R1, R2);
        // r3 = the step, which a shift brings to 0; r4 = the choice so far
        self.bind(again);
        self.alu(Alu::Rsh, R3, 1);
        self.jump_if(Cond::Eq, R3, 0, end);
        self.mov(R2, R4);
        self.alu(Alu::Add, R2, R3);
        self.load_choice(groups, R2);
        self.alu(Alu::Rsh, R2, 32);
        // All ones if the choice begins at the hash or before it, else 0: no branch, which the verifier would follow.
        self.alu(Alu::Sub, R2, R1);
        self.alu(Alu::Sub, R2, 1);
        self.alu(Alu::Arsh, R2, 63);
        self.alu(Alu::And, R2, R3);
        self.alu(Alu::Add, R4, R2);
        self.jump(again);
        self.bind(end);
        self.load_choice(groups, R4);
        self.push(Instruction::Alu32(Alu::Mov, R1, R4.into()));
    }

    /// Replaces the index of a choice by the choice. Overwrites r0.
    fn load_choice(&mut self, groups: &FlatGroups, at: Reg) {
        self.alu(Alu::And, at, (groups.shape.words() - 1) as i32);
        self.alu(Alu::Lsh, at, 3);
        self.load_table_address(R0, groups.choices);
        self.alu(Alu::Add, R0, at);
        self.push(Instruction::Load(AccessSize::B8, at, R0, 0));
    }
}
