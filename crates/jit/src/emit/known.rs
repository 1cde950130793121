//! What is known of a packet while code is generated.
//!
//! Where the parser's path fixes the cursor, the places and the validity of headers, they need not be looked for in
//! registers: a field is a load from the packet at a constant offset, a test of validity is no code at all. Everything
//! that is known is in its variable as well, so code that knows nothing may follow on code that knows much; a variable
//! that nobody reads costs nothing.

use std::collections::{BTreeMap, BTreeSet};

use cranelift_frontend::Variable;
use ir::{HeaderId, SlotId};

use super::Emit;
use super::words::Word;

/// Where a header certainly lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// In its home.
    Home,
    /// So many bytes behind the packet's first.
    Packet(u64),
}

/// What is known at one place in the code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// Whether code may be made for what is known: nothing is said of packets that the parser refused, or that go where
    /// others go that less is known of.
    pub is_special: bool,
    pub cursor: Option<u64>,
    pub error: Option<u64>,
    pub ending: Option<u64>,
    /// Whether the outgoing packet is certainly made, within the buffer.
    pub is_placed: bool,
    pub places: BTreeMap<HeaderId, Spot>,
    /// For each word of validity bits: which of them are known, and these.
    masks: BTreeMap<u32, (u64, u64)>,
    /// Values of slots of one word.
    pub slots: BTreeMap<SlotId, u64>,
    /// Whether checksums that are kept hold.
    pub holds: BTreeMap<usize, bool>,
}

impl Known {
    /// Forgets what does not matter where only these slots are looked at.
    pub fn keep_slots(&mut self, live: &BTreeSet<SlotId>) {
        self.slots.retain(|slot, _| live.contains(slot));
    }

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

    /// A bit of a word of validity bits.
    pub fn bit(&self, mask: u32, bit: u32) -> Option<bool> {
        let (known, value) = self.masks.get(&mask).copied().unwrap_or_default();
        (known >> bit & 1 == 1).then_some(value >> bit & 1 == 1)
    }

    /// All of a word of validity bits.
    pub fn mask(&self, mask: u32) -> Option<u64> {
        self.masks.get(&mask).filter(|(known, _)| *known == u64::MAX).map(|(_, value)| *value)
    }
}

impl Emit<'_, '_> {
    fn known_or(&mut self, known: Option<u64>, variable: Variable) -> Word {
        known.map_or_else(|| Word::Value(self.b.use_var(variable)), Word::Known)
    }

    /// Puts a word into its variable. Returns what is known of it.
    fn note(&mut self, variable: Variable, word: Word) -> Option<u64> {
        let value = self.value(word);
        self.b.def_var(variable, value);
        word.known()
    }

    pub(super) fn cursor(&mut self) -> Word {
        self.known_or(self.known.cursor, self.cursor)
    }

    pub(super) fn set_cursor(&mut self, cursor: Word) {
        self.known.cursor = self.note(self.cursor, cursor);
    }

    pub(super) fn error(&mut self) -> Word {
        self.known_or(self.known.error, self.error)
    }

    pub(super) fn set_error(&mut self, error: Word) {
        self.known.error = self.note(self.error, error);
    }

    pub(super) fn ending(&mut self) -> Word {
        self.known_or(self.known.ending, self.ending)
    }

    pub(super) fn set_ending(&mut self, ending: u64) {
        self.known.ending = self.note(self.ending, Word::Known(ending));
    }

    /// A word of validity bits.
    pub(super) fn mask(&mut self, mask: u32) -> Word {
        self.known_or(self.known.mask(mask), self.masks[mask as usize])
    }

    pub(super) fn set_bit(&mut self, mask: u32, bit: u32, valid: Word) {
        let old = self.mask(mask);
        let new = match valid {
            Word::Known(0) => self.w_and(old, Word::Known(!(1 << bit))),
            Word::Known(_) => self.w_or(old, Word::Known(1 << bit)),
            valid => {
                let others = self.w_and(old, Word::Known(!(1 << bit)));
                let placed = self.w_shl(valid, bit);
                self.w_or(others, placed)
            }
        };
        match valid {
            Word::Known(valid) => self.known.set_mask(mask, 1 << bit, u64::from(valid != 0) << bit),
            Word::Value(_) => self.known.forget_mask(mask, 1 << bit),
        }
        self.note(self.masks[mask as usize], new);
    }
}
