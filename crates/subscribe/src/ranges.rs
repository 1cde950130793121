//! Sets of numbers as lists of ranges.

use smallvec::{SmallVec, smallvec};

/// A set of numbers in normal form: inclusive ranges that ascend and neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ranges(SmallVec<[(u128, u128); 1]>);

impl Ranges {
    /// Returns the empty set.
    pub fn none() -> Ranges {
        Ranges::default()
    }

    /// Returns the numbers from `first` to `last`, both inclusive; empty if `last` is smaller.
    pub fn span(first: u128, last: u128) -> Ranges {
        if first <= last { Ranges(smallvec![(first, last)]) } else { Ranges::none() }
    }

    /// Returns the union of ranges, in any order.
    pub fn of(mut list: Vec<(u128, u128)>) -> Ranges {
        list.retain(|(first, last)| first <= last);
        list.sort_unstable();
        let mut out: SmallVec<[(u128, u128); 1]> = SmallVec::new();
        for (first, last) in list {
            match out.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => out.push((first, last)),
            }
        }
        Ranges(out)
    }

    /// Returns the ranges.
    pub fn list(&self) -> &[(u128, u128)] {
        &self.0
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the set contains a number.
    pub fn contains(&self, number: u128) -> bool {
        let at = self.0.partition_point(|(_, last)| *last < number);
        self.0.get(at).is_some_and(|(first, _)| *first <= number)
    }

    /// Returns the numbers up to `max` that are not in the set.
    #[must_use]
    pub fn complement(&self, max: u128) -> Ranges {
        let mut out = SmallVec::new();
        let mut from = Some(0);
        for (first, last) in &self.0 {
            if let Some(from) = from.filter(|from| from < first) {
                out.push((from, first - 1));
            }
            from = last.checked_add(1).filter(|next| *next <= max);
        }
        if let Some(from) = from {
            out.push((from, max));
        }
        Ranges(out)
    }

    /// Returns the intersection of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Ranges) -> Ranges {
        let mut out = SmallVec::new();
        let (mut left, mut right) = (self.list(), other.list());
        while let ([(a, b), rest_left @ ..], [(c, d), rest_right @ ..]) = (left, right) {
            let (first, last) = ((*a).max(*c), (*b).min(*d));
            if first <= last {
                out.push((first, last));
            }
            if b <= d {
                left = rest_left;
            } else {
                right = rest_right;
            }
        }
        Ranges(out)
    }

    /// Returns the union of both sets.
    #[must_use]
    pub fn union(&self, other: &Ranges) -> Ranges {
        Ranges::of(self.0.iter().chain(&other.0).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_the_sets_that_they_say() {
        let mut rng = rng::SplitMix64::new(5);
        for _ in 0..500 {
            let mut any = || {
                let list: Vec<(u128, u128)> =
                    (0..rng.below(4)).map(|_| (u128::from(rng.below(16)), u128::from(rng.below(16)))).collect();
                let members: Vec<bool> =
                    (0..16).map(|number| list.iter().any(|(a, b)| (*a..=*b).contains(&number))).collect();
                (Ranges::of(list), members)
            };
            let ((a, in_a), (b, in_b)) = (any(), any());
            let members = |of: &Ranges| (0..16).map(|number| of.contains(number)).collect::<Vec<_>>();
            assert_eq!(members(&a), in_a);
            assert_eq!(members(&a.complement(15)), in_a.iter().map(|is| !is).collect::<Vec<_>>());
            let both = in_a.iter().zip(&in_b);
            assert_eq!(members(&a.intersection(&b)), both.clone().map(|(a, b)| *a && *b).collect::<Vec<_>>());
            assert_eq!(members(&a.union(&b)), both.map(|(a, b)| *a || *b).collect::<Vec<_>>());
            assert_eq!(a.complement(15).complement(15), a, "there is one form");
            assert!(a.list().windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
        }
        assert_eq!(Ranges::span(0, u128::MAX).complement(u128::MAX), Ranges::none());
        assert_eq!(Ranges::of(vec![(3, u128::MAX), (0, 2)]), Ranges::span(0, u128::MAX));
    }
}
