//! Data-flow analysis: the possible states of variables and headers at each point of a body.
//!
//! Actions are analysed twice: once for their effect ([`Flow::effect`]), which is applied at calls of the action and of
//! tables with it, and once for their own mistakes, independently of the callers. The effects of functions,
//! sub-parsers, sub-controls and externs follow from the directions of their parameters. Elements of stacks and members
//! of unions are not tracked.

mod call;
mod expr;
mod parser;
mod type_traits;

use std::collections::{HashMap, HashSet};

use diagnostics::Diagnostic;

use super::state::{AbstractValue, FlowState, PartPath};
use super::{MAX_STEPS, Warnings};
use crate::ast::{Direction, StructKind};
use crate::typed::{ActionId, Block, Expr, Local, Param, Program, Stmt, StmtKind, StructId, VarId};
use type_traits::{EMPTY, TypeTraits};

/// Maximum nesting depth of analysed loops; a deeper one is assumed to have any effect.
const MAX_LOOPS: u32 = 3;

/// Analyses every body of the program.
pub(super) fn program(program: &Program, findings: &mut Warnings<'_>) {
    let mut flow = Flow {
        program,
        findings,
        effects: HashMap::new(),
        quiet: 0,
        steps: 0,
        loops: Vec::new(),
        exits: FlowState::dead(),
        reported: HashSet::new(),
        shapes: HashMap::new(),
    };
    // A struct is declared after those it contains.
    for (id, decl) in &program.structs {
        let fields = decl.fields.iter().fold(EMPTY, |sum, field| sum.and(flow.type_traits(&field.ty)));
        let has_header = fields.has_header || decl.kind != StructKind::Struct;
        flow.shapes.insert(id, TypeTraits { has_header, ..fields });
    }
    for function in program.functions.values() {
        let mut state = flow.begin(&function.params);
        flow.body(&function.body, &mut state);
        flow.end(&function.params, &state);
    }
    for action in program.actions.values() {
        let mut state = flow.begin(&action.params);
        flow.body(&action.body, &mut state);
        flow.end(&action.params, &state);
    }
    for control in program.controls.values() {
        let mut state = flow.begin(&control.params);
        flow.locals(&control.locals, &mut state);
        flow.body(&control.body, &mut state);
        flow.end(&control.params, &state);
    }
    for parser in program.parsers.values() {
        flow.parser(parser);
    }
}

/// A loop being analysed: the states at its exits and at `continue`.
struct Loop {
    breaks: FlowState,
    continues: FlowState,
}

struct Flow<'p, 'f, 'm> {
    program: &'p Program,
    findings: &'f mut Warnings<'m>,
    /// Effects of actions.
    effects: HashMap<ActionId, FlowState>,
    /// Nothing is reported while this is above 0.
    quiet: u32,
    steps: u32,
    loops: Vec<Loop>,
    /// State at the exits of the body by `return`.
    exits: FlowState,
    /// Diagnostics already reported: one is enough for each part of a variable, read (`false`) or written (`true`).
    reported: HashSet<(PartPath, bool)>,
    shapes: HashMap<StructId, TypeTraits>,
}

