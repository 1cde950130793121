//! Expressions that nest too deeply are taken apart.
//!
//! ```text
//! x = ((((a + 1) ^ b) + c) ^ d) ...        $part = ((a + 1) ^ b) + c
//!                                          x = ($part ^ d) ...
//! ```

use cranelift_entity::PrimaryMap;
use ir::{Expr, HeaderRef, Instr, LValue, LocId, Op, Program, Slot, SlotId, SlotKind};

use super::visit::{Part, op_parts, sub_exprs, terminator_parts};

/// How deep an expression may be; well below what executors accept.
const LIMIT: usize = 64;

/// Takes deep expressions apart.
pub(super) fn limit(program: &mut Program) {
    let mut bodies = std::mem::take(&mut program.bodies);
    for block in bodies.values_mut().flat_map(|body| body.blocks.values_mut()) {
        let mut out = Vec::with_capacity(block.instrs.len());
        for mut instr in std::mem::take(&mut block.instrs) {
            op_parts(&mut instr.op, &mut |part| flatten(program, part, &mut out, instr.loc));
            out.push(instr);
        }
        let loc = block.loc;
        terminator_parts(&mut block.terminator, &mut |part| flatten(program, part, &mut out, loc));
        block.instrs = out;
    }
    program.bodies = bodies;
}

fn flatten(program: &mut Program, part: Part<'_>, out: &mut Vec<Instr>, loc: LocId) {
    match part {
        Part::Expr(e) => {
            shorten(program, e, out, loc);
        }
        Part::LValue(LValue::Field(HeaderRef::Element(_, index), _)) | Part::Header(HeaderRef::Element(_, index)) => {
            shorten(program, index, out, loc);
        }
        Part::LValue(_) | Part::Header(_) | Part::Result(_) => {}
    }
}

/// The depth that is left.
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
