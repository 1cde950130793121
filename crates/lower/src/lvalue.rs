//! L-values: destinations of an assignment, an `out` argument or a method of a header.

use ir::{Expr, HeaderRef, Op, SlotId, Terminator};
use p4::ast::StructKind;
use p4::typed::{self, ExprKind, Type};

use crate::assign::InitialScalars;
use crate::lowering::{Binding, Lowering};
use crate::storage::{Lifetime, Store, resolve};
use crate::value::Val;
use crate::walk;
use ir::fold;

/// An l-value.
#[derive(Clone, Debug)]
pub struct Lval {
    /// Its storage.
    pub store: Store,
    /// The slice of bits `high` to `low`, if it is not the whole value.
    pub(crate) slice: Option<(u32, u32)>,
    /// Its type, without the slice.
    pub(crate) ty: Type,
    /// Write-back to perform after the l-value has been written.
    pub(crate) write_back: Option<Box<WriteBack>>,
}

/// An element of a stack of header unions at an index known only at run time. The IR cannot name it, so operations use
/// a copy.
#[derive(Clone, Debug)]
pub(crate) struct WriteBack {
    copy: Store,
    ty: Type,
    elements: Vec<Store>,
    index: Expr,
}

impl Lval {
    pub(crate) fn whole(store: Store, ty: Type) -> Self {
        Lval { store, slice: None, ty, write_back: None }
    }

    /// Returns the IR's l-value, if it is a whole scalar that can be written to directly.
    pub fn as_lvalue(&self) -> Option<ir::LValue> {
        if self.slice.is_none() && self.write_back.is_none() { self.store.as_lvalue() } else { None }
    }

    /// Returns its current value.
    pub(crate) fn read(&self, cx: &Lowering<'_>) -> Val {
        match (self.slice, self.store.read()) {
            (Some((high, low)), Val::Bits(expr)) => {
                let width = cx.scalar_width(&self.ty).unwrap_or(0);
                if high < width { Val::Bits(fold::slice(expr, width, high, low)) } else { Val::Bits(expr) }
            }
            (_, val) => val,
        }
    }

    /// Returns the type of the value that is read and written.
    pub(crate) fn value_ty(&self) -> Type {
        match self.slice {
            Some((high, low)) => Type::Bit(high - low + 1),
            None => self.ty.clone(),
        }
    }
}

/// Time at which the storage that an expression names is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IndexUse {
    /// Before any variable of the expression changes.
    Now,
    /// After that: indices are kept in temporaries.
    Later,
}

impl<'a> Lowering<'a> {
    /// Returns the storage that an expression names, for use before any variable of the expression changes.
    pub(crate) fn lvalue(&mut self, e: &typed::Expr) -> Lval {
        self.lvalue_for(e, IndexUse::Now)
    }

    /// Returns the storage that an expression names. It remains the same even if variables in the expression change
    /// before it is used.
    pub(crate) fn stable_lvalue(&mut self, e: &typed::Expr) -> Lval {
        self.lvalue_for(e, IndexUse::Later)
    }

    /// Returns the storage that an expression names, for use at this time.
    fn lvalue_for(&mut self, e: &typed::Expr, time: IndexUse) -> Lval {
        self.deeper(|cx| cx.lvalue_inner(e, time))
            .unwrap_or_else(|| Lval::whole(Store::Fields(Vec::new()), e.ty.clone()))
    }

    /// Returns the storage of a variable or of a field of it, without visiting the rest of the variable.
    pub(crate) fn named_store(&self, e: &typed::Expr) -> Option<&Store> {
        match &e.kind {
            ExprKind::Var(var) => match self.env.get(var)? {
                Binding::Store(store) => Some(store),
                Binding::Val(_) => None,
            },
            ExprKind::Field(base, index) => match self.named_store(base)? {
                Store::Fields(parts) => parts.get(*index),
                _ => None,
            },
            _ => None,
        }
    }

