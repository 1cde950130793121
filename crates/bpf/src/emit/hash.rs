//! Emits hashes: CRCs, XOR of words, and the data itself.
//!
//! The data is the concatenation of values, whose widths are known. A CRC takes it in whole bytes, each with a lookup
//! in a table of the region (Sarwate, "Computation of Cyclic Redundancy Checks via Table Look-Up", 1988). The
//! parameters of custom CRCs may change at run time, so they are handed over.

use engine::CrcParams;
use ir::{Algorithm, Expr, HashInput};

use super::scratch::ScratchWord;
use super::{Emitter, HandOverReason, R0, R1, R2, R3};
use crate::asm::{AccessSize, Alu, Instruction, MapRef, Reg};

/// Maximum number of values of a checksum, so that their sum has no more than 64 bits.
const MAX_VALUES: usize = 4096;
/// Maximum number of bits of a CRC: each byte takes nine instructions.
const MAX_CRC_BITS: u32 = 64 * 8;

/// Number of entries of the table of a CRC, a word each.
pub(crate) const CRC_TABLE_WORDS: u32 = 256;

/// A CRC that takes each byte least significant bit first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Crc {
    /// [`Algorithm::Crc16`]
    Crc16,
    /// [`Algorithm::Crc32`]
    Crc32,
}

impl Crc {
    pub fn of(algorithm: Algorithm) -> Option<Crc> {
        match algorithm {
            Algorithm::Crc16 => Some(Crc::Crc16),
            Algorithm::Crc32 => Some(Crc::Crc32),
            _ => None,
        }
    }

    fn parameters(self) -> CrcParams {
        match self {
            Crc::Crc16 => CrcParams::CRC16,
            Crc::Crc32 => CrcParams::CRC32,
        }
    }

    /// Returns the remainders of all bytes.
    pub fn table(self) -> impl Iterator<Item = u64> {
        let CrcParams { width, polynomial, .. } = self.parameters();
        let polynomial = polynomial.reverse_bits() >> (32 - width);
        let step = move |register: u32, _| (register >> 1) ^ if register & 1 == 1 { polynomial } else { 0 };
        (0..CRC_TABLE_WORDS).map(move |byte| (0..8).fold(byte, step).into())
    }
}

