//! Keeps the state of a packet for compiled code: its bytes, its activation frame and its pending requests.
//!
//! The *frame* is the array of 64-bit words that machine code works on: control words, slots and headers (see
//! [`crate::layout`]). It is not an Ethernet frame. A *unit* is a sequence of bodies compiled to one function; a
//! *fresh* unit is the first to run on a packet.

use std::ops::Range;
use std::sync::Arc;

use bits::Bits;
use engine::{BitString, Colour, HeaderState, Requested};
use ir::{FieldListItem, HeaderId, LocId, Program, SlotId};

use crate::layout::{FrameLayout, SlotLayout, Valid, word};
use crate::scout::{PrefetchState, Row};
use crate::waiting::WaitingRequests;

/// Values of [`word::OUT`] other than the address of the first byte to send.
pub(crate) mod out {
    /// The emitted headers are in [`super::Packet::emitted`], and the payload follows.
    pub const EMITTED: u64 = 0;
    /// The whole outgoing packet is in [`super::Packet::replaced`].
    pub const REPLACED: u64 = u64::MAX;
}

/// Data that all packets of one compiled program share.
#[derive(Debug)]
pub(crate) struct PacketTemplate {
    pub program: Arc<Program>,
    pub layout: FrameLayout,
    pub no_error: u64,
    /// Headers that field lists preserve, which a fresh unit loads from the frame.
    pub preserved_headers: Vec<HeaderId>,
}

/// Slots of one compiled program, in the ranges of words that they take in a frame.
#[derive(Clone, Debug, Default)]
pub struct SlotSet {
    words: Vec<Range<usize>>,
}

impl SlotSet {
    pub(crate) fn new(layout: &FrameLayout, slots: &[SlotId]) -> SlotSet {
        let words = |slot: &SlotId| {
            let SlotLayout { word, width, .. } = layout.slots[slot.as_u32() as usize];
            word as usize..(word + width.div_ceil(64).max(1)) as usize
        };
        SlotSet { words: joined(slots.iter().map(words).collect()) }
    }
}

/// Sorts ranges, and joins those that touch.
pub(crate) fn joined(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut().filter(|before| before.end >= range.start) {
            Some(before) => before.end = before.end.max(range.end),
            None => joined.push(range),
        }
    }
    joined
}

/// A digest or truncation that a packet of a batch requested. It does not stop the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeferredRequest {
    /// Index of the packet in the batch.
    pub packet: usize,
    /// The step of the unit that requested it.
    pub step: usize,
    /// The request.
    pub request: Requested,
    /// Its place in the source.
    pub loc: LocId,
}

/// One packet in the pipeline of one compiled program.
///
/// The bytes are modified in place, so the incoming packet is gone once code has run: a caller that still needs it
/// keeps a copy.
#[derive(Debug)]
pub struct Packet {
    pub(crate) template: Arc<PacketTemplate>,
    /// The activation frame.
    pub(crate) frame: Box<[u64]>,
    /// The buffer; the packet begins at `start`.
    pub(crate) data: Vec<u8>,
    pub(crate) start: usize,
    pub(crate) requests: Vec<(Requested, LocId)>,
    /// Requests of the packets of a batch that do not stop it.
    pub(crate) deferred: Vec<DeferredRequest>,
    /// Requests of the packets of a batch that were set aside.
    pub(crate) waiting: WaitingRequests,
    pub(crate) colours: Vec<Colour>,
    pub(crate) emitted: BitString,
    pub(crate) replaced: Vec<u8>,
    /// Data that a hash covers, and headers that are being moved; kept to reuse their memory.
    pub(crate) covered: BitString,
    pub(crate) moved: Vec<u8>,
    /// Scratch memory for looking up the keys of a batch in advance: see [`crate::scout`].
    pub(crate) rows: Vec<Row>,
    pub(crate) prefetch: Vec<u64>,
    pub(crate) prepared: Option<PrefetchState>,
    /// Values of the slots that the caller supplies.
    pub(crate) given: Vec<u64>,
    /// Values of a field list while the packet is reset.
    pub(crate) kept: Vec<u64>,
    /// The frame as it was before a copy stopped: see [`crate::copies`].
    pub(crate) saved: Vec<u64>,
    /// Whether the whole frame belongs to this packet, so any unit may run: false between [`Packet::reset_inputs`]
    /// and the first fresh unit, and after the data was taken.
    pub(crate) primed: bool,
}

