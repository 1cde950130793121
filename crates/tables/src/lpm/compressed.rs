//! Compressed index for prefixes of at most 32 bits, with levels of 16, 8 and 8 bits (Degermark, Brodnik, Carlsson,
//! Pink: Small Forwarding Tables for Fast Routing Lookups, 1997).
//!
//! The first 16 bits select a result, or a group of 256 slots for the next 8 bits; a slot has a result or a group for
//! the last 8. Neighbouring slots with the same result are a *run*, stored once. A quarter of a group is a bitmap of
//! the slots at which a run begins, and the position of its first run:
//!
//! ```text
//! slots    a a a b b c c c    bitmap  1 0 0 1 0 1 0 0    runs  a b c
//! ```
//!
//! So a lookup counts bits instead of touching a page per prefix: a million prefixes of a routing table take about
//! 15 MB, which caches hold, where a flat array of 2^24 results (DIR-24-8) takes 84 MB for any number of prefixes.
//!
//! The length of the prefix of each result is stored separately and read only by updates. The default route (length
//! 0) is stored separately too, so that it does not touch every group.
//!
//! An update rewrites the slots below its prefix. [`IndexBuilder`] makes an index of many prefixes at once, and writes
//! each group once.

use crate::arena::Arena;
use crate::prefetch::prefetch;
use crate::{BATCH, MISS};

/// Flag of a result that is the number of a group.
const GROUP: u32 = 1 << 31;
/// Number of slots in a quarter, and of quarters in a group.
const QUARTER: usize = 64;
const QUARTERS: usize = 4;
/// Number of bits of the first level, and of each other one.
const TOP: u32 = 16;
const STEP: u32 = 8;

/// A quarter of a group.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(16))]
struct Quarter {
    /// The slots at which a run begins; slot 0 is one of them.
    starts: u64,
    /// Position of the first run.
    first: u32,
}

/// The slots of a quarter, one by one: results and lengths of their prefixes.
type Slots = ([u32; QUARTER], [u8; QUARTER]);

#[derive(Clone, Debug)]
pub(super) struct CompressedIndex {
    /// Number of bits that a value lacks to 32.
    spare: u32,
    /// Handle + 1, 0 for none, or [`GROUP`] and the number of a group.
    top: Vec<u32>,
    top_lengths: Vec<u8>,
    /// The quarters of all groups.
    quarters: Vec<Quarter>,
    /// The results of runs, and their lengths.
    runs: Arena<u32>,
    run_lengths: Vec<u8>,
    free_groups: Vec<u32>,
    /// The result of the prefix of length 0.
    default: u32,
}

/// The prefix that an update inserts or removes.
struct PrefixUpdate {
    /// First bits at the top.
    value: u32,
    prefix: u32,
    /// Minimum length of a result that is replaced; the maximum is `prefix`.
    shortest: u8,
    answer: u32,
    length: u8,
}

impl CompressedIndex {
    /// Creates an index for prefixes of `width` bits, up to 32.
    pub(super) fn new(width: u32) -> Self {
        CompressedIndex {
            spare: 32 - width,
            top: vec![0; 1 << TOP],
            top_lengths: vec![0; 1 << TOP],
            quarters: Vec::new(),
            runs: Arena::new(),
            run_lengths: Vec::new(),
            free_groups: Vec::new(),
            default: 0,
        }
    }

    /// Returns the position of the run of a slot.
    #[inline(always)]
    fn run_at(&self, group: u32, slot: u32) -> usize {
        let quarter = self.quarters[(group & !GROUP) as usize * QUARTERS + (slot / QUARTER as u32) as usize];
        let upto = quarter.starts & (u64::MAX >> (QUARTER as u32 - 1 - slot % QUARTER as u32));
        quarter.first as usize + upto.count_ones() as usize - 1
    }

    #[inline(always)]
    fn answer(&self, value: u32) -> u32 {
        let mut answer = self.top[(value >> TOP) as usize];
        if answer & GROUP != 0 {
            answer = self.runs.items[self.run_at(answer, value >> STEP & 0xff)];
            if answer & GROUP != 0 {
                answer = self.runs.items[self.run_at(answer, value & 0xff)];
            }
        }
        answer
    }

