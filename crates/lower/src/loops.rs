//! Lowers loops. They are not unrolled: a body is lowered once, however often it runs.

use bits::Bits;
use ir::{BinaryOp, BlockId, Expr, LValue, Op, Terminator};
use p4::typed::{self, Builtin, Callee, ExprKind, Stmt, StmtKind, Type, VarId};

use crate::lowering::Lowering;
use crate::storage::resolve;
use crate::value::Val;
use crate::walk::CodeNode;
use ir::fold;

impl<'a> Lowering<'a> {
    /// Lowers the body of a loop, with targets for `break` and `continue`.
    fn loop_body(&mut self, body: &Stmt, out: BlockId, again: BlockId) {
        if let Some(frame) = self.frames.last_mut() {
            frame.loops.push((out, again));
        }
        self.statement(body);
        if let Some(frame) = self.frames.last_mut() {
            frame.loops.pop();
        }
        self.goto(again);
    }

    /// ```text
    /// for (init; condition; update) body      init; goto test
    ///                                   test: branch condition, body, out
    ///                                   body: ...; goto next
    ///                                   next: update; goto test
    /// ```
    pub(crate) fn for_loop(&mut self, init: &[Stmt], condition: &typed::Expr, update: &[Stmt], body: &Stmt) {
        for stmt in init {
            self.statement(stmt);
        }
        let [test, inside, next, out] = ["test", "body", "next", "out"].map(|name| self.block(name));
        self.goto(test);
        self.body.start(test);
        let condition = self.scalar(condition);
        self.branch(condition, inside, out);
        self.body.start(inside);
        self.loop_body(body, out, next);
        self.body.start(next);
        for stmt in update {
            self.statement(stmt);
        }
        self.goto(test);
        self.body.start(out);
    }

    /// ```text
    /// for (v in low .. high) body             $i = low; $last = high; branch $i <= $last, body, out
    ///                                   body: v = $i; ...; goto next
    ///                                   next: branch $i == $last, out, step
    ///                                   step: $i = $i + 1; goto body
    /// ```
    pub(crate) fn for_range(&mut self, var: VarId, low: &typed::Expr, high: &typed::Expr, body: &Stmt) {
        let ty = self.program.vars[var].ty.clone();
        let width = self.scalar_width(&ty).unwrap_or(32);
        let (counter, last) = (self.temp(width), self.temp(width));
        let value = self.value(low);
        let value = self.cast(value, &low.ty, &ty);
        let value = self.bits(value, &ty);
        self.emit(Op::Assign(LValue::Slot(counter), value));
        let value = self.value(high);
        let value = self.cast(value, &high.ty, &ty);
        let value = self.bits(value, &ty);
        self.emit(Op::Assign(LValue::Slot(last), value));
        let order = if self.is_signed(&ty) { BinaryOp::LeSigned } else { BinaryOp::Le };
        let [inside, next, step, out] = ["body", "next", "step", "out"].map(|name| self.block(name));
        self.branch(fold::binary(order, Expr::Slot(counter), Expr::Slot(last)), inside, out);
        self.body.start(inside);
        let store = self.local(var);
        self.assign(&store, Val::Bits(Expr::Slot(counter)), &ty);
        self.loop_body(body, out, next);
        self.body.start(next);
        self.branch(fold::binary(BinaryOp::Eq, Expr::Slot(counter), Expr::Slot(last)), out, step);
        self.body.start(step);
        let one = fold::constant(1, width);
        self.emit(Op::Assign(LValue::Slot(counter), fold::binary(BinaryOp::Add, Expr::Slot(counter), one)));
        self.goto(inside);
        self.body.start(out);
    }

