//! Checks statements.

use bits::Bits;
use diagnostics::{Diagnostic, Span};

use super::method::{CallResult, CallSite};
use super::scope::Symbol;
use super::{BodyContext, Checker, VarKind, constant, error_expr, expr, is_error};
use crate::ast::{self, DeclKind, StmtKind};
use crate::typed::{self, Block, Expr, ExprKind, Stmt, Type, Value};

fn stmt(kind: typed::StmtKind, span: Span) -> Stmt {
    Stmt { kind, span }
}

/// Whether evaluating the expression twice is equivalent to evaluating it once, judging by its form.
fn calls_nothing(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Var(_) | ExprKind::Const(_) => true,
        ExprKind::Field(base, _) | ExprKind::Slice(base, ..) | ExprKind::Cast(base) | ExprKind::Unary(_, base) => {
            calls_nothing(base)
        }
        ExprKind::Binary(_, a, b) | ExprKind::Element(a, b) => calls_nothing(a) && calls_nothing(b),
        _ => false,
    }
}

impl<'a> Checker<'a> {
    /// Checks a block without a scope of its own, because the owner's parameters are in the same scope. Also returns
    /// whether its end is reachable.
    pub(super) fn body(&mut self, block: &'a ast::Block) -> (Block, bool) {
        let (statements, completes) = self.statements(&block.statements);
        let annotations = self.annotations(&block.annotations).to_vec();
        (Block { statements, annotations, span: block.span }, completes)
    }

    /// Checks a nested block.
    pub(super) fn block(&mut self, block: &'a ast::Block) -> (Block, bool) {
        self.scoped(|c| c.body(block))
    }

    /// Checks statements in order, and returns whether their end is reachable.
    pub(super) fn statements(&mut self, list: &'a [ast::Stmt]) -> (Vec<Stmt>, bool) {
        let mut out = Vec::new();
        let mut completes = true;
        let mut warned = false;
        for written in list {
            if !completes && !warned {
                warned = true;
                self.error(
                    Diagnostic::warning("unreachable", written.span, "unreachable statement")
                        .label("control flow never reaches this"),
                );
            }
            if let Some((typed, reaches)) = self.stmt(written) {
                out.extend(typed);
                completes &= reaches;
            }
        }
        (out, completes)
    }

    /// Checks a statement (none results for constants), and returns whether the next one is reachable.
    fn stmt(&mut self, s: &'a ast::Stmt) -> Option<(Option<Stmt>, bool)> {
        self.deeper(s.span, |c| c.stmt_inner(s))
    }

    /// Checks a statement that is a branch of another, in a scope of its own.
    fn branch(&mut self, s: &'a ast::Stmt) -> (Stmt, bool) {
        let result = self.scoped(|c| c.stmt(s));
        match result {
            Some((Some(typed), completes)) => (typed, completes),
            Some((None, completes)) => (stmt(typed::StmtKind::Empty, s.span), completes),
            None => (stmt(typed::StmtKind::Empty, s.span), true),
        }
    }

