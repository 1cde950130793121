//! Combines writes: neighbouring fields of a header are written with one store.
//!
//! Programs fill headers field by field. Stored one by one, narrow stores would be followed by wider loads, for a
//! checksum or when the packet is assembled, and a load that spans several stores waits until all are done. So writes
//! to one header are deferred as long as nothing reads them, and adjacent ones are merged into one value.

use ir::{Expr, HeaderId, HeaderRef, LValue, Op};

use super::Emit;
use super::header::ResolvedHeader;
use super::value::Num;

/// Deferred writes to a header: fields and values.
pub(super) type DeferredWrites = Option<(HeaderId, Vec<(u32, Num)>)>;

impl Emit<'_, '_> {
    /// Takes an instruction that can be reordered before the deferred writes, or become one of them.
    pub(super) fn defers(&mut self, op: &Op) -> bool {
        match op {
            Op::Assign(LValue::Field(HeaderRef::Header(header), field), value) => {
                let fits = self
                    .deferred
                    .as_ref()
                    .is_none_or(|(held, writes)| held == header && writes.iter().all(|(written, _)| written != field));
                if !fits || self.looks(value) {
                    self.flush_deferred();
                }
                let num = self.expr(value);
                self.deferred.get_or_insert_with(|| (*header, Vec::new())).1.push((*field, num));
                true
            }
            Op::Assign(LValue::Slot(slot), value) if self.deferred.is_some() && !self.looks(value) => {
                let value = self.expr(value);
                self.set_slot(*slot, &value);
                true
            }
            _ => false,
        }
    }

    /// Whether a value depends on a field whose write is deferred.
    fn looks(&self, value: &Expr) -> bool {
        self.deferred.as_ref().is_some_and(|(header, writes)| {
            let held = |field: &u32| writes.iter().any(|(written, _)| written == field);
            looks_at(value, *header, &held)
        })
    }

    /// Stores the deferred writes.
    pub(super) fn flush_deferred(&mut self) {
        let Some((header, mut writes)) = self.deferred.take() else { return };
        for (field, num) in &writes {
            self.update_sums(header, *field, num);
        }
        let offsets = &self.layout.ty(self.program, header).offsets;
        writes.sort_by_key(|(field, num)| (offsets[*field as usize], num.width));
        let bytes = self.layout.ty(self.program, header).fixed_bytes;
        let mut rest = writes.into_iter().peekable();
        while let Some((field, mut num)) = rest.next() {
            let begin = self.layout.ty(self.program, header).offsets[field as usize];
            while let Some((next, _)) = rest.peek()
                && self.layout.ty(self.program, header).offsets[*next as usize] == begin + num.width
            {
                let (_, next) = rest.next().expect("there is one more");
                num = self.concat(&num, &next);
            }
            let place = self.place_to_write(ResolvedHeader::One(header));
            self.store_field(place, begin, &num, bytes);
        }
    }
}

/// Whether a value depends on certain fields of a header. A stack element may be any header.
fn looks_at(value: &Expr, header: HeaderId, held: &dyn Fn(&u32) -> bool) -> bool {
    let is = |other: &HeaderRef| match other {
        HeaderRef::Header(other) => *other == header,
        HeaderRef::Element(..) => true,
    };
    let any = |parts: &[&Expr]| parts.iter().any(|part| looks_at(part, header, held));
    match value {
        Expr::Const(_) | Expr::Slot(_) | Expr::PacketLength => false,
        Expr::Field(HeaderRef::Header(other), field) => *other == header && held(field),
        Expr::Valid(HeaderRef::Header(_)) => false,
        Expr::Field(HeaderRef::Element(..), _) | Expr::Valid(HeaderRef::Element(..)) => true,
        Expr::VarbitWidth(other, _) => is(other),
        Expr::VarbitEq(both) => is(&both.0) || is(&both.2),
        Expr::Unary(_, a) | Expr::Slice(a, ..) | Expr::ZeroExtend(a, _) | Expr::SignExtend(a, _) => any(&[a]),
        Expr::Binary(_, a, b) | Expr::Concat(a, b) => any(&[a, b]),
        Expr::Choose(a, b, c) => any(&[a, b, c]),
    }
}
