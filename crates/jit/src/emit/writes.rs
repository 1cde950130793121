//! Writes to neighbouring fields of a header, as one store.
//!
//! Programs fill headers field by field. Stored one by one, narrow stores would be followed by wider loads, for a
//! checksum or when the packet is put together, and a load that needs several stores waits until all are done. So
//! writes to one header are held back as long as nothing looks, and those that lie side by side become one value.

use ir::{Expr, HeaderId, HeaderRef, LValue, Op};

use super::Emit;
use super::header::Which;
use super::value::Num;

/// Writes to a header that are held back: fields and values.
pub(super) type Held = Option<(HeaderId, Vec<(u32, Num)>)>;

impl Emit<'_, '_> {
    /// Takes an instruction if it can go before the writes that are held back, or be one of them.
    pub(super) fn holds_back(&mut self, op: &Op) -> bool {
        match op {
            Op::Assign(LValue::Field(HeaderRef::Header(header), field), value) => {
                let fits = self
                    .held
                    .as_ref()
                    .is_none_or(|(held, writes)| held == header && writes.iter().all(|(written, _)| written != field));
                if !fits || self.looks(value) {
                    self.write_held();
                }
                let num = self.expr(value);
                self.held.get_or_insert_with(|| (*header, Vec::new())).1.push((*field, num));
                true
            }
            Op::Assign(LValue::Slot(slot), value) if self.held.is_some() && !self.looks(value) => {
                let value = self.expr(value);
                self.set_slot(*slot, &value);
                true
            }
            _ => false,
        }
    }

    /// Whether a value needs a field whose write is held back.
    fn looks(&self, value: &Expr) -> bool {
        self.held.as_ref().is_some_and(|(header, writes)| {
            let held = |field: &u32| writes.iter().any(|(written, _)| written == field);
            looks_at(value, *header, &held)
        })
    }

    /// Stores what is held back.
    pub(super) fn write_held(&mut self) {
        let Some((header, mut writes)) = self.held.take() else { return };
        for (field, num) in &writes {
            self.sums_follow(header, *field, num);
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
            let place = self.place_to_write(Which::One(header));
            self.store_field(place, begin, &num, bytes);
        }
    }
}

/// Whether a value needs certain fields of a header. An element of a stack may be any header.
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