    fn stmt_inner(&mut self, s: &'a ast::Stmt) -> (Option<Stmt>, bool) {
        let span = s.span;
        let of = |kind: typed::StmtKind| Some(stmt(kind, span));
        match &s.kind {
            StmtKind::Decl(decl) => (self.local_decl(decl), true),
            StmtKind::Assign { lhs, op, rhs } => (self.assign_stmt(lhs, *op, rhs, span), true),
            StmtKind::Call(e) => (self.call_stmt(e, span), true),
            StmtKind::If { condition, then, otherwise } => {
                let condition = self.condition(condition);
                let (then, mut completes) = self.branch(then);
                let otherwise = match otherwise {
                    Some(otherwise) => {
                        let (otherwise, reaches) = self.branch(otherwise);
                        completes |= reaches;
                        Some(Box::new(otherwise))
                    }
                    None => {
                        completes = true;
                        None
                    }
                };
                (of(typed::StmtKind::If(condition, Box::new(then), otherwise)), completes)
            }
            StmtKind::Switch { subject, cases } => {
                if self.cx.in_parser {
                    self.error(
                        Diagnostic::error("placement", span, "`switch` is not allowed in parsers")
                            .help("use `transition select` or `if`"),
                    );
                    return (None, true);
                }
                self.switch(subject, cases, span)
            }
            StmtKind::For { init, condition, update, body } => {
                let typed = self.scoped(|c| {
                    let (init, _) = c.statements(init);
                    let condition = c.condition(condition);
                    let (update, _) = c.statements(update);
                    c.cx.loops += 1;
                    let (body, _) = c.branch(body);
                    c.cx.loops -= 1;
                    typed::StmtKind::For { init, condition, update, body: Box::new(body) }
                });
                (of(typed), true)
            }
            StmtKind::ForIn { ty, name, range, body } => (self.for_in(ty.as_ref(), name, range, body, span), true),
            StmtKind::Block(block) => {
                let (mut block, completes) = self.block(block);
                let annotations = self.annotations(&s.annotations);
                block.annotations.extend(annotations.iter().cloned());
                (of(typed::StmtKind::Block(block)), completes)
            }
            StmtKind::Return(value) => (self.return_stmt(value.as_ref(), span), false),
            StmtKind::Exit => {
                if self.cx.in_parser || matches!(self.cx.context, BodyContext::Function | BodyContext::Method) {
                    self.error(
                        Diagnostic::error("placement", span, "`exit` is not allowed here")
                            .label("`exit` is allowed only in controls and actions"),
                    );
                }
                (of(typed::StmtKind::Exit), false)
            }
            StmtKind::Break | StmtKind::Continue => {
                let is_break = matches!(s.kind, StmtKind::Break);
                if self.cx.loops == 0 {
                    let what = if is_break { "break" } else { "continue" };
                    self.error(Diagnostic::error("placement", span, format!("`{what}` outside of a loop")));
                }
                (of(if is_break { typed::StmtKind::Break } else { typed::StmtKind::Continue }), false)
            }
            StmtKind::Empty => (of(typed::StmtKind::Empty), true),
        }
    }

    fn local_decl(&mut self, decl: &'a ast::Decl) -> Option<Stmt> {
        match &decl.kind {
            DeclKind::Const { ty, name, value } => {
                self.const_decl(ty, name, value);
                None
            }
            DeclKind::Variable { ty, name, init } => {
                if let Some(binding) = self.find(&name.name, false)
                    && let Symbol::Var(var) = binding.symbol
                    && !matches!(self.var_kinds.get(&var), Some(VarKind::Local | VarKind::Loop))
                {
                    self.error(
                        Diagnostic::error("shadow", name.span, format!("`{}` shadows a parameter", name.name))
                            .also(binding.span, "the shadowed parameter")
                            .help("choose another name"),
                    );
                }
                let (var, init) = self.variable(ty, name, init.as_ref(), &decl.annotations);
                Some(stmt(typed::StmtKind::Var(var, init), decl.span))
            }
            DeclKind::Instance(instance) => {
                self.instance_decl(instance, &decl.annotations);
                None
            }
            _ => {
                self.error(Diagnostic::error("placement", decl.span, "this cannot be declared in a block"));
                if let Some(name) = super::scope::name_of(decl) {
                    self.declare(name, Symbol::Invalid);
                }
                None
            }
        }
    }

    /// Checks a variable with its initial value.
    pub(super) fn variable(
        &mut self,
        ty: &ast::TypeRef,
        name: &ast::Ident,
        init: Option<&ast::Expr>,
        annotations: &ast::Annotations,
    ) -> (typed::VarId, Option<Expr>) {
        let resolved = self.resolve(ty);
        self.check_variable_type(&resolved, ty.span, name);
        let init = init.map(|init| self.check_as(init, &resolved));
        let var = self.new_var(name, resolved, VarKind::Local, annotations);
        self.declare(name, Symbol::Var(var));
        (var, init)
    }

