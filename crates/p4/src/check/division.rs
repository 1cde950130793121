//! Reports `/` and `%` on values that are known only at run time.
//!
//! The specification defines division for compile-time known values only: `bit<W>` has no such operation (section on
//! its operations), and an `int` is always known (section on arbitrary-precision integers). The reference compiler also
//! accepts a division that its optimizer removes, of a variable whose value it finds out or by a power of two. So an
//! error needs certainty: the divisor is no power of two, and an operand is *late*. Late are
//!
//! - parameters that the architecture sets, action data, and results of externs;
//! - variables and fields to which the program assigns late values or quotients of them, and nothing else anywhere.
//!
//! `/=` and `%=` are accepted: the reference compiler leaves them to targets that have compound assignments.

use std::collections::{HashMap, HashSet};

use diagnostics::{Diagnostic, Diagnostics, Span};
use num_traits::Zero;

use super::convert::value_of;
use super::fold;
use crate::ast::{BinaryOp, Direction};
use crate::typed::{
    ActionId, Arg, Block, Builtin, Call, Callee, Control, Expr, ExprKind, InstanceId, Local, Param, Parser, Program,
    Stmt, StmtKind, StmtPart, TableId, Transition, Type, Value, VarId,
};

/// Maximum number of expressions that are examined for a program. Divisions after that are accepted.
const MAX_STEPS: u32 = 1_000_000;

/// Reports the divisions in the parsers and controls that packages instantiate.
pub(super) fn check(program: &Program, diagnostics: &mut Diagnostics) {
    let mut facts = ProgramFacts::new(program);
    facts.collect();
    if facts.divisions.is_empty() {
        return;
    }
    facts.given_action_data();
    let mut steps = 0;
    for division in &facts.divisions {
        let Some(late) = division.operands.into_iter().find(|operand| facts.is_late(operand, &mut steps)) else {
            continue;
        };
        let (sign, help) = match division.op {
            BinaryOp::Div => ("/", "shift right by n to divide by 2^n, or look the quotient up in a table"),
            _ => ("%", "mask with 2^n - 1 for the remainder of 2^n, or look the remainder up in a table"),
        };
        let message = format!("`{sign}` is defined only for values that are known at compile time");
        diagnostics.push(
            Diagnostic::error("division", division.span, message)
                .also(late.span, "this value is known only at run time")
                .help(help),
        );
    }
}

/// A variable, and the fields that lead to a part of it. Elements of a stack and bits of a slice count as the whole.
#[derive(Clone, PartialEq, Eq, Hash)]
struct PartPath {
    var: VarId,
    fields: Vec<usize>,
}

/// What is written to a part.
#[derive(Clone, Copy)]
enum WrittenValue<'p> {
    Of(&'p Expr),
    /// A value that an extern computes, or the quotient of the part itself.
    Late,
    Unknown,
}

struct Division<'p> {
    op: BinaryOp,
    operands: [&'p Expr; 2],
    span: Span,
}

struct ProgramFacts<'p> {
    program: &'p Program,
    /// Parameters that the architecture or the control plane sets.
    given: HashSet<VarId>,
    /// Variables and parameters without an initial value of unknown origin.
    own: HashSet<VarId>,
    writes: HashMap<VarId, Vec<(PartPath, WrittenValue<'p>)>>,
    /// Divisions in code that a package runs.
    divisions: Vec<Division<'p>>,
    /// Whether a package runs the code being visited.
    is_live: bool,
    applied: HashSet<TableId>,
    called: HashSet<ActionId>,
}

impl<'p> ProgramFacts<'p> {
    fn new(program: &'p Program) -> Self {
        ProgramFacts {
            program,
            given: HashSet::new(),
            own: HashSet::new(),
            writes: HashMap::new(),
            divisions: Vec::new(),
            is_live: false,
            applied: HashSet::new(),
            called: HashSet::new(),
        }
    }

    /// Visits all code. The bodies of functions, and of parsers and controls that only others apply, are visited for
    /// what they write.
    fn collect(&mut self) {
        let program = self.program;
        let (mut parsers, mut controls) = (HashSet::new(), HashSet::new());
        for id in packaged(program) {
            match program.instances[id].ty {
                Type::Parser(id) => drop(parsers.insert(id)),
                Type::Control(id) => drop(controls.insert(id)),
                _ => {}
            }
        }
        program.functions.values().for_each(|function| self.block(&function.body));
        for (id, parser) in &program.parsers {
            self.is_live = parsers.contains(&id);
            self.parser(parser);
        }
        for (id, control) in &program.controls {
            self.is_live = controls.contains(&id);
            self.control(control);
        }
        let in_controls: HashSet<ActionId> =
            controls.iter().flat_map(|id| program.controls[*id].actions.iter().copied()).collect();
        let tabled: Vec<_> =
            self.applied.iter().flat_map(|table| &program.tables[*table].actions).map(|action| action.action).collect();
        for (id, action) in &program.actions {
            self.is_live = in_controls.contains(&id) && (tabled.contains(&id) || self.called.contains(&id));
            self.block(&action.body);
        }
    }

