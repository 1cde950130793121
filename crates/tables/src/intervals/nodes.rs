//! B+ tree nodes of step functions, with thresholds as narrow as the numbers they separate.

use super::search::Search;
use super::steps::{Items, Root};
use crate::prefetch::prefetch;

/// Number of thresholds in a node.
pub(super) const FAN: usize = 16;
/// Size of a cache line in bytes.
const LINE: usize = 64;

/// A threshold as stored in a node.
pub(super) trait Threshold: Copy + Ord {
    const LARGEST: Self;

    /// Converts a number that fits.
    fn of(number: u64) -> Self;

    fn number(self) -> u64;

    /// Returns the number of thresholds that are not above this one.
    ///
    /// # Safety
    /// The processor has the instructions that the function is compiled for.
    #[cfg(target_arch = "x86_64")]
    unsafe fn count_at_once(self, thresholds: &[Self; FAN]) -> u32;
}

impl Threshold for u32 {
    const LARGEST: u32 = u32::MAX;

    #[inline(always)]
    fn of(number: u64) -> u32 {
        debug_assert!(u32::try_from(number).is_ok(), "{number} is one of 32 bits");
        number as u32
    }

    fn number(self) -> u64 {
        self.into()
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn count_at_once(self, thresholds: &[u32; FAN]) -> u32 {
        use std::arch::x86_64::{_mm512_cmple_epu32_mask, _mm512_loadu_si512, _mm512_set1_epi32};
        // SAFETY: the load reads the 16 thresholds, at any alignment.
        let all = unsafe { _mm512_loadu_si512(thresholds.as_ptr().cast()) };
        _mm512_cmple_epu32_mask(all, _mm512_set1_epi32(self as i32)).count_ones()
    }
}

impl Threshold for u64 {
    const LARGEST: u64 = u64::MAX;

    #[inline(always)]
    fn of(number: u64) -> u64 {
        number
    }

    fn number(self) -> u64 {
        self
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn count_at_once(self, thresholds: &[u64; FAN]) -> u32 {
        use std::arch::x86_64::{_mm512_cmple_epu64_mask, _mm512_loadu_si512, _mm512_set1_epi64};
        let number = _mm512_set1_epi64(self as i64);
        let (low, high) = thresholds.split_at(FAN / 2);
        // SAFETY: each load reads eight thresholds, at any alignment.
        let halves = unsafe { [low, high].map(|half| _mm512_loadu_si512(half.as_ptr().cast())) };
        u16::from_le_bytes(halves.map(|half| _mm512_cmple_epu64_mask(half, number))).count_ones()
    }
}

/// A node. The slots after the last item hold the largest threshold and the last item's value, so that a search need
/// not know the number of items. A node takes two cache lines, or three if numbers have more than 32 bits.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct StepNode<T> {
    thresholds: [T; FAN],
    values: [u32; FAN],
}

/// Nodes by index.
#[derive(Clone, Debug)]
pub(super) struct Nodes<T>(Vec<StepNode<T>>);

impl<T> Default for Nodes<T> {
    fn default() -> Self {
        Nodes(Vec::new())
    }
}

impl<T: Threshold> Nodes<T> {
    /// Returns the number of bytes that lookups touch.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.0[..])
    }

    pub fn capacity_bytes(&self) -> usize {
        self.0.capacity() * size_of::<StepNode<T>>()
    }

    pub fn push(&mut self) {
        self.0.push(StepNode { thresholds: [T::LARGEST; FAN], values: [0; FAN] });
    }

    /// Stores at least one item in a node.
    pub fn store(&mut self, node: u32, items: &[(u64, u32)]) {
        let last = items.last().expect("a node that is kept has an item").1;
        let mut stored = StepNode { thresholds: [T::LARGEST; FAN], values: [last; FAN] };
        for (at, (threshold, value)) in items.iter().enumerate() {
            stored.thresholds[at] = T::of(*threshold);
            stored.values[at] = *value;
        }
        self.0[node as usize] = stored;
    }

    /// Returns the first items of a node.
    pub fn items(&self, node: u32, count: usize) -> Items {
        let StepNode { thresholds, values } = &self.0[node as usize];
        thresholds.iter().map(|threshold| threshold.number()).zip(values.iter().copied()).take(count).collect()
    }

    /// Returns the item of the last threshold that is not above a number: the next node, or the value.
    #[inline(always)]
    pub fn follow(&self, search: impl Search, node: u32, number: u64) -> u32 {
        let node = &self.0[node as usize];
        node.values[search.place(&node.thresholds, T::of(number))]
    }

    /// Prefetches a node.
    #[inline(always)]
    pub fn prefetch(&self, node: u32) {
        if let Some(node) = self.0.get(node as usize) {
            (0..FAN).step_by(LINE / size_of::<T>()).for_each(|at| prefetch(&node.thresholds, at));
            prefetch(&node.values, 0);
        }
    }

    /// Returns the value at a number.
    #[inline(always)]
    pub fn value(&self, search: impl Search, root: Root, number: u64) -> u32 {
        let mut node = root.node;
        for _ in 0..=root.height {
            // Prefetches all its lines together, instead of one after the other during the search.
            self.prefetch(node);
            node = self.follow(search, node, number);
        }
        node
    }
}
