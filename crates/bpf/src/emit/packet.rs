//! Emits accesses to the packet, and operations on headers.
//!
//! The fields that the program reads or writes are loaded into scratch memory when their header is extracted, and the
//! written ones are stored at the commit. A field is loaded and stored as the bytes that it touches, at most eight.

use ir::{Expr, HeaderId, HeaderRef, HeaderType, LValue, Op};

use super::headers::{EmitSite, MOVED};
use super::scratch::ScratchWord;
use super::{Emitter, HandOverReason, PACKET, PACKET_END, R0, R1, R3};
use crate::asm::{AccessSize, Alu, Cond, Instruction, Reg};

/// Maximum number of bytes that a parser consumes.
pub(super) const MAX_PARSED_BYTES: u32 = 500;
/// Mask of places, for the verifier.
pub(super) const PLACE_MASK: i32 = 0x3ff;

/// Returns the position of a field in bits from the start of its header.
pub(super) fn field_start(ty: &HeaderType, field: u32) -> u32 {
    ty.fields[..field as usize].iter().map(|field| field.width).sum()
}

/// Whether a field has fixed width and touches at most eight bytes, in a header that begins at a byte.
pub(super) fn is_narrow_field(ty: &HeaderType, field: u32) -> bool {
    let (start, width) = (field_start(ty, field), ty.fields[field as usize].width);
    ty.varbit_field().is_none() && width > 0 && Bytes::of(start, width).count <= 8
}

/// The bytes that bits of the packet touch.
#[derive(Clone, Copy)]
pub(super) struct Bytes {
    pub first: u32,
    pub count: u32,
    /// Number of bits behind the last one.
    pub tail: u32,
}

impl Bytes {
    /// Returns the bytes of `width` bits from `start` on; the width is not 0.
    fn of(start: u32, width: u32) -> Bytes {
        let last = (start + width - 1) / 8;
        Bytes { first: start / 8, count: last - start / 8 + 1, tail: 7 - (start + width - 1) % 8 }
    }

    /// Returns the accesses that cover the bytes, from the first on: offset and size.
    pub(super) fn accesses(self) -> Vec<(u32, AccessSize)> {
        let (mut at, mut all) = (self.first, Vec::new());
        while at < self.first + self.count {
            let left = self.first + self.count - at;
            let sizes = [AccessSize::B8, AccessSize::B4, AccessSize::B2, AccessSize::B1];
            let size = sizes.into_iter().find(|size| size.bytes() <= left).unwrap_or(AccessSize::B1);
            all.push((at, size));
            at += size.bytes();
        }
        all
    }
}

impl<'p> Emitter<'p> {
    pub(super) fn header_problem(&self, header: &HeaderRef) -> Option<HandOverReason> {
        matches!(header, HeaderRef::Element(..)).then_some(HandOverReason::Stack)
    }

    pub(super) fn place_problem(&self, place: &LValue) -> Option<HandOverReason> {
        match place {
            LValue::Slot(slot) => (self.program.slots[*slot].width > 64).then_some(HandOverReason::WideValue),
            LValue::Field(HeaderRef::Element(..), _) => Some(HandOverReason::Stack),
            LValue::Field(HeaderRef::Header(header), field) => self.field_problem(*header, *field),
        }
    }

    pub(super) fn field_problem(&self, header: HeaderId, field: u32) -> Option<HandOverReason> {
        let ty = self.program.layout(header);
        match ty.varbit_field() {
            Some(_) => Some(HandOverReason::Varbit),
            None => (!is_narrow_field(ty, field)).then_some(HandOverReason::WideValue),
        }
    }

    pub(super) fn extract_problem(&self, header: &HeaderRef) -> Option<HandOverReason> {
        let HeaderRef::Header(header) = header else { return Some(HandOverReason::Stack) };
        let ty = self.program.layout(*header);
        if ty.varbit_field().is_some() {
            return Some(HandOverReason::Varbit);
        }
        if !ty.fixed_bits().is_multiple_of(8) {
            return Some(HandOverReason::PartialByte);
        }
        let mut kept = (0..ty.fields.len() as u32).filter(|field| self.usage.is_kept(*header, *field));
        kept.find_map(|field| self.field_problem(*header, field))
    }

    pub(super) fn emit_problem(&self, header: &HeaderRef) -> Option<HandOverReason> {
        if let HeaderRef::Header(header) = header
            && self.usage.changed_by_deparser.contains(header)
        {
            return Some(HandOverReason::Deparser);
        }
        self.extract_problem(header)
    }

