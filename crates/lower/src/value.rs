//! Values: results of evaluating expressions, as far as the compiler decomposes them.

use std::collections::HashSet;
use std::sync::Arc;

use bits::Bits;
use ir::{Expr, HeaderId, HeaderRef, SlotId, StackId};
use num_bigint::BigInt;
use p4::ast::StructKind;
use p4::typed::{self, Type};

use crate::arch::Object;
use crate::lowering::Lowering;
use crate::storage::{Lifetime, Store, resolve};
use ir::fold;

/// A value. Values in storage are referred to, not copied: they are read when the value is used. A value must therefore
/// be used before its storage changes, or be saved with `Lowering::spill`.
#[derive(Clone, Debug, PartialEq)]
pub enum Val {
    /// A scalar.
    Bits(Expr),
    /// A compile-time `int`.
    Integer(BigInt),
    /// A string.
    Text(Arc<str>),
    /// A `varbit` in storage.
    Varbit(HeaderRef, u32),
    /// A header in storage.
    Header(HeaderRef),
    /// A valid header with these fields.
    Literal(Vec<Val>),
    /// An invalid header: `{#}`.
    Invalid,
    /// A header union in storage: its members.
    Union(Vec<HeaderRef>),
    /// A stack of headers in storage.
    Stack(StackId),
    /// A stack by its elements; with the slot of the next index, if it is in storage.
    Array(Vec<Val>, Option<SlotId>),
    /// A struct, tuple or list.
    Fields(Vec<Val>),
    /// An object.
    Object(Object),
    /// No value: the result of a `void` call, or an absent argument.
    Absent,
}

/// A unit of storage that can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StorageRoot {
    Slot(SlotId),
    Header(HeaderId),
}

impl Val {
    /// Returns the value of a constant.
    pub fn as_const(&self) -> Option<&Bits> {
        match self {
            Val::Bits(expr) => fold::as_const(expr),
            _ => None,
        }
    }

    /// Returns the number, if it is a constant that fits.
    pub fn to_u64(&self) -> Option<u64> {
        match self {
            Val::Integer(value) => u64::try_from(value).ok(),
            other => other.as_const().and_then(Bits::to_u64),
        }
    }
}

impl<'a> Lowering<'a> {
    /// Returns the value of a compile-time constant.
    pub(crate) fn constant(&self, value: &typed::Value, ty: &Type) -> Val {
        let ty = resolve(self.program, ty);
        match value {
            typed::Value::Bool(value) => Val::Bits(fold::bool(*value)),
            typed::Value::Integer(value) => match self.scalar_width(ty) {
                Some(width) => Val::Bits(Expr::Const(Bits::from_signed_big(value, width))),
                None => Val::Integer(value.clone()),
            },
            typed::Value::Bits(value) => Val::Bits(Expr::Const(value.clone())),
            typed::Value::String(text) => Val::Text(text.clone()),
            typed::Value::Error(index) | typed::Value::MatchKind(index) => {
                Val::Bits(fold::constant(*index as u128, 32))
            }
            typed::Value::Invalid => Val::Invalid,
            typed::Value::Fields(values) => {
                let types: Vec<Type> = match ty {
                    Type::List(element) | Type::Stack(element, _) => vec![(**element).clone(); values.len()],
                    _ => self.fields_of(ty).into_iter().map(|(_, ty)| ty).collect(),
                };
                let types = types.into_iter().chain(std::iter::repeat(Type::Void));
                let parts = values.iter().zip(types).map(|(value, ty)| self.constant(value, &ty)).collect();
                match (self.struct_kind(ty), ty) {
                    (Some((_, StructKind::Header)), _) => Val::Literal(parts),
                    (_, Type::Stack(..)) => Val::Array(parts, None),
                    _ => Val::Fields(parts),
                }
            }
        }
    }

    /// Returns the value of a variable that was never written: 0, invalid.
    pub fn default_value(&self, ty: &Type) -> Val {
        if let Some(width) = self.scalar_width(ty) {
            return Val::Bits(fold::constant(0, width));
        }
        match (self.struct_kind(ty), resolve(self.program, ty)) {
            (Some((_, StructKind::Header | StructKind::Union)), _) => Val::Invalid,
            (_, Type::Stack(element, size)) => {
                Val::Array(vec![self.default_value(element); (*size).min(1 << 16) as usize], None)
            }
            (_, Type::Integer) => Val::Integer(BigInt::default()),
            (_, Type::Void | Type::Varbit(_)) => Val::Absent,
            (_, ty) => Val::Fields(self.fields_of(ty).iter().map(|(_, ty)| self.default_value(ty)).collect()),
        }
    }

