//! Tables: key, actions, default action and other properties (specification section 14.2).

use diagnostics::{Diagnostic, Span};

use super::call::{CallKind, Formal};
use super::scope::{Symbol, nearest};
use super::{BodyContext, Checker, error_expr, is_error};
use crate::ast::{self, Direction, TablePropertyKind};
use crate::typed::{self, Arg, Expr, ExprKind, TableAction, TableId, TableKey, Type, Value};

impl<'a> Checker<'a> {
    pub(super) fn table(&mut self, table: &'a ast::TableDecl, annotations: &'a ast::Annotations) {
        let place = std::mem::replace(&mut self.cx.context, BodyContext::Table);
        let name = self.control_plane_name(&table.name, annotations);
        match self.table_names.get(&name) {
            Some(first) if *first != table.name.span => {
                let first = *first;
                self.error(
                    Diagnostic::error(
                        "control-plane-name",
                        table.name.span,
                        format!("two tables have the control-plane name `{name}`"),
                    )
                    .also(first, "first declared here")
                    .help("give one of them another `@name`"),
                );
            }
            _ => {
                self.table_names.insert(name.clone(), table.name.span);
            }
        }
        let typed_annotations = self.annotations(annotations);
        let id = self.out.tables.push(typed::Table {
            name,
            local_name: table.name.name.clone(),
            keys: Vec::new(),
            actions: Vec::new(),
            default_action: (0, Vec::new()),
            const_default: false,
            entries: Vec::new(),
            const_entries: false,
            size: None,
            largest_priority_wins: true,
            properties: Vec::new(),
            annotations: typed_annotations,
            span: table.name.span,
        });
        self.declare(&table.name, Symbol::Table(id));
        self.cx.table = Some(id);
        self.properties(table, id);
        self.cx.table = None;
        self.cx.context = place;
        self.local_tables.push(id);
    }

