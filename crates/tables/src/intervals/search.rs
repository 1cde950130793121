//! Searches for the last of 16 thresholds that is not above a number.

use super::nodes::{FAN, Threshold};
#[cfg(target_arch = "x86_64")]
use crate::simd::{self, Level};

/// A search method. Such a threshold always exists: no number is below the first.
pub(super) trait Search: Copy {
    fn place<T: Threshold>(self, thresholds: &[T; FAN], number: T) -> usize;
}

/// Binary search, for every processor.
#[derive(Clone, Copy, Debug)]
pub(super) struct BinarySearch;

impl Search for BinarySearch {
    #[inline(always)]
    fn place<T: Threshold>(self, thresholds: &[T; FAN], number: T) -> usize {
        // Sums of comparisons avoid mispredicted branches.
        let mut at = 0;
        for half in [8, 4, 2, 1] {
            at += half * usize::from(thresholds[at + half] <= number);
        }
        at
    }
}

/// Comparison with all thresholds at once, which needs AVX-512.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(super) struct SimdSearch(());

#[cfg(target_arch = "x86_64")]
impl SimdSearch {
    /// Returns `None` if the processor does not support it.
    pub fn new() -> Option<SimdSearch> {
        matches!(simd::level(), Level::Avx512).then_some(SimdSearch(()))
    }
}

#[cfg(target_arch = "x86_64")]
impl Search for SimdSearch {
    #[inline(always)]
    fn place<T: Threshold>(self, thresholds: &[T; FAN], number: T) -> usize {
        // SAFETY: such a value exists only where the processor has the instructions that the function is compiled for.
        let count = unsafe { number.count_at_once(thresholds) };
        // Thresholds ascend, so this is also the number of thresholds up to the one searched for.
        (count as usize).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    fn both_agree<T: Threshold + std::fmt::Debug>(bits: u32) {
        let Some(wide) = SimdSearch::new() else { return };
        let step = bits - 4;
        for len in 1..=FAN as u64 {
            let thresholds = std::array::from_fn(|at| T::of((at as u64).min(len - 1) << step));
            for number in (0..len).flat_map(|at| [0, 1, (1 << step) - 1].map(|more| T::of((at << step) + more))) {
                let (one, other) = (BinarySearch.place(&thresholds, number), wide.place(&thresholds, number));
                assert_eq!(thresholds[one], thresholds[other], "{number:?} among {len}");
                assert!(thresholds[one] <= number && other < FAN);
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn both_find_the_same() {
        both_agree::<u32>(32);
        both_agree::<u64>(64);
    }
}
