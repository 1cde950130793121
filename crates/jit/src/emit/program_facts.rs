//! Finds out what a whole program does, as far as the code of every unit depends on it.

use std::collections::BTreeSet;

use ir::{BodyId, BodyKind, FieldListItem, HeaderId, Op, Program, SlotId};

use crate::Plan;
use crate::layout::FrameLayout;
use crate::walk::{self, Use};

/// Facts about the whole program.
#[derive(Debug)]
pub(crate) struct ProgramFacts {
    /// Slots that the architecture sets before a fresh unit.
    pub(super) given: BTreeSet<SlotId>,
    /// Slots and headers that field lists preserve. A fresh unit loads them from the frame, except for packets of a
    /// batch, for which nothing has been preserved.
    pub(super) kept_slots: BTreeSet<SlotId>,
    pub preserved_headers: BTreeSet<HeaderId>,
    /// Slots that the architecture reads after a unit.
    pub(super) visible: BTreeSet<SlotId>,
    /// Whether all state is visible between units.
    pub all_visible: bool,
    /// Headers whose home may hold data after a packet has left.
    pub(super) written: BTreeSet<HeaderId>,
    /// The subset of these whose place does not show whether it does.
    pub(super) written_early: BTreeSet<HeaderId>,
    /// Headers that any body extracts.
    pub(super) extracted: BTreeSet<HeaderId>,
    /// The only body that emits, or the plan's deparser if none does, if it can assemble the packet in place.
    pub deparser: Option<BodyId>,
    /// Value of `NoError`.
    pub no_error: u64,
    /// Whether the program has rows of resilient state.
    pub has_rows: bool,
}

impl ProgramFacts {
    pub fn new(program: &Program, layout: &FrameLayout, plan: &Plan) -> ProgramFacts {
        let (mut preserved_headers, mut kept_slots) = (BTreeSet::new(), BTreeSet::new());
        for kept in program.field_lists.values().flatten() {
            match *kept {
                FieldListItem::Header(header) => _ = preserved_headers.insert(header),
                FieldListItem::Slot(slot) => _ = kept_slots.insert(slot),
            }
        }
        let (mut written, mut in_parsers, mut extracted) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for body in program.bodies.values() {
            walk::body(program, body, &mut |used| match used {
                Use::HeaderWrite(header, _) => {
                    written.extend(walk::candidates(program, header));
                    if body.kind == BodyKind::Parser {
                        in_parsers.extend(walk::candidates(program, header));
                    }
                }
                Use::Extract(header) => extracted.extend(walk::candidates(program, header)),
                _ => {}
            });
        }
        if !layout.byte_cursor {
            written.extend(extracted.iter().copied());
        }
        ProgramFacts {
            given: plan.given.iter().copied().collect(),
            visible: plan.visible.iter().flatten().copied().collect(),
            kept_slots,
            preserved_headers,
            all_visible: plan.visible.is_none(),
            written_early: in_parsers.intersection(&extracted).copied().collect(),
            written,
            extracted,
            deparser: deparser(program, layout, plan),
            no_error: error_number(program, "NoError"),
            has_rows: program.has_rows(),
        }
    }
}

/// Returns the value of a member of `error`; 0 if the program does not declare it.
pub(super) fn error_number(program: &Program, name: &str) -> u64 {
    program.errors.iter().position(|error| error == name).unwrap_or(0) as u64
}

/// Returns the only body that emits, if it only emits headers whose memory layout equals the wire layout; the plan's
/// deparser if none emits.
fn deparser(program: &Program, layout: &FrameLayout, plan: &Plan) -> Option<BodyId> {
    let emits = |body: &ir::Body| {
        body.blocks.values().flat_map(|block| &block.instrs).any(|instr| matches!(instr.op, Op::Emit(_)))
    };
    let copies_varbits = program
        .bodies
        .values()
        .flat_map(|body| body.blocks.values())
        .flat_map(|block| &block.instrs)
        .any(|instr| matches!(instr.op, Op::CopyVarbit(..)));
    // A field list's values are read from the outgoing packet while it is assembled.
    let keeps_headers = |keep: &u32| {
        let kept = program.field_lists.get(keep).into_iter().flatten();
        kept.into_iter().any(|kept| matches!(kept, FieldListItem::Header(_)))
    };
    let recirculates = program
        .bodies
        .values()
        .flat_map(|body| body.blocks.values())
        .flat_map(|block| &block.instrs)
        .any(|instr| matches!(&instr.op, Op::Request(ir::Request::Recirculate(Some(keep))) if keeps_headers(keep)));
    if !layout.byte_cursor || copies_varbits || recirculates {
        return None;
    }
    let mut all = program.bodies.iter().filter(|(_, body)| emits(body));
    let (id, body) = match all.next() {
        Some(found) => found,
        None => plan.deparser.map(|id| (id, &program.bodies[id]))?,
    };
    if all.next().is_some() || walk::has_loop(body) {
        return None;
    }
    let mut simple = true;
    walk::whole_body(program, id, &mut |used| match used {
        Use::HeaderWrite(..) | Use::Validity(_) | Use::Extract(_) => simple = false,
        _ => {}
    });
    for instr in body.blocks.values().flat_map(|block| &block.instrs) {
        if let Op::Emit(header) = &instr.op {
            simple &= walk::candidates(program, header).iter().all(|header| layout.ty(program, *header).plain);
        }
    }
    simple.then_some(id)
}