    fn lvalue_inner(&mut self, e: &typed::Expr, time: IndexUse) -> Lval {
        if let Some(store) = self.named_store(e) {
            return Lval::whole(store.clone(), e.ty.clone());
        }
        match &e.kind {
            ExprKind::Var(var) => match self.env.get(var) {
                Some(Binding::Store(store)) => Lval::whole(store.clone(), e.ty.clone()),
                _ => self.copy_of(e),
            },
            ExprKind::Field(base, index) => {
                let base_lval = self.lvalue_for(base, time);
                let store = match (&base_lval.store, self.struct_kind(&base.ty)) {
                    (Store::Fields(parts), _) if *index < parts.len() => parts[*index].clone(),
                    (Store::Union(members), _) if *index < members.len() => Store::Member(members.clone(), *index),
                    (store, Some((id, StructKind::Header))) => match store.as_header() {
                        Some(header) => self.header_field(header, id, *index),
                        None => Store::Fields(Vec::new()),
                    },
                    _ => Store::Fields(Vec::new()),
                };
                Lval { store, slice: None, ty: e.ty.clone(), write_back: base_lval.write_back }
            }
            ExprKind::Element(base, index) => {
                let base_lval = self.lvalue_for(base, if walk::has_effects(index) { IndexUse::Later } else { time });
                let index = self.index(index);
                let index = if time == IndexUse::Later { self.keep(index) } else { index };
                self.element_lvalue(base_lval.store, index, &e.ty)
            }
            ExprKind::Next(base) => {
                let base_lval = self.lvalue_for(base, time);
                let Some((next, _)) = self.verify_next(&base_lval.store) else {
                    return Lval::whole(Store::Fields(Vec::new()), e.ty.clone());
                };
                self.element_lvalue(base_lval.store, Expr::Slot(next), &e.ty)
            }
            ExprKind::Last(base) => {
                let base_lval = self.lvalue_for(base, time);
                let Some(last) = self.verify_last(&base_lval.store) else {
                    return Lval::whole(Store::Fields(Vec::new()), e.ty.clone());
                };
                self.element_lvalue(base_lval.store, last, &e.ty)
            }
            ExprKind::Slice(base, high, low) => {
                let base_lval = self.lvalue_for(base, time);
                let offset = base_lval.slice.map_or(0, |(_, low)| low);
                Lval { slice: Some((high + offset, low + offset)), ..base_lval }
            }
            _ => self.copy_of(e),
        }
    }

    /// Copies a value, for methods of expressions that are not l-values (`f().isValid()`).
    fn copy_of(&mut self, e: &typed::Expr) -> Lval {
        let val = self.value(e);
        let store = match val {
            Val::Header(header) => Store::Header(header),
            Val::Union(members) => Store::Union(members),
            Val::Stack(stack) => Store::Stack(stack),
            other => self.materialise(other, &e.ty),
        };
        Lval::whole(store, e.ty.clone())
    }

    /// Evaluates an index expression as a bit vector.
    pub(crate) fn index(&mut self, e: &typed::Expr) -> Expr {
        let val = self.value(e);
        match val {
            Val::Integer(_) => self.bits(val, &Type::Bit(32)),
            other => {
                let width = self.scalar_width(&e.ty).unwrap_or(32);
                let bits = self.bits(other, &e.ty);
                if width < 32 { fold::resize(bits, width, 32) } else { bits }
            }
        }
    }

    /// Saves the current value of an expression from later changes to its operands.
    pub(crate) fn keep(&mut self, expr: Expr) -> Expr {
        if fold::as_const(&expr).is_some() {
            return expr;
        }
        let width = self.width_of(&expr);
        let slot = self.temp(width);
        self.emit(Op::Assign(ir::LValue::Slot(slot), expr));
        Expr::Slot(slot)
    }

