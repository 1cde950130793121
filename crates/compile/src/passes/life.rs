//! How long storage lives: what one body alone uses is local to it, what several use lives as long as the packet.
//!
//! ```text
//! control c { bit<8> x; action a() { x = 1; } table t { actions = { a; } } apply { t.apply(); y = x; } }
//!                                     x is used by the action's body and by the control's: metadata
//! ```

use std::collections::HashMap;

use ir::{BodyId, BodyKind, HeaderId, Op, Program, SlotId, SlotKind};

use super::Scoped;
use super::uses::{Use, Uses};

/// Who uses something: nobody, one body, or several (or an action, for what outlives one run of it).
#[derive(Clone, Copy, PartialEq, Eq)]
enum User {
    One(BodyId),
    Several,
}

/// Decides for every scoped slot and header.
pub(super) fn decide(program: &mut Program, scoped: &Scoped) {
    let mut slots: HashMap<SlotId, User> = HashMap::new();
    let mut headers: HashMap<HeaderId, User> = HashMap::new();
    for (id, body) in &program.bodies {
        let is_action = body.kind == BodyKind::Action;
        let mut visit = |used| {
            let user = |outlives: bool| if outlives && is_action { User::Several } else { User::One(id) };
            match used {
                Use::Read(slot) | Use::Write(slot) => {
                    meet(slots.entry(slot).or_insert(User::One(id)), user(scoped.instance_slots.contains(&slot)));
                }
                Use::Header(header) => {
                    let outlives = scoped.instance_headers.contains(&header);
                    meet(headers.entry(header).or_insert(User::One(id)), user(outlives));
                }
            }
        };
        let mut uses = Uses { program, visit: &mut visit };
        uses.body(body);
        // A table's keys are evaluated where it is applied.
        for instr in body.blocks.values().flat_map(|block| &block.instrs) {
            if let Op::Apply { table, .. } = instr.op {
                program.tables[table].keys.iter().for_each(|key| uses.expr(&key.expr));
            }
        }
    }
    for slot in &scoped.slots {
        let shared = slots.get(slot) == Some(&User::Several);
        program.slots[*slot].kind = if shared { SlotKind::Metadata } else { SlotKind::Local };
    }
    for header in &scoped.headers {
        program.headers[*header].local = headers.get(header) != Some(&User::Several);
    }
    // The elements of a stack live equally long.
    for stack in program.stacks.values() {
        let elements = (0..stack.size).map(|i| HeaderId::from_u32(stack.first.as_u32() + i));
        let elements: Vec<HeaderId> = elements.collect();
        let local = elements.iter().all(|header| program.headers[*header].local);
        elements.iter().for_each(|header| program.headers[*header].local = local);
    }
}

fn meet(old: &mut User, new: User) {
    if *old != new {
        *old = User::Several;
    }
}
