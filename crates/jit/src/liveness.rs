//! Finds the slots of a unit that may be read before they are written: only these need a value when a packet begins.

use std::collections::BTreeSet;

use ir::{BodyId, Program, SlotId};

use crate::Step;
use crate::walk::{self, Use};

/// A set of slots.
#[derive(Clone, Debug, Default)]
struct SlotBits(Vec<u64>);

impl SlotBits {
    fn new(program: &Program) -> SlotBits {
        SlotBits(vec![0; program.slots.len().div_ceil(64)])
    }

    fn insert(&mut self, slot: SlotId) {
        let at = slot.as_u32() as usize;
        self.0[at / 64] |= 1 << (at % 64);
    }

    fn remove(&mut self, slot: SlotId) {
        let at = slot.as_u32() as usize;
        self.0[at / 64] &= !(1 << (at % 64));
    }

    fn has(&self, slot: SlotId) -> bool {
        let at = slot.as_u32() as usize;
        self.0[at / 64] >> (at % 64) & 1 == 1
    }

    /// Adds the slots of `others` that are not in `written`. Returns whether this set has changed.
    fn add_unless_written(&mut self, others: &SlotBits, written: &SlotBits) -> bool {
        let mut new = 0;
        for ((word, other), written) in self.0.iter_mut().zip(&others.0).zip(&written.0) {
            new |= other & !written & !*word;
            *word |= other & !written;
        }
        new != 0
    }
}

/// Returns the slots that steps may read before they write them. A slot that is read only after some of the paths have
/// written it is among them.
pub(crate) fn read_first(program: &Program, steps: &[Step]) -> BTreeSet<SlotId> {
    let mut live = SlotBits::new(program);
    for step in steps.iter().rev() {
        match step {
            Step::Run(body) => live = before_body(program, *body, &live),
            Step::Copy(to, from) => {
                live.remove(*to);
                live.insert(*from);
            }
            Step::ErrorTo(slot)
            | Step::LengthTo(slot)
            | Step::PresentLengthTo(slot)
            | Step::TimeTo(slot)
            | Step::Set(slot, _) => live.remove(*slot),
            Step::StopUnless(slot, _) | Step::DropIf(slot, _) | Step::Keep(_, slot) => live.insert(*slot),
            Step::Measure | Step::StopIfRequested | Step::StopUnlessWaiting(_) => {}
        }
    }
    program.slots.keys().filter(|slot| live.has(*slot)).collect()
}

/// Returns the slots that are read before they are written from the start of a body on; `after` are those from its end
/// on.
fn before_body(program: &Program, id: BodyId, after: &SlotBits) -> SlotBits {
    let body = &program.bodies[id];
    let (mut read, mut written) = (Vec::new(), Vec::new());
    for block in body.blocks.values() {
        let (mut first, mut kills) = (SlotBits::new(program), SlotBits::new(program));
        let mut visit = |used: Use<'_>| match used {
            Use::Read(slot) if !kills.has(slot) => first.insert(slot),
            Use::Write(slot) => kills.insert(slot),
            Use::Apply(table) => {
                // Any of the actions may run, and none of what they write is certain.
                for action in &program.tables[table].actions {
                    walk::body(program, &program.bodies[program.actions[action.action].body], &mut |used| {
                        if let Use::Read(slot) = used
                            && !kills.has(slot)
                        {
                            first.insert(slot);
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
            first.add_unless_written(after, &kills);
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
                    has_changed |= read[at].add_unless_written(&behind, &written[at]);
                    read[to] = behind;
                }
            });
        }
    }
    if let Some(first) = read.first() {
        start.add_unless_written(first, &SlotBits::new(program));
    }
    start
}
