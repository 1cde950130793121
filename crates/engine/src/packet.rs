//! What a packet is while it is in the pipeline: its bytes, its headers, its slots.

use bits::Bits;
use cranelift_entity::PrimaryMap;
use ir::{DigestId, FieldListItem, HeaderId, HeaderType, LocId, MeterId, Program, SlotId};

use crate::BitString;
use crate::objects::Colour;

/// A header instance of one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderState {
    /// Whether it is there.
    pub valid: bool,
    /// Its fields. A variable field has the width that it has at the moment, 0 before its first extraction.
    pub fields: Vec<Bits>,
}

impl HeaderState {
    /// An invalid header of zeros.
    pub fn new(layout: &HeaderType) -> Self {
        let zero = |field: &ir::HeaderField| Bits::zero(if field.varbit { 0 } else { field.width });
        HeaderState { valid: false, fields: layout.fields.iter().map(zero).collect() }
    }

    /// Bits that it takes on the wire.
    pub fn len_bits(&self) -> usize {
        self.fields.iter().map(|field| field.width() as usize).sum()
    }
}

/// Something that a body asked of the architecture around it: an [`ir::Request`] with its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requested {
    /// A copy to a mirror session.
    Clone {
        /// Whether the ingress-to-egress kind was asked for (the packet as it came in).
        ingress: bool,
        /// Session id.
        session: u32,
        /// Field list to keep.
        keep: Option<u32>,
    },
    /// Through ingress once more, as it came in, keeping a field list.
    Resubmit(Option<u32>),
    /// Through the whole pipeline once more, as it leaves, keeping a field list.
    Recirculate(Option<u32>),
    /// Only the first so many bytes leave.
    Truncate(u32),
    /// A message to the control plane, with a value for each of the digest's fields.
    Digest(DigestId, Vec<Bits>),
}

/// Values that a field list carried from one pass to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preserved {
    slots: Vec<(SlotId, Bits)>,
    headers: Vec<(HeaderId, HeaderState)>,
}

/// One packet in the pipeline of one program. Every slot is 0 and every header invalid to begin with.
#[derive(Clone, Debug)]
pub struct PacketState {
    pub(crate) slots: PrimaryMap<SlotId, Bits>,
    pub(crate) headers: PrimaryMap<HeaderId, HeaderState>,
    pub(crate) data: Vec<u8>,
    /// How far the parser has come, in bits; never beyond the data.
    pub(crate) cursor_bits: usize,
    pub(crate) emitted: BitString,
    pub(crate) error: u32,
    pub(crate) requests: Vec<(Requested, LocId)>,
    /// What direct meters said in this pass.
    pub(crate) colours: PrimaryMap<MeterId, Colour>,
}

impl PacketState {
    /// A packet before the parser.
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

    /// Back to the state before the parser, with new data: for the next packet, or the next pass of this one. The
    /// same as [`PacketState::new`], without its allocations. Returns the old data.
    pub fn restart(&mut self, program: &Program, data: Vec<u8>) -> Vec<u8> {
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

    /// The value of a slot.
    pub fn slot(&self, slot: SlotId) -> &Bits {
        &self.slots[slot]
    }

    /// Sets a slot; the value is cut or zero-extended to the slot's width.
    pub fn set_slot(&mut self, slot: SlotId, value: Bits) {
        let width = self.slots[slot].width();
        self.slots[slot] = if value.width() == width { value } else { value.resize(width) };
    }

    /// Sets a slot to a number, cut to the slot's width.
    pub fn set_slot_to(&mut self, slot: SlotId, value: u64) {
        let width = self.slots[slot].width();
        self.slots[slot] = Bits::new(u128::from(value), width);
    }

    /// A header.
    pub fn header(&self, header: HeaderId) -> &HeaderState {
        &self.headers[header]
    }

    /// A header to change. Fixed fields must keep their widths.
    pub fn header_mut(&mut self, header: HeaderId) -> &mut HeaderState {
        &mut self.headers[header]
    }

    /// The packet as it came.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The bytes behind what the parser took. A byte that the parser took in part is not among them.
    pub fn payload(&self) -> &[u8] {
        &self.data[self.cursor_bits.div_ceil(8)..]
    }

    /// How many bits the parser took.
    pub fn cursor_bits(&self) -> usize {
        self.cursor_bits
    }

    /// What the deparser has emitted.
    pub fn emitted(&self) -> &BitString {
        &self.emitted
    }

    /// Forgets what was emitted, so that a deparser can run again.
    pub fn clear_emitted(&mut self) {
        self.emitted.clear();
    }

    /// The packet that leaves: what was emitted, padded to whole bytes, and the payload.
    pub fn finish(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.emitted.as_bytes().len() + self.payload().len());
        out.extend_from_slice(self.emitted.as_bytes());
        out.extend_from_slice(self.payload());
        out
    }

    /// The parser's error, an index into [`Program::errors`]; `NoError` until one is raised.
    pub fn parser_error(&self) -> u32 {
        self.error
    }

    /// What was asked for so far, each with its place in the source, in order.
    pub fn requests(&self) -> &[(Requested, LocId)] {
        &self.requests
    }

    /// Takes away what was asked for so far.
    pub fn take_requests(&mut self) -> Vec<(Requested, LocId)> {
        std::mem::take(&mut self.requests)
    }

    /// The values of a field list.
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

    /// Puts the values of a field list back.
    pub fn restore(&mut self, preserved: &Preserved) {
        for (slot, value) in &preserved.slots {
            self.slots[*slot] = value.clone();
        }
        for (header, value) in &preserved.headers {
            self.headers[*header] = value.clone();
        }
    }
}

/// The value of a member of `error`; 0 if the program does not declare it, which `core.p4` always does.
pub(crate) fn error_named(program: &Program, name: &str) -> u32 {
    program.errors.iter().position(|error| error == name).unwrap_or(0) as u32
}
