//! Evaluates statements (chapter 12), and controls (chapter 14) as the blocks of statements that they are.

use num_bigint::BigInt;
use p4::typed::{Block, ControlId, Expr, Local, Stmt, StmtKind, Type, VarId};

use crate::evaluator::{BlockEvaluator, Evaluated, Stop, unsupported};
use crate::expr::equal;
use crate::number::Number;
use crate::value::{Initial, Value, initial, is_signed, number_width};

impl BlockEvaluator<'_> {
    /// Runs the statements of a block in order (section 12.3).
    pub(crate) fn block(&mut self, block: &Block) -> Evaluated<()> {
        block.statements.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Evaluated<()> {
        self.step()?;
        self.nested(|cx| cx.execute(stmt))
    }

    fn execute(&mut self, stmt: &Stmt) -> Evaluated<()> {
        match &stmt.kind {
            StmtKind::Var(var, init) => self.declare(*var, init.as_ref()),
            StmtKind::Assign { lhs, op, rhs } => {
                // Section 12.1: the l-value first, then the value, then the copy.
                let place = self.place(lhs)?;
                let value = match op {
                    None => self.eval(rhs)?,
                    Some(op) => {
                        let left = self.read(&place)?;
                        let right = self.eval(rhs)?;
                        self.binary(*op, left, &lhs.ty, right, &rhs.ty)?
                    }
                };
                let from = if op.is_some() { &lhs.ty } else { &rhs.ty };
                let value = self.convert(value, from, &lhs.ty)?;
                self.write(&place, value)
            }
            StmtKind::Call(call) => self.call(call, &Type::Void).map(drop),
            StmtKind::If(condition, then, otherwise) => {
                if self.condition(condition)? {
                    self.stmt(then)
                } else {
                    otherwise.iter().try_for_each(|stmt| self.stmt(stmt))
                }
            }
            StmtKind::Switch { subject, cases, default } => {
                // Section 12.7.2. The front end has resolved fall-through.
                let value = self.eval(subject)?;
                for (labels, body) in cases {
                    for label in labels {
                        let label = self.eval(label)?;
                        if equal(&value, &label)? {
                            return self.block(body);
                        }
                    }
                }
                default.iter().try_for_each(|body| self.block(body))
            }
            StmtKind::SwitchAction { apply, cases, default, .. } => {
                // Section 12.7.1
                let ran = self.apply_table(apply)?.action;
                match cases.iter().find(|(labels, _)| labels.contains(&ran)) {
                    Some((_, body)) => self.block(body),
                    None => default.iter().try_for_each(|body| self.block(body)),
                }
            }
            StmtKind::For { init, condition, update, body } => {
                init.iter().try_for_each(|stmt| self.stmt(stmt))?;
                while self.condition(condition)? {
                    if !self.iteration(body)? {
                        break;
                    }
                    update.iter().try_for_each(|stmt| self.stmt(stmt))?;
                }
                Ok(())
            }
            StmtKind::ForRange { var, low, high, body } => self.for_range(*var, low, high, body),
            StmtKind::ForEach { var, items, body } => {
                let ty = &self.program.vars[*var].ty;
                let collection = self.eval(items)?;
                for item in collection.parts() {
                    let item = self.convert(item.clone(), ty, ty)?;
                    self.env.insert(*var, item);
                    if !self.iteration(body)? {
                        break;
                    }
                }
                Ok(())
            }
            StmtKind::Block(block) => self.block(block),
            StmtKind::Return(value) => {
                let value = match value {
                    Some(e) => self.eval(e)?,
                    None => Value::Void,
                };
                Err(Stop::Return(value))
            }
            StmtKind::Exit => Err(Stop::Exit),
            StmtKind::Break => Err(Stop::Break),
            StmtKind::Continue => Err(Stop::Continue),
            StmtKind::Empty => Ok(()),
        }
    }

    /// Declares a variable (section 11.2).
    pub(crate) fn declare(&mut self, var: VarId, init: Option<&Expr>) -> Evaluated<()> {
        let ty = &self.program.vars[var].ty;
        let value = match init {
            Some(e) => {
                let value = self.eval(e)?;
                self.convert(value, &e.ty, ty)?
            }
            None => initial(self.program, ty, Initial::Variable),
        };
        self.budget.copy(&value)?;
        self.env.insert(var, value);
        Ok(())
    }

    /// `for (v in low .. high)` (section 12.8): both bounds are inclusive and evaluated once.
    fn for_range(&mut self, var: VarId, low: &Expr, high: &Expr, body: &Stmt) -> Evaluated<()> {
        let ty = &self.program.vars[var].ty;
        let width = number_width(self.program, ty).ok_or_else(|| unsupported("a loop over this range"))?;
        let signed = is_signed(self.program, ty);
        let low_value = self.eval(low)?;
        let low_value = self.convert(low_value, &low.ty, ty)?;
        let high_value = self.eval(high)?;
        let high_value = self.convert(high_value, &high.ty, ty)?;
        let mut at = self.as_number(low_value, ty)?.value(signed);
        let last = self.as_number(high_value, ty)?.value(signed);
        while at <= last {
            self.env.insert(var, Value::Number(Number::wrap(&at, width)));
            if !self.iteration(body)? {
                break;
            }
            at += BigInt::from(1);
        }
        Ok(())
    }

    /// Runs the body of a loop once. Returns false after `break`.
    fn iteration(&mut self, body: &Stmt) -> Evaluated<bool> {
        match self.stmt(body) {
            Ok(()) | Err(Stop::Continue) => Ok(true),
            Err(Stop::Break) => Ok(false),
            Err(stop) => Err(stop),
        }
    }

    /// Runs a control whose parameters are bound: its declarations, then `apply` (section 14.4).
    pub(crate) fn run_control(&mut self, id: ControlId) -> Evaluated<()> {
        let control = &self.program.controls[id];
        self.locals(&control.locals)?;
        self.block(&control.body)
    }

    /// Runs the variable declarations of a parser or control.
    pub(crate) fn locals(&mut self, locals: &[Local]) -> Evaluated<()> {
        for local in locals {
            if let Local::Var(var, init) = local {
                self.declare(*var, init.as_ref())?;
            }
        }
        Ok(())
    }
}
