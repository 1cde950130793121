//! Lowers equality of values of any type, and packs values into one bit vector.

use ir::{BinaryOp, Expr};
use p4::ast::StructKind;
use p4::typed::Type;

use crate::lowering::Lowering;
use crate::storage::resolve;
use crate::value::Val;
use ir::fold;

impl<'a> Lowering<'a> {
    /// Compares two values of one type for equality (sections 8.16 to 8.20); the result is one bit.
    pub(crate) fn equal(&mut self, a: &Val, b: &Val, ty: &Type) -> Expr {
        self.spend(1);
        if self.failed {
            return fold::bool(false);
        }
        match (a, b) {
            (Val::Integer(a), Val::Integer(b)) => return fold::bool(a == b),
            (Val::Text(a), Val::Text(b)) => return fold::bool(a == b),
            (Val::Varbit(a, i), Val::Varbit(b, j)) => {
                return Expr::VarbitEq(Box::new((a.clone(), *i, b.clone(), *j)));
            }
            (Val::Bits(_), _) | (_, Val::Bits(_)) => {
                return fold::binary(BinaryOp::Eq, self.bits(a.clone(), ty), self.bits(b.clone(), ty));
            }
            _ => {}
        }
        if let Type::Stack(element, size) = resolve(self.program, ty) {
            let (a, b) = (self.elements_or_invalid(a, element, *size), self.elements_or_invalid(b, element, *size));
            let element = (**element).clone();
            return all(a.iter().zip(&b).map(|(a, b)| self.equal(a, b, &element)));
        }
        match self.struct_kind(ty) {
            Some((_, StructKind::Header)) => {
                let (va, vb) = (validity(a), validity(b));
                let both = fold::and(va.clone(), vb.clone());
                let neither = fold::and(fold::not(va), fold::not(vb));
                fold::or(neither, fold::and(both, self.fields_equal(a, b, ty)))
            }
            _ => self.fields_equal(a, b, ty),
        }
    }

    fn elements_or_invalid(&self, val: &Val, element: &Type, size: u32) -> Vec<Val> {
        match val {
            Val::Stack(_) | Val::Array(..) | Val::Fields(_) => self.elements(val, element),
            _ => vec![Val::Invalid; size as usize],
        }
    }

    fn fields_equal(&mut self, a: &Val, b: &Val, ty: &Type) -> Expr {
        let (a, b) = (self.parts_of(a.clone(), ty), self.parts_of(b.clone(), ty));
        let fields = self.fields_of(ty);
        all(fields.iter().zip(a.iter().zip(&b)).map(|((_, field), (a, b))| self.equal(a, b, field)))
    }

    /// Concatenates the value's scalars, the first one most significant. Returns `None` if there is a `varbit` among
    /// them.
    pub fn pack(&self, val: Val, ty: &Type) -> Option<(Expr, u32)> {
        let mut parts = Vec::new();
        let mut sum = 0u32;
        for (_, leaf, ty) in self.leaves("", val, ty) {
            let width = self.scalar_width(&ty)?;
            sum = sum.checked_add(width).filter(|sum| *sum <= bits::MAX_WIDTH)?;
            parts.push(self.bits(leaf, &ty));
        }
        Some((fold::balanced(parts, fold::concat)?, sum))
    }

    /// Inverse of [`Lowering::pack`]: builds a value of type `ty` from the bits of `packed` below bit `width`.
    pub fn unpack(&self, packed: &Expr, width: u32, ty: &Type) -> Val {
        let mut at = width;
        self.unpack_part(packed, width, &mut at, ty)
    }

    fn unpack_part(&self, packed: &Expr, width: u32, at: &mut u32, ty: &Type) -> Val {
        if let Some(part) = self.scalar_width(ty) {
            let high = *at;
            *at = at.saturating_sub(part);
            if part == 0 || high < part {
                return Val::Bits(fold::constant(0, part));
            }
            return Val::Bits(fold::slice(packed.clone(), width, high - 1, *at));
        }
        let parts = self.fields_of(ty).iter().map(|(_, ty)| self.unpack_part(packed, width, at, ty)).collect();
        match self.struct_kind(ty) {
            Some((_, StructKind::Header)) => Val::Literal(parts),
            _ => Val::Fields(parts),
        }
    }

    /// Returns the width in bits of [`Lowering::pack`]'s result for a type; `None` for types that it cannot pack.
    pub fn packed_width(&self, ty: &Type) -> Option<u32> {
        if let Some(width) = self.scalar_width(ty) {
            return Some(width);
        }
        match resolve(self.program, ty) {
            Type::Struct(_) | Type::Tuple(_) => {
                let widths = self.fields_of(ty).into_iter().map(|(_, ty)| self.packed_width(&ty));
                let sum = widths.sum::<Option<u32>>()?;
                (sum <= bits::MAX_WIDTH).then_some(sum)
            }
            _ => None,
        }
    }
}

/// Returns the validity of a header value, one bit.
pub(crate) fn validity(val: &Val) -> Expr {
    match val {
        Val::Header(header) => Expr::Valid(header.clone()),
        Val::Literal(_) | Val::Fields(_) => fold::bool(true),
        Val::Union(members) => members
            .iter()
            .map(|member| Expr::Valid(member.clone()))
            .reduce(fold::or)
            .unwrap_or_else(|| fold::bool(false)),
        _ => fold::bool(false),
    }
}

fn all(conditions: impl Iterator<Item = Expr>) -> Expr {
    fold::balanced(conditions.collect(), fold::and).unwrap_or_else(|| fold::bool(true))
}
