//! Emits the code of a deparser, which assembles the outgoing packet.
//!
//! Headers that were extracted one after the other and are emitted in the same order are in front of the payload
//! already: nothing is copied. A deparser that emits one header after the other, all of known sizes, is handled as a
//! whole at its end: see [`super::front`]. In other deparsers, the code extends the current span of bytes with each
//! emitted header, and appends interrupted spans to a list. A runtime call moves bytes only if this list is not empty
//! at the end or the last span does not touch the payload. Where spans do not apply (headers whose size is not a whole
//! number of bytes, loops, bodies that change headers between emissions), each emission appends to a bit string
//! instead.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, StackSlot, Value, types};
use cranelift_frontend::Variable;
use ir::{BodyId, HeaderRef, LocId, Op};

use super::Emit;
use super::words::Word;
use crate::Step;
use crate::layout::word;
use crate::scout::Row;

/// Spans of bytes of a body that emits headers.
#[derive(Clone, Copy)]
pub(super) struct EmittedSpans {
    /// Stack memory for one span more than there are emissions: two words each, first address and end. The first one
    /// is in front of the list: nothing touches it.
    list: StackSlot,
    /// Address of the last span, whose end is in memory only once there is another.
    last: Variable,
    /// End of the last span.
    end: Variable,
}

/// Size of a span in bytes.
const SPAN: i64 = 16;

impl Emit<'_, '_> {
    pub(super) fn begin_emitting(&mut self, id: BodyId) {
        if self.program_facts.deparser != Some(id) || self.deferred_headers.is_some() {
            return;
        }
        self.deferred_headers = self.plain_emissions(id);
        if self.deferred_headers.is_some() {
            return;
        }
        let spans = match self.spans {
            Some(spans) => spans,
            None => self.new_spans(id),
        };
        let list = self.list(spans);
        self.b.def_var(spans.last, list);
        let nowhere = self.number(0);
        self.b.def_var(spans.end, nowhere);
        self.spans = Some(spans);
    }

    fn new_spans(&mut self, id: BodyId) -> EmittedSpans {
        let body = &self.program.bodies[id];
        let instrs = body.blocks.values().flat_map(|block| &block.instrs);
        let emissions = instrs.filter(|instr| matches!(instr.op, Op::Emit(_))).count();
        let list = self.stack_slot((emissions + 1) * 2);
        let mut word = || self.b.declare_var(types::I64);
        EmittedSpans { list, last: word(), end: word() }
    }

    fn list(&mut self, spans: EmittedSpans) -> Value {
        self.b.ins().stack_addr(types::I64, spans.list, 0)
    }

    pub(super) fn emit(&mut self, header: &HeaderRef, loc: LocId) {
        if self.deferred_headers.is_some() {
            return;
        }
        let resolved = self.resolve(header);
        let valid = self.valid(resolved);
        let (valid_block, join_block) = (self.b.create_block(), self.b.create_block());
        self.branch(valid, valid_block, join_block);
        self.b.switch_to_block(valid_block);
        let place = self.place_to_read(resolved);
        let width = self.varbit_width(resolved);
        let fixed = self.ty(resolved).fixed_bits;
        match self.spans {
            Some(spans) => {
                let varbit = self.w_shr(width, 3);
                let bytes = self.w_add(Word::Const(u64::from(fixed / 8)), varbit);
                self.extend_span(spans, place, bytes);
            }
            None => {
                if self.fuel.is_some() {
                    let bits = self.w_add(Word::Const(u64::from(fixed)), width);
                    // One unit of fuel per 1024 bits.
                    let blocks = self.w_shr(bits, 10);
                    self.spend_word(blocks, loc);
                }
                let representative = self.number(u64::from(self.representative(resolved).as_u32()));
                let width = self.value(width);
                self.call("emit", &[self.frame, representative, place, width]);
            }
        }
        self.b.ins().jump(join_block, &[]);
        self.b.switch_to_block(join_block);
    }

