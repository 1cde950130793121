//! What code may do to headers, whichever way it goes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use p4::ast::Direction;
use p4::typed::{
    Arg, Block, Builtin, Call, Callee, Control, Expr, ExprKind, Local, Param, Program, Stmt, StmtKind, Type, VarId,
};

use super::places::{Path, Places, place};
use crate::format::HeaderId;

/// Statements and calls that are looked at; of longer code nothing is known.
const MOST: u32 = 100_000;

/// What may happen to a header.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Touch {
    /// It may become valid.
    pub set: bool,
    /// It may become invalid.
    pub unset: bool,
}

/// What may happen.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    /// Headers that are written to; their values are not known any more.
    pub headers: BTreeMap<HeaderId, Touch>,
    /// Messages are written to.
    pub messages: bool,
    /// Variables that are no headers.
    pub vars: BTreeSet<VarId>,
    /// The parser goes on in the packet.
    pub moves: bool,
    /// Something may find an error: a call, or an element of a stack that is not there.
    pub may_fail: bool,
    /// Anything may happen.
    pub everything: bool,
}

impl Effects {
    /// Those of a statement where the headers are in this variable.
    pub fn of_statement(program: &Program, places: &Places<'_>, headers: VarId, of: &Stmt) -> Effects {
        Walker::walk(program, places, headers, |walker| walker.statement(of))
    }

    /// Those of an expression.
    pub fn of_expression(program: &Program, places: &Places<'_>, headers: VarId, of: &Expr) -> Effects {
        Walker::walk(program, places, headers, |walker| walker.expr(of))
    }

    /// Those of statements.
    pub fn of_block(program: &Program, places: &Places<'_>, headers: VarId, of: &Block) -> Effects {
        Walker::walk(program, places, headers, |walker| walker.block(of))
    }

    /// Those of a control whose first parameter are the headers.
    pub fn of_control(program: &Program, places: &Places<'_>, of: &Control) -> Effects {
        Walker::walk(program, places, of.params[0].var, |walker| walker.control(of))
    }

    /// Whether something is written that a parser could ask, or it goes on in the packet.
    pub fn writes(&self) -> bool {
        !self.headers.is_empty() || !self.vars.is_empty() || self.messages || self.moves || self.everything
    }

    /// These and others.
    pub fn add(&mut self, other: Effects) {
        for (header, touch) in other.headers {
            let own = self.headers.entry(header).or_default();
            (own.set, own.unset) = (own.set | touch.set, own.unset | touch.unset);
        }
        self.messages |= other.messages;
        self.vars.extend(other.vars);
        self.moves |= other.moves;
        self.may_fail |= other.may_fail;
        self.everything |= other.everything;
    }
}

/// How something is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Write {
    Any,
    SetValid,
    SetInvalid,
}

struct Walker<'a> {
    program: &'a Program,
    places: &'a Places<'a>,
    /// Variables that stand for headers, or for structs with some.
    stands_for: HashMap<VarId, Path>,
    effects: Effects,
    steps: u32,
}

impl<'a> Walker<'a> {
    fn walk(program: &'a Program, places: &'a Places<'a>, headers: VarId, look: impl FnOnce(&mut Self)) -> Effects {
        let stands_for = [(headers, Path::new())].into();
        let mut walker = Walker { program, places, stands_for, effects: Effects::default(), steps: 0 };
        look(&mut walker);
        let places = walker.places;
        if walker.steps > MOST {
            walker.effects.everything = true;
        }
        if walker.effects.everything {
            walker.touch(&[], Write::Any);
            walker
                .effects
                .headers
                .extend((0..places.headers.len()).map(|at| (HeaderId(at), Touch { set: true, unset: true })));
        }
        walker.effects
    }

    /// Whether there was not too much already.
    fn step(&mut self) -> bool {
        self.steps += 1;
        self.steps <= MOST
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
                self.write(lhs, Write::Any);
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
                let ways = program.extern_fns[*id].params.iter().map(|(_, way)| *way);
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
                // Which one it is the instance says.
                _ => {
                    self.results(&call.args, call.args.iter().map(|_| Direction::InOut));
                    self.effects.moves = true;
                }
            },
            Callee::Builtin(method, object) => {
                self.expr(object);
                match method {
                    Builtin::SetValid => self.write(object, Write::SetValid),
                    Builtin::SetInvalid => self.write(object, Write::SetInvalid),
                    Builtin::PushFront(_) | Builtin::PopFront(_) => self.write(object, Write::Any),
                    Builtin::IsValid | Builtin::Size => {}
                }
            }
        }
    }

    /// What a callee's parameters stand for.
    fn enter(&mut self, params: &[Param], args: &[Arg]) {
        for (param, arg) in params.iter().zip(args) {
            self.stands_for.remove(&param.var);
            let is_result = matches!(param.direction, Direction::Out | Direction::InOut);
            let (true, Arg::Expr(e)) = (is_result, arg) else { continue };
            let path = self.path(e);
            // Headers are invalid at first, and what is written back is not looked after otherwise.
            if param.direction == Direction::Out || path.is_none() {
                self.write(e, Write::Any);
            }
            if let Some(path) = path {
                self.stands_for.insert(param.var, path);
            }
        }
    }

    /// Arguments that something else writes to.
    fn results(&mut self, args: &[Arg], ways: impl Iterator<Item = Direction>) {
        for (arg, way) in args.iter().zip(ways) {
            if let (Direction::Out | Direction::InOut, Arg::Expr(e)) = (way, arg) {
                self.write(e, Write::Any);
            }
        }
    }

    /// The part of the headers that an expression names.
    fn path(&self, e: &Expr) -> Option<Path> {
        let (var, within) = place(e)?;
        let mut path = self.stands_for.get(&var)?.clone();
        path.extend(within);
        Some(path)
    }

    fn write(&mut self, e: &Expr, how: Write) {
        match (self.path(e), place(e)) {
            (Some(path), _) => self.touch(&path, how),
            (None, Some((var, _))) => drop(self.effects.vars.insert(var)),
            // Nothing can be written to any other.
            (None, None) => self.effects.everything = true,
        }
    }

    fn touch(&mut self, path: &[usize], how: Write) {
        self.effects.messages |= self.places.is_of_messages(path);
        for (at, of) in self.places.headers.iter().enumerate().filter(|(_, of)| !of.in_message) {
            if of.path.starts_with(path) {
                let touch = self.effects.headers.entry(HeaderId(at)).or_default();
                touch.set |= how != Write::SetInvalid;
                touch.unset |= how != Write::SetValid;
                for sibling in &of.siblings {
                    self.effects.headers.entry(*sibling).or_default().unset = true;
                }
            } else if path.starts_with(&of.path) {
                self.effects.headers.entry(HeaderId(at)).or_default();
            }
        }
    }
}
