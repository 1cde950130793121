//! Runs a unit on copies of a packet, one after the other, in the packet's own buffer.
//!
//! A copy begins with the state that the packet has between two units, and its bytes are needed only when it leaves. So
//! code for copies reads that state from the frame and stores hardly any of its own there: the bytes and the few words
//! that it may change are put back before the next copy. Only the state of a copy that stops with requests is stored,
//! and the frame is saved before.

use engine::{Colour, Now, Objects, Requested};

use crate::host::Host;
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

/// Copies of a packet, on which a unit runs one after the other.
#[derive(Debug)]
pub struct Copies<'c, 'p> {
    lent: &'c mut InPlacePacket<'p>,
    unit: &'c CopyUnit,
    origin: &'c CopyOrigin,
    now: Now,
    row: Row,
    /// Whether a copy has run since the packet was in the state from which copies begin.
    has_run: bool,
}

impl NativeProgram {
    /// Whether a unit runs on copies. Those that the plan marks do so, unless the deparser does not assemble the packet
    /// in its buffer.
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
fn restore(lent: &mut InPlacePacket<'_>, unit: &CopyUnit, origin: &CopyOrigin) {
    if lent.has_requests() {
        discard_stopped(lent.packet);
    }
    copy_bytes(extracted(lent), &origin.extracted);
    let packet = &mut *lent.packet;
    packet.frame[word::OUT] = out::EMITTED;
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

/// Removes what a copy that stopped with requests left behind: its requests, and its state in the frame.
#[cold]
fn discard_stopped(packet: &mut Packet) {
    packet.requests.clear();
    let saved = std::mem::take(&mut packet.saved);
    packet.frame.copy_from_slice(&saved);
    packet.frame[word::REQUESTS] = 0;
    packet.saved = saved;
}

/// Returns the bytes of a packet that parsers have extracted.
#[inline]
fn extracted<'a>(lent: &'a mut InPlacePacket<'_>) -> &'a mut [u8] {
    let bytes = lent.packet.cursor_bits().div_ceil(8).min(lent.len - lent.start);
    // SAFETY: the buffer is borrowed exclusively for as long as `lent` lives, the packet lies in it from `start` on,
    // and the reference is not used while code runs.
    unsafe { std::slice::from_raw_parts_mut(lent.base.add(lent.start), bytes) }
}

impl<'p> InPlacePacket<'p> {
    /// Prepares to run a unit on copies of the packet, which has not been assembled since it was parsed. The state from
    /// which they begin is kept in `origin`. Afterwards, the packet is the copy that ran last, but its slots are those
    /// of before.
    ///
    /// # Panics
    /// Panics if the packet was assembled, there are pending requests, or the unit does not run on copies.
    #[inline]
    pub fn copies<'c>(&'c mut self, unit: usize, origin: &'c mut CopyOrigin, now: Now) -> Copies<'c, 'p>
    where
        'p: 'c,
    {
        let unit = self.compiled.copy_unit(unit).expect("the unit runs on copies");
        let is_between = self.primed && self.packet.frame[word::OUT] == out::EMITTED && !self.has_requests();
        assert!(is_between, "the packet is between two units");
        origin.extracted.clear();
        origin.extracted.extend_from_slice(extracted(self));
        origin.words.clear();
        for words in &unit.words {
            origin.words.extend_from_slice(&self.packet.frame[words.clone()]);
        }
        if !self.packet.colours.is_empty() {
            origin.colours.clone_from(&self.packet.colours);
        }
        self.packet.frame[word::BUFFER] = self.base as u64;
        self.packet.frame[word::NOW_US] = now.ns / 1000;
        let row = Row { buffer: self.base as u64, ..Row::default() };
        Copies { lent: self, unit, origin, now, row, has_run: false }
    }
}

impl Copies<'_, '_> {
    /// Runs the unit on the next copy. `inputs` are what [`Step::InputTo`](crate::Step::InputTo) reads.
    #[inline]
    pub fn run(&mut self, objects: &mut Objects, inputs: [u64; RESULTS]) -> UnitOutcome {
        let Copies { lent, unit, origin, .. } = self;
        if std::mem::replace(&mut self.has_run, true) {
            restore(lent, unit, origin);
        } else {
            objects.advance_clock(self.now.ns);
        }
        self.row.results = inputs;
        let frame = lent.packet.frame.as_mut_ptr();
        // SAFETY: the packet is borrowed exclusively, and only its frame is used while the host lives.
        let mut host = unsafe { Host::new(lent.compiled.template(), lent.packet, objects, self.now.ns) };
        // SAFETY: frames begin with control words. The code was generated for a validated program and frames of this
        // layout. It writes to the frame, to its row, to the packet within the length in the frame, and to the objects
        // that the host lends. All of it outlives the call and is borrowed exclusively here.
        unsafe {
            frame.add(word::HOST).write(&raw mut host as u64);
            (unit.code)(frame, &raw mut self.row);
        }
        // The unit may return although an `exit` has left an atomic section: the code behind egress still runs then.
        drop(host);
        let ending = self.row.ended & 0xff;
        let step = usize::from((self.row.ended >> STEP) as u16);
        let frame = &mut lent.packet.frame;
        frame[word::OUT] = self.row.out;
        outcome(ending, step, || frame[word::BLAME] as u32)
    }

    /// Returns the low 64 bits of a result of the last copy, by the index of its slot in the unit's list.
    ///
    /// # Panics
    /// Panics if the index is [`RESULTS`](crate::RESULTS) or more.
    #[inline]
    pub fn result(&self, result: usize) -> u64 {
        self.row.results[result]
    }

    /// Returns the outgoing copy that ran last; no bytes if it has not been assembled.
    #[inline]
    pub fn output(&self) -> &[u8] {
        match self.row.out {
            out::REPLACED => &self.lent.packet.replaced,
            out::EMITTED => &[],
            at => {
                // SAFETY: the buffer is borrowed exclusively for as long as the packet is lent, and no code runs on it
                // now.
                let buffer = unsafe { std::slice::from_raw_parts(self.lent.base, self.lent.len) };
                &buffer[(at - self.row.buffer) as usize..]
            }
        }
    }

    /// Whether the last copy requested digests or truncations. Few do, and this costs less than to take none.
    #[inline]
    pub fn has_deferred(&self) -> bool {
        !self.lent.packet.deferred.is_empty()
    }

    /// Takes the digests and truncations that the last copy requested, in order.
    #[inline]
    pub fn take_deferred(&mut self) -> impl Iterator<Item = Requested> {
        self.lent.packet.deferred.drain(..).map(|deferred| deferred.request)
    }

    /// Returns the total size in bytes of all valid headers when the last unit measured it.
    pub fn measured_bytes(&self) -> usize {
        self.lent.measured_bytes()
    }

    /// Whether the last copy stopped with pending requests.
    #[inline]
    pub fn has_requests(&self) -> bool {
        self.lent.has_requests()
    }

    /// Copies all state of a copy that stopped with pending requests into a packet of the same program, like
    /// [`InPlacePacket::detach_into`].
    pub fn detach_into(&self, copy: &mut Packet) {
        self.lent.detach_into(copy);
    }
}