    fn properties(&mut self, table: &'a ast::TableDecl, id: TableId) {
        let kind_name = |property: &'a ast::TableProperty| match &property.kind {
            TablePropertyKind::Key(_) => "key",
            TablePropertyKind::Actions(_) => "actions",
            TablePropertyKind::Entries(_) => "entries",
            TablePropertyKind::Custom { name, .. } => &*name.name,
        };
        let find = |wanted: &str| table.properties.iter().find(|property| kind_name(property) == wanted);
        for (at, property) in table.properties.iter().enumerate() {
            let name = kind_name(property);
            if let Some(first) = table.properties[..at].iter().find(|other| kind_name(other) == name) {
                self.error(
                    Diagnostic::error("duplicate", property.span, format!("duplicate table property `{name}`"))
                        .also(first.span, "first given here"),
                );
            }
        }
        if let Some(ast::TableProperty { kind: TablePropertyKind::Key(elements), .. }) = find("key") {
            let keys = elements.iter().filter_map(|element| self.key_element(element)).collect();
            self.out.tables[id].keys = keys;
        }
        match find("actions") {
            Some(ast::TableProperty { kind: TablePropertyKind::Actions(list), .. }) => self.actions(list, id),
            _ => self.error(
                Diagnostic::error(
                    "no-actions",
                    table.name.span,
                    format!("table `{}` has no `actions`", table.name.name),
                )
                .help("write `actions = { NoAction; }`"),
            ),
        }
        let before = find("default_action").map(|property| property.span.start);
        let listed = find("actions").map(|property| property.span.start);
        if let (Some(before), Some(listed)) = (before, listed)
            && before < listed
            && let Some(property) = find("default_action")
        {
            self.error(
                Diagnostic::error("property-order", property.span, "`default_action` must come after `actions`")
                    .help("move `actions` before it"),
            );
        }
        self.default_action(find("default_action"), id);
        for property in &table.properties {
            if let TablePropertyKind::Custom { name, value } = &property.kind
                && &*name.name != "default_action"
            {
                self.custom(property, name, value, id);
            }
        }
        if let Some(property) = find("entries") {
            let key = find("key");
            match key {
                Some(key) if key.span.start > property.span.start => self.error(
                    Diagnostic::error("property-order", property.span, "`entries` must come after `key`")
                        .also(key.span, "key declared here"),
                ),
                _ => {}
            }
            if let TablePropertyKind::Entries(entries) = &property.kind {
                self.entries(property, entries, table, id);
            }
        }
    }

    fn key_element(&mut self, element: &'a ast::KeyElement) -> Option<TableKey> {
        let e = self.check(&element.expr, None);
        let kind = &element.match_kind;
        if !self.out.match_kinds.contains(&kind.name) {
            let near = nearest(&kind.name, self.out.match_kinds.iter().map(|kind| &**kind));
            let mut diagnostic =
                Diagnostic::error("unknown-name", kind.span, format!("there is no match kind `{}`", kind.name));
            diagnostic = match near {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None if self.out.match_kinds.is_empty() => {
                    diagnostic.help("match kinds are declared in `core.p4`: write `#include <core.p4>`")
                }
                None => {
                    let kinds: Vec<String> = self.out.match_kinds.iter().map(|kind| format!("`{kind}`")).collect();
                    diagnostic.help(format!("the match kinds are {}", kinds.join(", ")))
                }
            };
            self.error(diagnostic);
        }
        if is_error(&e.ty) {
            return None;
        }
        let allowed = match &e.ty {
            Type::Bit(_) | Type::Int(_) | Type::Bool | Type::Enum(_) | Type::Error | Type::Varbit(_) => true,
            Type::New(_) => !self.is_opaque(&e.ty),
            _ => false,
        };
        if !allowed {
            let found = self.describe(&e.ty);
            self.error(
                Diagnostic::error("key-type", element.expr.span, format!("{found} cannot be a table key"))
                    .help("a key must be bit<w>, int<w>, bool, an enum or `error`"),
            );
            return None;
        }
        let name = match super::annotations::string_of(&element.annotations, "name") {
            Some((name, _)) => Some(name.trim_start_matches('.').to_owned()),
            None => self.key_name(&e, &element.expr),
        };
        if name.is_none() {
            self.error(
                Diagnostic::error("key-name", element.expr.span, "this key element needs a name")
                    .help("add `@name(\"...\")` after the match kind, for the control plane to refer to it"),
            );
        }
        let annotations = self.annotations(&element.annotations);
        let span = element.expr.span;
        Some(TableKey { expr: e, match_kind: kind.name.clone(), name: name?.into(), annotations, span })
    }

    fn actions(&mut self, list: &'a [ast::ActionRef], table: TableId) {
        for reference in list {
            let Some(action) = self.action_named(&reference.name, reference.absolute) else { continue };
            if let Some(first) = self.out.tables[table].actions.iter().find(|other| other.action == action) {
                let name = &reference.name;
                let diagnostic =
                    Diagnostic::error("duplicate", name.span, format!("action `{}` is listed twice", name.name))
                        .label("again")
                        .also(first.span, "first here");
                self.error(diagnostic);
                continue;
            }
            // Arguments are evaluated when the action runs, where no table can be applied.
            let place = std::mem::replace(&mut self.cx.context, BodyContext::ControlLocals);
            let args = self.bound_args(reference, action);
            self.cx.context = place;
            let annotations = self.annotations(&reference.annotations);
            if let Some(args) = args {
                let entry = TableAction { action, args, annotations, span: reference.span };
                self.out.tables[table].actions.push(entry);
            } else {
                // The action is listed all the same, so that references to it are not further mistakes.
                let entry = TableAction { action, args: Vec::new(), annotations, span: reference.span };
                self.out.tables[table].actions.push(entry);
            }
        }
    }

    pub(super) fn action_named(&mut self, name: &ast::Ident, absolute: bool) -> Option<typed::ActionId> {
        let binding = self.lookup(name, absolute)?;
        match binding.symbol {
            Symbol::Action(id) => {
                self.used.actions.insert(id);
                Some(id)
            }
            Symbol::Invalid => None,
            _ => {
                self.error(
                    Diagnostic::error("not-an-action", name.span, format!("`{}` is not an action", name.name))
                        .also(binding.span, "declared here"),
                );
                None
            }
        }
    }

    /// Checks the arguments in `actions = { a(x); }`: those of the parameters with a direction.
    fn bound_args(&mut self, reference: &'a ast::ActionRef, action: typed::ActionId) -> Option<Vec<Arg>> {
        let formals = self.action_formals(action);
        let name = self.out.actions[action].local_name.clone();
        let given: &[ast::Arg] = reference.args.as_deref().unwrap_or(&[]);
        let names: Vec<_> = formals.iter().map(|formal| (formal.name.clone(), true)).collect();
        let at = self.out.actions[action].span;
        let slots = self.assign(given, &names, &name, at, reference.span)?;
        let mut out = Vec::new();
        let mut fine = true;
        for (formal, slot) in formals.iter().zip(slots) {
            match (formal.direction, slot) {
                (Direction::None, None) => {}
                (Direction::None, Some(position)) => {
                    self.error(
                        Diagnostic::error(
                            "action-data",
                            given[position].value.span,
                            format!("parameter `{}` cannot be bound here", formal.name),
                        )
                        .label("its value comes from the control plane")
                        .also(formal.span, "it is directionless"),
                    );
                    fine = false;
                }
                (_, None) if formal.default.is_some() => out.extend(formal.default.clone().map(Arg::Expr)),
                (_, None) => {
                    let message = format!("parameter `{}` must be bound here", formal.name);
                    self.error(
                        Diagnostic::error("action-data", reference.span, message)
                            .also(formal.span, "it has a direction")
                            .help(format!("write `{name}(...)` with an argument, or remove the direction to let the control plane set it")),
                    );
                    fine = false;
                }
                (_, Some(position)) => {
                    let e = self.check(&given[position].value, Some(&formal.ty));
                    out.push(self.pass(e, formal, CallKind::Function, &name));
                }
            }
        }
        fine.then_some(out)
    }

    fn default_action(&mut self, property: Option<&'a ast::TableProperty>, table: TableId) {
        let Some(property) = property else {
            self.no_action(table);
            return;
        };
        self.out.tables[table].const_default = property.is_const;
        let TablePropertyKind::Custom { value, .. } = &property.kind else { return };
        let Some((name, absolute, args)) = invocation(value) else {
            let e = if matches!(value.kind, ast::ExprKind::Call { .. }) {
                error_expr(value.span)
            } else {
                self.check(value, None)
            };
            if !is_error(&e.ty) || matches!(value.kind, ast::ExprKind::Call { .. }) {
                self.error(
                    Diagnostic::error("not-an-action", value.span, "expected an action")
                        .label("`default_action` runs on a miss"),
                );
            }
            return;
        };
        if let Some((at, args)) = self.invoked(name, absolute, args, value.span, table) {
            let listed = &self.out.tables[table].actions[at];
            if listed.annotations.iter().any(|annotation| &*annotation.name == "tableonly") {
                let listed = listed.span;
                self.error(
                    Diagnostic::error("table-only", value.span, format!("`{}` may be used only in entries", name.name))
                        .also(listed, "`@tableonly`"),
                );
            }
            self.out.tables[table].default_action = (at, args);
        }
    }

    /// Checks an action with all arguments, as in `default_action` and entries. Returns its index in the table's list,
    /// and the values of its directionless parameters.
    pub(super) fn invoked(
        &mut self,
        name: &'a ast::Ident,
        absolute: bool,
        args: &'a [ast::Arg],
        span: Span,
        table: TableId,
    ) -> Option<(usize, Vec<Expr>)> {
        let action = self.action_named(name, absolute)?;
        let Some(at) = self.out.tables[table].actions.iter().position(|listed| listed.action == action) else {
            if self.out.tables[table].actions.is_empty() {
                return self.nothing_listed(span);
            }
            let decl = &self.out.tables[table];
            let diagnostic = Diagnostic::error(
                "not-listed",
                span,
                format!("`{}` is not among the actions of `{}`", name.name, decl.local_name),
            )
            .also(decl.span, "the table")
            .help(format!("add `{};` to `actions`", name.name));
            self.error(diagnostic);
            return None;
        };
        let formals = self.action_formals(action);
        let names: Vec<_> = formals.iter().map(|formal| (formal.name.clone(), formal.default.is_some())).collect();
        let declared = self.out.actions[action].span;
        let local_name = self.out.actions[action].local_name.clone();
        let slots = self.assign(args, &names, &local_name, declared, span)?;
        let bound = self.out.tables[table].actions[at].args.clone();
        let mut bound = bound.iter();
        let mut out = Vec::new();
        let mut fine = true;
        for (formal, slot) in formals.iter().zip(slots) {
            let Some(arg) = slot.map(|position| &args[position]) else {
                match formal.direction {
                    Direction::None => out.extend(formal.default.clone()),
                    _ => {
                        bound.next();
                    }
                }
                continue;
            };
            let e = self.check(&arg.value, Some(&formal.ty));
            if formal.direction != Direction::None {
                let given = self.pass(e, formal, CallKind::Function, &local_name);
                if let (Arg::Expr(given), Some(Arg::Expr(listed))) = (&given, bound.next())
                    && !is_error(&given.ty)
                    && !same(given, listed)
                {
                    let listed = listed.span;
                    self.error(
                        Diagnostic::error(
                            "bound-argument",
                            arg.value.span,
                            format!("`{}` is bound to a different argument in `actions`", formal.name),
                        )
                        .also(listed, "bound here"),
                    );
                    fine = false;
                }
                continue;
            }
            let formal = Formal { direction: Direction::In, ..formal.clone() };
            let Arg::Expr(value) = self.pass(e, &formal, CallKind::Function, &local_name) else { continue };
            if !is_error(&value.ty) && !self.is_static(&value) {
                self.not_constant(arg.value.span, "the argument for a directionless parameter");
                fine = false;
            }
            fine &= !is_error(&value.ty);
            out.push(value);
        }
        fine.then_some((at, out))
    }

    /// Reports a table without any action at its list, or at the missing list, unless the list itself was invalid.
    fn nothing_listed(&mut self, span: Span) -> Option<(usize, Vec<Expr>)> {
        if self.diagnostics.error_count() == self.errors_before {
            self.error(Diagnostic::error("not-listed", span, "the table has no actions").help("add it to `actions`"));
        }
        None
    }

    /// Returns the default action of a table without `default_action`, which does nothing on a miss.
    fn no_action(&mut self, table: TableId) {
        let id = match self.globals.get("NoAction").map(|binding| binding.symbol.clone()) {
            Some(Symbol::Action(id)) if self.out.actions[id].params.is_empty() => id,
            found => {
                let table_span = self.out.tables[table].span;
                let span = match &found {
                    Some(_) => self.globals.get("NoAction").map_or(table_span, |binding| binding.span),
                    None => table_span,
                };
                let message = match found {
                    Some(_) => "`NoAction` must be an action without parameters",
                    None => "`NoAction` is not declared",
                };
                self.error(
                    Diagnostic::error("no-default-action", span, message)
                        .also(table_span, "this table has no `default_action`, so `NoAction` is needed")
                        .help("write `#include <core.p4>`, or give a `default_action`"),
                );
                return;
            }
        };
        let span = self.out.tables[table].span;
        let actions = &mut self.out.tables[table].actions;
        let at = actions.iter().position(|action| action.action == id).unwrap_or_else(|| {
            let annotations =
                [typed::Annotation { name: "defaultonly".into(), body: typed::AnnotationBody::Empty, span }];
            actions.push(TableAction { action: id, args: Vec::new(), annotations: annotations.into(), span });
            actions.len() - 1
        });
        self.out.tables[table].default_action = (at, Vec::new());
    }

    fn custom(&mut self, property: &'a ast::TableProperty, name: &'a ast::Ident, value: &'a ast::Expr, table: TableId) {
        let e = self.check(value, None);
        if is_error(&e.ty) {
            return;
        }
        match &*name.name {
            "size" => {
                let number = self.constant_integer(&e);
                match number.and_then(|number| u64::try_from(number).ok()) {
                    Some(size) => {
                        self.out.tables[table].size = Some(size);
                        return;
                    }
                    // A size over constructor parameters is known only at instantiation: it stays a property.
                    None if !matches!(e.kind, ExprKind::Const(_))
                        && self.is_static(&e)
                        && matches!(e.ty, Type::Integer | Type::Bit(_) | Type::Int(_)) => {}
                    None => {
                        self.error(Diagnostic::error(
                            "table-size",
                            value.span,
                            "the size of a table must be a constant integer",
                        ));
                        return;
                    }
                }
            }
            "largest_priority_wins" => {
                match &e.kind {
                    ExprKind::Const(Value::Bool(wins)) => self.out.tables[table].largest_priority_wins = *wins,
                    _ => self.error(Diagnostic::error(
                        "type-mismatch",
                        value.span,
                        "`largest_priority_wins` must be `true` or `false`",
                    )),
                }
                return;
            }
            "priority_delta" => {
                let positive = self.constant_integer(&e).is_some_and(|delta| delta > 0.into());
                if !positive {
                    self.error(Diagnostic::error(
                        "type-mismatch",
                        value.span,
                        "`priority_delta` must be a positive constant",
                    ));
                }
            }
            _ => {}
        }
        if !self.is_static(&e) {
            self.not_constant(value.span, &format!("the property `{}`", name.name));
            return;
        }
        if let (ExprKind::Instance(id), ast::ExprKind::Call { .. }) = (&e.kind, &value.kind) {
            self.cx.locals.push(typed::Local::Instance(*id));
        }
        let annotations = self.annotations(&property.annotations);
        let property = typed::TableProperty { name: name.name.clone(), value: e, annotations, span: property.span };
        self.out.tables[table].properties.push(property);
    }
}