    fn element_lvalue(&mut self, base: Store, index: Expr, ty: &Type) -> Lval {
        match base {
            Store::Stack(stack) => Lval::whole(Store::Header(self.element_at(stack, index)), ty.clone()),
            Store::Array(elements, _) => {
                if let Some(at) = fold::as_const(&index).and_then(bits::Bits::to_u64) {
                    return match elements.get(at as usize) {
                        Some(store) => Lval::whole(store.clone(), ty.clone()),
                        None => {
                            let beyond = self.store("$beyond", ty, Lifetime::Scoped);
                            self.clear(&beyond, ty);
                            Lval::whole(beyond, ty.clone())
                        }
                    };
                }
                let index = self.keep(index);
                let copy = self.store("$element", ty, Lifetime::Scoped);
                self.clear(&copy, ty);
                let write_back = WriteBack { copy: copy.clone(), ty: ty.clone(), elements, index };
                self.reload(&write_back);
                Lval { store: copy, slice: None, ty: ty.clone(), write_back: Some(Box::new(write_back)) }
            }
            _ => Lval::whole(Store::Fields(Vec::new()), ty.clone()),
        }
    }

    /// Makes storage what an element beyond the end of a stack is: invalid headers of zeros, whatever was there before.
    pub(crate) fn clear(&mut self, store: &Store, ty: &Type) {
        self.initialise(store, InitialScalars::Zero);
        let headers: Vec<(HeaderRef, Type)> = match store {
            Store::Header(header) => vec![(header.clone(), ty.clone())],
            Store::Union(members) => {
                members.iter().cloned().zip(self.fields_of(ty).into_iter().map(|(_, ty)| ty)).collect()
            }
            _ => Vec::new(),
        };
        for (header, ty) in headers {
            if let Some((id, StructKind::Header)) = self.struct_kind(&ty) {
                self.header_fields(&header, id).iter().for_each(|field| self.initialise(field, InitialScalars::Zero));
            }
        }
    }

    /// Emits `lower` once for each element, so that only the code of the indexed element runs.
    pub(crate) fn each_element(&mut self, index: &Expr, elements: &[Store], mut lower: impl FnMut(&mut Self, &Store)) {
        let join = self.block("join");
        let width = self.width_of(index);
        let blocks: Vec<ir::BlockId> = elements.iter().map(|_| self.block("element")).collect();
        let fits = |i: usize| width >= 64 || (i as u64) < 1 << width;
        let cases = blocks.iter().enumerate().filter(|(i, _)| fits(*i));
        let cases = cases.map(|(i, block)| (bits::Bits::new(i as u128, width), *block)).collect();
        self.terminate(Terminator::Switch { subject: index.clone(), cases, default: join });
        for (block, element) in blocks.into_iter().zip(elements) {
            self.body.start(block);
            lower(self, element);
            self.goto(join);
        }
        self.body.start(join);
    }

    /// Reads the element into its copy.
    fn reload(&mut self, write_back: &WriteBack) {
        let WriteBack { copy, ty, elements, index } = write_back;
        self.each_element(index, elements, |cx, element| cx.assign(copy, element.read(), ty));
    }

    /// Performs the write-back of an l-value; must be called after writing to it.
    pub(crate) fn finish(&mut self, lval: &Lval) {
        if let Some(write_back) = &lval.write_back {
            let WriteBack { elements, index, .. } = &**write_back;
            self.each_element(index, elements, |cx, element| {
                cx.assign(element, write_back.copy.read(), &write_back.ty)
            });
        }
    }

    /// Writes a value to an l-value. Other parts of the element that contains it keep what was written to them since
    /// the l-value was evaluated.
    pub(crate) fn write(&mut self, lval: &Lval, val: Val) {
        if let Some(write_back) = &lval.write_back {
            self.reload(write_back);
        }
        self.write_unchanged(lval, val);
    }

    /// Writes a value to an l-value; nothing has been written since it was evaluated.
    pub(crate) fn write_unchanged(&mut self, lval: &Lval, val: Val) {
        match lval.slice {
            None => self.assign(&lval.store, val, &lval.ty),
            Some((high, low)) => {
                let width = self.scalar_width(&lval.ty).unwrap_or(0);
                if let (Some(place), Val::Bits(old), true) = (lval.store.as_lvalue(), lval.store.read(), high < width) {
                    let part = self.bits(val, &Type::Bit(high - low + 1));
                    let mut value = part;
                    if high + 1 < width {
                        value = fold::concat(fold::slice(old.clone(), width, width - 1, high + 1), value);
                    }
                    if low > 0 {
                        value = fold::concat(value, fold::slice(old, width, low - 1, 0));
                    }
                    self.set(place, value);
                }
            }
        }
        self.finish(lval);
    }

