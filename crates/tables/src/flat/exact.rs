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

/// The shape of a table with exact keys. A slot has the number of its entry, 0 if it is empty, and then the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatExact {
    key_words: usize,
    home_slots: usize,
}

impl FlatExact {
    /// Returns the shape of a table for `capacity` entries, at most a third of whose slots will be in use.
    pub fn new(key_words: usize, capacity: u32) -> FlatExact {
        FlatExact { key_words, home_slots: (capacity.max(1) as usize * 3).next_power_of_two() }
    }

    /// Returns the number of words of a table.
    pub fn words(&self) -> usize {
        (self.home_slots + PROBES) * self.slot_words()
    }

    /// Returns the number of words of a slot.
    pub fn slot_words(&self) -> usize {
        1 + self.key_words
    }

    /// Returns the number of slots that a hash can select: a power of two.
    /// Further slots follow, so that a probe never wraps around.
    pub fn home_slots(&self) -> usize {
        self.home_slots
    }

    /// Returns the home slot of a key: the lower bits of the upper half of its hash times [`HOME_MULTIPLIER`], so that
    /// every bit of the key counts.
    pub fn home(&self, key: impl Iterator<Item = u64>) -> usize {
        (key.fold(0, hash_step).wrapping_mul(HOME_MULTIPLIER) >> 32) as usize & (self.home_slots - 1)
    }

    fn number(&self, words: &[AtomicU64], slot: usize) -> u64 {
        load(words, slot * self.slot_words())
    }

    fn key_at<'w>(&self, words: &'w [AtomicU64], slot: usize) -> impl Iterator<Item = u64> + 'w {
        let first = slot * self.slot_words() + 1;
        (first..first + self.key_words).map(|at| load(words, at))
    }

    fn home_at(&self, words: &[AtomicU64], slot: usize) -> usize {
        self.home(self.key_at(words, slot))
    }

    fn find(&self, words: &[AtomicU64], key: &[u64]) -> Option<usize> {
        let home = self.home(key.iter().copied());
        let occupied = (home..home + PROBES).take_while(|slot| self.number(words, *slot) != 0);
        occupied.into_iter().find(|slot| self.key_at(words, *slot).eq(key.iter().copied()))
    }

    /// Returns the number of the entry with this key; 0 if there is none.
    ///
    /// # Panics
    /// If the key or the table has another length than the shape's.
    pub fn lookup(&self, words: &[AtomicU64], key: &[u64]) -> u32 {
        assert_eq!((key.len(), words.len()), (self.key_words, self.words()), "key and table have the shape's lengths");
        self.find(words, key).map_or(0, |slot| self.number(words, slot) as u32)
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
        assert_eq!((key.len(), words.len()), (self.key_words, self.words()), "key and table have the shape's lengths");
        if let Some(slot) = self.find(words, key) {
            store(words, slot * self.slot_words(), number.into());
            return Ok(());
        }
        let home = self.home(key.iter().copied());
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
        let first = at * self.slot_words();
        key.iter().enumerate().for_each(|(word, value)| store(words, first + 1 + word, *value));
        store(words, first, number.into());
        Ok(())
    }

    /// Removes the entry with this key and returns its number, or 0 if there is none.
    ///
    /// # Panics
    /// As [`FlatExact::lookup`].
    pub fn remove(&self, words: &[AtomicU64], key: &[u64]) -> u32 {
        assert_eq!((key.len(), words.len()), (self.key_words, self.words()), "key and table have the shape's lengths");
        let Some(mut slot) = self.find(words, key) else { return 0 };
        let number = self.number(words, slot) as u32;
        let last = self.words() / self.slot_words() - 1;
        while slot < last && self.number(words, slot + 1) != 0 && self.home_at(words, slot + 1) <= slot {
            self.copy(words, slot + 1, slot);
            slot += 1;
        }
        let first = slot * self.slot_words();
        (first..first + self.slot_words()).for_each(|at| store(words, at, 0));
        number
    }

    fn copy(&self, words: &[AtomicU64], from: usize, to: usize) {
        for word in 0..self.slot_words() {
            store(words, to * self.slot_words() + word, load(words, from * self.slot_words() + word));
        }
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
        for key_words in 1..=3 {
            let shape = FlatExact::new(key_words, 200);
            let words = blank(&shape);
            let mut ordinary = Exact::new(key_words);
            let mut rng = SplitMix64::new(key_words as u64);
            let mut present: Vec<Vec<u64>> = Vec::new();
            for step in 1..4000 {
                // Keys are few, so that they repeat.
                let key: Vec<u64> = (0..key_words).map(|_| rng.below(20) << rng.below(3)).collect();
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
                let sought: Vec<u64> = (0..key_words).map(|_| rng.below(20) << rng.below(3)).collect();
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
        let shape = FlatExact::new(1, 50_000);
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
            let shape = FlatExact::new(1, 1024);
            let words = blank(&shape);
            for number in 1..=1000 {
                assert_eq!(shape.insert(&words, &[u64::from(number) << shift], number), Ok(()), "{number} << {shift}");
            }
        }
    }

    #[test]
    fn a_full_run_refuses_and_stays_as_it_was() {
        let shape = FlatExact::new(1, 1);
        let words = blank(&shape);
        let keys: Vec<u64> = (0..).filter(|key| shape.home([*key].into_iter()) == 0).take(PROBES + 1).collect();
        for (number, key) in (1..).zip(&keys[..PROBES]) {
            assert_eq!(shape.insert(&words, &[*key], number), Ok(()));
        }
        assert_eq!(shape.insert(&words, &[keys[PROBES]], 99), Err(FlatFull));
        assert_eq!(shape.lookup(&words, &[keys[PROBES]]), 0);
        assert!((1..).zip(&keys[..PROBES]).all(|(number, key)| shape.lookup(&words, &[*key]) == number));
    }
}
