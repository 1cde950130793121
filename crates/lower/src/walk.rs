//! Looking through typed code without lowering it.

use p4::typed::{Arg, Block, Call, Callee, Expr, ExprKind, Stmt, StmtKind};

/// What a walk meets.
#[derive(Clone, Copy)]
pub(crate) enum Node<'a> {
    Expr(&'a Expr),
    Call(&'a Call),
    Stmt(&'a Stmt),
}

/// Visits an expression and everything in it.
pub(crate) fn expr<'a>(e: &'a Expr, visit: &mut dyn FnMut(Node<'a>)) {
    visit(Node::Expr(e));
    e.children().for_each(|child| expr(child, visit));
    if let Some(inner) = e.call() {
        call(inner, visit);
    }
}

/// Visits a call and everything in it.
pub(crate) fn call<'a>(c: &'a Call, visit: &mut dyn FnMut(Node<'a>)) {
    visit(Node::Call(c));
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

/// Visits a block and everything in it.
pub(crate) fn block<'a>(b: &'a Block, visit: &mut dyn FnMut(Node<'a>)) {
    b.statements.iter().for_each(|s| stmt(s, visit));
}

/// Visits a statement and everything in it.
pub(crate) fn stmt<'a>(s: &'a Stmt, visit: &mut dyn FnMut(Node<'a>)) {
    visit(Node::Stmt(s));
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

/// Whether evaluating the expression may do anything but give a value: then it has its place in the order of
/// evaluation.
pub(crate) fn has_effects(e: &Expr) -> bool {
    let mut effects = false;
    expr(e, &mut |node| match node {
        Node::Call(c) => effects |= !matches!(c.callee, Callee::Builtin(p4::typed::Builtin::IsValid, _)),
        Node::Expr(e) => effects |= matches!(e.kind, ExprKind::Next(_) | ExprKind::Last(_)),
        Node::Stmt(_) => {}
    });
    effects
}

/// Whether evaluating an argument may do anything but give a value.
pub(crate) fn arg_has_effects(arg: &Arg) -> bool {
    matches!(arg, Arg::Expr(e) if has_effects(e))
}
