//! Rules for ternary, range and optional keys, and for prefixes beside other key elements: tuple space search
//! (Srinivasan, Suri, Varghese: Packet Classification using Tuple Space Search, 1999), with tuples that are merged as
//! in TupleMerge (Daly et al., 2019).
//!
//! ```text
//! table:  tuples, best one first | buckets | rules by their number
//! tuple:  best rank of its rules | seed | mask of each element      rank 0 ends the list
//! bucket: number of its first rule, 0 for none
//! rule:   rank | number of the next rule of the bucket | pair of each element
//! pair:   value and mask, or the bounds of a range
//! ```
//!
//! A key is hashed under the mask of each tuple, and compared with the rules of that bucket. Tuples share the buckets,
//! whose rules are sorted by descending rank. The search ends when no tuple left can have a better rule.
//!
//! A lookup takes at most [`MAX_STEPS`] tuples and rules. Beyond, and if two rules of the best rank match, it does not
//! know the rule. The order of rules of one rank is their age, which is not in the table.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicU64;

use super::exact::{HOME_MULTIPLIER, hash_step};
use super::{FlatFull, load, store};

/// Maximum number of rules.
pub const MAX_RULES: u32 = 1 << 16;

/// Maximum number of tuples. Rules that none of them admits are compared one by one then.
pub const MAX_TUPLES: usize = 40;

/// Maximum number of tuples and rules that a lookup takes.
pub const MAX_STEPS: u32 = 96;

/// Number of rules that are compared one by one before tuples are created.
const MAX_LIST: usize = 16;

/// Number of rules of a bucket from which on a tuple is created for further ones.
const MAX_CHAIN: usize = 6;

/// Maximum number of rules of a bucket: a lookup does not get beyond [`MAX_STEPS`] of them.
const MAX_BUCKET: usize = 1024;

/// The comparison of an element of a key with the two words of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleElement {
    /// A value and a mask: the element under the mask is the value.
    Ternary,
    /// The least and the greatest value, unsigned.
    Range,
}

impl RuleElement {
    fn matches(self, [first, second]: [u64; 2], word: u64) -> bool {
        match self {
            RuleElement::Ternary => word & second == first,
            RuleElement::Range => (first..=second).contains(&word),
        }
    }

    /// Returns the bits that all words that match have in common.
    fn mask(self, [first, second]: [u64; 2]) -> u64 {
        match self {
            RuleElement::Ternary => second,
            RuleElement::Range => !u64::MAX.checked_shr((first ^ second).leading_zeros()).unwrap_or(0),
        }
    }
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlatRule {
    /// The priority, and then the total length of prefixes: the higher one wins.
    pub rank: (i32, u32),
    /// A pair for each element of the key.
    pub pairs: Vec<[u64; 2]>,
}

impl FlatRule {
    /// Returns the rank as a word that compares likewise, and is not 0.
    fn rank_word(&self) -> u64 {
        let (priority, length) = self.rank;
        (u64::from(priority.cast_unsigned() ^ 1 << 31) << 32 | u64::from(length)) + 1
    }
}

/// The shape of a table of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatRules {
    elements: usize,
    /// A bit for each element that is a range.
    ranges: u64,
    capacity: u32,
}

impl FlatRules {
    /// Returns the shape of a table for `capacity` rules, but no more than [`MAX_RULES`], with these elements of its
    /// key.
    ///
    /// # Panics
    /// If there are more than 64.
    pub fn new(elements: &[RuleElement], capacity: u32) -> FlatRules {
        assert!(elements.len() <= 64, "a key of few elements");
        let bit = |(at, kind): (usize, &RuleElement)| u64::from(*kind == RuleElement::Range) << at;
        let ranges = elements.iter().enumerate().map(bit).sum();
        FlatRules { elements: elements.len(), ranges, capacity: capacity.min(MAX_RULES) }
    }

    /// Returns the elements of a key.
    pub fn elements(&self) -> impl Iterator<Item = RuleElement> + use<> {
        let ranges = self.ranges;
        let element = move |at| if ranges >> at & 1 == 1 { RuleElement::Range } else { RuleElement::Ternary };
        (0..self.elements).map(element)
    }

    /// Returns the maximum number of rules.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Returns the number of words of a tuple.
    pub fn tuple_words(&self) -> usize {
        2 + self.elements
    }

    /// Returns the number of buckets, a power of two: at least four for each rule, so that a search rarely comes upon
    /// the rules of another tuple.
    pub fn buckets(&self) -> usize {
        (4 * self.capacity.max(64)).next_power_of_two() as usize
    }