    /// Iterates in the same way over the indices of a list or stack.
    ///
    /// ```text
    /// for (v in {a, b}) body                  $i = 0; goto test
    ///                                   test: switch $i: 0 -> item, 1 -> item$1, default out
    ///                                   item: v = a; goto body
    ///                                   ...
    ///                                   next: $i = $i + 1; goto test
    /// ```
    pub(crate) fn for_each(&mut self, var: VarId, items: &typed::Expr, body: &Stmt) {
        let ty = self.program.vars[var].ty.clone();
        let mut val = self.value(items);
        if matches!(val, Val::Stack(_)) && may_write(body) {
            // The collection is evaluated once: what the body writes to the stack changes no later item.
            val = self.spill(val, &items.ty);
        }
        let counter = self.temp(32);
        self.emit(Op::Assign(LValue::Slot(counter), fold::constant(0, 32)));
        let [test, inside, next, out] = ["test", "body", "next", "out"].map(|name| self.block(name));
        let parts = match (val, resolve(self.program, &items.ty)) {
            (Val::Stack(stack), _) => {
                let size = self.ir.stacks[stack].size;
                self.goto(test);
                self.body.start(test);
                let more = fold::binary(BinaryOp::Lt, Expr::Slot(counter), fold::constant(size.into(), 32));
                let item = self.block("item");
                self.branch(more, item, out);
                self.body.start(item);
                let store = self.local(var);
                let element = self.element_at(stack, Expr::Slot(counter));
                self.assign(&store, Val::Header(element), &ty);
                self.goto(inside);
                None
            }
            (Val::Array(parts, _) | Val::Fields(parts), _) => Some(parts),
            (_, Type::List(_)) => Some(Vec::new()),
            _ => {
                self.unsupported(items.span, "iterating over this is not supported");
                Some(Vec::new())
            }
        };
        if let Some(parts) = parts {
            // The items are evaluated once, before the first iteration.
            let element = match self.element_type(&items.ty) {
                Type::Void => ty.clone(),
                element => element,
            };
            let parts: Vec<Val> = parts.into_iter().map(|part| self.spill(part, &element)).collect();
            self.goto(test);
            self.body.start(test);
            let blocks: Vec<BlockId> = parts.iter().map(|_| self.block("item")).collect();
            let cases: Vec<(Bits, BlockId)> =
                blocks.iter().enumerate().map(|(i, block)| (Bits::new(i as u128, 32), *block)).collect();
            if cases.is_empty() {
                self.goto(out);
            } else {
                self.terminate(Terminator::Switch { subject: Expr::Slot(counter), cases, default: out });
            }
            let store = self.local(var);
            for (block, part) in blocks.into_iter().zip(parts) {
                self.body.start(block);
                let part = self.cast(part, &element, &ty);
                self.assign(&store, part, &ty);
                self.goto(inside);
            }
        }
        self.body.start(inside);
        self.loop_body(body, out, next);
        self.body.start(next);
        let one = fold::constant(1, 32);
        self.emit(Op::Assign(LValue::Slot(counter), fold::binary(BinaryOp::Add, Expr::Slot(counter), one)));
        self.goto(test);
        self.body.start(out);
    }
}

/// Whether a loop's body may change anything but its own variables; a rough answer is good enough.
fn may_write(body: &Stmt) -> bool {
    let mut writes = false;
    crate::walk::stmt(body, &mut |node| match node {
        CodeNode::Stmt(stmt) => writes |= matches!(&stmt.kind, StmtKind::Assign { lhs, .. } if !is_variable(lhs)),
        CodeNode::Call(call) => writes |= !matches!(call.callee, Callee::Builtin(Builtin::IsValid, _)),
        CodeNode::Expr(_) => {}
    });
    writes
}

/// Whether an l-value is a whole variable of a scalar type, or a slice of one.
fn is_variable(lhs: &typed::Expr) -> bool {
    match &lhs.kind {
        ExprKind::Var(_) => !matches!(lhs.ty, Type::Struct(_) | Type::Stack(..)),
        ExprKind::Slice(base, ..) => is_variable(base),
        _ => false,
    }
}
