//! Packets in memory that somebody else owns, run there.

use std::marker::PhantomData;

use engine::{BitString, Now, Objects, Requested};
use ir::{LocId, SlotId};

use crate::compiled::{Compiled, Outcome};
use crate::layout::word;
use crate::packet::{Packet, out};

/// A packet that lies in somebody else's memory for the time of a few runs.
#[derive(Debug)]
pub struct Lent<'a> {
    pub(crate) compiled: &'a Compiled,
    pub(crate) packet: &'a mut Packet,
    /// The first byte of the buffer; the packet ends where the buffer does.
    pub(crate) base: *mut u8,
    pub(crate) len: usize,
    pub(crate) start: usize,
    /// Whether a fresh unit has run.
    pub(crate) primed: bool,
    /// Whether somebody else takes care that nothing of the buffer stays in reach.
    pub(crate) stays: bool,
    pub(crate) _buffer: PhantomData<&'a mut [u8]>,
}

impl Compiled {
    /// Has `work` run units on the packet that begins `start` bytes into `buffer` and ends with it; what lies before is
    /// room for headers. `packet` lends its frame; whatever it was is gone afterwards.
    ///
    /// # Panics
    /// If `packet` is another program's, or `start` is beyond the buffer.
    #[inline]
    pub fn lend<R>(
        &self,
        packet: &mut Packet,
        buffer: &mut [u8],
        start: usize,
        work: impl FnOnce(&mut Lent<'_>) -> R,
    ) -> R {
        assert!(std::sync::Arc::ptr_eq(self.shape(), packet.shape()), "the packet was made by this program");
        let length = buffer.len().checked_sub(start).expect("the packet begins within its buffer");
        packet.restart(Vec::new(), 0);
        let (base, len) = (buffer.as_mut_ptr(), buffer.len());
        packet.frame[word::PACKET] = base as u64 + start as u64;
        packet.frame[word::LENGTH] = length as u64;
        work(&mut Lent { compiled: self, packet, base, len, start, primed: false, stays: false, _buffer: PhantomData })
    }
}

impl Drop for Lent<'_> {
    /// Nothing of the buffer stays in reach.
    #[inline]
    fn drop(&mut self) {
        if !self.stays {
            self.packet.take_data();
        }
    }
}

impl Lent<'_> {
    /// Runs a unit.
    ///
    /// # Panics
    /// If there is no such unit, or it is not fresh and none has run on this packet.
    #[inline]
    pub fn run(&mut self, unit: usize, objects: &mut Objects, now: Now) -> Outcome {
        assert!(self.primed || self.compiled.is_fresh(unit), "a fresh unit comes first");
        self.primed = true;
        // SAFETY: the packet lies in `base[start..len]`, as the frame says, and that buffer is borrowed exclusively for
        // as long as this value lives, without a reference to it in use now.
        unsafe { self.compiled.run_at(unit, self.packet, self.base, objects, now) }
    }

    /// The low 64 bits of a slot.
    #[inline]
    pub fn slot_word(&self, slot: SlotId) -> u64 {
        self.packet.slot_word(slot)
    }

    /// Sets a slot to a number, cut to the slot's width.
    #[inline]
    pub fn set_slot_to(&mut self, slot: SlotId, value: u64) {
        self.packet.set_slot_to(slot, value);
    }

    /// How many bytes the packet had when it came in.
    #[inline]
    pub fn length(&self) -> usize {
        self.len - self.start
    }

    /// How many bytes the buffer has.
    #[inline]
    pub fn room(&self) -> usize {
        self.len
    }

    /// The parser's error, an index into [`ir::Program::errors`].
    #[inline]
    pub fn parser_error(&self) -> u32 {
        self.packet.parser_error()
    }

    /// Bytes of all valid headers that are not local.
    #[inline]
    pub fn header_bytes(&self) -> usize {
        self.packet.header_bytes()
    }

    /// Bytes of all valid headers when the last unit measured.
    #[inline]
    pub fn measured_bytes(&self) -> usize {
        self.packet.measured_bytes()
    }

    /// Whether anything was asked for.
    #[inline]
    pub fn has_requests(&self) -> bool {
        self.packet.has_requests()
    }

    /// Takes what was asked for.
    pub fn take_requests(&mut self) -> Vec<(Requested, LocId)> {
        self.packet.take_requests()
    }

    /// Where in its buffer the packet that leaves begins; `None` if it is not there.
    #[inline]
    pub fn output_start(&self) -> Option<usize> {
        match self.packet.frame[word::OUT] {
            out::EMITTED | out::REPLACED => None,
            at => Some((at - self.base as u64) as usize),
        }
    }

    /// The packet that leaves, wherever it is, in a buffer of its own.
    pub fn output_copy(&self) -> Vec<u8> {
        self.detach().finish()
    }

    /// A packet of its own with all state and a copy of the bytes, so that it can be dealt with later.
    pub fn detach(&self) -> Packet {
        // SAFETY: the buffer is borrowed exclusively for as long as this value lives, and no code runs on it now.
        let buffer = unsafe { std::slice::from_raw_parts(self.base, self.len) };
        let from = (self.base as u64, self.len as u64);
        let mut copy = self.packet.duplicate(buffer.to_vec(), self.start, from);
        copy.primed = self.primed;
        copy
    }
}

impl Packet {
    /// A copy with all state, whose headers lie in its own data and frame. `data` has the bytes that were at the address
    /// and for the length `from`.
    pub(crate) fn duplicate(&self, data: Vec<u8>, start: usize, (old_data, old_len): (u64, u64)) -> Packet {
        let shape = self.shape();
        let mut copy = Packet {
            shape: shape.clone(),
            frame: self.frame.clone(),
            data,
            start,
            requests: self.requests.clone(),
            colours: self.colours.clone(),
            emitted: self.emitted.clone(),
            replaced: self.replaced.clone(),
            covered: BitString::new(),
            moved: Vec::new(),
            rows: Vec::new(),
            notes: Vec::new(),
            prepared: None,
            given: Vec::new(),
            primed: self.primed,
        };
        let new_data = copy.data.as_mut_ptr() as u64;
        let (old_frame, new_frame) = (self.frame.as_ptr() as u64, copy.frame.as_ptr() as u64);
        let homes = old_frame..old_frame + self.frame.len() as u64 * 8;
        copy.frame[word::PACKET] = new_data + start as u64;
        if ![out::EMITTED, out::REPLACED].contains(&self.frame[word::OUT]) {
            copy.frame[word::OUT] = self.frame[word::OUT] - old_data + new_data;
        }
        for header in shape.program.headers.keys() {
            let layout = shape.layout.header(header);
            let at = layout.place as usize;
            let place = self.frame[at];
            copy.frame[at] = if homes.contains(&place) {
                place - old_frame + new_frame
            } else if (old_data..=old_data + old_len).contains(&place) {
                place - old_data + new_data
            } else {
                // Left behind by a packet before this one: the next unit sets it anew.
                new_frame + u64::from(layout.home)
            };
        }
        copy
    }
}
