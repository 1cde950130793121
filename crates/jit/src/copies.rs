//! Runs a unit on copies of a packet, one after the other, in the packet's own buffer.
//!
//! A copy begins with the state that the packet has between two units, and its bytes are needed only when it leaves. So
//! code for copies reads that state from the frame and stores hardly any of its own there: the bytes and the few words
//! that it may change are put back before the next copy.

use engine::{Colour, Now, Objects};

use crate::calls::Host;
use crate::code;
use crate::in_place::InPlacePacket;
use crate::layout::word;
use crate::native::{CopyUnit, NativeProgram, UnitOutcome, outcome};
use crate::packet::{Packet, out};
use crate::scout::{RESULTS, Row, STEP};

/// The state of a packet from which copies begin, as far as they may change it. Its memory is reused.
#[derive(Debug, Default)]
pub struct CopyOrigin {
    /// The bytes that parsers have extracted. Code writes to no others of the packet.
    extracted: Vec<u8>,
    words: Vec<u64>,
    colours: Vec<Colour>,
}

/// A copy on which a unit has run.
#[derive(Debug)]
pub struct FinishedCopy<'c> {
    outcome: UnitOutcome,
    row: &'c Row,
    replaced: &'c [u8],
    /// The buffer of the packet.
    buffer: &'c [u8],
}

impl FinishedCopy<'_> {
    /// Returns the way in which the unit ended.
    #[inline]
    pub fn outcome(&self) -> UnitOutcome {
        self.outcome
    }

    /// Returns the low 64 bits of a result, by the index of its slot in the unit's list.
    ///
    /// # Panics
    /// Panics if the index is [`RESULTS`](crate::RESULTS) or more.
    #[inline]
    pub fn result(&self, result: usize) -> u64 {
        self.row.results[result]
    }

    /// Returns the outgoing copy.
    #[inline]
    pub fn output(&self) -> &[u8] {
        match self.row.out {
            out::REPLACED => self.replaced,
            out::EMITTED => &[],
            at => &self.buffer[(at - self.row.buffer) as usize..],
        }
    }
}

impl NativeProgram {
    /// Whether a unit runs on copies. Those that the plan marks do so, unless they can make requests or the deparser
    /// does not assemble the packet in its buffer.
    pub fn runs_on_copies(&self, unit: usize) -> bool {
        self.copy_unit(unit).is_some()
    }
}

/// Copies a few words one by one, which is faster than a call.
#[inline(always)]
fn copy_words(to: &mut [u64], from: &[u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        // SAFETY: the word is borrowed exclusively; `volatile` keeps the compiler from making a call of the loop.
        unsafe { std::ptr::from_mut(to).write_volatile(*from) };
    }
}

/// Copies a few bytes, eight at a time.
#[inline(always)]
fn copy_bytes(to: &mut [u8], from: &[u8]) {
    let (to, to_rest) = to.as_chunks_mut::<8>();
    let (from, from_rest) = from.as_chunks::<8>();
    for (to, from) in to.iter_mut().zip(from) {
        // SAFETY: as above.
        unsafe { std::ptr::from_mut(to).write_volatile(*from) };
    }
    for (to, from) in to_rest.iter_mut().zip(from_rest) {
        // SAFETY: as above.
        unsafe { std::ptr::from_mut(to).write_volatile(*from) };
    }
}

/// Returns to the state from which copies begin.
#[inline]
fn restore(packet: &mut Packet, unit: &CopyUnit, extracted: &mut [u8], origin: &CopyOrigin) {
    copy_bytes(extracted, &origin.extracted);
    let mut saved = &origin.words[..];
    for words in &unit.words {
        let (first, others) = saved.split_at(words.len());
        copy_words(&mut packet.frame[words.clone()], first);
        saved = others;
    }
    if !packet.colours.is_empty() {
        packet.colours.copy_from_slice(&origin.colours);
    }
}

impl InPlacePacket<'_> {
    /// Runs a unit on copies of the packet, which has not been assembled since it was parsed: one copy for each element
    /// of `inputs`, which are what [`Step::InputTo`](crate::Step::InputTo) reads. Calls `finished` with the index of
    /// each copy once it has run. The packet is the last copy afterwards, but its slots are those of before.
    ///
    /// # Panics
    /// Panics if the packet was assembled, there are pending requests, or the unit does not run on copies.
    #[inline]
    pub fn run_on_copies(
        &mut self,
        unit: usize,
        origin: &mut CopyOrigin,
        objects: &mut Objects,
        now: Now,
        inputs: impl Iterator<Item = [u64; RESULTS]>,
        mut finished: impl FnMut(usize, FinishedCopy<'_>),
    ) {
        let compiled = self.compiled;
        let unit = compiled.copy_unit(unit).expect("the unit runs on copies");
        let is_between = self.primed && self.packet.frame[word::OUT] == out::EMITTED && !self.has_requests();
        assert!(is_between, "the packet is between two units");
        objects.advance_clock(now.ns);
        let bytes = self.packet.cursor_bits().div_ceil(8).min(self.len - self.start);
        let (base, start, len) = (self.base, self.start, self.len);
        // SAFETY: the buffer is borrowed exclusively for as long as this value lives, the packet lies in it from
        // `start` on, and the reference is not used while code runs.
        let extracted = || unsafe { std::slice::from_raw_parts_mut(base.add(start), bytes) };
        let packet = &mut *self.packet;
        origin.extracted.clear();
        origin.extracted.extend_from_slice(extracted());
        origin.words.clear();
        for words in &unit.words {
            origin.words.extend_from_slice(&packet.frame[words.clone()]);
        }
        if !packet.colours.is_empty() {
            origin.colours.clone_from(&packet.colours);
        }
        let mut row = Row { buffer: base as u64, ..Row::default() };
        packet.frame[word::BUFFER] = base as u64;
        packet.frame[word::NOW_US] = now.ns / 1000;
        // SAFETY: the packet is borrowed exclusively, and while code runs, only its frame is otherwise used.
        let mut host = unsafe { Host::new(compiled.template(), packet, objects, now.ns) };
        packet.frame[word::HOST] = &raw mut host as u64;
        for (number, input) in inputs.enumerate() {
            if number > 0 {
                restore(packet, unit, extracted(), origin);
            }
            row.results = input;
            // SAFETY: the code was generated for a validated program and frames of this layout. It writes to the frame,
            // to its row, to the packet within the length in the frame, and to the objects that the host lends. All of
            // it outlives the call and is borrowed exclusively here.
            unsafe { (unit.code)(packet.frame.as_mut_ptr(), &raw mut row) };
            let ending = row.ended & 0xff;
            if ending != code::RETURN {
                host.end_atomics();
            }
            let step = usize::from((row.ended >> STEP) as u16);
            let outcome = outcome(ending, step, || packet.frame[word::BLAME] as u32);
            // SAFETY: the buffer is borrowed exclusively for as long as this value lives, and no code runs on it now.
            let buffer = unsafe { std::slice::from_raw_parts(base, len) };
            finished(number, FinishedCopy { outcome, row: &row, replaced: &packet.replaced, buffer });
        }
        packet.frame[word::OUT] = row.out;
    }
}
