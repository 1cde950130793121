//! Emits the operators of the IR on bit vectors.

use bits::Bits;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, types::I64};
use ir::{BinaryOp, UnaryOp};

use super::Emit;
use super::value::{Num, words_of};
use super::words::Word;
use crate::calls::WIDE;

impl Emit<'_, '_> {
    pub(super) fn unary(&mut self, op: UnaryOp, a: &Num) -> Num {
        match op {
            UnaryOp::Not => {
                let words = a.words.iter().map(|word| self.w_xor(*word, Word::Const(u64::MAX))).collect();
                self.trim(Num { width: a.width, words })
            }
            UnaryOp::Neg => {
                let zero = Num::number(0, a.width);
                self.sub(&zero, a)
            }
        }
    }

    fn add(&mut self, a: &Num, b: &Num) -> Num {
        let mut carry = Word::Const(0);
        let mut words = Vec::new();
        for (index, (x, y)) in a.words.iter().zip(&b.words).enumerate() {
            let sum = self.w_add(*x, *y);
            let with_carry = self.w_add(sum, carry);
            words.push(with_carry);
            if index + 1 < a.words.len() {
                let first = self.w_cmp(IntCC::UnsignedLessThan, sum, *x);
                let second = self.w_cmp(IntCC::UnsignedLessThan, with_carry, sum);
                carry = self.w_or(first, second);
            }
        }
        self.trim(Num { width: a.width, words })
    }

    fn sub(&mut self, a: &Num, b: &Num) -> Num {
        let mut borrow = Word::Const(0);
        let mut words = Vec::new();
        for (index, (x, y)) in a.words.iter().zip(&b.words).enumerate() {
            let difference = self.w_sub(*x, *y);
            words.push(self.w_sub(difference, borrow));
            if index + 1 < a.words.len() {
                let first = self.w_cmp(IntCC::UnsignedLessThan, *x, *y);
                let second = self.w_cmp(IntCC::UnsignedLessThan, difference, borrow);
                borrow = self.w_or(first, second);
            }
        }
        self.trim(Num { width: a.width, words })
    }

    /// Returns the result of a saturating signed operation: `wrapped` unless it overflowed.
    fn saturate_signed(&mut self, overflowed: Word, negative: Word, wrapped: &Num) -> Num {
        let width = wrapped.width;
        if width == 0 {
            return wrapped.clone();
        }
        let lowest = Bits::new(1, width).shl(width - 1);
        let limit = self.choose(negative, &Num::known(&lowest), &Num::known(&lowest.not()));
        self.choose(overflowed, &limit, wrapped)
    }

    pub(super) fn binary(&mut self, op: BinaryOp, a: &Num, b: &Num) -> Num {
        let bit = |word| Num::word(word, 1);
        let width = a.width;
        match op {
            BinaryOp::Add => self.add(a, b),
            BinaryOp::Sub => self.sub(a, b),
            BinaryOp::And => self.each(a, b, Self::w_and),
            BinaryOp::Or => self.each(a, b, Self::w_or),
            BinaryOp::Xor => self.each(a, b, Self::w_xor),
            BinaryOp::Eq => bit(self.equal(a, b)),
            BinaryOp::Ne => bit(self.unequal(a, b)),
            BinaryOp::Lt => bit(self.less(a, b, false)),
            BinaryOp::Le => bit(self.less(a, b, true)),
            BinaryOp::LtSigned => bit(self.less_signed(a, b, false)),
            BinaryOp::LeSigned => bit(self.less_signed(a, b, true)),
            BinaryOp::AddSat => {
                let sum = self.add(a, b);
                let wrapped = self.less(&sum, a, false);
                self.choose(wrapped, &Num::known(&Bits::ones(width)), &sum)
            }
            BinaryOp::SubSat => {
                let below = self.less(a, b, false);
                let difference = self.sub(a, b);
                self.choose(below, &Num::number(0, width), &difference)
            }
            BinaryOp::AddSatSigned | BinaryOp::SubSatSigned => {
                let adds = op == BinaryOp::AddSatSigned;
                let result = if adds { self.add(a, b) } else { self.sub(a, b) };
                let (sign_a, sign_b) = (self.sign_bit(a), self.sign_bit(b));
                let sign = self.sign_bit(&result);
                let differ = self.w_xor(sign_a, sign_b);
                let may = if adds { self.w_xor(differ, Word::Const(1)) } else { differ };
                let turned = self.w_xor(sign, sign_a);
                let overflowed = self.w_and(may, turned);
                self.saturate_signed(overflowed, sign_a, &result)
            }
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem if width <= 64 => self.narrow_arithmetic(op, a, b),
            BinaryOp::Shl | BinaryOp::Shr | BinaryOp::ShrSigned => self.shift(op, a, b),
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => self.wide(op, a, b),
        }
    }

