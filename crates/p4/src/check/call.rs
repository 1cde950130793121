//! Calls: matches arguments with parameters, infers type arguments, converts values and checks directions.

use std::sync::Arc;

use diagnostics::{Diagnostic, Span};

use super::infer::{InferenceVars, contains_int, has_wildcard, mentions};
use super::method::CallSite;
use super::signature::evaluation_order;
use super::type_arguments::is_left_open;
use super::{Checker, DeclContext, counted, error_expr, is_error};
use crate::ast::{self, Direction, TypeRef, TypeRefKind};
use crate::typed::{self, Expr, Type};

/// Kind of the callee; it determines the rules for arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    Function,
    Extern,
    Constructor,
    Apply,
}

/// The callee, as declared.
pub(super) struct Signature<'a> {
    pub(super) kind: CallKind,
    pub(super) name: Arc<str>,
    /// Span of the declaration.
    pub(super) span: Span,
    /// Number of top-level declarations visible there.
    pub(super) visible_decls: usize,
    /// Type parameters of enclosing declarations, with their values.
    pub(super) bindings: Vec<(Arc<str>, Type)>,
    /// Its own type parameters.
    pub(super) type_params: &'a [ast::Ident],
    pub(super) params: &'a [ast::Param],
    /// The result type; helps inference.
    pub(super) ret: Option<&'a TypeRef>,
}

/// A parameter with a resolved type.
#[derive(Clone)]
pub(super) struct Formal {
    pub(super) name: Arc<str>,
    pub(super) span: Span,
    pub(super) direction: Direction,
    pub(super) ty: Type,
    /// Value of an omitted argument, for actions.
    pub(super) default: Option<Expr>,
}

/// A call with matched arguments.
pub(super) struct MatchedCall {
    pub(super) args: Vec<typed::Arg>,
    /// Order of evaluation, see [`typed::Call::order`].
    pub(super) order: Vec<usize>,
    /// Values of the signature's own type parameters.
    pub(super) type_args: Vec<Type>,
    /// All type parameters, for resolving the result type.
    pub(super) bindings: Vec<(Arc<str>, Type)>,
}

pub(super) fn is_optional(param: &ast::Param) -> bool {
    param.annotations.iter().any(|annotation| &*annotation.name.name == "optional")
}

pub(super) fn may_be_absent(param: &ast::Param) -> bool {
    param.default.is_some() || is_optional(param)
}

/// Whether a call with these arguments fits these parameters, judging by their number and names.
pub(super) fn applicable(args: &[ast::Arg], params: &[ast::Param]) -> bool {
    if args.iter().any(|arg| arg.name.is_some()) {
        let given =
            |param: &ast::Param| args.iter().any(|arg| arg.name.as_ref().is_some_and(|n| n.name == param.name.name));
        let known = |arg: &ast::Arg| {
            arg.name.as_ref().is_some_and(|name| params.iter().any(|param| param.name.name == name.name))
        };
        args.iter().all(known) && params.iter().all(|param| given(param) || may_be_absent(param))
    } else {
        args.len() <= params.len() && params[args.len()..].iter().all(may_be_absent)
    }
}

impl<'a> Checker<'a> {
    /// Assigns arguments to parameters; reports arguments that fit no parameter, and parameters without an argument.
    pub(super) fn assign(
        &mut self,
        args: &[ast::Arg],
        params: &[(Arc<str>, bool)],
        name: &str,
        at: Span,
        span: Span,
    ) -> Option<Vec<Option<usize>>> {
        let mut slots = vec![None; params.len()];
        let named = args.iter().filter(|arg| arg.name.is_some()).count();
        let mut fine = true;
        if named != 0 && named != args.len() {
            let mixed = args.iter().find(|arg| arg.name.is_none()).map_or(span, |arg| arg.value.span);
            self.error(
                Diagnostic::error("mixed-arguments", mixed, "positional and named arguments cannot be mixed")
                    .label("this argument has no name"),
            );
            return None;
        }
        for (position, arg) in args.iter().enumerate() {
            let slot = match &arg.name {
                None => (position < params.len()).then_some(position),
                Some(name) => params.iter().position(|(param, _)| *param == name.name),
            };
            match slot {
                None => {
                    let diagnostic = match &arg.name {
                        Some(given) => Diagnostic::error(
                            "unknown-parameter",
                            given.span,
                            format!("`{name}` has no parameter `{}`", given.name),
                        ),
                        None => Diagnostic::error(
                            "argument-count",
                            arg.value.span,
                            format!(
                                "`{name}` takes {}, but {} given",
                                counted(params.len(), "argument"),
                                if args.len() == 1 { "1 is".to_owned() } else { format!("{} are", args.len()) }
                            ),
                        ),
                    };
                    self.error(diagnostic.also(at, "declared here"));
                    return None;
                }
                Some(slot) if slots[slot].is_some() => {
                    let at = arg.name.as_ref().map_or(span, |name| name.span);
                    self.error(Diagnostic::error("duplicate", at, "this argument is given twice"));
                    fine = false;
                }
                Some(slot) => slots[slot] = Some(position),
            }
        }
        for ((param, optional), slot) in params.iter().zip(&slots) {
            if slot.is_none() && !optional {
                self.error(
                    Diagnostic::error("argument-count", span, format!("`{name}` needs an argument for `{param}`"))
                        .also(at, "declared here"),
                );
                fine = false;
            }
        }
        fine.then_some(slots)
    }

