//! Emits lookups of prefixes.

use tables::flat::{FlatPrefixes, LEAF_BITS, LENGTH_BITS, LENGTH_SHIFT, NODE_BITS, NODE_WORDS, TARGET_BITS};

use super::scratch::ScratchWord;
use super::{Emitter, R0, R1, R2, R3, R4};
use crate::asm::{AccessSize, Alu, Cond, Instruction, Label, Reg};

const TARGET_MASK: i32 = (1 << TARGET_BITS) - 1;

impl Emitter<'_> {
    /// [`FlatPrefixes::lookup`]
    pub(super) fn search_prefixes(
        &mut self,
        shape: &FlatPrefixes,
        table: u32,
        key: &[ScratchWord],
        record: ScratchWord,
    ) {
        let [leaf, end] = [(); 2].map(|()| self.code.label());
        // The words with leaves, each with the number of bits of the key behind it.
        let mut leaves: Vec<(Label, u32)> = Vec::new();
        let mut left = shape.width() - shape.root_bits();
        self.load_key_from(key, left);
        self.alu(Alu::And, R1, (shape.root_words() - 1) as i32);
        self.alu(Alu::Lsh, R1, 3);
        self.load_table_address(R2, table + (shape.short_words() * 8) as u32);
        self.alu(Alu::Add, R2, R1);
        loop {
            let has_none = self.code.label();
            self.push(Instruction::Load(AccessSize::B8, R3, R2, 0));
            self.mov(R0, R3);
            self.alu(Alu::And, R0, TARGET_MASK);
            self.jump_if(Cond::Eq, R0, 0, has_none);
            self.store_word(record, R0);
            self.bind(has_none);
            if left == 0 {
                break;
            }
            // r0 = the leaf's number or the child, r3 = the bits of the leaf, r4 = 15 less their number
            self.alu(Alu::Rsh, R3, TARGET_BITS as i32);
            self.mov(R0, R3);
            self.alu(Alu::And, R0, TARGET_MASK);
            self.jump_if(Cond::Eq, R0, 0, end);
            self.alu(Alu::Rsh, R3, (LENGTH_SHIFT - TARGET_BITS) as i32);
            self.mov(R4, R3);
            self.alu(Alu::And, R4, (1 << LENGTH_BITS) - 1);
            let is_leaf = self.code.label();
            self.jump_if(Cond::Ne, R4, 0, is_leaf);
            leaves.push((is_leaf, left));
            if shape.children() == 0 {
                break;
            }
            let bits = left.min(NODE_BITS);
            left -= bits;
            self.jump_if(Cond::Gt, R0, shape.children() as i32, end);
            self.alu(Alu::Sub, R0, 1);
            self.alu(Alu::And, R0, TARGET_MASK);
            self.alu(Alu::Mul, R0, (NODE_WORDS * 8) as i32);
            self.load_key_from(key, left);
            self.alu(Alu::And, R1, (1 << bits) - 1);
            self.alu(Alu::Lsh, R1, 3);
            self.load_table_address(R2, table + (shape.first_child() * 8) as u32);
            self.alu(Alu::Add, R2, R0);
            self.alu(Alu::Add, R2, R1);
        }
        if !leaves.is_empty() {
            self.jump(end);
            for (is_leaf, left) in leaves {
                self.bind(is_leaf);
                self.load_key_rest(key, left);
                self.jump(leaf);
            }
            self.bind(leaf);
            self.alu(Alu::Rsh, R3, LENGTH_BITS as i32);
            self.alu(Alu::Xor, R3, R1);
            self.alu(Alu::Sub, R4, 1);
            self.alu(Alu::Rsh, R3, R4);
            self.jump_if(Cond::Ne, R3, 0, end);
            self.store_word(record, R0);
        }
        self.bind(end);
        if shape.short_words() > 0 {
            self.search_short(shape, table, key, record);
        }
    }

    /// Looks for the shortest prefixes if there is no other.
    fn search_short(&mut self, shape: &FlatPrefixes, table: u32, key: &[ScratchWord], record: ScratchWord) {
        let end = self.code.label();
        self.load_word(R1, record);
        self.jump_if(Cond::Ne, R1, 0, end);
        self.load_key_from(key, shape.width() - shape.short_bits());
        self.alu(Alu::And, R1, (shape.short_words() - 1) as i32);
        self.alu(Alu::Lsh, R1, 3);
        self.load_table_address(R2, table);
        self.alu(Alu::Add, R2, R1);
        self.push(Instruction::Load(AccessSize::B8, R1, R2, 0));
        self.alu(Alu::And, R1, TARGET_MASK);
        self.store_word(record, R1);
        self.bind(end);
    }

    /// Loads the bits of a key, one or two words, that have `left` bits behind them to r1, with others in front of
    /// them.
    fn load_key_from(&mut self, key: &[ScratchWord], left: u32) {
        // The shape of a key of two words has no node with bits of both.
        let word = key.len() - 1 - left as usize / 64;
        self.load_word(R1, key[word]);
        self.shift_right(R1, left % 64);
    }

    /// Loads the first ones of the last `left` bits of a key to r1, as the bits of a leaf.
    fn load_key_rest(&mut self, key: &[ScratchWord], left: u32) {
        // No leaf has bits of two words.
        let word = key.len() - 1 - (left as usize - 1) / 64;
        let left = (left - 1) % 64 + 1;
        self.load_word(R1, key[word]);
        if left < LEAF_BITS {
            self.alu(Alu::Lsh, R1, (LEAF_BITS - left) as i32);
        } else {
            self.shift_right(R1, left - LEAF_BITS);
        }
        self.alu(Alu::And, R1, (1 << LEAF_BITS) - 1);
    }

    pub(super) fn shift_right(&mut self, reg: Reg, bits: u32) {
        if bits > 0 {
            self.alu(Alu::Rsh, reg, bits as i32);
        }
    }
}
