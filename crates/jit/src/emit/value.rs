//! Represents values during code generation: bit vectors as words, least significant first.
//!
//! The highest word never has bits beyond the width: every operation that could set some clears them.

use bits::Bits;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, StackSlot, StackSlotData, StackSlotKind, Value, types::I64};

use super::Emit;
use super::words::Word;

/// A bit vector.
#[derive(Clone, Debug)]
pub(super) struct Num {
    pub width: u32,
    pub words: Vec<Word>,
}

/// Returns the mask of the valid bits of the highest word; all ones for a width of 0 or a multiple of 64.
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
        let words = (0..words_of(value.width())).map(|index| Word::Const(value.word(index))).collect();
        Num { width: value.width(), words }
    }

    pub fn number(value: u64, width: u32) -> Num {
        Num::known(&Bits::new(u128::from(value), width))
    }

    /// Creates a value from one word that has this width already.
    pub fn word(word: Word, width: u32) -> Num {
        Num { width, words: if width == 0 { Vec::new() } else { vec![word] } }
    }

    /// Returns the lowest word.
    pub fn low(&self) -> Word {
        self.words.first().copied().unwrap_or(Word::Const(0))
    }

    /// Returns the whole value, if all of it is constant.
    pub fn constant(&self) -> Option<Bits> {
        let words: Option<Vec<u64>> = self.words.iter().map(|word| word.as_const()).collect();
        Some(Bits::from_words(&words?, self.width))
    }
}

impl Emit<'_, '_> {
    /// Clears the bits beyond the width.
    pub(super) fn trim(&mut self, mut num: Num) -> Num {
        if let Some(top) = num.words.last().copied() {
            let last = num.words.len() - 1;
            num.words[last] = self.w_and(top, Word::Const(top_mask(num.width)));
        }
        num
    }

