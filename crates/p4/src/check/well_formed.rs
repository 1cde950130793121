//! Well-formedness: permitted nesting of types, and types of parameters and variables (specification sections 7.2.8 and
//! 6.8).

use diagnostics::{Diagnostic, Span};

use super::{Checker, is_error};
use crate::ast::{self, Direction, StructKind};
use crate::typed::Type;

impl Checker<'_> {
    /// Whether values of this type exist at run time.
    pub(super) fn is_runtime(&self, ty: &Type) -> bool {
        matches!(
            ty,
            Type::Bool
                | Type::Bit(_)
                | Type::Int(_)
                | Type::Varbit(_)
                | Type::Error
                | Type::Enum(_)
                | Type::Struct(_)
                | Type::New(_)
                | Type::Stack(..)
                | Type::Tuple(_)
        )
    }

    pub(super) fn check_component(&mut self, ty: &Type, span: Span, of: &str) {
        if is_error(ty) {
            return;
        }
        let allowed = match ty {
            Type::Integer | Type::String | Type::MatchKind | Type::List(_) => of == "a tuple",
            _ => self.is_runtime(ty),
        };
        if !allowed {
            let found = self.describe(ty);
            self.error(Diagnostic::error("component-type", span, format!("{of} cannot contain {found}")));
        }
    }

    /// Reports a field that its struct, header or union may not have. `used` is the span where a generic one is
    /// specialised.
    pub(super) fn check_field(
        &mut self,
        kind: StructKind,
        owner: &ast::Ident,
        ty: &Type,
        field: &ast::Field,
        used: Span,
        is_specialised: bool,
    ) {
        if is_error(ty) || self.is_opaque(ty) {
            return;
        }
        let allowed = match kind {
            StructKind::Struct => {
                // A struct of strings or integers is valid as long as it exists only at compile time.
                self.is_runtime(ty) || matches!(ty, Type::List(_)) || matches!(ty, Type::Integer) && is_specialised
            }
            StructKind::Header => self.allowed_in_header(ty),
            StructKind::Union => self.is_header(ty),
        };
        if allowed {
            return;
        }
        let what = match kind {
            StructKind::Struct => "a struct",
            StructKind::Header => "a header",
            StructKind::Union => "a header_union",
        };
        let found = self.describe(ty);
        let span = if is_specialised { used } else { field.ty.span };
        let help = match kind {
            StructKind::Struct => "the fields of a struct must have run-time types",
            StructKind::Header => {
                "the fields of a header must be bit<w>, int<w>, varbit<w>, bool, serializable enums or structs of them"
            }
            StructKind::Union => "the fields of a header_union must be headers",
        };
        let mut diagnostic = Diagnostic::error(
            "component-type",
            span,
            format!("field `{}` of {what} cannot be {found}", field.name.name),
        )
        .also(owner.span, format!("in `{}`", owner.name))
        .help(help);
        if is_specialised {
            diagnostic = diagnostic.also(field.ty.span, "because of this field");
        }
        self.error(diagnostic);
    }

    fn allowed_in_header(&self, ty: &Type) -> bool {
        match ty {
            Type::Bit(_) | Type::Int(_) | Type::Varbit(_) | Type::Bool => true,
            Type::Enum(_) => self.underlying_of_enum(ty).is_some(),
            Type::New(_) => self.underlying_of_new(ty).is_none_or(|inner| self.allowed_in_header(&inner)),
            Type::Stack(element, _) => {
                !self.is_header(element) && !self.is_union(element) && self.allowed_in_header(element)
            }
            Type::Struct(id) => {
                let decl = &self.out.structs[*id];
                decl.kind == StructKind::Struct
                    && decl.fields.iter().all(|field| {
                        !matches!(field.ty, Type::Varbit(_))
                            && (is_error(&field.ty) || self.allowed_in_header(&field.ty))
                    })
            }
            _ => is_error(ty),
        }
    }

    /// Reports a header with several varbit fields, where headers of that type are parsed.
    pub(super) fn check_varbits(&mut self, ty: &Type) -> bool {
        let Some(decl) = self.struct_decl(ty) else { return true };
        let mut varbits = decl.fields.iter().filter(|field| matches!(field.ty, Type::Varbit(_)));
        if let (Some(first), Some(second)) = (varbits.next(), varbits.next()) {
            let diagnostic =
                Diagnostic::error("varbits", first.span, "an extracted header can have only one varbit field")
                    .label("first varbit field")
                    .also(second.span, "second varbit field");
            self.error(diagnostic);
            return false;
        }
        true
    }

    /// Reports a parameter with a type that is invalid for its direction.
    pub(super) fn check_param_type(&mut self, param: &ast::Param, ty: &Type, what: &str) {
        if is_error(ty) {
            return;
        }
        let found = self.describe(ty);
        let name = &param.name.name;
        if matches!(ty, Type::Void) {
            self.error(Diagnostic::error("param-type", param.ty.span, format!("parameter `{name}` cannot be void")));
            return;
        }
        if param.direction != Direction::None && !self.is_runtime(ty) && !matches!(ty, Type::List(_)) {
            self.error(
                Diagnostic::error(
                    "param-type",
                    param.ty.span,
                    format!("parameter `{name}` of type {found} cannot have a direction"),
                )
                .help(format!("remove the direction of `{name}`: its argument must be known at compile time")),
            );
            return;
        }
        let refused = match (what, ty) {
            (_, Type::Package(_)) => what != "package",
            ("action", Type::Extern(_) | Type::Integer | Type::String) => true,
            ("package", _) => false,
            ("constructor", Type::Parser(_) | Type::Control(_)) => true,
            ("constructor", Type::ParserType(..)) => !self.cx.in_parser,
            ("constructor", Type::ControlType(..)) => self.cx.in_parser,
            (_, Type::Parser(_) | Type::Control(_) | Type::ParserType(..) | Type::ControlType(..)) => true,
            _ => false,
        };
        if refused {
            self.error(
                Diagnostic::error("param-type", param.ty.span, format!("parameter `{name}` cannot have type {found}"))
                    .label(format!("not allowed for parameters of a {what}")),
            );
        }
    }

    /// Reports a variable of a type that only exists at compile time.
    pub(super) fn check_variable_type(&mut self, ty: &Type, span: Span, name: &ast::Ident) {
        if is_error(ty) || self.is_runtime(ty) {
            return;
        }
        let found = self.describe(ty);
        let mut diagnostic = Diagnostic::error("variable-type", span, format!("a variable cannot have type {found}"))
            .also(name.span, format!("variable `{}`", name.name));
        diagnostic = match ty {
            Type::Parser(_) | Type::Control(_) | Type::Extern(_) | Type::Package(_) => {
                let ty = self.describe_plainly(ty);
                diagnostic.help(format!("to declare an instance, write `{ty}() {};`", name.name))
            }
            Type::Integer => diagnostic.help("give it a width: `bit<32>`, `int<8>`"),
            _ => diagnostic,
        };
        self.error(diagnostic);
    }

    /// Returns the number of scalar values in a type.
    pub(super) fn leaves(&self, ty: &Type) -> u64 {
        match ty {
            Type::Struct(id) => self.leaves.get(id).copied().unwrap_or(1),
            Type::Stack(element, size) => self.leaves(element).saturating_mul(u64::from(*size)).max(1),
            Type::Tuple(types) => types.iter().fold(1, |sum: u64, ty| sum.saturating_add(self.leaves(ty))),
            _ => 1,
        }
    }

    /// Whether a type with this many scalar values is supported; reports one that is not.
    pub(super) fn is_small_enough(&mut self, leaves: u64, span: Span) -> bool {
        if leaves > super::MAX_LEAVES {
            self.error(
                Diagnostic::error("too-large", span, "values of this type are too large")
                    .label(format!("more than {} fields and elements", super::MAX_LEAVES)),
            );
            return false;
        }
        true
    }

    /// Counts expanded values; returns false, with a diagnostic, if the program has too many.
    pub(super) fn spend(&mut self, ty: &Type, span: Span) -> bool {
        self.values = self.values.saturating_add(self.leaves(ty));
        if self.values > super::MAX_VALUES {
            self.error(Diagnostic::error("too-large", span, "the constants of this program are too large"));
            return false;
        }
        true
    }

    /// Returns the minimum and maximum size in bits of a value of this type on the wire; `None` for types without one.
    pub(super) fn size_in_bits(&self, ty: &Type) -> Option<(u64, u64)> {
        let same = |width: u32| Some((u64::from(width), u64::from(width)));
        match ty {
            Type::Bool => same(1),
            Type::Bit(width) | Type::Int(width) => same(*width),
            Type::Varbit(width) => Some((0, u64::from(*width))),
            Type::Enum(_) => self.size_in_bits(&self.underlying_of_enum(ty)?),
            Type::New(_) => self.size_in_bits(&self.underlying_of_new(ty)?),
            Type::Stack(element, size) => {
                let (low, high) = self.size_in_bits(element)?;
                Some((low.checked_mul(u64::from(*size))?, high.checked_mul(u64::from(*size))?))
            }
            Type::Tuple(types) => self.sum_of_sizes(types.iter()),
            Type::Struct(id) if self.out.structs[*id].kind == StructKind::Union => {
                let sizes: Option<Vec<_>> =
                    self.out.structs[*id].fields.iter().map(|field| self.size_in_bits(&field.ty)).collect();
                let sizes = sizes?;
                Some((sizes.iter().map(|s| s.0).min().unwrap_or(0), sizes.iter().map(|s| s.1).max().unwrap_or(0)))
            }
            Type::Struct(id) => self.sum_of_sizes(self.out.structs[*id].fields.iter().map(|field| &field.ty)),
            _ => None,
        }
    }

    fn sum_of_sizes<'t>(&self, types: impl Iterator<Item = &'t Type>) -> Option<(u64, u64)> {
        let mut sum = (0u64, 0u64);
        for ty in types {
            let (low, high) = self.size_in_bits(ty)?;
            sum = (sum.0.checked_add(low)?, sum.1.checked_add(high)?);
        }
        Some(sum)
    }
}
