//! Walks over the IR to find uses of slots, headers and tables.

use std::collections::BTreeSet;

use ir::{
    Block, BlockId, Body, BodyId, Expr, HashInput, HeaderId, HeaderRef, LValue, Match, Op, Program, Request, SlotId,
    TableId, Terminator,
};

use crate::Step;
use crate::layout::TypeLayout;

/// One use of a slot, a header or a table in code.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use<'a> {
    /// A slot is read.
    Read(SlotId),
    /// A slot is written.
    Write(SlotId),
    /// A header's validity, fields or width are read.
    Header(&'a HeaderRef),
    /// A field of a header is written, or the whole header if `None`.
    HeaderWrite(&'a HeaderRef, Option<u32>),
    /// A header's validity is written.
    Validity(&'a HeaderRef),
    /// A header is extracted.
    Extract(&'a HeaderRef),
    /// A table is applied.
    Apply(TableId),
}

type Visit<'v, 'a> = &'v mut dyn FnMut(Use<'a>);

pub(crate) fn expr<'a>(expr_: &'a Expr, visit: Visit<'_, 'a>) {
    match expr_ {
        Expr::Const(_) | Expr::PacketLength => {}
        Expr::Slot(slot) => visit(Use::Read(*slot)),
        Expr::Field(header, _) | Expr::Valid(header) | Expr::VarbitWidth(header, _) => {
            index(header, visit);
            visit(Use::Header(header));
        }
        Expr::VarbitEq(both) => {
            for header in [&both.0, &both.2] {
                index(header, visit);
                visit(Use::Header(header));
            }
        }
        Expr::Unary(_, a) | Expr::Slice(a, ..) | Expr::ZeroExtend(a, _) | Expr::SignExtend(a, _) => expr(a, visit),
        Expr::Binary(_, a, b) | Expr::Concat(a, b) => {
            expr(a, visit);
            expr(b, visit);
        }
        Expr::Choose(a, b, c) => [a, b, c].into_iter().for_each(|part| expr(part, visit)),
    }
}

/// Adds the slots that an expression reads.
pub(crate) fn slots_of(value: &Expr, into: &mut BTreeSet<SlotId>) {
    expr(value, &mut |used| {
        if let Use::Read(slot) = used {
            into.insert(slot);
        }
    });
}

/// Adds the slots on which the choice of a block's successor depends.
pub(crate) fn branch_slots(end: &Terminator, into: &mut BTreeSet<SlotId>) {
    match end {
        Terminator::Branch { condition, .. } => slots_of(condition, into),
        Terminator::Switch { subject, .. } => slots_of(subject, into),
        Terminator::Select { keys, cases } => {
            keys.iter().for_each(|key| slots_of(key, into));
            for one in cases.iter().flat_map(|case| &case.matches) {
                if let Match::Value(value) = one {
                    slots_of(value, into);
                }
            }
        }
        Terminator::Goto(_) | Terminator::Return | Terminator::Reject | Terminator::Exit => {}
    }
}

/// Visits the index of a stack element.
fn index<'a>(header: &'a HeaderRef, visit: Visit<'_, 'a>) {
    if let HeaderRef::Element(_, at) = header {
        expr(at, visit);
    }
}

fn place<'a>(place: &'a LValue, visit: Visit<'_, 'a>) {
    match place {
        LValue::Slot(slot) => visit(Use::Write(*slot)),
        LValue::Field(header, field) => {
            index(header, visit);
            visit(Use::HeaderWrite(header, Some(*field)));
        }
    }
}

/// Visits every use in an operation, except in the actions of a table.
pub(crate) fn op<'a>(program: &'a Program, op_: &'a Op, visit: Visit<'_, 'a>) {
    match op_ {
        Op::Assign(to, value) => {
            expr(value, visit);
            place(to, visit);
        }
        Op::CopyHeader(to, from) => {
            index(to, visit);
            index(from, visit);
            visit(Use::Header(from));
            visit(Use::HeaderWrite(to, None));
            visit(Use::Validity(to));
        }
        Op::CopyVarbit(to, _, from, _) => {
            index(to, visit);
            index(from, visit);
            visit(Use::Header(from));
            visit(Use::HeaderWrite(to, None));
        }
        Op::SetValid(header) | Op::SetInvalid(header) => {
            index(header, visit);
            visit(Use::Validity(header));
        }
        Op::Extract(header, width) => {
            index(header, visit);
            width.iter().for_each(|width| expr(width, visit));
            visit(Use::Extract(header));
        }
        Op::Lookahead { dst, .. } => place(dst, visit),
        Op::Advance(bits) => expr(bits, visit),
        Op::Verify(condition, error) => {
            expr(condition, visit);
            expr(error, visit);
        }
        Op::Emit(header) => {
            index(header, visit);
            visit(Use::Header(header));
        }
        Op::Apply { table, hit, action } => {
            program.tables[*table].keys.iter().for_each(|key| expr(&key.expr, visit));
            visit(Use::Apply(*table));
            hit.iter().chain(action).for_each(|slot| visit(Use::Write(*slot)));
        }
        Op::RegisterRead(to, _, at) | Op::MeterExecute(_, at, to) => {
            expr(at, visit);
            place(to, visit);
        }
        Op::RegisterWrite(_, at, value) => {
            expr(at, visit);
            expr(value, visit);
        }
        Op::Count(_, at) => expr(at, visit),
        Op::DirectMeterRead(_, to) => place(to, visit),
        Op::Compute(to, _, data) => {
            for piece in data {
                match piece {
                    HashInput::Value(value) => expr(value, visit),
                    HashInput::Varbit(header, _) => {
                        index(header, visit);
                        visit(Use::Header(header));
                    }
                    HashInput::Payload => {}
                }
            }
            place(to, visit);
        }
        Op::Random(to, low, high) => {
            expr(low, visit);
            expr(high, visit);
            place(to, visit);
        }
        Op::Request(Request::Clone { session, .. }) => expr(session, visit),
        Op::Request(Request::Truncate(bytes)) => expr(bytes, visit),
        Op::Request(Request::Digest(_, values)) => values.iter().for_each(|value| expr(value, visit)),
        Op::Request(Request::Resubmit(_) | Request::Recirculate(_)) => {}
        Op::BeginAtomic | Op::EndAtomic => {}
        // Log messages are formatted only for an observer, and then the interpreter runs.
        Op::Log(..) => {}
        Op::Assert(condition) => expr(condition, visit),
    }
}

