//! Values while code is generated: bit vectors as 64-bit words, the least significant first, each a constant or an SSA
//! value. What is known folds here, so that the code generator need not be asked to optimise for it.
//!
//! The highest word has no bits beyond the width, ever: every operation that could set some clears them.

use bits::Bits;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, StackSlot, StackSlotData, StackSlotKind, Value, types::I64};
use ir::{BinaryOp, UnaryOp};

use super::Emit;
use crate::calls::WIDE;

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

/// A bit vector.
#[derive(Clone, Debug)]
pub(super) struct Num {
    pub width: u32,
    pub words: Vec<Word>,
}

/// Ones for the bits of the highest word of a value; all ones for a width of 0 or a multiple of 64.
pub(super) fn top_mask(width: u32) -> u64 {
    match width % 64 {
        0 => u64::MAX,
        bits => (1 << bits) - 1,
    }
}

pub(super) fn words_of(width: u32) -> usize {
    width.div_ceil(64) as usize
}

impl Num {
    pub fn known(value: &Bits) -> Num {
        let words = (0..words_of(value.width())).map(|index| Word::Known(value.word(index))).collect();
        Num { width: value.width(), words }
    }

    pub fn number(value: u64, width: u32) -> Num {
        Num::known(&Bits::new(u128::from(value), width))
    }

    /// One word of a value that has this width already.
    pub fn word(word: Word, width: u32) -> Num {
        Num { width, words: if width == 0 { Vec::new() } else { vec![word] } }
    }

    /// The lowest word.
    pub fn low(&self) -> Word {
        self.words.first().copied().unwrap_or(Word::Known(0))
    }

