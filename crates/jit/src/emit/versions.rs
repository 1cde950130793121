//! Code once for everything that is known, as far as that is worth it.
//!
//! A program is a graph of *points*: blocks of bodies, the places behind tables, the ends of bodies. Code for a point is
//! generated when something leads there, and once for each set of facts ([`Known`]) that leads there: a *version*. So
//! each path through the parser gets controls and deparser of its own, in which places and validity of headers are
//! constants, and so does what follows an action that settles something. Where versions would be too many, the one
//! that knows nothing serves all. Packets that the parser refuses get that one too: they are few.

use std::collections::{BTreeSet, HashMap};

use cranelift_codegen::ir::{Block, InstBuilder};
use ir::{BlockId, Body, BodyId, HeaderRef, Op, Program, SlotId};

use super::Emit;
use super::known::Known;
use crate::walk::{self, Use, slots_of};
use crate::{Step, code};

/// The most versions of one point.
const MOST: usize = 8;
/// So many instructions of the IR become code of versions that know something; what comes then is shared.
const BUDGET: usize = 3000;
/// Larger units have one version of everything: to find out what matters where would take longer than it is worth.
const LARGEST: usize = 4 * BUDGET;

/// Where code can be gone to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Point {
    /// An instruction of a block, or with the number behind the last one its terminator.
    Code { scope: usize, block: BlockId, instr: usize },
    /// Behind the body of a step, however it ended.
    Behind(usize),
}

/// A body that runs: that of a step, or an action in a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    pub body: BodyId,
    pub step: usize,
    pub back: Option<Back>,
}

/// The table that an action was run by: where it was applied, and which of its actions this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Back {
    pub scope: usize,
    pub block: BlockId,
    pub instr: usize,
    pub action: usize,
}

#[derive(Debug)]
struct Version {
    known: Known,
    block: Block,
}

/// The versions of all points of a function.
#[derive(Debug, Default)]
pub(super) struct Versions {
    of: HashMap<Point, Vec<Version>>,
    todo: Vec<(Point, Known, Block)>,
    scopes: Vec<Scope>,
    actions: HashMap<Back, usize>,
    steps: HashMap<usize, usize>,
    /// How many more instructions may be generated for those that know something.
    left: usize,
    /// The slots that conditions look at anywhere in the unit, and those read in a step or one that follows.
    tracked: BTreeSet<SlotId>,
    read_from: Vec<BTreeSet<SlotId>>,
    read_in: HashMap<(BodyId, BlockId), BTreeSet<SlotId>>,
    /// The last step that runs a body.
    last_run: Option<usize>,
}

/// The slots that decide where a body goes, or whether it goes on.
fn deciding(body: &Body, into: &mut BTreeSet<SlotId>) {
    for block in body.blocks.values() {
        walk::deciding(&block.terminator, into);
        for instr in &block.instrs {
            match &instr.op {
                Op::Extract(HeaderRef::Element(_, index), _) => slots_of(index, into),
                Op::Verify(condition, _) | Op::Assert(condition) => slots_of(condition, into),
                _ => {}
            }
        }
    }
}

/// Instructions and blocks of a unit.
fn size(program: &Program, steps: &[Step]) -> usize {
    let bodies = walk::bodies_of_steps(program, steps);
    bodies.flat_map(|body| program.bodies[body].blocks.values()).map(|block| block.instrs.len() + 1).sum()
}

impl Versions {
    /// `is_special` if code may be generated more than once.
    pub fn new(program: &Program, steps: &[Step], is_special: bool) -> Versions {
        let mut versions = Versions { left: if is_special { BUDGET } else { 0 }, ..Versions::default() };
        if !is_special || size(program, steps) > LARGEST {
            versions.left = 0;
            return versions;
        }
        let mut read: BTreeSet<SlotId> = BTreeSet::new();
        versions.read_from = vec![BTreeSet::new(); steps.len() + 1];
        for (index, step) in steps.iter().enumerate().rev() {
            match step {
                Step::Run(body) => {
                    versions.last_run = versions.last_run.max(Some(index));
                    walk::whole_body(program, *body, &mut |used| {
                        if let Use::Read(slot) = used {
                            read.insert(slot);
                        }
                    });
                    for body in walk::bodies(program, *body) {
                        deciding(&program.bodies[body], &mut versions.tracked);
                    }
                }
                Step::StopUnless(slot, _) | Step::DropIf(slot, _) | Step::Copy(_, slot) => {
                    versions.tracked.insert(*slot);
                    read.insert(*slot);
                }
                Step::ErrorTo(_) | Step::LengthTo(_) | Step::Measure | Step::Set(..) | Step::StopIfAsked => {}
            }
            versions.read_from[index] = read.clone();
        }
        versions.tracked.retain(|slot| (1..=64).contains(&program.slots[*slot].width));
        versions
    }

    pub fn scope(&self, scope: usize) -> Scope {
        self.scopes[scope]
    }