/// Zeros words one by one. Code loads them right afterwards, and a load stalls on a wider store that was partly
/// overwritten (failed store forwarding).
#[inline]
pub(crate) fn zero_words(words: &mut [u64]) {
    for word in words {
        // SAFETY: the word is borrowed exclusively; `volatile` keeps the compiler from merging the stores.
        unsafe { std::ptr::from_mut(word).write_volatile(0) };
    }
}

impl Packet {
    /// Creates a packet in the state before the parser: every slot is 0, every header invalid.
    pub(crate) fn new(template: &Arc<PacketTemplate>, data: Vec<u8>) -> Packet {
        let mut packet = Packet {
            template: template.clone(),
            frame: vec![0; template.layout.words].into(),
            data: Vec::new(),
            start: 0,
            requests: Vec::new(),
            deferred: Vec::new(),
            waiting: WaitingRequests::default(),
            colours: vec![Colour::Green; template.program.meters.len()],
            emitted: BitString::new(),
            replaced: Vec::new(),
            covered: BitString::new(),
            moved: Vec::new(),
            rows: Vec::new(),
            prefetch: Vec::new(),
            prepared: None,
            given: Vec::new(),
            kept: Vec::new(),
            saved: Vec::new(),
            primed: false,
        };
        packet.reset(data, 0);
        packet
    }

    pub(crate) fn template(&self) -> &Arc<PacketTemplate> {
        &self.template
    }

    /// Returns the address of the header's own storage in the frame. Its `place` is the address where its bytes
    /// currently are: there, or in the packet's buffer.
    fn home(&self, header: HeaderId) -> u64 {
        self.frame.as_ptr() as u64 + u64::from(self.template.layout.header(header).home)
    }

    /// Resets to the state before the parser, with new data: the packet begins `start` bytes into it, and the bytes
    /// before it are headroom. Returns the old data.
    ///
    /// # Panics
    /// Panics if `start` is beyond the data.
    pub fn reset(&mut self, data: Vec<u8>, start: usize) -> Vec<u8> {
        self.frame.fill(0);
        for header in self.template.program.headers.keys() {
            self.frame[self.template.layout.header(header).place as usize] = self.home(header);
        }
        let old = self.reset_inputs(data, start);
        self.primed = true;
        old
    }

    /// Resets like [`Packet::reset`], but only the state that a fresh unit does not set itself.
    ///
    /// # Panics
    /// Panics if `start` is beyond the data.
    #[inline]
    pub fn reset_inputs(&mut self, data: Vec<u8>, start: usize) -> Vec<u8> {
        let old = std::mem::replace(&mut self.data, data);
        let packet = &mut self.data[start..];
        let (first, length) = (packet.as_mut_ptr() as u64, packet.len());
        self.start = start;
        self.reset_for(first, length);
        old
    }

    /// Resets like [`Packet::reset_inputs`], for a packet in a buffer of the caller: it has this address and length.
    #[inline]
    pub(crate) fn reset_for(&mut self, first: u64, length: usize) {
        self.primed = false;
        let control: &mut [u64; word::COUNT] = self.frame.first_chunk_mut().expect("frames begin with control words");
        control[word::PACKET] = first;
        control[word::LENGTH] = length as u64;
        control[word::CURSOR] = 0;
        control[word::ERROR] = self.template.no_error;
        control[word::OUT] = out::EMITTED;
        control[word::REQUESTS] = 0;
        control[word::PASS] = 0;
        if !self.requests.is_empty() {
            self.requests.clear();
        }
        if self.emitted.len_bits() > 0 {
            self.emitted.clear();
        }
        if !self.colours.is_empty() {
            self.colours.fill(Colour::Green);
        }
        let template = &*self.template;
        let (begin, end) = template.layout.inputs;
        zero_words(&mut self.frame[begin as usize..end as usize]);
        if !template.preserved_headers.is_empty() {
            self.clear_preserved_headers();
        }
    }

