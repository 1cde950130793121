//! Parsers: parameters, local declarations, states and transitions (specification section 13).

use std::collections::HashMap;
use std::sync::Arc;

use diagnostics::{Diagnostic, Span};

use super::scope::{Symbol, nearest};
use super::{BodyContext, Checker, error_type, is_error};
use crate::ast;
use crate::typed::{self, Keyset, Transition, TransitionTarget, Type};

impl<'a> Checker<'a> {
    /// Checks a parser with these type arguments, once.
    pub(super) fn parser(
        &mut self,
        index: usize,
        decl: &'a ast::Decl,
        parser: &'a ast::ParserDecl,
        args: Vec<Type>,
        span: Span,
    ) -> Type {
        let origin = (index, args);
        if let Some(id) = self.parsers.get(&origin) {
            return Type::Parser(*id);
        }
        if !self.may_specialise(span) {
            return error_type();
        }
        let name = parser.ty.name.name.clone();
        let annotations = self.annotations(&decl.annotations);
        let id = self.out.parsers.push(typed::Parser {
            name: name.clone(),
            params: Vec::new(),
            ctor_params: Vec::new(),
            locals: Vec::new(),
            states: Vec::new(),
            start: 0,
            annotations,
            span: parser.ty.name.span,
        });
        self.parsers.insert(origin.clone(), id);
        self.parser_origins.insert(id, origin.clone());
        let done = self.pipeline(index, &origin.1, span, |c, params, ctor_params| {
            c.out.parsers[id].params = params;
            c.out.parsers[id].ctor_params = ctor_params;
            let mut locals = c.pipeline_locals(&parser.locals);
            let (states, start) = c.states(parser);
            locals.append(&mut c.cx.locals);
            let out = &mut c.out.parsers[id];
            out.locals = locals;
            out.states = states;
            out.start = start;
        });
        if done { Type::Parser(id) } else { error_type() }
    }

    fn states(&mut self, parser: &'a ast::ParserDecl) -> (Vec<typed::State>, usize) {
        let mut places: HashMap<Arc<str>, usize> = HashMap::new();
        for (at, state) in parser.states.iter().enumerate() {
            if matches!(&*state.name.name, "accept" | "reject") {
                let name = &state.name.name;
                self.error(
                    Diagnostic::error("state-name", state.name.span, format!("`{name}` is a built-in state"))
                        .help("choose another name"),
                );
                continue;
            }
            self.declare(&state.name, Symbol::State);
            places.entry(state.name.name.clone()).or_insert(at);
        }
        let start = places.get("start").copied();
        if start.is_none() {
            self.error(
                Diagnostic::error(
                    "no-start",
                    parser.ty.name.span,
                    format!("parser `{}` has no state `start`", parser.ty.name.name),
                )
                .help("parsing begins in `state start { ... }`"),
            );
        }
        let mut states = Vec::new();
        for state in &parser.states {
            let place = std::mem::replace(&mut self.cx.context, BodyContext::State);
            let typed = self.scoped(|c| {
                let (statements, _) = c.statements(&state.statements);
                let transition = c.transition(state, &places);
                let annotations = c.annotations(&state.annotations);
                let body = typed::Block { statements, annotations: Vec::new(), span: state.span };
                typed::State { name: state.name.name.clone(), body, transition, annotations, span: state.name.span }
            });
            self.cx.context = place;
            states.push(typed);
        }
        if let Some(start) = start {
            self.reachability(parser, &states, start);
        }
        (states, start.unwrap_or(0))
    }

