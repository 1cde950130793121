//! Emits fixed-size headers directly before the payload.
//!
//! Usually they are in place already. Where some were added, removed or moved, all of them are loaded before the first
//! is stored, so overlaps do not matter.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Type, Value, types};
use ir::{BodyId, HeaderId, HeaderRef, Op};

use super::Emit;
use super::facts::Spot;
use super::header::ResolvedHeader;
use super::words::Word;

/// Maximum number of header bytes held in registers at a time.
const MAX_BYTES: u32 = 192;

/// Splits a number of bytes into loads: offsets and types. The last one may overlap its predecessor.
fn pieces(bytes: u32) -> Vec<(u32, Type)> {
    let (size, ty) = match bytes {
        16.. => (16, types::I8X16),
        8.. => (8, types::I64),
        4.. => (4, types::I32),
        2.. => (2, types::I16),
        _ => (1, types::I8),
    };
    let whole = (0..bytes / size).map(|piece| piece * size);
    let last = (!bytes.is_multiple_of(size)).then_some(bytes.saturating_sub(size));
    whole.chain(last).map(|offset| (offset, ty)).collect()
}

impl Emit<'_, '_> {
    /// Returns the headers that a deparser emits, if it does nothing else, each has a fixed size and a variable for the
    /// address of its bytes, together they have at most [`MAX_BYTES`], and the code has no fuel limit.
    pub(super) fn plain_emissions(&self, id: BodyId) -> Option<Vec<HeaderId>> {
        let [block] = self.program.bodies[id].blocks.values().as_slice() else { return None };
        let mut headers = Vec::new();
        let mut bytes = 0;
        for instr in &block.instrs {
            let Op::Emit(HeaderRef::Header(header)) = &instr.op else { return None };
            let ty = self.layout.ty(self.program, *header);
            if ty.varbit_max.is_some() || !self.places.contains_key(header) {
                return None;
            }
            bytes += ty.fixed_bytes;
            headers.push(*header);
        }
        (bytes <= MAX_BYTES && self.fuel.is_none()).then_some(headers)
    }

    fn size(&self, header: HeaderId) -> u32 {
        self.layout.ty(self.program, header).fixed_bytes
    }

    /// Returns the address after a header that begins at an address.
    fn address_after(&mut self, at: Value, header: HeaderId) -> Value {
        let bytes = i64::from(self.size(header));
        self.b.ins().iadd_imm_s(at, bytes)
    }

    /// Branches to a new block if a header is valid, and switches to it. Returns the block where both paths join.
    fn if_valid(&mut self, header: HeaderId) -> Block {
        let (valid_block, join_block) = (self.b.create_block(), self.b.create_block());
        let valid = self.is_valid(ResolvedHeader::One(header));
        self.branch(valid, valid_block, join_block);
        self.b.switch_to_block(valid_block);
        join_block
    }

    fn jump_to_join(&mut self, join_block: Block) {
        self.b.ins().jump(join_block, &[]);
        self.b.switch_to_block(join_block);
    }

    /// Returns the outgoing headers and the position of each, if all of them are known at compile time.
    fn static_front(&self, headers: &[HeaderId]) -> Option<(Vec<(HeaderId, Spot)>, u64)> {
        let mut outgoing = Vec::new();
        for header in headers {
            if self.knows_valid(*header)? {
                outgoing.push((*header, *self.facts.places.get(header)?));
            }
        }
        Some((outgoing, self.facts.cursor?))
    }

    pub(super) fn put_in_front(&mut self, headers: &[HeaderId]) {
        if let Some((outgoing, cursor)) = self.static_front(headers) {
            return self.put_static_in_front(&outgoing, cursor);
        }
        let payload = self.payload();
        // From last to first, each header has to end where the next begins.
        let begin = self.b.declare_var(types::I64);
        self.b.def_var(begin, payload);
        let (must_move, done) = (self.b.create_block(), self.b.create_block());
        for header in headers.iter().rev() {
            let join_block = self.if_valid(*header);
            let place = self.place_to_read(ResolvedHeader::One(*header));
            let end = self.address_after(place, *header);
            let next = self.b.use_var(begin);
            let touches = self.b.ins().icmp(IntCC::Equal, end, next);
            let in_place = self.b.create_block();
            self.b.ins().brif(touches, in_place, &[], must_move, &[]);
            self.b.switch_to_block(in_place);
            self.b.def_var(begin, place);
            self.jump_to_join(join_block);
        }
        let begin = self.b.use_var(begin);
        self.set_out(begin, true);
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(must_move);
        self.move_to_front(headers, payload);
        self.jump_to_join(done);
    }

