//! Implements lists of weighted choices. A hash selects one of a list.
//!
//! ```text
//! block: | sum of the weights, number of choice 0 | begin of choice 1, number | begin of choice 2, number | ...
//! ```
//!
//! A choice is one word: its number in the low 32 bits, and above it the sum of the weights before it. A block has 2^k
//! words; unused ones have a begin that no hash reaches. So a binary search finds the choice of a hash in k steps,
//! whatever the weights are.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;

use super::{FlatFull, load, store};

/// Maximum number of choices in a list.
pub const MAX_CHOICES: usize = 128;

/// Number of bits of a block's name that have the number of its words. The bits above have its first word.
pub const BLOCK_SIZE_BITS: u32 = 8;

/// The shape of the memory for lists of choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatChoices {
    words: usize,
}

impl FlatChoices {
    /// Returns the shape of a memory of at least `words` words.
    pub fn new(words: usize) -> FlatChoices {
        FlatChoices { words: words.max(MAX_CHOICES).next_power_of_two() }
    }

    /// Returns the number of words: a power of two, at least [`MAX_CHOICES`].
    pub fn words(&self) -> usize {
        self.words
    }

    /// Returns the number of the choice that a hash selects: the remainder by the sum of the weights, counted off from
    /// the first choice.
    ///
    /// # Panics
    /// If the block is not one of [`ChoiceWriter::insert`].
    pub fn lookup(&self, words: &[AtomicU64], block: u64, hash: u64) -> u32 {
        let (mut at, mut step) = ((block >> BLOCK_SIZE_BITS) as usize, (block & ((1 << BLOCK_SIZE_BITS) - 1)) as usize);
        let left = hash % (load(words, at) >> 32);
        while step > 1 {
            step /= 2;
            if load(words, at + step) >> 32 <= left {
                at += step;
            }
        }
        load(words, at) as u32
    }
}

/// Writes lists of choices, and keeps account of the memory: a buddy allocator (Knowlton 1965).
#[derive(Clone, Debug)]
pub struct ChoiceWriter {
    /// First words of the free blocks of 1, 2, 4, ... words.
    free: Vec<BTreeSet<usize>>,
}

impl ChoiceWriter {
    /// Creates the writer of a memory without lists.
    pub fn new(shape: FlatChoices) -> ChoiceWriter {
        let mut free = vec![BTreeSet::new(); shape.words.trailing_zeros() as usize + 1];
        free.last_mut().into_iter().for_each(|blocks| _ = blocks.insert(0));
        ChoiceWriter { free }
    }

    /// Writes a list of weights and numbers, and returns the name of its block, which is not 0. Weights are at least 1.
    ///
    /// # Errors
    /// [`FlatFull`] if there are more than [`MAX_CHOICES`], or there is no room. Nothing has changed then.
    ///
    /// # Panics
    /// If there are no choices, or the weights add up to more than 32 bits.
    pub fn insert(&mut self, words: &[AtomicU64], choices: &[(u32, u32)]) -> Result<u64, FlatFull> {
        assert!(!choices.is_empty(), "a hash selects one of some choices");
        if choices.len() > MAX_CHOICES {
            return Err(FlatFull);
        }
        let size = choices.len().next_power_of_two();
        let first = self.take(size.trailing_zeros() as usize).ok_or(FlatFull)?;
        let mut begin = 0u64;
        for (at, (weight, number)) in choices.iter().enumerate() {
            store(words, first + at, begin << 32 | u64::from(*number));
            begin += u64::from(*weight);
        }
        assert!(begin <= u32::MAX.into(), "the weights have a sum of 32 bits");
        store(words, first, begin << 32 | u64::from(choices[0].1));
        (choices.len()..size).for_each(|at| store(words, first + at, u64::MAX));
        Ok((first as u64) << BLOCK_SIZE_BITS | size as u64)
    }

    /// Frees a block of [`ChoiceWriter::insert`].
    pub fn remove(&mut self, block: u64) {
        let mut first = (block >> BLOCK_SIZE_BITS) as usize;
        let mut order = (block & ((1 << BLOCK_SIZE_BITS) - 1)).trailing_zeros() as usize;
        while order + 1 < self.free.len() && self.free[order].remove(&(first ^ (1 << order))) {
            first &= !(1 << order);
            order += 1;
        }
        self.free[order].insert(first);
    }

