//! Constructs nodes from their arms.

use crate::store::{LimitExceeded, Ref, Store};

impl Store {
    /// Returns the function that, from each of these values up to the next, equals the function beside it. The first
    /// value is 0, values ascend; levels of the functions are above `level`.
    ///
    /// # Errors
    /// [`LimitExceeded`], if a limit is reached.
    pub fn node(&mut self, level: u32, arms: impl IntoIterator<Item = (u128, Ref)>) -> Result<Ref, LimitExceeded> {
        let base = self.arms_stack.len();
        for (first, child) in arms {
            debug_assert!(self.level(child).is_none_or(|below| below > level), "levels ascend");
            self.push_arm(base, first, child);
        }
        debug_assert!(self.arms_stack.get(base).is_some_and(|(first, _)| *first == 0), "the first arm begins at 0");
        self.intern(level, base)
    }

    /// Returns the function that is `yes` where the field of `level` has a value in one of these inclusive ranges, and
    /// `no` elsewhere. The ranges ascend, neither overlap nor touch, and end at `max`, the largest value, at most.
    ///
    /// # Errors
    /// [`LimitExceeded`], if a limit is reached.
    pub fn test(
        &mut self,
        level: u32,
        ranges: &[(u128, u128)],
        max: u128,
        yes: Ref,
        no: Ref,
    ) -> Result<Ref, LimitExceeded> {
        let base = self.arms_stack.len();
        if ranges.first().is_none_or(|(first, _)| *first > 0) {
            self.push_arm(base, 0, no);
        }
        for (first, last) in ranges {
            self.push_arm(base, *first, yes);
            if *last < max {
                self.push_arm(base, *last + 1, no);
            }
        }
        self.intern(level, base)
    }

    /// Adds an arm to those from `base` on, unless it continues with the same function.
    pub(crate) fn push_arm(&mut self, base: usize, first: u128, child: Ref) {
        let goes_on = self.arms_stack.len() > base && self.arms_stack.last().is_some_and(|(_, last)| *last == child);
        if !goes_on {
            self.arms_stack.push((first, child));
        }
    }
}
