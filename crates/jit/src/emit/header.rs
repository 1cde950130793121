//! Emits operations on headers: resolution of references, position and validity.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use ir::{Expr, HeaderId, HeaderRef, SlotId, StackId};

use super::Emit;
use super::facts::Spot;
use super::value::Num;
use super::words::Word;
use crate::layout::{TypeLayout, Valid, word};

/// The header that a reference denotes, as far as it is known at compile time.
#[derive(Clone, Copy, Debug)]
pub(super) enum ResolvedHeader {
    /// Exactly this header.
    One(HeaderId),
    /// The element of a stack at a computed index; beyond the end, `index` and `inside` are 0.
    Element { stack: StackId, index: Value, inside: Value },
    /// No header: a constant index beyond the end of a stack of this type.
    OutOfBounds(HeaderId),
}

impl Emit<'_, '_> {
    pub(super) fn resolve(&mut self, header: &HeaderRef) -> ResolvedHeader {
        let (stack, index) = match header {
            HeaderRef::Header(header) => return ResolvedHeader::One(*header),
            HeaderRef::Element(stack, index) => (*stack, index),
        };
        let (first, size) = (self.program.stacks[stack].first, self.program.stacks[stack].size);
        if let Expr::Const(index) = &**index {
            return match index.to_u64().filter(|index| *index < u64::from(size)) {
                Some(index) => ResolvedHeader::One(HeaderId::from_u32(first.as_u32() + index as u32)),
                None => ResolvedHeader::OutOfBounds(first),
            };
        }
        let index = self.expr(index);
        let index = self.index(&index);
        let inside = self.w_cmp(IntCC::UnsignedLessThan, index, Word::Const(u64::from(size)));
        let index = self.w_choose(inside, index, Word::Const(0));
        ResolvedHeader::Element { stack, index: self.value(index), inside: self.value(inside) }
    }

    /// Returns a header of the same type, which stands for an element whose index is unknown.
    pub(super) fn representative(&self, resolved: ResolvedHeader) -> HeaderId {
        match resolved {
            ResolvedHeader::One(header) | ResolvedHeader::OutOfBounds(header) => header,
            ResolvedHeader::Element { stack, .. } => self.program.stacks[stack].first,
        }
    }

    pub(super) fn ty(&self, resolved: ResolvedHeader) -> &TypeLayout {
        self.layout.ty(self.program, self.representative(resolved))
    }

    fn zeros(&mut self) -> Value {
        let offset = self.number(u64::from(self.layout.zeros));
        self.b.ins().iadd(self.frame, offset)
    }

    fn sink(&mut self) -> Value {
        let offset = self.number(u64::from(self.layout.sink));
        self.b.ins().iadd(self.frame, offset)
    }

    /// Returns the address of a frame word that belongs to an element, from the first element's word and the index.
    fn element_word(&mut self, first: u32, index: Value) -> Value {
        let offset = self.w_shl(Word::Value(index), 3);
        let offset = self.w_add(offset, Word::Const(u64::from(first) * 8));
        let offset = self.value(offset);
        self.b.ins().iadd(self.frame, offset)
    }

    fn choose_value(&mut self, condition: Value, then: Value, otherwise: Value) -> Value {
        self.b.ins().select(condition, then, otherwise)
    }

    /// Returns the address at which to read a header.
    pub(super) fn place_to_read(&mut self, resolved: ResolvedHeader) -> Value {
        match resolved {
            ResolvedHeader::One(header) => self.place(header),
            ResolvedHeader::OutOfBounds(_) => self.zeros(),
            ResolvedHeader::Element { stack, index, inside } => {
                let first = self.layout.header(self.program.stacks[stack].first).place;
                let at = self.element_word(first, index);
                let place = self.b.ins().load(types::I64, self.flags.frame, at, 0);
                let zeros = self.zeros();
                self.choose_value(inside, place, zeros)
            }
        }
    }

    /// Returns the address at which to write a header.
    pub(super) fn place_to_write(&mut self, resolved: ResolvedHeader) -> Value {
        match resolved {
            ResolvedHeader::One(header) => self.place(header),
            ResolvedHeader::OutOfBounds(_) => self.sink(),
            ResolvedHeader::Element { stack, index, inside } => {
                let first = self.layout.header(self.program.stacks[stack].first).place;
                let at = self.element_word(first, index);
                let place = self.b.ins().load(types::I64, self.flags.frame, at, 0);
                let sink = self.sink();
                self.choose_value(inside, place, sink)
            }
        }
    }