    /// Takes a block of 2^`order` words; `None` if there is none.
    fn take(&mut self, order: usize) -> Option<usize> {
        let from = (order..self.free.len()).find(|at| !self.free[*at].is_empty())?;
        let first = self.free[from].pop_first()?;
        (order..from).for_each(|at| _ = self.free[at].insert(first + (1 << at)));
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rng::SplitMix64;

    fn blank(shape: FlatChoices) -> Vec<AtomicU64> {
        (0..shape.words()).map(|_| AtomicU64::new(0)).collect()
    }

    /// Returns the number of the choice, counted off one by one.
    fn counted_off(choices: &[(u32, u32)], hash: u64) -> u32 {
        let mut left = hash % choices.iter().map(|(weight, _)| u64::from(*weight)).sum::<u64>();
        let is_other = |(weight, _): &&(u32, u32)| {
            let is_other = left >= u64::from(*weight);
            left = left.saturating_sub(u64::from(*weight));
            is_other
        };
        let before = choices.iter().take_while(is_other).count();
        choices[before].1
    }

    fn random_choices(rng: &mut SplitMix64) -> Vec<(u32, u32)> {
        let count = if rng.percent(80) { 1 + rng.below(9) } else { 1 + rng.below(MAX_CHOICES as u64) };
        let weight = |rng: &mut SplitMix64| match rng.below(3) {
            0 => 1,
            1 => 1 + rng.below(5) as u32,
            _ => 1 + rng.below(u64::from(u32::MAX) / MAX_CHOICES as u64) as u32,
        };
        (0..count).map(|_| (weight(rng), rng.next_u64() as u32)).collect()
    }

    #[test]
    fn hashes_select_choices_by_weight_while_lists_come_and_go() {
        let shape = FlatChoices::new(500);
        let (words, mut writer, mut rng) = (blank(shape), ChoiceWriter::new(shape), SplitMix64::new(4));
        let mut lists: Vec<(u64, Vec<(u32, u32)>)> = Vec::new();
        let mut refused = 0;
        for _ in 0..4000 {
            if rng.percent(50) && !lists.is_empty() {
                let (block, _) = lists.swap_remove(rng.below(lists.len() as u64) as usize);
                writer.remove(block);
            } else {
                let choices = random_choices(&mut rng);
                match writer.insert(&words, &choices) {
                    Ok(block) => lists.push((block, choices)),
                    Err(FlatFull) => refused += 1,
                }
            }
            for (block, choices) in &lists {
                let sum: u64 = choices.iter().map(|(weight, _)| u64::from(*weight)).sum();
                for hash in [0, sum - 1, sum, rng.below(sum), rng.next_u64()] {
                    assert_eq!(shape.lookup(&words, *block, hash), counted_off(choices, hash));
                }
            }
        }
        assert!((10..2000).contains(&refused), "{refused} lists did not fit");
        lists.into_iter().for_each(|(block, _)| writer.remove(block));
        assert_eq!(writer.free.last(), Some(&BTreeSet::from([0])), "all memory is one free block");
    }

    #[test]
    fn a_list_has_at_most_128_choices_of_a_sum_of_32_bits() {
        let shape = FlatChoices::new(0);
        let (words, mut writer) = (blank(shape), ChoiceWriter::new(shape));
        assert_eq!(writer.insert(&words, &[(1, 1); MAX_CHOICES + 1]), Err(FlatFull));
        let numbers: Vec<(u32, u32)> = (0..MAX_CHOICES as u32).map(|number| (1, number)).collect();
        let block = writer.insert(&words, &numbers).unwrap();
        assert!((0..300).all(|hash| shape.lookup(&words, block, hash) == hash as u32 % 128));
        assert_eq!(writer.insert(&words, &[(1, 1)]), Err(FlatFull), "there is no room");
        writer.remove(block);
        let block = writer.insert(&words, &[(u32::MAX - 2, 7), (1, 8), (1, 9)]).unwrap();
        let of = |hash: u32| shape.lookup(&words, block, hash.into());
        assert_eq!([0, u32::MAX - 3, u32::MAX - 2, u32::MAX - 1, u32::MAX].map(of), [7, 7, 8, 9, 7]);
    }
}
