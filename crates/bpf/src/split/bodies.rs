//! Splits the code of bodies.

use ir::{
    Block, BlockId, Expr, HashInput, Instr, LValue, LocId, Match, Op, SelectCase, Slot, SlotId, SlotKind, Terminator,
};

use super::parts::bits_of;
use super::{Splitter, WORD, WordPiece, pieces, read, too_wide};

impl Splitter<'_> {
    pub(super) fn bodies(&mut self) {
        for (id, body) in &self.program.bodies {
            let mut blocks = body.blocks.clone();
            for block in blocks.keys().collect::<Vec<BlockId>>() {
                blocks[block] = self.block(&body.blocks[block]);
            }
            self.split.bodies[id].blocks = blocks;
        }
    }

    fn block(&mut self, block: &Block) -> Block {
        let mut instrs = Vec::new();
        for instr in &block.instrs {
            self.instr(&instr.op, instr.loc, &mut instrs);
        }
        Block { instrs, terminator: self.terminator(&block.terminator), ..block.clone() }
    }

    fn instr(&mut self, op: &Op, loc: LocId, out: &mut Vec<Instr>) {
        let mut push = |op| out.push(Instr { op, loc });
        match op {
            Op::Assign(place, value) => self.assign(place, value, loc, out),
            Op::Lookahead { dst, skip } => self.lookahead(dst, *skip, loc, out),
            Op::Compute(place, algorithm, data) => {
                let data: Vec<HashInput> = data.iter().flat_map(|input| self.hash_input(input)).collect();
                self.write_whole(place, |place| Op::Compute(place, *algorithm, data.clone()), loc, out);
            }
            Op::RegisterRead(place, register, index) => {
                let index = self.narrow(index);
                self.write_whole(place, |place| Op::RegisterRead(place, *register, index.clone()), loc, out);
            }
            Op::MeterExecute(meter, index, place) => {
                let index = self.narrow(index);
                self.write_whole(place, |place| Op::MeterExecute(*meter, index.clone(), place), loc, out);
            }
            Op::DirectMeterRead(meter, place) => {
                self.write_whole(place, |place| Op::DirectMeterRead(*meter, place), loc, out);
            }
            Op::RegisterWrite(register, index, value) => {
                push(Op::RegisterWrite(*register, self.narrow(index), self.narrow(value)));
            }
            Op::Verify(condition, error) => push(Op::Verify(self.narrow(condition), self.narrow(error))),
            Op::Count(counter, index) => push(Op::Count(*counter, self.narrow(index))),
            Op::Advance(bits) => push(Op::Advance(self.narrow(bits))),
            Op::Assert(condition) => push(Op::Assert(self.narrow(condition))),
            Op::Log(text, _) => push(Op::Log(text.clone(), Vec::new())),
            // These have no values, or are handed over whatever they have.
            Op::CopyHeader(..)
            | Op::CopyVarbit(..)
            | Op::SetValid(_)
            | Op::SetInvalid(_)
            | Op::Extract(..)
            | Op::Emit(_)
            | Op::Apply { .. }
            | Op::BeginAtomic
            | Op::EndAtomic
            | Op::Random(..)
            | Op::Request(_) => push(op.clone()),
        }
    }

    /// Writes the value of an operation, which is not split, to a place. For a value of more than 64 bits, the
    /// operation has a part of the place and is handed over.
    fn write_whole(&mut self, place: &LValue, op: impl Fn(LValue) -> Op, loc: LocId, out: &mut Vec<Instr>) {
        let parts = self.place_parts(place).unwrap_or_else(|| vec![(place.clone(), WordPiece { low: 0, width: 0 })]);
        let width: u32 = parts.iter().map(|(_, piece)| piece.width).sum();
        match &parts[..] {
            [(part, _)] => out.push(Instr { op: op(part.clone()), loc }),
            _ if width > WORD => {
                for (part, _) in parts {
                    out.push(Instr { op: op(part.clone()), loc });
                    out.push(Instr { op: Op::Assign(part, too_wide()), loc });
                }
            }
            _ => {
                let whole = self.temporary(width);
                out.push(Instr { op: op(LValue::Slot(whole)), loc });
                let part = |piece: WordPiece| bits_of(Expr::Slot(whole), width, piece.low, piece.width);
                let writes = parts.into_iter().map(|(place, piece)| Op::Assign(place, part(piece)));
                out.extend(writes.map(|op| Instr { op, loc }));
            }
        }
    }

    fn assign(&mut self, place: &LValue, value: &Expr, loc: LocId, out: &mut Vec<Instr>) {
        let Some(parts) = self.place_parts(place) else {
            return out.push(Instr { op: Op::Assign(place.clone(), self.narrow(value)), loc });
        };
        let write = |(part, piece): (LValue, WordPiece)| (part, piece.width, self.piece(value, piece));
        self.begin();
        let mut writes: Vec<(LValue, u32, Expr)> = parts.into_iter().map(write).collect();
        writes.retain(|(part, _, value)| read(part.clone()) != *value);
        // A later part may read one that was written.
        let is_written = |value: &Expr, before: &[(LValue, u32, Expr)]| {
            before.iter().any(|(part, ..)| reads(value, &read(part.clone())))
        };
        if writes.iter().enumerate().any(|(number, (.., value))| is_written(value, &writes[..number])) {
            for (_, width, value) in &mut writes {
                let copy = self.temporary(*width);
                let value = std::mem::replace(value, Expr::Slot(copy));
                out.push(Instr { op: Op::Assign(LValue::Slot(copy), value), loc });
            }
        }
        out.extend(writes.into_iter().map(|(part, _, value)| Instr { op: Op::Assign(part, value), loc }));
    }

    fn temporary(&mut self, width: u32) -> SlotId {
        let name = format!("split.{}", self.split.slots.len());
        self.split.slots.push(Slot { name, width, kind: SlotKind::Metadata, signed: false })
    }

    /// The last part goes first: the packet has all bits, or not those of the last part.
    fn lookahead(&mut self, dst: &LValue, skip: u32, loc: LocId, out: &mut Vec<Instr>) {
        let Some(parts) = self.place_parts(dst) else {
            return out.push(Instr { op: Op::Lookahead { dst: dst.clone(), skip }, loc });
        };
        let width: u32 = parts.iter().map(|(_, piece)| piece.width).sum();
        for (dst, piece) in parts.into_iter().rev() {
            let skip = skip.saturating_add(width - piece.low - piece.width);
            out.push(Instr { op: Op::Lookahead { dst, skip }, loc });
        }
    }

    fn hash_input(&self, input: &HashInput) -> Vec<HashInput> {
        match input {
            HashInput::Value(value) => self.parts(value).into_iter().map(HashInput::Value).collect(),
            HashInput::Varbit(..) | HashInput::Payload => vec![input.clone()],
        }
    }

    fn terminator(&self, terminator: &Terminator) -> Terminator {
        match terminator {
            Terminator::Branch { condition, then, otherwise } => {
                Terminator::Branch { condition: self.narrow(condition), then: *then, otherwise: *otherwise }
            }
            Terminator::Switch { subject, cases, default } => {
                Terminator::Switch { subject: self.narrow(subject), cases: cases.clone(), default: *default }
            }
            Terminator::Select { keys, cases } => Terminator::Select {
                keys: keys.iter().flat_map(|key| self.parts(key)).collect(),
                cases: cases.iter().map(|case| self.case(keys, case)).collect(),
            },
            Terminator::Goto(_) | Terminator::Return | Terminator::Reject | Terminator::Exit => terminator.clone(),
        }
    }

    fn case(&self, keys: &[Expr], case: &SelectCase) -> SelectCase {
        let mut keys = keys.iter();
        let mut matches = Vec::new();
        for one in &case.matches {
            if let Match::ValueSet(set) = one {
                // It covers a key for each of its fields.
                keys.by_ref().take(self.program.value_sets[*set].fields.len()).for_each(drop);
                matches.push(one.clone());
            } else if let Some(key) = keys.next() {
                matches.extend(self.one_match(one, key));
            }
        }
        SelectCase { matches, target: case.target }
    }

    fn one_match(&self, one: &Match, key: &Expr) -> Vec<Match> {
        let width = self.width(key);
        let is_wide = width > WORD;
        match one {
            Match::Any | Match::ValueSet(_) => pieces(width).map(|_| one.clone()).collect(),
            Match::Value(value) => self.parts(value).into_iter().map(Match::Value).collect(),
            Match::Mask(value, mask) => {
                let both = self.parts(value).into_iter().zip(self.parts(mask));
                both.map(|(value, mask)| Match::Mask(value, mask)).collect()
            }
            Match::Range(..) | Match::RangeSigned(..) if is_wide => {
                pieces(width).map(|_| Match::Value(too_wide())).collect()
            }
            Match::Range(low, high) => vec![Match::Range(self.narrow(low), self.narrow(high))],
            Match::RangeSigned(low, high) => vec![Match::RangeSigned(self.narrow(low), self.narrow(high))],
        }
    }
}

/// Whether an expression reads a slot or field.
fn reads(expr: &Expr, place: &Expr) -> bool {
    expr == place
        || match expr {
            Expr::Unary(_, a) | Expr::Slice(a, ..) | Expr::ZeroExtend(a, _) | Expr::SignExtend(a, _) => reads(a, place),
            Expr::Binary(_, a, b) | Expr::Concat(a, b) => reads(a, place) || reads(b, place),
            Expr::Choose(a, b, c) => [a, b, c].into_iter().any(|part| reads(part, place)),
            _ => false,
        }
}