    fn place(&mut self, header: HeaderId) -> Value {
        match self.places.get(&header).copied() {
            Some(variable) => match self.facts.places.get(&header).copied() {
                Some(Spot::Home) => self.home(header),
                Some(Spot::Packet(at)) => self.in_packet(Word::Const(at)),
                None => match variable {
                    Some(variable) => self.b.use_var(variable),
                    None => self.frame_load(self.layout.header(header).place),
                },
            },
            None => self.frame_load(self.layout.header(header).place),
        }
    }

    /// Returns the address at an offset from the packet's first byte.
    fn in_packet(&mut self, at: Word) -> Value {
        let place = self.w_add(Word::Value(self.packet), at);
        self.value(place)
    }

    /// Sets the position of a header to an offset from the packet's first byte.
    pub(super) fn set_place_in_packet(&mut self, resolved: ResolvedHeader, at: Word) {
        let place = self.in_packet(at);
        self.set_place(resolved, place, at.as_const().map(Spot::Packet));
    }

    /// Returns whether a header is valid, if that is a fact.
    pub(super) fn knows_valid(&self, header: HeaderId) -> Option<bool> {
        match self.layout.header(header).valid {
            Valid::Bit { mask, bit } => self.facts.bit(mask, bit),
            Valid::Word(_) => None,
        }
    }

    /// Returns the home of a header that will be written.
    pub(super) fn home_to_write(&mut self, resolved: ResolvedHeader) -> Value {
        match resolved {
            ResolvedHeader::One(header) => self.home(header),
            ResolvedHeader::OutOfBounds(_) => self.sink(),
            ResolvedHeader::Element { stack, index, inside } => {
                let first = self.program.stacks[stack].first;
                let bytes = self.number(u64::from(self.layout.ty(self.program, first).home_bytes));
                let offset = self.b.ins().imul(index, bytes);
                let home = self.home(first);
                let home = self.b.ins().iadd(home, offset);
                let sink = self.sink();
                self.choose_value(inside, home, sink)
            }
        }
    }

    /// Returns the address of an element's frame word, or of the sink.
    fn element_to_write(&mut self, first: u32, index: Value, inside: Value) -> Value {
        let at = self.element_word(first, index);
        let sink = self.sink();
        self.choose_value(inside, at, sink)
    }

    /// Sets the address of a header, and its position if that is known.
    pub(super) fn set_place(&mut self, resolved: ResolvedHeader, place: Value, spot: Option<Spot>) {
        self.invalidate_sums(resolved);
        match resolved {
            ResolvedHeader::OutOfBounds(_) => {}
            ResolvedHeader::One(header) => match self.places.get(&header).copied() {
                Some(variable) => {
                    match spot {
                        Some(spot) => _ = self.facts.places.insert(header, spot),
                        None => _ = self.facts.places.remove(&header),
                    }
                    match variable {
                        Some(variable) => self.b.def_var(variable, place),
                        None => self.frame_store(self.layout.header(header).place, place),
                    }
                }
                None => self.frame_store(self.layout.header(header).place, place),
            },
            ResolvedHeader::Element { stack, index, inside } => {
                let first = self.layout.header(self.program.stacks[stack].first).place;
                let at = self.element_to_write(first, index, inside);
                self.b.ins().store(self.flags.frame, place, at, 0);
            }
        }
    }

    /// Returns the validity of a header as 0 or 1.
    pub(super) fn valid(&mut self, resolved: ResolvedHeader) -> Word {
        match resolved {
            ResolvedHeader::OutOfBounds(_) => Word::Const(0),
            ResolvedHeader::One(header) => match self.layout.header(header).valid {
                Valid::Bit { mask, bit } => {
                    if let Some(valid) = self.facts.bit(mask, bit) {
                        return Word::Const(u64::from(valid));
                    }
                    let mask = self.mask(mask);
                    let bit = self.w_shr(mask, bit);
                    self.w_and(bit, Word::Const(1))
                }
                Valid::Word(at) => Word::Value(self.frame_load(at)),
            },
            ResolvedHeader::Element { stack, index, inside } => {
                let Valid::Word(first) = self.layout.header(self.program.stacks[stack].first).valid else {
                    unreachable!("stacks with computed indices have words")
                };
                let at = self.element_word(first, index);
                let valid = self.b.ins().load(types::I64, self.flags.frame, at, 0);
                Word::Value(self.b.ins().band(valid, inside))
            }
        }
    }