    /// Returns the words from bit `low` on, as many as the width needs, with zeros beyond the end.
    pub(super) fn shifted_down(&mut self, a: &Num, low: u32, width: u32) -> Num {
        let (skip, bits) = ((low / 64) as usize, low % 64);
        let at = |index: usize| a.words.get(index).copied().unwrap_or(Word::Const(0));
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

    /// Returns `width` bits from bit `low` on.
    pub(super) fn slice(&mut self, a: &Num, low: u32, width: u32) -> Num {
        let num = self.shifted_down(a, low, width);
        if low + width >= a.width { num } else { self.trim(num) }
    }

    /// Zero-extends or truncates.
    pub(super) fn resize(&mut self, a: &Num, width: u32) -> Num {
        if a.width == width {
            return a.clone();
        }
        self.slice(a, 0, width)
    }

    /// Shifts left by a constant number of bits, in `width` bits.
    pub(super) fn shl_known(&mut self, a: &Num, by: u32, width: u32) -> Num {
        let (skip, bits) = ((by / 64) as usize, by % 64);
        let at = |index: isize| match usize::try_from(index) {
            Ok(index) => a.words.get(index).copied().unwrap_or(Word::Const(0)),
            Err(_) => Word::Const(0),
        };
        let mut words = Vec::new();
        for index in 0..words_of(width) {
            let from = index as isize - skip as isize;
            let high_part = self.w_shl(at(from), bits);
            let low_part = if bits == 0 { Word::Const(0) } else { self.w_shr(at(from - 1), 64 - bits) };
            words.push(self.w_or(high_part, low_part));
        }
        let num = Num { width, words };
        if u64::from(a.width) + u64::from(by) <= u64::from(width) { num } else { self.trim(num) }
    }

    /// Concatenates `high` and `low`.
    pub(super) fn concat(&mut self, high: &Num, low: &Num) -> Num {
        let width = high.width + low.width;
        let mut num = self.shl_known(high, low.width, width);
        for (index, word) in low.words.iter().enumerate() {
            num.words[index] = self.w_or(num.words[index], *word);
        }
        num
    }

    /// Returns all ones if the sign bit is set, else 0.
    fn sign_words(&mut self, a: &Num) -> Word {
        let sign = self.sign_bit(a);
        self.w_sub(Word::Const(0), sign)
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
        let mut different = Word::Const(0);
        for (x, y) in a.words.iter().zip(&b.words) {
            let bits = self.w_xor(*x, *y);
            different = self.w_or(different, bits);
        }
        self.w_cmp(cc, different, Word::Const(0))
    }

    /// Compares unsigned: `a < b`, or `a <= b`.
    pub(super) fn less(&mut self, a: &Num, b: &Num, or_equal: bool) -> Word {
        let (strict, last) = if or_equal {
            (IntCC::UnsignedLessThan, IntCC::UnsignedLessThanOrEqual)
        } else {
            (IntCC::UnsignedLessThan, IntCC::UnsignedLessThan)
        };
        let mut result = Word::Const(u64::from(or_equal));
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

    /// Inverts the sign bit, which maps the signed order to the unsigned one.
    fn flip_sign(&mut self, a: &Num) -> Num {
        let mut num = a.clone();
        if let Some(top) = num.words.last_mut() {
            let sign = 1u64 << ((a.width - 1) % 64);
            *top = self.w_xor(*top, Word::Const(sign));
        }
        num
    }

    pub(super) fn choose(&mut self, condition: Word, then: &Num, otherwise: &Num) -> Num {
        let words = then.words.iter().zip(&otherwise.words);
        let words = words.map(|(then, otherwise)| self.w_choose(condition, *then, *otherwise)).collect();
        Num { width: then.width, words }
    }

    /// Returns the highest bit; 0 for a value without bits.
    pub(super) fn sign_bit(&mut self, a: &Num) -> Word {
        match a.width {
            0 => Word::Const(0),
            width => {
                let top = *a.words.last().expect("a value with bits has words");
                self.w_shr(top, (width - 1) % 64)
            }
        }
    }

    /// Returns the address of this many words of stack.
    pub(super) fn scratch_words(&mut self, words: usize) -> Value {
        let slot = self.stack_slot(words);
        self.b.ins().stack_addr(I64, slot, 0)
    }

    /// Allocates this many words of stack.
    pub(super) fn stack_slot(&mut self, words: usize) -> StackSlot {
        let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, words.max(1) as u32 * 8, 3);
        self.b.create_sized_stack_slot(slot)
    }

    /// Spills a value to the stack and returns the address of its words.
    pub(super) fn spill(&mut self, num: &Num) -> Value {
        let at = self.scratch_words(num.words.len());
        self.put_words(num, at, 0);
        at
    }

    /// Stores a value's words to private memory, `word` words after an address.
    pub(super) fn put_words(&mut self, num: &Num, at: Value, word: usize) {
        for (index, part) in num.words.iter().enumerate() {
            let part = self.value(*part);
            self.b.ins().store(self.flags.stack, part, at, ((word + index) * 8) as i32);
        }
    }

    /// Loads a value from the address of its words.
    pub(super) fn unspill(&mut self, at: Value, width: u32) -> Num {
        let words = (0..words_of(width))
            .map(|index| Word::Value(self.b.ins().load(I64, self.flags.stack, at, (index * 8) as i32)));
        let words = words.collect();
        Num { width, words }
    }

    /// Whether a value is not 0, for branches.
    pub(super) fn truth(&mut self, num: &Num) -> Word {
        match &num.words[..] {
            [] => Word::Const(0),
            [one] => *one,
            _ => {
                let zero = Num::number(0, num.width);
                self.unequal(num, &zero)
            }
        }
    }

    /// Returns a value as an index: all ones if it does not fit into 64 bits, which is beyond the end of every array.
    pub(super) fn index(&mut self, num: &Num) -> Word {
        let mut high = Word::Const(0);
        for word in num.words.iter().skip(1) {
            high = self.w_or(high, *word);
        }
        let fits = self.w_cmp(IntCC::Equal, high, Word::Const(0));
        self.w_choose(fits, num.low(), Word::Const(u64::MAX))
    }
}