    /// Adds the action data of actions that only tables run.
    fn given_action_data(&mut self) {
        for (_, action) in self.program.actions.iter().filter(|(id, _)| !self.called.contains(id)) {
            let data = action.params.iter().filter(|param| param.direction == Direction::None);
            self.given.extend(data.map(|param| param.var));
        }
    }

    fn params(&mut self, params: &[Param]) {
        if self.is_live {
            for param in params {
                match param.direction {
                    Direction::In | Direction::InOut => drop(self.given.insert(param.var)),
                    Direction::Out => drop(self.own.insert(param.var)),
                    Direction::None => {}
                }
            }
        }
    }

    fn parser(&mut self, parser: &'p Parser) {
        self.params(&parser.params);
        self.locals(&parser.locals);
        for state in &parser.states {
            self.block(&state.body);
            if let Transition::Select { exprs, .. } = &state.transition {
                exprs.iter().for_each(|e| self.expr(e));
            }
        }
    }

    fn control(&mut self, control: &'p Control) {
        self.params(&control.params);
        self.locals(&control.locals);
        self.block(&control.body);
        let is_live = self.is_live;
        for id in &control.tables {
            let table = &self.program.tables[*id];
            self.is_live = is_live && self.applied.contains(id);
            table.keys.iter().for_each(|key| self.expr(&key.expr));
            for action in &table.actions {
                let params = self.program.actions[action.action].params.iter();
                let directions = params.map(|param| param.direction).filter(|way| *way != Direction::None);
                self.args(&action.args, directions, WrittenValue::Unknown);
            }
        }
    }

    fn locals(&mut self, locals: &'p [Local]) {
        for local in locals {
            if let Local::Var(var, init) = local {
                self.declare(*var, init.as_ref());
            }
        }
    }

    fn declare(&mut self, var: VarId, init: Option<&'p Expr>) {
        self.own.insert(var);
        if let Some(init) = init {
            self.expr(init);
            let whole = PartPath { var, fields: Vec::new() };
            self.writes.entry(var).or_default().push((whole, WrittenValue::Of(init)));
        }
    }

    fn write(&mut self, part: &Expr, value: WrittenValue<'p>) {
        if let Some((path, _)) = path_of(part) {
            self.writes.entry(path.var).or_default().push((path, value));
        }
    }

    fn block(&mut self, block: &'p Block) {
        block.statements.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &'p Stmt) {
        match &stmt.kind {
            StmtKind::Var(var, init) => self.declare(*var, init.as_ref()),
            StmtKind::If(condition, then, otherwise) => {
                self.expr(condition);
                let known = match value_of(condition) {
                    Some(Value::Bool(known)) => Some(known),
                    _ => None,
                };
                self.branch(then, known != Some(false));
                otherwise.iter().for_each(|otherwise| self.branch(otherwise, known != Some(true)));
            }
            _ => stmt.for_each_part(&mut |part| match part {
                StmtPart::Expr(e) => self.expr(e),
                StmtPart::Call(call) => self.call(call),
                StmtPart::Stmt(stmt) => self.stmt(stmt),
                StmtPart::Block(block) => self.block(block),
            }),
        }
        if let StmtKind::Assign { lhs, op, rhs } = &stmt.kind {
            let value = match op {
                None => WrittenValue::Of(rhs),
                Some(BinaryOp::Div | BinaryOp::Mod) => WrittenValue::Late,
                Some(_) => WrittenValue::Unknown,
            };
            self.write(lhs, value);
        }
    }

    /// Visits a branch; the code of one that never runs is not refused.
    fn branch(&mut self, stmt: &'p Stmt, is_possible: bool) {
        let before = self.is_live;
        self.is_live = before && is_possible;
        self.stmt(stmt);
        self.is_live = before;
    }

    fn expr(&mut self, e: &'p Expr) {
        if let ExprKind::Binary(op @ (BinaryOp::Div | BinaryOp::Mod), left, right) = &e.kind {
            self.division(*op, left, right, e.span);
        }
        match e.call() {
            Some(call) => self.call(call),
            None => e.children().for_each(|child| self.expr(child)),
        }
    }

    fn division(&mut self, op: BinaryOp, left: &'p Expr, right: &'p Expr, span: Span) {
        let value = |e: &Expr| value_of(e).and_then(|value| fold::as_integer(&value, &e.ty));
        let is_removed = value(left).is_some_and(|value| value.is_zero())
            || value(right).is_some_and(|value| (&value & (&value - 1u32)).is_zero());
        if self.is_live && !is_removed {
            self.divisions.push(Division { op, operands: [left, right], span });
        }
    }

