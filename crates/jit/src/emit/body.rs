//! Bodies: blocks, terminators, and the order of instructions.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, types};
use cranelift_frontend::Switch;
use engine::FUEL_BLOCKS;
use ir::{BinaryOp, Body, BodyId, Expr, LocId, Op, Program, Terminator, UnaryOp};

use super::Emit;
use super::value::Word;
use crate::{code, walk};

/// Conditions are taken apart so deep.
pub(super) const MAX_PARTS: u32 = 5;

/// Where a body goes when it ends.
#[derive(Clone, Copy)]
pub(super) struct Ways {
    /// Its end, or a parser's acceptance.
    pub back: Block,
    /// `exit`.
    pub exit: Block,
    /// A parser's refusal.
    pub reject: Block,
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

impl Emit<'_, '_> {
    /// A body that a step runs. The code goes on behind it, however it ended.
    pub(super) fn top_body(&mut self, id: BodyId) {
        let body = &self.program.bodies[id];
        let counts = most_fuel(self.program, body).is_none_or(|fuel| fuel > u64::from(FUEL_BLOCKS));
        self.fuel = counts.then(|| {
            let fuel = self.b.declare_var(types::I64);
            let most = self.b.ins().iconst(types::I64, i64::from(FUEL_BLOCKS));
            self.b.def_var(fuel, most);
            fuel
        });
        self.begin_emitting(id);
        let ways = Ways { back: self.b.create_block(), exit: self.b.create_block(), reject: self.b.create_block() };
        let on = self.b.create_block();
        self.blocks(id, ways);
        for (block, ending) in [(ways.back, code::RETURN), (ways.exit, code::EXIT), (ways.reject, code::REJECT)] {
            self.b.switch_to_block(block);
            let ending = self.number(ending);
            self.b.def_var(self.ending, ending);
            self.b.ins().jump(on, &[]);
        }
        self.b.switch_to_block(on);
        self.end_emitting();
        self.fuel = None;
    }

    /// The blocks of a body; the current block jumps to the first.
    pub(super) fn blocks(&mut self, id: BodyId, ways: Ways) {
        let body = &self.program.bodies[id];
        let blocks: Vec<Block> = body.blocks.values().map(|_| self.b.create_block()).collect();
        self.b.ins().jump(blocks[0], &[]);
        for (block_id, block) in &body.blocks {
            self.b.switch_to_block(blocks[block_id.as_u32() as usize]);
            self.spend(1, block.loc);
            for instr in &block.instrs {
                if self.scouting.is_none() {
                    if self.holds_back(&instr.op) {
                        continue;
                    }
                    self.write_held();
                }
                self.instr(&instr.op, instr.loc, ways);
            }
            self.write_held();
            self.terminator(&block.terminator, &blocks, ways);
        }
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
        self.b.set_cold_block(out);
        self.b.switch_to_block(out);
        self.end_unit(code::OUT_OF_FUEL, loc.as_u32());
        self.b.switch_to_block(on);
        let left = self.w_sub(left, blocks);
        let left = self.value(left);
        self.b.def_var(fuel, left);
    }

    fn terminator(&mut self, terminator: &Terminator, blocks: &[Block], ways: Ways) {
        let to = |block: ir::BlockId| blocks[block.as_u32() as usize];
        match terminator {
            Terminator::Goto(block) => _ = self.b.ins().jump(to(*block), &[]),
            Terminator::Branch { condition, then, otherwise } => {
                self.branch_on(condition, to(*then), to(*otherwise), MAX_PARTS);
            }
            Terminator::Switch { subject, cases, default } => {
                let subject = self.expr(subject);
                if subject.width <= 64 && subject.width > 0 {
                    let mut switch = Switch::new();
                    for (value, block) in cases {
                        switch.set_entry(u128::from(value.low_u64()), to(*block));
                    }
                    let value = self.value(subject.low());
                    return switch.emit(&mut self.b, value, to(*default));
                }
                for (value, block) in cases {
                    let equal = self.equal(&subject, &super::value::Num::known(value));
                    let next = self.b.create_block();
                    self.branch(equal, to(*block), next);
                    self.b.switch_to_block(next);
                }
                self.b.ins().jump(to(*default), &[]);
            }
            Terminator::Select { keys, cases } => self.select(keys, cases, blocks, ways),
            Terminator::Return => _ = self.b.ins().jump(ways.back, &[]),
            Terminator::Exit => _ = self.b.ins().jump(ways.exit, &[]),
            Terminator::Reject => _ = self.b.ins().jump(ways.reject, &[]),
        }
    }