    /// Returns the index of the first bucket.
    pub fn first_bucket(&self) -> usize {
        MAX_TUPLES * self.tuple_words()
    }

    /// Returns the number of words of a rule.
    pub fn rule_words(&self) -> usize {
        2 + 2 * self.elements
    }

    /// Returns the index of the words of rule 0, which do not belong to any rule.
    pub fn first_rule(&self) -> usize {
        self.first_bucket() + self.buckets()
    }

    /// Returns the number of words of a table.
    pub fn words(&self) -> usize {
        self.first_rule() + (self.capacity as usize + 1) * self.rule_words()
    }

    fn rule(&self, number: u32) -> usize {
        self.first_rule() + number as usize * self.rule_words()
    }

    /// Returns the index of the bucket for masked words.
    fn bucket(&self, seed: u64, words: impl Iterator<Item = u64>) -> usize {
        let hash = words.fold(seed, hash_step).wrapping_mul(HOME_MULTIPLIER) >> 32;
        self.first_bucket() + (hash as usize & (self.buckets() - 1))
    }

    /// Returns the number of the rule of the highest rank that matches a key, 0 if there is none; `None` if it is not
    /// known.
    ///
    /// # Panics
    /// If the key or the table does not fit the shape.
    pub fn lookup(&self, words: &[AtomicU64], key: &[u64]) -> Option<u32> {
        assert!(words.len() == self.words() && key.len() == self.elements, "key and table fit the shape");
        let (mut best, mut found, mut steps) = (0, 0, 0);
        let mut step = || {
            steps += 1;
            (steps <= MAX_STEPS).then_some(())
        };
        for tuple in (0..MAX_TUPLES).map(|tuple| tuple * self.tuple_words()) {
            let rank = load(words, tuple);
            if rank == 0 || rank < best {
                break;
            }
            step()?;
            let masked = key.iter().zip(tuple + 2..).map(|(word, mask)| word & load(words, mask));
            let mut number = load(words, self.bucket(load(words, tuple + 1), masked)) as u32;
            while number != 0 {
                step()?;
                let rule = self.rule(number);
                let rank = load(words, rule);
                if rank < best {
                    break;
                }
                let pairs = (rule + 2..).step_by(2).map(|at| [load(words, at), load(words, at + 1)]);
                let mut elements = self.elements().zip(key).zip(pairs);
                if found != number && elements.all(|((kind, word), pair)| kind.matches(pair, *word)) {
                    if rank == best {
                        return None;
                    }
                    (best, found) = (rank, number);
                }
                number = load(words, rule + 1) as u32;
            }
        }
        Some(found)
    }
}

/// A tuple of a writer.
#[derive(Clone, Debug)]
struct WrittenTuple {
    seed: u64,
    mask: Vec<u64>,
    /// Number of rules by rank.
    ranks: BTreeMap<u64, u32>,
}

impl WrittenTuple {
    fn best(&self) -> u64 {
        self.ranks.last_key_value().map_or(0, |(rank, _)| *rank)
    }

    /// Whether all bits of the tuple are in a rule's mask.
    fn admits(&self, mask: &[u64]) -> bool {
        self.mask.iter().zip(mask).all(|(tuple, rule)| tuple & !rule == 0)
    }

    fn bits(&self) -> u32 {
        self.mask.iter().map(|word| word.count_ones()).sum()
    }
}

/// Writes one table of rules. No reader may use the table meanwhile.
#[derive(Clone, Debug)]
pub struct RuleWriter {
    shape: FlatRules,
    tuples: Vec<WrittenTuple>,
    /// Seed of the tuple and index of the bucket, by the number of the rule.
    places: HashMap<u32, (u64, usize)>,
    next_seed: u64,
    /// Whether a tuple was removed while rules without one were compared one by one.
    has_freed: bool,
}

impl RuleWriter {
    /// Creates the writer of an empty table.
    pub fn new(shape: FlatRules) -> RuleWriter {
        RuleWriter { shape, tuples: Vec::new(), places: HashMap::new(), next_seed: 1, has_freed: false }
    }

