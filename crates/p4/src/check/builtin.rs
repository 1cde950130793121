//! Checks built-in methods of headers, header unions and stacks, and the specification's additional rules for the
//! methods of `core.p4`.

use diagnostics::{Diagnostic, Span};
use num_traits::ToPrimitive;

use super::method::CallResult;
use super::scope::nearest;
use super::{Checker, constant, is_error};
use crate::ast;
use crate::typed::{Arg, Builtin, Call, Callee, Expr, Type, Value};

fn is_size_method(name: &str) -> bool {
    matches!(name, "minSizeInBits" | "minSizeInBytes" | "maxSizeInBits" | "maxSizeInBytes")
}

impl Checker<'_> {
    /// Checks `H.minSizeInBits()` and similar methods, of values and of types.
    pub(super) fn size_method(
        &mut self,
        ty: &Type,
        name: &ast::Ident,
        args: &[ast::Arg],
        span: Span,
    ) -> Option<CallResult> {
        if !is_size_method(&name.name) {
            return None;
        }
        if matches!(ty, Type::Extern(_)) {
            return None;
        }
        let Some((low, high)) = self.size_in_bits(ty) else {
            if self.contains_opaque(ty) {
                // The size of a type parameter is unknown in a generic declaration; 0 stands in.
                return Some(CallResult::Value(constant(Value::Integer(0.into()), Type::Integer, span)));
            }
            let found = self.describe(ty);
            self.error(Diagnostic::error("no-size", span, format!("{found} has no size in bits")));
            return Some(CallResult::Invalid);
        };
        if !args.is_empty() {
            self.error(Diagnostic::error("argument-count", span, format!("`{}` takes no arguments", name.name)));
            return Some(CallResult::Invalid);
        }
        let bits = if name.name.starts_with("min") { low } else { high };
        let size = if name.name.ends_with("Bytes") { bits.div_ceil(8) } else { bits };
        Some(CallResult::Value(constant(Value::Integer(size.into()), Type::Integer, span)))
    }

    /// Returns the size of `stack[i]`. Nothing is evaluated, so the element need not exist.
    pub(super) fn size_of_element(
        &mut self,
        base: &ast::Expr,
        name: &ast::Ident,
        args: &[ast::Arg],
        span: Span,
    ) -> Option<CallResult> {
        let ast::ExprKind::Index(stack, index) = &base.kind else { return None };
        if !is_size_method(&name.name) {
            return None;
        }
        let Type::Stack(element, _) = self.check(stack, None).ty else { return None };
        self.check(index, None);
        self.size_method(&element, name, args, span)
    }

    /// Whether the type is opaque, a type parameter of the generic declaration being checked, or contains such a type.
    fn contains_opaque(&self, ty: &Type) -> bool {
        match ty {
            Type::Struct(id) => self.out.structs[*id].fields.iter().any(|field| self.contains_opaque(&field.ty)),
            Type::Stack(element, _) => self.contains_opaque(element),
            _ => self.is_opaque(ty),
        }
    }

    /// Checks the specification's rules for the methods of `core.p4` beyond their signatures. Returns false after
    /// reporting an error.
    pub(super) fn check_core_method(
        &mut self,
        object: &str,
        method: &str,
        args: &[Arg],
        types: &[Type],
        span: Span,
    ) -> bool {
        let problem = match (object, method) {
            ("packet_in", "extract") => {
                let ty = match args.first() {
                    Some(Arg::Expr(e)) => &e.ty,
                    Some(Arg::DontCare(ty)) => ty,
                    _ => return true,
                };
                let has_varbit = self
                    .struct_decl(ty)
                    .is_some_and(|decl| decl.fields.iter().any(|field| matches!(field.ty, Type::Varbit(_))));
                if is_error(ty) || self.is_opaque(ty) {
                    None
                } else if !self.check_varbits(&ty.clone()) {
                    return false;
                } else if !self.is_header(ty) {
                    Some(format!("`extract` takes a header, not {}", self.describe(ty)))
                } else if args.len() == 1 && has_varbit {
                    Some("this header has a varbit field: its size must be given as the second argument".to_owned())
                } else if args.len() == 2 && !has_varbit {
                    Some(
                        "`extract` with two arguments takes a header with a varbit field, and this one has none"
                            .to_owned(),
                    )
                } else {
                    None
                }
            }
            ("packet_in", "lookahead") => match types.first() {
                Some(ty) if self.contains_opaque(ty) || is_error(ty) => None,
                Some(ty) => match self.size_in_bits(ty) {
                    Some((low, high)) if low == high => None,
                    _ => Some(format!("`lookahead` takes a type of fixed size, and {} has none", self.describe(ty))),
                },
                None => None,
            },
            ("packet_out", "emit") => match types.first() {
                Some(ty) if !self.can_be_emitted(ty) => Some(format!(
                    "`emit` takes headers, header stacks, header unions, and structs or tuples of them, not {}",
                    self.describe(ty)
                )),
                _ => None,
            },
            _ => None,
        };
        match problem {
            None => true,
            Some(problem) => {
                let at = match args.first() {
                    Some(Arg::Expr(e)) => e.span,
                    _ => span,
                };
                self.error(Diagnostic::error("core-method", at, problem));
                false
            }
        }
    }

    fn can_be_emitted(&self, ty: &Type) -> bool {
        match ty {
            Type::Stack(element, _) => self.can_be_emitted(element),
            Type::Struct(_) if self.is_header(ty) || self.is_union(ty) => true,
            Type::Struct(id) => self.out.structs[*id].fields.iter().all(|field| self.can_be_emitted(&field.ty)),
            Type::Tuple(types) => types.iter().all(|ty| self.can_be_emitted(ty)),
            _ => is_error(ty) || self.is_opaque(ty),
        }
    }

    pub(super) fn header_method(
        &mut self,
        object: Expr,
        name: &ast::Ident,
        args: &[ast::Arg],
        span: Span,
    ) -> CallResult {
        let is_union = self.is_union(&object.ty);
        let builtin = match &*name.name {
            "isValid" => Builtin::IsValid,
            "setValid" if !is_union => Builtin::SetValid,
            "setInvalid" if !is_union => Builtin::SetInvalid,
            _ => {
                let found = self.describe(&object.ty);
                let near = nearest(&name.name, ["isValid", "setValid", "setInvalid"].into_iter());
                let mut diagnostic =
                    Diagnostic::error("unknown-method", name.span, format!("{found} has no method `{}`", name.name));
                if let Some(near) = near {
                    diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
                }
                self.error(diagnostic);
                self.check_args_anyway(args);
                return CallResult::Invalid;
            }
        };
        if !args.is_empty() {
            self.error(Diagnostic::error("argument-count", span, format!("`{}` takes no arguments", name.name)));
            return CallResult::Invalid;
        }
        if builtin != Builtin::IsValid && !self.is_lvalue(&object) {
            self.not_an_lvalue(&object);
            return CallResult::Invalid;
        }
        let ty = if builtin == Builtin::IsValid { Type::Bool } else { Type::Void };
        CallResult::Call(
            Call { callee: Callee::Builtin(builtin, Box::new(object)), args: Vec::new(), order: Vec::new(), span },
            ty,
        )
    }

    pub(super) fn stack_method(
        &mut self,
        object: Expr,
        name: &ast::Ident,
        args: &[ast::Arg],
        span: Span,
    ) -> CallResult {
        let [arg] = args else {
            self.error(Diagnostic::error("argument-count", span, format!("`{}` takes one argument", name.name)));
            return CallResult::Invalid;
        };
        let Some(count) = self.integer(&arg.value, "the count") else { return CallResult::Invalid };
        let Some(count) = count.to_u32() else {
            self.error(Diagnostic::error("index", arg.value.span, format!("{count} is not a valid number of headers")));
            return CallResult::Invalid;
        };
        if !self.is_lvalue(&object) {
            self.not_an_lvalue(&object);
            return CallResult::Invalid;
        }
        let builtin = if &*name.name == "push_front" { Builtin::PushFront(count) } else { Builtin::PopFront(count) };
        CallResult::Call(
            Call { callee: Callee::Builtin(builtin, Box::new(object)), args: Vec::new(), order: Vec::new(), span },
            Type::Void,
        )
    }
}