    /// Adds bytes to the last span if they touch it, else begins another one. There are no branches: a deparser may
    /// emit hundreds of headers.
    fn extend_span(&mut self, spans: EmittedSpans, place: Value, bytes: Word) {
        let (last, end) = (self.b.use_var(spans.last), self.b.use_var(spans.end));
        let touches = self.b.ins().icmp(IntCC::Equal, place, end);
        self.b.ins().store(self.flags.stack, end, last, 8);
        let next = self.b.ins().iadd_imm_s(last, SPAN);
        // The first address of the next span is written in either case, and again if that span is begun later.
        self.b.ins().store(self.flags.stack, place, next, 0);
        let last = self.b.ins().select(touches, last, next);
        self.b.def_var(spans.last, last);
        let end = self.w_add(Word::Value(place), bytes);
        let end = self.value(end);
        self.b.def_var(spans.end, end);
    }

    /// Finishes the outgoing packet if `step` runs the deparser; code continues in the current block.
    pub(super) fn end_emitting(&mut self, step: usize) {
        if !matches!(self.steps[step], Step::Run(body) if self.program_facts.deparser == Some(body))
            || self.scouting.is_some()
        {
            return;
        }
        if let Some(headers) = self.deferred_headers.clone() {
            return self.put_in_front(&headers);
        }
        let Some(spans) = self.spans else { return };
        let payload = self.payload();
        let list = self.list(spans);
        let first = self.b.ins().iadd_imm_s(list, SPAN);
        let (last, end) = (self.b.use_var(spans.last), self.b.use_var(spans.end));
        let touches = self.w_cmp(IntCC::Equal, Word::Value(end), Word::Value(payload));
        let alone = self.w_cmp(IntCC::Equal, Word::Value(last), Word::Value(first));
        let in_place = self.w_and(touches, alone);
        let (in_place_block, move_block, join_block) =
            (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.branch(in_place, in_place_block, move_block);
        self.b.switch_to_block(in_place_block);
        let begin = self.b.ins().load(types::I64, self.flags.stack, first, 0);
        self.set_out(begin, false);
        self.b.ins().jump(join_block, &[]);
        self.b.switch_to_block(move_block);
        self.b.ins().store(self.flags.stack, end, last, 8);
        let bytes = self.b.ins().isub(last, list);
        let count = self.w_shr(Word::Value(bytes), SPAN.trailing_zeros());
        let count = self.value(count);
        let out = self.assemble(first, count, payload);
        self.set_out(out, false);
        self.b.ins().jump(join_block, &[]);
        self.b.switch_to_block(join_block);
    }

    /// Returns the address of the payload.
    pub(super) fn payload(&mut self) -> Value {
        let cursor = self.cursor();
        let payload = self.w_add(Word::Value(self.packet), cursor);
        self.value(payload)
    }

    /// Moves the spans of a list directly before the payload. Returns the location of the outgoing packet, as in
    /// [`word::OUT`].
    pub(super) fn assemble(&mut self, list: Value, count: Value, payload: Value) -> Value {
        let buffer = self.buffer();
        self.call_cold("assemble", &[self.frame, list, count, payload, buffer])
    }

    /// Returns the address of the packet's buffer.
    pub(super) fn buffer(&mut self) -> Value {
        match self.lane {
            Some(lane) => self.row_load(lane, offset_of!(Row, buffer)),
            None => self.frame_load(word::BUFFER as u32),
        }
    }

    /// Sets the location of the outgoing packet, as in [`word::OUT`], and whether it is known to lie in the buffer.
    pub(super) fn set_out(&mut self, out: Value, is_placed: bool) {
        self.facts.is_placed = is_placed;
        match self.lane {
            Some(lane) => self.b.def_var(lane.out, out),
            None => self.frame_store(word::OUT as u32, out),
        }
    }
}
