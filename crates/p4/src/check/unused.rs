//! Warns about unused declarations, and about names that shadow others.

use std::collections::HashSet;

use diagnostics::{Diagnostic, FileId, Span};

use super::scope::{Binding, Symbol};
use super::{Checker, VarKind};
use crate::ast::{self, DeclKind, Direction, Ident, StructKind};
use crate::lex::{Token, TokenKind};
use crate::lint::is_shipped;
use crate::typed::{ActionId, Annotations, InstanceId, TableId, Type, ValueSetId, VarId};

/// Uses of declarations in expressions, statements and tables.
#[derive(Default)]
pub(super) struct UsageRecord {
    pub(super) vars: HashSet<VarId>,
    pub(super) actions: HashSet<ActionId>,
    pub(super) tables: HashSet<TableId>,
    pub(super) instances: HashSet<InstanceId>,
    pub(super) value_sets: HashSet<ValueSetId>,
    /// Spans of the declarations of called functions.
    pub(super) functions: HashSet<Span>,
    /// Spans of the declarations of used constants.
    pub(super) constants: HashSet<Span>,
    /// Used types: indices of their declarations.
    pub(super) types: HashSet<usize>,
    /// Constants of parsers, controls and blocks.
    pub(super) local_constants: Vec<Ident>,
}