fn terminator<'a>(end: &'a Terminator, visit: Visit<'_, 'a>) {
    match end {
        Terminator::Branch { condition, .. } => expr(condition, visit),
        Terminator::Switch { subject, .. } => expr(subject, visit),
        Terminator::Select { keys, cases } => {
            keys.iter().for_each(|key| expr(key, visit));
            for one in cases.iter().flat_map(|case| &case.matches) {
                match one {
                    Match::Any | Match::ValueSet(_) => {}
                    Match::Value(a) => expr(a, visit),
                    Match::Mask(a, b) | Match::Range(a, b) | Match::RangeSigned(a, b) => {
                        expr(a, visit);
                        expr(b, visit);
                    }
                }
            }
        }
        Terminator::Goto(_) | Terminator::Return | Terminator::Reject | Terminator::Exit => {}
    }
}

/// Visits every use in a block.
pub(crate) fn block<'a>(program: &'a Program, block: &'a Block, visit: Visit<'_, 'a>) {
    block.instrs.iter().for_each(|instr| op(program, &instr.op, visit));
    terminator(&block.terminator, visit);
}

/// Visits every use in a body itself, including the keys of the tables it applies.
pub(crate) fn body<'a>(program: &'a Program, body: &'a Body, visit: Visit<'_, 'a>) {
    body.blocks.values().for_each(|one| block(program, one, visit));
}

/// Returns a body and the bodies of the actions of the tables it applies.
pub(crate) fn bodies(program: &Program, id: BodyId) -> Vec<BodyId> {
    let mut bodies = vec![id];
    body(program, &program.bodies[id], &mut |used| {
        if let Use::Apply(table) = used {
            bodies.extend(program.tables[table].actions.iter().map(|one| program.actions[one.action].body));
        }
    });
    bodies
}

/// Returns the bodies that steps run and those of the actions of the tables that they apply.
pub(crate) fn bodies_of_steps<'p>(program: &'p Program, steps: &'p [Step]) -> impl Iterator<Item = BodyId> + 'p {
    let runs = steps.iter().filter_map(|step| if let Step::Run(body) = step { Some(*body) } else { None });
    runs.flat_map(|body| bodies(program, body))
}

/// Returns the number of instructions and blocks that steps run, with those of the actions of each table that they
/// apply: a measure for the amount of code.
pub(crate) fn instructions(program: &Program, steps: &[Step]) -> usize {
    let blocks = bodies_of_steps(program, steps).flat_map(|body| program.bodies[body].blocks.values());
    blocks.map(|block| block.instrs.len() + 1).sum()
}

/// Returns the tables that steps apply, each once.
pub(crate) fn tables(program: &Program, steps: &[Step]) -> BTreeSet<TableId> {
    let mut tables = BTreeSet::new();
    for body in bodies_of_steps(program, steps) {
        self::body(program, &program.bodies[body], &mut |used| {
            if let Use::Apply(table) = used {
                tables.insert(table);
            }
        });
    }
    tables
}

/// Visits every use in a body and in the actions of the tables it applies.
pub(crate) fn whole_body<'a>(program: &'a Program, id: BodyId, visit: Visit<'_, 'a>) {
    let mut tables = Vec::new();
    body(program, &program.bodies[id], &mut |used| {
        if let Use::Apply(table) = used {
            tables.push(table);
        }
        visit(used);
    });
    for action in tables.into_iter().flat_map(|table| &program.tables[table].actions) {
        let action = &program.actions[action.action];
        action.params.iter().for_each(|param| visit(Use::Write(param.slot)));
        body(program, &program.bodies[action.body], visit);
    }
}

