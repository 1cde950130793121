//! What variables and headers may be at each point of a body, from its beginning to its ends.
//!
//! Actions are looked at twice: once for what they leave behind ([`Flow::effect`]), which is what a call of them or of a table
//! with them does; once for what is wrong in them, whoever calls them. Functions, sub-parsers, sub-controls and externs are taken by the
//! directions of their parameters. Elements of stacks and members of unions are not followed.

use std::collections::{HashMap, HashSet};

use source::Diagnostic;

use super::state::{May, Path, State};
use super::walk::{children, of_keyset};
use super::{Findings, MAX_STEPS};
use crate::ast::{BinaryOp, Direction, StructKind, UnaryOp};
use crate::typed::{
    ActionId, Arg, Block, Builtin, Call, Callee, Expr, ExprKind, Local, Param, Parser, Program, Stmt, StmtKind,
    StructId, TableId, Target, Transition, Type, VarId,
};

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

/// A part of a variable as far as it is followed.
enum Place {
    /// A variable, or a part that is in no header.
    Plain(Path),
    /// A header as a whole.
    Header(Path),
    /// Something inside this header.
    InHeader(Path),
    /// Something that is not followed.
    Other,
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
        let exits = std::mem::replace(&mut self.exits, State::dead());
        state.join(&exits);
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
        if self.quiet == 0 && self.steps < MAX_STEPS {
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

    /// What a place is behind `place = e`.
    fn may_of(&self, e: &Expr, state: &State) -> May {
        match &e.kind {
            ExprKind::Invalid => May::OFF,
            _ if self.is_scalar(&e.ty) => May::ON,
            ExprKind::Fields(_) if self.header_kind(&e.ty) == Some(StructKind::Header) => May::ON,
            _ => match self.place(e) {
                Place::Header(path) => state.of(&path),
                _ => May::UNKNOWN,
            },
        }
    }

    fn parser(&mut self, parser: &Parser) {
        let mut first = self.begin(&parser.params);
        self.locals(&parser.locals, &mut first);
        let mut before: Vec<State> = parser.states.iter().map(|_| State::dead()).collect();
        before[parser.start] = first;
        let mut end = State::dead();
        let mut work = vec![parser.start];
        self.quiet += 1;
        while let Some(at) = work.pop() {
            let mut state = before[at].clone();
            self.state(parser, at, &mut state);
            for target in targets(&parser.states[at].transition) {
                let Target::State(next) = target else {
                    end.join(&state);
                    continue;
                };
                let mut joined = before[next].clone();
                joined.join(&state);
                if joined != before[next] {
                    before[next] = joined;
                    if !work.contains(&next) {
                        work.push(next);
                    }
                }
            }
            if self.steps >= MAX_STEPS {
                break;
            }
        }
        self.quiet -= 1;
        for (at, state) in before.iter_mut().enumerate() {
            if !state.dead {
                self.state(parser, at, state);
            }
        }
        self.end(&parser.params, &end);
    }

    fn state(&mut self, parser: &Parser, at: usize, state: &mut State) {
        let written = &parser.states[at];
        self.block(&written.body, state);
        if let Transition::Select { exprs, cases, .. } = &written.transition {
            for e in exprs {
                self.read(e, state);
            }
            for e in cases.iter().flat_map(|case| &case.keys).flat_map(of_keyset) {
                self.read(e, state);
            }
        }
    }

    fn block(&mut self, block: &Block, state: &mut State) {
        for stmt in &block.statements {
            self.stmt(stmt, state);
        }
    }

    fn stmt(&mut self, stmt: &Stmt, state: &mut State) {
        self.steps += state.cost();
        if state.dead || self.steps >= MAX_STEPS {
            return;
        }
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
                let mut other = state.clone();
                self.assume(condition, true, state);
                self.assume(condition, false, &mut other);
                self.stmt(then, state);
                if let Some(otherwise) = otherwise {
                    self.stmt(otherwise, &mut other);
                }
                state.join(&other);
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
                    let after = state.clone();
                    flow.stmt(body, state);
                    if let Some(inner) = flow.loops.last() {
                        state.join(&inner.continues);
                    }
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
                self.exits.join(state);
                state.dead = true;
            }
            StmtKind::Exit => state.dead = true,
            StmtKind::Break | StmtKind::Continue => {
                let is_break = matches!(stmt.kind, StmtKind::Break);
                if let Some(inner) = self.loops.last_mut() {
                    if is_break { inner.breaks.join(state) } else { inner.continues.join(state) }
                }
                state.dead = true;
            }
            StmtKind::Empty => {}
        }
    }

    fn switch<'b>(&mut self, cases: impl Iterator<Item = &'b Block>, default: Option<&'b Block>, state: &mut State) {
        let before = state.clone();
        let mut after = if default.is_some() { State::dead() } else { before.clone() };
        for block in cases.chain(default) {
            let mut inner = before.clone();
            self.block(block, &mut inner);
            after.join(&inner);
        }
        *state = after;
    }

    fn each(&mut self, var: VarId, body: &Stmt, state: &mut State) {
        self.repeat(state, |flow, state| {
            let after = state.clone();
            state.set(&whole(var), May::UNKNOWN);
            flow.stmt(body, state);
            if let Some(inner) = flow.loops.last() {
                state.join(&inner.continues);
            }
            after
        });
    }

    /// A loop. `round` goes from the head of the loop to its head again, and gives what holds where it ends.
    fn repeat(&mut self, state: &mut State, mut round: impl FnMut(&mut Self, &mut State) -> State) {
        let mut run = |flow: &mut Self, head: &State| {
            flow.loops.push(Loop { breaks: State::dead(), continues: State::dead() });
            let mut again = head.clone();
            let mut after = round(flow, &mut again);
            if let Some(inner) = flow.loops.pop() {
                after.join(&inner.breaks);
            }
            (again, after)
        };
        // Each possibility is added once, so that this ends; loops in loops take turns, hence the limit.
        if self.loops.len() as u32 >= MAX_LOOPS {
            self.steps = MAX_STEPS;
            return;
        }
        let mut head = state.clone();
        self.quiet += 1;
        loop {
            let (again, _) = run(self, &head);
            let before = head.clone();
            head.join(&again);
            if head == before || self.steps >= MAX_STEPS {
                break;
            }
        }
        self.quiet -= 1;
        let (_, after) = run(self, &head);
        *state = after;
    }

    /// What a condition's outcome says of headers.
    fn assume(&self, condition: &Expr, holds: bool, state: &mut State) {
        match &condition.kind {
            ExprKind::Unary(UnaryOp::Not, inner) => self.assume(inner, !holds, state),
            ExprKind::Binary(BinaryOp::And, a, b) if holds => {
                self.assume(a, true, state);
                self.assume(b, true, state);
            }
            ExprKind::Binary(BinaryOp::Or, a, b) if !holds => {
                self.assume(a, false, state);
                self.assume(b, false, state);
            }
            ExprKind::Call(call) => {
                if let Callee::Builtin(Builtin::IsValid, header) = &call.callee
                    && let Place::Header(path) = self.place(header)
                {
                    state.set(&path, if holds { May::ON } else { May::OFF });
                }
            }
            _ => {}
        }
    }

    /// An expression is evaluated.
    fn read(&mut self, e: &Expr, state: &mut State) {
        match &e.kind {
            ExprKind::Var(_) | ExprKind::Field(..) => match self.place(e) {
                Place::Plain(path) => self.read_plain(&path, e, state),
                Place::Header(_) => {}
                Place::InHeader(path) => {
                    if !state.dead && state.of(&path) == May::OFF {
                        self.report_once(
                            &path,
                            false,
                            Diagnostic::warning("invalid-header", e.span, "this header is never valid here")
                                .label("reading it gives no defined value")
                                .help("check `isValid()` first, or look at how this point is reached"),
                        );
                    }
                }
                Place::Other => children(e).into_iter().for_each(|child| self.read(child, state)),
            },
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
                self.read(a, state);
                let mut right = state.clone();
                self.assume(a, *op == BinaryOp::And, &mut right);
                self.read(b, &mut right);
                state.join(&right);
            }
            ExprKind::Ternary(condition, a, b) => {
                self.read(condition, state);
                let mut other = state.clone();
                self.assume(condition, true, state);
                self.assume(condition, false, &mut other);
                self.read(a, state);
                self.read(b, &mut other);
                state.join(&other);
            }
            ExprKind::Call(call) | ExprKind::Hit(call) | ExprKind::ActionRun(call) => self.call(call, state),
            _ => children(e).into_iter().for_each(|child| self.read(child, state)),
        }
    }

    fn read_plain(&mut self, path: &Path, e: &Expr, state: &State) {
        let may = state.within(path);
        let name = &self.program.vars[path.var].name;
        let what = if path.fields.is_empty() { format!("`{name}`") } else { format!("this part of `{name}`") };
        let shape = self.shape(&e.ty);
        if state.dead || shape.has_header || shape.is_empty {
            return;
        }
        let message = match may {
            May::OFF => format!("{what} has no value yet"),
            _ if may.is_maybe_off() && self.is_scalar(&e.ty) => format!("{what} may have no value here"),
            _ => return,
        };
        let declared = self.program.vars[path.var].span;
        self.report_once(
            path,
            false,
            Diagnostic::warning("uninitialized", e.span, message).label("read here").also(declared, "declared here"),
        );
    }

    /// An lvalue gets a value.
    fn write(&mut self, lhs: &Expr, may: May, state: &mut State) {
        match self.place(lhs) {
            Place::Plain(path) | Place::Header(path) => state.set(&path, may),
            Place::InHeader(path) => {
                if !state.dead && state.of(&path) == May::OFF {
                    self.report_once(
                        &path,
                        true,
                        Diagnostic::warning("invalid-header", lhs.span, "this header is never valid here")
                            .label("what is written to it is lost")
                            .help("call `setValid()` first"),
                    );
                }
            }
            Place::Other => match &lhs.kind {
                ExprKind::Slice(base, ..) => self.write(base, May::ON, state),
                // What is in stacks and unions is not followed.
                ExprKind::Element(_, index) => self.read(index, state),
                _ => {}
            },
        }
    }

    fn call(&mut self, call: &Call, state: &mut State) {
        let program = self.program;
        match &call.callee {
            Callee::Function(id) => self.arguments(call, &directions(&program.functions[*id].params), None, state),
            Callee::Action(id) => {
                let params: Vec<Direction> = program.actions[*id].params.iter().map(|param| param.direction).collect();
                self.arguments(call, &params, None, state);
                let effect = self.effect(*id);
                state.apply(&effect);
            }
            Callee::Table(id) => self.table(*id, state),
            Callee::ExternFn(id, _) => {
                let params: Vec<Direction> = program.extern_fns[*id].params.iter().map(|(_, way)| *way).collect();
                self.arguments(call, &params, None, state);
            }
            Callee::Method { of, method, object, .. } => {
                self.read(object, state);
                let Some(decl) = program.externs[*of].methods.get(*method) else { return };
                let params: Vec<Direction> = decl.params.iter().map(|(_, way)| *way).collect();
                let is_extract = &*decl.name == "extract" && &*program.externs[*of].name == "packet_in";
                self.arguments(call, &params, is_extract.then_some(May::ON), state);
            }
            Callee::Apply(object) => {
                let params = match &object.ty {
                    Type::Parser(id) => directions(&program.parsers[*id].params),
                    Type::Control(id) => directions(&program.controls[*id].params),
                    _ => vec![Direction::InOut; call.args.len()],
                };
                self.arguments(call, &params, None, state);
            }
            Callee::Builtin(method, object) => {
                let place = self.place(object);
                match (method, place) {
                    (Builtin::SetValid, Place::Header(path)) => state.set(&path, May::ON),
                    (Builtin::SetInvalid, Place::Header(path)) => state.set(&path, May::OFF),
                    (Builtin::SetValid | Builtin::SetInvalid, _) => self.write(object, May::UNKNOWN, state),
                    (Builtin::PushFront(_) | Builtin::PopFront(_), _) => self.write(object, May::UNKNOWN, state),
                    (Builtin::IsValid | Builtin::Size, _) => {}
                }
            }
        }
    }

    /// Arguments are read, and then written, as the parameters' directions say. `header` is what an `out` header is
    /// afterwards, if that is known.
    fn arguments(&mut self, call: &Call, params: &[Direction], header: Option<May>, state: &mut State) {
        let way = |at: usize| params.get(at).copied().unwrap_or(Direction::None);
        for (at, arg) in call.args.iter().enumerate() {
            let Arg::Expr(e) = arg else { continue };
            match way(at) {
                Direction::None | Direction::In => self.read(e, state),
                Direction::InOut if self.is_scalar(&e.ty) => self.read(e, state),
                Direction::InOut | Direction::Out => {}
            }
        }
        for (at, arg) in call.args.iter().enumerate() {
            let Arg::Expr(e) = arg else { continue };
            if matches!(way(at), Direction::Out | Direction::InOut) {
                let may = match header {
                    Some(may) if self.header_kind(&e.ty) == Some(StructKind::Header) => may,
                    _ if self.is_scalar(&e.ty) => May::ON,
                    _ => May::UNKNOWN,
                };
                self.write(e, may, state);
            }
        }
    }

    fn table(&mut self, id: TableId, state: &mut State) {
        let table = &self.program.tables[id];
        for key in &table.keys {
            self.read(&key.expr, state);
        }
        if table.actions.is_empty() {
            return;
        }
        let before = state.clone();
        let mut after = State::dead();
        for action in &table.actions {
            self.steps += before.cost();
            if self.steps >= MAX_STEPS {
                return;
            }
            let mut inner = before.clone();
            for arg in &action.args {
                if let Arg::Expr(e) = arg {
                    self.quiet += 1;
                    self.write(e, May::UNKNOWN, &mut inner);
                    self.quiet -= 1;
                }
            }
            let effect = self.effect(action.action);
            inner.apply(&effect);
            after.join(&inner);
        }
        *state = after;
    }

    /// What an action leaves behind, told by what was there before.
    fn effect(&mut self, id: ActionId) -> State {
        if let Some(effect) = self.effects.get(&id) {
            return effect.clone();
        }
        let program = self.program;
        let mut state = State::default();
        let exits = std::mem::replace(&mut self.exits, State::dead());
        let loops = std::mem::take(&mut self.loops);
        self.quiet += 1;
        self.body(&program.actions[id].body, &mut state);
        self.quiet -= 1;
        self.exits = exits;
        self.loops = loops;
        self.effects.insert(id, state.clone());
        state
    }

    fn place(&self, e: &Expr) -> Place {
        match &e.kind {
            ExprKind::Var(var) => match self.header_kind(&e.ty) {
                Some(StructKind::Header) => Place::Header(whole(*var)),
                Some(StructKind::Union) => Place::Other,
                _ if matches!(e.ty, Type::Stack(..)) => Place::Other,
                _ => Place::Plain(whole(*var)),
            },
            ExprKind::Field(base, at) => match self.place(base) {
                Place::Plain(mut path) => {
                    path.fields.push(*at as u32);
                    match self.header_kind(&e.ty) {
                        Some(StructKind::Header) => Place::Header(path),
                        Some(StructKind::Union) => Place::Other,
                        _ if matches!(e.ty, Type::Stack(..)) => Place::Other,
                        _ => Place::Plain(path),
                    }
                }
                Place::Header(path) | Place::InHeader(path) => Place::InHeader(path),
                Place::Other => Place::Other,
            },
            _ => Place::Other,
        }
    }

    fn header_kind(&self, ty: &Type) -> Option<StructKind> {
        match ty {
            Type::Struct(id) => self.program.structs.get(*id).map(|decl| decl.kind),
            _ => None,
        }
    }

    fn is_scalar(&self, ty: &Type) -> bool {
        !matches!(ty, Type::Struct(_) | Type::Stack(..) | Type::Tuple(_) | Type::List(_))
    }

    fn shape(&self, ty: &Type) -> Shape {
        match ty {
            Type::Struct(id) => self.shapes.get(id).copied().unwrap_or(Shape { has_header: false, is_empty: false }),
            Type::Stack(..) => Shape { has_header: true, is_empty: false },
            Type::Tuple(types) => types.iter().fold(EMPTY, |sum, ty| sum.and(self.shape(ty))),
            _ => Shape { has_header: false, is_empty: false },
        }
    }
}

/// What lint asks of a type.
#[derive(Clone, Copy)]
struct Shape {
    /// Whether there is a header, union or stack in values of this type: those begin as invalid, which is a value.
    has_header: bool,
    /// Whether values of this type hold nothing.
    is_empty: bool,
}

const EMPTY: Shape = Shape { has_header: false, is_empty: true };

impl Shape {
    fn and(self, other: Shape) -> Shape {
        Shape { has_header: self.has_header || other.has_header, is_empty: self.is_empty && other.is_empty }
    }
}

fn whole(var: VarId) -> Path {
    Path { var, fields: Vec::new() }
}

fn directions(params: &[Param]) -> Vec<Direction> {
    params.iter().map(|param| param.direction).collect()
}

fn targets(transition: &Transition) -> Vec<Target> {
    match transition {
        Transition::Direct(target, _) => vec![*target],
        Transition::Select { cases, .. } => cases.iter().map(|case| case.target).collect(),
    }
}
