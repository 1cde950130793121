//! Emits the code of the parser instructions: extract, lookahead, advance, verify and select.

use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_frontend::Switch;
use ir::{Expr, HeaderRef, LValue, Match, SelectCase};

use super::Emit;
use super::body::{BranchTarget, MAX_PARTS};
use super::facts::Spot;
use super::header::ResolvedHeader;
use super::program_facts::error_number;
use super::value::Num;
use super::words::Word;
use crate::code;

impl Emit<'_, '_> {
    /// Emits code that raises a parser error, and terminates the current block.
    fn raise(&mut self, error: Word) {
        self.set_error(error);
        self.body_ends(code::REJECT);
    }

    /// Emits a check that raises a parser error if `holds` is 0.
    fn require(&mut self, holds: Word, error: &str) {
        if let Word::Const(1..) = holds {
            return;
        }
        let (continue_block, failed) = (self.b.create_block(), self.b.create_block());
        self.branch(holds, continue_block, failed);
        self.cold_block(failed, |emit| emit.raise(Word::Const(error_number(emit.program, error))));
        self.b.switch_to_block(continue_block);
    }

    /// Emits code that advances the cursor by a number of bits if the packet has that many left, else raises
    /// `PacketTooShort`. Returns the previous cursor, in the layout's unit, bytes or bits.
    fn take(&mut self, bits: Word) -> Word {
        let at = self.cursor();
        let (amount, end) = if self.layout.byte_cursor {
            (self.w_shr(bits, 3), Word::Value(self.length))
        } else {
            (bits, self.w_shl(Word::Value(self.length), 3))
        };
        let next = self.w_add(at, amount);
        let inside = self.w_cmp(IntCC::UnsignedLessThanOrEqual, next, end);
        self.require(inside, "PacketTooShort");
        self.set_cursor(next);
        at
    }

    /// Emits code that extracts a header. The checks come in the interpreter's order.
    pub(super) fn extract(&mut self, header: &HeaderRef, varbit_width: Option<&Expr>) {
        let resolved = self.resolve(header);
        match resolved {
            ResolvedHeader::OutOfBounds(_) => {
                self.raise(Word::Const(error_number(self.program, "StackOutOfBounds")));
                let dead = self.b.create_block();
                return self.b.switch_to_block(dead);
            }
            ResolvedHeader::Element { inside, .. } => self.require(Word::Value(inside), "StackOutOfBounds"),
            ResolvedHeader::One(_) => {}
        }
        let (fixed, varbit_max) = (self.ty(resolved).fixed_bits, self.ty(resolved).varbit_max);
        let varbit = match varbit_width {
            Some(width) => self.expr(width).low(),
            None => Word::Const(0),
        };
        let bits = self.w_add(Word::Const(u64::from(fixed)), varbit);
        if varbit_width.is_some() {
            let odd = self.w_and(bits, Word::Const(7));
            let whole = self.w_cmp(IntCC::Equal, odd, Word::Const(0));
            self.require(whole, "ParserInvalidArgument");
        }
        // The length check comes first; a failed check leaves the cursor unmoved.
        let before = self.cursor();
        let at = self.take(bits);
        if let (Some(max), Some(_)) = (varbit_max, varbit_width) {
            let fits = self.w_cmp(IntCC::UnsignedLessThanOrEqual, varbit, Word::Const(u64::from(max)));
            let after = self.cursor();
            self.set_cursor(before);
            self.require(fits, "HeaderTooShort");
            self.set_cursor(after);
        }
        if self.layout.byte_cursor {
            self.set_place_in_packet(resolved, at);
        } else {
            let home = self.home_to_write(resolved);
            let representative = self.number(u64::from(self.representative(resolved).as_u32()));
            let varbit = self.value(varbit);
            let at = self.value(at);
            self.call("extract", &[self.frame, representative, home, at, varbit]);
            self.set_place(resolved, home, Some(Spot::Home));
        }
        if varbit_max.is_some() {
            self.set_varbit_width(resolved, varbit);
        }
        self.set_valid(resolved, Word::Const(1));
    }

    pub(super) fn lookahead(&mut self, dst: &LValue, skip: u32) {
        let width = self.lvalue_width(dst);
        let cursor = self.cursor();
        let at = if self.layout.byte_cursor { self.w_shl(cursor, 3) } else { cursor };
        let end = self.w_add(at, Word::Const(u64::from(skip) + u64::from(width)));
        let length = self.w_shl(Word::Value(self.length), 3);
        let inside = self.w_cmp(IntCC::UnsignedLessThanOrEqual, end, length);
        self.require(inside, "PacketTooShort");
        let num = if self.layout.byte_cursor {
            let at = self.value(cursor);
            let at = self.b.ins().iadd(self.packet, at);
            // Only the examined bytes are certain to be in the packet.
            self.load_field(at, skip, width, (skip + width).div_ceil(8))
        } else {
            let out = self.scratch_words(width.div_ceil(64) as usize);
            let begin = self.w_add(at, Word::Const(u64::from(skip)));
            let begin = self.value(begin);
            let bits = self.number(u64::from(width));
            self.call("look_ahead", &[self.frame, begin, bits, out]);
            self.unspill(out, width)
        };
        self.write(dst, &num);
    }

