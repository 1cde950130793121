//! Walks a typed program and collects violations of the invariants on its module page.

use p4::ast::BinaryOp;
use p4::typed::*;

/// Returns the violated invariants of a typed program, each as a sentence.
pub fn broken(program: &Program) -> Vec<String> {
    let mut walk = Walk { program, broken: Vec::new() };
    for parser in program.parsers.values() {
        walk.locals(&parser.locals);
        for state in &parser.states {
            walk.block(&state.body);
            if let Transition::Select { exprs, cases, .. } = &state.transition {
                exprs.iter().for_each(|e| walk.expr(e));
                for case in cases {
                    walk.check(
                        case.keys.len() == exprs.len() || case.keys.len() == 1,
                        "a case has as many keys as are selected",
                    );
                    for (key, e) in case.keys.iter().zip(exprs) {
                        walk.keyset(key, &e.ty, case.keys.len() == exprs.len());
                    }
                }
            }
        }
    }
    for control in program.controls.values() {
        walk.locals(&control.locals);
        walk.block(&control.body);
    }
    for action in program.actions.values() {
        walk.block(&action.body);
    }
    for function in program.functions.values() {
        walk.block(&function.body);
    }
    for table in program.tables.values() {
        walk.check(table.default_action.0 < table.actions.len(), "the default action is in the list");
        for key in &table.keys {
            walk.expr(&key.expr);
        }
        for entry in &table.entries {
            walk.check(entry.keys.len() == table.keys.len(), "an entry has a keyset for each key element");
            for (key, element) in entry.keys.iter().zip(&table.keys) {
                walk.keyset(key, &element.expr.ty, true);
            }
            let data = |param: &&Param| param.direction == p4::ast::Direction::None;
            let wanted = program.actions[table.actions[entry.action].action].params.iter().filter(data).count();
            walk.check(entry.args.len() == wanted, "an entry has a value for each parameter of its action");
        }
    }
    walk.broken
}

struct Walk<'p> {
    program: &'p Program,
    broken: Vec<String>,
}

