//! Expressions: an expression without side effects becomes an [`ir::Expr`]; side effects become instructions before it,
//! from left to right.
//!
//! ```text
//! x = f(a) + b[t.apply().hit ? 0 : 1]       ... f inlined, value in $tmp ...
//!                                           apply t, hit $tmp$1
//!                                           x = $tmp + b[$tmp$1 ? 0 : 1]
//! a && f()                                  branch a, then: f inlined ...
//! ```

use bits::Bits;
use ir::{BinaryOp, Expr, LValue, Op, UnaryOp};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};
use p4::ast;
use p4::typed::{self, ExprKind, Type};

use crate::compare::validity;
use crate::lowering::{Binding, Lowering};
use crate::storage::{Lifetime, Store, resolve};
use crate::value::Val;
use crate::walk;
use ir::fold;

impl<'a> Lowering<'a> {
    /// Evaluates an expression.
    pub fn value(&mut self, e: &typed::Expr) -> Val {
        if self.failed {
            return self.default_value(&e.ty);
        }
        let outer = self.at(e.span);
        let val = self.deeper(|cx| cx.value_inner(e)).unwrap_or_else(|| self.default_value(&e.ty));
        self.at(outer);
        val
    }

    /// Evaluates a scalar expression.
    pub(crate) fn scalar(&mut self, e: &typed::Expr) -> Expr {
        let val = self.value(e);
        self.bits(val, &e.ty)
    }

    /// Evaluates two expressions in order. If the second has side effects, the value of the first is saved before them.
    fn pair(&mut self, a: &typed::Expr, b: &typed::Expr) -> (Val, Val) {
        let mut left = self.value(a);
        if walk::has_effects(b) {
            left = self.spill(left, &a.ty);
        }
        (left, self.value(b))
    }

    fn value_inner(&mut self, e: &typed::Expr) -> Val {
        if let Some(store) = self.named_store(e) {
            return store.read();
        }
        match &e.kind {
            ExprKind::Const(value) => self.constant(value, &e.ty),
            ExprKind::Var(var) => match self.env.get(var) {
                Some(Binding::Val(val)) => val.clone(),
                _ => {
                    let name = self.program.vars[*var].name.clone();
                    self.unsupported(e.span, format!("`{name}` has no value here"));
                    self.default_value(&e.ty)
                }
            },
            ExprKind::Instance(instance) => Val::Object(self.object(*instance)),
            ExprKind::ValueSet(_) => {
                self.unsupported(e.span, "a value set can only be used in `select`");
                Val::Absent
            }
            ExprKind::This => {
                self.unsupported(e.span, "`this` is not supported");
                Val::Absent
            }
            ExprKind::Field(base, index) => {
                let val = self.value(base);
                self.field_of(val, &base.ty, *index)
            }
            ExprKind::Element(base, index) => self.element_value(e, base, index),
            ExprKind::Next(_) | ExprKind::Last(_) => self.lvalue(e).read(self),
            ExprKind::LastIndex(base) => {
                let lval = self.lvalue(base);
                match self.next_of(&lval.store) {
                    Some((next, _)) => Val::Bits(fold::binary(BinaryOp::Sub, Expr::Slot(next), fold::constant(1, 32))),
                    None => self.default_value(&e.ty),
                }
            }
            ExprKind::Slice(base, high, low) => match self.value(base) {
                Val::Integer(value) => {
                    let bits = Bits::from_signed_big(&(value >> *low), high - low + 1);
                    Val::Bits(Expr::Const(bits))
                }
                val => {
                    let width = self.scalar_width(&base.ty).unwrap_or(0);
                    let bits = self.bits(val, &base.ty);
                    if *high < width {
                        Val::Bits(fold::slice(bits, width, *high, *low))
                    } else {
                        self.default_value(&e.ty)
                    }
                }
            },
            ExprKind::Unary(op, operand) => self.unary(*op, operand),
            ExprKind::Binary(op @ (ast::BinaryOp::And | ast::BinaryOp::Or), a, b) => {
                self.short_circuit(*op == ast::BinaryOp::And, a, b)
            }
            ExprKind::Binary(op, a, b) => {
                let (left, right) = self.pair(a, b);
                self.binary(*op, left, &a.ty, right, &b.ty, e)
            }
            ExprKind::Ternary(condition, a, b) => self.ternary(condition, a, b, &e.ty),
            ExprKind::Cast(inner) => {
                let val = self.value(inner);
                self.cast(val, &inner.ty, &e.ty)
            }
            ExprKind::Fields(parts) => {
                let effects: Vec<bool> = parts.iter().map(walk::has_effects).collect();
                let mut vals = Vec::with_capacity(parts.len());
                for (i, part) in parts.iter().enumerate() {
                    let val = self.value(part);
                    let later = effects[i + 1..].contains(&true);
                    vals.push(if later { self.spill(val, &part.ty) } else { val });
                }
                match (self.struct_kind(&e.ty), resolve(self.program, &e.ty)) {
                    (Some((_, ast::StructKind::Header)), _) => Val::Literal(vals),
                    (_, Type::Stack(..)) => Val::Array(vals, None),
                    _ => Val::Fields(vals),
                }
            }
            ExprKind::Invalid => Val::Invalid,
            ExprKind::Call(call) => self.call(call, &e.ty),
            ExprKind::Hit(call) => self.hit(call),
            ExprKind::ActionRun(_) => {
                self.unsupported(e.span, "`action_run` can only be the subject of a `switch`");
                Val::Absent
            }
        }
    }

