//! Finds the slots of a unit that may be read before they are written: only these need a value when a packet begins.

use std::collections::BTreeSet;

use ir::{BodyId, Program, SlotId};

use crate::Step;
use crate::bit_set::BitSet;
use crate::walk::{self, Use};

/// Returns the number of a slot in sets.
fn number(slot: SlotId) -> usize {
    slot.as_u32() as usize
}

/// Returns the slots that steps may read before they write them. A slot that is read only after some of the paths have
/// written it is among them.
pub(crate) fn read_first(program: &Program, steps: &[Step]) -> BTreeSet<SlotId> {
    let mut live = BitSet::new(program.slots.len());
    for step in steps.iter().rev() {
        match step {
            Step::Run(body) => live = before_body(program, *body, &live),
            Step::Copy(to, from) => {
                live.remove(number(*to));
                live.insert(number(*from));
            }
            Step::ErrorTo(slot)
            | Step::LengthTo(slot)
            | Step::PresentLengthTo(slot)
            | Step::TimeTo(slot)
            | Step::InputTo(_, slot)
            | Step::Set(slot, _) => live.remove(number(*slot)),
            Step::StopUnless(slot, _) | Step::DropIf(slot, _) | Step::Keep(_, slot) => live.insert(number(*slot)),
            Step::Measure | Step::StopIfRequested | Step::StopUnlessWaiting(_) => {}
        }
    }
    program.slots.keys().filter(|slot| live.contains(number(*slot))).collect()
}

/// Returns the slots that are read before they are written from the start of a body on; `after` are those from its end
/// on.
fn before_body(program: &Program, id: BodyId, after: &BitSet) -> BitSet {
    let body = &program.bodies[id];
    let (mut read, mut written) = (Vec::new(), Vec::new());
    for block in body.blocks.values() {
        let (mut first, mut kills) = (BitSet::new(program.slots.len()), BitSet::new(program.slots.len()));
        let mut visit = |used: Use<'_>| match used {
            Use::Read(slot) if !kills.contains(number(slot)) => first.insert(number(slot)),
            Use::Write(slot) => kills.insert(number(slot)),
            Use::Apply(table) => {
                // Any of the actions may run, and none of what they write is certain.
                for action in &program.tables[table].actions {
                    walk::body(program, &program.bodies[program.actions[action.action].body], &mut |used| {
                        if let Use::Read(slot) = used
                            && !kills.contains(number(slot))
                        {
                            first.insert(number(slot));
                        }
                    });
                }
            }
            _ => {}
        };
        walk::block(program, block, &mut visit);
        let mut ends = true;
        walk::targets(&block.terminator, &mut |_| ends = false);
        if ends {
            first.add_difference(after, &kills);
        }
        read.push(first);
        written.push(kills);
    }
    // A body can also end in the middle: a parser's error, or an action that exits.
    let mut start = after.clone();
    let mut has_changed = true;
    while std::mem::take(&mut has_changed) {
        for (at, block) in body.blocks.values().enumerate().rev() {
            walk::targets(&block.terminator, &mut |to| {
                let to = to.as_u32() as usize;
                if to != at {
                    let behind = std::mem::take(&mut read[to]);
                    has_changed |= read[at].add_difference(&behind, &written[at]);
                    read[to] = behind;
                }
            });
        }
    }
    if let Some(first) = read.first() {
        start.add_all(first);
    }
    start
}