    /// Returns part `index` of a struct, header, union or tuple.
    pub(crate) fn field_of(&self, base: Val, ty: &Type, index: usize) -> Val {
        match (base, self.struct_kind(ty)) {
            (Val::Header(header), Some((id, StructKind::Header))) => self.header_field(&header, id, index).read(),
            (Val::Union(members), _) => members.get(index).cloned().map_or(Val::Invalid, Val::Header),
            (Val::Fields(mut parts) | Val::Literal(mut parts), _) if index < parts.len() => parts.swap_remove(index),
            _ => match self.fields_of(ty).get(index) {
                Some((_, ty)) => self.default_value(ty),
                None => Val::Absent,
            },
        }
    }

    /// Returns all parts of a struct, header, union or tuple.
    pub(crate) fn parts_of(&self, base: Val, ty: &Type) -> Vec<Val> {
        let types = self.fields_of(ty);
        match (base, self.struct_kind(ty)) {
            (Val::Fields(parts) | Val::Literal(parts), _) if parts.len() == types.len() => parts,
            (Val::Header(header), Some((id, StructKind::Header))) => {
                self.header_fields(&header, id).iter().map(Store::read).collect()
            }
            (Val::Union(members), _) if members.len() == types.len() => members.into_iter().map(Val::Header).collect(),
            _ => types.iter().map(|(_, ty)| self.default_value(ty)).collect(),
        }
    }

    /// Copies the value into temporaries, so that later assignments do not change it.
    pub(crate) fn spill(&mut self, val: Val, ty: &Type) -> Val {
        let mut roots = HashSet::new();
        self.val_roots(&val, &mut roots);
        if roots.is_empty() && !matches!(&val, Val::Bits(expr) if fold::as_const(expr).is_none()) {
            return val;
        }
        self.materialise(val, ty).read()
    }

    /// Copies the value into a temporary.
    pub(crate) fn materialise(&mut self, val: Val, ty: &Type) -> Store {
        let store = self.store("$tmp", ty, Lifetime::Scoped);
        self.assign(&store, val, ty);
        store
    }

    /// Returns a header with the value, copied to a temporary if needed.
    pub(crate) fn as_header(&mut self, val: Val, ty: &Type) -> Option<HeaderRef> {
        match val {
            Val::Header(header) => Some(header),
            other => self.materialise(other, ty).as_header().cloned(),
        }
    }

    /// Collects all storage that the value depends on.
    pub(crate) fn val_roots(&self, val: &Val, roots: &mut HashSet<StorageRoot>) {
        match val {
            Val::Bits(expr) => self.expr_roots(expr, roots),
            Val::Varbit(header, _) | Val::Header(header) => self.header_roots(header, roots),
            Val::Union(members) => members.iter().for_each(|header| self.header_roots(header, roots)),
            Val::Stack(stack) => self.stack_roots(*stack, roots),
            Val::Array(parts, next) => {
                roots.extend(next.map(StorageRoot::Slot));
                parts.iter().for_each(|part| self.val_roots(part, roots));
            }
            Val::Literal(parts) | Val::Fields(parts) => parts.iter().for_each(|part| self.val_roots(part, roots)),
            Val::Integer(_) | Val::Text(_) | Val::Invalid | Val::Object(_) | Val::Absent => {}
        }
    }

    /// Collects all storage that writing to `store` may change.
    pub(crate) fn store_roots(&self, store: &Store, roots: &mut HashSet<StorageRoot>) {
        match store {
            Store::Slot(slot) => {
                roots.insert(StorageRoot::Slot(*slot));
            }
            Store::Field(header, _) | Store::Varbit(header, _) | Store::Header(header) => {
                self.target_roots(header, roots);
            }
            Store::Member(members, _) | Store::Union(members) => {
                members.iter().for_each(|header| self.target_roots(header, roots));
            }
            Store::Stack(stack) => self.stack_roots(*stack, roots),
            Store::Array(elements, next) => {
                roots.extend(next.map(StorageRoot::Slot));
                elements.iter().for_each(|element| self.store_roots(element, roots));
            }
            Store::Fields(parts) => parts.iter().for_each(|part| self.store_roots(part, roots)),
        }
    }