    fn assign_stmt(&mut self, lhs: &ast::Expr, op: Option<ast::BinaryOp>, rhs: &ast::Expr, span: Span) -> Option<Stmt> {
        let written = lhs;
        let lhs = self.check(lhs, None);
        if is_error(&lhs.ty) {
            self.check(rhs, None);
            return None;
        }
        if let (ast::ExprKind::PlusSlice(..), ExprKind::Slice(shifted, high, 0)) = (&written.kind, &lhs.kind)
            && let ExprKind::Binary(ast::BinaryOp::Shr, base, low) = &shifted.kind
        {
            let (base, low, high) = ((**base).clone(), (**low).clone(), *high);
            return self.assign_moving_slice(&lhs, base, low, high, op, rhs, span);
        }
        if !self.is_lvalue(&lhs) {
            self.not_an_lvalue(&lhs);
            return None;
        }
        let Some(op) = op else {
            let rhs = self.check_as(rhs, &lhs.ty);
            return Some(stmt(typed::StmtKind::Assign { lhs, op: None, rhs }, span));
        };
        let rhs = self.check(rhs, None);
        let result = self.binary_typed(op, lhs.clone(), rhs, span);
        let result = self.convert(result, &lhs.ty);
        if is_error(&result.ty) {
            return None;
        }
        let kind = match result.kind {
            ExprKind::Binary(of, left, right) if of == op && left.ty == lhs.ty => {
                typed::StmtKind::Assign { lhs, op: Some(op), rhs: *right }
            }
            _ => typed::StmtKind::Assign { lhs, op: None, rhs: result },
        };
        Some(stmt(kind, span))
    }

    /// Checks `base[low +: width] = rhs` with a `low` that is not constant: all of `base` is written, with the bits at
    /// `low` replaced. `slice` is the left side as a value, `base` its unsigned base.
    #[expect(clippy::too_many_arguments, reason = "the parts of one statement")]
    fn assign_moving_slice(
        &mut self,
        slice: &Expr,
        base: Expr,
        low: Expr,
        high: u32,
        op: Option<ast::BinaryOp>,
        rhs: &ast::Expr,
        span: Span,
    ) -> Option<Stmt> {
        let rhs = match op {
            None => self.check_as(rhs, &slice.ty),
            Some(op) => {
                let rhs = self.check(rhs, None);
                let result = self.binary_typed(op, slice.clone(), rhs, span);
                self.convert(result, &slice.ty)
            }
        };
        // The destination, without the cast that made it unsigned.
        let place = match &base.kind {
            ExprKind::Cast(inner) if !self.is_lvalue(&base) => (**inner).clone(),
            _ => base.clone(),
        };
        if !self.is_lvalue(&place) {
            self.not_an_lvalue(slice);
            return None;
        }
        let Type::Bit(of) = base.ty else { return None };
        if is_error(&rhs.ty) {
            return None;
        }
        // Both occur twice in the result.
        if !calls_nothing(&low) || !calls_nothing(&place) {
            self.error(
                Diagnostic::error("unsupported", span, "the low bit of an assigned slice cannot contain a call")
                    .help("store the result in a variable first"),
            );
            return None;
        }
        let wide = Type::Bit(of);
        let ones = Bits::from_big(&Bits::ones(high + 1).to_big(), of);
        let mask = constant(Value::Bits(ones), wide.clone(), span);
        let mask = self.binary_typed(ast::BinaryOp::Shl, mask, low.clone(), span);
        let others = expr(ExprKind::Unary(ast::UnaryOp::BitNot, Box::new(mask)), wide.clone(), span);
        let kept = self.binary_typed(ast::BinaryOp::BitAnd, base, others, span);
        let moved = expr(ExprKind::Cast(Box::new(rhs)), wide, span);
        let moved = self.binary_typed(ast::BinaryOp::Shl, moved, low, span);
        let whole = self.binary_typed(ast::BinaryOp::BitOr, kept, moved, span);
        let rhs = if whole.ty == place.ty { whole } else { self.recast(whole, &place.ty) };
        if is_error(&rhs.ty) {
            return None;
        }
        Some(stmt(typed::StmtKind::Assign { lhs: place, op: None, rhs }, span))
    }

    fn call_stmt(&mut self, e: &ast::Expr, span: Span) -> Option<Stmt> {
        let ast::ExprKind::Call { callee, type_args, args } = &e.kind else {
            let typed = self.check(e, None);
            if !is_error(&typed.ty) {
                self.error(Diagnostic::error("statement", span, "this is not a statement").label("expected a call"));
            }
            return None;
        };
        match self.call(callee, CallSite { type_args, args, expected: None, span: e.span }) {
            CallResult::Call(call, _) => Some(stmt(typed::StmtKind::Call(call), span)),
            CallResult::Value(value) => {
                if matches!(value.kind, ExprKind::Instance(_)) {
                    self.error(
                        Diagnostic::error("statement", span, "a constructor call cannot be a statement")
                            .help("declare a named instance outside this block"),
                    );
                }
                None
            }
            CallResult::Invalid => None,
        }
    }

