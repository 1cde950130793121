//! Headers: which one is meant, where it lies, whether it is valid.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use ir::{Expr, HeaderId, HeaderRef, StackId};

use super::Emit;
use super::known::Spot;
use super::value::Num;
use super::words::Word;
use crate::layout::{TypeLayout, Valid};

/// Which header a reference means, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    /// This one.
    One(HeaderId),
    /// The element of a stack with an index that is computed: 0 and not inside if it is beyond the end.
    Element { stack: StackId, index: Value, inside: Value },
    /// None: a known index beyond the end of a stack of this type.
    Nowhere(HeaderId),
}

impl Emit<'_, '_> {
    pub(super) fn which(&mut self, header: &HeaderRef) -> Which {
        let (stack, index) = match header {
            HeaderRef::Header(header) => return Which::One(*header),
            HeaderRef::Element(stack, index) => (*stack, index),
        };
        let (first, size) = (self.program.stacks[stack].first, self.program.stacks[stack].size);
        if let Expr::Const(index) = &**index {
            return match index.to_u64().filter(|index| *index < u64::from(size)) {
                Some(index) => Which::One(HeaderId::from_u32(first.as_u32() + index as u32)),
                None => Which::Nowhere(first),
            };
        }
        let index = self.expr(index);
        let index = self.index(&index);
        let inside = self.w_cmp(IntCC::UnsignedLessThan, index, Word::Known(u64::from(size)));
        let index = self.w_choose(inside, index, Word::Known(0));
        Which::Element { stack, index: self.value(index), inside: self.value(inside) }
    }

    /// A header of the same type.
    pub(super) fn sample(&self, which: Which) -> HeaderId {
        match which {
            Which::One(header) | Which::Nowhere(header) => header,
            Which::Element { stack, .. } => self.program.stacks[stack].first,
        }
    }

    pub(super) fn ty(&self, which: Which) -> &TypeLayout {
        self.layout.ty(self.program, self.sample(which))
    }

    fn zeros(&mut self) -> Value {
        let offset = self.number(u64::from(self.layout.zeros));
        self.b.ins().iadd(self.frame, offset)
    }

    fn sink(&mut self) -> Value {
        let offset = self.number(u64::from(self.layout.sink));
        self.b.ins().iadd(self.frame, offset)
    }

    /// The address of a frame word that belongs to an element: that of the first element and the index.
    fn element_word(&mut self, first: u32, index: Value) -> Value {
        let offset = self.w_shl(Word::Value(index), 3);
        let offset = self.w_add(offset, Word::Known(u64::from(first) * 8));
        let offset = self.value(offset);
        self.b.ins().iadd(self.frame, offset)
    }

    fn choose_value(&mut self, condition: Value, then: Value, otherwise: Value) -> Value {
        self.b.ins().select(condition, then, otherwise)
    }

    /// Where to read a header.
    pub(super) fn place_to_read(&mut self, which: Which) -> Value {
        match which {
            Which::One(header) => self.place(header),
            Which::Nowhere(_) => self.zeros(),
            Which::Element { stack, index, inside } => {
                let first = self.layout.header(self.program.stacks[stack].first).place;
                let at = self.element_word(first, index);
                let place = self.b.ins().load(types::I64, self.flags.frame, at, 0);
                let zeros = self.zeros();
                self.choose_value(inside, place, zeros)
            }
        }
    }

