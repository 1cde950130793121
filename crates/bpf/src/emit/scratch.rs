//! Assigns the words of scratch memory.

use std::collections::BTreeMap;

use ir::{HeaderId, Program, SlotId};

use super::packet::is_narrow_field;
use crate::layout::MAX_SCRATCH_WORDS;
use crate::usage::Usage;

/// A word of scratch memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ScratchWord(u32);

impl ScratchWord {
    /// The epoch of the processor: twice the number of packets that it has processed, plus 1 while it processes one.
    pub const EPOCH: ScratchWord = ScratchWord(0);
    /// Length of the packet in bytes.
    pub const LENGTH: ScratchWord = ScratchWord(1);
    /// Number of bytes that the parser consumed, plus 1.
    pub const CURSOR: ScratchWord = ScratchWord(2);
    /// Number of bytes of headers that the deparser emitted, plus 1; and [`super::headers::MOVED`].
    pub const OUT: ScratchWord = ScratchWord(3);
    /// The parser's error.
    pub const ERROR: ScratchWord = ScratchWord(4);
    /// 1 for a drop by ingress, 2 for one by egress, else 0.
    pub const VERDICT: ScratchWord = ScratchWord(5);
    /// Number of the port by which the packet leaves.
    pub const PORT: ScratchWord = ScratchWord(6);
    /// Index of the port's device.
    pub const DEVICE: ScratchWord = ScratchWord(7);
    /// The time of arrival in microseconds, if the program reads a time.
    pub const TIME: ScratchWord = ScratchWord(8);
    /// Length of the outgoing packet in bytes, in programs that move headers.
    pub const SENT_LENGTH: ScratchWord = ScratchWord(9);
    /// 1 while the packet has the lock of `@atomic` sections.
    pub const HAS_LOCK: ScratchWord = ScratchWord(10);
    /// The time of arrival in nanoseconds, if the program has meters or aging entries.
    pub const TIME_NS: ScratchWord = ScratchWord(11);
    /// Offset of the bucket of the packet's flow in bytes, if the switch has packets of the queue.
    pub const BUCKET: ScratchWord = ScratchWord(12);
    /// 1 while the packet is *crowded*: packets of its flow wait for the switch, behind many others of its queue. It is
    /// handed over if the program requires that, and else dropped.
    pub const IS_CROWDED: ScratchWord = ScratchWord(13);
    const FIRST: u32 = 14;

    /// Returns the offset in bytes.
    pub fn offset(self) -> i16 {
        // `Scratch::words` refuses more than 4,000 of them.
        (self.0 * 8) as i16
    }
}

/// The words of a program.
#[derive(Clone, Debug)]
pub(super) struct Scratch {
    pub slots: BTreeMap<SlotId, ScratchWord>,
    pub fields: BTreeMap<(HeaderId, u32), ScratchWord>,
    /// Validity of each header, and the place of its first byte plus 1.
    pub headers: BTreeMap<HeaderId, (ScratchWord, ScratchWord)>,
    /// The first word of the pending counts. All words before the spilled values are cleared for each packet.
    first_pending: u32,
    /// Number of words reserved for pending counts, and in use.
    reserved: u32,
    used: u32,
    spills: u32,
}

impl Scratch {
    pub fn new(program: &Program, usage: &Usage) -> Scratch {
        let mut next = ScratchWord::FIRST;
        let mut take = || {
            next += 1;
            ScratchWord(next - 1)
        };
        let is_narrow = |slot: &&SlotId| program.slots[**slot].width <= 64;
        let slots = usage.slots_read.iter().filter(is_narrow).map(|slot| (*slot, take())).collect();
        let fields = usage.fields_read.union(&usage.fields_written);
        let fields = fields.filter(|(header, field)| is_narrow_field(program.layout(*header), *field));
        let fields = fields.map(|field| (*field, take())).collect();
        let headers = usage.headers.iter().map(|header| (*header, (take(), take()))).collect();
        Scratch { slots, fields, headers, first_pending: next, reserved: 0, used: 0, spills: 0 }
    }

    /// Returns the words for another emission of the same code, with as many pending counts as this one.
    pub fn again(&self) -> Scratch {
        Scratch { reserved: self.used, used: 0, spills: 0, ..self.clone() }
    }

    /// Returns a word for a spilled value.
    pub fn spill(&mut self, number: u32) -> ScratchWord {
        self.spills = self.spills.max(number + 1);
        ScratchWord((self.first_pending + self.reserved + number).min(MAX_SCRATCH_WORDS))
    }

    /// Returns a new word of the pending counts.
    pub fn pending_word(&mut self) -> ScratchWord {
        self.used += 1;
        ScratchWord((self.first_pending + self.used - 1).min(MAX_SCRATCH_WORDS))
    }

    /// Returns the words that are cleared for each packet.
    pub fn cleared(&self) -> impl Iterator<Item = ScratchWord> + use<> {
        let end = self.first_pending + self.reserved;
        [ScratchWord::VERDICT].into_iter().chain((ScratchWord::FIRST..end.min(MAX_SCRATCH_WORDS)).map(ScratchWord))
    }

    /// Returns the number of words that the emission needs; `None` if they are too many.
    pub fn words(&self) -> Option<u32> {
        let words = self.first_pending + self.used.max(self.reserved) + self.spills;
        (words <= MAX_SCRATCH_WORDS).then_some(words)
    }

    /// Whether the emission used no more than the words that were reserved for it.
    pub fn fits(&self, words: u32) -> bool {
        self.used <= self.reserved && self.first_pending + self.reserved + self.spills <= words
    }
}
