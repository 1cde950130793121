//! What `select` tells of values: of a field of a header that is there, or of bits that are still ahead in the packet.

use std::collections::BTreeMap;

use p4::typed::{Callee, Expr, ExprKind, Keyset, Program, Type, Value, VarId};
use subscribe::{Ranges, max_of};

use super::places::{Places, place};
use crate::entries::Matched;
use crate::format::HeaderId;
use crate::read_back::stretches;

/// More stretches than these of one field are not remembered.
pub(super) const MOST_STRETCHES: usize = 64;

/// What is selected on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A field of a header.
    Field(HeaderId, usize, u32),
    /// So many bits behind the cursor, and how many.
    Ahead(u32, u32),
}

impl Asked {
    /// All values.
    pub fn all(self) -> Ranges {
        let (Asked::Field(.., width) | Asked::Ahead(_, width)) = self;
        Ranges::span(0, max_of(width))
    }
}

/// What the parser knows when it selects.
pub(super) struct Asker<'a> {
    pub program: &'a Program,
    pub places: &'a Places<'a>,
    /// The parameter with the headers.
    pub headers: VarId,
    /// Variables that are what lies behind the cursor.
    pub copies: BTreeMap<VarId, Type>,
}

impl Asker<'_> {
    /// What an expression asks, if it is plain.
    pub fn asked(&self, e: &Expr) -> Option<Asked> {
        if let Some((var, path)) = place(e).filter(|_| !matches!(e.kind, ExprKind::Slice(..)))
            && var == self.headers
        {
            let (member, path) = path.split_last()?;
            let header = self.places.header(path)?;
            return Some(Asked::Field(header, *member, self.places.unsigned(&e.ty)?));
        }
        let offset = self.ahead(e)?;
        Some(Asked::Ahead(offset, self.places.unsigned(&e.ty)?))
    }

    /// How far behind the cursor lies what an expression is.
    fn ahead(&self, e: &Expr) -> Option<u32> {
        match &e.kind {
            ExprKind::Var(var) => self.copies.get(var).map(|_| 0),
            ExprKind::Call(_) => self.is_lookahead(e).then_some(0),
            ExprKind::Field(of, at) => Some(self.ahead(of)? + self.places.offset(&of.ty, *at)?),
            ExprKind::Slice(of, high, _) => {
                Some(self.ahead(of)? + self.places.unsigned(&of.ty)?.checked_sub(high + 1)?)
            }
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

    /// The values of a keyset; `None` if it is not known which.
    pub fn values(&self, keyset: &Keyset, width: u32) -> Option<Ranges> {
        let number = |e: &Expr| match &e.kind {
            ExprKind::Const(Value::Bits(bits)) if bits.width() == width => Some(bits.low_u128()),
            _ => None,
        };
        let list = match keyset {
            Keyset::Any(_) => return Some(Ranges::span(0, max_of(width))),
            Keyset::Value(value) => vec![(number(value)?, number(value)?)],
            Keyset::Mask(value, mask) => stretches(&Matched::Ternary(number(value)?, number(mask)?), width)?,
            Keyset::Range(first, last) => vec![(number(first)?, number(last)?)],
            Keyset::ValueSet(..) => return None,
        };
        (list.len() <= MOST_STRETCHES).then(|| Ranges::of(list))
    }
}
