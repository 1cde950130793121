//! Emits bodies: blocks, instructions and terminators.
//!
//! A node is a block and, in a parser, the number of bytes that were consumed before it. So the place of every header
//! is a constant. A loop of a parser becomes as many nodes as it can consume headers; an edge that leads back to a node
//! on its own way hands over.

use std::collections::BTreeSet;

use ir::{BinaryOp, BlockId, BodyId, Expr, Instr, LValue, Match, Op, SelectCase, Terminator, UnaryOp};

use super::packet::MAX_PARSED_BYTES;
use super::{Emitter, HandOverReason, Labels, R0, R1, R2};
use crate::asm::{Cond, Label};
use crate::emit::scratch::ScratchWord;

/// Maximum number of nodes of a body.
const MAX_NODES: usize = 20_000;

type Node = (BlockId, u32);
type BackEdges = BTreeSet<(Node, Node)>;

/// The labels at which the ends of a body continue.
#[derive(Clone, Copy)]
struct Ends {
    ret: Label,
    exit: Label,
}

/// The blocks of a body that are being emitted.
struct Flow {
    body: BodyId,
    labels: Labels<Node>,
    /// Edges that lead back.
    back: BackEdges,
    ends: Ends,
    at: Node,
}

impl<'p> Emitter<'p> {
    /// Emits a parser, which ends at `end`.
    pub(super) fn parser(&mut self, body: BodyId, end: Label) {
        self.parser_end = Some(end);
        self.flow(body, 0, Ends { ret: end, exit: end });
        self.parser_end = None;
    }

    /// Emits a control or an action.
    pub(super) fn control(&mut self, body: BodyId, ret: Label, exit: Label) {
        self.flow(body, 0, Ends { ret, exit });
    }

    fn flow(&mut self, body: BodyId, cursor: u32, ends: Ends) {
        // The caller gives up then.
        if self.is_full() {
            return;
        }
        let first = (BlockId::from_u32(0), cursor);
        let (order, back) = self.nodes(body, first);
        self.is_too_large |= order.len() >= MAX_NODES;
        let labels = order.iter().map(|node| (*node, self.code.label())).collect();
        let mut flow = Flow { body, labels, back, ends, at: first };
        for node in order {
            if self.is_full() {
                return;
            }
            flow.at = node;
            self.block(&mut flow);
        }
    }

    /// Returns the nodes of a body in an order in which every node comes after those that lead to it, and the edges
    /// for which that is impossible.
    fn nodes(&self, body: BodyId, first: Node) -> (Vec<Node>, BackEdges) {
        let (mut order, mut back) = (Vec::new(), BTreeSet::new());
        let (mut seen, mut open) = (BTreeSet::from([first]), BTreeSet::from([first]));
        let mut way = vec![(first, self.next_nodes(body, first))];
        while let Some((node, next)) = way.last_mut() {
            match next.pop() {
                Some(to) if open.contains(&to) => _ = back.insert((*node, to)),
                Some(to) if seen.len() < MAX_NODES && seen.insert(to) => {
                    open.insert(to);
                    way.push((to, self.next_nodes(body, to)));
                }
                Some(_) => {}
                None => {
                    open.remove(node);
                    order.push(*node);
                    way.pop();
                }
            }
        }
        order.reverse();
        (order, back)
    }

    fn next_nodes(&self, body: BodyId, (block, cursor): Node) -> Vec<Node> {
        let block = &self.program.bodies[body].blocks[block];
        let Some(cursor) = self.cursor_after(&block.instrs, cursor) else { return Vec::new() };
        let targets: Vec<BlockId> = match &block.terminator {
            Terminator::Goto(to) => vec![*to],
            Terminator::Branch { then, otherwise, .. } => vec![*otherwise, *then],
            Terminator::Switch { cases, default, .. } => {
                cases.iter().map(|(_, to)| *to).chain([*default]).rev().collect()
            }
            Terminator::Select { cases, .. } => cases.iter().rev().map(|case| case.target).collect(),
            Terminator::Return | Terminator::Reject | Terminator::Exit => Vec::new(),
        };
        let mut seen = BTreeSet::new();
        targets.into_iter().filter(|to| seen.insert(*to)).map(|to| (to, cursor)).collect()
    }

    /// Returns the number of bytes consumed after instructions; `None` if they hand over.
    fn cursor_after(&self, instrs: &[Instr], cursor: u32) -> Option<u32> {
        instrs.iter().try_fold(cursor, |cursor, instr| {
            if self.problem(&instr.op).is_some() {
                return None;
            }
            let next = cursor + self.consumed(&instr.op);
            (next <= MAX_PARSED_BYTES).then_some(next)
        })
    }

