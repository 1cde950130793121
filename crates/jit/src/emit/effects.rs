//! Emits operations on arrays, meters, random numbers and requests.

use cranelift_codegen::ir::Value;
use ir::{CounterId, Expr, LValue, LocId, MeterId, RegisterId, Request};

use super::Emit;
use super::value::{Num, words_of};
use super::words::Word;
use crate::calls::deferred;

impl Emit<'_, '_> {
    fn index_of(&mut self, index: &Expr) -> Value {
        let num = self.expr(index);
        let index = self.index(&num);
        self.value(index)
    }

    /// Enters or leaves an atomic section, which one worker executes at a time.
    pub(super) fn atomic(&mut self, begins: bool) {
        let begins = self.number(u64::from(begins));
        self.call("atomic", &[self.frame, begins]);
    }

    pub(super) fn register_read(&mut self, place: &LValue, register: RegisterId, index: &Expr) {
        let width = self.program.registers[register].width;
        let index = self.index_of(index);
        if self.program.registers[register].is_resilient() {
            let num = self.row_read(register, index);
            return self.write(place, &num);
        }
        let out = self.scratch_words(words_of(width));
        let (register, bits) = (self.number(u64::from(register.as_u32())), self.number(u64::from(width)));
        self.call("register_read", &[self.frame, register, index, bits, out]);
        let num = self.unspill(out, width);
        self.write(place, &num);
    }

    pub(super) fn register_write(&mut self, register: RegisterId, index: &Expr, value: &Expr) {
        let width = self.program.registers[register].width;
        let index = self.index_of(index);
        let value = self.expr(value);
        if self.program.registers[register].is_resilient() {
            return self.row_write(register, index, &value);
        }
        let from = self.spill(&value);
        let (register, bits) = (self.number(u64::from(register.as_u32())), self.number(u64::from(width)));
        // In a program with rows, the pass may have to be undone.
        let name = if self.program_facts.has_rows { "row_write" } else { "register_write" };
        self.call(name, &[self.frame, register, index, bits, from]);
    }

    pub(super) fn count(&mut self, counter: CounterId, index: &Expr) {
        let index = self.index_of(index);
        let counter = self.number(u64::from(counter.as_u32()));
        self.call("count", &[self.frame, counter, index]);
    }

    fn write_colour(&mut self, place: &LValue, colour: Value) {
        let width = self.lvalue_width(place);
        let num = self.resize(&Num { width: 64, words: vec![Word::Value(colour)] }, width);
        self.write(place, &num);
    }

    pub(super) fn meter_execute(&mut self, meter: MeterId, index: &Expr, place: &LValue) {
        let index = self.index_of(index);
        let meter = self.number(u64::from(meter.as_u32()));
        let colour = self.call("meter", &[self.frame, meter, index]).expect("the function returns a word");
        self.write_colour(place, colour);
    }

    pub(super) fn direct_colour(&mut self, meter: MeterId, place: &LValue) {
        let meter = self.number(u64::from(meter.as_u32()));
        let colour = self.call("direct_colour", &[self.frame, meter]).expect("the function returns a word");
        self.write_colour(place, colour);
    }

    pub(super) fn random(&mut self, place: &LValue, low: &Expr, high: &Expr) {
        let width = self.lvalue_width(place);
        let (low, high) = (self.expr(low), self.expr(high));
        let (low, high, out) = (self.spill(&low), self.spill(&high), self.scratch_words(words_of(width)));
        let bits = self.number(u64::from(width));
        self.call("random", &[self.frame, low, high, bits, out]);
        let num = self.unspill(out, width);
        self.write(place, &num);
    }

    /// Returns the place of a request, as in [`deferred`]: digests and truncations do not stop a batch.
    fn request_place(&mut self, request: &Request, loc: LocId) -> Value {
        let place = u64::from(loc.as_u32());
        match (self.lane, request) {
            (Some(lane), Request::Digest(..) | Request::Truncate(_)) => {
                let number = self.lane_number(lane);
                let number = self.w_shl(Word::Value(number), deferred::PACKET);
                let fixed = place | (self.step as u64) << deferred::STEP | deferred::FLAG;
                let place = self.w_or(number, Word::Const(fixed));
                self.value(place)
            }
            _ => self.number(place),
        }
    }

    pub(super) fn request(&mut self, request: &Request, loc: LocId) {
        self.spend(1, loc);
        let place = self.request_place(request, loc);
        let list = |keep: &Option<u32>| keep.map_or(0, |keep| u64::from(keep) + 1);
        let (kind, value) = match request {
            Request::Clone { ingress, session, keep } => {
                let session = self.expr(session).low();
                let session = self.value(session);
                let (ingress, keep) = (self.number(u64::from(*ingress)), self.number(list(keep)));
                self.call("request_clone", &[self.frame, ingress, session, keep, place]);
                return;
            }
            Request::Digest(digest, values) => {
                let values: Vec<Num> = values.iter().map(|value| self.expr(value)).collect();
                let room = self.scratch_words(values.iter().map(|value| value.words.len()).sum());
                let mut at = 0;
                for value in &values {
                    self.put_words(value, room, at);
                    at += value.words.len();
                }
                let digest = self.number(u64::from(digest.as_u32()));
                self.call("request_digest", &[self.frame, digest, room, place]);
                return;
            }
            Request::Resubmit(keep) => (0, Word::Const(list(keep))),
            Request::Recirculate(keep) => (1, Word::Const(list(keep))),
            Request::Truncate(bytes) => (2, self.expr(bytes).low()),
        };
        let (kind, value) = (self.number(kind), self.value(value));
        self.call("request", &[self.frame, kind, value, place]);
    }
}
