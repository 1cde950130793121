//! Emits checksums and hashes.
//!
//! The Internet checksum is a ones' complement sum of 16-bit words (RFC 1071, section 2): words may be added in any
//! order, several at a time, and in the other byte order if the final sum is byte-swapped. So neighbouring fields of a
//! header are added as they lie in memory, regardless of field boundaries.

use cranelift_codegen::ir::{InstBuilder, Value, types};
use ir::{Algorithm, Expr, HashInput, HeaderId, HeaderRef, LValue};

use super::Emit;
use super::header::ResolvedHeader;
use super::value::{Num, words_of};
use super::words::Word;
use crate::calls::ALGORITHMS;

/// Maximum size in bits of data that is concatenated in registers.
const MAX_JOINED_BITS: u32 = 2048;

/// A piece of the data that a checksum covers.
enum Piece<'a> {
    /// Whole bytes of a header as they lie in memory: from, to.
    Bytes(HeaderId, u32, u32),
    Value(&'a Expr),
}

/// Partial sums of an Internet checksum that is being generated.
#[derive(Clone, Copy)]
struct Sums {
    /// Sum of words read in the machine's byte order.
    turned: Word,
    /// Sum of everything else.
    plain: Word,
}

impl Emit<'_, '_> {
    pub(super) fn compute(&mut self, place: &LValue, algorithm: Algorithm, data: &[HashInput]) {
        let width = self.lvalue_width(place);
        let num = match self.summed(data).filter(|_| algorithm == Algorithm::Csum16) {
            Some((values, with_payload)) => {
                let kept = self.tracked_sum(data, |emit| emit.internet_checksum(&values, with_payload));
                let sum = kept.unwrap_or_else(|| self.internet_checksum(&values, with_payload));
                self.resize(&Num::word(sum, 16), width)
            }
            None => self.hash(algorithm, data, width),
        };
        self.write(place, &num);
    }

    /// Returns the data of an Internet checksum as values and whether the payload follows; `None` if it has other
    /// parts, or the payload does not begin at a byte.
    fn summed<'d>(&self, data: &'d [HashInput]) -> Option<(Vec<&'d Expr>, bool)> {
        let (values, with_payload) = match data {
            [values @ .., HashInput::Payload] => (values, true),
            values => (values, false),
        };
        let value = |piece: &'d HashInput| if let HashInput::Value(value) = piece { Some(value) } else { None };
        let values: Vec<&Expr> = values.iter().map(value).collect::<Option<_>>()?;
        (!with_payload || self.bits_of(&values).is_multiple_of(8)).then_some((values, with_payload))
    }

    fn bits_of(&self, values: &[&Expr]) -> u32 {
        values.iter().map(|value| self.program.width(value).expect("the validator checks expressions")).sum()
    }

    /// Returns the address and the length in bytes of the payload after the bits that parsers consumed.
    fn rest_of_packet(&mut self) -> (Value, Value) {
        let cursor = self.cursor();
        let begin = if self.layout.byte_cursor {
            cursor
        } else {
            let rounded = self.w_add(cursor, Word::Const(7));
            self.w_shr(rounded, 3)
        };
        let bytes = self.w_sub(Word::Value(self.length), begin);
        let from = self.w_add(Word::Value(self.packet), begin);
        (self.value(from), self.value(bytes))
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
                    let resolved = self.resolve(header);
                    let bits = self.varbit_width(resolved);
                    let (from, bits) = (self.varbit_place(resolved), self.value(bits));
                    self.call("cover_memory", &[self.frame, from, bits]);
                }
                HashInput::Payload => {
                    self.cover(&mut joined);
                    let (from, bytes) = self.rest_of_packet();
                    self.call("cover_payload", &[self.frame, from, bytes]);
                }
            }
        }
        self.cover(&mut joined);
        let number = ALGORITHMS.iter().position(|known| *known == algorithm).expect("every algorithm has a number");
        let (number, bits) = (self.number(number as u64), self.number(u64::from(width)));
        let out = self.scratch_words(words_of(width));
        self.call("hash", &[self.frame, number, bits, out]);
        self.unspill(out, width)
    }

    /// Covers the data concatenated so far.
    fn cover(&mut self, joined: &mut Num) {
        if joined.width == 0 {
            return;
        }
        let from = self.spill(joined);
        let bits = self.number(u64::from(joined.width));
        self.call("cover_value", &[self.frame, from, bits]);
        *joined = Num::number(0, 0);
    }

    /// Merges neighbouring fields of a header into runs that begin and end at a byte boundary.
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
                // Find the longest run that ends at a byte boundary.
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

    /// Computes the checksum of values, and of the payload if it follows them.
    fn internet_checksum(&mut self, values: &[&Expr], with_payload: bool) -> Word {
        let mut sums = Sums { turned: Word::Const(0), plain: Word::Const(0) };
        let mut at_bit = 0u32;
        for piece in self.pieces(values) {
            match piece {
                Piece::Bytes(header, begin, end) => {
                    let place = self.place_to_read(ResolvedHeader::One(header));
                    let mut at = begin;
                    while at < end {
                        let (flags, offset) = (self.flags.packet, at as i32);
                        let (bytes, word) = match end - at {
                            4.. => (4, self.b.ins().uload32(flags, place, offset)),
                            2.. => (2, self.b.ins().uload16(types::I64, flags, place, offset)),
                            _ => (1, self.b.ins().uload8(types::I64, flags, place, offset)),
                        };
                        let word = Word::Value(word);
                        // After an odd number of bytes the two byte orders swap.
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
                        let (low, high) = (self.w_and(*word, Word::Const(0xffff_ffff)), self.w_shr(*word, 32));
                        sums.plain = self.w_add(sums.plain, low);
                        if value.width > 32 {
                            sums.plain = self.w_add(sums.plain, high);
                        }
                    }
                }
            }
        }
        if with_payload {
            let (from, bytes) = self.rest_of_packet();
            let sum = self.call("payload_sum", &[from, bytes]).expect("the function returns a word");
            match at_bit % 16 {
                0 => sums.turned = self.w_add(sums.turned, Word::Value(sum)),
                _ => sums.plain = self.w_add(sums.plain, Word::Value(sum)),
            }
        }
        let sum = match (sums.turned, sums.plain) {
            (Word::Const(_), plain) => self.fold(plain),
            (turned, plain) => {
                let turned = self.fold(turned);
                let turned = self.value(turned);
                let turned = self.b.ins().ireduce(types::I16, turned);
                let turned = self.b.ins().bswap(turned);
                let turned = Word::Value(self.b.ins().uextend(types::I64, turned));
                match plain {
                    Word::Const(0) => turned,
                    plain => {
                        let sum = self.w_add(turned, plain);
                        self.fold(sum)
                    }
                }
            }
        };
        self.w_xor(sum, Word::Const(0xffff))
    }

    /// Folds a sum of fewer than 2^16 numbers of 32 bits to 16 bits with end-around carry: the halves are added to each
    /// other, and the upper half then holds the carry. Only a sum of 0 gives 0.
    pub(super) fn fold(&mut self, sum: Word) -> Word {
        let sum = match sum {
            Word::Const(sum) => {
                let half = (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32;
                return Word::Const(u64::from(half.wrapping_add(half.rotate_left(16)) >> 16));
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