    pub(super) fn copy_problem(&self, to: &HeaderRef, from: &HeaderRef) -> Option<HandOverReason> {
        let (HeaderRef::Header(to), HeaderRef::Header(_)) = (to, from) else { return Some(HandOverReason::Stack) };
        (0..self.program.layout(*to).fields.len() as u32).find_map(|field| self.field_problem(*to, field))
    }

    pub(super) fn lookahead_problem(&self, dst: &LValue, skip: u32) -> Option<HandOverReason> {
        let width = self.place_width(dst);
        let is_narrow = (1..=64).contains(&width) && Bytes::of(skip % 8, width).count <= 8;
        let is_near = skip / 8 + 16 < MAX_PARSED_BYTES;
        match (is_narrow, is_near) {
            (false, _) => Some(HandOverReason::WideValue),
            (true, false) => Some(HandOverReason::DeepParse),
            (true, true) => self.place_problem(dst),
        }
    }

    /// Returns the number of bytes that an instruction of a parser consumes.
    pub(super) fn consumed(&self, op: &Op) -> u32 {
        match op {
            Op::Extract(HeaderRef::Header(header), None) => self.program.layout(*header).fixed_bits() / 8,
            Op::Advance(Expr::Const(bits)) => (bits.low_u64() / 8).min(u64::from(u32::MAX / 2)) as u32,
            _ => 0,
        }
    }

    /// Returns the width of a place in bits.
    pub(super) fn place_width(&self, place: &LValue) -> u32 {
        let field = |header: HeaderId, field: u32| self.program.layout(header).fields[field as usize].width;
        match place {
            LValue::Slot(slot) => self.program.slots[*slot].width,
            LValue::Field(HeaderRef::Header(header), number) => field(*header, *number),
            LValue::Field(HeaderRef::Element(stack, _), number) => field(self.program.stacks[*stack].first, *number),
        }
    }

    /// Raises `PacketTooShort` unless the packet has this many bytes.
    fn need(&mut self, bytes: u32) {
        let has_them = self.code.label();
        self.alu(Alu::Mov, R0, PACKET);
        self.alu(Alu::Add, R0, bytes as i32);
        self.jump_if(Cond::Le, R0, PACKET_END, has_them);
        self.raise("PacketTooShort");
        self.bind(has_them);
    }

    pub(super) fn extract(&mut self, header: &HeaderRef) {
        let HeaderRef::Header(header) = *header else { return };
        let (begin, ty) = (self.cursor, self.program.layout(header));
        let end = begin + ty.fixed_bits() / 8;
        self.need(end);
        for field in 0..ty.fields.len() as u32 {
            if let Some(word) = self.scratch.fields.get(&(header, field)).copied() {
                let start = begin * 8 + field_start(ty, field);
                self.load_bits(PACKET, start, ty.fields[field as usize].width);
                self.store_word(word, R1);
            }
        }
        let (valid, place) = self.scratch.headers[&header];
        self.store_imm(valid, 1);
        self.store_imm(place, begin as i32 + 1);
        self.cursor = end;
    }

    pub(super) fn lookahead(&mut self, dst: &LValue, skip: u32) {
        let (start, width) = (self.cursor * 8 + skip, self.place_width(dst));
        self.need((start + width).div_ceil(8));
        if let LValue::Slot(slot) = dst
            && !self.usage.slots_read.contains(slot)
        {
            return;
        }
        self.load_bits(PACKET, start, width);
        self.write(dst);
    }

    pub(super) fn advance(&mut self, bits: &Expr) {
        let Expr::Const(bits) = bits else { return };
        let end = self.cursor + (bits.low_u64() / 8) as u32;
        self.need(end);
        self.cursor = end;
    }

    pub(super) fn set_valid(&mut self, header: &HeaderRef, valid: i32) {
        if let HeaderRef::Header(header) = header {
            self.store_imm(self.scratch.headers[header].0, valid);
        }
    }

    pub(super) fn copy_header(&mut self, to: &HeaderRef, from: &HeaderRef) {
        let (HeaderRef::Header(to), HeaderRef::Header(from)) = (to, from) else { return };
        for field in 0..self.program.layout(*to).fields.len() as u32 {
            let fields = &self.scratch.fields;
            let (to, from) = (fields[&(*to, field)], fields[&(*from, field)]);
            self.load_word(R1, from);
            self.store_word(to, R1);
        }
        self.load_word(R1, self.scratch.headers[from].0);
        self.store_word(self.scratch.headers[to].0, R1);
    }