/// Decomposes `a`, `.a` or `a(args)`.
pub(super) fn invocation(e: &ast::Expr) -> Option<(&ast::Ident, bool, &[ast::Arg])> {
    match &e.kind {
        ast::ExprKind::Name { absolute, name } => Some((name, *absolute, &[])),
        ast::ExprKind::Call { callee, args, .. } => match &callee.kind {
            ast::ExprKind::Name { absolute, name } => Some((name, *absolute, args)),
            _ => None,
        },
        _ => None,
    }
}

/// Whether two expressions are written the same, ignoring spans.
fn same(a: &Expr, b: &Expr) -> bool {
    if a.ty != b.ty {
        return false;
    }
    match (&a.kind, &b.kind) {
        (ExprKind::Const(a), ExprKind::Const(b)) => a == b,
        (ExprKind::Var(a), ExprKind::Var(b)) => a == b,
        (ExprKind::Instance(a), ExprKind::Instance(b)) => a == b,
        (ExprKind::Field(a, i), ExprKind::Field(b, j)) => i == j && same(a, b),
        (ExprKind::Element(a, i), ExprKind::Element(b, j)) => same(a, b) && same(i, j),
        (ExprKind::Slice(a, h, l), ExprKind::Slice(b, i, m)) => h == i && l == m && same(a, b),
        (ExprKind::Unary(p, a), ExprKind::Unary(q, b)) => p == q && same(a, b),
        (ExprKind::Binary(p, a, c), ExprKind::Binary(q, b, d)) => p == q && same(a, b) && same(c, d),
        (ExprKind::Ternary(a, c, e), ExprKind::Ternary(b, d, f)) => same(a, b) && same(c, d) && same(e, f),
        (ExprKind::Cast(a), ExprKind::Cast(b)) => same(a, b),
        (ExprKind::Fields(a), ExprKind::Fields(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (ExprKind::Call(a), ExprKind::Call(b)) | (ExprKind::Hit(a), ExprKind::Hit(b)) => {
            let same_arg = |(a, b): (&Arg, &Arg)| match (a, b) {
                (Arg::Expr(a), Arg::Expr(b)) => same(a, b),
                (Arg::DontCare(_), Arg::DontCare(_)) | (Arg::Absent, Arg::Absent) => true,
                _ => false,
            };
            let same_callee = match (&a.callee, &b.callee) {
                (typed::Callee::Function(a), typed::Callee::Function(b)) => a == b,
                (typed::Callee::ExternFn(a, _), typed::Callee::ExternFn(b, _)) => a == b,
                (typed::Callee::Builtin(a, x), typed::Callee::Builtin(b, y)) => a == b && same(x, y),
                (
                    typed::Callee::Method { object: x, method: a, .. },
                    typed::Callee::Method { object: y, method: b, .. },
                ) => a == b && same(x, y),
                _ => false,
            };
            same_callee && a.args.len() == b.args.len() && a.args.iter().zip(&b.args).all(same_arg)
        }
        (ExprKind::Next(a), ExprKind::Next(b)) | (ExprKind::Last(a), ExprKind::Last(b)) => same(a, b),
        (ExprKind::Invalid, ExprKind::Invalid) | (ExprKind::This, ExprKind::This) => true,
        _ => false,
    }
}
