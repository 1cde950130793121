//! Unrolls parsers, so that each place knows which element of a header stack it extracts.
//!
//! A block of a parser becomes one for each index that its stacks can have there. The verifications that the stacks are
//! not full bound them. Then `hdr.vlan.next` is `hdr.vlan[1]` in the second round of a loop, an ordinary header.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use bits::Bits;
use ir::visit::{Operand, op_operands, sub_exprs, targets, terminator_operands};
use ir::{Block, BlockId, Body, BodyKind, Expr, HeaderRef, LValue, LocId, Op, Program, SlotId, Terminator, fold};

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
    numbers: HashMap<(BlockId, Indices), BlockId>,
    /// Blocks without content so far: the original, the indices at its start, and the number.
    open: Vec<(BlockId, Indices, BlockId)>,
}

impl<'p> Unroller<'p> {
    fn new(program: &'p Program, from: &'p Body) -> Unroller<'p> {
        let mut unrolled = from.clone();
        unrolled.blocks.clear();
        Unroller { program, from, unrolled, numbers: HashMap::new(), open: Vec::new() }
    }

    /// Returns the unrolled body; `None` if it is too large, or an index is not known.
    fn run(mut self) -> Option<Body> {
        let zero = |slot: SlotId| (slot, Bits::zero(self.program.slots[slot].width));
        let first = self.program.stacks.values().map(|stack| zero(stack.next)).collect();
        self.number(BlockId::from_u32(0), &first);
        let mut instr_count = 0;
        while let Some((from, indices, to)) = self.open.pop() {
            let block = self.block(&self.from.blocks[from], indices)?;
            instr_count += block.instrs.len();
            self.unrolled.blocks[to] = block;
            if self.unrolled.blocks.len() > MAX_BLOCKS || instr_count > MAX_INSTRS {
                return None;
            }
        }
        Some(self.unrolled)
    }

    /// Returns the number of a block at these indices.
    fn number(&mut self, from: BlockId, indices: &Indices) -> BlockId {
        *self.numbers.entry((from, indices.clone())).or_insert_with(|| {
            // The content follows.
            let to = self.unrolled.blocks.push(Block {
                name: String::new(),
                is_state: false,
                instrs: Vec::new(),
                terminator: Terminator::Return,
                loc: LocId::from_u32(0),
            });
            self.open.push((from, indices.clone(), to));
            to
        })
    }

    /// Returns a block at these indices; `None` if one of them becomes unknown.
    fn block(&mut self, from: &Block, mut indices: Indices) -> Option<Block> {
        let mut block = Block { instrs: Vec::new(), ..from.clone() };
        for instr in &from.instrs {
            let mut instr = instr.clone();
            let mut writes_index = false;
            op_operands(&mut instr.op, &mut |operand| {
                writes_index |= self.resolve(&indices, operand);
            });
            match &instr.op {
                Op::Assign(LValue::Slot(slot), Expr::Const(index)) if writes_index => {
                    indices.insert(*slot, index.clone());
                }
                _ if writes_index => return None,
                Op::Verify(Expr::Const(holds), _) if holds.is_true() => continue,
                Op::Verify(Expr::Const(_), _) => {
                    // It raises its error, so nothing comes after it.
                    block.instrs.push(instr);
                    block.terminator = Terminator::Return;
                    return Some(block);
                }
                _ => {}
            }
            block.instrs.push(instr);
        }
        terminator_operands(&mut block.terminator, &mut |operand| _ = self.resolve(&indices, operand));
        targets(&mut block.terminator, &mut |to| *to = self.number(*to, &indices));
        Some(block)
    }

    /// Replaces the slots of indices by their values, and elements at known indices by their headers. Returns whether
    /// the operand is the slot of an index that is written.
    fn resolve(&self, indices: &Indices, operand: Operand<'_>) -> bool {
        match operand {
            Operand::LValue(LValue::Slot(slot)) => return indices.contains_key(slot),
            Operand::Result(slot) => return indices.contains_key(slot),
            Operand::Expr(expr) => self.resolve_expr(indices, expr),
            Operand::Header(header) | Operand::LValue(LValue::Field(header, _)) => {
                if let HeaderRef::Element(_, index) = header {
                    self.resolve_expr(indices, index);
                }
                self.resolve_header(header);
            }
        }
        false
    }

    fn resolve_expr(&self, indices: &Indices, expr: &mut Expr) {
        sub_exprs(expr, &mut |part| self.resolve_expr(indices, part));
        match expr {
            Expr::Slot(slot) => {
                if let Some(index) = indices.get(slot) {
                    *expr = Expr::Const(index.clone());
                }
            }
            Expr::Field(header, _) | Expr::Valid(header) | Expr::VarbitWidth(header, _) => self.resolve_header(header),
            Expr::VarbitEq(both) => {
                self.resolve_header(&mut both.0);
                self.resolve_header(&mut both.2);
            }
            Expr::Binary(op, a, b) => {
                if let (Expr::Const(a), Expr::Const(b)) = (&**a, &**b) {
                    *expr = Expr::Const(fold::compute(*op, a, b));
                }
            }
            _ => {}
        }
    }

    /// Replaces an element by its header if its index is a constant.
    fn resolve_header(&self, header: &mut HeaderRef) {
        if let HeaderRef::Element(stack, index) = header
            && let Expr::Const(index) = &**index
            && let Some(index) = index.to_u64()
            && let Some(element) = self.program.stacks[*stack].elements().nth(index as usize)
        {
            *header = HeaderRef::Header(element);
        }
    }
}