    /// Returns the slot with a stack's next index, and the stack's size.
    pub(crate) fn next_of(&self, store: &Store) -> Option<(SlotId, u32)> {
        match store {
            Store::Stack(stack) => Some((self.ir.stacks[*stack].next, self.ir.stacks[*stack].size)),
            Store::Array(elements, next) => next.map(|next| (next, elements.len() as u32)),
            _ => None,
        }
    }

    /// Raises `StackOutOfBounds` if a stack has no next element.
    pub(crate) fn verify_next(&mut self, stack: &Store) -> Option<(SlotId, u32)> {
        let (next, size) = self.next_of(stack)?;
        let fits = fold::binary(ir::BinaryOp::Lt, Expr::Slot(next), fold::constant(u128::from(size), 32));
        self.verify(fits, "StackOutOfBounds");
        Some((next, size))
    }

    /// Returns the index of a stack's last element; raises `StackOutOfBounds` if it has none.
    fn verify_last(&mut self, stack: &Store) -> Option<Expr> {
        let (next, _) = self.next_of(stack)?;
        let any = fold::binary(ir::BinaryOp::Ne, Expr::Slot(next), fold::constant(0, 32));
        self.verify(any, "StackOutOfBounds");
        Some(fold::binary(ir::BinaryOp::Sub, Expr::Slot(next), fold::constant(1, 32)))
    }

    fn verify(&mut self, condition: Expr, error: &str) {
        if self.body.kind != ir::BodyKind::Parser {
            let span = self.span;
            self.unsupported(span, "`next` and `last` of a header stack are available only in parsers");
            return;
        }
        let code = self.error_code(error);
        self.emit(Op::Verify(condition, code));
    }

    /// Returns a member of `error` as a value; 0 if `core.p4` did not declare it.
    pub fn error_code(&self, name: &str) -> Expr {
        let index = self.ir.errors.iter().position(|error| error == name).unwrap_or(0);
        fold::constant(index as u128, 32)
    }

    /// Returns the width of an expression in bits.
    pub fn width_of(&self, expr: &Expr) -> u32 {
        match expr {
            Expr::Const(bits) => bits.width(),
            Expr::Slot(slot) => self.ir.slots[*slot].width,
            Expr::Field(header, field) => self.field_width(header, *field),
            Expr::Valid(_) | Expr::VarbitEq(_) => 1,
            Expr::VarbitWidth(..) | Expr::PacketLength => 32,
            Expr::Unary(_, a) => self.width_of(a),
            Expr::Binary(op, a, _) => match op {
                ir::BinaryOp::Eq
                | ir::BinaryOp::Ne
                | ir::BinaryOp::Lt
                | ir::BinaryOp::Le
                | ir::BinaryOp::LtSigned
                | ir::BinaryOp::LeSigned => 1,
                _ => self.width_of(a),
            },
            Expr::Slice(_, high, low) => high - low + 1,
            Expr::Concat(a, b) => self.width_of(a) + self.width_of(b),
            Expr::ZeroExtend(_, width) | Expr::SignExtend(_, width) => *width,
            Expr::Choose(_, a, _) => self.width_of(a),
        }
    }

    fn field_width(&self, header: &HeaderRef, field: u32) -> u32 {
        self.ir.header_types[self.layout_of(header)].fields[field as usize].width
    }

    /// Returns the stack's element type.
    pub(crate) fn element_type(&self, ty: &Type) -> Type {
        match resolve(self.program, ty) {
            Type::Stack(element, _) | Type::List(element) => (**element).clone(),
            _ => Type::Void,
        }
    }
}
