//! Direct index (DIR-24-8) for prefixes of at most 32 bits: the first 24 bits select the result, the last 8 a second
//! array where a longer prefix makes that necessary (Gupta, Lin, McKeown: Routing Lookups in Hardware at Memory Access
//! Speeds, 1998).
//!
//! The length of the prefix of each result is stored separately and read only by updates. The default route (length
//! 0) is stored separately too, so that it does not touch every page.

use crate::prefetch::prefetch;
use crate::{BATCH, MISS};

/// Flag of an item of the first array that is the index of a group of the second array.
const GROUP: u32 = 1 << 31;

#[derive(Clone, Debug)]
pub(super) struct Direct {
    /// Number of bits that index the first array, and remaining bits for the second.
    head: u32,
    tail: u32,
    /// Handle + 1, 0 for none, or [`GROUP`] and the index of a group.
    first: Vec<u32>,
    first_lengths: Vec<u8>,
    second: Vec<u32>,
    second_lengths: Vec<u8>,
    free_groups: Vec<u32>,
    /// The result of the prefix of length 0.
    default: u32,
}

impl Direct {
    /// Creates an index for prefixes of `width` bits, up to 32.
    pub(super) fn new(width: u32) -> Self {
        let head = width.min(24);
        Direct {
            head,
            tail: width - head,
            first: vec![0; 1 << head],
            first_lengths: vec![0; 1 << head],
            second: Vec::new(),
            second_lengths: Vec::new(),
            free_groups: Vec::new(),
            default: 0,
        }
    }

    #[inline(always)]
    fn answer(&self, value: u32) -> u32 {
        let answer = self.first[(value >> self.tail) as usize];
        if answer & GROUP == 0 { answer } else { self.second[self.second_at(answer, value)] }
    }

    #[inline(always)]
    fn second_at(&self, answer: u32, value: u32) -> usize {
        let in_group = value & ((1 << self.tail) - 1);
        ((answer & !GROUP) << self.tail | in_group) as usize
    }

    #[inline(always)]
    fn or_default(&self, answer: u32) -> u32 {
        if answer == 0 { self.default } else { answer }
    }

    #[inline(always)]
    pub(super) fn lookup(&self, value: u32) -> Option<u32> {
        self.or_default(self.answer(value)).checked_sub(1)
    }

    /// Looks up a batch of up to [`BATCH`] values. Each array is read for all values before any result is used.
    #[inline(always)]
    pub(super) fn lookup_batch(&self, found: &mut [u32], value: impl Fn(usize) -> u32) {
        let mut answers = [0; BATCH];
        let answers = &mut answers[..found.len()];
        for (at, answer) in answers.iter_mut().enumerate() {
            *answer = self.first[(value(at) >> self.tail) as usize];
        }
        for (at, answer) in answers.iter().enumerate() {
            if answer & GROUP != 0 {
                prefetch(&self.second, self.second_at(*answer, value(at)));
            }
        }
        for (at, (answer, found)) in answers.iter().zip(found).enumerate() {
            let answer = if answer & GROUP == 0 { *answer } else { self.second[self.second_at(*answer, value(at))] };
            // The encoding 0, for no result, wraps to [`MISS`].
            *found = self.or_default(answer).wrapping_sub(1);
        }
        const { assert!(MISS == u32::MAX) };
    }

    /// Inserts a prefix or sets its handle. It wins wherever there is no longer prefix.
    pub(super) fn insert(&mut self, value: u32, prefix: u32, handle: u32) {
        if prefix == 0 {
            self.default = handle + 1;
            return;
        }
        self.write(value, prefix, |length| u32::from(length) <= prefix, handle + 1, prefix as u8);
    }

    /// Removes a prefix; `cover` is the longest shorter prefix around it, with its handle.
    pub(super) fn remove(&mut self, value: u32, prefix: u32, cover: Option<(u32, u32)>) {
        if prefix == 0 {
            self.default = 0;
            return;
        }
        let (answer, length) = match cover {
            Some((handle, length)) if length > 0 => (handle + 1, length as u8),
            _ => (0, 0),
        };
        self.write(value, prefix, |length| u32::from(length) == prefix, answer, length);
    }

    /// Writes a result below a prefix where `replaces` accepts the current length.
    fn write(&mut self, value: u32, prefix: u32, replaces: impl Fn(u8) -> bool, answer: u32, length: u8) {
        let from = (value >> self.tail) as usize;
        let many = 1 << self.head.saturating_sub(prefix);
        let size = 1usize << self.tail;
        for at in from..from + many {
            if self.first[at] & GROUP == 0 && prefix > self.head {
                self.open_group(at);
            }
            if self.first[at] & GROUP == 0 {
                if replaces(self.first_lengths[at]) {
                    self.first[at] = answer;
                    self.first_lengths[at] = length;
                }
                continue;
            }
            let group = (self.first[at] & !GROUP) as usize * size;
            let (skip, take) = match prefix.checked_sub(self.head) {
                Some(rest) => (value as usize & (size - 1), size >> rest),
                None => (0, size),
            };
            for slot in group + skip..group + skip + take {
                if replaces(self.second_lengths[slot]) {
                    self.second[slot] = answer;
                    self.second_lengths[slot] = length;
                }
            }
            self.close_group(at);
        }
    }

    fn open_group(&mut self, at: usize) {
        let size = 1usize << self.tail;
        let group = self.free_groups.pop().unwrap_or_else(|| {
            let group = self.second.len() / size;
            self.second.resize((group + 1) * size, 0);
            self.second_lengths.resize((group + 1) * size, 0);
            group as u32
        });
        let slots = group as usize * size..(group as usize + 1) * size;
        self.second[slots.clone()].fill(self.first[at]);
        self.second_lengths[slots].fill(self.first_lengths[at]);
        self.first[at] = GROUP | group;
    }

    /// Frees a group if no prefix in it needs one.
    fn close_group(&mut self, at: usize) {
        let size = 1usize << self.tail;
        let group = self.first[at] & !GROUP;
        let base = group as usize * size;
        let lengths = &self.second_lengths[base..base + size];
        if lengths.iter().all(|length| u32::from(*length) <= self.head) {
            self.first[at] = self.second[base];
            self.first_lengths[at] = self.second_lengths[base];
            self.free_groups.push(group);
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.first.capacity() * 5 + self.second.capacity() * 5 + self.free_groups.capacity() * 4
    }
}
