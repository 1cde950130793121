//! Changes of entries: the winners in a range before and after.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use smallvec::SmallVec;

use super::search::BinarySearch;
use super::{Intervals, RangeEntry, RangeGroup, Rank};
use crate::MISS;

/// Returns the size class of a range, the number of bits of its length: class 3 has fewer than 8 numbers after the
/// first.
fn size(low: u64, high: u64) -> u8 {
    (u64::BITS - (high - low).leading_zeros()) as u8
}

impl Intervals {
    pub(super) fn new_group(&mut self) -> u32 {
        let root = self.steps.constant(MISS);
        if let Some(group) = self.free_groups.pop() {
            self.groups[group as usize] = RangeGroup::default();
            self.roots[group as usize] = root;
            return group;
        }
        self.groups.push(RangeGroup::default());
        self.roots.push(root);
        u32::try_from(self.groups.len() - 1).expect("there are fewer than 2^32 groups")
    }

    /// Splits a range into parts that do not wrap around.
    fn parts(&self, low: u64, high: u64) -> SmallVec<[(u64, u64); 2]> {
        let largest = self.field.ones(0);
        assert!(high <= largest, "the end of a range is a value of its field");
        if low <= high {
            SmallVec::from_slice(&[(low, high)])
        } else {
            SmallVec::from_slice(&[(low, largest), (0, high)])
        }
    }

    /// Returns the group and the handle of the entry with exactly this key, range and priority.
    fn position(&self, key: &[u64], high: u64, priority: u64) -> Option<(u32, u32)> {
        assert_eq!(key.len(), self.words, "keys have the table's number of words");
        let group = self.group::<0>(key)?;
        let ends = (self.number(key), high);
        let (low, end) = self.parts(ends.0, high)[0];
        let place = |handle| (group, size(low, end), low, end, priority, handle);
        let mut same = self.order.range(place(0)..=place(u32::MAX)).map(|place| place.5);
        same.find(|handle| self.entries[*handle as usize].ends == ends).map(|handle| (group, handle))
    }

    /// Returns the handle of the entry for exactly this range, which begins at the key's number, with this priority.
    pub fn find_entry(&self, key: &[u64], high: u64, priority: u64) -> Option<u32> {
        self.position(key, high, priority).map(|(_, handle)| handle)
    }

    /// Adds an entry for the range that begins at the key's number and ends at `high`, both included. A range whose end
    /// is below its beginning wraps around from the largest number to 0. If there is an entry with this range and
    /// priority, it gets the new handle, keeps its age, and its previous handle is returned.
    ///
    /// # Panics
    /// Panics if `high` has more bits than the field, or the handle is [`MISS`].
    pub fn insert(&mut self, key: &[u64], high: u64, priority: u64, handle: u32) -> Option<u32> {
        assert_ne!(handle, MISS, "an entry has a handle");
        if let Some((_, before)) = self.position(key, high, priority) {
            if before != handle {
                let entry = self.entries[before as usize].clone();
                self.remove(key, high, priority);
                self.add(key, entry, handle);
            }
            return Some(before);
        }
        let rank = (priority, Reverse(self.inserted));
        self.inserted += 1;
        self.add(key, RangeEntry { rank, ends: (self.number(key), high) }, handle);
        None
    }

    /// Adds an entry with a unique range and priority.
    fn add(&mut self, key: &[u64], entry: RangeEntry, handle: u32) {
        let group = self.group::<0>(key).unwrap_or_else(|| {
            let group = self.new_group();
            let part = self.exact_part(key);
            self.by_exact.as_mut().expect("without exact fields there is one group").insert(&part, group);
            group
        });
        let RangeEntry { rank: (priority, _), ends } = entry;
        if self.entries.len() <= handle as usize {
            self.entries.resize(handle as usize + 1, RangeEntry::default());
        }
        self.entries[handle as usize] = entry;
        self.len += 1;
        self.groups[group as usize].len += 1;
        for (low, high) in self.parts(ends.0, ends.1) {
            self.groups[group as usize].sizes |= 1 << size(low, high);
            self.order.insert((group, size(low, high), low, high, priority, handle));
            self.paint(group, low, high, handle);
        }
    }