    /// Where to write a header.
    pub(super) fn place_to_write(&mut self, which: Which) -> Value {
        match which {
            Which::One(header) => self.place(header),
            Which::Nowhere(_) => self.sink(),
            Which::Element { stack, index, inside } => {
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
            Some(variable) => match self.known.places.get(&header).copied() {
                Some(Spot::Home) => self.home(header),
                Some(Spot::Packet(at)) => self.in_packet(Word::Known(at)),
                None => self.b.use_var(variable),
            },
            None => self.frame_load(self.layout.header(header).place),
        }
    }

    /// So many bytes behind the packet's first.
    fn in_packet(&mut self, at: Word) -> Value {
        let place = self.w_add(Word::Value(self.packet), at);
        self.value(place)
    }

    /// A header lies so many bytes behind the packet's first.
    pub(super) fn set_place_in_packet(&mut self, which: Which, at: Word) {
        let place = self.in_packet(at);
        self.set_place(which, place, at.known().map(Spot::Packet));
    }

    /// Whether a header is valid, if that is known.
    pub(super) fn knows_valid(&self, header: HeaderId) -> Option<bool> {
        match self.layout.header(header).valid {
            Valid::Bit { mask, bit } => self.known.bit(mask, bit),
            Valid::Word(_) => None,
        }
    }

    /// The home of a header to write to.
    pub(super) fn home_to_write(&mut self, which: Which) -> Value {
        match which {
            Which::One(header) => self.home(header),
            Which::Nowhere(_) => self.sink(),
            Which::Element { stack, index, inside } => {
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

    /// The address of an element's frame word, or of the sink.
    fn element_to_write(&mut self, first: u32, index: Value, inside: Value) -> Value {
        let at = self.element_word(first, index);
        let sink = self.sink();
        self.choose_value(inside, at, sink)
    }

    /// Says where a header lies, and where that is if it is known.
    pub(super) fn set_place(&mut self, which: Which, place: Value, spot: Option<Spot>) {
        self.sums_end(which);
        match which {
            Which::Nowhere(_) => {}
            Which::One(header) => match self.places.get(&header).copied() {
                Some(variable) => {
                    match spot {
                        Some(spot) => _ = self.known.places.insert(header, spot),
                        None => _ = self.known.places.remove(&header),
                    }
                    self.b.def_var(variable, place);
                }
                None => self.frame_store(self.layout.header(header).place, place),
            },
            Which::Element { stack, index, inside } => {
                let first = self.layout.header(self.program.stacks[stack].first).place;
                let at = self.element_to_write(first, index, inside);
                self.b.ins().store(self.flags.frame, place, at, 0);
            }
        }
    }

    /// Whether a header is valid, 0 or 1.
    pub(super) fn valid(&mut self, which: Which) -> Word {
        match which {
            Which::Nowhere(_) => Word::Known(0),
            Which::One(header) => match self.layout.header(header).valid {
                Valid::Bit { mask, bit } => {
                    if let Some(valid) = self.known.bit(mask, bit) {
                        return Word::Known(u64::from(valid));
                    }
                    let mask = self.mask(mask);
                    let bit = self.w_shr(mask, bit);
                    self.w_and(bit, Word::Known(1))
                }
                Valid::Word(at) => Word::Value(self.frame_load(at)),
            },
            Which::Element { stack, index, inside } => {
                let Valid::Word(first) = self.layout.header(self.program.stacks[stack].first).valid else {
                    unreachable!("stacks with computed indices have words")
                };
                let at = self.element_word(first, index);
                let valid = self.b.ins().load(types::I64, self.flags.frame, at, 0);
                Word::Value(self.b.ins().band(valid, inside))
            }
        }
    }

    /// Whether a header is valid, 0 or anything else.
    pub(super) fn is_valid(&mut self, which: Which) -> Word {
        match which {
            Which::One(header) => match self.layout.header(header).valid {
                Valid::Bit { mask, bit } => {
                    if let Some(valid) = self.known.bit(mask, bit) {
                        return Word::Known(u64::from(valid));
                    }
                    let mask = self.mask(mask);
                    self.w_and(mask, Word::Known(1 << bit))
                }
                Valid::Word(_) => self.valid(which),
            },
            which => self.valid(which),
        }
    }

    pub(super) fn set_valid(&mut self, which: Which, valid: Word) {
        match which {
            Which::Nowhere(_) => {}
            Which::One(header) => match self.layout.header(header).valid {
                Valid::Bit { mask, bit } => self.set_bit(mask, bit, valid),
                Valid::Word(at) => {
                    let valid = self.value(valid);
                    self.frame_store(at, valid);
                }
            },
            Which::Element { stack, index, inside } => {
                let Valid::Word(first) = self.layout.header(self.program.stacks[stack].first).valid else {
                    unreachable!("stacks with computed indices have words")
                };
                let at = self.element_to_write(first, index, inside);
                let valid = self.value(valid);
                self.b.ins().store(self.flags.frame, valid, at, 0);
            }
        }
    }

    /// The width of a header's variable field in bits; 0 for types without one.
    pub(super) fn varbit_width(&mut self, which: Which) -> Word {
        match which {
            Which::Nowhere(_) => Word::Known(0),
            Which::One(header) => match (self.layout.header(header).width, self.widths.get(&header).copied()) {
                (None, _) => Word::Known(0),
                (Some(_), Some(variable)) => Word::Value(self.b.use_var(variable)),
                (Some(at), None) => Word::Value(self.frame_load(at)),
            },
            Which::Element { stack, index, inside } => {
                let Some(first) = self.layout.header(self.program.stacks[stack].first).width else {
                    return Word::Known(0);
                };
                let at = self.element_word(first, index);
                let width = self.b.ins().load(types::I64, self.flags.frame, at, 0);
                self.w_choose(Word::Value(inside), Word::Value(width), Word::Known(0))
            }
        }
    }

    pub(super) fn set_varbit_width(&mut self, which: Which, width: Word) {
        match which {
            Which::Nowhere(_) => {}
            Which::One(header) => {
                let Some(at) = self.layout.header(header).width else { return };
                let width = self.value(width);
                match self.widths.get(&header).copied() {
                    Some(variable) => self.b.def_var(variable, width),
                    None => self.frame_store(at, width),
                }
            }
            Which::Element { stack, index, inside } => {
                let Some(first) = self.layout.header(self.program.stacks[stack].first).width else { return };
                let at = self.element_to_write(first, index, inside);
                let width = self.value(width);
                self.b.ins().store(self.flags.frame, width, at, 0);
            }
        }
    }

    /// Bit offset and width of a fixed field, and the bytes of its header.
    fn field_at(&self, which: Which, field: u32) -> (u32, u32, u32) {
        let ty = self.ty(which);
        let width = self.program.layout(self.sample(which)).fields[field as usize].width;
        (ty.offsets[field as usize], width, ty.fixed_bytes)
    }

    pub(super) fn read_field(&mut self, header: &HeaderRef, field: u32) -> Num {
        let which = self.which(header);
        let (bit, width, bytes) = self.field_at(which, field);
        if let Which::Nowhere(_) = which {
            return Num::number(0, width);
        }
        let place = self.place_to_read(which);
        self.load_field(place, bit, width, bytes)
    }

    pub(super) fn write_field(&mut self, header: &HeaderRef, field: u32, num: &Num) {
        let which = self.which(header);
        if let Which::Nowhere(_) = which {
            return;
        }
        if let Which::One(header) = which {
            self.sums_follow(header, field, num);
        }
        let (bit, _, bytes) = self.field_at(which, field);
        let place = self.place_to_write(which);
        self.store_field(place, bit, num, bytes);
    }

    pub(super) fn copy_header(&mut self, to: &HeaderRef, from: &HeaderRef) {
        let (to, from) = (self.which(to), self.which(from));
        self.sums_end(to);
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

    /// Makes a header lie in its home, with the fixed fields from one place and a variable field from another.
    fn bring_home(&mut self, to: Which, fixed_from: Value, varbit_from: Value, width: Word) {
        let home = self.home_to_write(to);
        let fixed = self.number(u64::from(self.ty(to).fixed_bytes));
        let bits = self.w_add(width, Word::Known(7));
        let bytes = self.w_shr(bits, 3);
        let bytes = self.value(bytes);
        self.call("set_varbit", &[home, fixed_from, fixed, varbit_from, bytes]);
        self.set_place(to, home, Some(Spot::Home));
        self.set_varbit_width(to, width);
    }

    pub(super) fn copy_varbit(&mut self, to: &HeaderRef, from: &HeaderRef) {
        let (to, from) = (self.which(to), self.which(from));
        let width = self.varbit_width(from);
        let varbit = self.varbit_place(from);
        let place = self.place_to_write(to);
        self.bring_home(to, place, varbit, width);
    }

    /// Where a header's variable field lies.
    pub(super) fn varbit_place(&mut self, which: Which) -> Value {
        let place = self.place_to_read(which);
        let behind = self.number(u64::from(self.ty(which).fixed_bytes));
        self.b.ins().iadd(place, behind)
    }

    /// Keeps in the frame how many bytes the valid headers have.
    pub(super) fn measure(&mut self) {
        let mut bits = Word::Known(0);
        let headers: Vec<HeaderId> = self.state.headers.iter().copied().collect();
        for header in headers {
            if self.program.headers[header].local {
                continue;
            }
            let which = Which::One(header);
            let valid = self.valid(which);
            let fixed = Word::Known(u64::from(self.ty(which).fixed_bits));
            let width = self.varbit_width(which);
            let all = self.w_add(fixed, width);
            let counted = self.w_choose(valid, all, Word::Known(0));
            bits = self.w_add(bits, counted);
        }
        let bytes = self.w_shr(bits, 3);
        let bytes = self.value(bytes);
        self.frame_store(crate::layout::word::MEASURED as u32, bytes);
    }
}
