//! Passes over the IR, one per file; each preserves the meaning of the program.

mod depth;
mod flow;
mod lifetime;
mod stores;
mod visit;

use std::collections::HashSet;

use ir::{HeaderId, SlotId};

pub(crate) use stores::read_slots;

/// Storage created by the compiler or declared inside a block. Its lifetime is decided after lowering.
#[derive(Debug, Default)]
pub struct ScopedStorage {
    /// Slots.
    pub slots: HashSet<SlotId>,
    /// Headers.
    pub headers: HashSet<HeaderId>,
    /// Those of the slots that belong to an instance: actions read the value that an earlier action left.
    pub instance_slots: HashSet<SlotId>,
    /// Those of the headers that belong to an instance.
    pub instance_headers: HashSet<HeaderId>,
}

/// Runs every pass in order.
pub fn run(program: &mut ir::Program, scoped: &ScopedStorage) {
    for body in program.bodies.values_mut() {
        flow::simplify(body);
    }
    stores::remove_unread(program, scoped);
    for body in program.bodies.values_mut() {
        flow::simplify(body);
    }
    lifetime::decide(program, scoped);
    depth::limit(program);
}