    fn return_stmt(&mut self, value: Option<&ast::Expr>, span: Span) -> Option<Stmt> {
        if self.cx.in_parser {
            self.error(
                Diagnostic::error("placement", span, "`return` is not allowed in parsers").help("use `transition`"),
            );
            return None;
        }
        let value = match (self.cx.ret.clone(), value) {
            (Some(Type::Void) | None, None) => None,
            (Some(Type::Void) | None, Some(value)) => {
                self.check(value, None);
                self.error(
                    Diagnostic::error("return", span, "a value cannot be returned here")
                        .label("only functions with a return type return a value"),
                );
                None
            }
            (Some(ty), Some(value)) => Some(self.check_as(value, &ty)),
            (Some(ty), None) => {
                if !is_error(&ty) {
                    let wanted = self.describe(&ty);
                    self.error(
                        Diagnostic::error("return", span, "missing return value").label(format!("expected {wanted}")),
                    );
                }
                None
            }
        };
        Some(stmt(typed::StmtKind::Return(value), span))
    }

    fn for_in(
        &mut self,
        ty: Option<&ast::TypeRef>,
        name: &ast::Ident,
        range: &ast::Expr,
        body: &'a ast::Stmt,
        span: Span,
    ) -> Option<Stmt> {
        let declared = match ty {
            Some(written) => {
                let resolved = self.resolve(written);
                self.check_variable_type(&resolved, written.span, name);
                resolved
            }
            None => {
                self.error(
                    Diagnostic::error("loop-type", name.span, "the loop variable has no type")
                        .help(format!("write `for (bit<8> {} in ...)`", name.name)),
                );
                return None;
            }
        };
        enum Items {
            Range(Expr, Expr),
            Each(Expr),
        }
        let items = match &range.kind {
            ast::ExprKind::Range(low, high) => {
                let (low, high) = (self.check_as(low, &declared), self.check_as(high, &declared));
                let is_number =
                    matches!(declared, Type::Bit(_) | Type::Int(_)) || self.underlying_of_enum(&declared).is_some();
                if !is_number && !is_error(&declared) {
                    let found = self.describe(&declared);
                    self.error(Diagnostic::error(
                        "loop-type",
                        range.span,
                        format!("a loop cannot iterate over a range of {found}"),
                    ));
                }
                Items::Range(low, high)
            }
            _ => {
                let hint = Type::List(Box::new(declared.clone()));
                let is_list = matches!(range.kind, ast::ExprKind::List(_));
                let items = self.check(range, (is_list && !is_error(&declared)).then_some(&hint));
                let element = match &items.ty {
                    Type::Stack(element, _) | Type::List(element) => Some((**element).clone()),
                    Type::Tuple(types) if types.iter().all(|ty| Some(ty) == types.first()) => types.first().cloned(),
                    _ => None,
                };
                match element {
                    _ if is_error(&items.ty) || is_error(&declared) => Items::Each(error_expr(range.span)),
                    Some(element) if element == declared => Items::Each(items),
                    _ => {
                        let (found, wanted) = (self.describe(&items.ty), self.describe(&declared));
                        self.error(
                            Diagnostic::error(
                                "loop-type",
                                range.span,
                                format!("{found} does not yield values of type {wanted}"),
                            )
                            .help("a loop iterates over a range `a .. b`, a list or a header stack"),
                        );
                        Items::Each(error_expr(range.span))
                    }
                }
            }
        };
        self.scoped(|c| {
            let var = match ty {
                Some(_) => {
                    let var = c.new_var(name, declared, VarKind::Loop, &Vec::new());
                    c.declare(name, Symbol::Var(var));
                    var
                }
                None => match c.find(&name.name, false)?.symbol {
                    Symbol::Var(var) => var,
                    _ => return None,
                },
            };
            c.cx.loops += 1;
            let (body, _) = c.branch(body);
            c.cx.loops -= 1;
            let body = Box::new(body);
            let kind = match items {
                Items::Range(low, high) => typed::StmtKind::ForRange { var, low, high, body },
                Items::Each(items) => typed::StmtKind::ForEach { var, items, body },
            };
            Some(stmt(kind, span))
        })
    }
}