    fn transition(&mut self, state: &'a ast::State, places: &HashMap<Arc<str>, usize>) -> Transition {
        match &state.transition {
            None => Transition::Direct(TransitionTarget::Reject, state.span),
            Some(ast::Transition::Direct(name)) => Transition::Direct(self.target(name, places), name.span),
            Some(ast::Transition::Select { exprs, cases, span }) => {
                let mut shapes = Vec::new();
                let mut flat = Vec::new();
                for e in exprs {
                    shapes.push(flatten(e, &mut flat));
                }
                let exprs: Vec<_> = flat
                    .into_iter()
                    .map(|written| {
                        let e = self.check(written, None);
                        let allowed = match &e.ty {
                            Type::Bit(_) | Type::Int(_) | Type::Bool | Type::Enum(_) | Type::Error => true,
                            Type::New(_) => !self.is_opaque(&e.ty),
                            _ => false,
                        };
                        if !allowed && !is_error(&e.ty) {
                            let found = self.describe(&e.ty);
                            self.error(
                                Diagnostic::error(
                                    "select-type",
                                    written.span,
                                    format!("{found} cannot be used in a `select` expression"),
                                )
                                .help("`select` takes bit<w>, int<w>, bool, enums and `error`"),
                            );
                            return super::error_expr(written.span);
                        }
                        e
                    })
                    .collect();
                let mut typed_cases = Vec::new();
                for case in cases {
                    let target = self.target(&case.state, places);
                    if let Some(keys) = self.case_keys(&case.keys, &shapes, &exprs, case.span) {
                        typed_cases.push(typed::SelectCase { keys, target, span: case.span });
                    }
                }
                let catches_all = |case: &typed::SelectCase| case.keys.iter().all(|key| matches!(key, Keyset::Any(_)));
                let after = typed_cases.iter().skip_while(|case| !catches_all(case)).nth(1).map(|case| case.span);
                let before = typed_cases.iter().find(|case| catches_all(case)).map(|case| case.span);
                if let (Some(after), Some(before)) = (after, before) {
                    self.error(
                        Diagnostic::warning("unreachable", after, "this case is never reached")
                            .also(before, "this case matches everything"),
                    );
                }
                Transition::Select { exprs, cases: typed_cases, span: *span }
            }
        }
    }

    fn case_keys(
        &mut self,
        keys: &'a [ast::Expr],
        shapes: &[SelectStructure],
        exprs: &[typed::Expr],
        span: Span,
    ) -> Option<Vec<Keyset>> {
        if let [only] = keys
            && exprs.len() != 1
        {
            if matches!(only.kind, ast::ExprKind::Default | ast::ExprKind::DontCare) {
                return Some(vec![Keyset::Any(only.span)]);
            }
            if let ast::ExprKind::Name { absolute, name } = &only.kind
                && let Some(Symbol::ValueSet(id)) = self.find(&name.name, *absolute).map(|binding| binding.symbol)
            {
                let ty = self.out.value_sets[id].ty.clone();
                let mut parts = Vec::new();
                self.scalars_of(&ty, &mut parts);
                let same = parts.len() == exprs.len()
                    && parts.iter().zip(exprs).all(|(part, e)| *part == e.ty || is_error(&e.ty));
                if same {
                    self.used.value_sets.insert(id);
                    return Some(vec![Keyset::ValueSet(id, only.span)]);
                }
                let found = self.describe(&ty);
                self.error(
                    Diagnostic::error(
                        "type-mismatch",
                        only.span,
                        format!("a value set of {found} does not match the types of the `select` expression"),
                    )
                    .also(self.out.value_sets[id].span, "declared here"),
                );
                return None;
            }
        }
        let mut flat = Vec::new();
        let fits = keys.len() == shapes.len()
            && keys.iter().zip(shapes).all(|(key, structure)| fit(key, structure, &mut flat));
        if !fits {
            self.error(
                Diagnostic::error(
                    "wrong-count",
                    span,
                    format!("the `select` expression has {} values, but this case has {}", shapes.len(), keys.len()),
                )
                .label("expected one keyset per value"),
            );
            return None;
        }
        let mut out = Vec::new();
        for (key, e) in flat.into_iter().zip(exprs) {
            let keyset = self.keyset(key, &e.ty);
            // Later cases are not evaluated if an earlier one matches, so a keyset must not contain calls.
            let calls = match &keyset {
                Some(Keyset::Value(a)) => has_call(a),
                Some(Keyset::Mask(a, b) | Keyset::Range(a, b)) => has_call(a) || has_call(b),
                _ => false,
            };
            if calls {
                self.error(
                    Diagnostic::error("keyset-call", key.span, "a keyset cannot contain a call")
                        .help("store the result in a variable before the `select`, and use the variable"),
                );
                return None;
            }
            out.push(keyset);
        }
        out.into_iter().collect()
    }

    /// Collects the types of all fields of a struct or tuple, including those of nested structs.
    fn scalars_of(&self, ty: &Type, out: &mut Vec<Type>) {
        match ty {
            Type::Tuple(types) => types.iter().for_each(|ty| self.scalars_of(ty, out)),
            Type::Struct(id) => self.out.structs[*id].fields.iter().for_each(|field| self.scalars_of(&field.ty, out)),
            _ => out.push(ty.clone()),
        }
    }

