//! Random bodies, actions and tables.

use cranelift_entity::PrimaryMap;
use ir::*;

use super::Generator;

const DEPTH: usize = 4;

impl Generator {
    /// Generates actions, then tables that use them, then parsers and controls that apply the tables.
    pub(super) fn code(&mut self) {
        for _ in 0..1 + self.random.below(4) {
            self.action();
        }
        for _ in 0..self.random.below(4) {
            self.table();
        }
        for role in ["parser", "ingress", "egress"] {
            let kind = if role == "parser" { BodyKind::Parser } else { BodyKind::Control };
            let name = self.name("body");
            let body = self.body(name, kind);
            self.program.blocks.insert(role.to_owned(), body);
        }
    }

    fn action(&mut self) {
        let mut params = Vec::new();
        let mut names = std::collections::HashSet::new();
        for _ in 0..self.random.below(3) {
            let mut name = self.any_name();
            while !names.insert(name.clone()) {
                name.push('_');
            }
            let slot = Slot { name: self.any_name(), width: self.width(), kind: SlotKind::Argument, signed: false };
            let slot = self.program.slots.push(slot);
            self.arguments.push(slot);
            let annotations = self.annotations();
            params.push(ActionParam { name, slot, annotations });
        }
        let name = self.any_name();
        let body = self.body(name.clone(), BodyKind::Action);
        self.arguments.clear();
        let (annotations, loc) = (self.annotations(), self.loc());
        self.program.actions.push(Action { name, params, body, annotations, loc });
    }

    fn table(&mut self) {
        let profile = self.program.profiles.keys().find(|_| self.random.chance(3));
        let selects = profile.is_some_and(|profile| self.program.profiles[profile].selector.is_some());
        let mut keys: Vec<Key> = Vec::new();
        for _ in 0..self.random.below(5) {
            use MatchKind::*;
            let kind = *self.random.pick(&[Exact, Lpm, Ternary, Range, Optional, Selector]);
            let again = kind == Lpm && keys.iter().any(|key| key.kind == Lpm);
            if again || (kind == Selector && !selects) {
                continue;
            }
            let width = self.width();
            let expr = self.expr(width, DEPTH);
            let (name, annotations) = (self.any_name(), self.annotations());
            keys.push(Key { name, expr, width, kind, signed: false, annotations });
        }
        let mut actions: Vec<TableAction> = Vec::new();
        for (id, action) in &self.program.actions {
            if actions.iter().all(|known| self.program.actions[known.action].name != action.name) {
                actions.push(TableAction { action: id, default_only: false, table_only: false });
            }
        }
        let default = self.random.below(actions.len()) as u32;
        for (at, action) in actions.iter_mut().enumerate() {
            action.table_only = at as u32 != default && self.random.chance(4);
            action.default_only =
                at as u32 == default && actions_left(self.program.actions.len()) && self.random.chance(4);
        }
        let entries = (0..self.random.below(4)).filter_map(|_| self.entry(&keys, &actions)).collect();
        let default_action = (default, self.arguments_for(&actions, default));
        let counter = self.program.counters.iter().find(|(id, counter)| {
            counter.size.is_none() && self.program.tables.values().all(|table| table.counter != Some(*id))
        });
        let counter = counter.map(|(id, _)| id).filter(|_| self.random.chance(2));
        let meter = self.program.meters.iter().find(|(id, meter)| {
            meter.size.is_none() && self.program.tables.values().all(|table| table.meter != Some(*id))
        });
        let meter = meter.map(|(id, _)| id).filter(|_| self.random.chance(2));
        let table = Table {
            name: self.name("table"),
            keys,
            actions,
            default_action,
            const_default: self.random.chance(2),
            entries,
            const_entries: self.random.chance(2),
            size: if self.random.chance(2) { Some(self.random.next()) } else { None },
            profile,
            counter,
            meter,
            idle_timeout: self.random.chance(2),
            largest_priority_wins: self.random.chance(2),
            annotations: self.annotations(),
            loc: self.loc(),
        };
        self.program.tables.push(table);
    }

    fn arguments_for(&mut self, actions: &[TableAction], at: u32) -> Vec<bits::Bits> {
        let params = &self.program.actions[actions[at as usize].action].params;
        let widths: Vec<_> = params.iter().map(|param| self.program.slots[param.slot].width).collect();
        widths.into_iter().map(|width| self.bits(width)).collect()
    }

