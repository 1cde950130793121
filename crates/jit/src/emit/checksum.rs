//! Checksums and hashes.
//!
//! The Internet checksum is a sum of 16-bit words in ones' complement, which forgives much (RFC 1071, section 2): words
//! may be added in any order and several at a time, and in the other byte order if the sum is turned around in the end.
//! So neighbouring fields of a header are added as they lie in memory, without a look at where one ends.

use cranelift_codegen::ir::{InstBuilder, types};
use ir::{Algorithm, Expr, HashInput, HeaderId, HeaderRef, LValue};

use super::Emit;
use super::header::Which;
use super::value::{Num, words_of};
use super::words::Word;
use crate::calls::ALGORITHMS;

/// More data than this is not joined in registers.
const MAX_JOINED_BITS: u32 = 2048;

/// A piece of what a checksum covers.
enum Piece<'a> {
    /// Whole bytes of a header as they lie in memory: from, to.
    Bytes(HeaderId, u32, u32),
    Value(&'a Expr),
}

/// The sums of an Internet checksum that is being generated.
#[derive(Clone, Copy)]
struct Sums {
    /// Of words read in the machine's byte order.
    turned: Word,
    /// Of everything else.
    plain: Word,
}

impl Emit<'_, '_> {
    pub(super) fn compute(&mut self, place: &LValue, algorithm: Algorithm, data: &[HashInput]) {
        let values: Option<Vec<&Expr>> =
            data.iter().map(|piece| if let HashInput::Value(value) = piece { Some(value) } else { None }).collect();
        let width = self.lvalue_width(place);
        let num = match values {
            Some(values) if algorithm == Algorithm::Csum16 => {
                let kept = self.kept_sum(data, |emit| emit.internet_checksum(&values));
                let sum = kept.unwrap_or_else(|| self.internet_checksum(&values));
                self.resize(&Num::word(sum, 16), width)
            }
            _ => self.hash(algorithm, data, width),
        };
        self.write(place, &num);
    }

    fn hash(&mut self, algorithm: Algorithm, data: &[HashInput], width: u32) -> Num {
        self.call("cover_nothing", &[self.frame]);
        let mut joined = Num::number(0, 0);
        for piece in data {
            match piece {
                HashInput::Value(value) => {
                    let value = self.expr(value);
                    if joined.width + value.width > MAX_JOINED_BITS {
                        self.cover(&mut joined);
                    }
                    joined = self.concat(&joined, &value);
                }
                HashInput::Varbit(header, _) => {
                    self.cover(&mut joined);
                    let which = self.which(header);
                    let bits = self.varbit_width(which);
                    let (from, bits) = (self.varbit_place(which), self.value(bits));
                    self.call("cover_memory", &[self.frame, from, bits]);
                }
                HashInput::Payload => {
                    self.cover(&mut joined);
                    let cursor = self.cursor();
                    let begin = match self.layout.byte_cursor {
                        true => cursor,
                        false => {
                            let rounded = self.w_add(cursor, Word::Known(7));
                            self.w_shr(rounded, 3)
                        }
                    };
                    let bytes = self.w_sub(Word::Value(self.length), begin);
                    let from = self.w_add(Word::Value(self.packet), begin);
                    let (from, bytes) = (self.value(from), self.value(bytes));
                    self.call("cover_payload", &[self.frame, from, bytes]);
                }
            }
        }
        self.cover(&mut joined);
        let number = ALGORITHMS.iter().position(|known| *known == algorithm).expect("every algorithm has a number");
        let (number, bits) = (self.number(number as u64), self.number(u64::from(width)));
        let out = self.room(words_of(width));
        self.call("hash", &[self.frame, number, bits, out]);
        self.unspill(out, width)
    }

    /// Covers what was joined so far.
    fn cover(&mut self, joined: &mut Num) {
        if joined.width == 0 {
            return;
        }
        let from = self.spill(joined);
        let bits = self.number(u64::from(joined.width));
        self.call("cover_value", &[self.frame, from, bits]);
        *joined = Num::number(0, 0);
    }