    /// Returns the validity of a header as 0 or any other value.
    pub(super) fn is_valid(&mut self, resolved: ResolvedHeader) -> Word {
        match resolved {
            ResolvedHeader::One(header) => match self.layout.header(header).valid {
                Valid::Bit { mask, bit } => {
                    if let Some(valid) = self.facts.bit(mask, bit) {
                        return Word::Const(u64::from(valid));
                    }
                    let mask = self.mask(mask);
                    self.w_and(mask, Word::Const(1 << bit))
                }
                Valid::Word(_) => self.valid(resolved),
            },
            resolved => self.valid(resolved),
        }
    }

    pub(super) fn set_valid(&mut self, resolved: ResolvedHeader, valid: Word) {
        match resolved {
            ResolvedHeader::OutOfBounds(_) => {}
            ResolvedHeader::One(header) => match self.layout.header(header).valid {
                Valid::Bit { mask, bit } => self.set_bit(mask, bit, valid),
                Valid::Word(at) => {
                    let valid = self.value(valid);
                    self.frame_store(at, valid);
                }
            },
            ResolvedHeader::Element { stack, index, inside } => {
                let Valid::Word(first) = self.layout.header(self.program.stacks[stack].first).valid else {
                    unreachable!("stacks with computed indices have words")
                };
                let at = self.element_to_write(first, index, inside);
                let valid = self.value(valid);
                self.b.ins().store(self.flags.frame, valid, at, 0);
            }
        }
    }

    /// Returns the width of a header's varbit field in bits; 0 for types without one.
    pub(super) fn varbit_width(&mut self, resolved: ResolvedHeader) -> Word {
        match resolved {
            ResolvedHeader::OutOfBounds(_) => Word::Const(0),
            ResolvedHeader::One(header) => {
                match (self.layout.header(header).width, self.widths.get(&header).copied()) {
                    (None, _) => Word::Const(0),
                    (Some(_), Some(variable)) => Word::Value(self.b.use_var(variable)),
                    (Some(at), None) => Word::Value(self.frame_load(at)),
                }
            }
            ResolvedHeader::Element { stack, index, inside } => {
                let Some(first) = self.layout.header(self.program.stacks[stack].first).width else {
                    return Word::Const(0);
                };
                let at = self.element_word(first, index);
                let width = self.b.ins().load(types::I64, self.flags.frame, at, 0);
                self.w_choose(Word::Value(inside), Word::Value(width), Word::Const(0))
            }
        }
    }

    pub(super) fn set_varbit_width(&mut self, resolved: ResolvedHeader, width: Word) {
        match resolved {
            ResolvedHeader::OutOfBounds(_) => {}
            ResolvedHeader::One(header) => {
                let Some(at) = self.layout.header(header).width else { return };
                let width = self.value(width);
                match self.widths.get(&header).copied() {
                    Some(variable) => self.b.def_var(variable, width),
                    None => self.frame_store(at, width),
                }
            }
            ResolvedHeader::Element { stack, index, inside } => {
                let Some(first) = self.layout.header(self.program.stacks[stack].first).width else { return };
                let at = self.element_to_write(first, index, inside);
                let width = self.value(width);
                self.b.ins().store(self.flags.frame, width, at, 0);
            }
        }
    }

    /// Returns the bit offset and width of a fixed field, and the size of its header in bytes.
    fn field_at(&self, resolved: ResolvedHeader, field: u32) -> (u32, u32, u32) {
        let ty = self.ty(resolved);
        let width = self.program.layout(self.representative(resolved)).fields[field as usize].width;
        (ty.offsets[field as usize], width, ty.fixed_bytes)
    }

    pub(super) fn read_field(&mut self, header: &HeaderRef, field: u32) -> Num {
        let resolved = self.resolve(header);
        let (bit, width, bytes) = self.field_at(resolved, field);
        if let ResolvedHeader::OutOfBounds(_) = resolved {
            return Num::number(0, width);
        }
        let place = self.place_to_read(resolved);
        self.load_field(place, bit, width, bytes)
    }

