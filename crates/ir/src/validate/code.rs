//! Validates bodies: permitted operations by kind, operand widths, control flow.

use std::collections::HashSet;

use cranelift_entity::EntityRef;

use super::{Checker, Location, MAX_DATA_BITS, Rule};
use crate::*;

impl<'p> Checker<'p> {
    pub(super) fn bodies(&mut self) {
        self.at = Location::Program;
        let program = self.program;
        let unique = program.bodies.values().filter(|body| body.kind != BodyKind::Action);
        self.unique(unique.map(|body| body.name.as_str()));
        for (id, body) in &program.bodies {
            self.at = Location::Object("body", &body.name);
            self.name_length(&body.name);
            self.reachable(body);
            for (block_id, block) in &body.blocks {
                self.at = Location::Terminator(body, block_id);
                self.name_length(&block.name);
                self.get(&program.locs, block.loc);
                self.require(!block.is_state || body.kind == BodyKind::Parser, Rule::BodyKinds, || {
                    "it is called a parser's state".to_owned()
                });
                for instr in &block.instrs {
                    self.at = Location::Instr(body, block_id, instr);
                    self.get(&program.locs, instr.loc);
                    self.op_kind(body.kind, &instr.op);
                    self.op(Some(id), &instr.op);
                }
                self.at = Location::Terminator(body, block_id);
                self.terminator(id, body, &block.terminator);
            }
        }
    }

    fn reachable(&mut self, body: &'p Body) {
        let mut reached = vec![false; body.blocks.len()];
        let mut waiting = vec![BlockId::new(0)];
        while let Some(block) = waiting.pop() {
            let Some(seen) = reached.get_mut(block.index()) else { continue };
            if !std::mem::replace(seen, true) {
                waiting.extend(body.blocks[block].terminator.targets());
            }
        }
        self.require(!reached.is_empty(), Rule::Reachable, || "it has no blocks".to_owned());
        if let Some(lost) = reached.iter().position(|reached| !reached) {
            let lost = self.program.display_block(body, BlockId::new(lost)).to_string();
            self.broken(Rule::Reachable, format!("block {lost} is not reachable"));
        }
    }

    fn op_kind(&mut self, kind: BodyKind, op: &Op) {
        let allowed = match op {
            Op::Extract(..) | Op::Lookahead { .. } | Op::Advance(_) | Op::Verify(..) => kind == BodyKind::Parser,
            Op::Emit(_) => kind == BodyKind::Control,
            Op::Apply { .. } if kind == BodyKind::Action => {
                self.broken(Rule::NoApplyInAction, "an action applies a table");
                true
            }
            Op::Apply { .. } => kind == BodyKind::Control,
            _ => true,
        };
        self.require(allowed, Rule::BodyKinds, || format!("not in a body of kind {kind:?}"));
    }