    /// The whole value, if all of it is known.
    pub fn constant(&self) -> Option<Bits> {
        let words: Option<Vec<u64>> =
            self.words.iter().map(|word| if let Word::Known(word) = word { Some(*word) } else { None }).collect();
        Some(Bits::from_words(&words?, self.width))
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

    /// Clears what is beyond the width.
    fn trim(&mut self, mut num: Num) -> Num {
        if let Some(top) = num.words.last().copied() {
            let last = num.words.len() - 1;
            num.words[last] = self.w_and(top, Word::Known(top_mask(num.width)));
        }
        num
    }

    /// The words from bit `low` on, as many as the width needs, zeros beyond the end.
    fn shifted_down(&mut self, a: &Num, low: u32, width: u32) -> Num {
        let (skip, bits) = ((low / 64) as usize, low % 64);
        let at = |index: usize| a.words.get(index).copied().unwrap_or(Word::Known(0));
        let words = (0..words_of(width)).map(|index| {
            let low_part = self.w_shr(at(index + skip), bits);
            if bits == 0 {
                return low_part;
            }
            let high_part = self.w_shl(at(index + skip + 1), 64 - bits);
            self.w_or(low_part, high_part)
        });
        let words = words.collect();
        Num { width, words }
    }

    /// Bits `low` and up, `width` of them.
    pub(super) fn slice(&mut self, a: &Num, low: u32, width: u32) -> Num {
        let num = self.shifted_down(a, low, width);
        if low + width >= a.width { num } else { self.trim(num) }
    }

    /// Zero-extended or cut.
    pub(super) fn resize(&mut self, a: &Num, width: u32) -> Num {
        if a.width == width {
            return a.clone();
        }
        self.slice(a, 0, width)
    }

    /// Shifted left by so many bits, in `width` bits.
    pub(super) fn shl_known(&mut self, a: &Num, by: u32, width: u32) -> Num {
        let (skip, bits) = ((by / 64) as usize, by % 64);
        let at = |index: isize| match usize::try_from(index) {
            Ok(index) => a.words.get(index).copied().unwrap_or(Word::Known(0)),
            Err(_) => Word::Known(0),
        };
        let mut words = Vec::new();
        for index in 0..words_of(width) {
            let from = index as isize - skip as isize;
            let high_part = self.w_shl(at(from), bits);
            let low_part = if bits == 0 { Word::Known(0) } else { self.w_shr(at(from - 1), 64 - bits) };
            words.push(self.w_or(high_part, low_part));
        }
        let num = Num { width, words };
        if u64::from(a.width) + u64::from(by) <= u64::from(width) { num } else { self.trim(num) }
    }

    /// `high` followed by `low`.
    pub(super) fn concat(&mut self, high: &Num, low: &Num) -> Num {
        let width = high.width + low.width;
        let mut num = self.shl_known(high, low.width, width);
        for (index, word) in low.words.iter().enumerate() {
            num.words[index] = self.w_or(num.words[index], *word);
        }
        num
    }

    /// All ones if the sign bit is set, else 0.
    fn sign_words(&mut self, a: &Num) -> Word {
        if a.width == 0 {
            return Word::Known(0);
        }
        let top = *a.words.last().expect("a value with bits has words");
        let sign = self.w_shr(top, (a.width - 1) % 64);
        self.w_sub(Word::Known(0), sign)
    }

    pub(super) fn sign_extend(&mut self, a: &Num, width: u32) -> Num {
        let mut num = self.resize(a, width);
        if width <= a.width || a.width == 0 {
            return num;
        }
        let sign = self.sign_words(a);
        for index in (a.width / 64) as usize..num.words.len() {
            let fill = if index == (a.width / 64) as usize { self.w_shl(sign, a.width % 64) } else { sign };
            num.words[index] = self.w_or(num.words[index], fill);
        }
        self.trim(num)
    }

    pub(super) fn unary(&mut self, op: UnaryOp, a: &Num) -> Num {
        match op {
            UnaryOp::Not => {
                let words = a.words.iter().map(|word| self.w_xor(*word, Word::Known(u64::MAX))).collect();
                self.trim(Num { width: a.width, words })
            }
            UnaryOp::Neg => {
                let zero = Num::number(0, a.width);
                self.sub(&zero, a)
            }
        }
    }

    fn add(&mut self, a: &Num, b: &Num) -> Num {
        let mut carry = Word::Known(0);
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
        let mut borrow = Word::Known(0);
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

    pub(super) fn equal(&mut self, a: &Num, b: &Num) -> Word {
        self.compare(IntCC::Equal, a, b)
    }

    pub(super) fn unequal(&mut self, a: &Num, b: &Num) -> Word {
        self.compare(IntCC::NotEqual, a, b)
    }

    fn compare(&mut self, cc: IntCC, a: &Num, b: &Num) -> Word {
        if let ([x], [y]) = (&a.words[..], &b.words[..]) {
            return self.w_cmp(cc, *x, *y);
        }
        let mut different = Word::Known(0);
        for (x, y) in a.words.iter().zip(&b.words) {
            let bits = self.w_xor(*x, *y);
            different = self.w_or(different, bits);
        }
        self.w_cmp(cc, different, Word::Known(0))
    }

    /// Unsigned `a < b`, or `a <= b`.
    pub(super) fn less(&mut self, a: &Num, b: &Num, or_equal: bool) -> Word {
        let (strict, last) = match or_equal {
            true => (IntCC::UnsignedLessThan, IntCC::UnsignedLessThanOrEqual),
            false => (IntCC::UnsignedLessThan, IntCC::UnsignedLessThan),
        };
        let mut result = Word::Known(u64::from(or_equal));
        for (index, (x, y)) in a.words.iter().zip(&b.words).enumerate() {
            if index == 0 {
                result = self.w_cmp(last, *x, *y);
                continue;
            }
            let less = self.w_cmp(strict, *x, *y);
            let equal = self.w_cmp(IntCC::Equal, *x, *y);
            let below = self.w_and(equal, result);
            result = self.w_or(less, below);
        }
        result
    }

    pub(super) fn less_signed(&mut self, a: &Num, b: &Num, or_equal: bool) -> Word {
        let (a, b) = (self.flip_sign(a), self.flip_sign(b));
        self.less(&a, &b, or_equal)
    }

    /// The sign bit inverted, which turns the signed order into the unsigned one.
    fn flip_sign(&mut self, a: &Num) -> Num {
        let mut num = a.clone();
        if let Some(top) = num.words.last_mut() {
            let sign = 1u64 << ((a.width - 1) % 64);
            *top = match *top {
                Word::Known(word) => Word::Known(word ^ sign),
                word => self.w_xor(word, Word::Known(sign)),
            };
        }
        num
    }

    pub(super) fn choose(&mut self, condition: Word, then: &Num, otherwise: &Num) -> Num {
        let words = then.words.iter().zip(&otherwise.words);
        let words = words.map(|(then, otherwise)| self.w_choose(condition, *then, *otherwise)).collect();
        Num { width: then.width, words }
    }

    fn sign_bit(&mut self, a: &Num) -> Word {
        match a.width {
            0 => Word::Known(0),
            width => {
                let top = *a.words.last().expect("a value with bits has words");
                self.w_shr(top, (width - 1) % 64)
            }
        }
    }

    /// The result of a signed operation that saturates: `wrapped` unless it overflowed.
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
                let may = if adds { self.w_xor(differ, Word::Known(1)) } else { differ };
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

    /// Products, quotients and remainders of at most 64 bits.
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
            Word::Known(0) => Num::number(0, width),
            Word::Known(_) => Num::word(Word::Value(divide(self, y)), width),
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
        let mut high = Word::Known(0);
        for word in b.words.iter().skip(1) {
            high = self.w_or(high, *word);
        }
        let amount = self.value(b.low());
        let x = self.value(a.low());
        let limit = Word::Known(u64::from(width));
        let small = self.w_cmp(IntCC::UnsignedLessThan, Word::Value(amount), limit);
        let no_more = self.w_cmp(IntCC::Equal, high, Word::Known(0));
        let inside = self.w_and(small, no_more);
        match op {
            BinaryOp::Shl | BinaryOp::Shr => {
                let shifted = match op {
                    BinaryOp::Shl => self.b.ins().ishl(x, amount),
                    _ => self.b.ins().ushr(x, amount),
                };
                let word = self.w_choose(inside, Word::Value(shifted), Word::Known(0));
                self.trim(Num::word(word, width))
            }
            _ => {
                let amount = self.w_choose(inside, Word::Value(amount), Word::Known(63));
                let wide = self.sign_extend(a, 64);
                let (x, amount) = (self.value(wide.low()), self.value(amount));
                let shifted = self.b.ins().sshr(x, amount);
                self.trim(Num::word(Word::Value(shifted), width))
            }
        }
    }

    /// Operations on more than 64 bits that are too long to be inlined.
    fn wide(&mut self, op: BinaryOp, a: &Num, b: &Num) -> Num {
        let number = WIDE.iter().position(|wide| *wide == op).expect("a wide operation") as i64;
        let (a_at, b_at) = (self.spill(a), self.spill(b));
        let out = self.room(words_of(a.width));
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

    /// The address of so many words of stack.
    pub(super) fn room(&mut self, words: usize) -> Value {
        let slot = self.stack_slot(words);
        self.b.ins().stack_addr(I64, slot, 0)
    }

    /// So many words of stack.
    pub(super) fn stack_slot(&mut self, words: usize) -> StackSlot {
        let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, words.max(1) as u32 * 8, 3);
        self.b.create_sized_stack_slot(slot)
    }

    /// The address of a value's words on the stack.
    pub(super) fn spill(&mut self, num: &Num) -> Value {
        let at = self.room(num.words.len());
        self.put_words(num, at, 0);
        at
    }

    /// Writes a value's words to memory of ours, `word` words behind an address.
    pub(super) fn put_words(&mut self, num: &Num, at: Value, word: usize) {
        for (index, part) in num.words.iter().enumerate() {
            let part = self.value(*part);
            self.b.ins().store(self.flags.stack, part, at, ((word + index) * 8) as i32);
        }
    }

    /// The value whose words are there.
    pub(super) fn unspill(&mut self, at: Value, width: u32) -> Num {
        let words = (0..words_of(width))
            .map(|index| Word::Value(self.b.ins().load(I64, self.flags.stack, at, (index * 8) as i32)));
        let words = words.collect();
        Num { width, words }
    }

    /// Whether a value is not 0, for branches.
    pub(super) fn truth(&mut self, num: &Num) -> Word {
        match &num.words[..] {
            [] => Word::Known(0),
            [one] => *one,
            _ => {
                let zero = Num::number(0, num.width);
                self.unequal(num, &zero)
            }
        }
    }

    /// A value as an index: all ones if it does not fit into 64 bits, which is beyond the end of everything.
    pub(super) fn index(&mut self, num: &Num) -> Word {
        let mut high = Word::Known(0);
        for word in num.words.iter().skip(1) {
            high = self.w_or(high, *word);
        }
        let fits = self.w_cmp(IntCC::Equal, high, Word::Known(0));
        self.w_choose(fits, num.low(), Word::Known(u64::MAX))
    }
}
