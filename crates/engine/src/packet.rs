//! Holds the state of a packet in the pipeline: bytes, headers and slots.

use bits::Bits;
use cranelift_entity::PrimaryMap;
use ir::{DigestId, FieldListItem, HeaderId, HeaderType, LocId, MeterId, Program, SlotId};

use crate::BitString;
use crate::objects::Colour;

/// A header instance of one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderState {
    /// Validity.
    pub valid: bool,
    /// Fields. A varbit field has its current width, 0 before its first extraction.
    pub fields: Vec<Bits>,
}

impl HeaderState {
    /// Creates an invalid header of zeros.
    pub fn new(layout: &HeaderType) -> Self {
        let zero = |field: &ir::HeaderField| Bits::zero(if field.varbit { 0 } else { field.width });
        HeaderState { valid: false, fields: layout.fields.iter().map(zero).collect() }
    }

    /// Returns the length on the wire in bits.
    pub fn len_bits(&self) -> usize {
        self.fields.iter().map(|field| field.width() as usize).sum()
    }
}

/// A request of a body to the architecture: an [`ir::Request`] with its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requested {
    /// A copy to a mirror session.
    Clone {
        /// Whether this is an ingress-to-egress clone (of the packet as received).
        ingress: bool,
        /// Session id.
        session: u32,
        /// Field list to preserve.
        keep: Option<u32>,
    },
    /// Another pass through ingress with the packet as received, preserving a field list.
    Resubmit(Option<u32>),
    /// Another pass through the whole pipeline with the packet as emitted, preserving a field list.
    Recirculate(Option<u32>),
    /// Truncation to this many bytes.
    Truncate(u32),
    /// A message to the control plane, with a value for each of the digest's fields.
    Digest(DigestId, Vec<Bits>),
    /// Nothing by itself: what the packet sends must wait for a row, so it leaves its batch. Only compiled code
    /// requests it.
    Hold,
}

/// Values that a field list carries from one pass of a packet to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preserved {
    slots: Vec<(SlotId, Bits)>,
    headers: Vec<(HeaderId, HeaderState)>,
}

/// One packet in the pipeline of one program. Initially, every slot is 0 and every header invalid.
#[derive(Clone, Debug)]
pub struct PacketState {
    pub(crate) slots: PrimaryMap<SlotId, Bits>,
    pub(crate) headers: PrimaryMap<HeaderId, HeaderState>,
    pub(crate) data: Vec<u8>,
    /// Position of the parser in bits; never beyond the data.
    pub(crate) cursor_bits: usize,
    pub(crate) emitted: BitString,
    pub(crate) error: u32,
    pub(crate) requests: Vec<(Requested, LocId)>,
    /// Results of direct meters in this pass.
    pub(crate) colours: PrimaryMap<MeterId, Colour>,
}

impl PacketState {
    /// Creates a packet in the state before the parser.
    pub fn new(program: &Program, data: Vec<u8>) -> Self {
        PacketState {
            slots: program.slots.values().map(|slot| Bits::zero(slot.width)).collect(),
            headers: program.headers.keys().map(|header| HeaderState::new(program.layout(header))).collect(),
            data,
            cursor_bits: 0,
            emitted: BitString::new(),
            error: error_named(program, "NoError"),
            requests: Vec::new(),
            colours: program.meters.values().map(|_| Colour::Green).collect(),
        }
    }

    /// Resets to the state before the parser, with new data: for the next packet, or the next pass of this one. Equals
    /// [`PacketState::new`] without its allocations. Returns the old data.
    pub fn reset(&mut self, program: &Program, data: Vec<u8>) -> Vec<u8> {
        for (id, slot) in &program.slots {
            self.slots[id] = Bits::zero(slot.width);
        }
        for (id, header) in self.headers.iter_mut() {
            header.valid = false;
            for (value, field) in header.fields.iter_mut().zip(&program.layout(id).fields) {
                *value = Bits::zero(if field.varbit { 0 } else { field.width });
            }
        }
        self.cursor_bits = 0;
        self.emitted.clear();
        self.error = error_named(program, "NoError");
        self.requests.clear();
        self.colours.values_mut().for_each(|colour| *colour = Colour::Green);
        std::mem::replace(&mut self.data, data)
    }

    /// Returns the value of a slot.
    pub fn slot(&self, slot: SlotId) -> &Bits {
        &self.slots[slot]
    }

    /// Sets a slot; the value is truncated or zero-extended to the slot's width.
    pub fn set_slot(&mut self, slot: SlotId, value: Bits) {
        let width = self.slots[slot].width();
        self.slots[slot] = if value.width() == width { value } else { value.resize(width) };
    }

    /// Sets a slot to a number, truncated to the slot's width.
    pub fn set_slot_to(&mut self, slot: SlotId, value: u64) {
        let width = self.slots[slot].width();
        self.slots[slot] = Bits::new(u128::from(value), width);
    }

    /// Returns a header.
    pub fn header(&self, header: HeaderId) -> &HeaderState {
        &self.headers[header]
    }

    /// Returns a header for modification. Fixed fields must keep their widths.
    pub fn header_mut(&mut self, header: HeaderId) -> &mut HeaderState {
        &mut self.headers[header]
    }

    /// Returns the packet as received.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Returns the bytes after those that the parser consumed. A partly consumed byte is not included.
    pub fn payload(&self) -> &[u8] {
        &self.data[self.cursor_bits.div_ceil(8)..]
    }

    /// Returns the number of bits that the parser consumed.
    pub fn cursor_bits(&self) -> usize {
        self.cursor_bits
    }

    /// Returns the output of the deparser so far.
    pub fn emitted(&self) -> &BitString {
        &self.emitted
    }

    /// Clears the emitted bits, so that a deparser can run again.
    pub fn clear_emitted(&mut self) {
        self.emitted.clear();
    }

    /// Returns the outgoing packet: the emitted bits, padded to whole bytes, and the payload.
    pub fn finish(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.emitted.as_bytes().len() + self.payload().len());
        out.extend_from_slice(self.emitted.as_bytes());
        out.extend_from_slice(self.payload());
        out
    }

    /// Returns the parser's error, an index into [`Program::errors`]; `NoError` until one is raised.
    pub fn parser_error(&self) -> u32 {
        self.error
    }

    /// Returns the pending requests in order, each with its source location.
    pub fn requests(&self) -> &[(Requested, LocId)] {
        &self.requests
    }

    /// Takes the pending requests.
    pub fn take_requests(&mut self) -> Vec<(Requested, LocId)> {
        std::mem::take(&mut self.requests)
    }

    /// Saves the values of a field list.
    pub fn preserve(&self, kept: &[FieldListItem]) -> Preserved {
        let mut preserved = Preserved::default();
        for kept in kept {
            match *kept {
                FieldListItem::Slot(slot) => preserved.slots.push((slot, self.slots[slot].clone())),
                FieldListItem::Header(header) => preserved.headers.push((header, self.headers[header].clone())),
            }
        }
        preserved
    }

    /// Restores the values of a field list.
    pub fn restore(&mut self, preserved: &Preserved) {
        for (slot, value) in &preserved.slots {
            self.slots[*slot] = value.clone();
        }
        for (header, value) in &preserved.headers {
            self.headers[*header] = value.clone();
        }
    }
}

/// Returns the value of a member of `error`; 0 if the program does not declare it, which `core.p4` always does.
pub(crate) fn error_named(program: &Program, name: &str) -> u32 {
    program.errors.iter().position(|error| error == name).unwrap_or(0) as u32
}
