//! Checks keysets in cases of `select` and in entries of tables (specification section 8.15).

use diagnostics::Diagnostic;
use num_bigint::BigInt;
use num_traits::{One, Zero};

use super::scope::Symbol;
use super::{Checker, is_error};
use crate::ast;
use crate::typed::{Expr, Keyset, Type};

impl Checker<'_> {
    /// Checks a keyset of values of type `ty`; returns `None`, with a diagnostic, if it is none.
    pub(super) fn keyset(&mut self, e: &ast::Expr, ty: &Type) -> Option<Keyset> {
        match &e.kind {
            ast::ExprKind::Default | ast::ExprKind::DontCare => Some(Keyset::Any(e.span)),
            ast::ExprKind::Mask(value, mask) => {
                let value = self.set_bound(value, ty)?;
                let mask = self.set_bound(mask, ty)?;
                self.has_bits(e, ty)?;
                Some(Keyset::Mask(value, mask))
            }
            ast::ExprKind::Range(low, high) => {
                let low = self.set_bound(low, ty)?;
                let high = self.set_bound(high, ty)?;
                self.has_bits(e, ty)?;
                if let (Some(a), Some(b)) = (self.constant_integer(&low), self.constant_integer(&high))
                    && a > b
                {
                    self.error(
                        Diagnostic::warning("empty-range", e.span, "this range is empty")
                            .label(format!("{a} is larger than {b}")),
                    );
                }
                Some(Keyset::Range(low, high))
            }
            ast::ExprKind::Name { absolute, name } => {
                if let Some(Symbol::ValueSet(id)) = self.find(&name.name, *absolute).map(|binding| binding.symbol) {
                    let element = self.out.value_sets[id].ty.clone();
                    if element != *ty && !self.single_field_of(&element, ty) {
                        let (expected, found) = (self.describe(ty), self.describe(&element));
                        self.error(
                            Diagnostic::error("type-mismatch", e.span, format!("expected {expected}, found {found}"))
                                .label(format!("a value set of {found}"))
                                .also(self.out.value_sets[id].span, "declared here"),
                        );
                        return None;
                    }
                    self.used.value_sets.insert(id);
                    return Some(Keyset::ValueSet(id, e.span));
                }
                self.single(e, ty)
            }
            _ => self.single(e, ty),
        }
    }

    fn single_field_of(&self, element: &Type, ty: &Type) -> bool {
        match element {
            Type::Struct(id) => matches!(&self.out.structs[*id].fields[..], [only] if only.ty == *ty),
            Type::Tuple(types) => matches!(&types[..], [only] if only == ty),
            _ => false,
        }
    }

    fn single(&mut self, e: &ast::Expr, ty: &Type) -> Option<Keyset> {
        let value = self.check_as(e, ty);
        (!is_error(&value.ty)).then_some(Keyset::Value(value))
    }

    /// Checks a bound of a mask or range. Enums have numbers there, too.
    fn set_bound(&mut self, e: &ast::Expr, ty: &Type) -> Option<Expr> {
        let typed = self.check(e, Some(ty));
        let below = self.underlying_of_enum(ty);
        let typed = match below {
            Some(below) if typed.ty != *ty => {
                let number = self.convert(typed, &below);
                if is_error(&number.ty) { number } else { self.recast(number, ty) }
            }
            _ => self.convert(typed, ty),
        };
        (!is_error(&typed.ty)).then_some(typed)
    }

    fn has_bits(&mut self, e: &ast::Expr, ty: &Type) -> Option<()> {
        if matches!(ty, Type::Bit(_) | Type::Int(_)) || self.underlying_of_enum(ty).is_some() || is_error(ty) {
            return Some(());
        }
        if let Some(below) = self.underlying_of_new(ty) {
            return self.has_bits(e, &below);
        }
        let found = self.describe(ty);
        self.error(Diagnostic::error("type-mismatch", e.span, format!("masks and ranges are not defined on {found}")));
        None
    }
}

/// Whether a mask of `width` bits consists of ones followed by zeros, as longest-prefix match requires.
pub(super) fn is_prefix(mask: &BigInt, width: u32) -> bool {
    let all: BigInt = (BigInt::one() << width) - 1;
    let zeros = &all - (mask & &all);
    let above: BigInt = &zeros + 1;
    (zeros & above).is_zero()
}
