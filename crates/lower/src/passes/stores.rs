//! Removes assignments to temporaries that are never read.
//!
//! ```text
//! $tmp = hdr.ipv4.ttl        (nothing)
//! apply t, hit $tmp$1        apply t
//! ```

use std::collections::HashSet;

use ir::{LValue, Op, Program, SlotId};

use super::ScopedStorage;
use super::visit::{StorageUse, body_uses, expr_uses};

/// Number of iterations: a removed assignment may have been the only reader of another temporary.
const ROUNDS: usize = 4;

/// Removes instructions that write scoped slots that are never read.
pub(super) fn remove_unread(program: &mut Program, scoped: &ScopedStorage) {
    for _ in 0..ROUNDS {
        let read = read_slots(program);
        let unread = |slot: &SlotId| scoped.slots.contains(slot) && !read.contains(slot);
        let mut changed = false;
        for block in program.bodies.values_mut().flat_map(|body| body.blocks.values_mut()) {
            let before = block.instrs.len();
            block.instrs.retain(|instr| !matches!(&instr.op, Op::Assign(LValue::Slot(slot), _) if unread(slot)));
            changed |= block.instrs.len() != before;
            for instr in &mut block.instrs {
                if let Op::Apply { hit, action, .. } = &mut instr.op {
                    for slot in [hit, action] {
                        if slot.as_ref().is_some_and(unread) {
                            *slot = None;
                        }
                    }
                }
            }
        }
        if !changed {
            return;
        }
    }
}

/// Returns the slots that an instruction, a terminator or a table's key reads.
pub(crate) fn read_slots(program: &mut Program) -> HashSet<SlotId> {
    let mut read: HashSet<SlotId> = HashSet::new();
    let mut visit = |used: StorageUse<'_>| {
        if let StorageUse::Read(slot) = used {
            read.insert(*slot);
        }
    };
    program.bodies.values_mut().for_each(|body| body_uses(body, &mut visit));
    let keys = program.tables.values_mut().flat_map(|table| &mut table.keys);
    keys.for_each(|key| expr_uses(&mut key.expr, &mut visit));
    read
}
