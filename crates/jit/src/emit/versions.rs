//! Specialises code: one version of the code for each set of facts, within a budget.
//!
//! A program is a graph of *points*: blocks of bodies, the points after tables, and the ends of bodies. Code for a
//! point is generated when a branch leads there, once for each set of facts ([`Facts`]) that reaches it: a *version*.
//! So each path through the parser gets its own controls and deparser, in which positions and validity of headers are
//! constants, and so does the code after an action that establishes a fact. Where there would be too many versions, a
//! generic version without facts serves all. Packets that the parser rejects also get the generic version: they are
//! few.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cranelift_codegen::ir::{Block, InstBuilder};
use ir::{BlockId, Body, BodyId, HeaderRef, Op, Program, SlotId};

use super::Emit;
use super::facts::Facts;
use crate::bit_set::BitSet;
use crate::walk::{self, Use, slots_of};
use crate::{Step, code};

/// Maximum number of versions of one point.
const MAX_VERSIONS: usize = 8;
/// Maximum number of IR instructions in specialised versions; later code is shared.
const BUDGET: usize = 3000;
/// The same for large units, for which generic code is long enough to compile.
const BUDGET_OF_LARGE: usize = BUDGET / 2;
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
    /// Slots that conditions anywhere in the unit depend on, numbered: only their values are facts.
    tracked: BTreeMap<SlotId, usize>,
    /// Those of them that are read in each step or a later one.
    read_from: Vec<BitSet>,
    /// Those of them that are read in each block of a body, or in that body after it.
    read_in: HashMap<BodyId, Vec<BitSet>>,
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

impl Versions {
    /// Analyses a unit; `is_special` allows several versions of a point.
    pub fn new(program: &Program, steps: &[Step], is_special: bool, is_large: bool) -> Versions {
        let budget = if is_large { BUDGET_OF_LARGE } else { BUDGET };
        let mut versions = Versions { left: if is_special { budget } else { 0 }, ..Versions::default() };
        if !is_special || walk::instructions(program, steps) > MAX_UNIT_SIZE {
            versions.left = 0;
            return versions;
        }
        let mut branched = BTreeSet::new();
        for (index, step) in steps.iter().enumerate() {
            match step {
                Step::Run(body) => {
                    versions.last_run = Some(index);
                    let bodies: BTreeSet<BodyId> = walk::bodies(program, *body).into_iter().collect();
                    bodies.iter().for_each(|body| branch_slots(&program.bodies[*body], &mut branched));
                }
                Step::StopUnless(slot, _) | Step::DropIf(slot, _) | Step::Copy(_, slot) => _ = branched.insert(*slot),
                _ => {}
            }
        }
        branched.retain(|slot| (1..=64).contains(&program.slots[*slot].width));
        versions.tracked = branched.into_iter().enumerate().map(|(number, slot)| (slot, number)).collect();
        let mut read = BitSet::new(versions.tracked.len());
        versions.read_from = vec![read.clone(); steps.len() + 1];
        for (index, step) in steps.iter().enumerate().rev() {
            match step {
                Step::Run(body) => walk::whole_body(program, *body, &mut |used| versions.add_read(used, &mut read)),
                Step::StopUnless(slot, _) | Step::DropIf(slot, _) | Step::Copy(_, slot) | Step::Keep(_, slot) => {
                    versions.add_read(Use::Read(*slot), &mut read);
                }
                Step::ErrorTo(_)
                | Step::TimeTo(_)
                | Step::InputTo(..)
                | Step::LengthTo(_)
                | Step::Measure
                | Step::PresentLengthTo(_)
                | Step::Set(..)
                | Step::StopIfRequested
                | Step::StopUnlessWaiting(_) => {}
            }
            versions.read_from[index] = read.clone();
        }
        versions
    }

    /// Adds a slot that is read to a set, if it is tracked.
    fn add_read(&self, used: Use<'_>, into: &mut BitSet) {
        if let Use::Read(slot) = used
            && let Some(number) = self.tracked.get(&slot)
        {
            into.insert(*number);
        }
    }

    pub fn scope(&self, scope: usize) -> Scope {
        self.scopes[scope]
    }

    /// Returns, for each block of a body, the tracked slots that are read in it or in that body after it.
    fn read_in_body(&self, program: &Program, id: BodyId) -> Vec<BitSet> {
        let body = &program.bodies[id];
        let own = |block: &ir::Block| {
            let mut read = BitSet::new(self.tracked.len());
            let mut tables = BTreeSet::new();
            walk::block(program, block, &mut |used| match used {
                Use::Apply(table) => _ = tables.insert(table),
                used => self.add_read(used, &mut read),
            });
            for action in tables.into_iter().flat_map(|table| &program.tables[table].actions) {
                let body = &program.bodies[program.actions[action.action].body];
                walk::body(program, body, &mut |used| self.add_read(used, &mut read));
            }
            read
        };
        let mut read: Vec<BitSet> = body.blocks.values().map(own).collect();
        // Most blocks come before their successors, so one round and one that changes nothing suffice.
        let mut has_changed = true;
        while std::mem::take(&mut has_changed) {
            for (at, block) in body.blocks.values().enumerate().rev() {
                walk::targets(&block.terminator, &mut |to| {
                    let behind = std::mem::take(&mut read[to.as_u32() as usize]);
                    if to.as_u32() as usize != at {
                        has_changed |= read[at].add_all(&behind);
                    }
                    read[to.as_u32() as usize] = behind;
                });
            }
        }
        read
    }

    /// Drops the values of slots that are not live at a point.
    fn keep_live(&mut self, program: &Program, point: Point, known: &mut Facts) {
        let mut blocks = Vec::new();
        let mut at = point;
        let after = loop {
            match at {
                Point::After(step) => break step,
                Point::Code { scope, block, .. } => {
                    let Scope { body, step, return_site } = self.scopes[scope];
                    if !self.read_in.contains_key(&body) {
                        let read = self.read_in_body(program, body);
                        self.read_in.insert(body, read);
                    }
                    blocks.push((body, block));
                    at = match return_site {
                        Some(ReturnSite { scope, block, instr, .. }) => Point::Code { scope, block, instr },
                        None => Point::After(step),
                    };
                }
            }
        };
        known.slots.retain(|slot, _| {
            self.tracked.get(slot).is_some_and(|number| {
                let in_block =
                    |(body, block): &(BodyId, BlockId)| self.read_in[body][block.as_u32() as usize].contains(*number);
                blocks.iter().any(in_block) || self.read_from[after + 1].contains(*number)
            })
        });
    }

    pub fn is_tracked(&self, slot: SlotId) -> bool {
        self.tracked.contains_key(&slot)
    }
}

impl Emit<'_, '_> {
    /// Returns the block of a point, specialised for the facts that hold here.
    pub(super) fn at(&mut self, point: Point) -> Block {
        let mut known = Facts::default();
        if self.facts.is_special && self.versions.left > 0 {
            known = self.facts.clone();
            self.versions.keep_live(self.program, point, &mut known);
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
