//! Unrolls parsers, so that each place knows which element of a header stack it extracts.
//!
//! A block of a parser becomes one for each index that its stacks can have there. The verifications that the stacks are
//! not full bound them. Then `hdr.vlan.next` is `hdr.vlan[1]` in the second round of a loop, an ordinary header.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bits::Bits;
use ir::{
    BinaryOp, Block, BlockId, Body, BodyKind, Expr, HashInput, HeaderId, HeaderRef, Instr, LValue, Match, Op, Program,
    SelectCase, SlotId, Terminator,
};

/// Maximum numbers of blocks and instructions of an unrolled parser. A larger one is not unrolled.
const MAX_BLOCKS: usize = 4000;
const MAX_INSTRS: usize = 20_000;

/// Returns the program with unrolled parsers.
pub(crate) fn unroll(program: &Program) -> Cow<'_, Program> {
    let mut unrolled = Cow::Borrowed(program);
    if !program.stacks.is_empty() {
        for (id, body) in program.bodies.iter().filter(|(_, body)| body.kind == BodyKind::Parser) {
            if let Some(body) = Unroller::new(program, body).run() {
                unrolled.to_mut().bodies[id] = body;
            }
        }
    }
    unrolled
}

/// The indices of the next elements, by their slots.
type Indices = BTreeMap<SlotId, Bits>;

struct Unroller<'p> {
    program: &'p Program,
    from: &'p Body,
    unrolled: Body,
    numbers: BTreeMap<(BlockId, Vec<u64>), BlockId>,
    /// Blocks without content so far: the original, the indices at its start, and the number.
    open: Vec<(BlockId, Indices, BlockId)>,
}