    #[inline(always)]
    fn or_default(&self, answer: u32) -> u32 {
        if answer == 0 { self.default } else { answer }
    }

    #[inline(always)]
    pub(super) fn lookup(&self, value: u32) -> Option<u32> {
        self.or_default(self.answer(value << self.spare)).checked_sub(1)
    }

    /// Looks up a batch of up to [`BATCH`] values. Each level is read for all values before any result is used.
    #[inline(always)]
    pub(super) fn lookup_batch(&self, found: &mut [u32], value: impl Fn(usize) -> u32) {
        let mut values = [0; BATCH];
        let mut answers = [0; BATCH];
        let mut runs = [0usize; BATCH];
        let count = found.len().min(BATCH);
        for at in 0..count {
            values[at] = value(at) << self.spare;
            answers[at] = self.top[(values[at] >> TOP) as usize];
            if answers[at] & GROUP != 0 {
                prefetch(&self.quarters, (answers[at] & !GROUP) as usize * QUARTERS + (values[at] >> 14 & 3) as usize);
            }
        }
        for at in 0..count {
            if answers[at] & GROUP != 0 {
                runs[at] = self.run_at(answers[at], values[at] >> STEP & 0xff);
                prefetch(&self.runs.items, runs[at]);
            }
        }
        for at in 0..count {
            let mut answer = answers[at];
            if answer & GROUP != 0 {
                answer = self.runs.items[runs[at]];
                if answer & GROUP != 0 {
                    answer = self.runs.items[self.run_at(answer, values[at] & 0xff)];
                }
            }
            // The encoding 0, for no result, wraps to [`MISS`].
            found[at] = self.or_default(answer).wrapping_sub(1);
        }
        const { assert!(MISS == u32::MAX) };
    }

    /// Inserts a prefix or sets its handle. It wins wherever there is no longer prefix.
    pub(super) fn insert(&mut self, value: u32, prefix: u32, handle: u32) {
        if prefix == 0 {
            self.default = handle + 1;
            return;
        }
        let value = value << self.spare;
        self.write(&PrefixUpdate { value, prefix, shortest: 0, answer: handle + 1, length: prefix as u8 });
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
        self.write(&PrefixUpdate { value: value << self.spare, prefix, shortest: prefix as u8, answer, length });
    }

    /// Writes a result below a prefix where it replaces the present one.
    fn write(&mut self, update: &PrefixUpdate) {
        let from = (update.value >> TOP) as usize;
        for at in from..from + (1 << TOP.saturating_sub(update.prefix)) {
            let slot = (self.top[at], self.top_lengths[at]);
            (self.top[at], self.top_lengths[at]) = self.written(slot, TOP, update);
        }
    }

    /// Returns the new content of a slot whose value has `level` bits.
    fn written(&mut self, slot: (u32, u8), level: u32, update: &PrefixUpdate) -> (u32, u8) {
        let (answer, length) = slot;
        if answer & GROUP == 0 && update.prefix <= level {
            let is_replaced = update.shortest <= length && u32::from(length) <= update.prefix;
            return if is_replaced { (update.answer, update.length) } else { slot };
        }
        let group = if answer & GROUP != 0 { answer & !GROUP } else { self.open_group(slot) };
        let (from, many) = match update.prefix.checked_sub(level) {
            None | Some(0) => (0, QUARTER * QUARTERS),
            Some(more) => {
                let slot = (update.value >> (32 - level - STEP)) as usize & (QUARTER * QUARTERS - 1);
                (slot, 1 << STEP.saturating_sub(more))
            }
        };
        for number in from / QUARTER..(from + many).div_ceil(QUARTER) {
            let quarter = group as usize * QUARTERS + number;
            let (mut answers, mut lengths) = self.slots(quarter);
            let first = from.max(number * QUARTER) % QUARTER;
            for at in first..(first + many).min(QUARTER) {
                (answers[at], lengths[at]) = self.written((answers[at], lengths[at]), level + STEP, update);
            }
            self.set_slots(quarter, &(answers, lengths));
        }
        self.close_group(group, level).unwrap_or((GROUP | group, 0))
    }

