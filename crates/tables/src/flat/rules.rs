//! A list of rules in descending order of rank, searched linearly. It serves ternary, range and optional keys, and
//! prefixes beside other key elements.
//!
//! ```text
//! table: | number of rule 1 | pair of each element | number of rule 2 | ... | 0
//! pair:  value and mask, or the bounds of a range
//! ```

use std::sync::atomic::AtomicU64;

use super::{FlatFull, load, store};

/// Maximum number of rules.
pub const MAX_RULES: usize = 64;

/// Takes the place of the first rule's number in a table that cannot be searched: it has more than [`MAX_RULES`] rules,
/// or two overlapping ones of one rank.
pub const UNSEARCHABLE: u32 = u32::MAX;

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

    /// Whether some word matches both pairs.
    fn overlap(self, [a, a_second]: [u64; 2], [b, b_second]: [u64; 2]) -> bool {
        match self {
            RuleElement::Ternary => (a ^ b) & a_second & b_second == 0,
            RuleElement::Range => a.max(b) <= a_second.min(b_second),
        }
    }
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlatRule {
    /// The priority, and then the total length of prefixes: the higher one wins.
    pub rank: (i32, u32),
    /// The number of the entry, neither 0 nor [`UNSEARCHABLE`].
    pub number: u32,
    /// A pair for each element of the key.
    pub pairs: Vec<[u64; 2]>,
}

/// The shape of a list of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatRules {
    elements: usize,
}

impl FlatRules {
    /// Returns the shape of a table whose key has this number of elements.
    pub fn new(elements: usize) -> FlatRules {
        FlatRules { elements }
    }

    /// Returns the number of words of a rule.
    pub fn rule_words(&self) -> usize {
        1 + 2 * self.elements
    }

    /// Returns the number of words of a table.
    pub fn words(&self) -> usize {
        MAX_RULES * self.rule_words() + 1
    }

