//! Implements a hash table with open addressing. Entries of a run are sorted by their home slots (Robin Hood hashing,
//! Celis 1986), which keeps the longest probe short: no entry is [`PROBES`] slots or more behind its home.

use std::sync::atomic::AtomicU64;

use super::{FlatFull, load, store};

/// Maximum number of slots that a lookup compares.
pub const PROBES: usize = 16;

/// Multiplier of each step of a hash: the odd number next to 2^64 divided by the golden ratio.
pub const HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Multiplier of a hash before its upper half selects the home slot: from the finalizer of SplitMix64.
pub const HOME_MULTIPLIER: u64 = 0xbf58_476d_1ce4_e5b9;

/// Adds one word of a key to a hash, which begins as 0.
pub(super) fn hash_step(hash: u64, word: u64) -> u64 {
    let product = (hash ^ word).wrapping_mul(HASH_MULTIPLIER);
    product ^ product >> 32
}

/// Maximum number of elements of a key.
pub const MAX_ELEMENTS: usize = 8;
/// Number of bits of a slot's first word that have the number of the entry. The others are for the key.
pub const NUMBER_BITS: u32 = 32;

/// The place of an element of a key in a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElementPlace {
    /// The word. In the first one, elements lie behind the number of the entry.
    pub word: usize,
    /// Number of bits of the element's word that are behind it: of the key, so without the number of the entry.
    pub shift: u32,
}

/// The words of a key, as packed into a slot: of the first one, only the lower 32 bits are in use.
type PackedKey = [u64; MAX_ELEMENTS + 1];

/// The shape of a table with exact keys. A slot has the number of its entry, 0 if it is empty, and the elements of the
/// key, side by side:
///
/// ```text
/// 16 and 16 bits:                 | elements, number |
/// 32, 32, 16, 16 and 8 bits:      | element, number | elements | element |
/// 48 bits:                        | 0, number | element |
/// ```
///
/// Most lookups in a large table wait for one line of the cache, and small slots make it likely to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatExact {
    /// The places of the elements; the first `elements` are in use.
    places: [ElementPlace; MAX_ELEMENTS],
    elements: usize,
    slot_words: usize,
    home_slots: usize,
}

impl FlatExact {
    /// Returns the shape of a table for `capacity` entries, whose keys have elements of these widths. At most two
    /// fifths of the slots will be in use.
    ///
    /// # Panics
    /// If an element has more than 64 bits, or there are more than [`MAX_ELEMENTS`] of them.
    pub fn new(widths: &[u32], capacity: u32) -> FlatExact {
        assert!(widths.len() <= MAX_ELEMENTS && widths.iter().all(|width| *width <= 64), "the elements fit words");
        let mut places = [ElementPlace::default(); MAX_ELEMENTS];
        // The bits in use of each word.
        let mut used = vec![NUMBER_BITS];
        for (place, width) in places.iter_mut().zip(widths) {
            let word = used.iter().position(|bits| bits + width <= 64).unwrap_or(used.len());
            used.resize(used.len().max(word + 1), 0);
            *place = ElementPlace { word, shift: if word == 0 { used[0] - NUMBER_BITS } else { used[word] } };
            used[word] += width;
        }
        let home_slots = (capacity.max(1) as usize * 5).div_ceil(2);
        FlatExact { places, elements: widths.len(), slot_words: used.len(), home_slots }
    }

    /// Returns the number of words of a table.
    pub fn words(&self) -> usize {
        (self.home_slots + PROBES) * self.slot_words
    }

    /// Returns the number of words of a slot.
    pub fn slot_words(&self) -> usize {
        self.slot_words
    }

    /// Returns the places of the elements of a key.
    pub fn places(&self) -> &[ElementPlace] {
        &self.places[..self.elements]
    }

    /// Returns the number of slots that a hash can select. Further slots follow, so that a probe never wraps around.
    pub fn home_slots(&self) -> usize {
        self.home_slots
    }

    /// Returns the home slot of a key: the upper half of its hash times [`HOME_MULTIPLIER`], so that every bit of the
    /// key counts, as a share of the slots.
    ///
    /// # Panics
    /// If the key has another length than the shape's.
    pub fn home(&self, key: &[u64]) -> usize {
        self.packed_home(&self.pack(key))
    }