    fn block(&mut self, flow: &mut Flow) {
        let block = &self.program.bodies[flow.body].blocks[flow.at.0];
        self.bind(flow.labels[&flow.at]);
        self.cursor = flow.at.1;
        for instr in &block.instrs {
            if self.is_full() {
                return;
            }
            self.loc = instr.loc;
            if let Some(reason) = self.problem(&instr.op) {
                return self.hand_over(reason);
            }
            if self.cursor + self.consumed(&instr.op) > MAX_PARSED_BYTES {
                return self.hand_over(HandOverReason::DeepParse);
            }
            self.instr(&instr.op, flow.ends);
        }
        self.loc = block.loc;
        self.terminator(&block.terminator, flow);
    }

    /// Returns the label of a successor, or [`HandOverReason::Loop`] for an edge that leads back.
    fn edge(&mut self, flow: &Flow, to: BlockId) -> Result<Label, HandOverReason> {
        let node = (to, self.cursor);
        if flow.back.contains(&(flow.at, node)) { Err(HandOverReason::Loop) } else { Ok(flow.labels[&node]) }
    }

    fn goto(&mut self, flow: &Flow, to: BlockId) {
        match self.edge(flow, to) {
            Ok(label) => self.jump(label),
            Err(reason) => self.hand_over(reason),
        }
    }

    fn terminator(&mut self, terminator: &Terminator, flow: &Flow) {
        match terminator {
            Terminator::Goto(to) => self.goto(flow, *to),
            Terminator::Branch { condition, then, otherwise } => {
                if let Some(reason) = self.expr_problem(condition) {
                    return self.hand_over(reason);
                }
                let (is_true, is_false) = (self.code.label(), self.code.label());
                self.branch(condition, is_true, is_false);
                self.bind(is_true);
                self.goto(flow, *then);
                self.bind(is_false);
                self.goto(flow, *otherwise);
            }
            Terminator::Switch { subject, cases, default } => {
                if let Some(reason) = self.expr_problem(subject) {
                    return self.hand_over(reason);
                }
                self.eval(subject, 0);
                for (value, to) in cases {
                    let others = self.code.label();
                    self.jump_unless_number(Cond::Eq, R1, value.low_u64(), others);
                    self.goto(flow, *to);
                    self.bind(others);
                }
                self.goto(flow, *default);
            }
            Terminator::Select { keys, cases } => self.select(keys, cases, flow),
            Terminator::Return => self.end(flow.ends.ret),
            Terminator::Reject => self.end(flow.ends.ret),
            Terminator::Exit => self.end(flow.ends.exit),
        }
    }

    /// Ends a body. At the end of a parser, the number of consumed bytes becomes known.
    fn end(&mut self, at: Label) {
        if self.parser_end == Some(at) {
            self.store_imm(ScratchWord::CURSOR, self.cursor as i32 + 1);
        }
        self.jump(at);
    }

    /// Ends the parser with an error.
    pub(super) fn raise(&mut self, error: &str) {
        self.store_imm(ScratchWord::ERROR, self.error_named(error) as i32);
        self.end_of_parser();
    }

    fn end_of_parser(&mut self) {
        if let Some(end) = self.parser_end {
            self.end(end);
        }
    }

    fn select(&mut self, keys: &[Expr], cases: &[SelectCase], flow: &Flow) {
        if let Some(reason) = keys.iter().find_map(|key| self.expr_problem(key)) {
            return self.hand_over(reason);
        }
        let words = self.spill_all(keys.iter());
        let widths: Vec<u32> = keys.iter().map(|key| self.width(key)).collect();
        let mut is_total = false;
        for case in cases {
            let others = self.code.label();
            match self.case_problem(&case.matches) {
                Some(reason) => {
                    // Whether the case matches is not known, nor whether later ones are asked.
                    self.hand_over(reason);
                    is_total = true;
                    break;
                }
                None => {
                    is_total = self.case(&case.matches, &words, &widths, others);
                    self.goto(flow, case.target);
                    self.bind(others);
                    if is_total {
                        break;
                    }
                }
            }
        }
        if !is_total {
            self.raise("NoMatch");
        }
        self.give_back(keys.len() as u32);
    }

    fn case_problem(&self, matches: &[Match]) -> Option<HandOverReason> {
        matches.iter().find_map(|one| match one {
            Match::Any => None,
            Match::ValueSet(set) if self.layout.value_sets.contains_key(set) => None,
            Match::ValueSet(_) => Some(HandOverReason::ValueSet),
            Match::Value(value) => self.expr_problem(value),
            Match::Mask(a, b) | Match::Range(a, b) | Match::RangeSigned(a, b) => {
                self.expr_problem(a).or_else(|| self.expr_problem(b))
            }
        })
    }