    /// Clears requests, emitted bytes and meter colours of the previous packet, and the headers that field lists
    /// preserve.
    #[inline]
    pub(crate) fn clear_previous_packet(&mut self) {
        if self.frame[word::REQUESTS] != 0 {
            self.frame[word::REQUESTS] = 0;
            self.requests.clear();
        }
        if self.emitted.len_bits() > 0 {
            self.emitted.clear();
        }
        if !self.colours.is_empty() {
            self.colours.fill(Colour::Green);
        }
        if !self.template.preserved_headers.is_empty() {
            self.clear_preserved_headers();
        }
    }

    /// Makes the headers that a fresh unit loads from the frame invalid and zero.
    #[cold]
    pub(crate) fn clear_preserved_headers(&mut self) {
        let template = self.template.clone();
        let (first, count) = template.layout.masks;
        self.frame[first as usize..(first + count) as usize].fill(0);
        for header in &template.preserved_headers {
            let layout = template.layout.header(*header);
            let home = layout.home as usize / 8;
            let words = template.layout.ty(&template.program, *header).home_bytes as usize / 8;
            self.frame[home..home + words].fill(0);
            self.frame[layout.place as usize] = self.frame.as_ptr() as u64 + u64::from(layout.home);
            if let Some(width) = layout.width {
                self.frame[width as usize] = 0;
            }
            if let Valid::Word(at) = layout.valid {
                self.frame[at as usize] = 0;
            }
        }
    }

    /// Returns the words of the slots that the caller supplies.
    pub(crate) fn given_words(&self) -> std::ops::Range<usize> {
        let layout = &self.template.layout;
        layout.inputs.0 as usize..(layout.inputs.0 + layout.given) as usize
    }

    /// Returns the value of a slot.
    pub fn slot(&self, slot: SlotId) -> Bits {
        let width = self.template.program.slots[slot].width;
        let at = self.template.layout.slot(slot) as usize;
        Bits::from_words(&self.frame[at..at + width.div_ceil(64) as usize], width)
    }

    /// Returns the low 64 bits of a slot.
    #[inline]
    pub fn slot_word(&self, slot: SlotId) -> u64 {
        let layout = self.template.layout.slots[slot.as_u32() as usize];
        if layout.width == 0 { 0 } else { self.frame[layout.word as usize] }
    }

    /// Returns the words of a slot, the least significant first.
    #[inline]
    pub fn slot_words(&self, slot: SlotId) -> &[u64] {
        let layout = self.template.layout.slots[slot.as_u32() as usize];
        let at = layout.word as usize;
        &self.frame[at..at + layout.width.div_ceil(64) as usize]
    }

    /// Sets a slot; the value is truncated or zero-extended to the slot's width.
    pub fn set_slot(&mut self, slot: SlotId, value: &Bits) {
        let width = self.template.program.slots[slot].width;
        let value = value.resize(width);
        let at = self.template.layout.slot(slot) as usize;
        for index in 0..width.div_ceil(64) as usize {
            self.frame[at + index] = value.word(index);
        }
    }

    /// Sets a slot to a number, truncated to the slot's width.
    #[inline]
    pub fn set_slot_to(&mut self, slot: SlotId, value: u64) {
        let layout = self.template.layout.slots[slot.as_u32() as usize];
        let at = layout.word as usize;
        match layout.width {
            0 => {}
            1..64 => self.frame[at] = value & ((1 << layout.width) - 1),
            width => {
                self.frame[at] = value;
                if width > 64 {
                    self.frame[at + 1..at + width.div_ceil(64) as usize].fill(0);
                }
            }
        }
    }

    /// Whether a header is valid.
    pub fn is_valid(&self, header: HeaderId) -> bool {
        match self.template.layout.header(header).valid {
            Valid::Bit { mask, bit } => self.frame[(self.template.layout.masks.0 + mask) as usize] >> bit & 1 == 1,
            Valid::Word(at) => self.frame[at as usize] != 0,
        }
    }

    fn set_valid(&mut self, header: HeaderId, valid: bool) {
        match self.template.layout.header(header).valid {
            Valid::Bit { mask, bit } => {
                let word = &mut self.frame[(self.template.layout.masks.0 + mask) as usize];
                *word = *word & !(1 << bit) | u64::from(valid) << bit;
            }
            Valid::Word(at) => self.frame[at as usize] = u64::from(valid),
        }
    }

    /// Returns the width of a header's varbit field in bits.
    fn varbit_bits(&self, header: HeaderId) -> u32 {
        self.template.layout.header(header).width.map_or(0, |at| self.frame[at as usize] as u32)
    }

