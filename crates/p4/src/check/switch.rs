//! Checks `switch` (specification section 12.7): on values, and on the action that a table ran.

use std::collections::HashSet;

use diagnostics::{Diagnostic, Span};

use super::method::{CallResult, CallSite};
use super::scope::{Symbol, nearest};
use super::{Checker, error_expr, is_error};
use crate::ast;
use crate::typed::{self, Block, Call, Expr, Stmt, StmtKind, TableId, Type, Value};

/// Bodies with their labels, the default body, and whether the end of any body is reachable.
type GroupedCases<L> = (Vec<(Vec<L>, Block)>, Option<Block>, bool);

impl<'a> Checker<'a> {
    pub(super) fn switch(
        &mut self,
        subject: &'a ast::Expr,
        cases: &'a [ast::SwitchCase],
        span: Span,
    ) -> (Option<Stmt>, bool) {
        self.default_last(cases);
        if let ast::ExprKind::Member(base, member) = &subject.kind
            && &*member.name == "action_run"
            && let ast::ExprKind::Call { callee, type_args, args } = &base.kind
        {
            match self.call(callee, CallSite { type_args, args, expected: None, span: base.span }) {
                CallResult::Call(call, Type::TableResult(table)) => {
                    return self.action_switch(call, table, cases, span);
                }
                CallResult::Invalid => {
                    for case in cases {
                        if let Some(body) = &case.body {
                            self.block(body);
                        }
                    }
                    return (None, true);
                }
                _ => {}
            }
        }
        self.value_switch(subject, cases, span)
    }

    fn default_last(&mut self, cases: &[ast::SwitchCase]) {
        let is_default =
            |case: &ast::SwitchCase| matches!(case.label.kind, ast::ExprKind::Default | ast::ExprKind::DontCare);
        let mut defaults = cases.iter().filter(|case| is_default(case));
        let Some(first) = defaults.next() else { return };
        if let Some(second) = defaults.next() {
            self.error(
                Diagnostic::error("duplicate", second.label.span, "duplicate `default` case")
                    .also(first.label.span, "first `default` case"),
            );
        } else if let Some(after) = cases.iter().skip_while(|case| !is_default(case)).nth(1) {
            self.error(
                Diagnostic::error("default-last", after.label.span, "case after `default`")
                    .also(first.label.span, "`default` must be the last case"),
            );
        }
    }

    /// Groups bodies with their labels: labels without a body fall through to the next one with a body.
    fn grouped<L>(
        &mut self,
        cases: &'a [ast::SwitchCase],
        mut label: impl FnMut(&mut Self, &'a ast::Expr) -> Option<L>,
    ) -> GroupedCases<L> {
        let mut out = Vec::new();
        let mut default = None;
        let mut labels = Vec::new();
        let mut is_default = false;
        let mut completes = false;
        for case in cases {
            if matches!(case.label.kind, ast::ExprKind::Default | ast::ExprKind::DontCare) {
                is_default = true;
            } else if let Some(label) = label(self, &case.label) {
                labels.push(label);
            }
            let Some(body) = &case.body else { continue };
            let (block, reaches) = self.block(body);
            completes |= reaches;
            if is_default {
                default = Some(block.clone());
            }
            if !labels.is_empty() {
                out.push((std::mem::take(&mut labels), block));
            }
            is_default = false;
        }
        completes |= default.is_none();
        (out, default, completes)
    }

    fn action_switch(
        &mut self,
        apply: Call,
        table: TableId,
        cases: &'a [ast::SwitchCase],
        span: Span,
    ) -> (Option<Stmt>, bool) {
        let mut seen = HashSet::new();
        let (cases, default, completes) = self.grouped(cases, |c, label| {
            let at = c.action_label(label, table)?;
            if !seen.insert(at) {
                c.error(Diagnostic::error("duplicate", label.span, "duplicate case for this action"));
                return None;
            }
            Some(at)
        });
        (Some(Stmt { kind: StmtKind::SwitchAction { apply, table, cases, default }, span }), completes)
    }

    fn action_label(&mut self, label: &ast::Expr, table: TableId) -> Option<usize> {
        let ast::ExprKind::Name { absolute, name } = &label.kind else {
            self.error(
                Diagnostic::error("switch-label", label.span, "expected an action")
                    .label("the cases are the table's actions, or `default`"),
            );
            return None;
        };
        let actions = &self.out.tables[table].actions;
        let names: Vec<_> =
            actions.iter().map(|action| self.out.actions[action.action].local_name.to_string()).collect();
        let ids: Vec<_> = actions.iter().map(|action| action.action).collect();
        let at = match self.find(&name.name, *absolute).map(|binding| binding.symbol) {
            Some(Symbol::Action(id)) => ids.iter().position(|action| *action == id),
            _ => None,
        };
        if at.is_none() {
            let table = &self.out.tables[table];
            let mut diagnostic = Diagnostic::error(
                "switch-label",
                label.span,
                format!("`{}` is not an action of table `{}`", name.name, table.local_name),
            )
            .also(table.span, "the table");
            if let Some(near) = nearest(&name.name, names.iter().map(|name| name.as_str())) {
                diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
            }
            self.error(diagnostic);
        }
        at
    }

    fn value_switch(
        &mut self,
        subject: &'a ast::Expr,
        cases: &'a [ast::SwitchCase],
        span: Span,
    ) -> (Option<Stmt>, bool) {
        let mut subject = self.check(subject, None);
        let allowed = match &subject.ty {
            Type::Bit(_) | Type::Int(_) | Type::Enum(_) | Type::Error | Type::Bool | Type::New(_) => {
                !self.is_opaque(&subject.ty)
            }
            Type::Integer => !self.is_moving(&subject),
            _ => false,
        };
        if !allowed && !is_error(&subject.ty) {
            let found = self.describe(&subject.ty);
            self.error(
                Diagnostic::error("switch-type", subject.span, format!("`switch` cannot be used on {found}"))
                    .help("`switch` takes bit<w>, int<w>, enums, `error` and `t.apply().action_run`"),
            );
            subject = error_expr(subject.span);
        }
        let ty = subject.ty.clone();
        let mut seen: HashSet<Value> = HashSet::new();
        let (cases, default, completes) = self.grouped(cases, |c, label| {
            let e: Expr = c.check_as(label, &ty);
            if is_error(&e.ty) {
                return None;
            }
            if !c.is_static(&e) {
                c.not_constant(label.span, "a case");
                return None;
            }
            if let Some(value) = super::convert::value_of(&e)
                && !seen.insert(value)
            {
                c.error(Diagnostic::error("duplicate", label.span, "duplicate case for this value"));
                return None;
            }
            Some(e)
        });
        if is_error(&ty) {
            return (None, completes);
        }
        if !cases.is_empty() {
            self.value_switch.get_or_insert(span);
        }
        (Some(Stmt { kind: typed::StmtKind::Switch { subject, cases, default }, span }), completes)
    }

    /// Checks that the match kind `exact` is declared if a program has a `switch` on a value: targets may make a table
    /// of it. A program without it has no `core.p4`, and so no architecture.
    pub(super) fn switch_needs_exact(&mut self) {
        let is_declared = self.out.match_kinds.iter().any(|kind| &**kind == "exact");
        if let (Some(span), true, false) = (self.value_switch, self.out.main.is_some(), is_declared) {
            self.error(
                Diagnostic::error("match-kind", span, "`switch` on a value needs the match kind `exact`")
                    .help("it is declared in `core.p4`: write `#include <core.p4>`"),
            );
        }
    }
}
