//! Incremental checksums. A program that verifies a checksum and later updates it computes the sum over the same header
//! fields twice. The first sum is tracked through writes to the fields (RFC 1624), so that the second computation need
//! not read all of them.
//!
//! A ones' complement sum of 16-bit words is 0 only if all words are, and an incrementally updated sum cannot
//! distinguish this from 0xffff. So a result of 0xffff is recomputed.

use std::collections::HashMap;

use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_frontend::Variable;
use ir::{Algorithm, Expr, HashInput, HeaderId, HeaderRef, Op, Program};

use super::Emit;
use super::header::ResolvedHeader;
use super::value::Num;
use super::words::Word;
use crate::walk;

/// Maximum width in bits of a field that is tracked.
const MAX_WIDTH: u32 = 48;

/// A tracked sum.
#[derive(Clone)]
pub(super) struct TrackedSum {
    header: HeaderId,
    /// Distance in bits of each covered field from the low end of its 16-bit word.
    shifts: HashMap<u32, u32>,
    /// Covered fields in order.
    fields: Vec<u32>,
    /// The sum, and whether it is valid, 0 or 1.
    sum: Variable,
    holds: Variable,
}

/// Returns the header and its fields, if a checksum covers exactly fields of one header.
fn covers(program: &Program, data: &[HashInput]) -> Option<(HeaderId, Vec<u32>)> {
    let each = |piece: &HashInput| match piece {
        HashInput::Value(Expr::Field(HeaderRef::Header(header), field)) => Some((*header, *field)),
        _ => None,
    };
    let all: Vec<(HeaderId, u32)> = data.iter().map(each).collect::<Option<_>>()?;
    let (header, _) = *all.first()?;
    let fields: Vec<u32> = all.iter().map(|(_, field)| *field).collect();
    let widths = |field: &u32| program.layout(header).fields[*field as usize].width <= MAX_WIDTH;
    let once = fields.iter().enumerate().all(|(at, field)| !fields[..at].contains(field));
    let in_stack = program
        .stacks
        .values()
        .any(|stack| (stack.first.as_u32()..stack.first.as_u32() + stack.size).contains(&header.as_u32()));
    (all.iter().all(|(other, _)| *other == header) && fields.iter().all(widths) && once && !in_stack)
        .then_some((header, fields))
}

impl Emit<'_, '_> {
    /// Finds the sums of a unit that are worth tracking.
    pub(super) fn enter_sums(&mut self) {
        let (program, steps) = (self.program, self.steps);
        let mut found: Vec<(HeaderId, Vec<u32>, usize)> = Vec::new();
        let blocks = walk::bodies_of_steps(program, steps).flat_map(|body| program.bodies[body].blocks.values());
        for instr in blocks.flat_map(|block| &block.instrs) {
            let Op::Compute(_, Algorithm::Csum16, data) = &instr.op else { continue };
            let Some((header, fields)) = covers(program, data) else { continue };
            match found.iter_mut().find(|(other, others, _)| *other == header && *others == fields) {
                Some((_, _, times)) => *times += 1,
                None => found.push((header, fields, 1)),
            }
        }
        let zero = self.number(0);
        for (header, fields, _) in found.into_iter().filter(|(_, _, times)| *times > 1) {
            let mut end = 0;
            let mut shifts = HashMap::new();
            for field in &fields {
                end += program.layout(header).fields[*field as usize].width;
                shifts.insert(*field, (16 - end % 16) % 16);
            }
            let word = cranelift_codegen::ir::types::I64;
            let (sum, holds) = (self.b.declare_var(word), self.b.declare_var(word));
            self.b.def_var(sum, zero);
            self.b.def_var(holds, zero);
            self.facts.holds.insert(self.sums.len(), false);
            self.sums.push(TrackedSum { header, shifts, fields, sum, holds });
        }
    }

    /// Returns the checksum of fields whose sum is tracked; `None` if it is not.
    pub(super) fn tracked_sum(&mut self, data: &[HashInput], whole: impl FnOnce(&mut Self) -> Word) -> Option<Word> {
        let (header, fields) = covers(self.program, data)?;
        let at = self.sums.iter().position(|sum| sum.header == header && sum.fields == fields)?;
        let TrackedSum { sum, holds, .. } = self.sums[at].clone();
        let result = self.b.declare_var(cranelift_codegen::ir::types::I64);
        let (known, anew, on) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let held = match self.facts.holds.get(&at) {
            Some(holds) => Word::Const(u64::from(*holds)),
            None => Word::Value(self.b.use_var(holds)),
        };
        self.branch(held, known, anew);
        if !matches!(held, Word::Const(0)) {
            self.b.switch_to_block(known);
            let kept = Word::Value(self.b.use_var(sum));
            let folded = self.fold(kept);
            let doubtful = self.w_cmp(IntCC::Equal, folded, Word::Const(0xffff));
            let value = self.w_xor(folded, Word::Const(0xffff));
            let value = self.value(value);
            self.b.def_var(result, value);
            self.branch(doubtful, anew, on);
        }
        if let Word::Const(1) = held {
            self.b.set_cold_block(anew);
        }
        self.facts.holds.insert(at, true);
        self.b.switch_to_block(anew);
        let value = whole(self);
        let new_sum = self.w_xor(value, Word::Const(0xffff));
        let (value, new_sum, one) = (self.value(value), self.value(new_sum), self.number(1));
        self.b.def_var(result, value);
        self.b.def_var(sum, new_sum);
        self.b.def_var(holds, one);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
        Some(Word::Value(self.b.use_var(result)))
    }

    /// Updates the sums that cover a field before it is written.
    pub(super) fn update_sums(&mut self, header: HeaderId, field: u32, new: &Num) {
        for at in 0..self.sums.len() {
            if self.sums[at].header != header {
                continue;
            }
            let Some(shift) = self.sums[at].shifts.get(&field).copied() else { continue };
            if self.facts.holds.get(&at) == Some(&false) {
                continue;
            }
            let variable = self.sums[at].sum;
            let old = self.read_field(&HeaderRef::Header(header), field);
            let old = self.in_place(&old, shift);
            let new = self.in_place(new, shift);
            let sum = Word::Value(self.b.use_var(variable));
            // Both have at most 17 bits, so that a very large number of changes fits.
            let sum = self.w_add(sum, new);
            let sum = self.w_add(sum, Word::Const(0x1_fffe));
            let sum = self.w_sub(sum, old);
            let sum = self.value(sum);
            self.b.def_var(variable, sum);
        }
    }

    /// Returns a value of up to 48 bits at its position in its word, folded to 17 bits.
    fn in_place(&mut self, num: &Num, shift: u32) -> Word {
        let placed = self.w_shl(num.low(), shift);
        // From 64 bits to 33, to 18, to 17.
        let folds: &[u32] = match num.width + shift {
            33.. => &[32, 16, 16],
            17.. => &[16],
            _ => &[],
        };
        folds.iter().fold(placed, |sum, bits| {
            let (low, high) = (self.w_and(sum, Word::Const((1 << bits) - 1)), self.w_shr(sum, *bits));
            self.w_add(low, high)
        })
    }

    /// Invalidates the sums of a header before it is replaced.
    pub(super) fn invalidate_sums(&mut self, resolved: ResolvedHeader) {
        let ResolvedHeader::One(header) = resolved else { return };
        for at in 0..self.sums.len() {
            if self.sums[at].header == header {
                let (variable, zero) = (self.sums[at].holds, self.number(0));
                self.b.def_var(variable, zero);
                self.facts.holds.insert(at, false);
            }
        }
    }
}
