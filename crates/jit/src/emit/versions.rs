//! Specialises code: one version of the code for each set of facts, within a budget.
//!
//! A program is a graph of *points*: blocks of bodies, the points after tables, and the ends of bodies. Code for a
//! point is generated when a branch leads there, once for each set of facts ([`Facts`]) that reaches it: a *version*.
//! So each path through the parser gets its own controls and deparser, in which positions and validity of headers are
//! constants, and so does the code after an action that establishes a fact. Where there would be too many versions, a
//! generic version without facts serves all. Packets that the parser rejects also get the generic version: they are
//! few.

use std::collections::{BTreeSet, HashMap};

use cranelift_codegen::ir::{Block, InstBuilder};
use ir::{BlockId, Body, BodyId, HeaderRef, Op, Program, SlotId};

use super::Emit;
use super::facts::Facts;
use crate::walk::{self, Use, slots_of};
use crate::{Step, code};

/// Maximum number of versions of one point.
const MAX_VERSIONS: usize = 8;
/// Maximum number of IR instructions in specialised versions; later code is shared.
const BUDGET: usize = 3000;
/// Maximum size of a unit that is specialised: in larger ones, computing the relevant facts would take too long.
const MAX_UNIT_SIZE: usize = 4 * BUDGET;

/// A program point: the target of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Point {
    /// An instruction of a block; the index after the last one is the terminator.
    Code { scope: usize, block: BlockId, instr: usize },
    /// The point after the body of a step, however it ended.
    After(usize),
}

/// A body that runs: that of a step, or of an action in a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    pub body: BodyId,
    pub step: usize,
    pub return_site: Option<ReturnSite>,
}

/// The return site of an action: where its table was applied, and the index of the action there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ReturnSite {
    pub scope: usize,
    pub block: BlockId,
    pub instr: usize,
    pub action: usize,
}

#[derive(Debug)]
struct Version {
    known: Facts,
    block: Block,
}

/// The versions of all points of a function.
#[derive(Debug, Default)]
pub(super) struct Versions {
    of: HashMap<Point, Vec<Version>>,
    todo: Vec<(Point, Facts, Block)>,
    scopes: Vec<Scope>,
    actions: HashMap<ReturnSite, usize>,
    steps: HashMap<usize, usize>,
    /// Remaining number of instructions for specialised versions.
    left: usize,
    /// Slots that conditions anywhere in the unit depend on, and slots read in each step or a later one.
    tracked: BTreeSet<SlotId>,
    read_from: Vec<BTreeSet<SlotId>>,
    read_in: HashMap<(BodyId, BlockId), BTreeSet<SlotId>>,
    /// Index of the last step that runs a body.
    last_run: Option<usize>,
}

/// Adds the slots that decide the path through a body, or whether it continues.
fn branch_slots(body: &Body, into: &mut BTreeSet<SlotId>) {
    for block in body.blocks.values() {
        walk::branch_slots(&block.terminator, into);
        for instr in &block.instrs {
            match &instr.op {
                Op::Extract(HeaderRef::Element(_, index), _) => slots_of(index, into),
                Op::Verify(condition, _) | Op::Assert(condition) => slots_of(condition, into),
                _ => {}
            }
        }
    }
}

/// Returns the number of instructions and blocks of a unit.
fn size(program: &Program, steps: &[Step]) -> usize {
    let bodies = walk::bodies_of_steps(program, steps);
    bodies.flat_map(|body| program.bodies[body].blocks.values()).map(|block| block.instrs.len() + 1).sum()
}

