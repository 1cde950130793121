//! Determines whether a packet may have changed before an operation.

use std::collections::BTreeMap;

use ir::{BlockId, BodyId, Expr, HeaderRef, Op, Program};

use crate::walk::{self, Use};

/// Whether bodies that run one after another may change a field of a header before an operation that `is_meant`
/// accepts. If not, the packet is in its buffer as received when the operation begins: code writes fields in
/// place, and nothing else of a packet before it is assembled.
pub fn changes_headers_before(program: &Program, bodies: &[BodyId], is_meant: impl Fn(&Op) -> bool) -> bool {
    let mut search = Search { program, is_meant, is_found: false };
    bodies.iter().fold(false, |has_changed, body| search.body(*body, has_changed));
    search.is_found
}

/// Returns the largest number of bits of a packet that a parser consumes. Code changes no other bits of the packet
/// before it is assembled. `None` if it is unbounded or unknown.
pub fn longest_parse(program: &Program, parser: BodyId) -> Option<u64> {
    let consumes = |op: &Op| matches!(op, Op::Extract(..) | Op::Advance(_));
    let others = program.bodies.iter().filter(|(id, _)| *id != parser);
    if others
        .flat_map(|(_, body)| body.blocks.values())
        .flat_map(|block| &block.instrs)
        .any(|instr| consumes(&instr.op))
    {
        return None;
    }
    let Some(entry) = program.bodies[parser].blocks.keys().next() else { return Some(0) };
    longest_from(program, parser, entry, &mut BTreeMap::new())
}

/// Returns the largest number of bits consumed from the start of a block. `known` has the number of each completed
/// block.
fn longest_from(
    program: &Program,
    parser: BodyId,
    block: BlockId,
    known: &mut BTreeMap<BlockId, Option<u64>>,
) -> Option<u64> {
    if let Some(known) = known.get(&block) {
        return *known;
    }
    // A path that returns here is a loop.
    known.insert(block, None);
    let code = &program.bodies[parser].blocks[block];
    let own = code.instrs.iter().map(|instr| consumed(program, &instr.op)).sum::<Option<u64>>()?;
    let mut rest = Some(0);
    walk::targets(&code.terminator, &mut |next| {
        rest = rest.zip(longest_from(program, parser, next, known)).map(|(most, bits)| most.max(bits));
    });
    let all = own + rest?;
    known.insert(block, Some(all));
    Some(all)
}

/// Returns the number of bits that an operation of a parser consumes, if it is constant.
fn consumed(program: &Program, op: &Op) -> Option<u64> {
    match op {
        Op::Extract(header, None) => {
            let header = match header {
                HeaderRef::Header(header) => *header,
                HeaderRef::Element(stack, _) => program.stacks[*stack].first,
            };
            Some(u64::from(program.header_types[program.headers[header].ty].fixed_bits()))
        }
        Op::Extract(..) => None,
        Op::Advance(Expr::Const(bits)) => bits.to_u64(),
        Op::Advance(_) => None,
        _ => Some(0),
    }
}

struct Search<'p, F> {
    program: &'p Program,
    is_meant: F,
    /// Whether such an operation may follow a change.
    is_found: bool,
}

impl<F: Fn(&Op) -> bool> Search<'_, F> {
    /// Analyses a body. Returns whether a header may have changed at one of its ends.
    fn body(&mut self, id: BodyId, has_changed: bool) -> bool {
        let body = &self.program.bodies[id];
        let Some(entry) = body.blocks.keys().next() else { return has_changed };
        let mut at_begin = BTreeMap::from([(entry, has_changed)]);
        let mut pending = vec![entry];
        let mut at_end = has_changed;
        while let Some(block) = pending.pop() {
            let mut has_changed = at_begin[&block];
            for instr in &body.blocks[block].instrs {
                has_changed = self.op(&instr.op, has_changed);
            }
            at_end |= has_changed;
            walk::targets(&body.blocks[block].terminator, &mut |next| {
                let known = at_begin.get(&next).copied();
                if known.is_none_or(|known| has_changed && !known) {
                    at_begin.insert(next, has_changed);
                    pending.push(next);
                }
            });
        }
        at_end
    }

    /// Analyses an operation. Returns whether a header may have changed after it.
    fn op(&mut self, op: &Op, has_changed: bool) -> bool {
        self.is_found |= has_changed && (self.is_meant)(op);
        if let Op::Apply { table, .. } = op {
            let program = self.program;
            let actions = program.tables[*table].actions.iter().map(|one| program.actions[one.action].body);
            // One of the actions runs.
            return actions.fold(has_changed, |changed, action| self.body(action, has_changed) || changed);
        }
        let mut changes = has_changed;
        walk::op(self.program, op, &mut |used| changes |= matches!(used, Use::HeaderWrite(..)));
        changes
    }
}