    fn op(&mut self, body: Option<BodyId>, op: &'p Op) {
        let program = self.program;
        match op {
            Op::Assign(dst, value) => {
                let (dst, value) = (self.lvalue(body, dst), self.expr(body, value));
                self.equal(dst, value);
            }
            Op::CopyHeader(to, from) => {
                if let (Some(to), Some(from)) = (self.header(body, to), self.header(body, from)) {
                    self.require(same_layout(program, to, from), Rule::EqualLayouts, || "layouts differ".to_owned());
                }
            }
            Op::CopyVarbit(to, to_field, from, from_field) => {
                let to = self.varbit(body, to, *to_field);
                let from = self.varbit(body, from, *from_field);
                self.require(to.is_none() || from.is_none() || to == from, Rule::EqualLayouts, || {
                    format!("up to {} bits into up to {}", from.unwrap_or(0), to.unwrap_or(0))
                });
            }
            Op::SetValid(header) | Op::SetInvalid(header) | Op::Emit(header) => {
                self.header(body, header);
            }
            Op::Extract(header, width) => self.extract(body, header, width.as_ref()),
            Op::Lookahead { dst, skip } => {
                let width = self.lvalue(body, dst).unwrap_or(0);
                let reach = u64::from(*skip) + u64::from(width);
                self.require(reach <= MAX_DATA_BITS, Rule::SizeLimit, || format!("it reaches {reach} bits"));
            }
            Op::Advance(bits) => self.expr_of(body, bits, 32, "the number of bits"),
            Op::Verify(condition, error) => {
                self.expr_of(body, condition, 1, "the condition");
                self.expr_of(body, error, 32, "the error");
                if let Expr::Const(error) = error {
                    let known = error.to_u64().is_some_and(|error| error < program.errors.len() as u64);
                    self.require(known, Rule::ErrorIndex, || format!("there is no error {error}"));
                }
            }
            Op::Apply { table, hit, action } => {
                self.get(&program.tables, *table);
                for (slot, wanted, what) in [(hit, 1, "hit"), (action, 32, "the action's number")] {
                    if let Some(slot) = slot {
                        self.expr_of(body, &Expr::Slot(*slot), wanted, what);
                    }
                }
            }
            Op::RegisterRead(dst, register, index) => {
                let width = self.get(&program.registers, *register).map(|register| register.width);
                self.expr(body, index);
                let dst = self.lvalue(body, dst);
                self.equal(dst, width);
            }
            Op::RegisterWrite(register, index, value) => {
                let width = self.get(&program.registers, *register).map(|register| register.width);
                self.expr(body, index);
                let value = self.expr(body, value);
                self.equal(width, value);
            }
            Op::Count(counter, index) => {
                let direct = self.get(&program.counters, *counter).is_some_and(|counter| counter.size.is_none());
                self.require(!direct, Rule::DirectObjects, || "a direct counter has no index".to_owned());
                self.expr(body, index);
            }
            Op::MeterExecute(meter, index, dst) => {
                let direct = self.get(&program.meters, *meter).is_some_and(|meter| meter.size.is_none());
                self.require(!direct, Rule::DirectObjects, || "a direct meter has no index".to_owned());
                self.expr(body, index);
                self.lvalue(body, dst);
            }
            Op::DirectMeterRead(meter, dst) => {
                let indexed = self.get(&program.meters, *meter).is_some_and(|meter| meter.size.is_some());
                self.require(!indexed, Rule::DirectObjects, || "a meter array is metered by index".to_owned());
                self.lvalue(body, dst);
            }
            Op::BeginAtomic | Op::EndAtomic => {}
            Op::Compute(dst, _, data) => {
                self.lvalue(body, dst);
                data.iter().for_each(|data| self.hash_input(body, data));
            }
            Op::Random(dst, low, high) => {
                let (dst, low, high) = (self.lvalue(body, dst), self.expr(body, low), self.expr(body, high));
                self.equal(dst, low);
                self.equal(dst, high);
            }
            Op::Request(request) => self.request(body, request),
            Op::Log(_, values) => {
                for value in values {
                    self.expr(body, value);
                }
            }
            Op::Assert(condition) => self.expr_of(body, condition, 1, "the condition"),
        }
    }

    fn extract(&mut self, body: Option<BodyId>, header: &'p HeaderRef, width: Option<&'p Expr>) {
        let ty = self.header(body, header).and_then(|ty| self.program.header_types.get(ty));
        if let Some(ty) = ty {
            let variable = ty.varbit_field().is_some();
            self.require(variable == width.is_some(), Rule::ExtractWidth, || {
                format!("{} {} a varbit field", ty.name, if variable { "has" } else { "does not have" })
            });
        }
        if let Some(width) = width {
            self.expr_of(body, width, 32, "the varbit field's width");
        }
    }

    fn hash_input(&mut self, body: Option<BodyId>, data: &'p HashInput) {
        match data {
            HashInput::Value(value) => {
                self.expr(body, value);
            }
            HashInput::Varbit(header, field) => {
                self.varbit(body, header, *field);
            }
            HashInput::Payload => {}
        }
    }

    fn request(&mut self, body: Option<BodyId>, request: &'p Request) {
        let keep = match request {
            Request::Clone { session, keep, .. } => {
                self.expr_of(body, session, 32, "the session");
                *keep
            }
            Request::Resubmit(keep) | Request::Recirculate(keep) => *keep,
            Request::Truncate(bytes) => {
                self.expr_of(body, bytes, 32, "the number of bytes");
                None
            }
            Request::Digest(digest, values) => {
                let widths: Vec<_> = values.iter().map(|value| self.expr(body, value)).collect();
                if let Some(digest) = self.get(&self.program.digests, *digest) {
                    let fits = widths.len() == digest.fields.len()
                        && digest.fields.iter().zip(&widths).all(|(field, width)| width.is_none_or(|w| w == field.1));
                    self.require(fits, Rule::DigestValues, || format!("the values do not fit {}", digest.name));
                }
                None
            }
        };
        if let Some(list) = keep {
            self.require(self.program.field_lists.contains_key(&list), Rule::FieldLists, || {
                format!("there is no field list {list}")
            });
        }
    }