    fn packed_home(&self, key: &PackedKey) -> usize {
        let hash = key[..self.slot_words].iter().copied().fold(0, hash_step).wrapping_mul(HOME_MULTIPLIER) >> 32;
        ((hash * self.home_slots as u64) >> 32) as usize
    }

    fn pack(&self, key: &[u64]) -> PackedKey {
        assert_eq!(key.len(), self.elements, "the key has the shape's length");
        let mut packed = [0; MAX_ELEMENTS + 1];
        self.places().iter().zip(key).for_each(|(place, value)| packed[place.word] |= value << place.shift);
        packed
    }

    fn number(&self, words: &[AtomicU64], slot: usize) -> u32 {
        load(words, slot * self.slot_words) as u32
    }

    fn key_at(&self, words: &[AtomicU64], slot: usize) -> PackedKey {
        let first = slot * self.slot_words;
        let mut key = [0; MAX_ELEMENTS + 1];
        key[..self.slot_words].iter_mut().zip(first..).for_each(|(part, at)| *part = load(words, at));
        key[0] >>= NUMBER_BITS;
        key
    }

    fn home_at(&self, words: &[AtomicU64], slot: usize) -> usize {
        self.packed_home(&self.key_at(words, slot))
    }

    fn find(&self, words: &[AtomicU64], key: &PackedKey) -> Option<usize> {
        let home = self.packed_home(key);
        let occupied = (home..home + PROBES).take_while(|slot| self.number(words, *slot) != 0);
        occupied.into_iter().find(|slot| self.key_at(words, *slot) == *key)
    }

    /// Stores all words of a slot, the number last.
    fn fill(&self, words: &[AtomicU64], slot: usize, key: &PackedKey, number: u32) {
        let first = slot * self.slot_words;
        (1..self.slot_words).for_each(|word| store(words, first + word, key[word]));
        store(words, first, key[0] << NUMBER_BITS | u64::from(number));
    }

    /// Returns the number of the entry with this key; 0 if there is none.
    ///
    /// # Panics
    /// If the key or the table has another length than the shape's.
    pub fn lookup(&self, words: &[AtomicU64], key: &[u64]) -> u32 {
        assert_eq!(words.len(), self.words(), "the table has the shape's length");
        self.find(words, &self.pack(key)).map_or(0, |slot| self.number(words, slot))
    }

    /// Adds an entry, or gives the entry with this key another number.
    ///
    /// # Errors
    /// [`FlatFull`] if an entry would be too far behind its home; nothing has changed then.
    ///
    /// # Panics
    /// If the number is 0, or as [`FlatExact::lookup`].
    pub fn insert(&self, words: &[AtomicU64], key: &[u64], number: u32) -> Result<(), FlatFull> {
        assert!(number != 0, "numbers begin at 1");
        assert_eq!(words.len(), self.words(), "the table has the shape's length");
        let key = self.pack(key);
        if let Some(slot) = self.find(words, &key) {
            self.fill(words, slot, &key, number);
            return Ok(());
        }
        let home = self.packed_home(&key);
        let is_before = |slot: &usize| self.number(words, *slot) != 0 && self.home_at(words, *slot) <= home;
        let at = (home..home + PROBES).find(|slot| !is_before(slot)).ok_or(FlatFull)?;
        let mut end = at;
        while self.number(words, end) != 0 {
            // The entry moves one slot on.
            if end + 1 - self.home_at(words, end) >= PROBES {
                return Err(FlatFull);
            }
            end += 1;
        }
        (at..end).rev().for_each(|slot| self.copy(words, slot, slot + 1));
        self.fill(words, at, &key, number);
        Ok(())
    }

    /// Removes the entry with this key and returns its number, or 0 if there is none.
    ///
    /// # Panics
    /// As [`FlatExact::lookup`].
    pub fn remove(&self, words: &[AtomicU64], key: &[u64]) -> u32 {
        assert_eq!(words.len(), self.words(), "the table has the shape's length");
        let Some(mut slot) = self.find(words, &self.pack(key)) else { return 0 };
        let number = self.number(words, slot);
        let last = self.words() / self.slot_words - 1;
        while slot < last && self.number(words, slot + 1) != 0 && self.home_at(words, slot + 1) <= slot {
            self.copy(words, slot + 1, slot);
            slot += 1;
        }
        self.fill(words, slot, &[0; MAX_ELEMENTS + 1], 0);
        number
    }

