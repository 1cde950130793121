//! Lowers built-in methods of headers, header unions and stacks (sections 8.17 to 8.21).

use ir::{BinaryOp, Expr, LValue, Op};
use p4::typed::{self, Builtin, Type};

use crate::assign::InitialScalars;
use crate::lowering::Lowering;
use crate::storage::Store;
use crate::value::Val;
use ir::fold;

impl<'a> Lowering<'a> {
    pub(crate) fn builtin(&mut self, builtin: Builtin, base: &typed::Expr, ty: &Type) -> Val {
        match builtin {
            Builtin::IsValid => Val::Bits(self.valid(base)),
            Builtin::SetValid | Builtin::SetInvalid => {
                let lval = self.receiver(base);
                match (&lval.store, builtin) {
                    (Store::Header(header), Builtin::SetValid) => self.emit(Op::SetValid(header.clone())),
                    (Store::Member(members, index), Builtin::SetValid) => {
                        self.emit(Op::SetValid(members[*index].clone()));
                        self.invalidate_others(members, *index);
                    }
                    // `u.hi.setInvalid()` makes any valid member invalid (section 8.19).
                    (Store::Member(members, _), _) => {
                        self.initialise(&Store::Union(members.clone()), InitialScalars::Undefined)
                    }
                    (store, _) => self.initialise(store, InitialScalars::Undefined),
                }
                self.finish(&lval);
                Val::Absent
            }
            Builtin::PushFront(count) => {
                let lval = self.receiver(base);
                self.shift(&lval.store, &base.ty, count, true);
                self.finish(&lval);
                Val::Absent
            }
            Builtin::PopFront(count) => {
                let lval = self.receiver(base);
                self.shift(&lval.store, &base.ty, count, false);
                self.finish(&lval);
                Val::Absent
            }
            Builtin::Size => {
                self.unsupported(base.span, "the size of this is not known at compile time");
                self.default_value(ty)
            }
        }
    }

    /// Moves a stack's elements towards its end (`up`) or its front; vacated elements become invalid.
    ///
    /// ```text
    /// push_front(1) on a stack of 3    s[2] = s[1]; s[1] = s[0]; s[0] invalid; next = min(next + 1, 3)
    /// ```
    fn shift(&mut self, store: &Store, ty: &Type, count: u32, up: bool) {
        let elements: Vec<Store> = match store {
            Store::Stack(stack) => {
                (0..self.ir.stacks[*stack].size).map(|i| Store::Header(self.element(*stack, i))).collect()
            }
            Store::Array(elements, _) => elements.clone(),
            _ => return,
        };
        let Some((next, size)) = self.next_of(store) else { return };
        let element_ty = self.element_type(ty);
        let count = count.min(size);
        let order: Vec<u32> = if up { (0..size).rev().collect() } else { (0..size).collect() };
        for i in order {
            let from = if up { i.checked_sub(count) } else { i.checked_add(count).filter(|from| *from < size) };
            let to = elements[i as usize].clone();
            match from {
                Some(from) => {
                    let val = elements[from as usize].read();
                    self.assign(&to, val, &element_ty);
                }
                None => self.initialise(&to, InitialScalars::Undefined),
            }
        }
        let old = Expr::Slot(next);
        let constant = |value: u32| fold::constant(value.into(), 32);
        let moved = if up {
            let fits = fold::binary(BinaryOp::Le, old.clone(), constant(size - count));
            fold::choose(fits, fold::binary(BinaryOp::Add, old, constant(count)), constant(size))
        } else {
            let fits = fold::binary(BinaryOp::Le, constant(count), old.clone());
            fold::choose(fits, fold::binary(BinaryOp::Sub, old, constant(count)), constant(0))
        };
        self.set(LValue::Slot(next), moved);
    }
}