impl<'p> Unroller<'p> {
    fn new(program: &'p Program, from: &'p Body) -> Unroller<'p> {
        let mut unrolled = from.clone();
        unrolled.blocks.clear();
        Unroller { program, from, unrolled, numbers: BTreeMap::new(), open: Vec::new() }
    }

    /// Returns the unrolled body; `None` if it has too many blocks, or an index is not known.
    fn run(mut self) -> Option<Body> {
        let zero = |slot: SlotId| (slot, Bits::zero(self.program.slots[slot].width));
        let first = self.program.stacks.values().map(|stack| zero(stack.next)).collect();
        self.block(BlockId::from_u32(0), &first);
        let mut instr_count = 0;
        while let Some((from, mut indices, to)) = self.open.pop() {
            let block = &self.from.blocks[from];
            let mut instrs = Vec::new();
            let mut has_failed = false;
            for instr in &block.instrs {
                let Some(op) = self.op(&instr.op, &mut indices)? else { continue };
                has_failed = matches!(&op, Op::Verify(Expr::Const(holds), _) if holds.is_zero());
                instrs.push(Instr { op, loc: instr.loc });
                if has_failed {
                    break;
                }
            }
            let terminator = match has_failed {
                true => Terminator::Return,
                false => self.terminator(&block.terminator, &indices),
            };
            instr_count += instrs.len();
            (self.unrolled.blocks[to].instrs, self.unrolled.blocks[to].terminator) = (instrs, terminator);
            if self.unrolled.blocks.len() > MAX_BLOCKS || instr_count > MAX_INSTRS {
                return None;
            }
        }
        Some(self.unrolled)
    }

    /// Returns the number of a block at these indices.
    fn block(&mut self, from: BlockId, indices: &Indices) -> BlockId {
        let key = (from, indices.values().map(Bits::low_u64).collect());
        *self.numbers.entry(key).or_insert_with(|| {
            let Block { name, is_state, loc, .. } = &self.from.blocks[from];
            let (instrs, terminator) = (Vec::new(), Terminator::Return);
            let to = self.unrolled.blocks.push(Block {
                name: name.clone(),
                is_state: *is_state,
                instrs,
                terminator,
                loc: *loc,
            });
            self.open.push((from, indices.clone(), to));
            to
        })
    }

    /// Returns an operation, `None` if it does nothing, or `None` in all if an index is not known.
    fn op(&self, op: &Op, indices: &mut Indices) -> Option<Option<Op>> {
        let at = Known { program: self.program, indices };
        Some(Some(match op {
            Op::Assign(LValue::Slot(slot), value) if at.indices.contains_key(slot) => {
                let Expr::Const(index) = at.expr(value) else { return None };
                indices.insert(*slot, index.clone());
                Op::Assign(LValue::Slot(*slot), Expr::Const(index))
            }
            Op::Verify(condition, error) => match at.expr(condition) {
                Expr::Const(holds) if holds.is_true() => return Some(None),
                condition => Op::Verify(condition, at.expr(error)),
            },
            Op::Assign(place, value) => Op::Assign(at.place(place), at.expr(value)),
            Op::CopyHeader(to, from) => Op::CopyHeader(at.header(to), at.header(from)),
            Op::SetValid(header) => Op::SetValid(at.header(header)),
            Op::SetInvalid(header) => Op::SetInvalid(at.header(header)),
            Op::Extract(header, bits) => Op::Extract(at.header(header), bits.as_ref().map(|bits| at.expr(bits))),
            Op::Lookahead { dst, skip } => {
                // Such a write would have to be known.
                if matches!(dst, LValue::Slot(slot) if at.indices.contains_key(slot)) {
                    return None;
                }
                Op::Lookahead { dst: at.place(dst), skip: *skip }
            }
            Op::Advance(bits) => Op::Advance(at.expr(bits)),
            Op::Assert(condition) => Op::Assert(at.expr(condition)),
            Op::Compute(place, algorithm, data) => {
                let input = |input: &HashInput| match input {
                    HashInput::Value(value) => HashInput::Value(at.expr(value)),
                    HashInput::Varbit(header, field) => HashInput::Varbit(at.header(header), *field),
                    HashInput::Payload => HashInput::Payload,
                };
                Op::Compute(at.place(place), *algorithm, data.iter().map(input).collect())
            }
            Op::RegisterRead(place, register, index) => Op::RegisterRead(at.place(place), *register, at.expr(index)),
            Op::RegisterWrite(register, index, value) => Op::RegisterWrite(*register, at.expr(index), at.expr(value)),
            Op::Count(counter, index) => Op::Count(*counter, at.expr(index)),
            // These are handed over, or have no place in a parser.
            Op::CopyVarbit(..)
            | Op::Emit(_)
            | Op::Apply { .. }
            | Op::MeterExecute(..)
            | Op::DirectMeterRead(..)
            | Op::BeginAtomic
            | Op::EndAtomic
            | Op::Random(..)
            | Op::Request(_)
            | Op::Log(..) => op.clone(),
        }))
    }

    fn terminator(&mut self, terminator: &Terminator, indices: &Indices) -> Terminator {
        let at = Known { program: self.program, indices };
        match terminator {
            Terminator::Goto(to) => Terminator::Goto(self.block(*to, indices)),
            Terminator::Branch { condition, then, otherwise } => Terminator::Branch {
                condition: at.expr(condition),
                then: self.block(*then, indices),
                otherwise: self.block(*otherwise, indices),
            },
            Terminator::Switch { subject, cases, default } => Terminator::Switch {
                subject: at.expr(subject),
                cases: cases.iter().map(|(value, to)| (value.clone(), self.block(*to, indices))).collect(),
                default: self.block(*default, indices),
            },
            Terminator::Select { keys, cases } => {
                let case = |case: &SelectCase| SelectCase {
                    matches: case.matches.iter().map(|one| at.one_match(one)).collect(),
                    target: self.block(case.target, indices),
                };
                Terminator::Select {
                    keys: keys.iter().map(|key| at.expr(key)).collect(),
                    cases: cases.iter().map(case).collect(),
                }
            }
            Terminator::Return | Terminator::Reject | Terminator::Exit => terminator.clone(),
        }
    }
}

