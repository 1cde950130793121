//! Scopes: meaning and visibility of names, and diagnostics for unknown and duplicate ones.

use std::collections::HashMap;
use std::sync::Arc;

use diagnostics::{Diagnostic, Span};

use super::Checker;
use crate::ast::{self, DeclKind, Ident};
use crate::typed::{self, Expr, Type};

/// Meaning of a name.
#[derive(Clone)]
pub(super) enum Symbol {
    /// A type declared at top level: the index of the declaration.
    Decl(usize),
    /// A type parameter.
    Type(Type),
    Var(typed::VarId),
    /// A constant; one over constructor parameters is an expression.
    Const(Arc<Expr>),
    Instance(typed::InstanceId),
    ValueSet(typed::ValueSetId),
    Action(typed::ActionId),
    Table(typed::TableId),
    /// Functions and extern functions of one name: indices of their declarations.
    Functions(Vec<usize>),
    /// A parser state.
    State,
    /// An invalid declaration; its uses cause no diagnostics.
    Invalid,
}

/// Meaning of a name and span of its declaration.
#[derive(Clone)]
pub(super) struct Binding {
    pub(super) symbol: Symbol,
    pub(super) span: Span,
    /// The top-level declaration it comes from.
    pub(super) index: usize,
}

impl Binding {
    pub(super) fn ty(ty: Type) -> Self {
        Binding { symbol: Symbol::Type(ty), span: Span::default(), index: 0 }
    }
}

/// The names of a block, control, parser, ...
#[derive(Clone, Default)]
pub(super) struct Scope {
    pub(super) names: HashMap<Arc<str>, Binding>,
}

/// Returns the type parameters of a declaration.
pub(super) fn type_params(decl: &ast::Decl) -> &[Ident] {
    match &decl.kind {
        DeclKind::Struct { type_params, .. } | DeclKind::ExternObject { type_params, .. } => type_params,
        DeclKind::ExternFunction(proto) | DeclKind::Function { proto, .. } => &proto.type_params,
        DeclKind::ParserType(ty) | DeclKind::ControlType(ty) | DeclKind::PackageType(ty) => &ty.type_params,
        DeclKind::Parser(parser) => &parser.ty.type_params,
        DeclKind::Control(control) => &control.ty.type_params,
        _ => &[],
    }
}

/// Returns the name that a declaration introduces, if it is a single one.
pub(super) fn name_of(decl: &ast::Decl) -> Option<&Ident> {
    decl.name()
}

impl Checker<'_> {
    /// Looks up a name where it is written; reports an unknown name.
    pub(super) fn lookup(&mut self, name: &Ident, absolute: bool) -> Option<Binding> {
        let found = self.find(&name.name, absolute);
        if found.is_none() {
            let ahead = if absolute { &[] } else { self.ahead };
            let later =
                ahead.iter().chain(&self.program.decls).filter_map(name_of).find(|later| later.name == name.name);
            // A name declared too late is one mistake, however many uses precede it.
            if later.is_some_and(|later| !self.late.insert(later.span)) {
                return None;
            }
            let message = match later {
                Some(_) => format!("`{}` is used before its declaration", name.name),
                None => format!("`{}` is not declared", name.name),
            };
            let mut diagnostic = Diagnostic::error("unknown-name", name.span, message).label("not found here");
            if let Some(later) = later {
                diagnostic = diagnostic
                    .also(later.span, "declared here, after the use")
                    .help("move the declaration up: a name must be declared before it is used");
            } else if let Some(near) = self.nearest(&name.name) {
                diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
            } else if ["packet_in", "packet_out", "NoAction", "verify"].contains(&&*name.name) {
                diagnostic = diagnostic.help("it is declared in `core.p4`: write `#include <core.p4>`");
            }
            self.error(diagnostic);
        }
        found
    }

    /// Looks up a name without reporting an unknown one.
    pub(super) fn find(&self, name: &str, absolute: bool) -> Option<Binding> {
        if !absolute {
            for scope in self.scopes.iter().rev() {
                if let Some(binding) = scope.names.get(name) {
                    return Some(binding.clone());
                }
            }
        }
        let binding = self.globals.get(name)?;
        if let Symbol::Functions(overloads) = &binding.symbol {
            let seen: Vec<usize> = overloads.iter().copied().filter(|index| *index < self.visible).collect();
            return (!seen.is_empty()).then_some(Binding {
                symbol: Symbol::Functions(seen),
                span: binding.span,
                index: binding.index,
            });
        }
        (binding.index < self.visible).then(|| binding.clone())
    }

    /// Whether a span is in the program itself, not in a file that it includes.
    pub(super) fn is_in_program(&self, span: Span) -> bool {
        self.program.decls.last().is_some_and(|last| last.span.file == span.file)
    }

    fn nearest(&self, name: &str) -> Option<String> {
        // Diagnostics beyond those kept are only counted: a search through all names for each would take time quadratic
        // in the size of a program with very many errors.
        if self.diagnostics.error_count() > diagnostics::Diagnostics::MAX_KEPT {
            return None;
        }
        let locals = self.scopes.iter().flat_map(|scope| scope.names.keys());
        let globals = self.globals.iter().filter(|(_, binding)| binding.index < self.visible).map(|(name, _)| name);
        nearest(name, locals.chain(globals).map(|name| &**name))
    }

    /// Declares a name in the innermost scope, or at top level; reports a duplicate.
    pub(super) fn declare(&mut self, name: &Ident, symbol: Symbol) {
        self.warn_of_shadowing(name, &symbol);
        let binding = Binding { symbol, span: name.span, index: self.visible.saturating_sub(1) };
        let names = match self.scopes.last_mut() {
            Some(scope) => &mut scope.names,
            None => &mut self.globals,
        };
        if let Some(old) = names.get_mut(&name.name) {
            if let (Symbol::Functions(overloads), Symbol::Functions(new)) = (&mut old.symbol, &binding.symbol) {
                overloads.extend(new);
                return;
            }
            // It is unknown which of them a use refers to, so uses are not diagnosed.
            let at = old.span;
            old.symbol = Symbol::Invalid;
            self.duplicate(name, at);
            return;
        }
        names.insert(name.name.clone(), binding);
    }

    pub(super) fn duplicate(&mut self, name: &Ident, first: Span) {
        self.error(
            Diagnostic::error("duplicate", name.span, format!("`{}` is declared twice", name.name))
                .label("declared again")
                .also(first, "first declared here"),
        );
    }

    /// Reports each name that occurs twice in the list.
    pub(super) fn distinct<'n>(&mut self, names: impl IntoIterator<Item = &'n Ident>) {
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for name in names {
            match seen.get(&*name.name) {
                Some(first) => {
                    let first = *first;
                    self.duplicate(name, first);
                }
                None => {
                    seen.insert(&name.name, name.span);
                }
            }
        }
    }

    /// Runs `body` in a new innermost scope.
    pub(super) fn scoped<R>(&mut self, body: impl FnOnce(&mut Self) -> R) -> R {
        self.scopes.push(Scope::default());
        let result = body(self);
        self.scopes.pop();
        result
    }
}

/// Returns the candidate with the spelling most similar to `name`, if any is similar enough.
pub(super) fn nearest<'n>(name: &str, candidates: impl Iterator<Item = &'n str>) -> Option<String> {
    diagnostics::names::nearest(name, candidates).map(str::to_owned)
}
