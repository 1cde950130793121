//! Emits bodies: basic blocks, terminators and instruction order.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, types};
use cranelift_frontend::Switch;
use engine::FUEL_BLOCKS;
use ir::{BinaryOp, BlockId, Body, BodyId, Expr, LocId, Op, Program, SlotId, Terminator, UnaryOp};

use super::Emit;
use super::header::ResolvedHeader;
use super::value::Num;
use super::versions::{Point, Scope};
use super::words::Word;
use crate::layout::Valid;
use crate::{code, walk};

/// Maximum depth to which conditions are split into branches.
pub(super) const MAX_PARTS: u32 = 5;

/// Target of a branch.
#[derive(Clone, Copy)]
pub(super) enum BranchTarget {
    /// A basic block that continues here.
    Block(Block),
    Point(Point),
}

/// Returns the maximum fuel that a body without loops can consume; `None` if the body, or an action that it runs, has
/// loops.
fn max_fuel(program: &Program, body: &Body) -> Option<u64> {
    if walk::has_loop(body) {
        return None;
    }
    let mut fuel = body.blocks.len() as u64;
    for instr in body.blocks.values().flat_map(|block| &block.instrs) {
        match &instr.op {
            Op::Apply { table, .. } => {
                for action in &program.tables[*table].actions {
                    fuel += max_fuel(program, &program.bodies[program.actions[action.action].body])?;
                }
            }
            Op::Request(_) => fuel += 1,
            Op::Emit(_) => fuel += ir::MAX_DATA_BITS / 1024,
            _ => {}
        }
    }
    Some(fuel)
}

/// Whether the blocks that a body executes are counted.
fn counts_fuel(program: &Program, id: BodyId) -> bool {
    max_fuel(program, &program.bodies[id]).is_none_or(|fuel| fuel > u64::from(FUEL_BLOCKS))
}

impl Emit<'_, '_> {
    /// Generates a body that a step runs; the current block is terminated. Execution continues after the step, however
    /// the body ends.
    pub(super) fn top_body(&mut self, step: usize, id: BodyId) {
        if !self.fuels.contains_key(&step) {
            let fuel = counts_fuel(self.program, id).then(|| self.b.declare_var(types::I64));
            self.fuels.insert(step, fuel);
        }
        let scope = self.scope_of_step(step, id);
        self.in_scope(scope);
        if let Some(fuel) = self.fuel {
            let most = self.b.ins().iconst(types::I64, i64::from(FUEL_BLOCKS));
            self.b.def_var(fuel, most);
        }
        self.begin_emitting(id);
        self.go_to(self.block_point(BlockId::from_u32(0)));
    }

    /// Generates the code of a block from an instruction on.
    pub(super) fn code(&mut self, block: BlockId, from: usize) {
        let body = &self.program.bodies[self.versions.scope(self.scope).body];
        let block_ = &body.blocks[block];
        if from == 0 {
            self.spend(1, block_.loc);
        }
        for (number, instr) in block_.instrs.iter().enumerate().skip(from) {
            self.spend_budget();
            if self.scouting.is_none() {
                if self.defers(&instr.op) {
                    continue;
                }
                self.flush_deferred();
            }
            if let Op::Apply { table, hit, action } = &instr.op {
                if let Some(prefetched) = self.followed(*table) {
                    return self.follow(&prefetched, block, number);
                }
                if self.scouting.is_some() {
                    self.scout_apply(*table, *hit, *action)
                } else {
                    return self.apply(*table, block, number);
                }
                continue;
            }
            self.instr(&instr.op, instr.loc);
        }
        self.flush_deferred();
        self.spend_budget();
        self.terminator(&block_.terminator);
    }

    /// Consumes fuel in bodies that count it.
    pub(super) fn spend(&mut self, blocks: u64, loc: LocId) {
        if self.fuel.is_some() && blocks > 0 {
            self.spend_word(Word::Const(blocks), loc);
        }
    }

    pub(super) fn spend_word(&mut self, blocks: Word, loc: LocId) {
        let Some(fuel) = self.fuel else { return };
        let left = Word::Value(self.b.use_var(fuel));
        let enough = self.w_cmp(IntCC::UnsignedLessThanOrEqual, blocks, left);
        let (on, out) = (self.b.create_block(), self.b.create_block());
        let enough = self.value(enough);
        self.b.ins().brif(enough, on, &[], out, &[]);
        self.cold_block(out, |emit| emit.end_unit(code::OUT_OF_FUEL, loc.as_u32()));
        self.b.switch_to_block(on);
        let left = self.w_sub(left, blocks);
        let left = self.value(left);
        self.b.def_var(fuel, left);
    }

