//! Splits what is wider than 64 bits into pieces, so that each value fits a register.
//!
//! Slots, fields of headers, elements of keys, parameters and constant entries become several, most significant first.
//! An expression becomes one for each piece of its value ([`parts`]). Multiplications, shifts by computed amounts and
//! the like are not split: they become a constant that is too wide, and the emitter hands over where it meets one.
//!
//! All pieces but the first of a value have 64 bits, and end at multiples of 64 bits from its end. So the writer splits
//! arguments and keys by their width alone. Fields are split elsewhere if they do not end with a byte: no piece touches
//! more than eight bytes of the packet, so a field of 64 bits may have two.

mod bodies;
mod objects;
mod parts;

pub(crate) use objects::split_value;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

use bits::Bits;
use ir::{Expr, HeaderField, HeaderRef, HeaderType, HeaderTypeId, LValue, Program, Slot, SlotId};

/// Maximum width in bits of a value that is not split.
const WORD: u32 = 64;
/// Maximum width in bits of a value that is split. Wider ones are handed over.
const MAX_SPLIT: u32 = 2048;
/// Maximum number of expressions that one expression may become. More are handed over.
const MAX_PARTS: u32 = 1000;
/// Maximum number of expressions that all expressions of a program may become.
pub(crate) const MAX_ALL_PARTS: u32 = 20_000;

/// Some adjacent bits of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WordPiece {
    /// Number of bits behind it.
    pub low: u32,
    /// Number of bits, at most 64 if the value is split.
    pub width: u32,
}

impl WordPiece {
    /// Returns the piece of a value.
    pub fn of(self, value: &Bits) -> Bits {
        if self.width == value.width() { value.clone() } else { value.slice(self.low + self.width - 1, self.low) }
    }
}

/// Returns the pieces of a value, most significant first. A value of at most 64 bits is one piece, and so is one that
/// is too wide to be split.
pub(crate) fn pieces(width: u32) -> impl DoubleEndedIterator<Item = WordPiece> {
    let size = if width > MAX_SPLIT { width } else { WORD };
    (0..width.div_ceil(size).max(1)).rev().map(move |number| {
        let low = number * size;
        WordPiece { low, width: size.min(width - low) }
    })
}

/// Returns the words of a value, most significant first.
pub(crate) fn words_of(value: &Bits) -> impl Iterator<Item = u64> {
    pieces(value.width()).map(|piece| value.word(piece.low as usize / WORD as usize))
}

/// Returns the program with all wide values split; its expressions become at most `parts` in all. It has the same
/// slots, bodies and objects with the same numbers, and more slots behind them.
pub(crate) fn split(program: &Program, parts: u32) -> Program {
    let mut splitter = Splitter::new(program, parts);
    splitter.objects();
    splitter.bodies();
    splitter.split
}

/// A part of a place.
type PlacePart = (LValue, WordPiece);

struct Splitter<'p> {
    program: &'p Program,
    split: Program,
    /// The slots that a wide slot became.
    slots: BTreeMap<SlotId, Vec<SlotId>>,
    /// The fields that each field of a header became.
    fields: BTreeMap<HeaderTypeId, Vec<Range<u32>>>,
    /// Number of expressions that may still be made for this one, and in all.
    left: Cell<u32>,
    all_left: Cell<u32>,
}

impl<'p> Splitter<'p> {
    fn new(program: &'p Program, parts: u32) -> Splitter<'p> {
        let mut split = program.clone();
        let mut slots = BTreeMap::new();
        for (id, slot) in program.slots.iter().filter(|(_, slot)| (WORD + 1..=MAX_SPLIT).contains(&slot.width)) {
            let part = |piece: WordPiece| Slot { name: name(&slot.name, piece), width: piece.width, ..slot.clone() };
            slots.insert(id, pieces(slot.width).map(|piece| split.slots.push(part(piece))).collect());
        }
        let mut fields = BTreeMap::new();
        for (id, ty) in &program.header_types {
            let (parts, ranges) = split_fields(ty);
            split.header_types[id].fields = parts;
            fields.insert(id, ranges);
        }
        Splitter { program, split, slots, fields, left: Cell::new(0), all_left: Cell::new(parts) }
    }

    /// Returns the width of an expression of the program that is split.
    fn width(&self, expr: &Expr) -> u32 {
        self.program.width(expr).unwrap_or(0)
    }

    /// Returns the parts of a place, most significant first; `None` for elements of stacks.
    fn place_parts(&self, place: &LValue) -> Option<Vec<PlacePart>> {
        match place {
            LValue::Slot(slot) => {
                let width = self.program.slots[*slot].width;
                let parts = self.slots.get(slot).cloned().unwrap_or_else(|| vec![*slot]);
                Some(parts.into_iter().map(LValue::Slot).zip(pieces(width)).collect())
            }
            LValue::Field(HeaderRef::Header(header), field) => {
                let ty = self.program.headers[*header].ty;
                let range = self.fields[&ty][*field as usize].clone();
                let widths = range.clone().map(|part| self.split.header_types[ty].fields[part as usize].width);
                let mut low = self.program.header_types[ty].fields[*field as usize].width;
                let parts = range.zip(widths).map(|(part, width)| {
                    low -= width;
                    (LValue::Field(HeaderRef::Header(*header), part), WordPiece { low, width })
                });
                Some(parts.collect())
            }
            LValue::Field(HeaderRef::Element(..), _) => None,
        }
    }
}

/// Returns the fields of a header in parts, and the parts of each field. Headers with a varbit field stay as they are.
fn split_fields(ty: &HeaderType) -> (Vec<HeaderField>, Vec<Range<u32>>) {
    let (mut parts, mut ranges, mut start) = (Vec::new(), Vec::new(), 0);
    for field in &ty.fields {
        let first = parts.len();
        // From the end to the start: each part begins at most seven bytes before its last one.
        let mut end = start + field.width;
        while ty.varbit_field().is_none() && field.width <= MAX_SPLIT && end > start {
            let begin = (((end - 1) / 8 * 8).saturating_sub(WORD - 8)).max(start);
            let piece = WordPiece { low: start + field.width - end, width: end - begin };
            parts.insert(first, HeaderField { name: name(&field.name, piece), width: piece.width, ..field.clone() });
            end = begin;
        }
        match parts.len() - first {
            0 => parts.push(field.clone()),
            1 => parts[first].name.clone_from(&field.name),
            _ => {}
        }
        ranges.push(first as u32..parts.len() as u32);
        start += field.width;
    }
    (parts, ranges)
}

fn name(whole: &str, piece: WordPiece) -> String {
    format!("{whole}[{}:{}]", piece.low + piece.width - 1, piece.low)
}

/// Returns the value that stands for what is not split: it is too wide for the emitter.
fn too_wide() -> Expr {
    Expr::Const(Bits::zero(WORD + 1))
}

fn read(place: LValue) -> Expr {
    match place {
        LValue::Slot(slot) => Expr::Slot(slot),
        LValue::Field(header, field) => Expr::Field(header, field),
    }
}