    fn entry(&mut self, keys: &[Key], actions: &[TableAction]) -> Option<Entry> {
        let usable: Vec<_> = (0..actions.len()).filter(|at| !actions[*at].default_only).collect();
        if usable.is_empty() {
            return None;
        }
        let action = *self.random.pick(&usable) as u32;
        let mut values = Vec::new();
        let mut prioritised = false;
        for key in keys {
            let value = self.bits(key.width);
            values.push(match key.kind {
                MatchKind::Exact => KeyValue::Exact(value),
                MatchKind::Lpm => {
                    let length = self.random.below(key.width as usize + 1) as u32;
                    let behind = key.width - length;
                    KeyValue::Lpm(value.shr(behind).shl(behind), length)
                }
                MatchKind::Ternary => {
                    let mask = self.bits(key.width);
                    KeyValue::Ternary(value.and(&mask), mask)
                }
                MatchKind::Range => KeyValue::Range(value.clone(), value),
                MatchKind::Optional if self.random.chance(2) => KeyValue::Any,
                MatchKind::Optional => KeyValue::Exact(value),
                MatchKind::Selector => continue,
            });
            prioritised |= !matches!(key.kind, MatchKind::Exact | MatchKind::Lpm);
        }
        let priority = if prioritised { self.random.below(1 << 31) as i32 } else { 0 };
        let args = self.arguments_for(actions, action);
        Some(Entry { keys: values, priority, action, args, constant: self.random.chance(2), loc: self.loc() })
    }

    /// Generates a body whose blocks form a chain, so that all are reachable, with additional random edges.
    fn body(&mut self, name: String, kind: BodyKind) -> BodyId {
        self.kind = kind;
        let mut blocks = PrimaryMap::new();
        let count = 1 + self.random.below(6);
        for at in 0..count {
            let mut instrs = Vec::new();
            for _ in 0..self.random.below(6) {
                if let Some(op) = self.op() {
                    instrs.push(Instr { op, loc: self.loc() });
                }
            }
            let next = (at + 1 < count).then(|| BlockId::from_u32(at as u32 + 1));
            let terminator = self.terminator(next, count);
            let is_state = kind == BodyKind::Parser && self.random.chance(2);
            let name = self.any_name();
            blocks.push(Block { name, is_state, instrs, terminator, loc: self.loc() });
        }
        self.program.bodies.push(Body { name, kind, blocks })
    }

    fn terminator(&mut self, next: Option<BlockId>, count: usize) -> Terminator {
        let any = BlockId::from_u32(self.random.below(count) as u32);
        let Some(next) = next else {
            return match (self.kind, self.random.below(3)) {
                (_, 0) => Terminator::Return,
                (BodyKind::Parser, 1) => Terminator::Select { keys: vec![], cases: vec![] },
                (BodyKind::Parser, _) => Terminator::Reject,
                _ => Terminator::Exit,
            };
        };
        match self.random.below(4) {
            0 => Terminator::Goto(next),
            1 => {
                let condition = self.expr(1, DEPTH);
                Terminator::Branch { condition, then: any, otherwise: next }
            }
            2 if self.kind == BodyKind::Parser => self.select(next, any),
            _ => {
                let width = self.width();
                let mut cases: Vec<(bits::Bits, BlockId)> = Vec::new();
                for _ in 0..self.random.below(4) {
                    let value = self.bits(width);
                    if cases.iter().all(|(known, _)| *known != value) {
                        cases.push((value, any));
                    }
                }
                Terminator::Switch { subject: self.expr(width, DEPTH), cases, default: next }
            }
        }
    }