    fn terminator(&mut self, terminator: &Terminator) {
        let to = |emit: &Self, block: ir::BlockId| BranchTarget::Point(emit.block_point(block));
        match terminator {
            Terminator::Goto(block) => self.go_to(self.block_point(*block)),
            Terminator::Branch { condition, then, otherwise } => {
                let (then, otherwise) = (to(self, *then), to(self, *otherwise));
                self.branch_on(condition, then, otherwise, MAX_PARTS);
            }
            Terminator::Switch { subject, cases, default } => self.switch(subject, cases, *default),
            Terminator::Select { keys, cases } => self.select(keys, cases),
            Terminator::Return => self.returns(),
            Terminator::Exit => {
                self.probe_exit();
                self.body_ends(code::EXIT);
            }
            Terminator::Reject => self.body_ends(code::REJECT),
        }
    }

    /// Ends the scope: an action returns to its table.
    fn returns(&mut self) {
        let Scope { return_site, .. } = self.versions.scope(self.scope);
        match return_site {
            Some(return_site) => self.after_action(Some(return_site.action), return_site),
            None => self.body_ends(code::RETURN),
        }
    }

    fn switch(&mut self, subject: &Expr, cases: &[(bits::Bits, BlockId)], default: BlockId) {
        let value = self.expr(subject);
        if let Some(value) = value.constant() {
            let found = cases.iter().find(|(case, _)| *case == value);
            return self.go_to(self.block_point(found.map_or(default, |(_, block)| *block)));
        }
        if value.width <= 64 && value.width > 0 {
            let mut switch = Switch::new();
            for (case, block) in cases {
                let to = self.at(self.block_point(*block));
                switch.set_entry(u128::from(case.low_u64()), to);
            }
            let value = self.value(value.low());
            let default = self.at(self.block_point(default));
            return switch.emit(&mut self.b, value, default);
        }
        for (case, block) in cases {
            let equal = self.equal(&value, &Num::known(case));
            let next = self.b.create_block();
            self.branch_to(equal, BranchTarget::Point(self.block_point(*block)), BranchTarget::Block(next));
            self.b.switch_to_block(next);
        }
        self.go_to(self.block_point(default));
    }

    fn to(&mut self, to: BranchTarget) -> Block {
        match to {
            BranchTarget::Block(block) => block,
            BranchTarget::Point(point) => self.at(point),
        }
    }

    pub(super) fn branch(&mut self, condition: Word, then: Block, otherwise: Block) {
        self.branch_to(condition, BranchTarget::Block(then), BranchTarget::Block(otherwise));
    }

    /// Branches on a word.
    pub(super) fn branch_to(&mut self, condition: Word, then: BranchTarget, otherwise: BranchTarget) {
        match condition {
            Word::Const(0) => {
                let otherwise = self.to(otherwise);
                self.b.ins().jump(otherwise, &[]);
            }
            Word::Const(_) => {
                let then = self.to(then);
                self.b.ins().jump(then, &[]);
            }
            Word::Value(condition) => {
                let (then, otherwise) = (self.to(then), self.to(otherwise));
                self.b.ins().brif(condition, then, &[], otherwise, &[]);
            }
        }
    }

