//! Lints without data flow: comparisons, calls of deprecated declarations, covered cases and entries.

use diagnostics::{Diagnostic, Span};

use super::{Warnings, compare, cover, exhaustive};
use crate::ast::BinaryOp;
use crate::typed::{
    AnnotationBody, Annotations, Arg, Block, Call, Callee, Expr, ExprKind, Keyset, Local, Program, Stmt, StmtPart,
    Transition,
};

pub(super) fn walk(program: &Program, findings: &mut Warnings<'_>) {
    let mut walk = Walk { program, findings };
    for function in program.functions.values() {
        walk.block(&function.body);
    }
    for action in program.actions.values() {
        walk.block(&action.body);
    }
    for table in program.tables.values() {
        for key in &table.keys {
            walk.expr(&key.expr);
        }
        cover::entries(table, walk.findings);
    }
    for parser in program.parsers.values() {
        walk.locals(&parser.locals);
        for state in &parser.states {
            walk.block(&state.body);
            if let Transition::Select { exprs, cases, span } = &state.transition {
                for e in exprs {
                    walk.expr(e);
                }
                cover::cases(cases, walk.findings);
                exhaustive::select(program, exprs, cases, *span, walk.findings);
            }
        }
    }
    for control in program.controls.values() {
        walk.locals(&control.locals);
        walk.block(&control.body);
    }
    for instance in program.instances.values() {
        if let crate::typed::Type::Extern(id) = instance.ty {
            let decl = &program.externs[id];
            walk.deprecated(&decl.name, &decl.annotations, decl.span, instance.span);
        }
    }
}

struct Walk<'p, 'f, 'm> {
    program: &'p Program,
    findings: &'f mut Warnings<'m>,
}

impl Walk<'_, '_, '_> {
    fn locals(&mut self, locals: &[Local]) {
        for local in locals {
            if let Local::Var(_, Some(init)) = local {
                self.expr(init);
            }
        }
    }

    fn block(&mut self, block: &Block) {
        for stmt in &block.statements {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        stmt.for_each_part(&mut |part| match part {
            StmtPart::Expr(e) => self.expr(e),
            StmtPart::Call(call) => self.call(call),
            StmtPart::Stmt(stmt) => self.stmt(stmt),
            StmtPart::Block(block) => self.block(block),
        });
    }

    fn expr(&mut self, e: &Expr) {
        if let ExprKind::Binary(op, left, right) = &e.kind
            && matches!(op, BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge)
        {
            compare::comparison(*op, left, right, e, self.findings);
        }
        match &e.kind {
            ExprKind::Call(call) | ExprKind::Hit(call) | ExprKind::ActionRun(call) => self.call(call),
            _ => e.children().for_each(|child| self.expr(child)),
        }
    }

    fn call(&mut self, call: &Call) {
        match &call.callee {
            Callee::ExternFn(id, _) => {
                let callee = &self.program.extern_fns[*id];
                self.deprecated(&callee.name, &callee.annotations, callee.span, call.span);
            }
            Callee::Action(id) => {
                let callee = &self.program.actions[*id];
                self.deprecated(&callee.local_name, &callee.annotations, callee.span, call.span);
            }
            Callee::Method { object, of, method, .. } => {
                self.expr(object);
                let decl = &self.program.externs[*of];
                if let Some(callee) = decl.methods.get(*method) {
                    self.deprecated(&callee.name, &callee.annotations, decl.span, call.span);
                }
            }
            Callee::Builtin(_, object) | Callee::Apply(object) => self.expr(object),
            Callee::Function(_) | Callee::Table(_) => {}
        }
        for arg in &call.args {
            if let Arg::Expr(e) = arg {
                self.expr(e);
            }
        }
    }

    fn deprecated(&mut self, name: &str, annotations: &Annotations, declared: Span, used: Span) {
        let Some(annotation) = annotations.iter().find(|annotation| &*annotation.name == "deprecated") else { return };
        let mut diagnostic =
            Diagnostic::warning("deprecated", used, format!("`{name}` is deprecated")).also(declared, "declared here");
        if let AnnotationBody::Unstructured(text, _) = &annotation.body {
            diagnostic = diagnostic.help(text.trim().trim_matches('"').to_owned());
        }
        self.findings.push(diagnostic);
    }
}

/// Returns the expressions in a keyset.
pub(super) fn of_keyset(keyset: &Keyset) -> Vec<&Expr> {
    match keyset {
        Keyset::Value(a) => vec![a],
        Keyset::Mask(a, b) | Keyset::Range(a, b) => vec![a, b],
        Keyset::Any(_) | Keyset::ValueSet(..) => Vec::new(),
    }
}
