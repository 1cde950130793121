//! Bodies: blocks, terminators, and the order of instructions.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, types};
use cranelift_frontend::Switch;
use engine::FUEL_BLOCKS;
use ir::{BinaryOp, BlockId, Body, BodyId, Expr, LocId, Op, Program, SlotId, Terminator, UnaryOp};

use super::Emit;
use super::header::Which;
use super::value::Num;
use super::versions::{Point, Scope};
use super::words::Word;
use crate::layout::Valid;
use crate::{code, walk};

/// Conditions are taken apart so deep.
pub(super) const MAX_PARTS: u32 = 5;

/// Where a branch leads.
#[derive(Clone, Copy)]
pub(super) enum To {
    /// To code that goes on from here.
    Block(Block),
    Point(Point),
}

/// The most fuel that a body without loops can take, or `None` if it, or an action that it runs, has loops.
fn most_fuel(program: &Program, body: &Body) -> Option<u64> {
    if walk::has_loop(body) {
        return None;
    }
    let mut fuel = body.blocks.len() as u64;
    for instr in body.blocks.values().flat_map(|block| &block.instrs) {
        match &instr.op {
            Op::Apply { table, .. } => {
                for action in &program.tables[*table].actions {
                    fuel += most_fuel(program, &program.bodies[program.actions[action.action].body])?;
                }
            }
            Op::Request(_) => fuel += 1,
            Op::Emit(_) => fuel += ir::MAX_HEADER_BITS / 1024,
            _ => {}
        }
    }
    Some(fuel)
}

/// Whether the blocks that a body takes are counted.
fn counts_fuel(program: &Program, id: BodyId) -> bool {
    most_fuel(program, &program.bodies[id]).is_none_or(|fuel| fuel > u64::from(FUEL_BLOCKS))
}

impl Emit<'_, '_> {
    /// A body that a step runs; the current block is done with. The code goes on behind the step, however the body ends.
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

    /// The code of a block from an instruction on.
    pub(super) fn code(&mut self, block: BlockId, from: usize) {
        let body = &self.program.bodies[self.versions.scope(self.scope).body];
        let block_ = &body.blocks[block];
        if from == 0 {
            self.spend(1, block_.loc);
        }
        for (number, instr) in block_.instrs.iter().enumerate().skip(from) {
            self.spend_budget();
            if self.scouting.is_none() {
                if self.holds_back(&instr.op) {
                    continue;
                }
                self.write_held();
            }
            if let Op::Apply { table, hit, action } = &instr.op {
                if let Some(noted) = self.followed(*table) {
                    return self.follow(&noted, block, number);
                }
                match self.scouting.is_some() {
                    true => self.scout_apply(*table, *hit, *action),
                    false => return self.apply(*table, block, number),
                }
                continue;
            }
            self.instr(&instr.op, instr.loc);
        }
        self.write_held();
        self.spend_budget();
        self.terminator(&block_.terminator);
    }

    /// Takes fuel where it is counted.
    pub(super) fn spend(&mut self, blocks: u64, loc: LocId) {
        if self.fuel.is_some() && blocks > 0 {
            self.spend_word(Word::Known(blocks), loc);
        }
    }

    pub(super) fn spend_word(&mut self, blocks: Word, loc: LocId) {
        let Some(fuel) = self.fuel else { return };
        let left = Word::Value(self.b.use_var(fuel));
        let enough = self.w_cmp(IntCC::UnsignedLessThanOrEqual, blocks, left);
        let (on, out) = (self.b.create_block(), self.b.create_block());
        let enough = self.value(enough);
        self.b.ins().brif(enough, on, &[], out, &[]);
        self.aside(out, |emit| emit.end_unit(code::OUT_OF_FUEL, loc.as_u32()));
        self.b.switch_to_block(on);
        let left = self.w_sub(left, blocks);
        let left = self.value(left);
        self.b.def_var(fuel, left);
    }