impl Flow<'_, '_, '_> {
    fn begin(&mut self, params: &[Param]) -> FlowState {
        let mut state = FlowState::default();
        for param in params.iter().filter(|param| param.direction == Direction::Out) {
            state.set(&whole(param.var), AbstractValue::OFF);
        }
        self.exits = FlowState::dead();
        state
    }

    /// Analyses a body. Afterwards, `state` is the join of the states at its exits.
    fn body(&mut self, block: &Block, state: &mut FlowState) {
        self.block(block, state);
        let mut exits = std::mem::replace(&mut self.exits, FlowState::dead());
        forget(block, &mut exits);
        self.meet(state, &exits);
    }

    /// Counts work on a state.
    fn spend(&mut self, state: &FlowState) {
        self.steps = self.steps.saturating_add(state.cost());
    }

    /// Whether the program exceeds the work limit, so the analysis is abandoned.
    fn is_exhausted(&self) -> bool {
        self.steps >= MAX_STEPS
    }

    /// Copies the state for a second path.
    fn fork(&mut self, state: &FlowState) -> FlowState {
        self.spend(state);
        state.clone()
    }

    /// Joins the states of two paths.
    fn meet(&mut self, state: &mut FlowState, other: &FlowState) {
        self.spend(state);
        self.spend(other);
        state.join(other);
    }

    /// Reports `out` parameters that are never assigned.
    fn end(&mut self, params: &[Param], state: &FlowState) {
        for param in params.iter().filter(|param| param.direction == Direction::Out) {
            let var = &self.program.vars[param.var];
            let shape = self.type_traits(&var.ty);
            if state.dead || shape.has_header || shape.is_empty || state.within(&whole(param.var)) != AbstractValue::OFF
            {
                continue;
            }
            let message = format!("`out` parameter `{}` is never assigned", var.name);
            self.report(Diagnostic::warning("uninitialized-out", var.span, message));
        }
    }

    fn report_once(&mut self, path: &PartPath, is_write: bool, diagnostic: Diagnostic) {
        if self.quiet == 0 && self.reported.insert((path.clone(), is_write)) {
            self.report(diagnostic);
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.quiet == 0 && !self.is_exhausted() {
            self.findings.push(diagnostic);
        }
    }

    fn locals(&mut self, locals: &[Local], state: &mut FlowState) {
        for local in locals {
            if let Local::Var(var, init) = local {
                self.declare(*var, init.as_ref(), state);
            }
        }
    }

    fn declare(&mut self, var: VarId, init: Option<&Expr>, state: &mut FlowState) {
        let may = match init {
            Some(init) => {
                self.read(init, state);
                self.may_of(init, state)
            }
            None => AbstractValue::OFF,
        };
        state.set(&whole(var), may);
    }

    fn block(&mut self, block: &Block, state: &mut FlowState) {
        for stmt in &block.statements {
            self.stmt(stmt, state);
        }
        forget(block, state);
    }

    fn stmt(&mut self, stmt: &Stmt, state: &mut FlowState) {
        if state.dead || self.is_exhausted() {
            return;
        }
        self.steps += 1;
        match &stmt.kind {
            StmtKind::Var(var, init) => self.declare(*var, init.as_ref(), state),
            StmtKind::Assign { lhs, op, rhs } => {
                self.read(rhs, state);
                if op.is_some() {
                    self.read(lhs, state);
                }
                let may = self.may_of(rhs, state);
                self.write(lhs, may, state);
            }
            StmtKind::Call(call) => self.call(call, state),
            StmtKind::If(condition, then, otherwise) => {
                self.read(condition, state);
                let mut other = self.fork(state);
                self.assume(condition, true, state);
                self.assume(condition, false, &mut other);
                self.stmt(then, state);
                if let Some(otherwise) = otherwise {
                    self.stmt(otherwise, &mut other);
                }
                self.meet(state, &other);
            }
            StmtKind::Switch { subject, cases, default } => {
                self.read(subject, state);
                self.switch(cases.iter().map(|(_, block)| block), default.as_ref(), state);
            }
            StmtKind::SwitchAction { apply, cases, default, .. } => {
                self.call(apply, state);
                self.switch(cases.iter().map(|(_, block)| block), default.as_ref(), state);
            }
            StmtKind::For { init, condition, update, body } => {
                for stmt in init {
                    self.stmt(stmt, state);
                }
                self.repeat(state, |flow, state| {
                    flow.read(condition, state);
                    let after = flow.fork(state);
                    flow.stmt(body, state);
                    flow.join_continues(state);
                    for stmt in update {
                        flow.stmt(stmt, state);
                    }
                    after
                });
            }
            StmtKind::ForRange { var, low, high, body } => {
                self.read(low, state);
                self.read(high, state);
                self.each(*var, body, state);
            }
            StmtKind::ForEach { var, items, body } => {
                self.read(items, state);
                self.each(*var, body, state);
            }
            StmtKind::Block(block) => self.block(block, state),
            StmtKind::Return(e) => {
                if let Some(e) = e {
                    self.read(e, state);
                }
                self.spend(state);
                self.exits.join(state);
                state.dead = true;
            }
            StmtKind::Exit => state.dead = true,
            StmtKind::Break | StmtKind::Continue => {
                let is_break = matches!(stmt.kind, StmtKind::Break);
                self.spend(state);
                if let Some(inner) = self.loops.last_mut() {
                    if is_break { inner.breaks.join(state) } else { inner.continues.join(state) }
                }
                state.dead = true;
            }
            StmtKind::Empty => {}
        }
    }

    fn switch<'b>(
        &mut self,
        cases: impl Iterator<Item = &'b Block>,
        default: Option<&'b Block>,
        state: &mut FlowState,
    ) {
        let before = self.fork(state);
        let mut after = if default.is_some() { FlowState::dead() } else { self.fork(&before) };
        for block in cases.chain(default) {
            if self.is_exhausted() {
                return;
            }
            let mut inner = self.fork(&before);
            self.block(block, &mut inner);
            self.meet(&mut after, &inner);
        }
        *state = after;
    }

    fn each(&mut self, var: VarId, body: &Stmt, state: &mut FlowState) {
        self.repeat(state, |flow, state| {
            let after = flow.fork(state);
            state.set(&whole(var), AbstractValue::UNKNOWN);
            flow.stmt(body, state);
            flow.join_continues(state);
            after
        });
    }

    /// Joins the states at the end of a loop's body and at each `continue`.
    fn join_continues(&mut self, state: &mut FlowState) {
        self.spend(state);
        if let Some(inner) = self.loops.last() {
            state.join(&inner.continues);
        }
    }

    /// Analyses a loop. `round` analyses one iteration from the head of the loop to its head again, and returns the
    /// state at its exit.
    fn repeat(&mut self, state: &mut FlowState, mut round: impl FnMut(&mut Self, &mut FlowState) -> FlowState) {
        let mut run = |flow: &mut Self, head: &FlowState| {
            flow.loops.push(Loop { breaks: FlowState::dead(), continues: FlowState::dead() });
            let mut again = flow.fork(head);
            let mut after = round(flow, &mut again);
            if let Some(inner) = flow.loops.pop() {
                flow.meet(&mut after, &inner.breaks);
            }
            (again, after)
        };
        // Each possibility is added once, which guarantees termination; nested loops multiply the iterations, hence the
        // limit.
        if self.loops.len() as u32 >= MAX_LOOPS {
            self.steps = MAX_STEPS;
            return;
        }
        let mut head = self.fork(state);
        self.quiet += 1;
        loop {
            let (again, _) = run(self, &head);
            let before = self.fork(&head);
            self.meet(&mut head, &again);
            if head == before || self.is_exhausted() {
                break;
            }
        }
        self.quiet -= 1;
        let (_, after) = run(self, &head);
        *state = after;
    }
}

/// Removes a block's own variables from the state after it.
fn forget(block: &Block, state: &mut FlowState) {
    for stmt in &block.statements {
        if let StmtKind::Var(var, _) = stmt.kind {
            state.forget(&whole(var));
        }
    }
}

fn whole(var: VarId) -> PartPath {
    PartPath { var, fields: Vec::new() }
}
