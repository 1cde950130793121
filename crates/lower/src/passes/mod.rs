//! Passes over the IR: each one a file, each leaves a program that means the same.

mod depth;
mod flow;
mod life;
mod stores;
mod visit;

use std::collections::HashSet;

use ir::{HeaderId, SlotId};

/// Storage made by the compiler or declared inside a block: how long it lives is decided when all is lowered.
#[derive(Debug, Default)]
pub struct Scoped {
    /// Slots.
    pub slots: HashSet<SlotId>,
    /// Headers.
    pub headers: HashSet<HeaderId>,
    /// Those of the slots that belong to an instance: actions find them as an earlier action left them.
    pub instance_slots: HashSet<SlotId>,
    /// Those of the headers that belong to an instance.
    pub instance_headers: HashSet<HeaderId>,
}

/// Runs every pass in order.
pub fn run(program: &mut ir::Program, scoped: &Scoped) {
    for body in program.bodies.values_mut() {
        flow::simplify(body);
    }
    stores::remove_unread(program, scoped);
    for body in program.bodies.values_mut() {
        flow::simplify(body);
    }
    life::decide(program, scoped);
    depth::limit(program);
}
