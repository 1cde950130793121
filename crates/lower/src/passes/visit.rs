//! Visits the storage that bodies use.

use ir::visit::{Operand, op_operands, sub_exprs, terminator_operands};
use ir::{Body, Expr, HeaderId, HeaderRef, LValue, SlotId, StackId};

/// A use of storage.
pub(super) enum StorageUse<'a> {
    Read(&'a mut SlotId),
    Write(&'a mut SlotId),
    /// A header is used in any way.
    Header(&'a mut HeaderId),
    /// Any header of a stack may be used.
    Stack(StackId),
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