impl Walk<'_> {
    fn check(&mut self, holds: bool, promise: &str) {
        if !holds && !self.broken.iter().any(|known| known == promise) {
            self.broken.push(promise.to_owned());
        }
    }

    fn locals(&mut self, locals: &[Local]) {
        for local in locals {
            if let Local::Var(var, Some(init)) = local {
                self.expr(init);
                self.check(init.ty == self.program.vars[*var].ty, "an initial value has its variable's type");
            }
        }
    }

    fn keyset(&mut self, key: &Keyset, ty: &Type, one_each: bool) {
        let mut part = |e: &Expr| {
            self.expr(e);
            self.check(!one_each || e.ty == *ty, "a keyset has the type of what it is compared with");
        };
        match key {
            Keyset::Value(e) => part(e),
            Keyset::Mask(a, b) | Keyset::Range(a, b) => {
                part(a);
                part(b);
            }
            Keyset::Any(_) | Keyset::ValueSet(..) => {}
        }
    }

    fn block(&mut self, block: &Block) {
        block.statements.iter().for_each(|statement| self.stmt(statement));
    }

    fn stmt(&mut self, statement: &Stmt) {
        match &statement.kind {
            StmtKind::Var(var, init) => {
                if let Some(init) = init {
                    self.expr(init);
                    self.check(init.ty == self.program.vars[*var].ty, "an initial value has its variable's type");
                }
            }
            StmtKind::Assign { lhs, op, rhs } => {
                self.expr(lhs);
                self.expr(rhs);
                let shifts = matches!(op, Some(BinaryOp::Shl | BinaryOp::Shr));
                self.check(shifts || lhs.ty == rhs.ty, "both sides of an assignment have one type");
            }
            StmtKind::Call(call) => self.call(call),
            StmtKind::If(condition, then, otherwise) => {
                self.expr(condition);
                self.check(condition.ty == Type::Bool, "a condition is bool");
                self.stmt(then);
                if let Some(otherwise) = otherwise {
                    self.stmt(otherwise);
                }
            }
            StmtKind::Switch { subject, cases, default } => {
                self.expr(subject);
                for (labels, body) in cases {
                    for label in labels {
                        self.expr(label);
                        self.check(label.ty == subject.ty, "a label has the subject's type");
                    }
                    self.block(body);
                }
                default.iter().for_each(|body| self.block(body));
            }
            StmtKind::SwitchAction { apply, table, cases, default } => {
                self.call(apply);
                for (labels, body) in cases {
                    let actions = self.program.tables[*table].actions.len();
                    self.check(labels.iter().all(|label| *label < actions), "a label is an action of the table");
                    self.block(body);
                }
                default.iter().for_each(|body| self.block(body));
            }
            StmtKind::For { init, condition, update, body } => {
                init.iter().chain(update).for_each(|statement| self.stmt(statement));
                self.expr(condition);
                self.stmt(body);
            }
            StmtKind::ForRange { var, low, high, body } => {
                self.expr(low);
                self.expr(high);
                let ty = &self.program.vars[*var].ty;
                self.check(low.ty == *ty && high.ty == *ty, "a range has the type of its variable");
                self.stmt(body);
            }
            StmtKind::ForEach { items, body, .. } => {
                self.expr(items);
                self.stmt(body);
            }
            StmtKind::Block(block) => self.block(block),
            StmtKind::Return(value) => value.iter().for_each(|value| self.expr(value)),
            StmtKind::Exit | StmtKind::Break | StmtKind::Continue | StmtKind::Empty => {}
        }
    }

    fn call(&mut self, call: &Call) {
        for arg in &call.args {
            if let Arg::Expr(e) = arg {
                self.expr(e);
            }
        }
        match &call.callee {
            Callee::Function(id) => {
                let params = self.program.functions[*id].params.len();
                self.check(call.args.len() == params, "a call has an argument for each parameter");
            }
            Callee::Action(id) => {
                let params = self.program.actions[*id].params.len();
                self.check(call.args.len() == params, "a call has an argument for each parameter");
            }
            Callee::ExternFn(id, _) => {
                let params = self.program.extern_fns[*id].params.len();
                self.check(call.args.len() == params, "a call has an argument for each parameter");
            }
            Callee::Method { object, of, method, .. } => {
                self.expr(object);
                let params = self.program.externs[*of].methods[*method].params.len();
                self.check(call.args.len() == params, "a call has an argument for each parameter");
            }
            Callee::Apply(object) | Callee::Builtin(_, object) => self.expr(object),
            Callee::Table(_) => {}
        }
    }

    /// Whether the expression is part of a value known at instantiation, where `int` is allowed.
    fn is_static(e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Const(_) | ExprKind::Var(_) | ExprKind::Instance(_) => true,
            ExprKind::Unary(_, a) | ExprKind::Cast(a) | ExprKind::Field(a, _) => Self::is_static(a),
            ExprKind::Binary(_, a, b) => Self::is_static(a) && Self::is_static(b),
            ExprKind::Ternary(a, b, c) => [a, b, c].iter().all(|e| Self::is_static(e)),
            ExprKind::Fields(parts) => parts.iter().all(Self::is_static),
            _ => false,
        }
    }

    fn expr(&mut self, e: &Expr) {
        if let Type::New(id) = e.ty {
            self.check(self.program.new_types.get(id).is_some(), "no type stands for a mistake");
        }
        self.check(e.ty != Type::Integer || Self::is_static(e), "`int` is a matter of constants");
        match &e.kind {
            ExprKind::Field(a, _) | ExprKind::Next(a) | ExprKind::Last(a) | ExprKind::LastIndex(a) => self.expr(a),
            ExprKind::Slice(a, high, low) => {
                self.expr(a);
                self.check(e.ty == Type::Bit(high - low + 1), "a slice is as wide as its bounds say");
            }
            ExprKind::Unary(_, a) => {
                self.expr(a);
                self.check(a.ty == e.ty, "an operand has the type of the result");
            }
            ExprKind::Cast(a) => self.expr(a),
            ExprKind::Element(a, index) => {
                self.expr(a);
                self.expr(index);
                self.check(matches!(index.ty, Type::Bit(_)), "an index is bit<w>");
            }
            ExprKind::Binary(op, a, b) => {
                self.expr(a);
                self.expr(b);
                match op {
                    BinaryOp::Shl | BinaryOp::Shr => {
                        self.check(matches!(b.ty, Type::Bit(_)), "a shift's right side is bit<w>");
                    }
                    BinaryOp::Concat => {}
                    _ => self.check(a.ty == b.ty, "both operands have one type"),
                }
            }
            ExprKind::Ternary(a, b, c) => {
                [a, b, c].iter().for_each(|e| self.expr(e));
                self.check(b.ty == c.ty && b.ty == e.ty, "both branches have the type of the result");
            }
            ExprKind::Fields(parts) => {
                parts.iter().for_each(|part| self.expr(part));
                let count = match &e.ty {
                    Type::Struct(id) => Some(self.program.structs[*id].fields.len()),
                    Type::Tuple(types) => Some(types.len()),
                    Type::Stack(_, size) => Some(*size as usize),
                    _ => None,
                };
                self.check(count.is_none_or(|count| count == parts.len()), "all fields are there");
            }
            ExprKind::Call(call) | ExprKind::Hit(call) | ExprKind::ActionRun(call) => self.call(call),
            ExprKind::Const(value) => self.value(value, &e.ty),
            ExprKind::Var(var) => {
                self.check(self.program.vars[*var].ty == e.ty, "a variable has its own type");
            }
            ExprKind::Instance(_) | ExprKind::ValueSet(_) | ExprKind::This | ExprKind::Invalid => {}
        }
    }

    fn value(&mut self, value: &Value, ty: &Type) {
        let fits = match (value, ty) {
            (Value::Bits(bits), Type::Bit(width) | Type::Int(width)) => bits.width() == *width,
            (Value::Bits(bits), Type::Enum(id)) => match self.program.enums[*id].underlying {
                Some(Type::Bit(width) | Type::Int(width)) => bits.width() == width,
                _ => bits.width() == 32,
            },
            (_, Type::New(id)) => match self.program.new_types.get(*id) {
                Some(decl) => {
                    let below = decl.underlying.clone();
                    return self.value(value, &below);
                }
                None => false,
            },
            (Value::Bool(_), Type::Bool) | (Value::Integer(_), Type::Integer) => true,
            (Value::String(_), Type::String) | (Value::Error(_), Type::Error) => true,
            (Value::MatchKind(_), Type::MatchKind) | (Value::Invalid, Type::Struct(_)) => true,
            (Value::Fields(values), Type::Struct(id)) => values.len() == self.program.structs[*id].fields.len(),
            (Value::Fields(values), Type::Tuple(types)) => values.len() == types.len(),
            (Value::Fields(values), Type::Stack(_, size)) => values.len() == *size as usize,
            (Value::Fields(_), Type::List(_)) => true,
            _ => false,
        };
        self.check(fits, "a value fits its type");
    }
}
