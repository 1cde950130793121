//! Keys as machine words: the form in which fast executors ask, and hashing backends keep them.
//!
//! Elements of up to 64 bits share words in order as long as they fit whole; wider ones have words of their own, the
//! least significant first. What is matched comes first, selectors begin a new word behind.

use bits::Bits;
use ir::MatchKind;
use smallvec::SmallVec;

/// A key in words.
pub type Words = SmallVec<[u64; 4]>;

/// Where a key element lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordPlace {
    /// Its first word.
    pub word: usize,
    /// Its lowest bit in that word; 0 for elements of more than 64 bits.
    pub shift: u32,
    /// Its width in bits.
    pub width: u32,
}

impl WordPlace {
    /// How many words it touches.
    pub fn words(&self) -> usize {
        (self.width as usize).div_ceil(64)
    }

    /// Puts a value there; the bits must be clear.
    pub fn put(&self, words: &mut [u64], value: &Bits) {
        if self.width <= 64 {
            if self.width > 0 {
                words[self.word] |= value.low_u64() << self.shift;
            }
            return;
        }
        for at in 0..self.words() {
            words[self.word + at] = value.word(at);
        }
    }

    /// The value that is there.
    pub fn get(&self, words: &[u64]) -> Bits {
        match self.width {
            0 => Bits::zero(0),
            1..=64 => Bits::new(u128::from(words[self.word] >> self.shift), self.width),
            _ => Bits::from_words(&words[self.word..self.word + self.words()], self.width),
        }
    }
}

/// Where the elements of a key lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyWords {
    /// One place for each element, in the order of the elements.
    pub places: Vec<WordPlace>,
    /// Words of what is matched; they come first.
    pub matched: usize,
    /// All words.
    pub words: usize,
}

impl KeyWords {
    /// For elements of these widths and kinds.
    pub fn new(elements: impl IntoIterator<Item = (u32, MatchKind)>) -> Self {
        let elements: Vec<_> = elements.into_iter().collect();
        let mut places = vec![WordPlace { word: 0, shift: 0, width: 0 }; elements.len()];
        let mut words = 0;
        let mut matched = 0;
        for selectors in [false, true] {
            // Free bits of the last word.
            let mut free = 0;
            for (at, (width, kind)) in elements.iter().enumerate() {
                if (*kind == MatchKind::Selector) != selectors || *width == 0 {
                    continue;
                }
                if *width > free {
                    (places[at].word, places[at].shift) = (words, 0);
                    words += (*width as usize).div_ceil(64);
                    free = if *width <= 64 { 64 - width } else { 0 };
                } else {
                    (places[at].word, places[at].shift) = (words - 1, 64 - free);
                    free -= width;
                }
                places[at].width = *width;
            }
            if !selectors {
                matched = words;
            }
        }
        KeyWords { places, matched, words }
    }

    /// A key's values in words.
    pub fn pack<'a>(&self, values: impl IntoIterator<Item = &'a Bits>) -> Words {
        let mut words: Words = SmallVec::from_elem(0, self.words);
        for (place, value) in self.places.iter().zip(values) {
            place.put(&mut words, value);
        }
        words
    }

    /// The values of a key in words.
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
        assert_eq!(words.places, [at(0, 0, 32), at(0, 32, 32), at(5, 0, 8), at(1, 0, 9), at(0, 0, 0), at(2, 0, 130)]);
        assert_eq!((words.matched, words.words), (5, 6));
        let values: Vec<Bits> =
            words.places.iter().map(|place| Bits::ones(place.width).sub(&Bits::new(1, place.width))).collect();
        assert_eq!(words.unpack(&words.pack(&values)).to_vec(), values);
    }
}