    /// Emits the comparisons of a case, which jump to `others` if it does not match. Returns whether it always matches.
    fn case(&mut self, matches: &[Match], words: &[ScratchWord], widths: &[u32], others: Label) -> bool {
        let mut keys = words.iter().zip(widths);
        for one in matches {
            if let Match::ValueSet(set) = one {
                self.search_value_set(*set, &mut keys.by_ref().map(|(word, _)| *word), others);
                continue;
            }
            let Some((word, width)) = keys.next() else { continue };
            match one {
                Match::Any | Match::ValueSet(_) => {}
                Match::Value(Expr::Const(value)) => {
                    self.load_word(R1, *word);
                    self.jump_unless_number(Cond::Eq, R1, value.low_u64(), others);
                }
                Match::Value(value) => {
                    self.eval(value, 0);
                    self.load_word(R2, *word);
                    self.jump_if(Cond::Ne, R1, R2, others);
                }
                Match::Mask(value, mask) => {
                    let both =
                        |value: &Expr| Expr::Binary(BinaryOp::And, Box::new(value.clone()), Box::new(mask.clone()));
                    self.eval(&both(value), 0);
                    let masked = self.spill();
                    self.store_word(masked, R1);
                    self.eval(mask, 0);
                    self.load_word(R2, *word);
                    self.alu(crate::asm::Alu::And, R1, R2);
                    self.load_word(R2, masked);
                    self.give_back(1);
                    self.jump_if(Cond::Ne, R1, R2, others);
                }
                Match::Range(low, high) | Match::RangeSigned(low, high) => {
                    let is_signed = matches!(one, Match::RangeSigned(..));
                    for (bound, signed, unsigned) in [(low, Cond::SLt, Cond::Lt), (high, Cond::SGt, Cond::Gt)] {
                        self.eval(bound, 0);
                        self.load_word(R0, *word);
                        if is_signed {
                            self.sign_extend(R1, *width);
                            self.sign_extend(R0, *width);
                        }
                        self.jump_if(if is_signed { signed } else { unsigned }, R0, R1, others);
                    }
                }
            }
        }
        matches.iter().all(|one| *one == Match::Any)
    }

    /// Emits an instruction that has no problem.
    fn instr(&mut self, op: &Op, ends: Ends) {
        match op {
            Op::Assign(place, value) => {
                if self.is_needed(place) {
                    self.eval(value, 0);
                    self.write(place);
                }
            }
            Op::CopyHeader(to, from) => self.copy_header(to, from),
            Op::SetValid(header) => self.set_valid(header, 1),
            Op::SetInvalid(header) => self.set_valid(header, 0),
            Op::Extract(header, _) => self.extract(header),
            Op::Lookahead { dst, skip } => self.lookahead(dst, *skip),
            Op::Advance(bits) => self.advance(bits),
            Op::Verify(condition, error) => {
                let (holds, fails) = (self.code.label(), self.code.label());
                self.branch(condition, holds, fails);
                self.bind(fails);
                self.eval(error, 0);
                self.store_word(ScratchWord::ERROR, R1);
                self.end_of_parser();
                self.bind(holds);
            }
            Op::Emit(header) => self.emit_header(header),
            Op::Apply { table, hit, action } => self.apply(*table, *hit, *action, ends.exit),
            Op::Count(counter, index) => self.count(*counter, index),
            Op::Compute(place, algorithm, data) => {
                if self.is_needed(place) {
                    self.hash(*algorithm, data, self.place_width(place));
                    self.write(place);
                }
            }
            Op::RegisterRead(place, register, index) => {
                if self.is_needed(place) {
                    self.register_read(*register, index);
                    self.write(place);
                }
            }
            Op::RegisterWrite(register, index, value) => self.register_write(*register, index, value),
            Op::MeterExecute(meter, index, place) => self.meter_execute(*meter, index, place),
            Op::DirectMeterRead(meter, place) => self.direct_meter_read(*meter, place),
            Op::BeginAtomic => self.take_lock(),
            Op::Assert(condition) => {
                let (holds, fails) = (self.code.label(), self.code.label());
                self.branch(condition, holds, fails);
                self.bind(fails);
                self.hand_over(HandOverReason::Assertion);
                self.bind(holds);
            }
            // The section lasts until the commit. Messages are formatted only for an observer, and then packets do not
            // come here.
            Op::EndAtomic | Op::Log(..) => {}
            _ => unreachable!("all others have a problem"),
        }
    }

