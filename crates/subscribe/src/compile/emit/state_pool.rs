//! Allocates state numbers, separate for each tag.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};

use crate::compile::state;
use crate::tables::StateId;

/// Allocated numbers of one tag.
#[derive(Clone, Default)]
struct Pool {
    free: BinaryHeap<Reverse<u32>>,
    /// Lowest number that was never allocated.
    next: u32,
}

/// Allocated states by tag.
#[derive(Clone, Default)]
pub(super) struct StatePool(BTreeMap<u32, Pool>);

impl StatePool {
    /// Creates a pool in which these states are allocated.
    pub fn of(taken: &HashSet<StateId>) -> StatePool {
        let mut pool = StatePool::default();
        for state in taken {
            let of_tag = pool.0.entry(state::tag(*state)).or_default();
            of_tag.next = of_tag.next.max(state::number(*state) + 1);
        }
        for (tag, of_tag) in &mut pool.0 {
            let free = (0..of_tag.next).filter(|number| !taken.contains(&state::of(*tag, *number)));
            of_tag.free = free.map(Reverse).collect();
        }
        pool
    }

    /// Returns the number of free states of a tag.
    pub fn room(&self, tag: u32) -> usize {
        let taken = self.0.get(&tag).map_or(0, |pool| pool.next as usize - pool.free.len());
        (1 << state::NUMBER_BITS) - taken
    }

    /// Allocates the lowest free state of a tag.
    pub fn take(&mut self, tag: u32) -> StateId {
        let pool = self.0.entry(tag).or_default();
        let number = pool.free.pop().map_or(pool.next, |Reverse(number)| number);
        pool.next = pool.next.max(number + 1);
        state::of(tag, number)
    }

    /// Frees a state.
    pub fn give_back(&mut self, state: StateId) {
        let pool = self.0.entry(state::tag(state)).or_default();
        pool.free.push(Reverse(state::number(state)));
    }
}
