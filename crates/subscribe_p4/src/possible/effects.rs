//! Effects of code on headers, as an over-approximation over all paths.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use p4::ast::Direction;
use p4::typed::{
    Arg, Block, Builtin, Call, Callee, Control, Expr, ExprKind, Local, Param, Program, Stmt, StmtKind, Type, VarId,
};

use super::header_paths::{HeaderPaths, Path, place};
use crate::format::HeaderId;

/// Maximum number of statements and calls to visit; longer code has unknown effects.
const MAX_STEPS: u32 = 100_000;

/// Possible changes of a header's validity.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ValidityEffect {
    /// The header may become valid.
    pub set: bool,
    /// The header may become invalid.
    pub unset: bool,
}

/// Effects that may occur on some path.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    /// Headers that may be written; their values become unknown.
    pub headers: BTreeMap<HeaderId, ValidityEffect>,
    /// Whether messages may be written.
    pub messages: bool,
    /// Variables, other than headers, that may be written.
    pub vars: BTreeSet<VarId>,
    /// Whether the parser's cursor may advance.
    pub moves: bool,
    /// Whether an error may occur: in a call, or by access to an absent stack element.
    pub may_fail: bool,
    /// Whether the packet may be cloned.
    pub clones: bool,
    /// Whether the effects are unknown (top).
    pub everything: bool,
}

impl Effects {
    /// Returns the effects of a statement; `headers` is the variable that holds the headers.
    pub fn of_statement(program: &Program, paths: &HeaderPaths<'_>, headers: VarId, of: &Stmt) -> Effects {
        EffectCollector::walk(program, paths, headers, |walker| walker.statement(of))
    }

    /// Returns the effects of an expression.
    pub fn of_expression(program: &Program, paths: &HeaderPaths<'_>, headers: VarId, of: &Expr) -> Effects {
        EffectCollector::walk(program, paths, headers, |walker| walker.expr(of))
    }

    /// Returns the effects of a block.
    pub fn of_block(program: &Program, paths: &HeaderPaths<'_>, headers: VarId, of: &Block) -> Effects {
        EffectCollector::walk(program, paths, headers, |walker| walker.block(of))
    }

    /// Returns the effects of a control whose first parameter holds the headers.
    pub fn of_control(program: &Program, paths: &HeaderPaths<'_>, of: &Control) -> Effects {
        EffectCollector::walk(program, paths, of.params[0].var, |walker| walker.control(of))
    }

    /// Whether anything that a parser can read is written, or the cursor advances.
    pub fn writes(&self) -> bool {
        !self.headers.is_empty() || !self.vars.is_empty() || self.messages || self.moves || self.everything
    }

    /// Joins other effects into these.
    pub fn add(&mut self, other: Effects) {
        for (header, touch) in other.headers {
            let own = self.headers.entry(header).or_default();
            (own.set, own.unset) = (own.set | touch.set, own.unset | touch.unset);
        }
        self.messages |= other.messages;
        self.vars.extend(other.vars);
        self.moves |= other.moves;
        self.may_fail |= other.may_fail;
        self.clones |= other.clones;
        self.everything |= other.everything;
    }
}

/// Kind of a write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteKind {
    Any,
    SetValid,
    SetInvalid,
}

struct EffectCollector<'a> {
    program: &'a Program,
    paths: &'a HeaderPaths<'a>,
    /// Paths of variables that alias headers, or structs that contain headers.
    stands_for: HashMap<VarId, Path>,
    effects: Effects,
    steps: u32,
}

impl<'a> EffectCollector<'a> {
    fn walk(program: &'a Program, paths: &'a HeaderPaths<'a>, headers: VarId, look: impl FnOnce(&mut Self)) -> Effects {
        let stands_for = [(headers, Path::new())].into();
        let mut walker = EffectCollector { program, paths, stands_for, effects: Effects::default(), steps: 0 };
        look(&mut walker);
        let paths = walker.paths;
        if walker.steps > MAX_STEPS {
            walker.effects.everything = true;
        }
        if walker.effects.everything {
            walker.touch(&[], WriteKind::Any);
            walker
                .effects
                .headers
                .extend((0..paths.headers.len()).map(|at| (HeaderId(at), ValidityEffect { set: true, unset: true })));
        }
        walker.effects
    }

