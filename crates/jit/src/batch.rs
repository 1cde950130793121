//! Many packets in one call: what is the same for all of them is set up once.

use std::marker::PhantomData;

use engine::{Now, Objects, Requested};
use ir::{LocId, SlotId};

use crate::calls::Host;
use crate::compiled::{Compiled, Outcome, outcome};
use crate::layout::{SlotLayout, word};
use crate::packet::{Packet, copy_words_at, out, zero_words_at};
use crate::scout::BATCH;

/// A packet of a batch, before and after code runs on it.
///
/// It is made anew for each packet, so it is a few addresses and no more.
#[derive(Debug)]
pub struct Turn<'a> {
    slots: &'a [SlotLayout],
    /// The packet's frame, whose layout `slots` is of.
    frame: *mut u64,
    packet: *mut Packet,
    /// The buffer that the packet lies in.
    base: *mut u8,
    len: usize,
    _borrowed: PhantomData<&'a mut Packet>,
}

impl Turn<'_> {
    /// A control word.
    #[inline(always)]
    fn control(&self, at: usize) -> u64 {
        debug_assert!(at < word::COUNT);
        // SAFETY: frames begin with control words, and nothing else uses this one as long as the turn lasts.
        unsafe { self.frame.add(at).read() }
    }

    /// The low 64 bits of a slot.
    #[inline]
    pub fn slot_word(&self, slot: SlotId) -> u64 {
        let layout = &self.slots[slot.as_u32() as usize];
        // SAFETY: every slot has at least one word of the frame.
        unsafe { self.frame.add(layout.word as usize).read() }
    }

    /// Sets a slot of up to 64 bits to a number, cut to the slot's width.
    #[inline]
    pub fn set_slot_to(&mut self, slot: SlotId, value: u64) {
        let layout = &self.slots[slot.as_u32() as usize];
        // SAFETY: every slot has at least one word of the frame.
        unsafe { self.frame.add(layout.word as usize).write(value & layout.mask) };
    }

    /// Whether anything was asked for.
    #[inline]
    pub fn has_requests(&self) -> bool {
        self.control(word::ASKED) != 0
    }

    /// Takes what was asked for.
    pub fn take_requests(&mut self) -> Vec<(Requested, LocId)> {
        // SAFETY: see `control`; the packet is valid and not in use otherwise.
        unsafe {
            self.frame.add(word::ASKED).write(0);
            std::mem::take(&mut (*self.packet).requests)
        }
    }

    /// The parser's error.
    #[inline]
    pub fn parser_error(&self) -> u32 {
        self.control(word::ERROR) as u32
    }

    /// Where in its buffer the packet that leaves begins; `None` if it is not there.
    #[inline]
    pub fn output_start(&self) -> Option<usize> {
        match self.control(word::OUT) {
            out::EMITTED | out::REPLACED => None,
            at => Some((at - self.base as u64) as usize),
        }
    }

    /// The packet that leaves, in a buffer of its own, if it did not find room in its own.
    pub fn replaced(&self) -> Option<Vec<u8>> {
        // SAFETY: the packet is valid, and nothing but this turn uses it.
        let packet = unsafe { &*self.packet };
        match self.control(word::OUT) {
            out::REPLACED => Some(packet.replaced.clone()),
            out::EMITTED => {
                // SAFETY: the buffer is borrowed as long as the turn lasts, and no code runs on it.
                let buffer = unsafe { std::slice::from_raw_parts(self.base, self.len) };
                let length = self.control(word::LENGTH) as usize;
                let payload = (self.control(word::CURSOR) as usize).div_ceil(8);
                let mut whole = packet.emitted.as_bytes().to_vec();
                whole.extend_from_slice(&buffer[buffer.len() - length + payload..]);
                Some(whole)
            }
            _ => None,
        }
    }
}

/// Packets of a batch in turn: what all of them share.
struct Lane<'a> {
    slots: &'a [SlotLayout],
    packet: *mut Packet,
    frame: *mut u64,
    /// Where in a buffer the packet begins.
    start: usize,
    /// The words that `begin` sets slots among, and their copies of all packets of a chunk, if those are held.
    inputs: *mut u64,
    input_words: usize,
    held: Option<*mut u64>,
    /// Whether a packet leaves more traces in the frame than words tell of.
    traces: bool,
}

impl<'a> Lane<'a> {
    #[inline(always)]
    fn set(&self, at: usize, value: u64) {
        debug_assert!(at < word::COUNT);
        // SAFETY: frames begin with control words, and no reference to the frame is in use while a lane is.
        unsafe { self.frame.add(at).write(value) };
    }

    /// Puts a packet in place. Returns its turn.
    #[inline(always)]
    fn place(&self, buffer: &mut [u8]) -> Turn<'a> {
        let (base, len) = (buffer.as_mut_ptr(), buffer.len());
        let length = len.checked_sub(self.start).expect("packets begin within their buffers");
        self.set(word::PACKET, base as u64 + self.start as u64);
        self.set(word::LENGTH, length as u64);
        Turn { slots: self.slots, frame: self.frame, packet: self.packet, base, len, _borrowed: PhantomData }
    }

    /// Forgets what the packet before left behind.
    #[inline(always)]
    fn clear(&self) {
        // SAFETY: as in `set`; the packet is valid, and nothing else of it is in use between two packets.
        unsafe {
            if self.traces || self.frame.add(word::ASKED).read() != 0 || (*self.packet).emitted.len_bits() > 0 {
                (*self.packet).clear_traces();
            }
        }
    }

    #[inline(always)]
    fn zero_inputs(&self) {
        // SAFETY: the words are some of the frame's; see `set`.
        unsafe { zero_words_at(self.inputs, self.input_words) };
    }
}

