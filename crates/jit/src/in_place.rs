//! Processes packets in place, in a buffer that the caller owns.

use std::marker::PhantomData;

use engine::{BitString, Now, Objects, Requested};
use ir::{LocId, SlotId};

use crate::layout::word;
use crate::native::{NativeProgram, UnitOutcome};
use crate::packet::{Packet, out};

/// A packet that lies in the caller's buffer for the duration of a few runs.
#[derive(Debug)]
pub struct InPlacePacket<'a> {
    pub(crate) compiled: &'a NativeProgram,
    pub(crate) packet: &'a mut Packet,
    /// First byte of the buffer; the packet ends where the buffer does.
    pub(crate) base: *mut u8,
    pub(crate) len: usize,
    pub(crate) start: usize,
    /// Whether a fresh unit has run.
    pub(crate) primed: bool,
    /// Whether another owner (a batch) removes the pointers into the buffer.
    pub(crate) stays: bool,
    pub(crate) _buffer: PhantomData<&'a mut [u8]>,
}

impl NativeProgram {
    /// Calls `work`, which runs units on the packet that begins `start` bytes into `buffer` and ends with it; the bytes
    /// before it are headroom. `packet` provides the frame and loses its previous contents.
    ///
    /// # Panics
    /// Panics if `packet` belongs to another program, or `start` is beyond the buffer.
    #[inline]
    pub fn in_place<R>(
        &self,
        packet: &mut Packet,
        buffer: &mut [u8],
        start: usize,
        work: impl FnOnce(&mut InPlacePacket<'_>) -> R,
    ) -> R {
        assert!(std::sync::Arc::ptr_eq(self.template(), packet.template()), "the packet was made by this program");
        let length = buffer.len().checked_sub(start).expect("the packet begins within its buffer");
        packet.reset_inputs(Vec::new(), 0);
        let (base, len) = (buffer.as_mut_ptr(), buffer.len());
        packet.frame[word::PACKET] = base as u64 + start as u64;
        packet.frame[word::LENGTH] = length as u64;
        work(&mut InPlacePacket {
            compiled: self,
            packet,
            base,
            len,
            start,
            primed: false,
            stays: false,
            _buffer: PhantomData,
        })
    }
}

impl Drop for InPlacePacket<'_> {
    /// Nothing of the buffer stays in reach.
    #[inline]
    fn drop(&mut self) {
        if !self.stays {
            self.packet.take_data();
        }
    }
}

impl InPlacePacket<'_> {
    /// Runs a unit.
    ///
    /// # Panics
    /// Panics if there is no such unit, or it is not fresh and none has run on this packet.
    #[inline]
    pub fn run(&mut self, unit: usize, objects: &mut Objects, now: Now) -> UnitOutcome {
        assert!(self.primed || self.compiled.is_fresh(unit), "a fresh unit comes first");
        self.primed = true;
        // SAFETY: the packet lies in `base[start..len]`, as the frame says. That buffer is borrowed exclusively for as
        // long as this value lives, and no reference to it is in use now.
        unsafe { self.compiled.run_at(unit, self.packet, self.base, objects, now) }
    }

    /// Returns the low 64 bits of a slot.
    #[inline]
    pub fn slot_word(&self, slot: SlotId) -> u64 {
        self.packet.slot_word(slot)
    }

    /// Sets a slot to a number, truncated to the slot's width.
    #[inline]
    pub fn set_slot_to(&mut self, slot: SlotId, value: u64) {
        self.packet.set_slot_to(slot, value);
    }

    /// Returns the length of the incoming packet in bytes.
    #[inline]
    pub fn length(&self) -> usize {
        self.len - self.start
    }

    /// Returns the size of the buffer in bytes.
    #[inline]
    pub fn room(&self) -> usize {
        self.len
    }

    /// Returns the parser's error, an index into [`ir::Program::errors`].
    #[inline]
    pub fn parser_error(&self) -> u32 {
        self.packet.parser_error()
    }

    /// Returns the total size in bytes of all valid headers that are not local.
    #[inline]
    pub fn header_bytes(&self) -> usize {
        self.packet.header_bytes()
    }

    /// Returns the total size in bytes of all valid headers when the last unit measured it.
    #[inline]
    pub fn measured_bytes(&self) -> usize {
        self.packet.measured_bytes()
    }

    /// Whether there are pending requests.
    #[inline]
    pub fn has_requests(&self) -> bool {
        self.packet.has_requests()
    }

    /// Takes the pending requests.
    pub fn take_requests(&mut self) -> Vec<(Requested, LocId)> {
        self.packet.take_requests()
    }

    /// Returns the offset in the buffer at which the outgoing packet begins; `None` if it is not in the buffer.
    #[inline]
    pub fn output_start(&self) -> Option<usize> {
        match self.packet.frame[word::OUT] {
            out::EMITTED | out::REPLACED => None,
            at => Some((at - self.base as u64) as usize),
        }
    }

    /// Copies the outgoing packet, wherever it lies, into a buffer of its own.
    pub fn output_copy(&self) -> Vec<u8> {
        self.detach().finish()
    }

    /// Creates an owned packet with all state and a copy of the bytes, for later processing.
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
    /// Copies the packet with all state, its headers in its own data and frame. `data` holds the bytes that lay at the
    /// address `old_data` with length `old_len`.
    pub(crate) fn duplicate(&self, data: Vec<u8>, start: usize, (old_data, old_len): (u64, u64)) -> Packet {
        let template = self.template();
        let mut copy = Packet {
            template: template.clone(),
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
            prefetch: Vec::new(),
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
        for header in template.program.headers.keys() {
            let layout = template.layout.header(header);
            let at = layout.place as usize;
            let place = self.frame[at];
            copy.frame[at] = if homes.contains(&place) {
                place - old_frame + new_frame
            } else if (old_data..=old_data + old_len).contains(&place) {
                place - old_data + new_data
            } else {
                // A leftover of an earlier packet; the next unit sets it again.
                new_frame + u64::from(layout.home)
            };
        }
        copy
    }
}