    /// Adds a rule. It is found after the next call of [`RuleWriter::finish`].
    ///
    /// # Errors
    /// [`FlatFull`] if the number is larger than the capacity, or a thousand rules would be compared one by one.
    ///
    /// # Panics
    /// If the number is 0 or is used, or the rule or the table does not fit the shape.
    pub fn insert(&mut self, words: &[AtomicU64], number: u32, rule: &FlatRule) -> Result<(), FlatFull> {
        let shape = self.shape;
        assert!(words.len() == shape.words() && rule.pairs.len() == shape.elements, "rule and table fit the shape");
        assert!(number != 0 && !self.places.contains_key(&number), "a new number");
        if number > shape.capacity {
            return Err(FlatFull);
        }
        let at = self.choose(words, &rule.pairs);
        let (tuple, rank) = (&self.tuples[at], rule.rank_word());
        if self.chain(words, bucket_of(&shape, tuple, &rule.pairs), MAX_BUCKET) == MAX_BUCKET {
            return Err(FlatFull);
        }
        let first = shape.rule(number);
        store(words, first, rank);
        for (at, word) in (first + 2..).zip(rule.pairs.iter().flatten()) {
            store(words, at, *word);
        }
        self.link(words, number, at, &rule.pairs);
        Ok(())
    }

    /// Links a rule, which is written but for the number of the next one, into its bucket of a tuple.
    fn link(&mut self, words: &[AtomicU64], number: u32, at: usize, pairs: &[[u64; 2]]) {
        let (shape, tuple) = (self.shape, &mut self.tuples[at]);
        let first = shape.rule(number);
        let rank = load(words, first);
        *tuple.ranks.entry(rank).or_default() += 1;
        let bucket = bucket_of(&shape, tuple, pairs);
        self.places.insert(number, (tuple.seed, bucket));
        // Behind the rules of the same rank or a higher one.
        let mut link = bucket;
        let next = loop {
            let next = load(words, link) as u32;
            if next == 0 || load(words, shape.rule(next)) < rank {
                break next;
            }
            link = shape.rule(next) + 1;
        };
        store(words, first + 1, next.into());
        store(words, link, number.into());
    }

    /// Removes a rule; does nothing if there is none with this number.
    ///
    /// # Panics
    /// If the table does not fit the shape.
    pub fn remove(&mut self, words: &[AtomicU64], number: u32) {
        let shape = self.shape;
        assert_eq!(words.len(), shape.words(), "the table fits the shape");
        let Some((seed, bucket)) = self.places.remove(&number) else { return };
        let first = shape.rule(number);
        let mut link = bucket;
        while load(words, link) != u64::from(number) {
            link = shape.rule(load(words, link) as u32) + 1;
        }
        store(words, link, load(words, first + 1));
        let at = self.tuples.iter().position(|tuple| tuple.seed == seed).expect("the rule has a tuple");
        let (ranks, rank) = (&mut self.tuples[at].ranks, load(words, first));
        let count = ranks.get_mut(&rank).expect("the rank is counted");
        *count -= 1;
        if *count == 0 {
            ranks.remove(&rank);
        }
        if ranks.is_empty() {
            self.tuples.remove(at);
            self.has_freed = true;
        }
    }

    /// Writes the tuples. Lookups are right from now on, until the next change. Returns whether there may be room for
    /// rules that [`RuleWriter::insert`] refused.
    ///
    /// # Panics
    /// If the table does not fit the shape.
    pub fn finish(&mut self, words: &[AtomicU64]) -> bool {
        assert_eq!(words.len(), self.shape.words(), "the table fits the shape");
        let has_moved = std::mem::take(&mut self.has_freed) && self.shorten_list(words);
        self.tuples.sort_by_key(|tuple| std::cmp::Reverse(tuple.best()));
        for (at, tuple) in self.tuples.iter().enumerate() {
            let first = at * self.shape.tuple_words();
            store(words, first, tuple.best());
            store(words, first + 1, tuple.seed);
            (first + 2..).zip(&tuple.mask).for_each(|(at, mask)| store(words, at, *mask));
        }
        if self.tuples.len() < MAX_TUPLES {
            store(words, self.tuples.len() * self.shape.tuple_words(), 0);
        }
        has_moved
    }