    /// Emits a header: compares its place with the one that it has in the outgoing packet.
    pub(super) fn emit_header(&mut self, header: &HeaderRef) {
        let HeaderRef::Header(header) = header else { return };
        if self.usage.keeps_headers {
            return;
        }
        let (valid, place) = self.scratch.headers[header];
        let is_not_sent = self.code.label();
        self.load_word(R1, valid);
        self.jump_if(Cond::Eq, R1, 0, is_not_sent);
        self.load_word(R1, place);
        self.load_word(R0, ScratchWord::OUT);
        if self.usage.moves_headers {
            let site = EmitSite { place: self.scratch.pending_word(), header: *header, loc: self.loc };
            let is_in_place = self.code.label();
            self.store_word(site.place, R0);
            self.emits.push(site);
            self.jump_if(Cond::Eq, R1, R0, is_in_place);
            self.alu(Alu::Or, R0, MOVED);
            self.bind(is_in_place);
        } else {
            self.hand_over_if(Cond::Ne, R1, R0, HandOverReason::HeaderLayout);
        }
        self.alu(Alu::Add, R0, (self.program.layout(*header).fixed_bits() / 8) as i32);
        self.store_word(ScratchWord::OUT, R0);
        self.bind(is_not_sent);
    }

    /// Writes r1 to a place.
    pub(super) fn write(&mut self, place: &LValue) {
        let word = match place {
            LValue::Slot(slot) => self.read_slot(*slot),
            LValue::Field(HeaderRef::Header(header), field) => self.scratch.fields.get(&(*header, *field)).copied(),
            LValue::Field(HeaderRef::Element(..), _) => None,
        };
        if let Some(word) = word {
            self.store_word(word, R1);
        }
    }

    /// Loads bits from `start` after a pointer into r1. Overwrites r0.
    fn load_bits(&mut self, pointer: Reg, start: u32, width: u32) {
        let bytes = Bytes::of(start, width);
        self.load_bytes(R1, pointer, bytes);
        if bytes.tail > 0 {
            self.alu(Alu::Rsh, R1, bytes.tail as i32);
        }
        if bytes.count * 8 - bytes.tail > width {
            self.truncate(R1, width);
        }
    }

    /// Loads up to eight bytes as one number. Overwrites r0.
    fn load_bytes(&mut self, to: Reg, pointer: Reg, bytes: Bytes) {
        for (number, (at, size)) in bytes.accesses().into_iter().enumerate() {
            let part = if number == 0 { to } else { R0 };
            self.push(Instruction::Load(size, part, pointer, at as i16));
            if size != AccessSize::B1 {
                self.push(Instruction::BigEndian(part, 8 * size.bytes() as u8));
            }
            if number > 0 {
                self.alu(Alu::Lsh, to, 8 * size.bytes() as i32);
                self.alu(Alu::Or, to, R0);
            }
        }
    }

    /// Stores the value r1 of a field into a header at a pointer. Overwrites r0, r1 and r3.
    pub(super) fn store_field(&mut self, pointer: Reg, header: HeaderId, field: u32) {
        let ty = self.program.layout(header);
        let (start, width) = (field_start(ty, field), ty.fields[field as usize].width);
        let bytes = Bytes::of(start, width);
        if bytes.tail > 0 {
            self.alu(Alu::Lsh, R1, bytes.tail as i32);
        }
        if bytes.count * 8 > width {
            let mask = u64::MAX >> (64 - width) << bytes.tail;
            self.load_bytes(R3, pointer, bytes);
            self.number(R0, !mask);
            self.alu(Alu::And, R3, R0);
            self.alu(Alu::Or, R1, R3);
        }
        for (at, size) in bytes.accesses().into_iter().rev() {
            self.alu(Alu::Mov, R0, R1);
            if size != AccessSize::B1 {
                self.push(Instruction::BigEndian(R0, 8 * size.bytes() as u8));
            }
            self.push(Instruction::Store(size, pointer, at as i16, R0));
            if size != AccessSize::B8 {
                self.alu(Alu::Rsh, R1, 8 * size.bytes() as i32);
            }
        }
    }
}
