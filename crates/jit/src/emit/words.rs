//! Words while code is generated: each a constant or an SSA value. What is known folds here, so that the code generator
//! need not be asked to optimise for it.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types::I64};

use super::Emit;

/// A word.
#[derive(Clone, Copy, Debug)]
pub(super) enum Word {
    Known(u64),
    Value(Value),
}

impl Word {
    /// The word, if it is known.
    pub fn known(self) -> Option<u64> {
        if let Word::Known(word) = self { Some(word) } else { None }
    }
}

impl Emit<'_, '_> {
    pub(super) fn value(&mut self, word: Word) -> Value {
        match word {
            Word::Known(word) => self.b.ins().iconst(I64, word as i64),
            Word::Value(value) => value,
        }
    }

    fn both(
        &mut self,
        a: Word,
        b: Word,
        known: fn(u64, u64) -> u64,
        make: fn(&mut Self, Value, Value) -> Value,
    ) -> Word {
        if let (Word::Known(a), Word::Known(b)) = (a, b) {
            return Word::Known(known(a, b));
        }
        let (a, b) = (self.value(a), self.value(b));
        Word::Value(make(self, a, b))
    }

    pub(super) fn w_add(&mut self, a: Word, b: Word) -> Word {
        match (a, b) {
            (Word::Known(0), other) | (other, Word::Known(0)) => other,
            _ => self.both(a, b, u64::wrapping_add, |e, a, b| e.b.ins().iadd(a, b)),
        }
    }

    pub(super) fn w_sub(&mut self, a: Word, b: Word) -> Word {
        match (a, b) {
            (other, Word::Known(0)) => other,
            _ => self.both(a, b, u64::wrapping_sub, |e, a, b| e.b.ins().isub(a, b)),
        }
    }

    pub(super) fn w_and(&mut self, a: Word, b: Word) -> Word {
        match (a, b) {
            (Word::Known(0), _) | (_, Word::Known(0)) => Word::Known(0),
            (Word::Known(u64::MAX), other) | (other, Word::Known(u64::MAX)) => other,
            _ => self.both(a, b, |a, b| a & b, |e, a, b| e.b.ins().band(a, b)),
        }
    }

    pub(super) fn w_or(&mut self, a: Word, b: Word) -> Word {
        match (a, b) {
            (Word::Known(0), other) | (other, Word::Known(0)) => other,
            _ => self.both(a, b, |a, b| a | b, |e, a, b| e.b.ins().bor(a, b)),
        }
    }

    pub(super) fn w_xor(&mut self, a: Word, b: Word) -> Word {
        match (a, b) {
            (Word::Known(0), other) | (other, Word::Known(0)) => other,
            _ => self.both(a, b, |a, b| a ^ b, |e, a, b| e.b.ins().bxor(a, b)),
        }
    }

    /// Shifts by a number of bits that is known, up to 64.
    pub(super) fn w_shl(&mut self, a: Word, bits: u32) -> Word {
        match (a, bits) {
            (_, 0) => a,
            (_, 64..) => Word::Known(0),
            (Word::Known(a), _) => Word::Known(a << bits),
            (Word::Value(a), _) => {
                let amount = self.b.ins().iconst(I64, i64::from(bits));
                Word::Value(self.b.ins().ishl(a, amount))
            }
        }
    }

    pub(super) fn w_shr(&mut self, a: Word, bits: u32) -> Word {
        match (a, bits) {
            (_, 0) => a,
            (_, 64..) => Word::Known(0),
            (Word::Known(a), _) => Word::Known(a >> bits),
            (Word::Value(a), _) => {
                let amount = self.b.ins().iconst(I64, i64::from(bits));
                Word::Value(self.b.ins().ushr(a, amount))
            }
        }
    }

    /// A comparison of two words, 0 or 1.
    pub(super) fn w_cmp(&mut self, cc: IntCC, a: Word, b: Word) -> Word {
        if let (Word::Known(a), Word::Known(b)) = (a, b) {
            let holds = match cc {
                IntCC::Equal => a == b,
                IntCC::NotEqual => a != b,
                IntCC::UnsignedLessThan => a < b,
                IntCC::UnsignedLessThanOrEqual => a <= b,
                IntCC::UnsignedGreaterThan => a > b,
                IntCC::UnsignedGreaterThanOrEqual => a >= b,
                _ => unreachable!("only unsigned comparisons are made of words"),
            };
            return Word::Known(u64::from(holds));
        }
        let (a, b) = (self.value(a), self.value(b));
        let flag = self.b.ins().icmp(cc, a, b);
        Word::Value(self.b.ins().uextend(I64, flag))
    }

    pub(super) fn w_choose(&mut self, condition: Word, then: Word, otherwise: Word) -> Word {
        match (condition, then, otherwise) {
            (Word::Known(0), ..) => otherwise,
            (Word::Known(_), ..) => then,
            (_, Word::Known(a), Word::Known(b)) if a == b => then,
            (_, Word::Value(a), Word::Value(b)) if a == b => then,
            (Word::Value(condition), ..) => {
                let (a, b) = (self.value(then), self.value(otherwise));
                Word::Value(self.b.ins().select(condition, a, b))
            }
        }
    }
}
