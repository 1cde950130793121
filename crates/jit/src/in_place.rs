//! Processes packets in place, in a buffer that the caller owns.

use std::marker::PhantomData;

use engine::{Now, Objects, Requested};
use ir::{FieldListItem, LocId, SlotId};

use crate::layout::word;
use crate::native::{NativeProgram, UnitOutcome};
use crate::packet::{Packet, PacketTemplate, SlotSet, out};
use crate::pass;
use crate::waiting::PreservedSlots;

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
        let (base, len) = (buffer.as_mut_ptr(), buffer.len());
        packet.reset_for(base as u64 + start as u64, length);
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
            self.packet.leave_buffer();
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

    /// Returns the words of a slot, the least significant first.
    #[inline]
    pub fn slot_words(&self, slot: SlotId) -> &[u64] {
        self.packet.slot_words(slot)
    }

    /// Sets a slot to a number, truncated to the slot's width.
    #[inline]
    pub fn set_slot_to(&mut self, slot: SlotId, value: u64) {
        self.packet.set_slot_to(slot, value);
    }

    /// Sets slots of the same program to 0.
    #[inline]
    pub fn clear_slots(&mut self, slots: &SlotSet) {
        self.packet.clear_slots(slots);
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

    /// Returns the current bytes of the incoming packet: as received, unless code has changed a header or assembled the
    /// outgoing packet.
    pub fn input(&self) -> &[u8] {
        // SAFETY: the buffer is borrowed exclusively for as long as this value lives, the packet is in it from `start`,
        // and no code runs on it now.
        unsafe { std::slice::from_raw_parts(self.base.add(self.start), self.length()) }
    }

    /// Returns the parser's error, an index into [`ir::Program::errors`].
    #[inline]
    pub fn parser_error(&self) -> u32 {
        self.packet.parser_error()
    }

    /// Returns a result that a step of the last unit kept, by its index.
    ///
    /// # Panics
    /// Panics if the index is [`RESULTS`](crate::RESULTS) or more.
    #[inline]
    pub fn result(&self, index: usize) -> u64 {
        let results: &[u64; crate::RESULTS] =
            self.packet.frame[word::RESULTS..].first_chunk().expect("frames begin with control words");
        results[index]
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

    /// Lets the objects take over the packet's pass, if code has run it inline so far.
    pub fn take_over_pass(&mut self, objects: &mut Objects) {
        pass::take_over(&mut self.packet.frame, &self.compiled.template().layout, objects);
    }

    /// Takes the pending requests.
    pub fn take_requests(&mut self) -> Vec<(Requested, LocId)> {
        self.packet.take_requests()
    }

    /// Takes back the memory of requests that were taken.
    pub fn reuse_requests(&mut self, requests: Vec<(Requested, LocId)>) {
        self.packet.reuse_requests(requests);
    }

    /// Takes the values of a field list from slots that were set aside.
    ///
    /// # Panics
    /// Panics if the field list has headers.
    pub fn keep_preserved(&mut self, preserved: PreservedSlots<'_>, items: &[FieldListItem]) {
        self.packet.keep_preserved(preserved, items);
    }

    /// Adds requests that were set aside in front of the pending ones.
    pub fn return_requests(&mut self, requests: impl Iterator<Item = (Requested, LocId)>) {
        self.packet.requests.splice(0..0, requests);
        self.packet.frame[word::REQUESTS] = self.packet.requests.len() as u64;
    }

    /// Takes the values of a field list for another packet of the same program.
    pub fn keep_for(&self, other: &mut Packet, items: &[FieldListItem]) {
        let length = if self.primed { self.len } else { 0 };
        // SAFETY: the buffer is borrowed exclusively for as long as this value lives, and no code runs on it now.
        let buffer = unsafe { std::slice::from_raw_parts(self.base, length) };
        other.keep_from(self.packet, buffer, items);
    }

    /// Prepares another pass of the packet: it now begins `start` bytes into the buffer and ends with it. All state is
    /// lost except the slots of the field list `kept`.
    ///
    /// # Panics
    /// Panics if `start` is beyond the buffer, or `kept` has headers.
    pub fn restart(&mut self, start: usize, kept: &[FieldListItem]) {
        let length = self.len.checked_sub(start).expect("the packet begins within its buffer");
        let packet = &mut *self.packet;
        let words = |template: &PacketTemplate, item: &FieldListItem| match item {
            FieldListItem::Slot(slot) => {
                let layout = template.layout.slots[slot.as_u32() as usize];
                layout.word as usize..(layout.word + layout.width.div_ceil(64)) as usize
            }
            FieldListItem::Header(_) => panic!("a packet keeps no headers in place"),
        };
        packet.kept.clear();
        for item in kept {
            packet.kept.extend_from_slice(&packet.frame[words(&packet.template, item)]);
        }
        packet.reset_for(self.base as u64 + start as u64, length);
        let mut next = 0;
        for item in kept {
            let words = words(&packet.template, item);
            let count = words.len();
            packet.frame[words].copy_from_slice(&packet.kept[next..next + count]);
            next += count;
        }
        (self.start, self.primed) = (start, false);
    }

    /// Replaces the bytes of the packet by those with which it came, and prepares another pass of them.
    ///
    /// # Panics
    /// Panics if the packet came with another length, or `kept` has headers.
    pub fn restart_as_it_came(&mut self, original: &[u8], kept: &[FieldListItem]) {
        assert_eq!(original.len(), self.length(), "a packet keeps its length until it is assembled");
        // SAFETY: the buffer is borrowed exclusively for as long as this value lives, the packet is in it from `start`,
        // and no code runs on it now.
        let packet = unsafe { std::slice::from_raw_parts_mut(self.base.add(self.start), original.len()) };
        packet.copy_from_slice(original);
        self.restart(self.start, kept);
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
        let length = if self.primed { self.len } else { 0 };
        // SAFETY: the buffer is borrowed exclusively for as long as this value lives, and no code runs on it now.
        let buffer = unsafe { std::slice::from_raw_parts(self.base, length) };
        self.packet.output_in(buffer, self.start)
    }

    /// Copies all state and the bytes into a packet of the same program, for later processing. The previous contents of
    /// that packet are lost.
    ///
    /// # Panics
    /// Panics if `copy` belongs to another program.
    pub fn detach_into(&self, copy: &mut Packet) {
        // Bytes in front of the packet belong to it only after it was assembled there.
        let first = if self.packet.is_assembled() { 0 } else { self.start };
        // SAFETY: the buffer is borrowed exclusively for as long as this value lives, and no code runs on it now.
        let buffer = unsafe { std::slice::from_raw_parts(self.base.add(first), self.len - first) };
        let from = (buffer.as_ptr() as u64, buffer.len() as u64);
        self.packet.copy_into(copy, buffer, self.start - first, from);
        copy.primed = self.primed;
    }
}

impl Packet {
    /// Whether the outgoing packet lies in the buffer of the incoming one.
    fn is_assembled(&self) -> bool {
        ![out::EMITTED, out::REPLACED].contains(&self.frame[word::OUT])
    }

    /// Copies all state into another packet of the same program, with the headers in its own data and frame. Its data
    /// are those of `buffer`, in which the packet begins at `start`; they lay at the address `old_data` with length
    /// `old_len`.
    pub(crate) fn copy_into(&self, copy: &mut Packet, buffer: &[u8], start: usize, (old_data, old_len): (u64, u64)) {
        let template = self.template();
        assert!(std::sync::Arc::ptr_eq(template, copy.template()), "both packets are of one program");
        copy.frame.copy_from_slice(&self.frame);
        copy.data.clear();
        copy.data.extend_from_slice(buffer);
        copy.start = start;
        copy.requests.clone_from(&self.requests);
        copy.colours.clone_from(&self.colours);
        if self.emitted.len_bits() > 0 || copy.emitted.len_bits() > 0 {
            copy.emitted.clone_from(&self.emitted);
        }
        copy.replaced.clear();
        if self.frame[word::OUT] == out::REPLACED {
            copy.replaced.extend_from_slice(&self.replaced);
        }
        copy.primed = self.primed;
        let new_data = copy.data.as_mut_ptr() as u64;
        let (old_frame, new_frame) = (self.frame.as_ptr() as u64, copy.frame.as_ptr() as u64);
        let homes = old_frame..old_frame + self.frame.len() as u64 * 8;
        copy.frame[word::PACKET] = new_data + start as u64;
        if self.is_assembled() {
            copy.frame[word::OUT] = self.frame[word::OUT] - old_data + new_data;
        }
        for layout in &template.layout.headers {
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
    }
}
