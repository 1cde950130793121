//! Emits the hash that selects a member of a group.

use ir::{Algorithm, Expr, HashInput};

use super::scratch::ScratchWord;
use super::{Emitter, R1, R2, R3, R4, SCRATCH};
use crate::asm::{AccessSize, Alu, Instruction, Reg};

/// Maximum number of bits that are hashed.
const MAX_BITS: u32 = 512;

/// A CRC whose bytes and result are reflected.
struct ReflectedCrc {
    width: u32,
    /// The polynomial, its highest coefficient in the lowest bit.
    polynomial: u32,
    /// The register at the start, and the number that is exclusive-ored to the result.
    ends: u32,
}

/// Returns the parameters of an algorithm that is a CRC with constant parameters.
fn crc(algorithm: Algorithm) -> Option<ReflectedCrc> {
    match algorithm {
        Algorithm::Crc16 => Some(ReflectedCrc { width: 16, polynomial: 0xa001, ends: 0 }),
        Algorithm::Crc32 => Some(ReflectedCrc { width: 32, polynomial: 0xedb8_8320, ends: u32::MAX }),
        _ => None,
    }
}

impl ReflectedCrc {
    /// Returns the remainder of a byte.
    fn remainder(&self, byte: u32) -> u32 {
        (0..8).fold(byte, |register, _| register >> 1 ^ if register & 1 == 1 { self.polynomial } else { 0 })
    }
}

impl Emitter<'_> {
    /// Whether a hash cannot be computed.
    pub(super) fn selector_problem(&self, algorithm: Algorithm, keys: &[&Expr]) -> bool {
        let bits = keys.iter().map(|key| self.width(key)).fold(0, u32::saturating_add);
        // The control plane sets the parameters of custom algorithms.
        matches!(algorithm, Algorithm::Crc16Custom | Algorithm::Crc32Custom)
            || bits > MAX_BITS
            || keys.iter().any(|key| self.expr_problem(key).is_some())
    }

    /// Computes the hash of values without problems, concatenated bit by bit, to r1: the low 64 bits of it, in the
    /// algorithm's own width.
    pub(super) fn selector_hash(&mut self, algorithm: Algorithm, keys: &[&Expr]) {
        if algorithm == Algorithm::Csum16 {
            let data: Vec<HashInput> = keys.iter().map(|key| HashInput::Value((*key).clone())).collect();
            return self.checksum(&data, 16);
        }
        let bits: u32 = keys.iter().map(|key| self.width(key)).sum();
        let values = self.spill_all(keys.iter().copied());
        let values: Vec<(ScratchWord, u32)> = values.into_iter().zip(keys.iter().map(|key| self.width(key))).collect();
        match crc(algorithm) {
            Some(crc) => {
                let words: Vec<ScratchWord> = (0..bits.div_ceil(64))
                    .map(|number| {
                        self.concatenated_word(&values, 64 * (number + 1));
                        let word = self.spill();
                        self.store_word(word, R1);
                        word
                    })
                    .collect();
                self.crc(&crc, &words, bits.div_ceil(8));
                self.give_back(words.len() as u32);
            }
            // The last 64 bits.
            None if algorithm == Algorithm::Identity => self.concatenated_word(&values, bits),
            None => self.exclusive_or_16(&values, bits),
        }
        self.give_back(values.len() as u32);
    }

    /// Loads the 64 bits of concatenated values that lie before this place to r1; bits beyond the ends are 0.
    fn concatenated_word(&mut self, values: &[(ScratchWord, u32)], end: u32) {
        self.alu(Alu::Mov, R1, 0);
        let mut behind = 0;
        for (word, width) in values {
            let begin = behind;
            behind += width;
            // The value's last bit lies this far in front of the last one of the 64, or behind it.
            let shift = i64::from(end) - i64::from(behind);
            if shift >= 64 || begin >= end {
                continue;
            }
            self.load_word(R2, *word);
            match shift {
                0 => {}
                1.. => self.alu(Alu::Lsh, R2, shift as i32),
                _ => self.alu(Alu::Rsh, R2, -shift as i32),
            }
            self.alu(Alu::Or, R1, R2);
        }
    }

    /// Computes the exclusive or of all 16-bit words; zeros follow the last bit.
    fn exclusive_or_16(&mut self, values: &[(ScratchWord, u32)], bits: u32) {
        let sum = self.spill();
        self.store_imm(sum, 0);
        for number in 0..bits.div_ceil(64) {
            self.concatenated_word(values, 64 * (number + 1));
            self.load_word(R2, sum);
            self.alu(Alu::Xor, R1, R2);
            self.store_word(sum, R1);
        }
        self.load_word(R1, sum);
        self.give_back(1);
        for shift in [32, 16] {
            self.mov(R2, R1);
            self.alu(Alu::Rsh, R2, shift);
            self.alu(Alu::Xor, R1, R2);
        }
        self.truncate(R1, 16);
    }

    /// Computes the CRC of the first bytes of words to r1. A byte takes two loads, from tables of 16 remainders in
    /// scratch memory. Branches for bits would be paths for the verifier.
    fn crc(&mut self, crc: &ReflectedCrc, words: &[ScratchWord], bytes: u32) {
        let tables: Vec<ScratchWord> = (0..32).map(|_| self.spill()).collect();
        for (at, word) in (0..).zip(&tables) {
            let byte = if at < 16 { at } else { (at - 16) << 4 };
            self.store_imm(*word, crc.remainder(byte).cast_signed());
        }
        self.number(R1, crc.ends.into());
        for at in 0..bytes {
            if at % 8 == 0 {
                self.load_word(R4, words[at as usize / 8]);
            }
            self.mov(R2, R4);
            self.alu(Alu::Rsh, R2, 56 - 8 * (at as i32 % 8));
            self.alu(Alu::And, R2, 0xff);
            self.alu(Alu::Xor, R1, R2);
            // Offsets of words: eight times the low half of the register's low byte, and the high half.
            self.mov(R2, R1);
            self.alu(Alu::Lsh, R2, 3);
            self.load_remainder(R2, tables[0]);
            self.mov(R3, R1);
            self.alu(Alu::Rsh, R3, 1);
            self.load_remainder(R3, tables[16]);
            // The upper half of the remainders has their sign, so it is cleared.
            self.push(Instruction::Alu32(Alu::Rsh, R1, 8.into()));
            self.alu(Alu::Xor, R1, R2);
            self.alu(Alu::Xor, R1, R3);
        }
        self.give_back(tables.len() as u32);
        self.alu(Alu::Xor, R1, crc.ends.cast_signed());
        self.truncate(R1, crc.width);
    }

    /// Replaces an offset, whose bits 3 to 6 count, by a word of the 16 from `first` on.
    fn load_remainder(&mut self, at: Reg, first: ScratchWord) {
        self.alu(Alu::And, at, 15 << 3);
        self.alu(Alu::Add, at, SCRATCH);
        self.push(Instruction::Load(AccessSize::B8, at, at, first.offset()));
    }
}