    /// Returns the bytes in which headers may lie.
    fn buffer(&self) -> &[u8] {
        if self.primed { &self.data } else { &[] }
    }

    /// Returns the state of a header.
    pub fn header(&self, header: HeaderId) -> HeaderState {
        self.header_in(header, self.buffer())
    }

    /// Returns the state of a header of a packet that lies in this buffer.
    fn header_in(&self, header: HeaderId, buffer: &[u8]) -> HeaderState {
        let ty = self.template.layout.ty(&self.template.program, header);
        let varbit = self.varbit_bits(header);
        let bytes = (ty.fixed_bytes + varbit.div_ceil(8)) as usize;
        let place = self.frame[self.template.layout.header(header).place as usize];
        let offset = place.checked_sub(buffer.as_ptr() as u64).map(|offset| offset as usize);
        let within = offset.and_then(|offset| buffer.get(offset..offset.checked_add(bytes)?));
        // SAFETY: the bytes are in a home, which is large enough for the largest header of its type and outlives the
        // borrow of `self`.
        let at_home = || unsafe { std::slice::from_raw_parts(self.home(header) as *const u8, bytes) };
        let memory = within.unwrap_or_else(at_home);
        let fields = self.template.program.layout(header).fields.iter().zip(&ty.offsets);
        let fields = fields.map(|(field, offset)| {
            Bits::read(memory, *offset as usize, if field.varbit { varbit } else { field.width })
        });
        HeaderState { valid: self.is_valid(header), fields: fields.collect() }
    }

    /// Sets a header, whose bytes are in the frame afterwards.
    pub fn set_header(&mut self, header: HeaderId, state: &HeaderState) {
        let template = self.template.clone();
        let layout = template.layout.header(header);
        let ty = template.layout.ty(&template.program, header);
        let mut memory = vec![0; ty.home_bytes as usize];
        for ((value, field), offset) in
            state.fields.iter().zip(&template.program.layout(header).fields).zip(&ty.offsets)
        {
            value.write(&mut memory, *offset as usize);
            if let (true, Some(width)) = (field.varbit, layout.width) {
                self.frame[width as usize] = u64::from(value.width());
            }
        }
        for (at, word) in memory.chunks_exact(8).enumerate() {
            let word = word.try_into().expect("eight bytes");
            self.frame[layout.home as usize / 8 + at] = u64::from_ne_bytes(word);
        }
        self.frame[layout.place as usize] = self.home(header);
        self.set_valid(header, state.valid);
    }

    /// Returns the total size in bytes of all valid headers that are not local.
    pub fn header_bytes(&self) -> usize {
        let mut bits = 0;
        for (id, header) in &self.template.program.headers {
            if !header.local && self.is_valid(id) {
                bits += self.template.layout.ty(&self.template.program, id).fixed_bits + self.varbit_bits(id);
            }
        }
        bits as usize / 8
    }

    /// Returns the total size in bytes of all valid headers, as measured by the last unit that ran.
    pub fn measured_bytes(&self) -> usize {
        self.frame[word::MEASURED] as usize
    }

    /// Returns the packet's bytes: as received before code ran, afterwards with written fields changed.
    pub fn data(&self) -> &[u8] {
        &self.data[self.start..]
    }

    /// Returns the number of bits that the parser consumed.
    pub fn cursor_bits(&self) -> usize {
        self.frame[word::CURSOR] as usize
    }

    /// Returns the bytes after those that the parser consumed.
    pub fn payload(&self) -> &[u8] {
        &self.data()[self.cursor_bits().div_ceil(8)..]
    }

    /// Returns the parser's error, an index into [`Program::errors`].
    pub fn parser_error(&self) -> u32 {
        self.frame[word::ERROR] as u32
    }

    /// Whether there are pending requests.
    #[inline]
    pub fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Returns the pending requests in order, each with its source location.
    pub fn requests(&self) -> &[(Requested, LocId)] {
        &self.requests
    }

    /// Takes the pending requests.
    pub fn take_requests(&mut self) -> Vec<(Requested, LocId)> {
        self.frame[word::REQUESTS] = 0;
        std::mem::take(&mut self.requests)
    }