/// Whether a body, including the actions of the tables it applies, reads a slot.
pub fn reads(program: &Program, id: BodyId, slot: SlotId) -> bool {
    mentions(program, id, |used| matches!(used, Use::Read(read) if read == slot))
}

/// Whether a body, including the actions of the tables it applies, writes a slot.
pub fn writes(program: &Program, id: BodyId, slot: SlotId) -> bool {
    mentions(program, id, |used| matches!(used, Use::Write(written) if written == slot))
}

/// Whether a body, including the actions of the tables it applies, can make a request that `is_meant` accepts.
pub fn requests(program: &Program, id: BodyId, is_meant: impl Fn(&Request) -> bool) -> bool {
    let is_request = |op: &Op| matches!(op, Op::Request(request) if is_meant(request));
    let mut blocks = bodies(program, id).into_iter().flat_map(|body| program.bodies[body].blocks.values());
    blocks.any(|block| block.instrs.iter().any(|instr| is_request(&instr.op)))
}

fn mentions(program: &Program, id: BodyId, is_meant: impl Fn(Use<'_>) -> bool) -> bool {
    let mut found = false;
    whole_body(program, id, &mut |used| found |= is_meant(used));
    found
}

/// Visits every reference to a header in the program.
pub(crate) fn headers<'a>(program: &'a Program, visit: &mut dyn FnMut(&'a HeaderRef)) {
    for one in program.bodies.values() {
        body(program, one, &mut |used| match used {
            Use::Header(header) | Use::HeaderWrite(header, _) | Use::Validity(header) | Use::Extract(header) => {
                visit(header)
            }
            Use::Read(_) | Use::Write(_) | Use::Apply(_) => {}
        });
    }
}

/// Returns the headers that a reference can denote.
pub(crate) fn candidates(program: &Program, header: &HeaderRef) -> Vec<HeaderId> {
    match header {
        HeaderRef::Header(header) => vec![*header],
        HeaderRef::Element(stack, _) => program.stacks[*stack].elements().collect(),
    }
}

/// Returns the number of low bits of an expression that are certainly zero.
fn low_zeros(expr: &Expr) -> u32 {
    match expr {
        Expr::Const(value) => (0..32).find(|bit| value.bit(*bit)).unwrap_or(32),
        Expr::Binary(ir::BinaryOp::Shl, a, amount) => match &**amount {
            Expr::Const(amount) => low_zeros(a).saturating_add(amount.low_u64().min(64) as u32),
            _ => low_zeros(a),
        },
        Expr::Binary(ir::BinaryOp::Mul, a, b) => low_zeros(a).saturating_add(low_zeros(b)),
        Expr::Binary(ir::BinaryOp::Add | ir::BinaryOp::Sub | ir::BinaryOp::Or, a, b) => low_zeros(a).min(low_zeros(b)),
        Expr::Concat(_, low) => match &**low {
            Expr::Const(low) if low.is_zero() => low.width(),
            _ => low_zeros(low).min(8),
        },
        Expr::ZeroExtend(a, _) => low_zeros(a),
        _ => 0,
    }
}

/// Whether a body keeps the parser's cursor byte-aligned.
pub(crate) fn keeps_to_bytes(program: &Program, types: &[TypeLayout], body: &Body) -> bool {
    body.blocks.values().flat_map(|block| &block.instrs).all(|instr| match &instr.op {
        Op::Extract(header, _) => candidates(program, header).iter().all(|header| {
            let ty = &types[program.headers[*header].ty.as_u32() as usize];
            ty.plain
        }),
        Op::Advance(bits) => low_zeros(bits) >= 3,
        _ => true,
    })
}

/// Visits the successors of a terminator.
pub(crate) fn targets(end: &Terminator, visit: &mut dyn FnMut(BlockId)) {
    match end {
        Terminator::Goto(to) => visit(*to),
        Terminator::Branch { then, otherwise, .. } => {
            visit(*then);
            visit(*otherwise);
        }
        Terminator::Switch { cases, default, .. } => {
            cases.iter().for_each(|(_, to)| visit(*to));
            visit(*default);
        }
        Terminator::Select { cases, .. } => cases.iter().for_each(|case| visit(case.target)),
        Terminator::Return | Terminator::Reject | Terminator::Exit => {}
    }
}

/// Whether a body can reach a block twice.
pub(crate) fn has_loop(body: &Body) -> bool {
    // Blocks without remaining predecessors are removed until none is left (Kahn's algorithm). The rest is on or behind
    // a loop.
    let mut ways = vec![0u32; body.blocks.len()];
    for block in body.blocks.values() {
        targets(&block.terminator, &mut |to| ways[to.as_u32() as usize] += 1);
    }
    let mut ready: Vec<BlockId> = body.blocks.keys().filter(|id| ways[id.as_u32() as usize] == 0).collect();
    let mut left = body.blocks.len();
    while let Some(id) = ready.pop() {
        left -= 1;
        targets(&body.blocks[id].terminator, &mut |to| {
            ways[to.as_u32() as usize] -= 1;
            if ways[to.as_u32() as usize] == 0 {
                ready.push(to);
            }
        });
    }
    left > 0
}