    fn stack_roots(&self, stack: StackId, roots: &mut HashSet<StorageRoot>) {
        let stack = &self.ir.stacks[stack];
        roots.insert(StorageRoot::Slot(stack.next));
        roots.extend((0..stack.size).map(|i| StorageRoot::Header(HeaderId::from_u32(stack.first.as_u32() + i))));
    }

    fn target_roots(&self, header: &HeaderRef, roots: &mut HashSet<StorageRoot>) {
        match header {
            HeaderRef::Header(header) => {
                roots.insert(StorageRoot::Header(*header));
            }
            HeaderRef::Element(stack, _) => {
                let stack = &self.ir.stacks[*stack];
                roots
                    .extend((0..stack.size).map(|i| StorageRoot::Header(HeaderId::from_u32(stack.first.as_u32() + i))));
            }
        }
    }

    fn header_roots(&self, header: &HeaderRef, roots: &mut HashSet<StorageRoot>) {
        self.target_roots(header, roots);
        if let HeaderRef::Element(_, index) = header {
            self.expr_roots(index, roots);
        }
    }

    pub(crate) fn expr_roots(&self, expr: &Expr, roots: &mut HashSet<StorageRoot>) {
        match expr {
            Expr::Const(_) | Expr::PacketLength => {}
            Expr::Slot(slot) => {
                roots.insert(StorageRoot::Slot(*slot));
            }
            Expr::Field(header, _) | Expr::Valid(header) | Expr::VarbitWidth(header, _) => {
                self.header_roots(header, roots);
            }
            Expr::VarbitEq(pair) => {
                self.header_roots(&pair.0, roots);
                self.header_roots(&pair.2, roots);
            }
            Expr::Unary(_, a) | Expr::Slice(a, _, _) | Expr::ZeroExtend(a, _) | Expr::SignExtend(a, _) => {
                self.expr_roots(a, roots);
            }
            Expr::Binary(_, a, b) | Expr::Concat(a, b) => {
                self.expr_roots(a, roots);
                self.expr_roots(b, roots);
            }
            Expr::Choose(a, b, c) => {
                self.expr_roots(a, roots);
                self.expr_roots(b, roots);
                self.expr_roots(c, roots);
            }
        }
    }

    /// Returns the scalar; 0 for a value that is none, which was reported before.
    pub fn bits(&self, val: Val, ty: &Type) -> Expr {
        match val {
            Val::Bits(expr) => expr,
            Val::Integer(value) => Expr::Const(Bits::from_signed_big(&value, self.scalar_width(ty).unwrap_or(32))),
            _ => fold::constant(0, self.scalar_width(ty).unwrap_or(0)),
        }
    }

    /// Returns the scalars of a struct, tuple, header or scalar, with their names and types.
    pub fn leaves(&self, name: &str, val: Val, ty: &Type) -> Vec<(String, Val, Type)> {
        let mut out = Vec::new();
        self.collect_leaves(name.to_owned(), val, ty, &mut out);
        out
    }

    fn collect_leaves(&self, name: String, val: Val, ty: &Type, out: &mut Vec<(String, Val, Type)>) {
        if let (Val::Stack(_) | Val::Array(..), Type::Stack(element, _)) = (&val, resolve(self.program, ty)) {
            for (i, part) in self.elements(&val, element).into_iter().enumerate() {
                self.collect_leaves(format!("{name}[{i}]"), part, element, out);
            }
            return;
        }
        if matches!(val, Val::Bits(_) | Val::Varbit(..) | Val::Integer(_) | Val::Text(_)) {
            out.push((name, val, ty.clone()));
            return;
        }
        for ((field, field_ty), part) in self.fields_of(ty).into_iter().zip(self.parts_of(val, ty)) {
            let full = if name.is_empty() { field } else { format!("{name}.{field}") };
            self.collect_leaves(full, part, &field_ty, out);
        }
    }

    /// Returns the elements of a stack.
    pub(crate) fn elements(&self, val: &Val, element: &Type) -> Vec<Val> {
        match val {
            Val::Stack(stack) => {
                (0..self.ir.stacks[*stack].size).map(|i| Val::Header(self.element(*stack, i))).collect()
            }
            Val::Array(parts, _) => parts.clone(),
            Val::Fields(parts) => parts.clone(),
            _ => vec![self.default_value(element)],
        }
    }
}
