//! The last of 16 thresholds that is not above a number.

use super::steps::FAN;
#[cfg(target_arch = "x86_64")]
use crate::simd::{self, Level};

/// A way of finding it. There is one: whoever asks is not below the first.
pub(super) trait Search: Copy {
    fn place(self, thresholds: &[u64; FAN], number: u64) -> usize;
}

/// What every processor can: halving.
#[derive(Clone, Copy, Debug)]
pub(super) struct Halving;

impl Search for Halving {
    #[inline(always)]
    fn place(self, thresholds: &[u64; FAN], number: u64) -> usize {
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
    fn place(self, thresholds: &[u64; FAN], number: u64) -> usize {
        // SAFETY: there is no such value but where the processor has what the function is compiled for.
        unsafe { place_at_once(thresholds, number) }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
fn place_at_once(thresholds: &[u64; FAN], number: u64) -> usize {
    use std::arch::x86_64::{_mm512_cmple_epu64_mask, _mm512_loadu_si512, _mm512_set1_epi64};
    let number = _mm512_set1_epi64(number as i64);
    let (low, high) = thresholds.split_at(FAN / 2);
    // SAFETY: each load reads eight thresholds, at any alignment.
    let (low, high) = unsafe { (_mm512_loadu_si512(low.as_ptr().cast()), _mm512_loadu_si512(high.as_ptr().cast())) };
    let above = [_mm512_cmple_epu64_mask(low, number), _mm512_cmple_epu64_mask(high, number)];
    // They ascend, so as many are not above it as come before.
    (u16::from_le_bytes(above).count_ones() as usize).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn both_find_the_same() {
        let Some(wide) = AtOnce::new() else { return };
        for len in 1..=FAN as u64 {
            let thresholds = std::array::from_fn(|at| (at as u64).min(len - 1) << 60);
            for number in (0..len).flat_map(|at| [at << 60, (at << 60) + 1, (at << 60) + u64::MAX / 16]) {
                let (one, other) = (Halving.place(&thresholds, number), wide.place(&thresholds, number));
                assert_eq!(thresholds[one], thresholds[other], "{number:x} among {len}");
                assert!(thresholds[one] <= number && other < FAN);
            }
        }
    }
}
