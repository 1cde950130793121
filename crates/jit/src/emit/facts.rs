//! Tracks facts that hold for every packet that reaches the current program point.
//!
//! Where the parser's path fixes the cursor and the position and validity of headers, they need not be read from
//! variables: a field is a load from the packet at a constant offset, and a validity test is no code at all. The
//! variable of every fact is kept up to date as well, so code without facts may follow code with many; an unread
//! variable costs nothing.

use std::collections::BTreeMap;

use cranelift_frontend::Variable;
use ir::{HeaderId, SlotId};

use super::Emit;
use super::words::Word;

/// The certain position of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// In its home.
    Home,
    /// At this byte offset in the packet.
    Packet(u64),
}

/// The facts at one program point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Whether code may be specialised for these facts: false for packets that the parser rejected, and after a join
    /// with paths that have fewer facts.
    pub is_special: bool,
    pub cursor: Option<u64>,
    pub error: Option<u64>,
    pub ending: Option<u64>,
    /// Whether the outgoing packet is certainly complete within its buffer.
    pub is_placed: bool,
    pub places: BTreeMap<HeaderId, Spot>,
    /// For each word of validity bits: a mask of the known bits, and their values.
    masks: BTreeMap<u32, (u64, u64)>,
    /// Values of one-word slots.
    pub slots: BTreeMap<SlotId, u64>,
    /// Whether each tracked checksum is valid.
    pub holds: BTreeMap<usize, bool>,
}

impl Facts {
    pub fn set_mask(&mut self, mask: u32, known: u64, value: u64) {
        let (old, bits) = self.masks.get(&mask).copied().unwrap_or_default();
        self.masks.insert(mask, (old | known, bits & !known | value & known));
    }

    pub fn forget_mask(&mut self, mask: u32, bits: u64) {
        if let Some((known, value)) = self.masks.get_mut(&mask) {
            *known &= !bits;
            *value &= *known;
        }
    }

    /// Returns a bit of a word of validity bits, if it is known.
    pub fn bit(&self, mask: u32, bit: u32) -> Option<bool> {
        let (known, value) = self.masks.get(&mask).copied().unwrap_or_default();
        (known >> bit & 1 == 1).then_some(value >> bit & 1 == 1)
    }

    /// Returns a whole word of validity bits, if it is known.
    pub fn mask(&self, mask: u32) -> Option<u64> {
        self.masks.get(&mask).filter(|(known, _)| *known == u64::MAX).map(|(_, value)| *value)
    }
}

impl Emit<'_, '_> {
    fn known_or(&mut self, known: Option<u64>, variable: Variable) -> Word {
        known.map_or_else(|| Word::Value(self.b.use_var(variable)), Word::Const)
    }

    /// Defines a variable as a word. Returns its value if it is constant.
    fn define(&mut self, variable: Variable, word: Word) -> Option<u64> {
        let value = self.value(word);
        self.b.def_var(variable, value);
        word.as_const()
    }

    pub(super) fn cursor(&mut self) -> Word {
        self.known_or(self.facts.cursor, self.cursor)
    }

    pub(super) fn set_cursor(&mut self, cursor: Word) {
        self.facts.cursor = self.define(self.cursor, cursor);
    }

    pub(super) fn error(&mut self) -> Word {
        self.known_or(self.facts.error, self.error)
    }

    pub(super) fn set_error(&mut self, error: Word) {
        self.facts.error = self.define(self.error, error);
    }

    pub(super) fn ending(&mut self) -> Word {
        self.known_or(self.facts.ending, self.ending)
    }

    pub(super) fn set_ending(&mut self, ending: u64) {
        self.facts.ending = self.define(self.ending, Word::Const(ending));
    }

    /// Returns a word of validity bits.
    pub(super) fn mask(&mut self, mask: u32) -> Word {
        self.known_or(self.facts.mask(mask), self.masks[mask as usize])
    }

    pub(super) fn set_bit(&mut self, mask: u32, bit: u32, valid: Word) {
        let old = self.mask(mask);
        let new = match valid {
            Word::Const(0) => self.w_and(old, Word::Const(!(1 << bit))),
            Word::Const(_) => self.w_or(old, Word::Const(1 << bit)),
            valid => {
                let others = self.w_and(old, Word::Const(!(1 << bit)));
                let placed = self.w_shl(valid, bit);
                self.w_or(others, placed)
            }
        };
        match valid {
            Word::Const(valid) => self.facts.set_mask(mask, 1 << bit, u64::from(valid != 0) << bit),
            Word::Value(_) => self.facts.forget_mask(mask, 1 << bit),
        }
        self.define(self.masks[mask as usize], new);
    }
}