    fn select(&mut self, next: BlockId, any: BlockId) -> Terminator {
        let set = self.program.value_sets.keys().find(|_| self.random.chance(2));
        let mut widths: Vec<u32> = match set {
            Some(set) => self.program.value_sets[set].fields.iter().map(|field| field.1).collect(),
            None => Vec::new(),
        };
        let covered = widths.len();
        widths.extend((0..self.random.below(3)).map(|_| self.width()));
        let keys = widths.iter().map(|width| self.expr(*width, DEPTH)).collect();
        let mut cases = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            let mut matches = Vec::new();
            let from = match set {
                Some(set) if self.random.chance(2) => {
                    matches.push(Match::ValueSet(set));
                    covered
                }
                _ => 0,
            };
            for width in &widths[from..] {
                let (a, b) = (self.expr(*width, 2), self.expr(*width, 2));
                matches.push(match self.random.below(5) {
                    0 => Match::Any,
                    1 => Match::Value(a),
                    2 => Match::Mask(a, b),
                    3 => Match::Range(a, b),
                    _ => Match::RangeSigned(a, b),
                });
            }
            cases.push(SelectCase { matches, target: *self.random.pick(&[next, any]) });
        }
        cases[0].target = next;
        Terminator::Select { keys, cases }
    }

    /// Generates an instruction of the body's kind; `None` if the chosen one has nothing to operate on.
    fn op(&mut self) -> Option<Op> {
        match (self.random.below(6), self.kind) {
            (0, BodyKind::Parser) => return self.parser_op(),
            (0, BodyKind::Control) => return self.control_op(),
            _ => {}
        }
        let width = self.width();
        let dst = self.lvalue(DEPTH);
        let of = self.program.lvalue_width(&dst).expect("the place is sound");
        Some(match self.random.below(19) {
            0 | 1 => Op::Assign(dst, self.expr(of, DEPTH)),
            2 => {
                let header = self.header(DEPTH);
                Op::CopyHeader(header.clone(), header)
            }
            3 => {
                let (one, other) = (self.varbit(DEPTH)?, self.varbit(DEPTH)?);
                Op::CopyVarbit(one.0, one.1, other.0, other.1)
            }
            4 => Op::SetValid(self.header(DEPTH)),
            5 => Op::SetInvalid(self.header(DEPTH)),
            6 => {
                let (id, register) = self.program.registers.iter().next()?;
                let dst = self
                    .program
                    .slots
                    .iter()
                    .find(|(_, slot)| slot.width == register.width && slot.kind != SlotKind::Argument);
                Op::RegisterRead(LValue::Slot(dst?.0), id, self.expr(width, DEPTH))
            }
            7 => {
                let (id, register) = self.program.registers.iter().next_back()?;
                let of = register.width;
                Op::RegisterWrite(id, self.expr(width, DEPTH), self.expr(of, DEPTH))
            }
            8 => {
                let id = self.program.counters.iter().find(|(_, counter)| counter.size.is_some())?.0;
                Op::Count(id, self.expr(width, DEPTH))
            }
            9 => {
                let id = self.program.meters.iter().find(|(_, meter)| meter.size.is_some())?.0;
                Op::MeterExecute(id, self.expr(width, DEPTH), dst)
            }
            10 => {
                let id = self.program.meters.iter().find(|(_, meter)| meter.size.is_none())?.0;
                Op::DirectMeterRead(id, dst)
            }
            11 => {
                let mut data = Vec::new();
                for _ in 0..self.random.below(4) {
                    let varbit = self.varbit(2);
                    data.push(match (self.random.below(3), varbit) {
                        (0, _) => HashInput::Payload,
                        (1, Some((header, field))) => HashInput::Varbit(header, field),
                        _ => HashInput::Value(self.expr(width, DEPTH)),
                    });
                }
                use Algorithm::*;
                let all = [Csum16, Crc16, Crc16Custom, Crc32, Crc32Custom, Xor16, Identity];
                Op::Compute(dst, *self.random.pick(&all), data)
            }
            17 => self.random.pick(&[Op::BeginAtomic, Op::EndAtomic]).clone(),
            12 => Op::Random(dst, self.expr(of, DEPTH), self.expr(of, DEPTH)),
            13 | 14 => Op::Request(self.request()?),
            15 | 16 => {
                let message = self.any_name();
                Op::Log(message, (0..self.random.below(3)).map(|_| self.expr(width, DEPTH)).collect())
            }
            _ => Op::Assert(self.expr(1, DEPTH)),
        })
    }

    fn parser_op(&mut self) -> Option<Op> {
        Some(match self.random.below(4) {
            0 => {
                let header = self.header(DEPTH);
                let variable = self.layout(&header).varbit_field().is_some();
                Op::Extract(header, if variable { Some(self.expr(32, DEPTH)) } else { None })
            }
            1 => Op::Lookahead { dst: self.lvalue(DEPTH), skip: self.random.below(200) as u32 },
            2 => Op::Advance(self.expr(32, DEPTH)),
            _ => {
                let at = self.random.below(self.program.errors.len() + 1);
                let constant = Expr::Const(bits::Bits::new(at as u128, 32));
                let computed = Expr::Unary(UnaryOp::Not, Box::new(constant.clone()));
                let known = at < self.program.errors.len();
                Op::Verify(self.expr(1, DEPTH), if known { constant } else { computed })
            }
        })
    }

    fn control_op(&mut self) -> Option<Op> {
        if self.program.tables.is_empty() || self.random.chance(2) {
            return Some(Op::Emit(self.header(DEPTH)));
        }
        let table = TableId::from_u32(self.random.below(self.program.tables.len()) as u32);
        let hit = if self.random.chance(2) { Some(self.slot_of(1)) } else { None };
        let action = if self.random.chance(2) { Some(self.slot_of(32)) } else { None };
        Some(Op::Apply { table, hit, action })
    }

    fn request(&mut self) -> Option<Request> {
        let lists: Vec<_> = self.program.field_lists.keys().map(|list| Some(*list)).chain([None]).collect();
        let keep = *self.random.pick(&lists);
        Some(match self.random.below(5) {
            0 => Request::Clone { ingress: self.random.chance(2), session: self.expr(32, DEPTH), keep },
            1 => Request::Resubmit(keep),
            2 => Request::Recirculate(keep),
            3 => Request::Truncate(self.expr(32, DEPTH)),
            _ => {
                let (id, digest) = self.program.digests.iter().next()?;
                let widths: Vec<_> = digest.fields.iter().map(|field| field.1).collect();
                Request::Digest(id, widths.into_iter().map(|width| self.expr(width, DEPTH)).collect())
            }
        })
    }
}

/// Whether a table may keep an action for its default alone and still have others for its entries.
fn actions_left(count: usize) -> bool {
    count > 1
}
