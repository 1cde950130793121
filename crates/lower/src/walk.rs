//! Visits typed code that is not being lowered.

use p4::typed::{Arg, Block, Call, Callee, Expr, ExprKind, Stmt, StmtKind};

/// A visited node.
#[derive(Clone, Copy)]
pub(crate) enum CodeNode<'a> {
    Expr(&'a Expr),
    Call(&'a Call),
    Stmt(&'a Stmt),
}

/// Visits an expression and its subexpressions.
pub(crate) fn expr<'a>(e: &'a Expr, visit: &mut dyn FnMut(CodeNode<'a>)) {
    visit(CodeNode::Expr(e));
    e.children().for_each(|child| expr(child, visit));
    if let Some(inner) = e.call() {
        call(inner, visit);
    }
}

/// Visits a call and its arguments.
pub(crate) fn call<'a>(c: &'a Call, visit: &mut dyn FnMut(CodeNode<'a>)) {
    visit(CodeNode::Call(c));
    match &c.callee {
        Callee::Method { object: e, .. } | Callee::Apply(e) | Callee::Builtin(_, e) => expr(e, visit),
        Callee::Function(_) | Callee::Action(_) | Callee::Table(_) | Callee::ExternFn(..) => {}
    }
    for arg in &c.args {
        if let Arg::Expr(e) = arg {
            expr(e, visit);
        }
    }
}

/// Visits a block and its statements.
pub(crate) fn block<'a>(b: &'a Block, visit: &mut dyn FnMut(CodeNode<'a>)) {
    b.statements.iter().for_each(|s| stmt(s, visit));
}

/// Visits a statement and its parts.
pub(crate) fn stmt<'a>(s: &'a Stmt, visit: &mut dyn FnMut(CodeNode<'a>)) {
    visit(CodeNode::Stmt(s));
    match &s.kind {
        StmtKind::Var(_, init) => init.iter().for_each(|e| expr(e, visit)),
        StmtKind::Assign { lhs, rhs, .. } => {
            expr(lhs, visit);
            expr(rhs, visit);
        }
        StmtKind::Call(c) => call(c, visit),
        StmtKind::If(condition, then, otherwise) => {
            expr(condition, visit);
            stmt(then, visit);
            otherwise.iter().for_each(|s| stmt(s, visit));
        }
        StmtKind::Switch { subject, cases, default } => {
            expr(subject, visit);
            for (labels, body) in cases {
                labels.iter().for_each(|e| expr(e, visit));
                block(body, visit);
            }
            default.iter().for_each(|b| block(b, visit));
        }
        StmtKind::SwitchAction { apply, cases, default, .. } => {
            call(apply, visit);
            cases.iter().for_each(|(_, b)| block(b, visit));
            default.iter().for_each(|b| block(b, visit));
        }
        StmtKind::For { init, condition, update, body } => {
            init.iter().for_each(|s| stmt(s, visit));
            expr(condition, visit);
            update.iter().for_each(|s| stmt(s, visit));
            stmt(body, visit);
        }
        StmtKind::ForRange { low, high, body, .. } => {
            expr(low, visit);
            expr(high, visit);
            stmt(body, visit);
        }
        StmtKind::ForEach { items, body, .. } => {
            expr(items, visit);
            stmt(body, visit);
        }
        StmtKind::Block(b) => block(b, visit),
        StmtKind::Return(value) => value.iter().for_each(|e| expr(e, visit)),
        StmtKind::Exit | StmtKind::Break | StmtKind::Continue | StmtKind::Empty => {}
    }
}

/// Whether evaluating the expression may have side effects: its position in the order of evaluation then matters.
pub(crate) fn has_effects(e: &Expr) -> bool {
    let mut effects = false;
    expr(e, &mut |node| match node {
        CodeNode::Call(c) => effects |= !matches!(c.callee, Callee::Builtin(p4::typed::Builtin::IsValid, _)),
        CodeNode::Expr(e) => effects |= matches!(e.kind, ExprKind::Next(_) | ExprKind::Last(_)),
        CodeNode::Stmt(_) => {}
    });
    effects
}

/// Whether evaluating the argument may have side effects.
pub(crate) fn arg_has_effects(arg: &Arg) -> bool {
    matches!(arg, Arg::Expr(e) if has_effects(e))
}