    /// Matches the arguments and type arguments of a call with a signature.
    pub(super) fn match_call(&mut self, signature: &Signature<'a>, site: CallSite<'_>) -> Option<MatchedCall> {
        let CallSite { type_args, args, expected, span } = site;
        let params: Vec<_> =
            signature.params.iter().map(|param| (param.name.name.clone(), may_be_absent(param))).collect();
        let slots = self.assign(args, &params, &signature.name, signature.span, span);
        let (mut variables, fine) = self.written_type_arguments(signature, type_args, span)?;
        let Some(slots) = slots else {
            for arg in args {
                if !matches!(arg.value.kind, ast::ExprKind::DontCare) {
                    self.check(&arg.value, None);
                }
            }
            return None;
        };
        let written = variables.clone();
        let checked = self.check_arguments(signature, &slots, args, &mut variables);
        // Explicit type arguments are not inferred.
        for (slot, written) in variables.variables.iter_mut().zip(written.variables) {
            if written.1.is_some() {
                *slot = written;
            }
        }
        self.infer_from_defaults(signature, &slots, &mut variables);
        if let (Some(expected), Some(ret)) = (expected, signature.ret)
            && !variables.unbound().is_empty()
        {
            let (visible, bindings) = (signature.visible_decls, signature.bindings.clone());
            self.within(visible, &bindings, DeclContext::top_level(), |c| c.infer(ret, expected, &mut variables));
        }
        let wrong = !fine || checked.iter().flatten().any(|arg| is_error(&arg.ty));
        if wrong {
            return None;
        }
        // A type written as `_`, or one that only absent arguments could determine, may remain open.
        let open: Vec<_> =
            variables.unbound().into_iter().filter(|name| !is_left_open(signature, type_args, &slots, name)).collect();
        if let Some(name) = open.first() {
            self.report_open_type(signature, &checked, name, span);
            return None;
        }
        if self.reports_anonymous_struct(&variables, &checked, span) {
            return None;
        }
        for (_, ty) in &mut variables.variables {
            if ty.is_none() {
                *ty = Some(Type::Void);
            }
        }
        let vague = variables.variables.iter().any(|(_, ty)| ty.as_ref().is_some_and(contains_int));
        if vague
            && matches!(signature.kind, CallKind::Extern | CallKind::Function)
            && self.passes_vague(signature, &slots, &checked)
        {
            let at = checked.iter().flatten().find(|arg| contains_int(&arg.ty)).map_or(span, |arg| arg.span);
            self.error(
                Diagnostic::error("unknown-width", at, "the width of this number is unknown")
                    .label("its type is `int`")
                    .help("give it a width: `32w1`, or specify the type argument"),
            );
            return None;
        }
        let mut bindings = signature.bindings.clone();
        bindings.extend(variables.bound());
        let formals = self.formals(signature, &bindings, &checked);
        let mut out = Vec::new();
        for (at, formal) in formals.iter().enumerate() {
            out.push(match (slots[at], &checked[at]) {
                (Some(_), Some(e)) => self.pass(e.clone(), formal, signature.kind, &signature.name),
                (Some(position), None) => self.dont_care(formal, args[position].value.span, signature.kind),
                (None, _) => self.absent_argument(signature, at, &formal.ty, &bindings),
            });
        }
        if out.iter().any(|arg| matches!(arg, typed::Arg::Expr(e) if is_error(&e.ty))) {
            return None;
        }
        Some(MatchedCall {
            args: out,
            order: evaluation_order(&slots),
            type_args: variables.variables.into_iter().filter_map(|(_, ty)| ty).collect(),
            bindings,
        })
    }