impl Emitter<'_> {
    pub(super) fn hash_problem(&self, algorithm: Algorithm, data: &[HashInput]) -> Option<HandOverReason> {
        let problem = data.iter().find_map(|piece| match piece {
            HashInput::Value(value) => self.expr_problem(value),
            HashInput::Varbit(..) | HashInput::Payload => Some(HandOverReason::Hash),
        });
        if problem.is_some() || data.len() > MAX_VALUES {
            return problem.or(Some(HandOverReason::Hash));
        }
        let is_known = match algorithm {
            Algorithm::Csum16 | Algorithm::Xor16 | Algorithm::Identity => true,
            Algorithm::Crc16 | Algorithm::Crc32 => {
                self.values(data).iter().map(|value| self.width(value)).sum::<u32>() <= MAX_CRC_BITS
            }
            Algorithm::Crc16Custom | Algorithm::Crc32Custom => false,
        };
        (!is_known).then_some(HandOverReason::Hash)
    }

    fn values<'e>(&self, data: &'e [HashInput]) -> Vec<&'e Expr> {
        let value = |piece: &'e HashInput| if let HashInput::Value(value) = piece { Some(value) } else { None };
        data.iter().filter_map(value).collect()
    }

    /// Computes a hash or checksum without problems to r1, for a place of `width` bits.
    pub(super) fn hash(&mut self, algorithm: Algorithm, data: &[HashInput], width: u32) {
        let values = self.values(data);
        if let Some(crc) = Crc::of(algorithm) {
            self.crc(crc, &values);
        } else {
            match algorithm {
                Algorithm::Xor16 => self.xor16(&values),
                Algorithm::Identity => self.identity(&values, width),
                _ => self.checksum(&values),
            }
        }
        self.truncate(R1, width.min(64));
    }

    /// Computes a CRC to r1.
    fn crc(&mut self, crc: Crc, values: &[&Expr]) {
        let CrcParams { init, xor_out, .. } = crc.parameters();
        let (register, rest) = (self.spill(), self.spill());
        self.number(R1, init.into());
        self.store_word(register, R1);
        // The number of bits that wait for the rest of their byte.
        let mut waiting = 0;
        for value in values {
            let width = self.width(value);
            self.eval(value, 0);
            waiting = self.crc_value(crc, [register, rest], waiting, width);
        }
        if waiting > 0 {
            self.load_word(R1, rest);
            self.alu(Alu::Lsh, R1, 8 - waiting as i32);
            self.crc_bytes(crc, register, 0, 1);
        }
        self.load_word(R1, register);
        self.give_back(2);
        self.number(R0, xor_out.into());
        self.alu(Alu::Xor, R1, R0);
    }

    /// Feeds r1, a value of `width` bits, behind bits that wait. Returns how many wait then.
    fn crc_value(&mut self, crc: Crc, [register, rest]: [ScratchWord; 2], waiting: u32, width: u32) -> u32 {
        if waiting + width > 64 {
            let value = self.spill();
            self.store_word(value, R1);
            self.alu(Alu::Rsh, R1, 32);
            let waiting = self.crc_value(crc, [register, rest], waiting, width - 32);
            self.load_word(R1, value);
            self.give_back(1);
            self.truncate(R1, 32);
            return self.crc_value(crc, [register, rest], waiting, 32);
        }
        if waiting > 0 {
            self.load_word(R0, rest);
            self.alu(Alu::Lsh, R0, width as i32);
            self.alu(Alu::Or, R1, R0);
        }
        let (bytes, left) = ((waiting + width) / 8, (waiting + width) % 8);
        if left > 0 {
            self.mov(R0, R1);
            self.alu(Alu::And, R0, (1 << left) - 1);
            self.store_word(rest, R0);
        }
        if bytes > 0 {
            self.crc_bytes(crc, register, left, bytes);
        }
        left
    }

    /// Feeds bytes of r1, the most significant first, without the low bits.
    fn crc_bytes(&mut self, crc: Crc, register: ScratchWord, low_bits: u32, bytes: u32) {
        self.load_word(R2, register);
        self.push(Instruction::LoadAddress(R3, MapRef::Region, self.layout.crc_tables[&crc]));
        for byte in (0..bytes).rev() {
            let shift = low_bits + 8 * byte;
            self.mov(R0, R1);
            if shift > 0 {
                self.alu(Alu::Rsh, R0, shift as i32);
            }
            self.alu(Alu::Xor, R0, R2);
            self.alu(Alu::And, R0, 0xff);
            self.alu(Alu::Lsh, R0, 3);
            self.alu(Alu::Add, R0, R3);
            self.push(Instruction::Load(AccessSize::B8, R0, R0, 0));
            self.alu(Alu::Rsh, R2, 8);
            self.alu(Alu::Xor, R2, R0);
        }
        self.store_word(register, R2);
    }

    /// Computes the XOR of 16-bit words to r1. A value is taken as a whole, shifted to where its last bit lies in its
    /// word.
    fn xor16(&mut self, values: &[&Expr]) {
        self.fold_words(values, Alu::Xor);
        for shift in [32, 16] {
            self.mov(R2, R1);
            self.alu(Alu::Rsh, R2, shift);
            self.alu(Alu::Xor, R1, R2);
        }
        self.truncate(R1, 16);
    }

    /// Computes the Internet checksum (RFC 1071) to r1. As 2^16 is 1 modulo 2^16 - 1, a value is added as a whole,
    /// shifted to where its last bit lies in its word.
    fn checksum(&mut self, values: &[&Expr]) {
        self.fold_words(values, Alu::Add);
        // Three steps fold 64 bits into 16 with one carry left, and a fourth adds it.
        for shift in [32, 16, 16, 16] {
            self.mov(R2, R1);
            self.alu(Alu::Rsh, R2, shift);
            self.truncate(R1, shift as u32);
            self.alu(Alu::Add, R1, R2);
        }
        self.alu(Alu::Xor, R1, 0xffff);
    }

    /// Combines values, shifted to where they lie in 16-bit words, to r1. The data is padded with zeros to whole words.
    fn fold_words(&mut self, values: &[&Expr], alu: Alu) {
        let total: u32 = values.iter().map(|value| self.width(value)).sum();
        let sum = self.spill();
        self.store_imm(sum, 0);
        let mut behind = total.next_multiple_of(16);
        for value in values {
            let width = self.width(value);
            behind -= width;
            self.eval(value, 0);
            self.load_word(R2, sum);
            // A wide value is taken in two halves, so that neither leaves the 64 bits.
            if width > 32 {
                self.mov(R0, R1);
                self.alu(Alu::Rsh, R0, 32);
                self.combine(alu, R0, behind % 16);
                self.truncate(R1, 32);
            }
            self.combine(alu, R1, behind % 16);
            self.store_word(sum, R2);
        }
        self.load_word(R1, sum);
        self.give_back(1);
    }

    fn combine(&mut self, alu: Alu, reg: Reg, shift: u32) {
        if shift > 0 {
            self.alu(Alu::Lsh, reg, shift as i32);
        }
        self.alu(alu, R2, reg);
    }

    /// Concatenates the last `width` bits of values to r1.
    fn identity(&mut self, values: &[&Expr], width: u32) {
        let sum = self.spill();
        self.store_imm(sum, 0);
        let mut behind = 0;
        for value in values.iter().rev() {
            if behind >= width {
                break;
            }
            self.eval(value, 0);
            if behind > 0 {
                self.alu(Alu::Lsh, R1, behind as i32);
            }
            self.load_word(R2, sum);
            self.alu(Alu::Or, R1, R2);
            self.store_word(sum, R1);
            behind += self.width(value);
        }
        self.load_word(R1, sum);
        self.give_back(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_those_of_the_catalogue() {
        let at = |crc: Crc, byte: usize| crc.table().nth(byte);
        assert_eq!([at(Crc::Crc16, 1), at(Crc::Crc16, 255)], [Some(0xc0c1), Some(0x4040)]);
        assert_eq!([at(Crc::Crc32, 1), at(Crc::Crc32, 255)], [Some(0x7707_3096), Some(0x2d02_ef8d)]);
    }
}