    /// The slots that are read in a block of a body, or behind it in that body.
    fn read_in(&mut self, program: &Program, body: BodyId, block: BlockId) -> &BTreeSet<SlotId> {
        self.read_in.entry((body, block)).or_insert_with(|| {
            let (mut read, mut seen, mut todo) = (BTreeSet::new(), BTreeSet::new(), vec![block]);
            while let Some(block) = todo.pop() {
                if !seen.insert(block) {
                    continue;
                }
                let block = &program.bodies[body].blocks[block];
                let mut visit = |used: Use<'_>| match used {
                    Use::Read(slot) => _ = read.insert(slot),
                    Use::Apply(table) => {
                        for action in &program.tables[table].actions {
                            walk::body(program, &program.bodies[program.actions[action.action].body], &mut |used| {
                                if let Use::Read(slot) = used {
                                    read.insert(slot);
                                }
                            });
                        }
                    }
                    _ => {}
                };
                walk::block(program, block, &mut visit);
                walk::targets(&block.terminator, &mut |to| todo.push(to));
            }
            read
        })
    }

    /// The slots that are read from a point on.
    fn live(&mut self, program: &Program, point: Point) -> BTreeSet<SlotId> {
        match point {
            Point::Behind(step) => self.read_from[step + 1].clone(),
            Point::Code { scope, block, .. } => {
                let Scope { body, step, back } = self.scopes[scope];
                let mut live = self.read_in(program, body, block).clone();
                match back {
                    Some(Back { scope, block, instr, .. }) => {
                        live.extend(self.live(program, Point::Code { scope, block, instr }));
                    }
                    None => live.extend(self.read_from[step + 1].iter().copied()),
                }
                live
            }
        }
    }

    pub fn is_tracked(&self, slot: SlotId) -> bool {
        self.tracked.contains(&slot)
    }
}

impl Emit<'_, '_> {
    /// The code for a point, given what is known here.
    pub(super) fn at(&mut self, point: Point) -> Block {
        let mut known = Known::default();
        if self.known.is_special && self.versions.left > 0 {
            known = self.known.clone();
            let live = self.versions.live(self.program, point);
            known.keep_slots(&live);
            // Every body that runs says anew how it ended.
            let last = self.versions.last_run;
            let is_over = matches!(point, Point::Behind(step) if Some(step) >= last);
            if !is_over {
                known.ending = None;
            }
        }
        let versions = self.versions.of.entry(point).or_default();
        if let Some(version) = versions.iter().find(|version| version.known == known) {
            return version.block;
        }
        if versions.len() >= MOST && known != Known::default() {
            known = Known::default();
            if let Some(version) = versions.iter().find(|version| version.known == known) {
                return version.block;
            }
        }
        let block = self.b.create_block();
        versions.push(Version { known: known.clone(), block });
        self.versions.todo.push((point, known, block));
        block
    }

    /// Goes to a point.
    pub(super) fn go_to(&mut self, point: Point) {
        let block = self.at(point);
        self.b.ins().jump(block, &[]);
    }

    /// Generates code for all points that something has led to.
    pub(super) fn all_points(&mut self) {
        while let Some((point, known, block)) = self.versions.todo.pop() {
            self.b.switch_to_block(block);
            self.known = known;
            match point {
                Point::Code { scope, block, instr } => {
                    self.in_scope(scope);
                    self.code(block, instr);
                }
                Point::Behind(step) => self.behind(step),
            }
        }
    }

    /// What follows belongs to a scope.
    pub(super) fn in_scope(&mut self, scope: usize) {
        self.scope = scope;
        self.at_step(self.versions.scopes[scope].step);
    }

    /// Code for one more instruction has been generated.
    pub(super) fn spend_budget(&mut self) {
        if self.known.is_special {
            self.versions.left = self.versions.left.saturating_sub(1);
        }
    }

    /// The scope of the body of a step.
    pub(super) fn scope_of_step(&mut self, step: usize, body: BodyId) -> usize {
        let Versions { scopes, steps, .. } = &mut self.versions;
        *steps.entry(step).or_insert_with(|| {
            scopes.push(Scope { body, step, back: None });
            scopes.len() - 1
        })
    }

    /// The scope of an action that a table runs which is applied at an instruction of the current scope.
    pub(super) fn scope_of_action(&mut self, body: BodyId, back: Back) -> usize {
        let step = self.step;
        let Versions { scopes, actions, .. } = &mut self.versions;
        *actions.entry(back).or_insert_with(|| {
            scopes.push(Scope { body, step, back: Some(back) });
            scopes.len() - 1
        })
    }

    /// The beginning of a block of the current scope.
    pub(super) fn block_point(&self, block: BlockId) -> Point {
        Point::Code { scope: self.scope, block, instr: 0 }
    }

    /// Generates code that leaves the way of the packet, in a block of its own, and comes back to what was known before.
    pub(super) fn aside(&mut self, block: Block, generate: impl FnOnce(&mut Self)) {
        let known = self.known.clone();
        self.b.set_cold_block(block);
        self.b.switch_to_block(block);
        generate(self);
        self.known = known;
    }

    /// The body of the current step ends so; the current block is done with.
    pub(super) fn body_ends(&mut self, ending: u64) {
        self.set_ending(ending);
        if ending == code::REJECT {
            // What came of the packet so far is of little use to make code for, and comes in many kinds.
            self.known = Known::default();
        }
        self.go_to(Point::Behind(self.step));
    }
}