    /// Emits headers whose positions are all known. Those directly before the payload stay where they are.
    fn put_static_in_front(&mut self, outgoing: &[(HeaderId, Spot)], cursor: u64) {
        let (mut begin, mut moves) = (cursor, outgoing);
        while let [before @ .., (header, Spot::Packet(at))] = moves
            && at + u64::from(self.size(*header)) == begin
        {
            (begin, moves) = (*at, before);
        }
        let stay = self.w_add(Word::Value(self.packet), Word::Const(begin));
        let stay = self.value(stay);
        if moves.is_empty() {
            return self.set_out(stay, true);
        }
        let total: u32 = moves.iter().map(|(header, _)| self.size(*header)).sum();
        let buffer = self.buffer();
        let (fits, no_headroom) = (self.b.create_block(), self.b.create_block());
        let headroom = self.b.ins().isub(stay, buffer);
        let has_headroom =
            self.w_cmp(IntCC::UnsignedLessThanOrEqual, Word::Const(u64::from(total)), Word::Value(headroom));
        self.branch(has_headroom, fits, no_headroom);
        let all: Vec<HeaderId> = outgoing.iter().map(|(header, _)| *header).collect();
        self.cold_block(no_headroom, |emit| {
            let payload = emit.payload();
            emit.copy_to_new_buffer(&all, payload);
        });
        self.b.switch_to_block(fits);
        let mut held: Vec<(u32, Value)> = Vec::new();
        let mut before = 0;
        for (header, _) in moves {
            let place = self.place_to_read(ResolvedHeader::One(*header));
            for (at, ty) in pieces(self.size(*header)) {
                held.push((before + at, self.b.ins().load(ty, self.flags.packet, place, at as i32)));
            }
            before += self.size(*header);
        }
        for (at, piece) in held {
            self.b.ins().store(self.flags.packet, piece, stay, at as i32 - total as i32);
        }
        let first = self.b.ins().iadd_imm_s(stay, -i64::from(total));
        self.set_out(first, true);
    }

    fn move_to_front(&mut self, headers: &[HeaderId], payload: Value) {
        let (total, zero) = (self.b.declare_var(types::I64), self.number(0));
        self.b.def_var(total, zero);
        for header in headers {
            let join_block = self.if_valid(*header);
            let before = self.b.use_var(total);
            let total_with_header = self.address_after(before, *header);
            self.b.def_var(total, total_with_header);
            self.jump_to_join(join_block);
        }
        let total = self.b.use_var(total);
        let buffer = self.buffer();
        let (fits, no_headroom) = (self.b.create_block(), self.b.create_block());
        let headroom = self.b.ins().isub(payload, buffer);
        let has_headroom = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, total, headroom);
        self.b.ins().brif(has_headroom, fits, &[], no_headroom, &[]);
        self.cold_block(no_headroom, |emit| emit.copy_to_new_buffer(headers, payload));
        self.b.switch_to_block(fits);
        // Loading from an invalid header's memory is safe, so only the stores test validity.
        let mut held: Vec<Vec<(u32, Value)>> = Vec::new();
        for header in headers {
            let place = self.place_to_read(ResolvedHeader::One(*header));
            let pieces = pieces(self.size(*header)).into_iter();
            let loaded = pieces.map(|(at, ty)| (at, self.b.ins().load(ty, self.flags.packet, place, at as i32)));
            held.push(loaded.collect());
        }
        let begin = self.b.ins().isub(payload, total);
        let to = self.b.declare_var(types::I64);
        self.b.def_var(to, begin);
        for (header, pieces) in headers.iter().zip(held) {
            let join_block = self.if_valid(*header);
            let place = self.b.use_var(to);
            for (at, piece) in pieces {
                self.b.ins().store(self.flags.packet, piece, place, at as i32);
            }
            let next = self.address_after(place, *header);
            self.b.def_var(to, next);
            self.jump_to_join(join_block);
        }
        self.set_out(begin, true);
    }

    /// Copies headers and payload to another buffer, for lack of headroom, and continues after the deparser.
    fn copy_to_new_buffer(&mut self, headers: &[HeaderId], payload: Value) {
        let list = self.scratch_words(headers.len() * 2);
        let count = self.b.declare_var(types::I64);
        let zero = self.number(0);
        self.b.def_var(count, zero);
        for header in headers {
            let join_block = self.if_valid(*header);
            let before = self.b.use_var(count);
            let offset = self.w_shl(Word::Value(before), 4);
            let offset = self.value(offset);
            let at = self.b.ins().iadd(list, offset);
            let place = self.place_to_read(ResolvedHeader::One(*header));
            let end = self.address_after(place, *header);
            self.b.ins().store(self.flags.stack, place, at, 0);
            self.b.ins().store(self.flags.stack, end, at, 8);
            let next = self.b.ins().iadd_imm_s(before, 1);
            self.b.def_var(count, next);
            self.jump_to_join(join_block);
        }
        let count = self.b.use_var(count);
        let out = self.assemble(list, count, payload);
        self.set_out(out, false);
        let step = self.step;
        self.steps_from(step + 1);
        self.at_step(step);
    }
}