    /// Returns the slots of a quarter.
    fn slots(&self, quarter: usize) -> Slots {
        let Quarter { starts, first } = self.quarters[quarter];
        let (mut answers, mut lengths) = ([0; QUARTER], [0; QUARTER]);
        let mut run = first as usize;
        let mut rest = starts;
        while rest != 0 {
            let at = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let end = if rest == 0 { QUARTER } else { rest.trailing_zeros() as usize };
            answers[at..end].fill(self.runs.items[run]);
            lengths[at..end].fill(self.run_lengths[run]);
            run += 1;
        }
        (answers, lengths)
    }

    fn set_slots(&mut self, quarter: usize, (answers, lengths): &Slots) {
        let mut starts = 1u64;
        for at in 1..QUARTER {
            let begins = (answers[at] != answers[at - 1]) | (lengths[at] != lengths[at - 1]);
            starts |= u64::from(begins) << at;
        }
        let Quarter { starts: before, mut first } = self.quarters[quarter];
        first = self.runs.reallocate(first, before.count_ones() as usize, starts.count_ones() as usize);
        let missing = self.runs.items.len().saturating_sub(self.run_lengths.len());
        crate::reserve_gently(&mut self.run_lengths, missing);
        self.run_lengths.resize(self.runs.items.len(), 0);
        let mut rest = starts;
        let mut run = first as usize;
        while rest != 0 {
            let at = rest.trailing_zeros() as usize;
            self.runs.items[run] = answers[at];
            self.run_lengths[run] = lengths[at];
            run += 1;
            rest &= rest - 1;
        }
        self.quarters[quarter] = Quarter { starts, first };
    }

    /// Creates a group in place of a slot.
    fn open_group(&mut self, (answer, length): (u32, u8)) -> u32 {
        let group = self.free_groups.pop().unwrap_or_else(|| {
            let group = self.quarters.len() / QUARTERS;
            crate::reserve_gently(&mut self.quarters, QUARTERS);
            self.quarters.resize((group + 1) * QUARTERS, Quarter::default());
            group as u32
        });
        for quarter in 0..QUARTERS {
            self.set_slots(group as usize * QUARTERS + quarter, &([answer; QUARTER], [length; QUARTER]));
        }
        group
    }

    /// Frees a group if no prefix in it needs one; returns the slot that replaces it.
    fn close_group(&mut self, group: u32, level: u32) -> Option<(u32, u8)> {
        let quarters = group as usize * QUARTERS..(group as usize + 1) * QUARTERS;
        let one = |quarter: &Quarter| {
            let run = quarter.first as usize;
            (quarter.starts == 1).then(|| (self.runs.items[run], self.run_lengths[run]))
        };
        let mut slots = self.quarters[quarters.clone()].iter().map(one);
        let slot = slots.next().flatten()?;
        if slot.0 & GROUP != 0 || u32::from(slot.1) > level || !slots.all(|other| other == Some(slot)) {
            return None;
        }
        for quarter in quarters {
            let Quarter { first, .. } = std::mem::take(&mut self.quarters[quarter]);
            self.runs.release(first, 1);
        }
        self.free_groups.push(group);
        Some(slot)
    }

    /// Stores a group.
    fn store(&mut self, slots: &GroupSlots) -> u32 {
        let group = self.quarters.len() / QUARTERS;
        crate::reserve_gently(&mut self.quarters, QUARTERS);
        self.quarters.resize((group + 1) * QUARTERS, Quarter::default());
        for (number, quarter) in slots.quarters.iter().enumerate() {
            self.set_slots(group * QUARTERS + number, quarter);
        }
        group as u32
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let top = self.top.capacity() * 4 + self.top_lengths.capacity();
        let runs = self.runs.memory_bytes() + self.run_lengths.capacity();
        top + self.quarters.capacity() * size_of::<Quarter>() + runs + self.free_groups.capacity() * 4
    }
}

