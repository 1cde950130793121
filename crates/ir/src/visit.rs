//! Visits the operands of instructions and terminators, to read or change them.

use crate::{BlockId, Expr, HashInput, HeaderRef, LValue, Match, Op, Request, SlotId, Terminator};

/// An operand of an instruction or terminator.
pub enum Operand<'a> {
    /// A whole expression.
    Expr(&'a mut Expr),
    /// The destination of a value.
    LValue(&'a mut LValue),
    /// A header operand.
    Header(&'a mut HeaderRef),
    /// A slot that a table writes.
    Result(&'a mut SlotId),
}

/// Visits the operands of an instruction.
pub fn op_operands(op: &mut Op, visit: &mut dyn FnMut(Operand<'_>)) {
    match op {
        Op::Assign(place, value) => {
            visit(Operand::LValue(place));
            visit(Operand::Expr(value));
        }
        Op::CopyHeader(a, b) | Op::CopyVarbit(a, _, b, _) => {
            visit(Operand::Header(a));
            visit(Operand::Header(b));
        }
        Op::SetValid(header) | Op::SetInvalid(header) | Op::Emit(header) => visit(Operand::Header(header)),
        Op::Extract(header, width) => {
            visit(Operand::Header(header));
            width.iter_mut().for_each(|width| visit(Operand::Expr(width)));
        }
        Op::Lookahead { dst, .. } | Op::DirectMeterRead(_, dst) => visit(Operand::LValue(dst)),
        Op::Advance(e) | Op::Count(_, e) | Op::Assert(e) => visit(Operand::Expr(e)),
        Op::Verify(a, b) | Op::RegisterWrite(_, a, b) => {
            visit(Operand::Expr(a));
            visit(Operand::Expr(b));
        }
        Op::Apply { hit, action, table: _ } => {
            hit.iter_mut().chain(action).for_each(|slot| visit(Operand::Result(slot)));
        }
        Op::RegisterRead(place, _, e) | Op::MeterExecute(_, e, place) => {
            visit(Operand::LValue(place));
            visit(Operand::Expr(e));
        }
        Op::Compute(place, _, data) => {
            visit(Operand::LValue(place));
            for data in data {
                match data {
                    HashInput::Value(e) => visit(Operand::Expr(e)),
                    HashInput::Varbit(header, _) => visit(Operand::Header(header)),
                    HashInput::Payload => {}
                }
            }
        }
        Op::Random(place, a, b) => {
            visit(Operand::LValue(place));
            visit(Operand::Expr(a));
            visit(Operand::Expr(b));
        }
        Op::Request(request) => match request {
            Request::Clone { session: e, .. } | Request::Truncate(e) => visit(Operand::Expr(e)),
            Request::Resubmit(_) | Request::Recirculate(_) => {}
            Request::Digest(_, values) => values.iter_mut().for_each(|e| visit(Operand::Expr(e))),
        },
        Op::BeginAtomic | Op::EndAtomic => {}
        Op::Log(_, values) => values.iter_mut().for_each(|e| visit(Operand::Expr(e))),
    }
}

/// Visits the operands of a terminator.
pub fn terminator_operands(terminator: &mut Terminator, visit: &mut dyn FnMut(Operand<'_>)) {
    match terminator {
        Terminator::Branch { condition: e, .. } | Terminator::Switch { subject: e, .. } => visit(Operand::Expr(e)),
        Terminator::Select { keys, cases } => {
            keys.iter_mut().for_each(|key| visit(Operand::Expr(key)));
            for m in cases.iter_mut().flat_map(|case| &mut case.matches) {
                match m {
                    Match::Any | Match::ValueSet(_) => {}
                    Match::Value(a) => visit(Operand::Expr(a)),
                    Match::Mask(a, b) | Match::Range(a, b) | Match::RangeSigned(a, b) => {
                        visit(Operand::Expr(a));
                        visit(Operand::Expr(b));
                    }
                }
            }
        }
        Terminator::Goto(_) | Terminator::Return | Terminator::Reject | Terminator::Exit => {}
    }
}

/// Visits the direct operands of an expression.
pub fn sub_exprs(expr: &mut Expr, visit: &mut dyn FnMut(&mut Expr)) {
    let mut header = |header: &mut HeaderRef| {
        if let HeaderRef::Element(_, index) = header {
            visit(index);
        }
    };
    match expr {
        Expr::Const(_) | Expr::PacketLength | Expr::Slot(_) => {}
        Expr::Field(h, _) | Expr::Valid(h) | Expr::VarbitWidth(h, _) => header(h),
        Expr::VarbitEq(pair) => {
            header(&mut pair.0);
            header(&mut pair.2);
        }
        Expr::Unary(_, a) | Expr::Slice(a, _, _) | Expr::ZeroExtend(a, _) | Expr::SignExtend(a, _) => visit(a),
        Expr::Binary(_, a, b) | Expr::Concat(a, b) => {
            visit(a);
            visit(b);
        }
        Expr::Choose(a, b, c) => {
            visit(a);
            visit(b);
            visit(c);
        }
    }
}

/// Visits the blocks to which a terminator may jump.
pub fn targets(terminator: &mut Terminator, visit: &mut dyn FnMut(&mut BlockId)) {
    match terminator {
        Terminator::Goto(to) => visit(to),
        Terminator::Branch { then, otherwise, .. } => {
            visit(then);
            visit(otherwise);
        }
        Terminator::Switch { cases, default, .. } => {
            cases.iter_mut().for_each(|(_, to)| visit(to));
            visit(default);
        }
        Terminator::Select { cases, .. } => cases.iter_mut().for_each(|case| visit(&mut case.target)),
        Terminator::Return | Terminator::Reject | Terminator::Exit => {}
    }
}