    fn element_value(&mut self, e: &typed::Expr, base: &typed::Expr, index: &typed::Expr) -> Val {
        let mut val = self.value(base);
        if walk::has_effects(index) {
            val = self.spill(val, &base.ty);
        }
        match val {
            Val::Stack(stack) => {
                let index = self.index(index);
                Val::Header(self.element_at(stack, index))
            }
            Val::Array(parts, _) | Val::Fields(parts) => {
                let at = self.index(index);
                match fold::as_const(&at).and_then(Bits::to_u64) {
                    Some(at) => parts.get(at as usize).cloned().unwrap_or_else(|| self.default_value(&e.ty)),
                    None => self.select_part(&parts, at, &e.ty),
                }
            }
            _ => self.default_value(&e.ty),
        }
    }

    /// Selects the part with an index known only at run time.
    pub(crate) fn select_part(&mut self, parts: &[Val], index: Expr, ty: &Type) -> Val {
        let store = self.store("$tmp", ty, Lifetime::Scoped);
        self.clear(&store, ty);
        let width = self.width_of(&index);
        let join = self.block("join");
        let blocks: Vec<ir::BlockId> = parts.iter().map(|_| self.block("element")).collect();
        let fits = |i: usize| width >= 64 || (i as u64) < 1 << width;
        let cases = blocks.iter().enumerate().filter(|(i, _)| fits(*i));
        let cases = cases.map(|(i, block)| (Bits::new(i as u128, width), *block)).collect();
        self.terminate(ir::Terminator::Switch { subject: index, cases, default: join });
        for (block, part) in blocks.into_iter().zip(parts) {
            self.body.start(block);
            self.assign(&store, part.clone(), ty);
            self.goto(join);
        }
        self.body.start(join);
        store.read()
    }

    fn unary(&mut self, op: ast::UnaryOp, operand: &typed::Expr) -> Val {
        let val = self.value(operand);
        if let Val::Integer(value) = val {
            return Val::Integer(match op {
                ast::UnaryOp::Neg => -value,
                ast::UnaryOp::BitNot | ast::UnaryOp::Not => -value - 1,
                ast::UnaryOp::Plus => value,
            });
        }
        let bits = self.bits(val, &operand.ty);
        Val::Bits(match op {
            ast::UnaryOp::Neg => fold::unary(UnaryOp::Neg, bits),
            ast::UnaryOp::BitNot => fold::unary(UnaryOp::Not, bits),
            ast::UnaryOp::Not => fold::not(bits),
            ast::UnaryOp::Plus => bits,
        })
    }

    /// Lowers `a && b` or `a || b`: a plain bit operation if the right side has no side effects, else a branch around
    /// it.
    fn short_circuit(&mut self, and: bool, a: &typed::Expr, b: &typed::Expr) -> Val {
        let left = self.scalar(a);
        if let Some(bits) = fold::as_const(&left) {
            return if bits.is_true() == and { self.value(b) } else { Val::Bits(left) };
        }
        if !walk::has_effects(b) {
            let right = self.scalar(b);
            return Val::Bits(if and { fold::and(left, right) } else { fold::or(left, right) });
        }
        let slot = self.temp(1);
        self.emit(Op::Assign(LValue::Slot(slot), left));
        let condition = if and { Expr::Slot(slot) } else { fold::not(Expr::Slot(slot)) };
        self.when(condition, |cx| {
            let right = cx.scalar(b);
            cx.set(LValue::Slot(slot), right);
        });
        Val::Bits(Expr::Slot(slot))
    }

