//! Many packets in one call: what is the same for all of them is set up once.

use engine::{BitString, Now, Objects, Requested};
use ir::{LocId, SlotId};

use crate::calls::Host;
use crate::compiled::{Compiled, Outcome, outcome};
use crate::layout::word;
use crate::packet::{Packet, Shape, copy_words, out, zero_words};
use crate::scout::BATCH;

/// A packet of a batch, before and after code runs on it.
#[derive(Debug)]
pub struct Turn<'a> {
    shape: &'a Shape,
    frame: &'a mut [u64],
    buffer: &'a mut [u8],
    requests: &'a mut Vec<(Requested, LocId)>,
    emitted: &'a BitString,
    replaced: &'a [u8],
}

impl Turn<'_> {
    /// The low 64 bits of a slot.
    #[inline]
    pub fn slot_word(&self, slot: SlotId) -> u64 {
        let layout = self.shape.layout.slots[slot.as_u32() as usize];
        if layout.width == 0 { 0 } else { self.frame[layout.word as usize] }
    }

    /// Sets a slot of up to 64 bits to a number, cut to the slot's width.
    #[inline]
    pub fn set_slot_to(&mut self, slot: SlotId, value: u64) {
        let layout = self.shape.layout.slots[slot.as_u32() as usize];
        match layout.width {
            0 => {}
            1..64 => self.frame[layout.word as usize] = value & ((1 << layout.width) - 1),
            _ => self.frame[layout.word as usize] = value,
        }
    }

    /// Whether anything was asked for.
    #[inline]
    pub fn has_requests(&self) -> bool {
        self.frame[word::ASKED] != 0
    }

    /// Takes what was asked for.
    pub fn take_requests(&mut self) -> Vec<(Requested, LocId)> {
        self.frame[word::ASKED] = 0;
        std::mem::take(self.requests)
    }

    /// The parser's error.
    #[inline]
    pub fn parser_error(&self) -> u32 {
        self.frame[word::ERROR] as u32
    }

    /// Where in its buffer the packet that leaves begins; `None` if it is not there.
    #[inline]
    pub fn output_start(&self) -> Option<usize> {
        match self.frame[word::OUT] {
            out::EMITTED | out::REPLACED => None,
            at => Some((at - self.buffer.as_ptr() as u64) as usize),
        }
    }

    /// The packet that leaves, in a buffer of its own, if it did not find room in its own.
    pub fn replaced(&self) -> Option<Vec<u8>> {
        match self.frame[word::OUT] {
            out::REPLACED => Some(self.replaced.to_vec()),
            out::EMITTED => {
                let packet = self.frame[word::LENGTH] as usize;
                let payload = (self.frame[word::CURSOR] as usize).div_ceil(8);
                let mut whole = self.emitted.as_bytes().to_vec();
                whole.extend_from_slice(&self.buffer[self.buffer.len() - packet + payload..]);
                Some(whole)
            }
            _ => None,
        }
    }
}

/// The parts of a packet that a [`Turn`] shows.
///
/// # Safety
/// `packet` is valid, and nothing else of it is in use as long as the turn is.
#[inline]
unsafe fn turn<'a>(shape: &'a Shape, packet: *mut Packet, buffer: &'a mut [u8]) -> Turn<'a> {
    // SAFETY: by the caller's promise; the fields are different ones.
    unsafe {
        Turn {
            shape,
            frame: &mut (*packet).frame,
            buffer,
            requests: &mut (*packet).requests,
            emitted: &(*packet).emitted,
            replaced: &(*packet).replaced,
        }
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
        let inputs = inputs_begin as usize..inputs_end as usize;
        let held = scout.is_some_and(|(_, notes)| notes.takes_inputs);
        packet.held.resize(if held { inputs.len() * BATCH } else { 0 }, 0);
        let no_notes = packet.frame.as_ptr() as u64 + u64::from(shape.layout.no_notes) * 8;
        let packet: *mut Packet = packet;
        // SAFETY: `packet` was a reference a moment ago. What the host lends is used by code while it runs, what a turn
        // shows by `begin` and `end` before and after, and everything else for the length of a statement.
        let mut host = unsafe { Host::new(shape, packet, std::ptr::null_mut(), objects, now.ns) };
        let host: *mut Host<'_> = &raw mut host;
        // SAFETY: as above.
        let frame = unsafe { (*packet).frame.as_mut_ptr() };
        // SAFETY: frames begin with control words.
        let set = |at: usize, value: u64| unsafe { frame.add(at).write(value) };
        set(word::HOST, host as u64);
        for (chunk, buffers) in buffers.chunks_mut(BATCH).enumerate() {
            if let Some((scout, notes)) = scout {
                for (number, buffer) in buffers.iter_mut().enumerate() {
                    let buffer = buffer.as_mut();
                    let data = &mut buffer[start..];
                    set(word::PACKET, data.as_mut_ptr() as u64);
                    set(word::LENGTH, data.len() as u64);
                    if held {
                        // SAFETY: see `host`.
                        let mut turn = unsafe { turn(shape, packet, buffer) };
                        zero_words(&mut turn.frame[inputs.clone()]);
                        begin(chunk * BATCH + number, &mut turn);
                        // SAFETY: see `host`.
                        let (frame, held) = unsafe { (&(*packet).frame, &mut (*packet).held) };
                        copy_words(&frame[inputs.clone()], &mut held[number * inputs.len()..]);
                    }
                    // SAFETY: as in `Compiled::run_at`; a scout writes to its notes alone, of which there are `stride`.
                    unsafe { scout(frame, (*packet).notes.as_mut_ptr().add(number * stride)) };
                }
                // SAFETY: see `host`.
                let (words, objects) =
                    unsafe { (&mut (&mut (*packet).notes)[..buffers.len() * stride], &*(*host).objects) };
                crate::scout::ask(notes, words, objects);
            }
            for (number, buffer) in buffers.iter_mut().enumerate() {
                let buffer = buffer.as_mut();
                let data = &mut buffer[start..];
                set(word::PACKET, data.as_mut_ptr() as u64);
                set(word::LENGTH, data.len() as u64);
                set(word::OUT, out::EMITTED);
                // SAFETY: see `host`.
                let state = unsafe { &mut *packet };
                let note = if scout.is_some() { state.notes[number * stride..].as_ptr() as u64 } else { no_notes };
                set(word::NOTES, note);
                state.clear_traces();
                match held {
                    true => copy_words(
                        &state.held[number * inputs.len()..][..inputs.len()],
                        &mut state.frame[inputs.clone()],
                    ),
                    false => zero_words(&mut state.frame[inputs.clone()]),
                }
                if !held {
                    // SAFETY: see `host`.
                    begin(chunk * BATCH + number, &mut unsafe { turn(shape, packet, &mut *buffer) });
                }
                // SAFETY: see `host`; no code runs now.
                unsafe { (*host).buffer = buffer.as_mut_ptr() };
                // SAFETY: as in `Compiled::run_at`; the packet is the buffer from `start` on, borrowed exclusively.
                let ending = unsafe { code(frame) };
                // SAFETY: see `host`.
                let mut turn = unsafe { turn(shape, packet, buffer) };
                let outcome = outcome(turn.frame, ending);
                end(chunk * BATCH + number, &mut turn, outcome);
            }
        }
        // Nothing of the buffers stays in reach.
        // SAFETY: see `host`.
        unsafe { &mut *packet }.take_data();
    }
}