    /// Removes an entry and returns its handle.
    pub fn remove(&mut self, key: &[u64], high: u64, priority: u64) -> Option<u32> {
        let (group, handle) = self.position(key, high, priority)?;
        for (low, high) in self.parts(self.number(key), high) {
            self.order.remove(&(group, size(low, high), low, high, priority, handle));
            self.repaint(group, low, high);
        }
        self.len -= 1;
        self.groups[group as usize].len -= 1;
        if self.groups[group as usize].len == 0 {
            self.groups[group as usize].sizes = 0;
            let part = self.exact_part(key);
            if let Some(by_exact) = &mut self.by_exact {
                by_exact.remove(&part);
                self.steps.release(self.roots[group as usize]);
                self.free_groups.push(group);
            }
        }
        Some(handle)
    }

    fn rank(&self, handle: u32) -> Rank {
        self.entries[handle as usize].rank
    }

    /// Makes an entry win in a range, except where a better entry wins.
    fn paint(&mut self, group: u32, low: u64, high: u64, entry: u32) {
        let rank = self.rank(entry);
        let mut steps = self.steps.steps(self.roots[group as usize], low, high);
        for (threshold, winner) in &mut steps {
            *threshold = low.max(*threshold);
            if *winner == MISS || self.rank(*winner) < rank {
                *winner = entry;
            }
        }
        steps.dedup_by_key(|(_, winner)| *winner);
        self.replace(group, low, high, steps);
    }

    /// Recomputes the winners in a range, with a sweep over all entries that reach into it.
    fn repaint(&mut self, group: u32, low: u64, high: u64) {
        let mut reaching = self.reaching(group, low, high);
        reaching.sort_unstable();
        let mut reaching = reaching.into_iter().peekable();
        let mut open: BinaryHeap<(Rank, u64, u32)> = BinaryHeap::new();
        let mut steps: Vec<(u64, u32)> = Vec::new();
        let mut at = low;
        loop {
            while let Some((_, end, entry)) = reaching.next_if(|(begin, ..)| *begin <= at) {
                open.push((self.rank(entry), end, entry));
            }
            while open.peek().is_some_and(|(_, end, _)| *end < at) {
                open.pop();
            }
            let winner = open.peek().map_or(MISS, |(.., entry)| *entry);
            if steps.last().is_none_or(|(_, last)| *last != winner) {
                steps.push((at, winner));
            }
            // The winner may change at the end of the current winner or at the beginning of another entry.
            let behind = open.peek().and_then(|(_, end, _)| end.checked_add(1));
            let next = reaching.peek().map(|(begin, ..)| *begin);
            match behind.into_iter().chain(next).min().filter(|next| *next <= high) {
                Some(next) => at = next,
                None => break,
            }
        }
        self.replace(group, low, high, steps);
    }

    /// Returns all entries that reach into a range: beginning, end and handle.
    fn reaching(&self, group: u32, low: u64, high: u64) -> Vec<(u64, u64, u32)> {
        let mut reaching = Vec::new();
        let sizes = self.groups[group as usize].sizes;
        for size in (0..=64u8).filter(|size| sizes >> size & 1 != 0) {
            let longest = if size == 0 { 0 } else { u64::MAX >> (64 - size) };
            let from = (group, size, low.saturating_sub(longest), 0, 0, 0);
            let to = (group, size, high, u64::MAX, u64::MAX, u32::MAX);
            let these = self.order.range(from..=to).filter(|(_, _, _, end, _, _)| *end >= low);
            reaching.extend(these.map(|(_, _, begin, end, _, entry)| (*begin, *end, *entry)));
        }
        reaching
    }

    /// Replaces the steps of a group's function in a range; the first new step begins with the range.
    fn replace(&mut self, group: u32, low: u64, high: u64, mut wanted: Vec<(u64, u32)>) {
        let mut root = self.roots[group as usize];
        let end = high + u64::from(high < self.field.ones(0));
        if end > high {
            let behind = self.steps.value(BinarySearch, root, end);
            if wanted.last().is_some_and(|(_, last)| *last != behind) {
                wanted.push((end, behind));
            }
        }
        let goes_on = low > 0 && self.steps.value(BinarySearch, root, low - 1) == wanted[0].1;
        let wanted = &wanted[usize::from(goes_on)..];
        let mut there = self.steps.steps(root, low, end);
        there.retain(|(threshold, _)| *threshold >= low);
        for (threshold, _) in &there {
            if wanted.binary_search_by_key(threshold, |step| step.0).is_err() {
                self.steps.remove(&mut root, *threshold);
            }
        }
        for step in wanted {
            if there.binary_search(step).is_err() {
                self.steps.set(&mut root, step.0, step.1);
            }
        }
        self.roots[group as usize] = root;
    }
}