    fn terminator(&mut self, terminator: &Terminator) {
        let to = |emit: &Self, block: ir::BlockId| To::Point(emit.block_point(block));
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

    /// The scope ends: an action goes back to its table.
    fn returns(&mut self) {
        let Scope { back, .. } = self.versions.scope(self.scope);
        match back {
            Some(back) => self.behind_action(Some(back.action), back),
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
            self.branch_to(equal, To::Point(self.block_point(*block)), To::Block(next));
            self.b.switch_to_block(next);
        }
        self.go_to(self.block_point(default));
    }

    fn to(&mut self, to: To) -> Block {
        match to {
            To::Block(block) => block,
            To::Point(point) => self.at(point),
        }
    }

    pub(super) fn branch(&mut self, condition: Word, then: Block, otherwise: Block) {
        self.branch_to(condition, To::Block(then), To::Block(otherwise));
    }

    /// Goes one way or the other by a word.
    pub(super) fn branch_to(&mut self, condition: Word, then: To, otherwise: To) {
        match condition {
            Word::Known(0) => {
                let otherwise = self.to(otherwise);
                self.b.ins().jump(otherwise, &[]);
            }
            Word::Known(_) => {
                let then = self.to(then);
                self.b.ins().jump(then, &[]);
            }
            Word::Value(condition) => {
                let (then, otherwise) = (self.to(then), self.to(otherwise));
                self.b.ins().brif(condition, then, &[], otherwise, &[]);
            }
        }
    }

    /// Goes one way or the other by an expression of one bit, part after part as far as it has parts: expressions have no
    /// effects, so what is not needed need not be computed.
    pub(super) fn branch_on(&mut self, condition: &Expr, then: To, otherwise: To, parts: u32) {
        let width = |value: &Expr| self.program.width(value).unwrap_or(0);
        match condition {
            Expr::Unary(UnaryOp::Not, a) if width(a) == 1 => self.branch_on(a, otherwise, then, parts),
            Expr::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) if width(a) == 1 && parts > 0 => {
                let next = self.b.create_block();
                match op {
                    BinaryOp::And => self.branch_on(a, To::Block(next), otherwise, parts - 1),
                    _ => self.branch_on(a, then, To::Block(next), parts - 1),
                }
                self.b.switch_to_block(next);
                self.branch_on(b, then, otherwise, parts - 1);
            }
            Expr::Valid(header) => {
                let which = self.which(header);
                let valid = self.is_valid(which);
                self.branch_knowing(valid, which, then, otherwise);
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

    /// Where a branch leads if a slot has a value then.
    fn block_with_slot(&mut self, to: To, slot: SlotId, value: u64) -> Block {
        let before = self.known.clone();
        self.know_slot(slot, value);
        let block = self.to(to);
        self.known = before;
        block
    }

    /// Goes one way or the other by whether a header is valid, which is known then.
    fn branch_knowing(&mut self, valid: Word, which: Which, then: To, otherwise: To) {
        let (Word::Value(condition), Which::One(header)) = (valid, which) else {
            return self.branch_to(valid, then, otherwise);
        };
        let Valid::Bit { mask, bit } = self.layout.header(header).valid else {
            return self.branch_to(valid, then, otherwise);
        };
        let before = self.known.clone();
        self.known.set_mask(mask, 1 << bit, 1 << bit);
        let then = self.to(then);
        self.known = before.clone();
        self.known.set_mask(mask, 1 << bit, 0);
        let otherwise = self.to(otherwise);
        self.known = before;
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
                let which = self.which(header);
                self.set_valid(which, Word::Known(1));
            }
            Op::SetInvalid(header) => {
                let which = self.which(header);
                self.set_valid(which, Word::Known(0));
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
            // Only someone who watches reads it, and then the interpreter runs.
            Op::Log(..) => {}
            Op::Assert(condition) => {
                let condition = self.condition(condition);
                let (on, failed) = (self.b.create_block(), self.b.create_block());
                self.branch(condition, on, failed);
                self.aside(failed, |emit| emit.end_unit(code::ASSERT_FAILED, loc.as_u32()));
                self.b.switch_to_block(on);
            }
        }
    }
}