    pub(super) fn branch(&mut self, condition: Word, then: Block, otherwise: Block) {
        match condition {
            Word::Known(0) => _ = self.b.ins().jump(otherwise, &[]),
            Word::Known(_) => _ = self.b.ins().jump(then, &[]),
            Word::Value(condition) => _ = self.b.ins().brif(condition, then, &[], otherwise, &[]),
        }
    }

    /// Goes one way or the other by an expression of one bit, part after part as far as it has parts: expressions have no
    /// effects, so what is not needed need not be computed.
    pub(super) fn branch_on(&mut self, condition: &Expr, then: Block, otherwise: Block, parts: u32) {
        let width = |value: &Expr| self.program.width(value).unwrap_or(0);
        match condition {
            Expr::Unary(UnaryOp::Not, a) if width(a) == 1 => self.branch_on(a, otherwise, then, parts),
            Expr::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) if width(a) == 1 && parts > 0 => {
                let next = self.b.create_block();
                match op {
                    BinaryOp::And => self.branch_on(a, next, otherwise, parts - 1),
                    _ => self.branch_on(a, then, next, parts - 1),
                }
                self.b.switch_to_block(next);
                self.branch_on(b, then, otherwise, parts - 1);
            }
            Expr::Valid(header) => {
                let which = self.which(header);
                let valid = self.is_valid(which);
                self.branch(valid, then, otherwise);
            }
            condition => {
                let condition = self.condition(condition);
                self.branch(condition, then, otherwise);
            }
        }
    }

    fn instr(&mut self, op: &Op, loc: LocId, ways: Ways) {
        if self.scouting.is_some() {
            return self.scout_instr(op, ways);
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
            Op::Extract(header, width) => self.extract(header, width.as_ref(), ways),
            Op::Lookahead { dst, skip } => self.lookahead(dst, *skip, ways),
            Op::Advance(width) => self.advance(width, ways),
            Op::Verify(condition, error) => self.verify(condition, error, ways),
            Op::Emit(header) => self.emit(header, loc),
            Op::Apply { table, hit, action } => self.apply(*table, *hit, *action, ways),
            Op::RegisterRead(place, register, index) => self.register_read(place, *register, index),
            Op::RegisterWrite(register, index, value) => self.register_write(*register, index, value),
            Op::Count(counter, index) => self.count(*counter, index),
            Op::MeterExecute(meter, index, place) => self.meter_execute(*meter, index, place),
            Op::DirectMeterRead(meter, place) => self.direct_colour(*meter, place),
            Op::Compute(place, algorithm, data) => self.compute(place, *algorithm, data),
            Op::Random(place, low, high) => self.random(place, low, high),
            Op::Request(request) => self.request(request, loc),
            // Only someone who watches reads it, and then the interpreter runs.
            Op::Log(..) => {}
            Op::Assert(condition) => {
                let condition = self.condition(condition);
                let (on, failed) = (self.b.create_block(), self.b.create_block());
                self.branch(condition, on, failed);
                self.b.set_cold_block(failed);
                self.b.switch_to_block(failed);
                self.end_unit(code::ASSERT_FAILED, loc.as_u32());
                self.b.switch_to_block(on);
            }
        }
    }
}
