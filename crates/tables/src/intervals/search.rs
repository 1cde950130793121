//! The last of 16 thresholds that is not above a number.

use super::nodes::{FAN, Threshold};
#[cfg(target_arch = "x86_64")]
use crate::simd::{self, Level};

/// A way of finding it. There is one: whoever asks is not below the first.
pub(super) trait Search: Copy {
    fn place<T: Threshold>(self, thresholds: &[T; FAN], number: T) -> usize;
}

/// What every processor can: halving.
#[derive(Clone, Copy, Debug)]
pub(super) struct Halving;

impl Search for Halving {
    #[inline(always)]
    fn place<T: Threshold>(self, thresholds: &[T; FAN], number: T) -> usize {
        // Sums of comparisons, since who wins is not to be guessed.
        let mut at = 0;
        for half in [8, 4, 2, 1] {
            at += half * usize::from(thresholds[at + half] <= number);
        }
        at
    }
}

/// Comparing with all at once, which takes AVX-512.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(super) struct AtOnce(());

#[cfg(target_arch = "x86_64")]
impl AtOnce {
    /// `None` where the processor cannot.
    pub fn new() -> Option<AtOnce> {
        matches!(simd::level(), Level::Avx512).then_some(AtOnce(()))
    }
}

#[cfg(target_arch = "x86_64")]
impl Search for AtOnce {
    #[inline(always)]
    fn place<T: Threshold>(self, thresholds: &[T; FAN], number: T) -> usize {
        // SAFETY: there is no such value but where the processor has what the function is compiled for.
        let count = unsafe { number.count_at_once(thresholds) };
        // They ascend, so as many are not above it as come before.
        (count as usize).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    fn both_agree<T: Threshold + std::fmt::Debug>(bits: u32) {
        let Some(wide) = AtOnce::new() else { return };
        let step = bits - 4;
        for len in 1..=FAN as u64 {
            let thresholds = std::array::from_fn(|at| T::of((at as u64).min(len - 1) << step));
            for number in (0..len).flat_map(|at| [0, 1, (1 << step) - 1].map(|more| T::of((at << step) + more))) {
                let (one, other) = (Halving.place(&thresholds, number), wide.place(&thresholds, number));
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
