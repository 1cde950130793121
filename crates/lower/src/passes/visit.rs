//! Visits the operands of instructions, to read or change them.

use cranelift_entity::PrimaryMap;
use ir::{Body, Expr, HashInput, HeaderId, HeaderRef, LValue, Match, Op, Request, SlotId, Stack, StackId, Terminator};

/// An operand of an instruction or terminator.
pub(super) enum Operand<'a> {
    /// A whole expression.
    Expr(&'a mut Expr),
    /// The destination of a value.
    LValue(&'a mut LValue),
    /// A header operand.
    Header(&'a mut HeaderRef),
    /// A slot that a table writes.
    Result(&'a mut SlotId),
}

/// A use of storage.
pub(super) enum StorageUse<'a> {
    Read(&'a mut SlotId),
    Write(&'a mut SlotId),
    /// A header is used in any way.
    Header(&'a mut HeaderId),
    /// Any header of a stack may be used.
    Stack(StackId),
}

/// Visits the operands of an instruction.
pub(super) fn op_operands(op: &mut Op, visit: &mut dyn FnMut(Operand<'_>)) {
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
pub(super) fn terminator_operands(terminator: &mut Terminator, visit: &mut dyn FnMut(Operand<'_>)) {
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
pub(super) fn sub_exprs(expr: &mut Expr, visit: &mut dyn FnMut(&mut Expr)) {
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

fn header_uses(header: &mut HeaderRef, visit: &mut dyn FnMut(StorageUse<'_>)) {
    match header {
        HeaderRef::Header(header) => visit(StorageUse::Header(header)),
        HeaderRef::Element(stack, index) => {
            visit(StorageUse::Stack(*stack));
            expr_uses(index, visit);
        }
    }
}

/// Visits the storage that an expression reads.
pub(super) fn expr_uses(expr: &mut Expr, visit: &mut dyn FnMut(StorageUse<'_>)) {
    match expr {
        Expr::Slot(slot) => visit(StorageUse::Read(slot)),
        Expr::Field(header, _) | Expr::Valid(header) | Expr::VarbitWidth(header, _) => header_uses(header, visit),
        Expr::VarbitEq(pair) => {
            header_uses(&mut pair.0, visit);
            header_uses(&mut pair.2, visit);
        }
        other => sub_exprs(other, &mut |e| expr_uses(e, visit)),
    }
}

fn operand_uses(part: Operand<'_>, visit: &mut dyn FnMut(StorageUse<'_>)) {
    match part {
        Operand::Expr(e) => expr_uses(e, visit),
        Operand::LValue(LValue::Slot(slot)) | Operand::Result(slot) => visit(StorageUse::Write(slot)),
        Operand::LValue(LValue::Field(header, _)) | Operand::Header(header) => header_uses(header, visit),
    }
}

/// Visits the storage that a body uses.
pub(super) fn body_uses(body: &mut Body, visit: &mut dyn FnMut(StorageUse<'_>)) {
    for block in body.blocks.values_mut() {
        for instr in &mut block.instrs {
            op_operands(&mut instr.op, &mut |part| operand_uses(part, visit));
        }
        terminator_operands(&mut block.terminator, &mut |part| operand_uses(part, visit));
    }
}

/// Returns the headers of a stack.
pub(super) fn elements(stacks: &PrimaryMap<StackId, Stack>, stack: StackId) -> impl Iterator<Item = HeaderId> {
    let stack = &stacks[stack];
    let first = stack.first.as_u32();
    (first..first + stack.size).map(HeaderId::from_u32)
}
