//! Emits the Internet checksum (RFC 1071).

use ir::{Algorithm, Expr, HashInput};

use super::scratch::ScratchWord;
use super::{Emitter, HandOverReason, R0, R1, R2};
use crate::asm::{Alu, Instruction};

/// Maximum number of values of a checksum, so that their sum has no more than 64 bits.
const MAX_VALUES: usize = 4096;

impl Emitter<'_> {
    pub(super) fn checksum_problem(&self, algorithm: Algorithm, data: &[HashInput]) -> Option<HandOverReason> {
        if algorithm != Algorithm::Csum16 || data.len() > MAX_VALUES {
            return Some(HandOverReason::Hash);
        }
        data.iter().find_map(|piece| match piece {
            HashInput::Value(value) => self.expr_problem(value),
            HashInput::Varbit(..) | HashInput::Payload => Some(HandOverReason::Hash),
        })
    }

    /// Computes the checksum of values to r1, for a place of `width` bits. As 2^16 is 1 modulo 2^16 - 1, a value may be
    /// added as a whole, shifted to where its last bit lies in its 16-bit word.
    pub(super) fn checksum(&mut self, data: &[HashInput], width: u32) {
        let values: Vec<&Expr> = data
            .iter()
            .filter_map(|piece| if let HashInput::Value(value) = piece { Some(value) } else { None })
            .collect();
        let total: u32 = values.iter().map(|value| self.width(value)).sum();
        let sum = self.spill();
        self.store_imm(sum, 0);
        let mut behind = total.next_multiple_of(16);
        for value in values {
            let width = self.width(value);
            behind -= width;
            self.eval(value, 0);
            self.add_shifted(sum, width, behind % 16);
        }
        self.load_word(R1, sum);
        self.give_back(1);
        // Three steps fold 64 bits into 16 with one carry left, and a fourth adds it.
        for shift in [32, 16, 16, 16] {
            self.alu(Alu::Mov, R2, R1);
            self.alu(Alu::Rsh, R2, shift);
            if shift == 32 {
                self.push(Instruction::Alu32(Alu::Mov, R1, R1.into()));
            } else {
                self.alu(Alu::And, R1, 0xffff);
            }
            self.alu(Alu::Add, R1, R2);
        }
        self.alu(Alu::Xor, R1, 0xffff);
        self.truncate(R1, width.min(64));
    }

    /// Adds r1, a value of `width` bits, times 2^`shift` to a sum. Wide values are added in two halves.
    fn add_shifted(&mut self, sum: ScratchWord, width: u32, shift: u32) {
        self.load_word(R2, sum);
        if width > 32 {
            self.alu(Alu::Mov, R0, R1);
            self.alu(Alu::Rsh, R0, 32);
            self.add_low(R0, shift);
            self.push(Instruction::Alu32(Alu::Mov, R1, R1.into()));
        }
        self.add_low(R1, shift);
        self.store_word(sum, R2);
    }

    fn add_low(&mut self, reg: crate::asm::Reg, shift: u32) {
        if shift > 0 {
            self.alu(Alu::Lsh, reg, shift as i32);
        }
        self.alu(Alu::Add, R2, reg);
    }
}