    fn each(&mut self, a: &Num, b: &Num, op: fn(&mut Self, Word, Word) -> Word) -> Num {
        let words = a.words.iter().zip(&b.words).map(|(a, b)| op(self, *a, *b)).collect();
        Num { width: a.width, words }
    }

    /// Computes products, quotients and remainders of at most 64 bits.
    fn narrow_arithmetic(&mut self, op: BinaryOp, a: &Num, b: &Num) -> Num {
        let width = a.width;
        if let (Some(a), Some(b)) = (a.constant(), b.constant()) {
            return Num::known(&match op {
                BinaryOp::Mul => a.mul(&b),
                BinaryOp::Div => a.div(&b),
                _ => a.rem(&b),
            });
        }
        let (x, y) = (self.value(a.low()), self.value(b.low()));
        if op == BinaryOp::Mul {
            let product = self.b.ins().imul(x, y);
            return self.trim(Num::word(Word::Value(product), width));
        }
        let divide = |e: &mut Self, y| match op {
            BinaryOp::Div => e.b.ins().udiv(x, y),
            _ => e.b.ins().urem(x, y),
        };
        match b.low() {
            Word::Const(0) => Num::number(0, width),
            Word::Const(_) => Num::word(Word::Value(divide(self, y)), width),
            Word::Value(_) => {
                let one = self.b.ins().iconst(I64, 1);
                let safe = self.b.ins().select(y, y, one);
                let result = divide(self, safe);
                let zero = self.b.ins().iconst(I64, 0);
                Num::word(Word::Value(self.b.ins().select(y, result, zero)), width)
            }
        }
    }

    fn shift(&mut self, op: BinaryOp, a: &Num, b: &Num) -> Num {
        let width = a.width;
        if width == 0 {
            return a.clone();
        }
        if let Some(amount) = b.constant() {
            let amount = amount.to_u64().map_or(width, |amount| amount.min(u64::from(width)) as u32);
            return match op {
                BinaryOp::Shl if amount >= width => Num::number(0, width),
                BinaryOp::Shl => self.shl_known(a, amount, width),
                BinaryOp::Shr => self.shifted_down(a, amount, width),
                _ => {
                    let kept = self.slice(a, amount.min(width - 1), width - amount.min(width - 1));
                    self.sign_extend(&kept, width)
                }
            };
        }
        if width > 64 {
            return self.wide(op, a, b);
        }
        // Amounts beyond the width count as the width.
        let mut high = Word::Const(0);
        for word in b.words.iter().skip(1) {
            high = self.w_or(high, *word);
        }
        let amount = self.value(b.low());
        let x = self.value(a.low());
        let limit = Word::Const(u64::from(width));
        let small = self.w_cmp(IntCC::UnsignedLessThan, Word::Value(amount), limit);
        let no_more = self.w_cmp(IntCC::Equal, high, Word::Const(0));
        let inside = self.w_and(small, no_more);
        match op {
            BinaryOp::Shl | BinaryOp::Shr => {
                let shifted = match op {
                    BinaryOp::Shl => self.b.ins().ishl(x, amount),
                    _ => self.b.ins().ushr(x, amount),
                };
                let word = self.w_choose(inside, Word::Value(shifted), Word::Const(0));
                self.trim(Num::word(word, width))
            }
            _ => {
                let amount = self.w_choose(inside, Word::Value(amount), Word::Const(63));
                let wide = self.sign_extend(a, 64);
                let (x, amount) = (self.value(wide.low()), self.value(amount));
                let shifted = self.b.ins().sshr(x, amount);
                self.trim(Num::word(Word::Value(shifted), width))
            }
        }
    }

    /// Calls a runtime function for an operation on more than 64 bits that is too long to be inlined.
    fn wide(&mut self, op: BinaryOp, a: &Num, b: &Num) -> Num {
        let number = WIDE.iter().position(|wide| *wide == op).expect("a wide operation") as i64;
        let (a_at, b_at) = (self.spill(a), self.spill(b));
        let out = self.scratch_words(words_of(a.width));
        let args = [
            self.b.ins().iconst(I64, number),
            a_at,
            self.b.ins().iconst(I64, i64::from(a.width)),
            b_at,
            self.b.ins().iconst(I64, i64::from(b.width)),
            out,
        ];
        self.call("wide_binary", &args);
        self.unspill(out, a.width)
    }
}