    /// Returns the argument for parameter `at`, which the call does not give: its default value, if it has one.
    fn absent_argument(
        &mut self,
        signature: &Signature<'a>,
        at: usize,
        ty: &Type,
        bindings: &[(Arc<str>, Type)],
    ) -> typed::Arg {
        let Some(default) = &signature.params[at].default else { return typed::Arg::Absent };
        let visible = signature.visible_decls;
        let value = self.within(visible, bindings, DeclContext::top_level(), |c| c.default_argument(default, ty));
        typed::Arg::Expr(value)
    }

    /// Whether a number without a width is passed where a value exists at run time.
    fn passes_vague(&self, signature: &Signature<'a>, slots: &[Option<usize>], checked: &[Option<Expr>]) -> bool {
        signature.params.iter().zip(slots).zip(checked).any(|((param, _), arg)| {
            param.direction != Direction::None
                && arg.as_ref().is_some_and(|arg| contains_int(&arg.ty))
                && !matches!(param.ty.kind, TypeRefKind::Bit(_) | TypeRefKind::Int(_))
        })
    }

    /// Types the arguments, one per parameter (`None` for `_` and absent ones), and infers type arguments from them.
    fn check_arguments(
        &mut self,
        signature: &Signature<'a>,
        slots: &[Option<usize>],
        args: &[ast::Arg],
        variables: &mut InferenceVars,
    ) -> Vec<Option<Expr>> {
        let mut checked: Vec<Option<Expr>> = slots.iter().map(|_| None).collect();
        // Arguments with weak types are checked after the others have been used for inference.
        let is_weak = |e: &ast::Expr| match &e.kind {
            ast::ExprKind::Int(literal) => literal.width.is_none(),
            ast::ExprKind::List(_) | ast::ExprKind::Struct { .. } | ast::ExprKind::Invalid => true,
            ast::ExprKind::Dots | ast::ExprKind::Unary(..) | ast::ExprKind::Binary(..) => true,
            _ => false,
        };
        for weak in [false, true] {
            for (at, slot) in slots.iter().enumerate() {
                let Some(arg) = slot.map(|position| &args[position]) else { continue };
                if is_weak(&arg.value) != weak || matches!(arg.value.kind, ast::ExprKind::DontCare) {
                    continue;
                }
                let param = &signature.params[at];
                let hint = self.param_type(signature, &param.ty, variables);
                let typed = self.check(&arg.value, hint.as_ref());
                if !variables.variables.is_empty() && hint.as_ref().is_none_or(contains_int) {
                    let (visible, bindings) = (signature.visible_decls, signature.bindings.clone());
                    let ty = match param.direction {
                        Direction::Out | Direction::InOut => typed.ty.clone(),
                        _ => typed.ty.clone(),
                    };
                    self.within(visible, &bindings, DeclContext::top_level(), |c| c.infer(&param.ty, &ty, variables));
                }
                checked[at] = Some(typed);
            }
        }
        checked
    }

    /// Infers type arguments that only the default value of an omitted argument determines.
    fn infer_from_defaults(
        &mut self,
        signature: &Signature<'a>,
        slots: &[Option<usize>],
        variables: &mut InferenceVars,
    ) {
        for (param, slot) in signature.params.iter().zip(slots) {
            let (None, Some(default)) = (slot, &param.default) else { continue };
            let open = variables.unbound();
            if !mentions(&param.ty, &open) || names_any(default, &open) {
                continue;
            }
            let (visible, bindings) = (signature.visible_decls, signature.bindings.clone());
            self.within(visible, &bindings, DeclContext::top_level(), |c| {
                let e = c.check(default, None);
                c.infer(&param.ty, &e.ty, variables);
            });
        }
    }

