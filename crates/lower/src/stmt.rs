//! Lowers statements to blocks.

use std::collections::HashSet;

use ir::Terminator;
use p4::typed::{self, Stmt, StmtKind, Type, VarId};

use crate::assign::InitialScalars;
use crate::lowering::{Binding, Lowering};
use crate::storage::{Lifetime, Store};
use crate::walk;
use ir::fold;

impl<'a> Lowering<'a> {
    /// Lowers statements in order.
    pub(crate) fn statements(&mut self, block: &typed::Block) {
        for stmt in &block.statements {
            self.statement(stmt);
        }
    }

    pub(crate) fn statement(&mut self, stmt: &Stmt) {
        // Unreachable code is not lowered; an exceeded limit ends lowering.
        if self.failed || self.body.ended() {
            return;
        }
        let outer = self.at(stmt.span);
        self.deeper(|cx| cx.statement_inner(stmt));
        self.at(outer);
    }

    fn statement_inner(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Var(var, init) => {
                // The initial value may use an outer variable with the same storage.
                let val = init.as_ref().map(|init| (self.value(init), init.ty.clone()));
                let store = self.local(*var);
                match val {
                    Some((val, ty)) => self.assign(&store, val, &ty),
                    None => self.initialise(&store, InitialScalars::Undefined),
                }
            }
            StmtKind::Assign { lhs, op, rhs } => self.assignment(lhs, *op, rhs),
            StmtKind::Call(call) => {
                self.call(call, &Type::Void);
            }
            StmtKind::If(condition, then, otherwise) => {
                let condition = self.scalar(condition);
                if let Some(bits) = fold::as_const(&condition) {
                    match (bits.is_true(), otherwise) {
                        (true, _) => self.statement(then),
                        (false, Some(otherwise)) => self.statement(otherwise),
                        (false, None) => {}
                    }
                    return;
                }
                let (yes, no, join) = (self.block("then"), self.block("else"), self.block("join"));
                self.branch(condition, yes, no);
                self.body.start(yes);
                self.statement(then);
                self.goto(join);
                self.body.start(no);
                if let Some(otherwise) = otherwise {
                    self.statement(otherwise);
                }
                self.goto(join);
                self.body.start(join);
            }
            StmtKind::Switch { subject, cases, default } => self.switch(subject, cases, default.as_ref()),
            StmtKind::SwitchAction { apply, table, cases, default } => {
                self.switch_action(apply, *table, cases, default.as_ref());
            }
            StmtKind::For { init, condition, update, body } => self.for_loop(init, condition, update, body),
            StmtKind::ForRange { var, low, high, body } => self.for_range(*var, low, high, body),
            StmtKind::ForEach { var, items, body } => self.for_each(*var, items, body),
            StmtKind::Block(block) if self.is_atomic(block) => self.atomic(block),
            StmtKind::Block(block) => self.statements(block),
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    let val = self.value(value);
                    if let Some(store) = self.frames.last().and_then(|frame| frame.value.clone()) {
                        self.assign(&store, val, &value.ty);
                    }
                }
                if let Some((to, atomics)) = self.frames.last().map(|frame| (frame.return_to, frame.atomics.len())) {
                    self.end_atomics(atomics);
                    self.goto(to);
                }
            }
            StmtKind::Exit => {
                if let Some(to) = self.frames.last().map(|frame| frame.exit_to) {
                    self.end_atomics(self.frames.iter().map(|frame| frame.atomics.len()).sum());
                    self.goto(to);
                }
            }
            StmtKind::Break | StmtKind::Continue => {
                let targets = self.frames.last().and_then(|frame| {
                    let within = frame.atomics.iter().filter(|loops| **loops == frame.loops.len()).count();
                    Some((*frame.loops.last()?, within))
                });
                if let Some(((out, again), atomics)) = targets {
                    self.end_atomics(atomics);
                    self.goto(if matches!(stmt.kind, StmtKind::Break) { out } else { again });
                }
            }
            StmtKind::Empty => {}
        }
    }

    /// Returns the storage of a local variable of the current body.
    pub(crate) fn local(&mut self, var: VarId) -> Store {
        let key = (self.inst, var);
        let store = match self.body.stores.get(&key) {
            Some(store) => store.clone(),
            None => {
                let decl = &self.program.vars[var];
                let name = self.local_name(&decl.name);
                let store = self.store(&name, &decl.ty, Lifetime::Scoped);
                self.body.stores.insert(key, store.clone());
                store
            }
        };
        self.env.insert(var, Binding::Store(store.clone()));
        store
    }

    /// Qualifies the name of a local with the name of the body it is local to.
    pub(crate) fn local_name(&self, name: &str) -> String {
        match self.inst {
            Some(inst) => format!("{}.{name}", self.insts[inst.0].path),
            None => name.to_owned(),
        }
    }

    fn assignment(&mut self, lhs: &typed::Expr, op: Option<p4::ast::BinaryOp>, rhs: &typed::Expr) {
        let effects = walk::has_effects(rhs);
        // Parts are assigned one after the other, and an index may be computed from one of them.
        let has_parts = self.scalar_width(&lhs.ty).is_none();
        let lval = if effects || has_parts { self.stable_lvalue(lhs) } else { self.lvalue(lhs) };
        let val = match op {
            None => self.value(rhs),
            Some(op) => {
                let ty = lval.value_ty();
                let mut old = lval.read(self);
                if effects {
                    old = self.spill(old, &ty);
                }
                let right = self.value(rhs);
                self.binary(op, old, &ty, right, &rhs.ty, lhs)
            }
        };
        if effects {
            self.write(&lval, val);
        } else {
            self.write_unchanged(&lval, val);
        }
    }

    /// Lowers a switch on a value.
    fn switch(
        &mut self,
        subject: &typed::Expr,
        cases: &[(Vec<typed::Expr>, typed::Block)],
        default: Option<&typed::Block>,
    ) {
        let subject_ty = subject.ty.clone();
        let subject = self.scalar(subject);
        let join = self.block("join");
        let mut seen = HashSet::new();
        let mut table = Vec::new();
        let mut bodies = Vec::new();
        for (labels, body) in cases {
            let block = self.block("case");
            bodies.push((block, body));
            for label in labels {
                let value = self.without_emitting(|cx| cx.value(label));
                let value = self.bits(value, &subject_ty);
                match fold::as_const(&value) {
                    Some(value) if seen.insert(value.clone()) => table.push((value.clone(), block)),
                    Some(_) => {}
                    None => self.unsupported(label.span, "a `switch` label must be known at compile time"),
                }
            }
        }
        let otherwise = match default {
            Some(body) => {
                let block = self.block("default");
                bodies.push((block, body));
                block
            }
            None => join,
        };
        self.switch_to(subject, table, otherwise);
        self.case_bodies(bodies, join);
    }

    fn switch_to(&mut self, subject: ir::Expr, table: Vec<(bits::Bits, ir::BlockId)>, default: ir::BlockId) {
        match fold::as_const(&subject) {
            Some(value) => {
                let to = table.iter().find(|(label, _)| label == value).map_or(default, |(_, block)| *block);
                self.goto(to);
            }
            None if table.is_empty() => self.goto(default),
            None => self.terminate(Terminator::Switch { subject, cases: table, default }),
        }
    }

    fn case_bodies(&mut self, bodies: Vec<(ir::BlockId, &typed::Block)>, join: ir::BlockId) {
        for (block, body) in bodies {
            self.body.start(block);
            self.statements(body);
            self.goto(join);
        }
        self.body.start(join);
    }

    /// Lowers `switch (t.apply().action_run)`.
    fn switch_action(
        &mut self,
        apply: &typed::Call,
        table: typed::TableId,
        cases: &[(Vec<usize>, typed::Block)],
        default: Option<&typed::Block>,
    ) {
        let outer = self.at(apply.span);
        let ran = self.temp(32);
        self.apply_table(table, None, Some(ran));
        self.at(outer);
        let join = self.block("join");
        let mut seen = HashSet::new();
        let mut targets = Vec::new();
        let mut bodies = Vec::new();
        for (labels, body) in cases {
            let block = self.block("case");
            bodies.push((block, body));
            for label in labels {
                if seen.insert(*label) {
                    targets.push((bits::Bits::new(*label as u128, 32), block));
                }
            }
        }
        let otherwise = match default {
            Some(body) => {
                let block = self.block("default");
                bodies.push((block, body));
                block
            }
            None => join,
        };
        self.switch_to(ir::Expr::Slot(ran), targets, otherwise);
        self.case_bodies(bodies, join);
    }
}