    pub(super) fn advance(&mut self, bits: &Expr) {
        let bits = self.expr(bits).low();
        self.take(bits);
    }

    pub(super) fn verify(&mut self, condition: &Expr, error: &Expr) {
        let (continue_block, failed) = (self.b.create_block(), self.b.create_block());
        self.branch_on(condition, BranchTarget::Block(continue_block), BranchTarget::Block(failed), MAX_PARTS);
        self.cold_block(failed, |emit| {
            let error = emit.expr(error).low();
            emit.raise(error);
        });
        self.b.switch_to_block(continue_block);
    }

    pub(super) fn select(&mut self, keys: &[Expr], cases: &[SelectCase]) {
        let keys: Vec<Num> = keys.iter().map(|key| self.expr(key)).collect();
        // A single key compared with constants is compiled to a switch.
        let mut switch = Switch::new();
        let mut seen = std::collections::HashSet::new();
        let mut rest = cases;
        if let [key] = &keys[..]
            && (1..=64).contains(&key.width)
            && key.constant().is_none()
        {
            while let [SelectCase { matches, target }, others @ ..] = rest {
                let [Match::Value(Expr::Const(value))] = &matches[..] else { break };
                // The first case with a value wins.
                if seen.insert(value.low_u64()) {
                    let to = self.at(self.block_point(*target));
                    switch.set_entry(u128::from(value.low_u64()), to);
                }
                rest = others;
            }
            if !seen.is_empty() {
                let next = self.b.create_block();
                let value = self.value(key.low());
                switch.emit(&mut self.b, value, next);
                self.b.switch_to_block(next);
            }
        }
        for case in rest {
            let matches = self.case_matches(&case.matches, &keys);
            let to = self.block_point(case.target);
            match matches {
                Word::Const(0) => {}
                Word::Const(_) => return self.go_to(to),
                Word::Value(_) => {
                    let next = self.b.create_block();
                    self.branch_to(matches, BranchTarget::Point(to), BranchTarget::Block(next));
                    self.b.switch_to_block(next);
                }
            }
        }
        self.raise(Word::Const(error_number(self.program, "NoMatch")));
    }

    fn case_matches(&mut self, matches: &[Match], keys: &[Num]) -> Word {
        let mut all = Word::Const(1);
        let mut rest = keys;
        for one in matches {
            let covered = match one {
                Match::ValueSet(set) => self.program.value_sets[*set].fields.len(),
                _ => 1,
            };
            let (covered_keys, others) = rest.split_at(covered);
            rest = others;
            let holds = self.match_holds(one, covered_keys);
            all = self.w_and(all, holds);
        }
        all
    }

    fn match_holds(&mut self, one: &Match, covered_keys: &[Num]) -> Word {
        match one {
            Match::Any => Word::Const(1),
            Match::Value(value) => {
                let value = self.expr(value);
                self.equal(&covered_keys[0], &value)
            }
            Match::Mask(value, mask) => {
                let (value, mask) = (self.expr(value), self.expr(mask));
                let (left, right) = (
                    self.binary(ir::BinaryOp::And, &covered_keys[0], &mask),
                    self.binary(ir::BinaryOp::And, &value, &mask),
                );
                self.equal(&left, &right)
            }
            Match::Range(low, high) => {
                let (low, high) = (self.expr(low), self.expr(high));
                let (above, below) =
                    (self.less(&low, &covered_keys[0], true), self.less(&covered_keys[0], &high, true));
                self.w_and(above, below)
            }
            Match::RangeSigned(low, high) => {
                let (low, high) = (self.expr(low), self.expr(high));
                let above = self.less_signed(&low, &covered_keys[0], true);
                let below = self.less_signed(&covered_keys[0], &high, true);
                self.w_and(above, below)
            }
            Match::ValueSet(set) => {
                let words: usize = covered_keys.iter().map(|key| key.words.len()).sum();
                let scratch = self.scratch_words(words);
                let mut at = 0;
                for key in covered_keys {
                    self.put_words(key, scratch, at);
                    at += key.words.len();
                }
                let set = self.number(u64::from(set.as_u32()));
                Word::Value(self.call("value_set", &[self.frame, set, scratch]).expect("the function returns a word"))
            }
        }
    }
}