    fn ternary(&mut self, condition: &typed::Expr, a: &typed::Expr, b: &typed::Expr, ty: &Type) -> Val {
        let condition = self.scalar(condition);
        if let Some(bits) = fold::as_const(&condition) {
            return self.value(if bits.is_true() { a } else { b });
        }
        let width = self.scalar_width(ty);
        if let (Some(_), false, false) = (width, walk::has_effects(a), walk::has_effects(b)) {
            let (a, b) = (self.scalar(a), self.scalar(b));
            return Val::Bits(fold::choose(condition, a, b));
        }
        let store = self.store("$tmp", ty, Lifetime::Scoped);
        let (yes, no, join) = (self.block("then"), self.block("else"), self.block("join"));
        self.branch(condition, yes, no);
        for (block, side) in [(yes, a), (no, b)] {
            self.body.start(block);
            let val = self.value(side);
            self.assign(&store, val, ty);
            self.goto(join);
        }
        self.body.start(join);
        store.read()
    }

    /// Lowers `left op right` on evaluated operands.
    pub(crate) fn binary(
        &mut self,
        op: ast::BinaryOp,
        left: Val,
        left_ty: &Type,
        right: Val,
        right_ty: &Type,
        e: &typed::Expr,
    ) -> Val {
        if let (Val::Integer(a), Val::Integer(b)) = (&left, &right) {
            return match integers(op, a, b) {
                Some(val) => val,
                None => {
                    self.error(
                        diagnostics::Diagnostic::error("arithmetic", e.span, "this operation is undefined")
                            .help("division by zero, or a shift or result that is too large"),
                    );
                    self.default_value(&e.ty)
                }
            };
        }
        match op {
            ast::BinaryOp::Eq => return Val::Bits(self.equal(&left, &right, left_ty)),
            ast::BinaryOp::Ne => return Val::Bits(fold::not(self.equal(&left, &right, left_ty))),
            ast::BinaryOp::Shl | ast::BinaryOp::Shr => {
                let amount = match right {
                    Val::Integer(value) => fold::constant(value.to_u32().unwrap_or(u32::MAX).into(), 32),
                    other => self.bits(other, right_ty),
                };
                let signed = self.is_signed(left_ty);
                let value = self.bits(left, left_ty);
                let op = match op {
                    ast::BinaryOp::Shl => BinaryOp::Shl,
                    _ if signed => BinaryOp::ShrSigned,
                    _ => BinaryOp::Shr,
                };
                return Val::Bits(fold::binary(op, value, amount));
            }
            _ => {}
        }
        let ty = if matches!(left, Val::Integer(_)) { right_ty } else { left_ty };
        let signed = self.is_signed(ty);
        let (a, b) = match op {
            ast::BinaryOp::Concat => (self.bits(left, left_ty), self.bits(right, right_ty)),
            _ => (self.bits(left, ty), self.bits(right, ty)),
        };
        Val::Bits(match op {
            ast::BinaryOp::Mul => fold::binary(BinaryOp::Mul, a, b),
            ast::BinaryOp::Div => fold::binary(BinaryOp::Div, a, b),
            ast::BinaryOp::Mod => fold::binary(BinaryOp::Rem, a, b),
            ast::BinaryOp::Add => fold::binary(BinaryOp::Add, a, b),
            ast::BinaryOp::Sub => fold::binary(BinaryOp::Sub, a, b),
            ast::BinaryOp::AddSat if signed => fold::binary(BinaryOp::AddSatSigned, a, b),
            ast::BinaryOp::SubSat if signed => fold::binary(BinaryOp::SubSatSigned, a, b),
            ast::BinaryOp::AddSat => fold::binary(BinaryOp::AddSat, a, b),
            ast::BinaryOp::SubSat => fold::binary(BinaryOp::SubSat, a, b),
            ast::BinaryOp::Lt => fold::binary(if signed { BinaryOp::LtSigned } else { BinaryOp::Lt }, a, b),
            ast::BinaryOp::Le => fold::binary(if signed { BinaryOp::LeSigned } else { BinaryOp::Le }, a, b),
            ast::BinaryOp::Gt => fold::binary(if signed { BinaryOp::LtSigned } else { BinaryOp::Lt }, b, a),
            ast::BinaryOp::Ge => fold::binary(if signed { BinaryOp::LeSigned } else { BinaryOp::Le }, b, a),
            ast::BinaryOp::BitAnd => fold::binary(BinaryOp::And, a, b),
            ast::BinaryOp::BitXor => fold::binary(BinaryOp::Xor, a, b),
            ast::BinaryOp::BitOr => fold::binary(BinaryOp::Or, a, b),
            ast::BinaryOp::Concat => fold::concat(a, b),
            // The other operators returned above, or are lowered by `short_circuit`.
            ast::BinaryOp::Eq | ast::BinaryOp::And => fold::and(a, b),
            ast::BinaryOp::Ne | ast::BinaryOp::Or => fold::or(a, b),
            ast::BinaryOp::Shl | ast::BinaryOp::Shr => a,
        })
    }