    /// Takes back the memory of requests that were taken.
    pub fn reuse_requests(&mut self, mut requests: Vec<(Requested, LocId)>) {
        if self.requests.is_empty() {
            requests.clear();
            self.requests = requests;
        }
    }

    /// Takes the values of a field list from another packet of the same program.
    pub fn keep(&mut self, other: &Packet, items: &[FieldListItem]) {
        self.keep_from(other, other.buffer(), items);
    }

    /// Sets slots of the same program to 0.
    #[inline]
    pub fn clear_slots(&mut self, slots: &SlotSet) {
        for words in &slots.words {
            self.frame[words.clone()].fill(0);
        }
    }

    /// Takes the values of a field list from another packet of the same program, which lies in this buffer.
    pub(crate) fn keep_from(&mut self, other: &Packet, buffer: &[u8], items: &[FieldListItem]) {
        for item in items {
            match *item {
                FieldListItem::Slot(slot) => {
                    let layout = self.template.layout.slots[slot.as_u32() as usize];
                    let at = layout.word as usize;
                    let words = at..at + layout.width.div_ceil(64) as usize;
                    self.frame[words.clone()].copy_from_slice(&other.frame[words]);
                }
                FieldListItem::Header(header) => self.set_header(header, &other.header_in(header, buffer)),
            }
        }
    }

    /// Returns the offset in `data` at which the outgoing packet begins, if it lies there.
    fn out_start(&self) -> Option<usize> {
        let at = self.frame[word::OUT];
        (at != out::EMITTED && at != out::REPLACED).then(|| (at - self.data.as_ptr() as u64) as usize)
    }

    /// Returns the outgoing packet, once the unit with the deparser has run.
    pub fn finish(&self) -> Vec<u8> {
        self.output_in(&self.data, self.start)
    }

    /// Copies the outgoing packet of a packet that lies in this buffer from `start` on.
    pub(crate) fn output_in(&self, buffer: &[u8], start: usize) -> Vec<u8> {
        match self.frame[word::OUT] {
            out::EMITTED => {
                let payload = &buffer[start..][self.cursor_bits().div_ceil(8)..];
                [self.emitted.as_bytes(), payload].concat()
            }
            out::REPLACED => self.replaced.clone(),
            at => buffer[(at - buffer.as_ptr() as u64) as usize..].to_vec(),
        }
    }

    /// Returns the outgoing packet, moved out where that saves a copy. This may move the packet's buffer out,
    /// after which only headers that field lists preserve can be read.
    pub fn take_output(&mut self) -> Vec<u8> {
        match self.out_start() {
            Some(0) if self.template.preserved_headers.is_empty() => self.take_data(),
            None if self.frame[word::OUT] == out::REPLACED => std::mem::take(&mut self.replaced),
            _ => self.finish(),
        }
    }

    /// Takes the buffer back with its current contents. The packet must be reset before it can be used again.
    #[inline]
    pub fn take_data(&mut self) -> Vec<u8> {
        self.leave_buffer();
        self.start = 0;
        std::mem::take(&mut self.data)
    }

    /// Removes what points into the buffer in which the packet lay.
    #[inline]
    pub(crate) fn leave_buffer(&mut self) {
        self.primed = false;
        self.frame[word::OUT] = out::EMITTED;
        self.frame[word::LENGTH] = 0;
        self.frame[word::CURSOR] = 0;
    }

    /// Returns the outgoing packet if it lies in one piece.
    pub fn output(&self) -> Option<&[u8]> {
        match self.out_start() {
            Some(start) => Some(&self.data[start..]),
            None if self.frame[word::OUT] == out::REPLACED => Some(&self.replaced),
            None => None,
        }
    }

    /// Clears the emitted bytes, so that a deparser can run again.
    pub fn clear_emitted(&mut self) {
        self.emitted.clear();
        self.frame[word::OUT] = out::EMITTED;
    }
}

impl Clone for Packet {
    /// Copies all state; the copy's headers lie in its own data and frame.
    fn clone(&self) -> Self {
        let mut copy = Packet::new(&self.template, Vec::new());
        copy.clone_from(self);
        copy
    }

    fn clone_from(&mut self, source: &Self) {
        let from = (source.data.as_ptr() as u64, source.data.len() as u64);
        source.copy_into(self, &source.data, source.start, from);
    }
}