    /// Counts a step; `false` once the limit is exceeded.
    fn step(&mut self) -> bool {
        self.steps += 1;
        self.steps <= MAX_STEPS
    }

    fn control(&mut self, control: &Control) {
        self.locals(&control.locals);
        self.block(&control.body);
    }

    fn locals(&mut self, locals: &[Local]) {
        for local in locals {
            if let Local::Var(_, Some(value)) = local {
                self.expr(value);
            }
        }
    }

    fn block(&mut self, block: &Block) {
        block.statements.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Stmt) {
        if !self.step() {
            return;
        }
        match &statement.kind {
            StmtKind::Var(var, value) => {
                self.effects.vars.insert(*var);
                value.iter().for_each(|value| self.expr(value));
            }
            StmtKind::Assign { lhs, rhs, .. } => {
                self.expr(lhs);
                self.expr(rhs);
                self.write(lhs, WriteKind::Any);
            }
            StmtKind::Call(call) => self.call(call),
            StmtKind::If(condition, yes, no) => {
                self.expr(condition);
                self.statement(yes);
                no.iter().for_each(|no| self.statement(no));
            }
            StmtKind::Switch { subject, cases, default } => {
                self.expr(subject);
                cases.iter().for_each(|(_, body)| self.block(body));
                default.iter().for_each(|body| self.block(body));
            }
            StmtKind::SwitchAction { apply, cases, default, .. } => {
                self.call(apply);
                cases.iter().for_each(|(_, body)| self.block(body));
                default.iter().for_each(|body| self.block(body));
            }
            StmtKind::For { init, condition, update, body } => {
                init.iter().chain(update).for_each(|statement| self.statement(statement));
                self.expr(condition);
                self.statement(body);
            }
            StmtKind::ForRange { var, low, high, body } => {
                self.effects.vars.insert(*var);
                self.expr(low);
                self.expr(high);
                self.statement(body);
            }
            StmtKind::ForEach { var, items, body } => {
                self.effects.vars.insert(*var);
                self.expr(items);
                self.statement(body);
            }
            StmtKind::Block(block) => self.block(block),
            StmtKind::Return(value) => value.iter().for_each(|value| self.expr(value)),
            StmtKind::Exit | StmtKind::Break | StmtKind::Continue | StmtKind::Empty => {}
        }
    }

    fn expr(&mut self, e: &Expr) {
        self.effects.may_fail |= matches!(e.kind, ExprKind::Next(_) | ExprKind::Last(_));
        e.children().for_each(|child| self.expr(child));
        if let Some(call) = e.call() {
            self.call(call);
        }
    }