impl Checker<'_> {
    /// Warns about unused declarations. A generic declaration is checked several times; one use in one of them is
    /// enough, because the span is the same.
    pub(super) fn warn_of_unused(&mut self) {
        let out = &self.out;
        let used_places: HashSet<Span> = self
            .used
            .vars
            .iter()
            .map(|var| out.vars[*var].span)
            .chain(self.used.actions.iter().map(|action| out.actions[*action].span))
            .chain(self.used.tables.iter().map(|table| out.tables[*table].span))
            .chain(self.used.instances.iter().map(|instance| out.instances[*instance].span))
            .chain(self.used.value_sets.iter().map(|set| out.value_sets[*set].span))
            .chain(self.used.functions.iter().copied())
            .collect();
        let is_quiet = |list: &Annotations| list.iter().any(|annotation| &*annotation.name == "noWarn");
        let is_used = |span: Span| used_places.contains(&span) || is_shipped(self.map, span);
        let mut found: Vec<(Span, &'static str, String)> = Vec::new();
        for (id, var) in &out.vars {
            if is_used(var.span) || is_quiet(&var.annotations) || var.name.starts_with('_') {
                continue;
            }
            match self.var_kinds.get(&id) {
                Some(VarKind::Local) => {
                    found.push((var.span, "unused-variable", format!("variable `{}` is never used", var.name)));
                }
                Some(VarKind::ActionData) => {
                    found.push((var.span, "unused-parameter", format!("parameter `{}` is never used", var.name)));
                }
                _ => {}
            }
        }
        // The parameters of a function are its author's choice, unless it implements an extern's requirement.
        let implementations: HashSet<_> =
            out.instances.values().flat_map(|instance| instance.methods.iter().map(|(_, id)| *id)).collect();
        for (_, function) in out.functions.iter().filter(|(id, _)| !implementations.contains(id)) {
            for var in function.params.iter().filter(|p| p.direction != Direction::Out).map(|p| &out.vars[p.var]) {
                if !is_used(var.span) && !is_quiet(&var.annotations) && !var.name.starts_with('_') {
                    found.push((var.span, "unused-parameter", format!("parameter `{}` is never used", var.name)));
                }
            }
        }
        let main = out.main.map(|main| out.instances[main].span.file);
        // Declarations in an included file may be there for other programs.
        let is_program = |span: Span| main.is_none_or(|main: FileId| main == span.file);
        let tables: HashSet<ActionId> =
            out.controls.values().flat_map(|control| control.actions.iter().copied()).collect();
        for (id, action) in out.actions.iter().filter(|(_, action)| &*action.name != "NoAction") {
            let is_local = tables.contains(&id);
            if !is_quiet(&action.annotations) && !is_used(action.span) && (is_local || is_program(action.span)) {
                found.push((action.span, "unused-action", format!("action `{}` is never used", action.local_name)));
            }
        }
        for table in out.tables.values() {
            if !is_used(table.span) && !is_quiet(&table.annotations) {
                found.push((table.span, "unused-table", format!("table `{}` is never applied", table.local_name)));
            }
        }
        for set in out.value_sets.values().filter(|set| !is_used(set.span) && !is_quiet(&set.annotations)) {
            found.push((set.span, "unused-value-set", format!("value set `{}` is never used", set.local_name)));
        }
        let top_level: HashSet<Span> = self.globals.values().map(|binding| binding.span).collect();
        for instance in out.instances.values() {
            let what = match instance.ty {
                Type::Extern(_) => "instance",
                Type::Parser(_) => "parser",
                Type::Control(_) => "control",
                _ => continue,
            };
            let is_elsewhere = top_level.contains(&instance.span) && !is_program(instance.span);
            let quiet = is_quiet(&instance.annotations) || is_used(instance.span) || is_elsewhere;
            // An instance with methods of its own is called by its architecture.
            if !quiet && instance.methods.is_empty() {
                found.push((
                    instance.span,
                    "unused-instance",
                    format!("{what} `{}` is never used", instance.local_name),
                ));
            }
        }
        self.unused_declarations(&used_places, main, &mut found);
        found.sort();
        for (span, code, message) in found {
            self.error(Diagnostic::warning(code, span, message));
        }
    }

    /// Warns about parsers, controls and functions of a whole program that nothing instantiates or calls.
    fn unused_declarations(
        &self,
        used: &HashSet<Span>,
        main: Option<FileId>,
        found: &mut Vec<(Span, &'static str, String)>,
    ) {
        let Some(main) = main else { return };
        let made: HashSet<Span> = self
            .out
            .instances
            .values()
            .filter_map(|instance| match instance.ty {
                Type::Parser(id) => Some(self.out.parsers[id].span),
                Type::Control(id) => Some(self.out.controls[id].span),
                _ => None,
            })
            .collect();
        for decl in self.program.decls.iter().filter(|decl| decl.span.file == main) {
            let quiet = decl.annotations.iter().any(|annotation| &*annotation.name.name == "noWarn");
            let (name, code, message) = match &decl.kind {
                _ if quiet => continue,
                DeclKind::Parser(parser) => (&parser.ty.name, "unused-parser", "is never instantiated"),
                DeclKind::Control(control) => (&control.ty.name, "unused-control", "is never instantiated"),
                DeclKind::Function { proto, .. } => (&proto.name, "unused-function", "is never called"),
                _ => continue,
            };
            if !made.contains(&name.span) && !used.contains(&name.span) {
                let what = code.trim_start_matches("unused-");
                found.push((name.span, code, format!("{what} `{}` {message}", name.name)));
            }
        }
    }

    /// Warns about unused constants, types and headers of a whole program. Declarations in an included file may be
    /// there for other programs. Adjacent constants, such as the numbers of a protocol, cause a single warning.
    pub(super) fn warn_of_unused_types(&mut self) {
        let Some(main) = self.out.main.map(|main| self.out.instances[main].span.file) else { return };
        let mut unused: Vec<(usize, &Ident, &'static str, &str)> = Vec::new();
        for (index, decl) in self.program.decls.iter().enumerate().filter(|(_, decl)| decl.span.file == main) {
            let (name, code, what) = match &decl.kind {
                _ if decl.annotations.iter().any(|annotation| &*annotation.name.name == "noWarn") => continue,
                // `const bool _ = static_assert(...)` is there for the assertion.
                DeclKind::Const { value, .. } if is_assertion(value) => continue,
                DeclKind::Const { name, .. } => (name, "unused-constant", "constant"),
                DeclKind::Struct { kind: StructKind::Struct, name, .. } => (name, "unused-type", "struct"),
                DeclKind::Struct { kind: StructKind::Header, name, .. } => (name, "unused-header", "header"),
                DeclKind::Struct { kind: StructKind::Union, name, .. } => (name, "unused-header", "header union"),
                DeclKind::Enum { name, .. } => (name, "unused-type", "enum"),
                DeclKind::Typedef { name, .. } | DeclKind::NewType { name, .. } => (name, "unused-type", "type"),
                _ => continue,
            };
            if !self.used.types.contains(&index) && !self.used.constants.contains(&name.span) {
                unused.push((index, name, code, what));
            }
        }
        let mut found: Vec<(Span, &'static str, String)> = Vec::new();
        let mut rest = &unused[..];
        while let Some((index, name, code, what)) = rest.first() {
            let is_next =
                |(n, other): &(usize, &(usize, _, &str, _))| other.0 == index + n && other.2 == "unused-constant";
            let row = rest.iter().enumerate().take_while(is_next).count().max(1);
            let more = match row {
                1 => String::new(),
                2 => ", nor is the one after it".to_owned(),
                _ => format!(", nor are the {} after it", row - 1),
            };
            found.push((name.span, code, format!("{what} `{}` is never used{more}", name.name)));
            rest = &rest[row..];
        }
        for name in &self.used.local_constants {
            if !self.used.constants.contains(&name.span) {
                found.push((name.span, "unused-constant", format!("constant `{}` is never used", name.name)));
            }
        }
        for (span, code, message) in found {
            if !self.map.text(span).starts_with('_') && !is_shipped(self.map, span) {
                self.error(Diagnostic::warning(code, span, message));
            }
        }
    }

    /// Marks names in an unstructured annotation as used: `@field_list(1, MY_LIST)`.
    pub(super) fn use_mentioned(&mut self, tokens: &[Token]) {
        for token in tokens {
            let TokenKind::Ident(name) = &token.kind else { continue };
            match self.find(name, false) {
                Some(Binding { symbol: Symbol::Const(_), span, .. }) => drop(self.used.constants.insert(span)),
                Some(Binding { symbol: Symbol::Decl(index), .. }) => drop(self.used.types.insert(index)),
                _ => {}
            }
        }
    }

    /// Reports a name that shadows a variable, constant, instance, action or table of the same name.
    pub(super) fn warn_of_shadowing(&mut self, name: &Ident, symbol: &Symbol) {
        let is_value = |symbol: &Symbol| {
            matches!(
                symbol,
                Symbol::Var(_)
                    | Symbol::Const(_)
                    | Symbol::Instance(_)
                    | Symbol::ValueSet(_)
                    | Symbol::Action(_)
                    | Symbol::Table(_)
            )
        };
        if self.scopes.is_empty() || !is_value(symbol) || is_shipped(self.map, name.span) {
            return;
        }
        let hidden = self.scopes[..self.scopes.len() - 1]
            .iter()
            .rev()
            .find_map(|scope| scope.names.get(&name.name))
            .or_else(|| self.globals.get(&name.name).filter(|binding| binding.index < self.visible));
        if let Some(hidden) = hidden.filter(|hidden| is_value(&hidden.symbol) && hidden.span != name.span)
            && !is_shipped(self.map, hidden.span)
        {
            let at = hidden.span;
            self.error(
                Diagnostic::warning("shadow", name.span, format!("`{}` shadows another `{}`", name.name, name.name))
                    .label("the name refers to this declaration from here on")
                    .also(at, "shadowed declaration"),
            );
        }
    }
}

/// Whether a constant's value is the result of `static_assert`.
fn is_assertion(value: &ast::Expr) -> bool {
    let ast::ExprKind::Call { callee, .. } = &value.kind else { return false };
    matches!(&callee.kind, ast::ExprKind::Name { name, .. } if &*name.name == "static_assert")
}