    /// Returns the type of a parameter, if all type parameters in it are known.
    fn param_type(&mut self, signature: &Signature<'a>, ty: &'a TypeRef, variables: &InferenceVars) -> Option<Type> {
        if mentions(ty, &variables.unbound()) || has_wildcard(ty) {
            return None;
        }
        let mut bindings = signature.bindings.clone();
        bindings.extend(variables.bound());
        let resolved = self.within(signature.visible_decls, &bindings, DeclContext::top_level(), |c| c.resolve(ty));
        (!is_error(&resolved)).then_some(resolved)
    }

    /// Returns the parameters with their types.
    pub(super) fn formals(
        &mut self,
        signature: &Signature<'a>,
        bindings: &[(Arc<str>, Type)],
        found: &[Option<Expr>],
    ) -> Vec<Formal> {
        let params = signature.params;
        let formals: Vec<Formal> = self.within(signature.visible_decls, bindings, DeclContext::top_level(), |c| {
            params
                .iter()
                .zip(found)
                .map(|(param, found)| Formal {
                    name: param.name.name.clone(),
                    span: param.name.span,
                    direction: param.direction,
                    // `_` in the parameter's type stands for any type in the argument.
                    ty: match found {
                        Some(found) if has_wildcard(&param.ty) => found.ty.clone(),
                        None if has_wildcard(&param.ty) => Type::Absent,
                        _ => c.resolve(&param.ty),
                    },
                    default: None,
                })
                .collect()
        });
        formals
    }

    /// Returns the value of an omitted argument; a parser or control is converted to the required signature.
    pub(super) fn default_argument(&mut self, default: &ast::Expr, ty: &Type) -> Expr {
        let e = self.check(default, (!is_error(ty)).then_some(ty));
        match self.convert_instance(e, ty) {
            Ok(e) => e,
            Err(e) => {
                self.mismatch(&e, ty);
                error_expr(default.span)
            }
        }
    }

    fn dont_care(&mut self, formal: &Formal, span: Span, kind: CallKind) -> typed::Arg {
        if formal.direction == Direction::Out || kind == CallKind::Constructor {
            return typed::Arg::DontCare(formal.ty.clone());
        }
        self.error(
            Diagnostic::error("dont-care-argument", span, format!("`{}` needs an argument", formal.name))
                .label("`_` can be passed only to `out` parameters")
                .also(formal.span, "declared here"),
        );
        typed::Arg::Expr(error_expr(span))
    }

    /// Converts the argument `e` for a parameter, and checks it against the direction.
    pub(super) fn pass(&mut self, e: Expr, formal: &Formal, kind: CallKind, callee: &str) -> typed::Arg {
        if is_error(&e.ty) || is_error(&formal.ty) {
            return typed::Arg::Expr(error_expr(e.span));
        }
        let span = e.span;
        let is_instance = matches!(e.ty, Type::Parser(_) | Type::Control(_) | Type::Package(_));
        if is_instance && kind != CallKind::Constructor
            || formal.direction != Direction::None && matches!(formal.ty, Type::String | Type::Integer)
        {
            let found = self.describe(&e.ty);
            self.error(
                Diagnostic::error("argument-type", span, format!("an argument of `{callee}` cannot be {found}"))
                    .also(formal.span, format!("parameter `{}`", formal.name)),
            );
            return typed::Arg::Expr(error_expr(span));
        }
        match formal.direction {
            Direction::Out | Direction::InOut => {
                if e.ty != formal.ty {
                    let (expected, found) = (self.describe(&formal.ty), self.describe(&e.ty));
                    self.error(
                        Diagnostic::error("type-mismatch", span, format!("expected {expected}, found {found}"))
                            .label(format!("this is {found}"))
                            .also(
                                formal.span,
                                format!(
                                    "parameter `{}` of `{callee}` is `out` or `inout`, so there is no implicit cast",
                                    formal.name
                                ),
                            ),
                    );
                    return typed::Arg::Expr(error_expr(span));
                }
                if !self.is_lvalue(&e) {
                    let mut diagnostic = Diagnostic::error(
                        "not-an-lvalue",
                        span,
                        format!("the argument for `{}` of `{callee}` must be an l-value", formal.name),
                    )
                    .label("not an l-value");
                    if formal.span != Span::default() {
                        diagnostic = diagnostic.also(formal.span, "declared here");
                    }
                    self.error(diagnostic.help("pass a variable, a field, or an `out` or `inout` parameter"));
                    return typed::Arg::Expr(error_expr(span));
                }
                typed::Arg::Expr(e)
            }
            Direction::In | Direction::None => {
                let converted = self.convert_instance(e, &formal.ty);
                let e = match converted {
                    Ok(e) => e,
                    Err(e) => {
                        let (expected, found) = (self.describe(&formal.ty), self.describe(&e.ty));
                        let mut diagnostic =
                            Diagnostic::error("type-mismatch", span, format!("expected {expected}, found {found}"))
                                .label(format!("this is {found}"));
                        if formal.span != Span::default() {
                            diagnostic =
                                diagnostic.also(formal.span, format!("parameter `{}` of `{callee}`", formal.name));
                        }
                        if let Some((at, why)) = self.signature_difference(&e.ty, &formal.ty) {
                            diagnostic = diagnostic.also(at, why);
                        }
                        self.error(diagnostic);
                        return typed::Arg::Expr(error_expr(span));
                    }
                };
                let must_be_static =
                    formal.direction == Direction::None && !matches!(e.ty, Type::Extern(_)) && !is_error(&e.ty);
                let is_made = kind == CallKind::Constructor && self.is_factory_call(&e);
                if must_be_static && !is_made && !self.is_static(&e) {
                    let message = format!("`{}` must be known at compile time", formal.name);
                    let mut diagnostic = Diagnostic::error("not-constant", span, message)
                        .label("not a constant")
                        .also(formal.span, format!("a directionless parameter of `{callee}`"));
                    if matches!(kind, CallKind::Function | CallKind::Apply) {
                        diagnostic = diagnostic.help("declare the parameter `in` to pass run-time values");
                    }
                    self.error(diagnostic);
                    return typed::Arg::Expr(error_expr(span));
                }
                typed::Arg::Expr(e)
            }
        }
    }

