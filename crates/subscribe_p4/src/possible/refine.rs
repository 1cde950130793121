//! Refines values by `select`: of fields of valid headers, or of bits ahead of the cursor.

use std::collections::BTreeMap;

use p4::typed::{Callee, Expr, ExprKind, Keyset, Program, Type, Value, VarId};
use subscribe::{Ranges, max_of};

use super::header_paths::{HeaderPaths, place};
use crate::entries::Matched;
use crate::format::HeaderId;
use crate::read_back::intervals;

/// Maximum number of ranges kept per field; more are widened to unknown.
pub(super) const MAX_RANGES: usize = 64;

/// The operand of a `select`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SelectOperand {
    /// A field of a header: header, member, width.
    Field(HeaderId, usize, u32),
    /// Bits ahead of the cursor: offset and width.
    Lookahead(u32, u32),
}

impl SelectOperand {
    /// Returns the set of all values.
    pub fn all(self) -> Ranges {
        let (SelectOperand::Field(.., width) | SelectOperand::Lookahead(_, width)) = self;
        Ranges::span(0, max_of(width))
    }
}

/// The context in which `select` expressions are resolved.
pub(super) struct SelectContext<'a> {
    pub program: &'a Program,
    pub paths: &'a HeaderPaths<'a>,
    /// The parameter that holds the headers.
    pub headers: VarId,
    /// Variables that hold the result of a lookahead.
    pub copies: BTreeMap<VarId, Type>,
}

impl SelectContext<'_> {
    /// Resolves an expression to an operand, if it is simple.
    pub fn operand(&self, e: &Expr) -> Option<SelectOperand> {
        if let Some((var, path)) = place(e).filter(|_| !matches!(e.kind, ExprKind::Slice(..)))
            && var == self.headers
        {
            let (member, path) = path.split_last()?;
            let header = self.paths.header(path)?;
            return Some(SelectOperand::Field(header, *member, self.paths.unsigned(&e.ty)?));
        }
        let offset = self.ahead(e)?;
        Some(SelectOperand::Lookahead(offset, self.paths.unsigned(&e.ty)?))
    }

    /// Returns the offset ahead of the cursor, in bits, of the value of an expression.
    fn ahead(&self, e: &Expr) -> Option<u32> {
        match &e.kind {
            ExprKind::Var(var) => self.copies.get(var).map(|_| 0),
            ExprKind::Call(_) => self.is_lookahead(e).then_some(0),
            ExprKind::Field(of, at) => Some(self.ahead(of)? + self.paths.offset(&of.ty, *at)?),
            ExprKind::Slice(of, high, _) => Some(self.ahead(of)? + self.paths.unsigned(&of.ty)?.checked_sub(high + 1)?),
            _ => None,
        }
    }

    /// Whether an expression is `packet.lookahead<T>()`.
    pub fn is_lookahead(&self, e: &Expr) -> bool {
        let ExprKind::Call(call) = &e.kind else { return false };
        let Callee::Method { of, method, .. } = &call.callee else { return false };
        let of = &self.program.externs[*of];
        &*of.name == "packet_in" && of.methods.get(*method).is_some_and(|method| &*method.name == "lookahead")
    }

    /// Returns the values of a keyset; `None` if unknown.
    pub fn values(&self, keyset: &Keyset, width: u32) -> Option<Ranges> {
        let number = |e: &Expr| match &e.kind {
            ExprKind::Const(Value::Bits(bits)) if bits.width() == width => Some(bits.low_u128()),
            _ => None,
        };
        let list = match keyset {
            Keyset::Any(_) => return Some(Ranges::span(0, max_of(width))),
            Keyset::Value(value) => vec![(number(value)?, number(value)?)],
            Keyset::Mask(value, mask) => intervals(&Matched::Ternary(number(value)?, number(mask)?), width)?,
            Keyset::Range(first, last) => vec![(number(first)?, number(last)?)],
            Keyset::ValueSet(..) => return None,
        };
        (list.len() <= MAX_RANGES).then(|| Ranges::of(list))
    }
}