    /// Joins neighbouring fields of a header that begin and end with a byte.
    fn pieces<'e>(&self, values: &[&'e Expr]) -> Vec<Piece<'e>> {
        let field_of = |value: &Expr| match value {
            Expr::Field(HeaderRef::Header(header), field) => {
                let ty = self.layout.ty(self.program, *header);
                let width = self.program.layout(*header).fields[*field as usize].width;
                Some((*header, ty.offsets[*field as usize], width))
            }
            _ => None,
        };
        let mut pieces = Vec::new();
        let mut at_bit = 0;
        let mut rest = values;
        while let [value, others @ ..] = rest {
            let mut taken = 1;
            if let Some((header, begin, width)) = field_of(value)
                && begin.is_multiple_of(8)
                && at_bit % 8 == 0
            {
                // The longest run that ends with a byte.
                let (mut end, mut best) = (begin + width, None);
                if end.is_multiple_of(8) {
                    best = Some((1, end));
                }
                for (index, other) in others.iter().enumerate() {
                    match field_of(other) {
                        Some((same, offset, width)) if same == header && offset == end => end += width,
                        _ => break,
                    }
                    if end.is_multiple_of(8) {
                        best = Some((index + 2, end));
                    }
                }
                if let Some((count, end)) = best {
                    pieces.push(Piece::Bytes(header, begin / 8, end / 8));
                    at_bit += end - begin;
                    rest = &rest[count..];
                    continue;
                }
            }
            pieces.push(Piece::Value(value));
            at_bit += self.program.width(value).expect("the validator checks expressions");
            rest = &rest[std::mem::take(&mut taken)..];
        }
        pieces
    }

    fn internet_checksum(&mut self, values: &[&Expr]) -> Word {
        let mut sums = Sums { turned: Word::Known(0), plain: Word::Known(0) };
        let mut at_bit = 0u32;
        for piece in self.pieces(values) {
            match piece {
                Piece::Bytes(header, begin, end) => {
                    let place = self.place_to_read(Which::One(header));
                    let mut at = begin;
                    while at < end {
                        let (flags, offset) = (self.flags.packet, at as i32);
                        let (bytes, word) = match end - at {
                            4.. => (4, self.b.ins().uload32(flags, place, offset)),
                            2.. => (2, self.b.ins().uload16(types::I64, flags, place, offset)),
                            _ => (1, self.b.ins().uload8(types::I64, flags, place, offset)),
                        };
                        let word = Word::Value(word);
                        // Behind an odd number of bytes the two byte orders change places.
                        match at_bit % 16 {
                            0 => sums.turned = self.w_add(sums.turned, word),
                            _ => sums.plain = self.w_add(sums.plain, word),
                        }
                        at += bytes;
                    }
                    at_bit += (end - begin) * 8;
                }
                Piece::Value(value) => {
                    let value = self.expr(value);
                    at_bit += value.width;
                    let spare = (16 - at_bit % 16) % 16;
                    let value = self.shl_known(&value, spare, value.width + spare);
                    for word in &value.words {
                        let (low, high) = (self.w_and(*word, Word::Known(0xffff_ffff)), self.w_shr(*word, 32));
                        sums.plain = self.w_add(sums.plain, low);
                        if value.width > 32 {
                            sums.plain = self.w_add(sums.plain, high);
                        }
                    }
                }
            }
        }
        let sum = match (sums.turned, sums.plain) {
            (Word::Known(_), plain) => self.fold(plain),
            (turned, plain) => {
                let turned = self.fold(turned);
                let turned = self.value(turned);
                let turned = self.b.ins().ireduce(types::I16, turned);
                let turned = self.b.ins().bswap(turned);
                let turned = Word::Value(self.b.ins().uextend(types::I64, turned));
                match plain {
                    Word::Known(0) => turned,
                    plain => {
                        let sum = self.w_add(turned, plain);
                        self.fold(sum)
                    }
                }
            }
        };
        self.w_xor(sum, Word::Known(0xffff))
    }

    /// A sum of fewer than 2^16 numbers of 32 bits with the carries added in again, so that 16 bits are left: each half is
    /// added to the other, and the upper one has the carry then. Only a sum of 0 gives 0.
    pub(super) fn fold(&mut self, sum: Word) -> Word {
        let sum = match sum {
            Word::Known(sum) => {
                let half = (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32;
                return Word::Known(u64::from(half.wrapping_add(half.rotate_left(16)) >> 16));
            }
            Word::Value(sum) => sum,
        };
        let turned = self.b.ins().rotl_imm_u(sum, 32);
        let both = self.b.ins().iadd(sum, turned);
        let half = self.b.ins().ushr_imm_u(both, 32);
        let half = self.b.ins().ireduce(types::I32, half);
        let turned = self.b.ins().rotl_imm_u(half, 16);
        let both = self.b.ins().iadd(half, turned);
        let quarter = self.b.ins().ushr_imm_u(both, 16);
        Word::Value(self.b.ins().uextend(types::I64, quarter))
    }
}