    fn terminator(&mut self, id: BodyId, body: &'p Body, terminator: &'p Terminator) {
        for target in terminator.targets() {
            self.get(&body.blocks, target);
        }
        let parser = body.kind == BodyKind::Parser;
        let allowed = match terminator {
            Terminator::Select { .. } | Terminator::Reject => parser,
            Terminator::Exit => !parser,
            _ => true,
        };
        self.require(allowed, Rule::BodyKinds, || format!("not in a body of kind {:?}", body.kind));
        match terminator {
            Terminator::Branch { condition, .. } => self.expr_of(Some(id), condition, 1, "the condition"),
            Terminator::Switch { subject, cases, .. } => {
                let width = self.expr(Some(id), subject);
                let mut seen = HashSet::new();
                for (value, _) in cases {
                    let sound = width.is_none_or(|width| width == value.width()) && seen.insert(value);
                    self.require(sound, Rule::SwitchCases, || format!("{value} is given twice or of another width"));
                }
            }
            Terminator::Select { keys, cases } => {
                let widths: Vec<_> = keys.iter().map(|key| self.expr(Some(id), key)).collect();
                for case in cases {
                    self.select_case(id, &widths, case);
                }
            }
            Terminator::Goto(_) | Terminator::Return | Terminator::Reject | Terminator::Exit => {}
        }
    }

    fn select_case(&mut self, body: BodyId, keys: &[Option<u32>], case: &'p SelectCase) {
        let mut left = keys;
        for matching in &case.matches {
            let parts: &[&Expr] = match matching {
                Match::ValueSet(set) => {
                    let Some(set) = self.get(&self.program.value_sets, *set) else { return };
                    let Some((covered, rest)) = left.split_at_checked(set.fields.len()) else {
                        self.broken(Rule::SelectCoverage, format!("{} has more fields than there are keys", set.name));
                        return;
                    };
                    for (key, (_, width, _)) in covered.iter().zip(&set.fields) {
                        self.equal(*key, Some(*width));
                    }
                    left = rest;
                    continue;
                }
                Match::Any => &[],
                Match::Value(value) => &[value],
                Match::Mask(a, b) | Match::Range(a, b) | Match::RangeSigned(a, b) => &[a, b],
            };
            let Some((key, rest)) = left.split_first() else {
                self.broken(Rule::SelectCoverage, "a case has more matches than there are keys");
                return;
            };
            for part in parts {
                let width = self.expr(Some(body), part);
                self.equal(*key, width);
            }
            left = rest;
        }
        self.require(left.is_empty(), Rule::SelectCoverage, || format!("a case leaves {} keys uncovered", left.len()));
    }

    fn equal(&mut self, left: Option<u32>, right: Option<u32>) {
        if let (Some(left), Some(right)) = (left, right) {
            self.require(left == right, Rule::EqualWidths, || format!("{left} bits and {right} bits"));
        }
    }
}

/// Whether headers of these types can be copied into each other.
fn same_layout(program: &Program, one: HeaderTypeId, other: HeaderTypeId) -> bool {
    let shape = |ty| {
        let fields = program.header_types.get(ty).map(|ty| &ty.fields[..]).unwrap_or_default();
        fields.iter().map(|field| (field.width, field.varbit)).collect::<Vec<_>>()
    };
    one == other || shape(one) == shape(other)
}

impl Terminator {
    /// Returns the blocks it may jump to, in order, with repetitions.
    pub fn targets(&self) -> Vec<BlockId> {
        match self {
            Terminator::Goto(target) => vec![*target],
            Terminator::Branch { then, otherwise, .. } => vec![*then, *otherwise],
            Terminator::Switch { cases, default, .. } => {
                cases.iter().map(|(_, target)| *target).chain([*default]).collect()
            }
            Terminator::Select { cases, .. } => cases.iter().map(|case| case.target).collect(),
            Terminator::Return | Terminator::Reject | Terminator::Exit => Vec::new(),
        }
    }
}