    /// Moves rules that are compared one by one to tuples: those whose masks had none when they were added. Returns
    /// whether some have moved.
    fn shorten_list(&mut self, words: &[AtomicU64]) -> bool {
        let shape = self.shape;
        let Some(list) = self.tuples.iter().find(|tuple| tuple.bits() == 0) else { return false };
        if list.ranks.values().sum::<u32>() as usize <= MAX_LIST || self.tuples.len() + 1 >= MAX_TUPLES {
            return false;
        }
        let (seed, bucket) = (list.seed, bucket_of(&shape, list, &vec![[0, 0]; shape.elements]));
        let mut numbers: Vec<u32> = self.bucket_rules(words, bucket).collect();
        numbers.retain(|number| self.places[number].0 == seed);
        let mut has_moved = false;
        for number in numbers {
            let at = shape.rule(number) + 2;
            let pair = |element| [load(words, at + 2 * element), load(words, at + 2 * element + 1)];
            let pairs: Vec<[u64; 2]> = (0..shape.elements).map(pair).collect();
            let at = self.choose(words, &pairs);
            let tuple = &self.tuples[at];
            let is_full = || self.chain(words, bucket_of(&shape, tuple, &pairs), MAX_BUCKET) == MAX_BUCKET;
            if tuple.seed != seed && !is_full() {
                let to = tuple.seed;
                self.remove(words, number);
                let at = self.tuples.iter().position(|tuple| tuple.seed == to).expect("it was chosen");
                self.link(words, number, at, &pairs);
                has_moved = true;
            }
        }
        has_moved
    }

    /// Returns the index of the tuple for a rule: the one with the most bits in which its bucket is short, a new one,
    /// or the one in which its bucket is shortest.
    fn choose(&mut self, words: &[AtomicU64], pairs: &[[u64; 2]]) -> usize {
        let mask: Vec<u64> = self.shape.elements().zip(pairs).map(|(kind, pair)| kind.mask(*pair)).collect();
        let chain = |tuple: &WrittenTuple, most| self.chain(words, bucket_of(&self.shape, tuple, pairs), most);
        let admitting = || self.tuples.iter().enumerate().filter(|(_, tuple)| tuple.admits(&mask));
        let has_room = |tuple: &WrittenTuple| match tuple.bits() {
            0 => self.places.len() < MAX_LIST,
            _ => chain(tuple, MAX_CHAIN) < MAX_CHAIN,
        };
        let short = admitting().filter(|(_, tuple)| has_room(tuple)).max_by_key(|(_, tuple)| tuple.bits());
        if let Some((at, _)) = short {
            return at;
        }
        let is_new = |mask: &Vec<u64>| self.tuples.iter().all(|tuple| tuple.mask != *mask);
        let none = vec![0; mask.len()];
        let mask = match self.tuples.len() {
            0 => Some(none),
            // The last tuple is for all the rules that no other admits.
            tuples if tuples + 1 >= MAX_TUPLES => Some(none).filter(|mask| tuples < MAX_TUPLES && is_new(mask)),
            _ => {
                let coarse: Vec<u64> = mask.iter().map(|word| coarse(*word)).collect();
                [coarse, mask.to_vec()].into_iter().find(is_new)
            }
        };
        let Some(mask) = mask else {
            let shortest = admitting().min_by_key(|(_, tuple)| chain(tuple, MAX_BUCKET));
            return shortest.expect("a tuple without bits, or with those of the rule, admits it").0;
        };
        self.tuples.push(WrittenTuple { seed: self.next_seed, mask, ranks: BTreeMap::new() });
        self.next_seed += 1;
        self.tuples.len() - 1
    }

    /// Returns the numbers of the rules in a bucket.
    fn bucket_rules(&self, words: &[AtomicU64], bucket: usize) -> impl Iterator<Item = u32> {
        let shape = self.shape;
        let next = move |link: usize| Some(load(words, link) as u32).filter(|number| *number != 0);
        std::iter::successors(next(bucket), move |number| next(shape.rule(*number) + 1))
    }

    /// Returns the number of rules in a bucket, but no more than `most`.
    fn chain(&self, words: &[AtomicU64], bucket: usize, most: usize) -> usize {
        self.bucket_rules(words, bucket).take(most).count()
    }
}

/// Returns the index of the bucket that a rule has in a tuple that admits it.
fn bucket_of(shape: &FlatRules, tuple: &WrittenTuple, pairs: &[[u64; 2]]) -> usize {
    // All words that match a range have the bits of its bounds under the mask.
    shape.bucket(tuple.seed, pairs.iter().zip(&tuple.mask).map(|([first, _], mask)| first & mask))
}

/// Returns a mask without its lowest ones if they are a run, so that their number is a multiple of 8: prefixes of
/// similar lengths share a tuple.
fn coarse(mask: u64) -> u64 {
    let run = mask >> mask.trailing_zeros().min(63);
    let is_run = run & run.wrapping_add(1) == 0;
    (0..mask.count_ones() % 8).fold(mask, |mask, _| if is_run { mask & mask.wrapping_sub(1) } else { mask })
}

#[cfg(test)]
mod tests;
