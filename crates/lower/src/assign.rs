//! Lowers assignments of values of any type, one instruction per scalar or header.

use std::collections::HashSet;

use ir::{Expr, HeaderRef, LValue, Op};
use p4::ast::StructKind;
use p4::typed::Type;

use crate::lowering::Lowering;
use crate::storage::{Store, resolve};
use crate::value::{StorageRoot, Val};
use ir::fold;

/// Values of the scalars in a new variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InitialScalars {
    /// They are 0.
    Zero,
    /// Nothing is written to them.
    Undefined,
}

impl<'a> Lowering<'a> {
    /// Assigns `value` to `place`.
    pub fn set(&mut self, place: LValue, value: Expr) {
        let same = match (&place, &value) {
            (LValue::Slot(a), Expr::Slot(b)) => a == b,
            (LValue::Field(a, i), Expr::Field(b, j)) => a == b && i == j,
            _ => false,
        };
        if !same {
            self.emit(Op::Assign(place, value));
        }
    }

    /// Writes a value of type `ty` into storage of that type. The value may depend on that storage.
    pub fn assign(&mut self, store: &Store, val: Val, ty: &Type) {
        if store.read() == val {
            return;
        }
        match (store, val) {
            (Store::Slot(_) | Store::Field(..), val) => {
                let value = self.bits(val, ty);
                if let Some(place) = store.as_lvalue() {
                    self.set(place, value);
                }
            }
            (Store::Varbit(to, i), Val::Varbit(from, j)) => {
                self.emit(Op::CopyVarbit(to.clone(), *i, from, j));
            }
            (Store::Varbit(..), _) => {}
            (Store::Header(to), val) => self.assign_header(to, val, ty),
            (Store::Member(members, index), val) => self.assign_member(members, *index, val, ty),
            (Store::Union(to), Val::Union(from)) => {
                for (to, from) in to.iter().zip(from) {
                    if *to != from {
                        self.emit(Op::CopyHeader(to.clone(), from));
                    }
                }
            }
            (Store::Union(members), val) => {
                for (i, member) in members.iter().enumerate() {
                    match &val {
                        Val::Fields(parts) if i < parts.len() => {
                            let member_ty = self.fields_of(ty).swap_remove(i).1;
                            self.assign_header(member, parts[i].clone(), &member_ty);
                        }
                        _ => self.emit(Op::SetInvalid(member.clone())),
                    }
                }
            }
            (Store::Stack(stack), val) => {
                let Type::Stack(element, size) = resolve(self.program, ty).clone() else { return };
                let stores: Vec<Store> = (0..size).map(|i| Store::Header(self.element(*stack, i))).collect();
                let next = self.ir.stacks[*stack].next;
                self.assign_elements(&stores, Some(next), val, &element);
            }
            (Store::Array(stores, next), val) => {
                let Type::Stack(element, _) = resolve(self.program, ty).clone() else { return };
                self.assign_elements(stores, *next, val, &element);
            }
            (Store::Fields(stores), val) => {
                let types: Vec<Type> = self.fields_of(ty).into_iter().map(|(_, ty)| ty).collect();
                let vals = self.parts_of(val, ty);
                self.assign_all(stores, vals, &types);
            }
        }
    }

    fn assign_elements(&mut self, stores: &[Store], next: Option<ir::SlotId>, val: Val, element: &Type) {
        let from_next = match &val {
            Val::Stack(from) => Some(self.ir.stacks[*from].next),
            Val::Array(_, next) => *next,
            _ => None,
        };
        let parts = match val {
            Val::Invalid | Val::Absent => vec![self.default_value(element); stores.len()],
            val => self.elements(&val, element),
        };
        self.assign_all(stores, parts, &vec![element.clone(); stores.len()]);
        if let (Some(next), Some(from)) = (next, from_next) {
            self.set(LValue::Slot(next), Expr::Slot(from));
        }
    }

    /// Assigns several parts as one simultaneous assignment: a value that depends on the storage of an earlier part is
    /// saved first.
    ///
    /// ```text
    /// {a, b} = {b, a}      $tmp = a; a = b; b = $tmp
    /// ```
    fn assign_all(&mut self, stores: &[Store], mut vals: Vec<Val>, types: &[Type]) {
        let mut written: HashSet<StorageRoot> = HashSet::new();
        for i in 0..stores.len().min(vals.len()) {
            let mut read = HashSet::new();
            self.val_roots(&vals[i], &mut read);
            if stores[i].read() != vals[i] && !read.is_disjoint(&written) {
                let val = std::mem::replace(&mut vals[i], Val::Absent);
                vals[i] = self.spill(val, &types[i]);
            }
            self.store_roots(&stores[i], &mut written);
        }
        for ((store, val), ty) in stores.iter().zip(vals).zip(types) {
            self.assign(store, val, ty);
        }
    }