    fn call(&mut self, call: &Call) {
        if !self.step() {
            return;
        }
        let program = self.program;
        for arg in &call.args {
            if let Arg::Expr(e) = arg {
                self.expr(e);
            }
        }
        self.effects.may_fail |= !matches!(call.callee, Callee::Builtin(..));
        match &call.callee {
            Callee::Function(id) => {
                let of = &program.functions[*id];
                self.enter(&of.params, &call.args);
                self.block(&of.body);
            }
            Callee::Action(id) => {
                let of = &program.actions[*id];
                self.enter(&of.params, &call.args);
                self.block(&of.body);
            }
            Callee::Table(id) => {
                let table = &program.tables[*id];
                table.keys.iter().for_each(|key| self.expr(&key.expr));
                for action in &table.actions {
                    let of = &program.actions[action.action];
                    let directed: Vec<Param> =
                        of.params.iter().filter(|param| param.direction != Direction::None).cloned().collect();
                    self.enter(&directed, &action.args);
                    self.block(&of.body);
                }
            }
            Callee::ExternFn(id, _) => {
                let of = &program.extern_fns[*id];
                self.effects.clones |= ["clone", "clone_preserving_field_list"].contains(&&*of.name);
                let ways = of.params.iter().map(|(_, way)| *way);
                self.results(&call.args, ways);
            }
            Callee::Method { object, of, method, .. } => {
                self.expr(object);
                let of = &program.externs[*of];
                let method = of.methods.get(*method);
                let stays = method.is_some_and(|method| ["lookahead", "length"].contains(&&*method.name));
                self.effects.moves |= &*of.name == "packet_in" && !stays;
                let ways = method.iter().flat_map(|method| method.params.iter().map(|(_, way)| *way));
                self.results(&call.args, ways.collect::<Vec<_>>().into_iter());
            }
            Callee::Apply(object) => match &object.ty {
                Type::Control(id) => {
                    let of = &program.controls[*id];
                    self.enter(&of.params, &call.args);
                    self.control(of);
                }
                Type::Parser(id) => {
                    let of = &program.parsers[*id];
                    self.enter(&of.params, &call.args);
                    self.locals(&of.locals);
                    for state in &of.states {
                        self.block(&state.body);
                        if let p4::typed::Transition::Select { exprs, .. } = &state.transition {
                            exprs.iter().for_each(|e| self.expr(e));
                        }
                    }
                    self.effects.moves = true;
                }
                // The instance determines the callee, which is unknown here.
                _ => {
                    self.results(&call.args, call.args.iter().map(|_| Direction::InOut));
                    self.effects.moves = true;
                }
            },
            Callee::Builtin(method, object) => {
                self.expr(object);
                match method {
                    Builtin::SetValid => self.write(object, WriteKind::SetValid),
                    Builtin::SetInvalid => self.write(object, WriteKind::SetInvalid),
                    Builtin::PushFront(_) | Builtin::PopFront(_) => self.write(object, WriteKind::Any),
                    Builtin::IsValid | Builtin::Size => {}
                }
            }
        }
    }

    /// Binds a callee's parameters to the paths of its arguments.
    fn enter(&mut self, params: &[Param], args: &[Arg]) {
        for (param, arg) in params.iter().zip(args) {
            self.stands_for.remove(&param.var);
            let is_result = matches!(param.direction, Direction::Out | Direction::InOut);
            let (true, Arg::Expr(e)) = (is_result, arg) else { continue };
            let path = self.path(e);
            // Headers of `out` parameters are initially invalid, and arguments without a path are not tracked
            // otherwise.
            if param.direction == Direction::Out || path.is_none() {
                self.write(e, WriteKind::Any);
            }
            if let Some(path) = path {
                self.stands_for.insert(param.var, path);
            }
        }
    }

    /// Records writes to the `out` and `inout` arguments of a call.
    fn results(&mut self, args: &[Arg], ways: impl Iterator<Item = Direction>) {
        for (arg, way) in args.iter().zip(ways) {
            if let (Direction::Out | Direction::InOut, Arg::Expr(e)) = (way, arg) {
                self.write(e, WriteKind::Any);
            }
        }
    }

    /// Returns the part of the headers that an expression denotes.
    fn path(&self, e: &Expr) -> Option<Path> {
        let (var, within) = place(e)?;
        let mut path = self.stands_for.get(&var)?.clone();
        path.extend(within);
        Some(path)
    }

    fn write(&mut self, e: &Expr, how: WriteKind) {
        match (self.path(e), place(e)) {
            (Some(path), _) => self.touch(&path, how),
            (None, Some((var, _))) => drop(self.effects.vars.insert(var)),
            // No other expression is an l-value.
            (None, None) => self.effects.everything = true,
        }
    }

    fn touch(&mut self, path: &[usize], how: WriteKind) {
        self.effects.messages |= self.paths.is_of_messages(path);
        for (at, of) in self.paths.headers.iter().enumerate().filter(|(_, of)| !of.in_message) {
            if of.path.starts_with(path) {
                let touch = self.effects.headers.entry(HeaderId(at)).or_default();
                touch.set |= how != WriteKind::SetInvalid;
                touch.unset |= how != WriteKind::SetValid;
                for sibling in &of.siblings {
                    self.effects.headers.entry(*sibling).or_default().unset = true;
                }
            } else if path.starts_with(&of.path) {
                self.effects.headers.entry(HeaderId(at)).or_default();
            }
        }
    }
}