impl Compiled {
    /// Runs a fresh unit on packets one after the other, which lie `start` bytes into their buffers. `begin` sets slots
    /// before, `end` looks at what came of it; both get the number of the packet. `packet` lends its frame.
    ///
    /// Up to 32 packets are looked at before the first of them runs, so that their lookups share the wait for memory:
    /// `begin` may be called for all of them before `end` is called for the first. Each is called once a packet and in
    /// order.
    ///
    /// # Panics
    /// If there is no such unit, it is not fresh, `packet` is another program's, or `start` is beyond a buffer.
    #[allow(clippy::too_many_arguments, reason = "a packet's way in one call")]
    pub fn run_batch<B: AsMut<[u8]>>(
        &self,
        unit: usize,
        packet: &mut Packet,
        objects: &mut Objects,
        now: Now,
        buffers: &mut [B],
        start: usize,
        mut begin: impl FnMut(usize, &mut Turn<'_>),
        mut end: impl FnMut(usize, &mut Turn<'_>, Outcome),
    ) {
        assert!(self.is_fresh(unit), "packets of a batch begin with a fresh unit");
        assert!(std::sync::Arc::ptr_eq(self.shape(), packet.shape()), "the packet was made by this program");
        objects.advance_clock(now.ns);
        packet.restart(Vec::new(), 0);
        let shape = &**self.shape();
        let code = self.code(unit);
        let scout = self.scout(unit);
        let stride = scout.map_or(0, |(_, notes)| notes.stride);
        packet.notes.resize(stride * BATCH, 0);
        let (inputs_begin, inputs_end) = shape.layout.inputs;
        let input_words = (inputs_end - inputs_begin) as usize;
        let holds = scout.is_some_and(|(_, notes)| notes.takes_inputs);
        packet.held.resize(if holds { input_words * BATCH } else { 0 }, 0);
        let traces = !packet.colours.is_empty() || !shape.kept_headers.is_empty();
        let packet: *mut Packet = packet;
        // SAFETY: `packet` was a reference a moment ago. What the host lends is used by code while it runs, what a turn
        // shows by `begin` and `end` before and after, and everything else for the length of a statement.
        let mut host = unsafe { Host::new(shape, packet, std::ptr::null_mut(), objects, now.ns) };
        let host: *mut Host<'_> = &raw mut host;
        // SAFETY: as above; all of these are parts of the frame, and vectors that are not resized below.
        let (frame, inputs, no_notes, notes_at, held) = unsafe {
            let frame = (*packet).frame.as_mut_ptr();
            let notes = (*packet).notes.as_mut_ptr();
            let held = holds.then(|| (*packet).held.as_mut_ptr());
            (frame, frame.add(inputs_begin as usize), frame.add(shape.layout.no_notes as usize), notes, held)
        };
        let slots = &shape.layout.slots[..];
        let lane = Lane { slots, packet, frame, start, inputs, input_words, held, traces };
        lane.set(word::HOST, host as u64);
        let (first_note, note_step) = if scout.is_some() { (notes_at, stride) } else { (no_notes, 0) };
        let mut first = 0;
        for buffers in buffers.chunks_mut(BATCH) {
            if let Some((scout, notes)) = scout {
                for (number, buffer) in buffers.iter_mut().enumerate() {
                    let mut turn = lane.place(buffer.as_mut());
                    if let Some(held) = lane.held {
                        lane.zero_inputs();
                        begin(first + number, &mut turn);
                        // SAFETY: `held` has the words of a whole batch; see `Lane::set`.
                        unsafe { copy_words_at(inputs, held.add(number * input_words), input_words) };
                    }
                    // SAFETY: as in `Compiled::run_at`; a scout writes to its notes alone, of which there are `stride`.
                    unsafe { scout(frame, notes_at.add(number * stride)) };
                }
                // SAFETY: see `host`; the notes are those of this many packets.
                let (words, objects) =
                    unsafe { (std::slice::from_raw_parts_mut(notes_at, buffers.len() * stride), &*(*host).objects) };
                crate::scout::ask(notes, words, objects);
            }
            for (number, buffer) in buffers.iter_mut().enumerate() {
                let mut turn = lane.place(buffer.as_mut());
                lane.set(word::OUT, out::EMITTED);
                lane.set(word::NOTES, first_note.wrapping_add(number * note_step) as u64);
                lane.clear();
                match lane.held {
                    // SAFETY: see above.
                    Some(held) => unsafe { copy_words_at(held.add(number * input_words), inputs, input_words) },
                    None => {
                        lane.zero_inputs();
                        begin(first + number, &mut turn);
                    }
                }
                // SAFETY: see `host`; no code runs now.
                unsafe { (*host).buffer = turn.base };
                // SAFETY: as in `Compiled::run_at`; the packet is the buffer from `start` on, borrowed exclusively.
                let ending = unsafe { code(frame) };
                // SAFETY: frames begin with control words.
                let outcome = outcome(unsafe { &*frame.cast() }, ending);
                end(first + number, &mut turn, outcome);
            }
            first += buffers.len();
        }
        // Nothing of the buffers stays in reach.
        // SAFETY: see `host`.
        unsafe { &mut *packet }.take_data();
    }
}