    fn call(&mut self, call: &'p Call) {
        let program = self.program;
        let ways = |params: &[Param]| params.iter().map(|param| param.direction).collect::<Vec<_>>();
        let (ways, value) = match &call.callee {
            Callee::Function(id) => (ways(&program.functions[*id].params), WrittenValue::Unknown),
            Callee::Action(id) => {
                self.called.insert(*id);
                (ways(&program.actions[*id].params), WrittenValue::Unknown)
            }
            Callee::Table(id) => {
                if self.is_live {
                    self.applied.insert(*id);
                }
                return;
            }
            Callee::Apply(object) => {
                self.expr(object);
                (vec![Direction::InOut; call.args.len()], WrittenValue::Unknown)
            }
            Callee::ExternFn(id, _) => {
                (program.extern_fns[*id].params.iter().map(|(_, way)| *way).collect(), WrittenValue::Late)
            }
            Callee::Method { object, of, method, .. } => {
                self.expr(object);
                let method = program.externs[*of].methods.get(*method);
                let params = method.map(|method| &method.params[..]).unwrap_or_default();
                let value = match method {
                    Some(method) if method.is_abstract => WrittenValue::Unknown,
                    _ => WrittenValue::Late,
                };
                (params.iter().map(|(_, way)| *way).collect(), value)
            }
            Callee::Builtin(method, object) => {
                self.expr(object);
                if matches!(method, Builtin::PushFront(_) | Builtin::PopFront(_)) {
                    self.write(object, WrittenValue::Unknown);
                }
                return;
            }
        };
        self.args(&call.args, ways.into_iter(), value);
    }

    fn args(&mut self, args: &'p [Arg], ways: impl Iterator<Item = Direction>, value: WrittenValue<'p>) {
        for (arg, way) in args.iter().zip(ways) {
            let Arg::Expr(e) = arg else { continue };
            self.expr(e);
            if matches!(way, Direction::Out | Direction::InOut) {
                self.write(e, value);
            }
        }
    }

    /// Whether an expression is late. Parts that depend on each other are late if nothing else is written to them, so a
    /// part that is examined is assumed to be.
    fn is_late(&self, e: &'p Expr, steps: &mut u32) -> bool {
        let mut assumed: HashSet<PartPath> = HashSet::new();
        let mut pending = vec![e];
        while let Some(e) = pending.pop() {
            *steps = steps.saturating_add(1);
            let is_possible = match &e.kind {
                ExprKind::Cast(inner) | ExprKind::Binary(BinaryOp::Div | BinaryOp::Mod, inner, _) => {
                    pending.push(inner);
                    true
                }
                ExprKind::Call(call) => self.is_extern(call),
                _ => match path_of(e) {
                    Some((path, _)) if assumed.contains(&path) => true,
                    Some((path, _)) => {
                        let is_possible = self.values_of(&path, &mut pending, steps);
                        assumed.insert(path);
                        is_possible
                    }
                    None => false,
                },
            };
            if !is_possible || *steps > MAX_STEPS {
                return false;
            }
        }
        true
    }

    /// Whether an extern that the architecture implements is called.
    fn is_extern(&self, call: &Call) -> bool {
        match &call.callee {
            Callee::ExternFn(..) => true,
            Callee::Method { of, method, .. } => {
                self.program.externs[*of].methods.get(*method).is_some_and(|method| !method.is_abstract)
            }
            _ => false,
        }
    }

    /// Adds the values that are written to a part. Returns false if there is none, or one that is not an expression.
    fn values_of(&self, path: &PartPath, pending: &mut Vec<&'p Expr>, steps: &mut u32) -> bool {
        let mut has_value = self.given.contains(&path.var);
        if !has_value && !self.own.contains(&path.var) {
            return false;
        }
        let writes = self.writes.get(&path.var).map_or(&[][..], |writes| writes);
        *steps = steps.saturating_add(writes.len() as u32);
        for (_, value) in writes.iter().filter(|(to, _)| overlap(to, path)) {
            has_value = true;
            match value {
                WrittenValue::Of(value) => pending.push(value),
                WrittenValue::Late => {}
                WrittenValue::Unknown => return false,
            }
        }
        has_value
    }
}

/// Returns the part of a variable that an l-value is or lies in, and whether it is the l-value itself.
fn path_of(e: &Expr) -> Option<(PartPath, bool)> {
    match &e.kind {
        ExprKind::Var(var) => Some((PartPath { var: *var, fields: Vec::new() }, true)),
        ExprKind::Field(base, at) => {
            let (mut path, is_exact) = path_of(base)?;
            if is_exact {
                path.fields.push(*at);
            }
            Some((path, is_exact))
        }
        ExprKind::Element(base, _) | ExprKind::Next(base) | ExprKind::Last(base) | ExprKind::Slice(base, ..) => {
            path_of(base).map(|(path, _)| (path, false))
        }
        _ => None,
    }
}

/// Whether one part lies in the other.
fn overlap(a: &PartPath, b: &PartPath) -> bool {
    a.fields.iter().zip(&b.fields).all(|(a, b)| a == b)
}

/// Returns the instances among the arguments of packages.
fn packaged(program: &Program) -> Vec<InstanceId> {
    let packages = program.instances.values().filter(|instance| matches!(instance.ty, Type::Package(_)));
    let args = packages.flat_map(|instance| &instance.args);
    args.filter_map(|arg| match arg {
        Arg::Expr(Expr { kind: ExprKind::Instance(id), .. }) => Some(*id),
        _ => None,
    })
    .collect()
}