/// The slots of a group that is not stored yet.
struct GroupSlots {
    quarters: [Slots; QUARTERS],
    /// The bits that lead to the group.
    path: u32,
}

impl GroupSlots {
    /// Creates a group in place of a slot.
    fn new(path: u32, (answer, length): (u32, u8)) -> Self {
        GroupSlots { quarters: [([answer; QUARTER], [length; QUARTER]); QUARTERS], path }
    }

    fn slot(&mut self, slot: u32) -> (&mut u32, &mut u8) {
        let (slot, quarter) = (slot as usize % QUARTER, slot as usize % (QUARTER * QUARTERS) / QUARTER);
        let (answers, lengths) = &mut self.quarters[quarter];
        (&mut answers[slot], &mut lengths[slot])
    }

    /// Writes the result of a prefix of `length` bits to the `many` slots from a slot on.
    fn paint(&mut self, from: u32, many: u32, answer: u32, length: u8) {
        for slot in from..from + many {
            let (old_answer, old_length) = self.slot(slot);
            (*old_answer, *old_length) = (answer, length);
        }
    }
}

/// Builds an index from prefixes in order: a prefix comes before those that it contains, otherwise the lower value
/// comes first. So no prefix changes slots before its own, and a group is complete, and stored, when the first prefix
/// after it comes.
pub(super) struct IndexBuilder {
    index: CompressedIndex,
    /// The groups of the second and third level to which prefixes are being written.
    middle: Option<Box<GroupSlots>>,
    last: Option<Box<GroupSlots>>,
}

impl IndexBuilder {
    /// Starts an index for prefixes of `width` bits, up to 32.
    pub(super) fn new(width: u32) -> Self {
        IndexBuilder { index: CompressedIndex::new(width), middle: None, last: None }
    }

    /// Adds the next prefix; the value has its first bit at the top.
    pub(super) fn push(&mut self, value: u32, prefix: u32, handle: u32) {
        let (answer, length) = (handle + 1, prefix as u8);
        if prefix == 0 {
            self.index.default = answer;
            return;
        }
        let (top, middle) = (value >> TOP, value >> STEP);
        if self.last.as_ref().is_some_and(|last| prefix <= TOP + STEP || last.path != middle) {
            self.store_last();
        }
        if self.middle.as_ref().is_some_and(|group| prefix <= TOP || group.path != top) {
            self.store_middle();
        }
        if prefix <= TOP {
            let slots = top as usize..top as usize + (1 << (TOP - prefix));
            self.index.top[slots.clone()].fill(answer);
            self.index.top_lengths[slots].fill(length);
            return;
        }
        let above = (self.index.top[top as usize], self.index.top_lengths[top as usize]);
        let group = self.middle.get_or_insert_with(|| Box::new(GroupSlots::new(top, above)));
        if prefix <= TOP + STEP {
            return group.paint(middle & 0xff, 1 << (TOP + STEP - prefix), answer, length);
        }
        let (above_answer, above_length) = group.slot(middle);
        let above = (*above_answer, *above_length);
        let group = self.last.get_or_insert_with(|| Box::new(GroupSlots::new(middle, above)));
        group.paint(value & 0xff, 1 << (u32::BITS - prefix), answer, length);
    }

    fn store_last(&mut self) {
        if let (Some(last), Some(group)) = (self.last.take(), &mut self.middle) {
            let (answer, length) = group.slot(last.path);
            (*answer, *length) = (GROUP | self.index.store(&last), 0);
        }
    }

    fn store_middle(&mut self) {
        if let Some(group) = self.middle.take() {
            let path = group.path as usize;
            (self.index.top[path], self.index.top_lengths[path]) = (GROUP | self.index.store(&group), 0);
        }
    }

    /// Returns the index.
    pub(super) fn finish(mut self) -> CompressedIndex {
        self.store_last();
        self.store_middle();
        self.index
    }
}