    fn target(&mut self, name: &ast::Ident, places: &HashMap<Arc<str>, usize>) -> TransitionTarget {
        match &*name.name {
            "accept" => return TransitionTarget::Accept,
            "reject" => return TransitionTarget::Reject,
            _ => {}
        }
        if let Some(at) = places.get(&name.name) {
            return TransitionTarget::State(*at);
        }
        let built_in = ["accept", "reject"];
        let near = nearest(&name.name, places.keys().map(|name| &**name).chain(built_in));
        let mut diagnostic =
            Diagnostic::error("unknown-state", name.span, format!("there is no state `{}`", name.name));
        if let Some(near) = near {
            diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
        }
        self.error(diagnostic);
        TransitionTarget::Reject
    }

    /// Warns about unreachable states, and rejects parsers that never end.
    fn reachability(&mut self, parser: &'a ast::ParserDecl, states: &[typed::State], start: usize) {
        let mut reached = vec![false; states.len()];
        let mut work = vec![start];
        let mut ends = false;
        reached[start] = true;
        while let Some(at) = work.pop() {
            let mut targets = Vec::new();
            match &states[at].transition {
                Transition::Direct(target, _) => targets.push(*target),
                Transition::Select { cases, .. } => {
                    targets.extend(cases.iter().map(|case| case.target));
                    // If no case matches, the packet is rejected.
                    let catches_all =
                        cases.iter().any(|case| case.keys.iter().all(|key| matches!(key, Keyset::Any(_))));
                    ends |= !catches_all;
                }
            }
            for target in targets {
                match target {
                    TransitionTarget::State(next) if !reached[next] => {
                        reached[next] = true;
                        work.push(next);
                    }
                    TransitionTarget::State(_) => {}
                    TransitionTarget::Accept | TransitionTarget::Reject => ends = true,
                }
            }
        }
        if !ends {
            self.error(
                Diagnostic::error(
                    "endless-parser",
                    parser.ty.name.span,
                    format!("parser `{}` never terminates", parser.ty.name.name),
                )
                .label("no state leads to `accept` or `reject`"),
            );
        }
        for (state, reached) in parser.states.iter().zip(reached) {
            if !reached && !matches!(&*state.name.name, "accept" | "reject") {
                self.error(Diagnostic::warning(
                    "unreachable-state",
                    state.name.span,
                    format!("no state leads to `{}`", state.name.name),
                ));
            }
        }
    }
}

/// Structure of a selected expression: a tuple of expressions, or a single one.
enum SelectStructure {
    One,
    Tuple(Vec<SelectStructure>),
}

/// Flattens a selected expression into `out`, and returns its structure.
fn flatten<'e>(e: &'e ast::Expr, out: &mut Vec<&'e ast::Expr>) -> SelectStructure {
    match &e.kind {
        ast::ExprKind::List(items) => SelectStructure::Tuple(items.iter().map(|item| flatten(item, out)).collect()),
        _ => {
            out.push(e);
            SelectStructure::One
        }
    }
}

/// Whether an expression to compare with contains a call.
fn has_call(e: &typed::Expr) -> bool {
    use typed::ExprKind::*;
    match &e.kind {
        Call(_) | Hit(_) | ActionRun(_) => true,
        Const(_) | Var(_) | Instance(_) | ValueSet(_) | This | Invalid => false,
        Field(base, _) | Next(base) | Last(base) | LastIndex(base) | Slice(base, ..) | Unary(_, base) | Cast(base) => {
            has_call(base)
        }
        Element(a, b) | Binary(_, a, b) => has_call(a) || has_call(b),
        Ternary(a, b, c) => has_call(a) || has_call(b) || has_call(c),
        Fields(parts) => parts.iter().any(has_call),
    }
}

/// Flattens the keysets in `key` into `out`, one for each expression of `structure`; returns false if their numbers
/// differ.
fn fit<'e>(key: &'e ast::Expr, structure: &SelectStructure, out: &mut Vec<&'e ast::Expr>) -> bool {
    match (structure, &key.kind) {
        (SelectStructure::One, _) => {
            out.push(key);
            true
        }
        (SelectStructure::Tuple(parts), ast::ExprKind::Default | ast::ExprKind::DontCare) => {
            parts.iter().all(|part| fit(key, part, out))
        }
        (SelectStructure::Tuple(parts), ast::ExprKind::List(items)) => {
            items.len() == parts.len() && items.iter().zip(parts).all(|(item, part)| fit(item, part, out))
        }
        _ => false,
    }
}