    /// Converts implicitly; a parser or control is also converted to a required signature.
    fn convert_instance(&mut self, e: Expr, to: &Type) -> Result<Expr, Box<Expr>> {
        match (&e.ty, to) {
            (Type::Parser(_), Type::ParserType(..)) | (Type::Control(_), Type::ControlType(..)) => {
                if self.has_signature(&e.ty, to) { Ok(e) } else { Err(Box::new(e)) }
            }
            _ => self.try_convert(e, to),
        }
    }

    /// Returns the type of the result of a matched call.
    pub(super) fn result_type(&mut self, signature: &Signature<'a>, matched: &MatchedCall) -> Type {
        match signature.ret {
            None => Type::Void,
            Some(ret) => {
                self.within(signature.visible_decls, &matched.bindings, DeclContext::top_level(), |c| c.resolve(ret))
            }
        }
    }

    /// Reports that no overload fits a call.
    pub(super) fn no_overload(
        &mut self,
        name: &str,
        args: &[ast::Arg],
        candidates: &[(Span, usize)],
        span: Span,
    ) -> Expr {
        let mut counts: Vec<usize> = candidates.iter().map(|(_, count)| *count).collect();
        counts.sort_unstable();
        counts.dedup();
        let counts: Vec<String> = counts.iter().map(|count| count.to_string()).collect();
        let message = match args {
            [] => format!("`{name}` needs arguments"),
            [first, ..] if first.name.is_some() => format!("no overload of `{name}` takes arguments with these names"),
            _ => format!("no overload of `{name}` takes {}", counted(args.len(), "argument")),
        };
        let mut diagnostic =
            Diagnostic::error("argument-count", span, message).label(format!("it takes {}", counts.join(" or ")));
        for (at, _) in candidates.iter().take(3) {
            diagnostic = diagnostic.also(*at, "declared here");
        }
        self.error(diagnostic);
        for arg in args {
            if !matches!(arg.value.kind, ast::ExprKind::DontCare) {
                self.check(&arg.value, None);
            }
        }
        error_expr(span)
    }
}

/// Whether a constructor call used as a default value has one of these names among its type arguments.
fn names_any(default: &ast::Expr, names: &[Arc<str>]) -> bool {
    match &default.kind {
        ast::ExprKind::Call { callee, type_args, .. } => {
            type_args.iter().any(|arg| mentions(arg, names))
                || matches!(&callee.kind, ast::ExprKind::Type(ty) if mentions(ty, names))
        }
        _ => false,
    }
}