    fn copy(&self, words: &[AtomicU64], from: usize, to: usize) {
        self.fill(words, to, &self.key_at(words, from), self.number(words, from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Exact, PackedLookup};
    use rng::SplitMix64;

    fn blank(shape: &FlatExact) -> Vec<AtomicU64> {
        (0..shape.words()).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn it_agrees_with_the_ordinary_table_while_entries_come_and_go() {
        let shapes: [&[u32]; 7] = [&[16], &[64], &[5, 16], &[48, 9], &[32, 32], &[64, 7, 64], &[32, 32, 16, 16, 8]];
        for widths in shapes {
            let (shape, key_words) = (FlatExact::new(widths, 200), widths.len());
            let words = blank(&shape);
            let mut ordinary = Exact::new(key_words);
            let mut rng = SplitMix64::new(key_words as u64);
            // Few values of an element, in its first and last bits, so that keys repeat.
            let element =
                |rng: &mut SplitMix64, width: &u32| rng.below(4) << rng.below(3) | rng.below(2) << (width - 1);
            let mut present: Vec<Vec<u64>> = Vec::new();
            for step in 1..4000 {
                let key: Vec<u64> = widths.iter().map(|width| element(&mut rng, width)).collect();
                let is_there = present.iter().position(|one| *one == key);
                match is_there {
                    Some(at) if rng.percent(40) => {
                        let number = ordinary.remove(&key).expect("the entry is there");
                        assert_eq!(shape.remove(&words, &key), number);
                        present.swap_remove(at);
                    }
                    None if present.len() < 200 => {
                        ordinary.insert(&key, step);
                        assert_eq!(shape.insert(&words, &key, step), Ok(()));
                        present.push(key.clone());
                    }
                    _ => {}
                }
                let sought: Vec<u64> = widths.iter().map(|width| element(&mut rng, width)).collect();
                for key in [&key, &sought] {
                    assert_eq!(shape.lookup(&words, key), ordinary.lookup(key).unwrap_or(0), "step {step}");
                }
            }
            assert!(present.len() > 10);
            present.iter().for_each(|key| _ = shape.remove(&words, key));
            assert!(words.iter().all(|word| word.load(std::sync::atomic::Ordering::Relaxed) == 0), "nothing stays");
        }
    }

    #[test]
    fn random_keys_fill_a_table_to_its_capacity() {
        let shape = FlatExact::new(&[64], 50_000);
        let words = blank(&shape);
        let mut rng = SplitMix64::new(7);
        let keys: Vec<u64> = (0..50_000).map(|_| rng.next_u64()).collect();
        for (number, key) in (1..).zip(&keys) {
            assert_eq!(shape.insert(&words, &[*key], number), Ok(()));
        }
        assert!((1..).zip(&keys).all(|(number, key)| shape.lookup(&words, &[*key]) == number));
    }

    #[test]
    fn keys_that_differ_in_any_bits_only_fill_a_table() {
        for shift in 0..=54 {
            let shape = FlatExact::new(&[64], 1024);
            let words = blank(&shape);
            for number in 1..=1000 {
                assert_eq!(shape.insert(&words, &[u64::from(number) << shift], number), Ok(()), "{number} << {shift}");
            }
        }
    }

    #[test]
    fn a_full_run_refuses_and_stays_as_it_was() {
        let shape = FlatExact::new(&[64], 1);
        let words = blank(&shape);
        let keys: Vec<u64> = (0..).filter(|key| shape.home(&[*key]) == 0).take(PROBES + 1).collect();
        for (number, key) in (1..).zip(&keys[..PROBES]) {
            assert_eq!(shape.insert(&words, &[*key], number), Ok(()));
        }
        assert_eq!(shape.insert(&words, &[keys[PROBES]], 99), Err(FlatFull));
        assert_eq!(shape.lookup(&words, &[keys[PROBES]]), 0);
        assert!((1..).zip(&keys[..PROBES]).all(|(number, key)| shape.lookup(&words, &[*key]) == number));
    }
}
