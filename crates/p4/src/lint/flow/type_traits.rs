//! Computes properties of types: whether they contain headers, or anything at all.

use super::Flow;
use crate::ast::StructKind;
use crate::typed::Type;

/// Properties of a type that the analysis needs.
#[derive(Clone, Copy)]
pub(super) struct TypeTraits {
    /// Whether values of this type contain a header, union or stack: those are initially invalid, which is a value.
    pub(super) has_header: bool,
    /// Whether values of this type contain nothing.
    pub(super) is_empty: bool,
}

pub(super) const EMPTY: TypeTraits = TypeTraits { has_header: false, is_empty: true };

impl TypeTraits {
    pub(super) fn and(self, other: TypeTraits) -> TypeTraits {
        TypeTraits { has_header: self.has_header || other.has_header, is_empty: self.is_empty && other.is_empty }
    }
}

impl Flow<'_, '_, '_> {
    pub(super) fn header_kind(&self, ty: &Type) -> Option<StructKind> {
        match ty {
            Type::Struct(id) => self.program.structs.get(*id).map(|decl| decl.kind),
            _ => None,
        }
    }

    pub(super) fn is_scalar(&self, ty: &Type) -> bool {
        !matches!(ty, Type::Struct(_) | Type::Stack(..) | Type::Tuple(_) | Type::List(_))
    }

    pub(super) fn type_traits(&self, ty: &Type) -> TypeTraits {
        match ty {
            Type::Struct(id) => {
                self.shapes.get(id).copied().unwrap_or(TypeTraits { has_header: false, is_empty: false })
            }
            Type::Stack(..) => TypeTraits { has_header: true, is_empty: false },
            Type::Tuple(types) => types.iter().fold(EMPTY, |sum, ty| sum.and(self.type_traits(ty))),
            _ => TypeTraits { has_header: false, is_empty: false },
        }
    }
}
