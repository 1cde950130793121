//! Represents words during code generation: each is a constant or an SSA value. Constants are folded here, so the
//! code generator need not optimise them away.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types::I64};

use super::Emit;

/// A 64-bit word.
#[derive(Clone, Copy, Debug)]
pub(super) enum Word {
    Const(u64),
    Value(Value),
}

impl Word {
    /// Returns the word if it is constant.
    pub fn as_const(self) -> Option<u64> {
        if let Word::Const(word) = self { Some(word) } else { None }
    }
}

impl Emit<'_, '_> {
    pub(super) fn value(&mut self, word: Word) -> Value {
        match word {
            Word::Const(word) => self.b.ins().iconst(I64, word as i64),
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
        if let (Word::Const(a), Word::Const(b)) = (a, b) {
            return Word::Const(known(a, b));
        }
        let (a, b) = (self.value(a), self.value(b));
        Word::Value(make(self, a, b))
    }

    pub(super) fn w_add(&mut self, a: Word, b: Word) -> Word {
        match (a, b) {
            (Word::Const(0), other) | (other, Word::Const(0)) => other,
            _ => self.both(a, b, u64::wrapping_add, |e, a, b| e.b.ins().iadd(a, b)),
        }
    }

    pub(super) fn w_sub(&mut self, a: Word, b: Word) -> Word {
        match (a, b) {
            (other, Word::Const(0)) => other,
            _ => self.both(a, b, u64::wrapping_sub, |e, a, b| e.b.ins().isub(a, b)),
        }
    }

    pub(super) fn w_and(&mut self, a: Word, b: Word) -> Word {
        match (a, b) {
            (Word::Const(0), _) | (_, Word::Const(0)) => Word::Const(0),
            (Word::Const(u64::MAX), other) | (other, Word::Const(u64::MAX)) => other,
            _ => self.both(a, b, |a, b| a & b, |e, a, b| e.b.ins().band(a, b)),
        }
    }

    pub(super) fn w_or(&mut self, a: Word, b: Word) -> Word {
        match (a, b) {
            (Word::Const(0), other) | (other, Word::Const(0)) => other,
            _ => self.both(a, b, |a, b| a | b, |e, a, b| e.b.ins().bor(a, b)),
        }
    }

    pub(super) fn w_xor(&mut self, a: Word, b: Word) -> Word {
        match (a, b) {
            (Word::Const(0), other) | (other, Word::Const(0)) => other,
            _ => self.both(a, b, |a, b| a ^ b, |e, a, b| e.b.ins().bxor(a, b)),
        }
    }

    /// Shifts left by a constant number of bits, up to 64.
    pub(super) fn w_shl(&mut self, a: Word, bits: u32) -> Word {
        match (a, bits) {
            (_, 0) => a,
            (_, 64..) => Word::Const(0),
            (Word::Const(a), _) => Word::Const(a << bits),
            (Word::Value(a), _) => {
                let amount = self.b.ins().iconst(I64, i64::from(bits));
                Word::Value(self.b.ins().ishl(a, amount))
            }
        }
    }

    pub(super) fn w_shr(&mut self, a: Word, bits: u32) -> Word {
        match (a, bits) {
            (_, 0) => a,
            (_, 64..) => Word::Const(0),
            (Word::Const(a), _) => Word::Const(a >> bits),
            (Word::Value(a), _) => {
                let amount = self.b.ins().iconst(I64, i64::from(bits));
                Word::Value(self.b.ins().ushr(a, amount))
            }
        }
    }

    /// Compares two words; the result is 0 or 1.
    pub(super) fn w_cmp(&mut self, cc: IntCC, a: Word, b: Word) -> Word {
        if let (Word::Const(a), Word::Const(b)) = (a, b) {
            let holds = match cc {
                IntCC::Equal => a == b,
                IntCC::NotEqual => a != b,
                IntCC::UnsignedLessThan => a < b,
                IntCC::UnsignedLessThanOrEqual => a <= b,
                IntCC::UnsignedGreaterThan => a > b,
                IntCC::UnsignedGreaterThanOrEqual => a >= b,
                _ => unreachable!("only unsigned comparisons are made of words"),
            };
            return Word::Const(u64::from(holds));
        }
        let (a, b) = (self.value(a), self.value(b));
        let flag = self.b.ins().icmp(cc, a, b);
        Word::Value(self.b.ins().uextend(I64, flag))
    }

    pub(super) fn w_choose(&mut self, condition: Word, then: Word, otherwise: Word) -> Word {
        match (condition, then, otherwise) {
            (Word::Const(0), ..) => otherwise,
            (Word::Const(_), ..) => then,
            (_, Word::Const(a), Word::Const(b)) if a == b => then,
            (_, Word::Value(a), Word::Value(b)) if a == b => then,
            (Word::Value(condition), ..) => {
                let (a, b) = (self.value(then), self.value(otherwise));
                Word::Value(self.b.ins().select(condition, a, b))
            }
        }
    }
}