/// A place of a parser at which the indices of stacks are known.
#[derive(Clone, Copy)]
struct Known<'a> {
    program: &'a Program,
    indices: &'a Indices,
}

impl Known<'_> {
    fn header(self, header: &HeaderRef) -> HeaderRef {
        let HeaderRef::Element(stack, index) = header else { return header.clone() };
        let index = self.expr(index);
        let layout = &self.program.stacks[*stack];
        match &index {
            Expr::Const(index) if index.to_u64().is_some_and(|index| index < layout.size.into()) => {
                HeaderRef::Header(HeaderId::from_u32(layout.first.as_u32() + index.low_u64() as u32))
            }
            _ => HeaderRef::Element(*stack, Box::new(index)),
        }
    }

    fn place(self, place: &LValue) -> LValue {
        match place {
            LValue::Slot(slot) => LValue::Slot(*slot),
            LValue::Field(header, field) => LValue::Field(self.header(header), *field),
        }
    }

    fn one_match(self, one: &Match) -> Match {
        match one {
            Match::Any | Match::ValueSet(_) => one.clone(),
            Match::Value(value) => Match::Value(self.expr(value)),
            Match::Mask(a, b) => Match::Mask(self.expr(a), self.expr(b)),
            Match::Range(a, b) => Match::Range(self.expr(a), self.expr(b)),
            Match::RangeSigned(a, b) => Match::RangeSigned(self.expr(a), self.expr(b)),
        }
    }

    fn expr(self, expr: &Expr) -> Expr {
        let same = |part: &Expr| Box::new(self.expr(part));
        match expr {
            Expr::Slot(slot) => self.indices.get(slot).map_or_else(|| expr.clone(), |index| Expr::Const(index.clone())),
            Expr::Const(_) | Expr::PacketLength => expr.clone(),
            Expr::Field(header, field) => Expr::Field(self.header(header), *field),
            Expr::Valid(header) => Expr::Valid(self.header(header)),
            Expr::VarbitWidth(header, field) => Expr::VarbitWidth(self.header(header), *field),
            Expr::VarbitEq(both) => {
                let (a, field, b, other) = &**both;
                Expr::VarbitEq(Box::new((self.header(a), *field, self.header(b), *other)))
            }
            Expr::Unary(op, a) => Expr::Unary(*op, same(a)),
            Expr::Binary(op, a, b) => folded(*op, self.expr(a), self.expr(b)),
            Expr::Slice(a, high, low) => Expr::Slice(same(a), *high, *low),
            Expr::Concat(a, b) => Expr::Concat(same(a), same(b)),
            Expr::ZeroExtend(a, width) => Expr::ZeroExtend(same(a), *width),
            Expr::SignExtend(a, width) => Expr::SignExtend(same(a), *width),
            Expr::Choose(a, b, c) => Expr::Choose(same(a), same(b), same(c)),
        }
    }
}

/// Returns a value of two operands: a constant for the operators with which indices are computed and compared.
fn folded(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    if let (Expr::Const(x), Expr::Const(y)) = (&a, &b) {
        let value = match op {
            BinaryOp::Add => Some(x.add(y)),
            BinaryOp::Sub => Some(x.sub(y)),
            BinaryOp::Eq => Some(Bits::bool(x == y)),
            BinaryOp::Ne => Some(Bits::bool(x != y)),
            BinaryOp::Lt => Some(Bits::bool(x.unsigned_cmp(y).is_lt())),
            BinaryOp::Le => Some(Bits::bool(x.unsigned_cmp(y).is_le())),
            _ => None,
        };
        if let Some(value) = value {
            return Expr::Const(value);
        }
    }
    Expr::Binary(op, Box::new(a), Box::new(b))
}
