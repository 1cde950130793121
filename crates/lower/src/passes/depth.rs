//! Splits deeply nested expressions.
//!
//! ```text
//! x = ((((a + 1) ^ b) + c) ^ d) ...        $part = ((a + 1) ^ b) + c
//!                                          x = ($part ^ d) ...
//! ```

use cranelift_entity::PrimaryMap;
use ir::{Expr, HeaderRef, Instr, LValue, LocId, Op, Program, Slot, SlotId, SlotKind};

use ir::visit::{Operand, op_operands, sub_exprs, terminator_operands};

/// Maximum depth of an expression; well below the limit of executors.
const LIMIT: usize = 64;

/// Splits deep expressions.
pub(super) fn limit(program: &mut Program) {
    let mut bodies = std::mem::take(&mut program.bodies);
    for block in bodies.values_mut().flat_map(|body| body.blocks.values_mut()) {
        let mut out = Vec::with_capacity(block.instrs.len());
        for mut instr in std::mem::take(&mut block.instrs) {
            op_operands(&mut instr.op, &mut |part| flatten(program, part, &mut out, instr.loc));
            out.push(instr);
        }
        let loc = block.loc;
        terminator_operands(&mut block.terminator, &mut |part| flatten(program, part, &mut out, loc));
        block.instrs = out;
    }
    program.bodies = bodies;
}

fn flatten(program: &mut Program, part: Operand<'_>, out: &mut Vec<Instr>, loc: LocId) {
    match part {
        Operand::Expr(e) => {
            shorten(program, e, out, loc);
        }
        Operand::LValue(LValue::Field(HeaderRef::Element(_, index), _))
        | Operand::Header(HeaderRef::Element(_, index)) => {
            shorten(program, index, out, loc);
        }
        Operand::LValue(_) | Operand::Header(_) | Operand::Result(_) => {}
    }
}

/// Shortens an expression and returns its remaining depth.
fn shorten(program: &mut Program, e: &mut Expr, out: &mut Vec<Instr>, loc: LocId) -> usize {
    let mut deepest = 0;
    sub_exprs(e, &mut |part| {
        let mut depth = shorten(program, part, out, loc);
        if depth >= LIMIT
            && let Some(width) = program.width(part)
        {
            let slot = new_slot(&mut program.slots, width);
            let value = std::mem::replace(part, Expr::Slot(slot));
            out.push(Instr { op: Op::Assign(LValue::Slot(slot), value), loc });
            depth = 1;
        }
        deepest = deepest.max(depth);
    });
    deepest + 1
}

fn new_slot(slots: &mut PrimaryMap<SlotId, Slot>, width: u32) -> SlotId {
    let name = format!("$part{}", slots.len());
    slots.push(Slot { name, width, kind: SlotKind::Local, signed: false })
}
