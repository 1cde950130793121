//! Which tables ask for what earlier tables gave, and so how often a scout goes its way.

use std::collections::BTreeSet;

use ir::{Op, Place, Program, SlotId, TableId};

use crate::walk::{self, Use};
use crate::{Step, Unit};

/// Tables of a chain beyond so many are asked by the packets themselves.
const MAX_ROUNDS: usize = 5;

/// How often it is worth to follow what was found in `noted` tables, which are in the order of the program, each as often as
/// it is applied.
pub(super) fn rounds(program: &Program, unit: &Unit, noted: &[TableId]) -> usize {
    let once: BTreeSet<TableId> = noted.iter().copied().collect();
    if once.len() < noted.len() {
        // There is room for one key of a table and packet.
        return 0;
    }
    let given = given(program, unit, noted);
    let follows = |id: &TableId| {
        let mut asked = BTreeSet::new();
        program.tables[*id].keys.iter().for_each(|key| walk::slots_of(&key.expr, &mut asked));
        deciding(program, unit, *id, &mut asked);
        !asked.is_disjoint(&given)
    };
    noted.iter().skip(1).filter(|id| follows(id)).count().min(MAX_ROUNDS)
}

/// The slots that actions of tables write, and those that are made of them.
fn given(program: &Program, unit: &Unit, tables: &[TableId]) -> BTreeSet<SlotId> {
    let mut given = BTreeSet::new();
    for action in tables.iter().flat_map(|id| &program.tables[*id].actions) {
        walk::body(program, &program.bodies[program.actions[action.action].body], &mut |used| {
            if let Use::Write(slot) = used {
                given.insert(slot);
            }
        });
    }
    // In the order of the program, as far as that is the order of its blocks: a slot that is missed costs time only.
    for body in walk::bodies_of_steps(program, &unit.steps) {
        for instr in program.bodies[body].blocks.values().flat_map(|block| &block.instrs) {
            if let Op::Assign(Place::Slot(to), value) = &instr.op {
                let mut read = BTreeSet::new();
                walk::slots_of(value, &mut read);
                if !read.is_disjoint(&given) {
                    given.insert(*to);
                }
            }
        }
    }
    given
}

/// Adds the slots that decide where the body goes that applies a table. A scout does not look whether it goes on: to it
/// all that is asserted holds.
fn deciding(program: &Program, unit: &Unit, id: TableId, into: &mut BTreeSet<SlotId>) {
    let bodies = unit.steps.iter().filter_map(|step| match step {
        Step::Run(body) => Some(&program.bodies[*body]),
        _ => None,
    });
    let applies = |op: &Op| matches!(op, Op::Apply { table, .. } if *table == id);
    let here = bodies.filter(|body| body.blocks.values().flat_map(|block| &block.instrs).any(|at| applies(&at.op)));
    here.flat_map(|body| body.blocks.values()).for_each(|block| walk::deciding(&block.terminator, into));
}