    /// Writes all rules.
    ///
    /// # Errors
    /// [`FlatFull`] if there are more than [`MAX_RULES`], or two of one rank match the same key. Every lookup finds
    /// [`UNSEARCHABLE`] then.
    ///
    /// # Panics
    /// If a rule or the table does not fit the shape.
    pub fn write(&self, words: &[AtomicU64], kinds: &[RuleElement], mut rules: Vec<FlatRule>) -> Result<(), FlatFull> {
        assert!(words.len() == self.words() && kinds.len() == self.elements, "table and kinds fit the shape");
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.rank));
        let overlap = |a: &FlatRule, b: &FlatRule| {
            kinds.iter().zip(a.pairs.iter().zip(&b.pairs)).all(|(kind, (a, b))| kind.overlap(*a, *b))
        };
        // Checked only if the number of rules is permitted: the comparison is quadratic.
        let is_unordered = || {
            rules.iter().enumerate().any(|(at, rule)| {
                let mut equal = rules[at + 1..].iter().take_while(|other| other.rank == rule.rank);
                equal.any(|other| overlap(rule, other))
            })
        };
        if rules.len() > MAX_RULES || is_unordered() {
            self.refuse(words);
            return Err(FlatFull);
        }
        for (at, rule) in rules.iter().enumerate() {
            assert!(
                !matches!(rule.number, 0 | UNSEARCHABLE) && rule.pairs.len() == self.elements,
                "a rule of the table"
            );
            let first = at * self.rule_words();
            store(words, first, rule.number.into());
            for (at, pair) in rule.pairs.iter().enumerate() {
                store(words, first + 1 + 2 * at, pair[0]);
                store(words, first + 2 + 2 * at, pair[1]);
            }
        }
        store(words, rules.len() * self.rule_words(), 0);
        Ok(())
    }

    /// Makes every lookup find [`UNSEARCHABLE`].
    ///
    /// # Panics
    /// If the table does not fit the shape.
    pub fn refuse(&self, words: &[AtomicU64]) {
        store(words, 0, UNSEARCHABLE.into());
    }

    /// Returns the number of the first rule that matches a key; 0 if there is none.
    ///
    /// # Panics
    /// If the key or the table does not fit the shape.
    pub fn lookup(&self, words: &[AtomicU64], kinds: &[RuleElement], key: &[u64]) -> u32 {
        assert!(words.len() == self.words() && kinds.len() == self.elements && key.len() == self.elements, "they fit");
        for rule in 0..MAX_RULES {
            let first = rule * self.rule_words();
            let number = load(words, first) as u32;
            if matches!(number, 0 | UNSEARCHABLE) {
                return number;
            }
            let pair = |at: usize| [load(words, first + 1 + 2 * at), load(words, first + 2 + 2 * at)];
            if (0..self.elements).all(|at| kinds[at].matches(pair(at), key[at])) {
                return number;
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rng::SplitMix64;

    const KINDS: [RuleElement; 3] = [RuleElement::Ternary, RuleElement::Range, RuleElement::Ternary];

    fn random_rule(rng: &mut SplitMix64, number: u32) -> FlatRule {
        let mask = rng.below(16);
        let low = rng.below(16);
        let pairs = vec![[rng.below(16) & mask, mask], [low, low + rng.below(6)], [0, 0]];
        FlatRule { rank: (rng.below(4) as i32, rng.below(3) as u32), number, pairs }
    }

    #[test]
    fn the_highest_rank_that_matches_is_found_or_the_table_is_refused() {
        let shape = FlatRules::new(3);
        let words: Vec<AtomicU64> = (0..shape.words()).map(|_| AtomicU64::new(0)).collect();
        let mut rng = SplitMix64::new(9);
        let (mut found, mut refused) = (0, 0);
        for _ in 0..2000 {
            let rules: Vec<FlatRule> =
                (0..rng.below(8) as u32).map(|number| random_rule(&mut rng, number + 1)).collect();
            let written = shape.write(&words, &KINDS, rules.clone());
            for _ in 0..20 {
                let key = [rng.below(16), rng.below(22), rng.below(3)];
                let is_match = |rule: &&FlatRule| (0..3).all(|at| KINDS[at].matches(rule.pairs[at], key[at]));
                let best = rules.iter().filter(is_match).max_by_key(|rule| rule.rank);
                let number = shape.lookup(&words, &KINDS, &key);
                if written.is_err() {
                    assert_eq!(number, UNSEARCHABLE);
                    continue;
                }
                let equal = rules.iter().filter(is_match).filter(|rule| Some(rule.rank) == best.map(|best| best.rank));
                assert!(equal.count() <= 1, "the order is known");
                assert_eq!(number, best.map_or(0, |rule| rule.number));
                found += u32::from(number != 0);
            }
            refused += u32::from(written.is_err());
        }
        assert!(found > 1000 && (100..1900).contains(&refused), "{found} found, {refused} refused");
    }

    #[test]
    fn a_table_takes_64_rules() {
        let shape = FlatRules::new(1);
        let words: Vec<AtomicU64> = (0..shape.words()).map(|_| AtomicU64::new(0)).collect();
        let rules = |count: u32| -> Vec<FlatRule> {
            (1..=count)
                .map(|number| FlatRule { rank: (1, 0), number, pairs: vec![[number.into(), u64::MAX]] })
                .collect()
        };
        let kinds = [RuleElement::Ternary];
        assert_eq!(shape.write(&words, &kinds, rules(65)), Err(FlatFull));
        assert_eq!(shape.lookup(&words, &kinds, &[1]), UNSEARCHABLE);
        assert_eq!(shape.write(&words, &kinds, rules(64)), Ok(()));
        assert_eq!([1, 64, 65].map(|key| shape.lookup(&words, &kinds, &[key])), [1, 64, 0]);
        assert_eq!(shape.write(&words, &kinds, rules(2)), Ok(()));
        assert_eq!([2, 3, 64].map(|key| shape.lookup(&words, &kinds, &[key])), [2, 0, 0]);
    }
}
