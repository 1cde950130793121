//! What variables and headers may be at each point of a body, from its beginning to its ends.
//!
//! Actions are looked at twice: once for what they leave behind ([`Flow::effect`]), which is what a call of them or of a table
//! with them does; once for what is wrong in them, whoever calls them. Functions, sub-parsers, sub-controls and externs are taken by the
//! directions of their parameters. Elements of stacks and members of unions are not followed.

mod call;
mod expr;
mod parser;
mod shape;

use std::collections::{HashMap, HashSet};

use diagnostics::Diagnostic;

use super::state::{May, Path, State};
use super::{Findings, MAX_STEPS};
use crate::ast::{Direction, StructKind};
use crate::typed::{ActionId, Block, Expr, Local, Param, Program, Stmt, StmtKind, StructId, VarId};
use shape::{EMPTY, Shape};

/// Loops that nest deeper than this are taken as doing anything.
const MAX_LOOPS: u32 = 3;

/// Looks at every body of the program.
pub(super) fn program(program: &Program, findings: &mut Findings<'_>) {
    let mut flow = Flow {
        program,
        findings,
        effects: HashMap::new(),
        quiet: 0,
        steps: 0,
        loops: Vec::new(),
        exits: State::dead(),
        reported: HashSet::new(),
        shapes: HashMap::new(),
    };
    // A struct is declared behind those it consists of.
    for (id, decl) in &program.structs {
        let fields = decl.fields.iter().fold(EMPTY, |sum, field| sum.and(flow.shape(&field.ty)));
        let has_header = fields.has_header || decl.kind != StructKind::Struct;
        flow.shapes.insert(id, Shape { has_header, ..fields });
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

/// A loop that is being looked at: what holds where it is left, and where it goes on.
struct Loop {
    breaks: State,
    continues: State,
}

struct Flow<'p, 'f, 'm> {
    program: &'p Program,
    findings: &'f mut Findings<'m>,
    /// What actions leave behind.
    effects: HashMap<ActionId, State>,
    /// Above 0, nothing is reported.
    quiet: u32,
    steps: u32,
    loops: Vec<Loop>,
    /// What holds where the body is left by `return`.
    exits: State,
    /// What was reported: once is enough for each part of a variable, read (`false`) or written (`true`).
    reported: HashSet<(Path, bool)>,
    shapes: HashMap<StructId, Shape>,
}

impl Flow<'_, '_, '_> {
    fn begin(&mut self, params: &[Param]) -> State {
        let mut state = State::default();
        for param in params.iter().filter(|param| param.direction == Direction::Out) {
            state.set(&whole(param.var), May::OFF);
        }
        self.exits = State::dead();
        state
    }

    /// A body; what holds at its ends is in `state` afterwards.
    fn body(&mut self, block: &Block, state: &mut State) {
        self.block(block, state);
        let mut exits = std::mem::replace(&mut self.exits, State::dead());
        forget(block, &mut exits);
        self.meet(state, &exits);
    }

    /// Counts work on a state.
    fn spend(&mut self, state: &State) {
        self.steps = self.steps.saturating_add(state.cost());
    }

    /// Whether the program takes too much work, and is given up on.
    fn is_exhausted(&self) -> bool {
        self.steps >= MAX_STEPS
    }

    /// The state a second way goes on with.
    fn fork(&mut self, state: &State) -> State {
        self.spend(state);
        state.clone()
    }

    /// What holds where two ways meet.
    fn meet(&mut self, state: &mut State, other: &State) {
        self.spend(state);
        self.spend(other);
        state.join(other);
    }

    /// Reports `out` parameters that never got a value.
    fn end(&mut self, params: &[Param], state: &State) {
        for param in params.iter().filter(|param| param.direction == Direction::Out) {
            let var = &self.program.vars[param.var];
            let shape = self.shape(&var.ty);
            if state.dead || shape.has_header || shape.is_empty || state.within(&whole(param.var)) != May::OFF {
                continue;
            }
            let message = format!("`out` parameter `{}` never gets a value", var.name);
            self.report(Diagnostic::warning("uninitialized-out", var.span, message));
        }
    }

    fn report_once(&mut self, path: &Path, is_write: bool, diagnostic: Diagnostic) {
        if self.quiet == 0 && self.reported.insert((path.clone(), is_write)) {
            self.report(diagnostic);
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.quiet == 0 && !self.is_exhausted() {
            self.findings.push(diagnostic);
        }
    }

    fn locals(&mut self, locals: &[Local], state: &mut State) {
        for local in locals {
            if let Local::Var(var, init) = local {
                self.declare(*var, init.as_ref(), state);
            }
        }
    }

    fn declare(&mut self, var: VarId, init: Option<&Expr>, state: &mut State) {
        let may = match init {
            Some(init) => {
                self.read(init, state);
                self.may_of(init, state)
            }
            None => May::OFF,
        };
        state.set(&whole(var), may);
    }

    fn block(&mut self, block: &Block, state: &mut State) {
        for stmt in &block.statements {
            self.stmt(stmt, state);
        }
        forget(block, state);
    }

    fn stmt(&mut self, stmt: &Stmt, state: &mut State) {
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

    fn switch<'b>(&mut self, cases: impl Iterator<Item = &'b Block>, default: Option<&'b Block>, state: &mut State) {
        let before = self.fork(state);
        let mut after = if default.is_some() { State::dead() } else { self.fork(&before) };
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

    fn each(&mut self, var: VarId, body: &Stmt, state: &mut State) {
        self.repeat(state, |flow, state| {
            let after = flow.fork(state);
            state.set(&whole(var), May::UNKNOWN);
            flow.stmt(body, state);
            flow.join_continues(state);
            after
        });
    }

    /// What holds where a loop's body goes on: at its end, or at a `continue`.
    fn join_continues(&mut self, state: &mut State) {
        self.spend(state);
        if let Some(inner) = self.loops.last() {
            state.join(&inner.continues);
        }
    }

    /// A loop. `round` goes from the head of the loop to its head again, and gives what holds where it ends.
    fn repeat(&mut self, state: &mut State, mut round: impl FnMut(&mut Self, &mut State) -> State) {
        let mut run = |flow: &mut Self, head: &State| {
            flow.loops.push(Loop { breaks: State::dead(), continues: State::dead() });
            let mut again = flow.fork(head);
            let mut after = round(flow, &mut again);
            if let Some(inner) = flow.loops.pop() {
                flow.meet(&mut after, &inner.breaks);
            }
            (again, after)
        };
        // Each possibility is added once, so that this ends; loops in loops take turns, hence the limit.
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

/// A block's own variables are gone behind it.
fn forget(block: &Block, state: &mut State) {
    for stmt in &block.statements {
        if let StmtKind::Var(var, _) = stmt.kind {
            state.forget(&whole(var));
        }
    }
}

fn whole(var: VarId) -> Path {
    Path { var, fields: Vec::new() }
}