    /// Converts a value from one type to another (section 8.11).
    pub(crate) fn cast(&mut self, val: Val, from: &Type, to: &Type) -> Val {
        if let Some(width) = self.scalar_width(to) {
            return Val::Bits(match val {
                Val::Integer(value) => Expr::Const(Bits::from_signed_big(&value, width)),
                val => {
                    let from_width = self.scalar_width(from).unwrap_or(width);
                    let bits = self.bits(val, from);
                    if self.is_signed(from) {
                        fold::sign_resize(bits, from_width, width)
                    } else {
                        fold::resize(bits, from_width, width)
                    }
                }
            });
        }
        let to_resolved = resolve(self.program, to).clone();
        match (&to_resolved, val) {
            (Type::Integer, Val::Bits(Expr::Const(bits))) => {
                Val::Integer(if self.is_signed(from) { bits.to_signed_big() } else { BigInt::from(bits.to_big()) })
            }
            (Type::Stack(element, _), Val::Fields(parts) | Val::Array(parts, None)) => {
                let from_types = self.part_types(from, parts.len());
                let parts = parts.into_iter().zip(&from_types).map(|(part, from)| self.cast(part, from, element));
                Val::Array(parts.collect(), None)
            }
            (Type::List(element), Val::Fields(parts)) => {
                let from_types = self.part_types(from, parts.len());
                let parts = parts.into_iter().zip(&from_types).map(|(part, from)| self.cast(part, from, element));
                Val::Fields(parts.collect())
            }
            (Type::Struct(_) | Type::Tuple(_), Val::Fields(parts)) => {
                let from_types = self.part_types(from, parts.len());
                let to_types = self.part_types(to, parts.len());
                let cast = parts.into_iter().zip(from_types.iter().zip(&to_types));
                let parts = cast.map(|(part, (from, to))| self.cast(part, from, to)).collect();
                match self.struct_kind(to) {
                    Some((_, ast::StructKind::Header)) => Val::Literal(parts),
                    _ => Val::Fields(parts),
                }
            }
            (_, val) => val,
        }
    }

    /// Returns the types of the `count` parts of a struct, tuple or list.
    fn part_types(&self, ty: &Type, count: usize) -> Vec<Type> {
        match resolve(self.program, ty) {
            Type::Stack(element, _) | Type::List(element) => vec![(**element).clone(); count],
            _ => {
                let fields = self.fields_of(ty).into_iter().map(|(_, ty)| ty);
                fields.chain(std::iter::repeat(Type::Void)).take(count).collect()
            }
        }
    }

    /// Returns the validity of a header, header union or stack element, one bit.
    pub(crate) fn valid(&mut self, e: &typed::Expr) -> Expr {
        let val = self.value(e);
        validity(&val)
    }

    /// Creates storage for a temporary of a type.
    pub(crate) fn temp_store(&mut self, ty: &Type) -> Store {
        self.store("$tmp", ty, Lifetime::Scoped)
    }
}

/// Maximum size in bits of a compile-time integer.
const MAX_INTEGER_BITS: u64 = 1 << 16;

fn integers(op: ast::BinaryOp, a: &BigInt, b: &BigInt) -> Option<Val> {
    let value = match op {
        ast::BinaryOp::Mul => a * b,
        ast::BinaryOp::Div if b.is_zero() || a.is_negative() || b.is_negative() => return None,
        ast::BinaryOp::Mod if b.is_zero() || a.is_negative() || b.is_negative() => return None,
        ast::BinaryOp::Div => a / b,
        ast::BinaryOp::Mod => a % b,
        ast::BinaryOp::Add => a + b,
        ast::BinaryOp::Sub => a - b,
        ast::BinaryOp::Shl => a << b.to_u64().filter(|n| *n <= MAX_INTEGER_BITS)?,
        ast::BinaryOp::Shr => a >> b.to_u64().unwrap_or(u64::MAX).min(MAX_INTEGER_BITS),
        ast::BinaryOp::BitAnd => a & b,
        ast::BinaryOp::BitXor => a ^ b,
        ast::BinaryOp::BitOr => a | b,
        ast::BinaryOp::Le => return Some(Val::Bits(fold::bool(a <= b))),
        ast::BinaryOp::Ge => return Some(Val::Bits(fold::bool(a >= b))),
        ast::BinaryOp::Lt => return Some(Val::Bits(fold::bool(a < b))),
        ast::BinaryOp::Gt => return Some(Val::Bits(fold::bool(a > b))),
        ast::BinaryOp::Eq => return Some(Val::Bits(fold::bool(a == b))),
        ast::BinaryOp::Ne => return Some(Val::Bits(fold::bool(a != b))),
        ast::BinaryOp::AddSat
        | ast::BinaryOp::SubSat
        | ast::BinaryOp::Concat
        | ast::BinaryOp::And
        | ast::BinaryOp::Or => return None,
    };
    (value.bits() <= MAX_INTEGER_BITS).then_some(Val::Integer(value))
}