    /// Branches on an expression of one bit, with short-circuit evaluation of its parts: expressions have no side
    /// effects, so unneeded operands need not be computed.
    pub(super) fn branch_on(&mut self, condition: &Expr, then: BranchTarget, otherwise: BranchTarget, parts: u32) {
        let width = |value: &Expr| self.program.width(value).unwrap_or(0);
        match condition {
            Expr::Unary(UnaryOp::Not, a) if width(a) == 1 => self.branch_on(a, otherwise, then, parts),
            Expr::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) if width(a) == 1 && parts > 0 => {
                let next = self.b.create_block();
                match op {
                    BinaryOp::And => self.branch_on(a, BranchTarget::Block(next), otherwise, parts - 1),
                    _ => self.branch_on(a, then, BranchTarget::Block(next), parts - 1),
                }
                self.b.switch_to_block(next);
                self.branch_on(b, then, otherwise, parts - 1);
            }
            Expr::Valid(header) => {
                let resolved = self.resolve(header);
                let valid = self.is_valid(resolved);
                self.branch_knowing(valid, resolved, then, otherwise);
            }
            Expr::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), a, b) => {
                let learnt = match (&**a, &**b) {
                    (Expr::Slot(slot), Expr::Const(value)) | (Expr::Const(value), Expr::Slot(slot)) => {
                        Some((*slot, value.low_u64()))
                    }
                    _ => None,
                };
                match (self.condition(condition), learnt) {
                    (Word::Value(holds), Some((slot, value))) => {
                        let (then, otherwise) = match op {
                            BinaryOp::Eq => (self.block_with_slot(then, slot, value), self.to(otherwise)),
                            _ => (self.to(then), self.block_with_slot(otherwise, slot, value)),
                        };
                        self.b.ins().brif(holds, then, &[], otherwise, &[]);
                    }
                    (condition, _) => self.branch_to(condition, then, otherwise),
                }
            }
            condition => {
                let condition = self.condition(condition);
                self.branch_to(condition, then, otherwise);
            }
        }
    }

    /// Returns the target block of a branch, entered with a known value of a slot.
    fn block_with_slot(&mut self, to: BranchTarget, slot: SlotId, value: u64) -> Block {
        let before = self.facts.clone();
        self.know_slot(slot, value);
        let block = self.to(to);
        self.facts = before;
        block
    }

    /// Branches on the validity of a header, which is a fact in both successors.
    fn branch_knowing(&mut self, valid: Word, resolved: ResolvedHeader, then: BranchTarget, otherwise: BranchTarget) {
        let (Word::Value(condition), ResolvedHeader::One(header)) = (valid, resolved) else {
            return self.branch_to(valid, then, otherwise);
        };
        let Valid::Bit { mask, bit } = self.layout.header(header).valid else {
            return self.branch_to(valid, then, otherwise);
        };
        let before = self.facts.clone();
        self.facts.set_mask(mask, 1 << bit, 1 << bit);
        let then = self.to(then);
        self.facts = before.clone();
        self.facts.set_mask(mask, 1 << bit, 0);
        let otherwise = self.to(otherwise);
        self.facts = before;
        self.b.ins().brif(condition, then, &[], otherwise, &[]);
    }

    fn instr(&mut self, op: &Op, loc: LocId) {
        if self.scouting.is_some() {
            return self.scout_instr(op);
        }
        match op {
            Op::Assign(place, value) => {
                let value = self.expr(value);
                self.write(place, &value);
            }
            Op::CopyHeader(to, from) => self.copy_header(to, from),
            Op::CopyVarbit(to, _, from, _) => self.copy_varbit(to, from),
            Op::SetValid(header) => {
                let resolved = self.resolve(header);
                self.set_valid(resolved, Word::Const(1));
            }
            Op::SetInvalid(header) => {
                let resolved = self.resolve(header);
                self.set_valid(resolved, Word::Const(0));
            }
            Op::Extract(header, width) => self.extract(header, width.as_ref()),
            Op::Lookahead { dst, skip } => self.lookahead(dst, *skip),
            Op::Advance(width) => self.advance(width),
            Op::Verify(condition, error) => self.verify(condition, error),
            Op::Emit(header) => self.emit(header, loc),
            Op::Apply { .. } => unreachable!("tables are applied by the code of their block"),
            Op::RegisterRead(place, register, index) => self.register_read(place, *register, index),
            Op::RegisterWrite(register, index, value) => self.register_write(*register, index, value),
            Op::Count(counter, index) => self.count(*counter, index),
            Op::MeterExecute(meter, index, place) => self.meter_execute(*meter, index, place),
            Op::DirectMeterRead(meter, place) => self.direct_colour(*meter, place),
            Op::Compute(place, algorithm, data) => self.compute(place, *algorithm, data),
            Op::Random(place, low, high) => self.random(place, low, high),
            Op::Request(request) => self.request(request, loc),
            Op::BeginAtomic => self.atomic(true),
            Op::EndAtomic => self.atomic(false),
            // Log messages are read only by an observer, and then the interpreter runs.
            Op::Log(..) => {}
            Op::Assert(condition) => {
                let condition = self.condition(condition);
                let (on, failed) = (self.b.create_block(), self.b.create_block());
                self.branch(condition, on, failed);
                self.cold_block(failed, |emit| emit.end_unit(code::ASSERT_FAILED, loc.as_u32()));
                self.b.switch_to_block(on);
            }
        }
    }
}
