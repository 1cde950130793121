//! What is asked of types: whether they hold headers, or anything at all.

use super::Flow;
use crate::ast::StructKind;
use crate::typed::Type;

/// What lint asks of a type.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// Whether there is a header, union or stack in values of this type: those begin as invalid, which is a value.
    pub(super) has_header: bool,
    /// Whether values of this type hold nothing.
    pub(super) is_empty: bool,
}

pub(super) const EMPTY: Shape = Shape { has_header: false, is_empty: true };

impl Shape {
    pub(super) fn and(self, other: Shape) -> Shape {
        Shape { has_header: self.has_header || other.has_header, is_empty: self.is_empty && other.is_empty }
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

    pub(super) fn shape(&self, ty: &Type) -> Shape {
        match ty {
            Type::Struct(id) => self.shapes.get(id).copied().unwrap_or(Shape { has_header: false, is_empty: false }),
            Type::Stack(..) => Shape { has_header: true, is_empty: false },
            Type::Tuple(types) => types.iter().fold(EMPTY, |sum, ty| sum.and(self.shape(ty))),
            _ => Shape { has_header: false, is_empty: false },
        }
    }
}