impl Versions {
    /// Analyses a unit; `is_special` allows several versions of a point.
    pub fn new(program: &Program, steps: &[Step], is_special: bool) -> Versions {
        let mut versions = Versions { left: if is_special { BUDGET } else { 0 }, ..Versions::default() };
        if !is_special || size(program, steps) > MAX_UNIT_SIZE {
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
                        branch_slots(&program.bodies[body], &mut versions.tracked);
                    }
                }
                Step::StopUnless(slot, _) | Step::DropIf(slot, _) | Step::Copy(_, slot) => {
                    versions.tracked.insert(*slot);
                    read.insert(*slot);
                }
                Step::Keep(_, slot) => _ = read.insert(*slot),
                Step::ErrorTo(_)
                | Step::TimeTo(_)
                | Step::LengthTo(_)
                | Step::Measure
                | Step::PresentLengthTo(_)
                | Step::Set(..)
                | Step::StopIfRequested => {}
            }
            versions.read_from[index] = read.clone();
        }
        versions.tracked.retain(|slot| (1..=64).contains(&program.slots[*slot].width));
        versions
    }

    pub fn scope(&self, scope: usize) -> Scope {
        self.scopes[scope]
    }

    /// Returns the slots that are read in a block of a body, or in that body after it.
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

    /// Returns the slots that are live at a point.
    fn live(&mut self, program: &Program, point: Point) -> BTreeSet<SlotId> {
        match point {
            Point::After(step) => self.read_from[step + 1].clone(),
            Point::Code { scope, block, .. } => {
                let Scope { body, step, return_site } = self.scopes[scope];
                let mut live = self.read_in(program, body, block).clone();
                match return_site {
                    Some(ReturnSite { scope, block, instr, .. }) => {
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
    /// Returns the block of a point, specialised for the facts that hold here.
    pub(super) fn at(&mut self, point: Point) -> Block {
        let mut known = Facts::default();
        if self.facts.is_special && self.versions.left > 0 {
            known = self.facts.clone();
            let live = self.versions.live(self.program, point);
            known.keep_slots(&live);
            // Every body that runs sets the ending again.
            let last = self.versions.last_run;
            let is_over = matches!(point, Point::After(step) if Some(step) >= last);
            if !is_over {
                known.ending = None;
            }
        }
        let versions = self.versions.of.entry(point).or_default();
        if let Some(version) = versions.iter().find(|version| version.known == known) {
            return version.block;
        }
        if versions.len() >= MAX_VERSIONS && known != Facts::default() {
            known = Facts::default();
            if let Some(version) = versions.iter().find(|version| version.known == known) {
                return version.block;
            }
        }
        let block = self.b.create_block();
        versions.push(Version { known: known.clone(), block });
        self.versions.todo.push((point, known, block));
        block
    }

    /// Jumps to a point.
    pub(super) fn go_to(&mut self, point: Point) {
        let block = self.at(point);
        self.b.ins().jump(block, &[]);
    }

    /// Generates code for all points that have been reached.
    pub(super) fn all_points(&mut self) {
        while let Some((point, known, block)) = self.versions.todo.pop() {
            self.b.switch_to_block(block);
            self.facts = known;
            match point {
                Point::Code { scope, block, instr } => {
                    self.in_scope(scope);
                    self.code(block, instr);
                }
                Point::After(step) => self.after_step(step),
            }
        }
    }

    /// Makes a scope the current one.
    pub(super) fn in_scope(&mut self, scope: usize) {
        self.scope = scope;
        self.at_step(self.versions.scopes[scope].step);
    }

    /// Charges one generated instruction to the budget.
    pub(super) fn spend_budget(&mut self) {
        if self.facts.is_special {
            self.versions.left = self.versions.left.saturating_sub(1);
        }
    }

    /// Returns the scope of the body of a step.
    pub(super) fn scope_of_step(&mut self, step: usize, body: BodyId) -> usize {
        let Versions { scopes, steps, .. } = &mut self.versions;
        *steps.entry(step).or_insert_with(|| {
            scopes.push(Scope { body, step, return_site: None });
            scopes.len() - 1
        })
    }

    /// Returns the scope of an action run by a table that is applied at an instruction of the current scope.
    pub(super) fn scope_of_action(&mut self, body: BodyId, return_site: ReturnSite) -> usize {
        let step = self.step;
        let Versions { scopes, actions, .. } = &mut self.versions;
        *actions.entry(return_site).or_insert_with(|| {
            scopes.push(Scope { body, step, return_site: Some(return_site) });
            scopes.len() - 1
        })
    }

    /// Returns the point at the start of a block of the current scope.
    pub(super) fn block_point(&self, block: BlockId) -> Point {
        Point::Code { scope: self.scope, block, instr: 0 }
    }

    /// Generates a cold path in a block of its own, then restores the current facts.
    pub(super) fn cold_block(&mut self, block: Block, generate: impl FnOnce(&mut Self)) {
        let known = self.facts.clone();
        self.b.set_cold_block(block);
        self.b.switch_to_block(block);
        generate(self);
        self.facts = known;
    }

    /// Ends the body of the current step; the current block is terminated.
    pub(super) fn body_ends(&mut self, ending: u64) {
        self.set_ending(ending);
        if ending == code::REJECT {
            // After an early end, facts are of little use and too varied to specialise for.
            self.facts = Facts::default();
        }
        self.go_to(Point::After(self.step));
    }
}