    /// Returns the reason why an instruction hands over; `None` if it can be emitted.
    fn problem(&self, op: &Op) -> Option<HandOverReason> {
        match op {
            Op::Assign(place, value) if self.is_needed(place) => {
                self.place_problem(place).or_else(|| self.expr_problem(value))
            }
            Op::Assign(..) | Op::Log(..) => None,
            Op::CopyHeader(to, from) => self.copy_problem(to, from),
            Op::SetValid(header) | Op::SetInvalid(header) => self.header_problem(header),
            Op::Extract(_, Some(_)) | Op::CopyVarbit(..) => Some(HandOverReason::Varbit),
            Op::Extract(header, None) => self.extract_problem(header),
            Op::Lookahead { dst, skip } => self.lookahead_problem(dst, *skip),
            Op::Advance(Expr::Const(bits)) if bits.low_u64().is_multiple_of(8) => None,
            Op::Advance(_) => Some(HandOverReason::Advance),
            Op::Verify(a, b) => self.expr_problem(a).or_else(|| self.expr_problem(b)),
            Op::Emit(header) => self.emit_problem(header),
            Op::Apply { table, .. } => self.table_problem(*table),
            Op::Count(counter, index) if self.layout.counters.contains_key(counter) => self.expr_problem(index),
            Op::Count(..) => Some(HandOverReason::LargeCounter),
            Op::Compute(place, algorithm, data) if self.is_needed(place) => {
                self.place_problem(place).or_else(|| self.hash_problem(*algorithm, data))
            }
            Op::Compute(..) => None,
            Op::Assert(condition) => self.expr_problem(condition),
            Op::RegisterRead(place, register, index) if self.is_needed(place) => {
                self.register_read_problem(place, *register, index)
            }
            Op::RegisterRead(..) => None,
            Op::RegisterWrite(register, index, value) => self.register_write_problem(*register, index, value),
            Op::MeterExecute(meter, index, place) => self.meter_problem(*meter, index, place),
            Op::DirectMeterRead(_, place) if self.is_needed(place) => self.place_problem(place),
            Op::DirectMeterRead(..) => None,
            // The lock is held until the commit, which makes the section's writes.
            Op::BeginAtomic | Op::EndAtomic => None,
            Op::Random(..) => Some(HandOverReason::Random),
            Op::Request(_) => Some(HandOverReason::Request),
        }
    }

    /// Whether anything reads what is written to a place. Fields are also read by the deparser.
    pub(super) fn is_needed(&self, place: &LValue) -> bool {
        match place {
            LValue::Slot(slot) => self.usage.slots_read.contains(slot),
            LValue::Field(..) => true,
        }
    }

    /// Emits jumps to one of two labels, depending on a condition.
    pub(super) fn branch(&mut self, condition: &Expr, then: Label, otherwise: Label) {
        match condition {
            Expr::Binary(BinaryOp::And, a, b) => {
                let next = self.code.label();
                self.branch(a, next, otherwise);
                self.bind(next);
                self.branch(b, then, otherwise);
            }
            Expr::Binary(BinaryOp::Or, a, b) => {
                let next = self.code.label();
                self.branch(a, then, next);
                self.bind(next);
                self.branch(b, then, otherwise);
            }
            Expr::Unary(UnaryOp::Not, a) => self.branch(a, otherwise, then),
            Expr::Binary(op, a, b) => {
                let Some((cond, is_signed)) = relation(*op) else {
                    self.eval(condition, 0);
                    self.jump_if(Cond::Ne, R1, 0, then);
                    return self.jump(otherwise);
                };
                match &**b {
                    Expr::Const(value) if !is_signed => {
                        self.eval(a, 0);
                        self.jump_if_number(cond, R1, value.low_u64(), then);
                    }
                    _ => {
                        self.eval_two(a, b, is_signed);
                        self.jump_if(cond, R1, R2, then);
                    }
                }
                self.jump(otherwise);
            }
            other => {
                self.eval(other, 0);
                self.jump_if(Cond::Ne, R1, 0, then);
                self.jump(otherwise);
            }
        }
    }
}

/// Returns the jump for a comparison, and whether it is signed.
pub(super) fn relation(op: BinaryOp) -> Option<(Cond, bool)> {
    Some(match op {
        BinaryOp::Eq => (Cond::Eq, false),
        BinaryOp::Ne => (Cond::Ne, false),
        BinaryOp::Lt => (Cond::Lt, false),
        BinaryOp::Le => (Cond::Le, false),
        BinaryOp::LtSigned => (Cond::SLt, true),
        BinaryOp::LeSigned => (Cond::SLe, true),
        _ => return None,
    })
}
