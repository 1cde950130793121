//! Checks the common part of parsers and controls: their context and local declarations.

use diagnostics::{Diagnostic, Span};

use super::scope::{Symbol, name_of};
use super::{BodyContext, Checker, DeclContext};
use crate::ast::{self, DeclKind};
use crate::typed::{Local, Param, Type};

impl<'a> Checker<'a> {
    /// Runs `body` in the context of the parser or control with declaration `index` and these type arguments, and
    /// passes it the run-time and the constructor parameters. Returns false if the program is nested too deeply.
    pub(super) fn pipeline(
        &mut self,
        index: usize,
        args: &[Type],
        span: Span,
        body: impl FnOnce(&mut Self, Vec<Param>, Vec<Param>),
    ) -> bool {
        let (ty, ctor_params, what, context) = match &self.program.decls[index].kind {
            DeclKind::Parser(parser) => (&parser.ty, &parser.ctor_params, "parser", BodyContext::ParserLocals),
            DeclKind::Control(control) => (&control.ty, &control.ctor_params, "control", BodyContext::ControlLocals),
            _ => return false,
        };
        let bindings: Vec<_> =
            ty.type_params.iter().map(|param| param.name.clone()).zip(args.iter().cloned()).collect();
        let in_parser = context == BodyContext::ParserLocals;
        let cx = DeclContext { in_parser, context, prefix: format!("{}.", ty.name.name), ..DeclContext::top_level() };
        self.in_progress.insert(index);
        let done = self.deeper(span, |c| {
            c.within(index + 1, &bindings, cx, |c| {
                c.scoped(|c| {
                    let params = c.params(&ty.params, what);
                    let ctor_params = c.params(ctor_params, "constructor");
                    c.scoped(|c| body(c, params, ctor_params));
                });
            });
        });
        self.in_progress.remove(&index);
        done.is_some()
    }

    /// Checks the local declarations of a parser or control, in order.
    pub(super) fn pipeline_locals(&mut self, list: &'a [ast::Decl]) -> Vec<Local> {
        let mut locals = Vec::new();
        for (at, decl) in list.iter().enumerate() {
            self.ahead = &list[at + 1..];
            match &decl.kind {
                DeclKind::Const { ty, name, value } => self.const_decl(ty, name, value),
                DeclKind::Variable { ty, name, init } => {
                    let (var, init) = self.variable(ty, name, init.as_ref(), &decl.annotations);
                    locals.push(Local::Var(var, init));
                }
                DeclKind::Instance(instance) => {
                    if let Some(id) = self.instance_decl(instance, &decl.annotations) {
                        locals.append(&mut self.cx.locals);
                        locals.push(Local::Instance(id));
                    }
                }
                DeclKind::ValueSet { ty, size, name } => {
                    if let Some(id) = self.value_set(ty, size, name, &decl.annotations) {
                        locals.push(Local::ValueSet(id));
                    }
                }
                DeclKind::Action { name, params, body } if !self.cx.in_parser => {
                    self.action(name, params, body, &decl.annotations);
                }
                DeclKind::Table(table) if !self.cx.in_parser => {
                    self.table(table, &decl.annotations);
                    locals.append(&mut self.cx.locals);
                }
                _ => {
                    let owner = if self.cx.in_parser { "a parser" } else { "a control" };
                    let message = format!("this cannot be declared in {owner}");
                    self.error(Diagnostic::error("placement", decl.span, message));
                    if let Some(name) = name_of(decl) {
                        self.declare(name, Symbol::Invalid);
                    }
                }
            }
        }
        self.ahead = &[];
        locals
    }
}