    fn assign_header(&mut self, to: &HeaderRef, val: Val, ty: &Type) {
        match val {
            Val::Header(from) if from == *to => {}
            Val::Header(from) => self.emit(Op::CopyHeader(to.clone(), from)),
            Val::Literal(parts) | Val::Fields(parts) => {
                let Some((id, StructKind::Header)) = self.struct_kind(ty) else { return };
                let types: Vec<Type> = self.fields_of(ty).into_iter().map(|(_, ty)| ty).collect();
                let stores = self.header_fields(to, id);
                self.assign_fields(&stores, parts, &types);
                self.emit(Op::SetValid(to.clone()));
            }
            _ => self.emit(Op::SetInvalid(to.clone())),
        }
    }

    /// Like [`Lowering::assign_all`] for the fields of one header, which depend on each other only field by field.
    fn assign_fields(&mut self, stores: &[Store], vals: Vec<Val>, types: &[Type]) {
        let mut kept = Vec::new();
        for (i, (val, ty)) in vals.into_iter().zip(types).enumerate() {
            let mut read = HashSet::new();
            self.val_roots(&val, &mut read);
            let mut written = HashSet::new();
            // All stores are fields of one header and have its roots.
            stores[..i.min(1)].iter().for_each(|store| self.store_roots(store, &mut written));
            let own = stores.get(i).is_some_and(|store| store.read() == val);
            kept.push(if own || read.is_disjoint(&written) { val } else { self.spill(val, ty) });
        }
        for ((store, val), ty) in stores.iter().zip(kept).zip(types) {
            self.assign(store, val, ty);
        }
    }

    /// Assigns to a header in a union (section 8.19). If the header becomes valid, the others become invalid. Assigning
    /// an invalid header is `setInvalid()` of the member, after which no member is valid.
    fn assign_member(&mut self, members: &[HeaderRef], index: usize, val: Val, ty: &Type) {
        // The value may be another member of the same union, so that it is read before any becomes invalid.
        self.assign_header(&members[index], val, ty);
        self.invalidate_others(members, index);
    }

    /// Invalidates all members of a union except one.
    pub(crate) fn invalidate_others(&mut self, members: &[HeaderRef], index: usize) {
        for (i, member) in members.iter().enumerate() {
            if i != index {
                self.emit(Op::SetInvalid(member.clone()));
            }
        }
    }

    /// Initialises a new variable: headers become invalid and stacks empty.
    pub(crate) fn initialise(&mut self, store: &Store, scalars: InitialScalars) {
        match store {
            Store::Slot(slot) if scalars == InitialScalars::Zero => {
                let width = self.ir.slots[*slot].width;
                self.set(LValue::Slot(*slot), fold::constant(0, width));
            }
            Store::Field(header, field) if scalars == InitialScalars::Zero => {
                let width = self.ir.header_types[self.layout_of(header)].fields[*field as usize].width;
                self.set(LValue::Field(header.clone(), *field), fold::constant(0, width));
            }
            Store::Slot(_) | Store::Field(..) | Store::Varbit(..) => {}
            Store::Header(header) => self.emit(Op::SetInvalid(header.clone())),
            Store::Member(members, index) => self.emit(Op::SetInvalid(members[*index].clone())),
            Store::Union(members) => members.iter().for_each(|header| self.emit(Op::SetInvalid(header.clone()))),
            Store::Stack(stack) => {
                let (size, next) = (self.ir.stacks[*stack].size, self.ir.stacks[*stack].next);
                for i in 0..size {
                    self.emit(Op::SetInvalid(self.element(*stack, i)));
                }
                self.set(LValue::Slot(next), fold::constant(0, 32));
            }
            Store::Array(elements, next) => {
                elements.iter().for_each(|element| self.initialise(element, scalars));
                if let Some(next) = next {
                    self.set(LValue::Slot(*next), fold::constant(0, 32));
                }
            }
            Store::Fields(parts) => parts.iter().for_each(|part| self.initialise(part, scalars)),
        }
    }
}