    pub(super) fn write_field(&mut self, header: &HeaderRef, field: u32, num: &Num) {
        let resolved = self.resolve(header);
        if let ResolvedHeader::OutOfBounds(_) = resolved {
            return;
        }
        if let ResolvedHeader::One(header) = resolved {
            self.update_sums(header, field, num);
        }
        let (bit, _, bytes) = self.field_at(resolved, field);
        let place = self.place_to_write(resolved);
        self.store_field(place, bit, num, bytes);
    }

    pub(super) fn copy_header(&mut self, to: &HeaderRef, from: &HeaderRef) {
        let (to, from) = (self.resolve(to), self.resolve(from));
        self.invalidate_sums(to);
        let valid = self.valid(from);
        let source = self.place_to_read(from);
        let (bytes, varbit) = (self.ty(to).fixed_bytes, self.ty(to).varbit_max);
        match varbit {
            None => {
                let target = self.place_to_write(to);
                self.copy_bytes(target, source, bytes);
            }
            Some(_) => {
                let width = self.varbit_width(from);
                let behind = self.number(u64::from(bytes));
                let varbit = self.b.ins().iadd(source, behind);
                self.bring_home(to, source, varbit, width);
            }
        }
        self.set_valid(to, valid);
    }

    /// Moves a header to its home, with the fixed fields from one address and the varbit field from another.
    fn bring_home(&mut self, to: ResolvedHeader, fixed_from: Value, varbit_from: Value, width: Word) {
        let home = self.home_to_write(to);
        let fixed = self.number(u64::from(self.ty(to).fixed_bytes));
        let bits = self.w_add(width, Word::Const(7));
        let bytes = self.w_shr(bits, 3);
        let bytes = self.value(bytes);
        self.call("set_varbit", &[home, fixed_from, fixed, varbit_from, bytes]);
        // Where widths are in the frame, a header that is known to be at home has the width 0.
        let spot = (!self.has_places_in_frame()).then_some(Spot::Home);
        self.set_place(to, home, spot);
        self.set_varbit_width(to, width);
    }

    pub(super) fn copy_varbit(&mut self, to: &HeaderRef, from: &HeaderRef) {
        let (to, from) = (self.resolve(to), self.resolve(from));
        let width = self.varbit_width(from);
        let varbit = self.varbit_place(from);
        let place = self.place_to_write(to);
        self.bring_home(to, place, varbit, width);
    }

    /// Returns the address of a header's varbit field.
    pub(super) fn varbit_place(&mut self, resolved: ResolvedHeader) -> Value {
        let place = self.place_to_read(resolved);
        let behind = self.number(u64::from(self.ty(resolved).fixed_bytes));
        self.b.ins().iadd(place, behind)
    }

    /// Stores the total size of the valid headers in the frame.
    pub(super) fn measure(&mut self) {
        let bytes = self.header_bytes();
        let bytes = self.value(bytes);
        self.frame_store(word::MEASURED as u32, bytes);
    }

    /// Sets a slot to the packet's length with its present headers.
    pub(super) fn set_present_length(&mut self, slot: SlotId) {
        let present = self.header_bytes();
        let measured = self.frame_load(word::MEASURED as u32);
        let whole = self.w_add(Word::Value(self.length), present);
        let is_enough = self.w_cmp(IntCC::UnsignedGreaterThanOrEqual, whole, Word::Value(measured));
        let rest = self.w_sub(whole, Word::Value(measured));
        let length = self.w_choose(is_enough, rest, Word::Const(0));
        self.set_number(slot, length);
    }

    /// Returns the total size in bytes of the valid headers that are not local.
    fn header_bytes(&mut self) -> Word {
        let mut bits = Word::Const(0);
        let headers: Vec<HeaderId> = self.state.headers.iter().copied().collect();
        for header in headers {
            if self.program.headers[header].local {
                continue;
            }
            let resolved = ResolvedHeader::One(header);
            let valid = self.valid(resolved);
            let fixed = Word::Const(u64::from(self.ty(resolved).fixed_bits));
            let width = self.varbit_width(resolved);
            let all = self.w_add(fixed, width);
            let counted = self.w_choose(valid, all, Word::Const(0));
            bits = self.w_add(bits, counted);
        }
        self.w_shr(bits, 3)
    }
}
