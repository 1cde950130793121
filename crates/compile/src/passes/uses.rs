//! What instructions read and write.

use ir::{Data, Expr, HeaderId, HeaderRef, Match, Op, Place, Program, Request, SlotId, Terminator};

/// A use of storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Read(SlotId),
    Write(SlotId),
    /// A header is used in any way.
    Header(HeaderId),
}

/// Visits the uses of storage in one piece of code.
pub(super) struct Uses<'p, 'v> {
    pub(super) program: &'p Program,
    pub(super) visit: &'v mut dyn FnMut(Use),
}

impl Uses<'_, '_> {
    fn header(&mut self, header: &HeaderRef) {
        match header {
            HeaderRef::Header(header) => (self.visit)(Use::Header(*header)),
            HeaderRef::Element(stack, index) => {
                let stack = &self.program.stacks[*stack];
                for i in 0..stack.size {
                    (self.visit)(Use::Header(HeaderId::from_u32(stack.first.as_u32() + i)));
                }
                self.expr(index);
            }
        }
    }

    pub(super) fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Const(_) | Expr::PacketLength => {}
            Expr::Slot(slot) => (self.visit)(Use::Read(*slot)),
            Expr::Field(header, _) | Expr::Valid(header) | Expr::VarbitWidth(header, _) => self.header(header),
            Expr::VarbitEq(pair) => {
                self.header(&pair.0);
                self.header(&pair.2);
            }
            Expr::Unary(_, a) | Expr::Slice(a, _, _) | Expr::ZeroExtend(a, _) | Expr::SignExtend(a, _) => self.expr(a),
            Expr::Binary(_, a, b) | Expr::Concat(a, b) => {
                self.expr(a);
                self.expr(b);
            }
            Expr::Choose(a, b, c) => {
                self.expr(a);
                self.expr(b);
                self.expr(c);
            }
        }
    }

    fn place(&mut self, place: &Place) {
        match place {
            Place::Slot(slot) => (self.visit)(Use::Write(*slot)),
            Place::Field(header, _) => self.header(header),
        }
    }

    pub(super) fn op(&mut self, op: &Op) {
        match op {
            Op::Assign(place, value) => {
                self.place(place);
                self.expr(value);
            }
            Op::CopyHeader(a, b) | Op::CopyVarbit(a, _, b, _) => {
                self.header(a);
                self.header(b);
            }
            Op::SetValid(header) | Op::SetInvalid(header) | Op::Emit(header) => self.header(header),
            Op::Extract(header, width) => {
                self.header(header);
                width.iter().for_each(|width| self.expr(width));
            }
            Op::Lookahead { dst, .. } | Op::DirectMeterRead(_, dst) => self.place(dst),
            Op::Advance(e) | Op::Count(_, e) | Op::Assert(e) => self.expr(e),
            Op::Verify(a, b) | Op::RegisterWrite(_, a, b) => {
                self.expr(a);
                self.expr(b);
            }
            Op::Apply { hit, action, table: _ } => {
                hit.iter().chain(action).for_each(|slot| (self.visit)(Use::Write(*slot)));
            }
            Op::RegisterRead(place, _, e) | Op::MeterExecute(_, e, place) => {
                self.place(place);
                self.expr(e);
            }
            Op::Compute(place, _, data) => {
                self.place(place);
                for data in data {
                    match data {
                        Data::Value(e) => self.expr(e),
                        Data::Varbit(header, _) => self.header(header),
                        Data::Payload => {}
                    }
                }
            }
            Op::Random(place, a, b) => {
                self.place(place);
                self.expr(a);
                self.expr(b);
            }
            Op::Request(request) => match request {
                Request::Clone { session, .. } => self.expr(session),
                Request::Resubmit(_) | Request::Recirculate(_) => {}
                Request::Truncate(e) => self.expr(e),
                Request::Digest(_, values) => values.iter().for_each(|e| self.expr(e)),
            },
            Op::Log(_, values) => values.iter().for_each(|e| self.expr(e)),
        }
    }

    pub(super) fn terminator(&mut self, terminator: &Terminator) {
        match terminator {
            Terminator::Branch { condition, .. } => self.expr(condition),
            Terminator::Switch { subject, .. } => self.expr(subject),
            Terminator::Select { keys, cases } => {
                keys.iter().for_each(|key| self.expr(key));
                for m in cases.iter().flat_map(|case| &case.matches) {
                    match m {
                        Match::Any | Match::ValueSet(_) => {}
                        Match::Value(a) => self.expr(a),
                        Match::Mask(a, b) | Match::Range(a, b) | Match::RangeSigned(a, b) => {
                            self.expr(a);
                            self.expr(b);
                        }
                    }
                }
            }
            Terminator::Goto(_) | Terminator::Return | Terminator::Reject | Terminator::Exit => {}
        }
    }

    pub(super) fn body(&mut self, body: &ir::Body) {
        for block in body.blocks.values() {
            block.instrs.iter().for_each(|instr| self.op(&instr.op));
            self.terminator(&block.terminator);
        }
    }
}
