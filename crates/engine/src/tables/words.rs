//! Packs keys into machine words, for fast executors and for hashing backends.
//!
//! The packing is that of the `tables` crate ([`tables::KeyLayout`]): elements of up to 64 bits share words in order as
//! long as they fit, wider ones begin a word. The matched elements come first; selectors begin a new word after them.

use bits::Bits;
use ir::MatchKind;
use smallvec::SmallVec;
use tables::{FieldKind, KeyLayout};

/// A key in words.
pub type Words = SmallVec<[u64; 4]>;

/// The position of a key element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordPlace {
    /// Index of its first word.
    pub word: usize,
    /// Its lowest bit in that word; 0 for elements of more than 64 bits.
    pub shift: u32,
    /// Its width in bits.
    pub width: u32,
}

impl WordPlace {
    /// Returns the number of words that hold a part of it.
    pub fn words(&self) -> usize {
        (self.width as usize).div_ceil(64)
    }

    /// Stores a value there; the bits must be clear.
    pub fn put(&self, words: &mut [u64], value: &Bits) {
        if self.width <= 64 {
            if self.width > 0 {
                words[self.word] |= value.low_u64() << self.shift;
            }
            return;
        }
        for at in 0..self.words() {
            words[self.word + at] |= value.word(at);
        }
    }

    /// Returns the value that is stored there.
    pub fn get(&self, words: &[u64]) -> Bits {
        match self.width {
            0 => Bits::zero(0),
            1..=64 => Bits::new(u128::from(words[self.word] >> self.shift), self.width),
            _ => Bits::from_words(&words[self.word..self.word + self.words()], self.width),
        }
    }
}

/// The positions of a key's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyWords {
    /// Positions, in the order of the elements.
    pub places: Vec<WordPlace>,
    /// Number of words of the matched elements, which come first.
    pub matched: usize,
    /// Total number of words.
    pub words: usize,
}

/// Returns the field kind of the `tables` crate for a match kind.
fn field_kind(kind: MatchKind) -> FieldKind {
    match kind {
        MatchKind::Exact | MatchKind::Selector => FieldKind::Exact,
        MatchKind::Lpm => FieldKind::Prefix,
        MatchKind::Ternary | MatchKind::Optional => FieldKind::Masked,
        MatchKind::Range => FieldKind::Range,
    }
}

impl KeyWords {
    /// Returns the layout of the matched elements, for the `tables` crate.
    pub(super) fn layout(shape: &[super::KeyShape]) -> KeyLayout {
        KeyLayout::new(shape.iter().map(|key| (key.width, field_kind(key.kind))))
    }

    /// Lays out elements of these widths and kinds.
    pub fn new(elements: impl IntoIterator<Item = (u32, MatchKind)>) -> Self {
        let elements: Vec<_> = elements.into_iter().collect();
        let mut places = vec![WordPlace { word: 0, shift: 0, width: 0 }; elements.len()];
        let (mut matched, mut words) = (0, 0);
        for selectors in [false, true] {
            let these: Vec<usize> =
                (0..elements.len()).filter(|at| (elements[*at].1 == MatchKind::Selector) == selectors).collect();
            let layout = KeyLayout::new(these.iter().map(|at| (elements[*at].0, field_kind(elements[*at].1))));
            for (at, field) in these.into_iter().zip(layout.fields()) {
                places[at] = WordPlace { word: words + field.word, shift: field.shift, width: field.width };
            }
            words += layout.words();
            if !selectors {
                matched = words;
            }
        }
        KeyWords { places, matched, words }
    }

    /// Packs the values of a key into words.
    pub fn pack<'a>(&self, values: impl IntoIterator<Item = &'a Bits>) -> Words {
        let mut words: Words = SmallVec::from_elem(0, self.words);
        for (place, value) in self.places.iter().zip(values) {
            place.put(&mut words, value);
        }
        words
    }

    /// Unpacks the values of a key from words.
    pub fn unpack(&self, words: &[u64]) -> SmallVec<[Bits; 4]> {
        self.places.iter().map(|place| place.get(words)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_share_words_where_they_fit() {
        use MatchKind::*;
        let words = KeyWords::new([(32, Exact), (32, Ternary), (8, Selector), (9, Exact), (0, Exact), (130, Lpm)]);
        let at = |word, shift, width| WordPlace { word, shift, width };
        assert_eq!(words.places, [at(0, 0, 32), at(0, 32, 32), at(5, 0, 8), at(1, 0, 9), at(1, 9, 0), at(2, 0, 130)]);
        assert_eq!((words.matched, words.words), (5, 6));
        let values: Vec<Bits> =
            words.places.iter().map(|place| Bits::ones(place.width).sub(&Bits::new(1, place.width))).collect();
        assert_eq!(words.unpack(&words.pack(&values)).to_vec(), values);
    }
}
