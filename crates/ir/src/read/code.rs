//! Reads bodies, blocks, instructions and terminators.

use cranelift_entity::{EntityRef, PrimaryMap};

use super::Declaration;
use super::cursor::TextReader;
use super::lex::TokenKind;
use super::objects::NamedObject;
use crate::text::Index;
use crate::*;

impl TextReader<'_, '_> {
    /// Reads a body's name; [`Self::body`] reads the rest.
    pub(super) fn body_name(&mut self, item: Declaration<'_>, found: &mut Vec<NamedObject<BodyId>>) -> Option<()> {
        let name = self.declared(self.program.bodies.next_key(), "body")?;
        let kind = match item.word {
            "parser" => BodyKind::Parser,
            "control" => BodyKind::Control,
            _ => BodyKind::Action,
        };
        let id = self.program.bodies.push(Body { name: name.clone(), kind, blocks: PrimaryMap::new() });
        self.names.bodies.entry(name).or_insert(id);
        found.push((id, self.at, self.end));
        self.at = self.end;
        Some(())
    }

    pub(super) fn body(&mut self, id: BodyId) -> Option<()> {
        self.expect("{")?;
        let labels = self.labels()?;
        let mut blocks = PrimaryMap::new();
        while !self.take("}") {
            let is_state = self.is("state");
            if !is_state && !self.is("block") {
                return self.expected("`state`, `block` or `}`");
            }
            self.at += 1;
            let name = self.declared(blocks.next_key(), "block")?;
            self.expect(":")?;
            let block = self.block(&labels, name, is_state)?;
            blocks.push(block);
        }
        self.program.bodies[id].blocks = blocks;
        Some(())
    }

    /// Collects the names of the blocks of the body that begins here, in order, and counts the blocks.
    fn labels(&mut self) -> Option<Labels> {
        let start = self.at;
        let mut labels = Labels { names: Index::new(), count: 0 };
        while self.at < self.end {
            if self.is("state") || self.is("block") {
                self.at += 1;
                let id = BlockId::new(labels.count);
                let name = self.declared(id, "block")?;
                labels.names.entry(name).or_insert(id);
                labels.count += 1;
            } else {
                self.at += 1;
            }
        }
        self.at = start;
        Some(labels)
    }

    fn block(&mut self, labels: &Labels, name: String, is_state: bool) -> Option<Block> {
        let mut instrs = Vec::new();
        loop {
            match self.keyword() {
                word @ ("goto" | "branch" | "switch" | "select" | "return" | "reject" | "exit") => {
                    self.at += 1;
                    let (terminator, loc) = self.terminator(labels, word)?;
                    return Some(Block { name, is_state, instrs, terminator, loc });
                }
                "state" | "block" => return self.no_end(&name),
                _ if self.is("}") || self.peek() == TokenKind::End => return self.no_end(&name),
                _ => {
                    let start = self.at;
                    match self.instr() {
                        Some(instr) => instrs.push(instr),
                        None => self.skip_line(start),
                    }
                }
            }
        }
    }

    fn no_end<T>(&mut self, name: &str) -> Option<T> {
        let help = "a block must end with goto, branch, switch, select, return, reject or exit";
        self.error_with(self.span(), format!("block {name:?} has no terminator"), help)
    }

    fn target(&mut self, labels: &Labels) -> Option<BlockId> {
        let span = self.span();
        let name = if self.peek() == TokenKind::Nameless { None } else { Some(self.name("a block")?) };
        if let Some(id) = self.tag(name.is_none(), labels.count)? {
            return Some(id);
        }
        match name.as_ref().and_then(|name| labels.names.get(name)) {
            Some(id) => Some(*id),
            None => self.error(span, format!("there is no block called {:?}", name.unwrap_or_default())),
        }
    }

    fn terminator(&mut self, labels: &Labels, word: &str) -> Option<(Terminator, LocId)> {
        let terminator = match word {
            "goto" => Terminator::Goto(self.target(labels)?),
            "branch" => {
                let condition = self.expr()?;
                self.expect("->")?;
                let then = self.target(labels)?;
                self.expect("else")?;
                Terminator::Branch { condition, then, otherwise: self.target(labels)? }
            }
            "switch" => return self.switch(labels),
            "select" => return self.select(labels),
            "return" => Terminator::Return,
            "reject" => Terminator::Reject,
            _ => Terminator::Exit,
        };
        Some((terminator, self.loc()?))
    }

    fn switch(&mut self, labels: &Labels) -> Option<(Terminator, LocId)> {
        let subject = self.expr()?;
        self.expect("{")?;
        let loc = self.loc()?;
        let mut cases = Vec::new();
        while !self.is("default") {
            let value = self.constant()?;
            self.expect("->")?;
            cases.push((value, self.target(labels)?));
        }
        self.at += 1;
        self.expect("->")?;
        let default = self.target(labels)?;
        self.expect("}")?;
        Some((Terminator::Switch { subject, cases, default }, loc))
    }

    fn select(&mut self, labels: &Labels) -> Option<(Terminator, LocId)> {
        let keys = if self.is("{") { Vec::new() } else { self.exprs()? };
        self.expect("{")?;
        let loc = self.loc()?;
        let mut cases = Vec::new();
        while !self.take("}") {
            let mut matches = Vec::new();
            if !self.is("->") {
                matches.push(self.matching()?);
                while self.take(",") {
                    matches.push(self.matching()?);
                }
            }
            self.expect("->")?;
            cases.push(SelectCase { matches, target: self.target(labels)? });
        }
        Some((Terminator::Select { keys, cases }, loc))
    }

    fn matching(&mut self) -> Option<Match> {
        if self.take("_") {
            return Some(Match::Any);
        }
        if self.take("in") {
            let set = self.reference("value set", |n| &n.value_sets, |p| &p.value_sets, |set| &set.name)?;
            return Some(Match::ValueSet(set));
        }
        let value = self.expr()?;
        Some(if self.take("&&&") {
            Match::Mask(value, self.expr()?)
        } else if self.take("..") {
            Match::Range(value, self.expr()?)
        } else if self.take("..s") {
            Match::RangeSigned(value, self.expr()?)
        } else {
            Match::Value(value)
        })
    }

    fn instr(&mut self) -> Option<Instr> {
        let op = self.op()?;
        Some(Instr { op, loc: self.loc()? })
    }

    fn op(&mut self) -> Option<Op> {
        let word = self.keyword();
        if word.is_empty() {
            return self.assignment();
        }
        self.at += 1;
        Some(match word {
            "copy" => {
                let to = self.header()?;
                self.expect("=")?;
                Op::CopyHeader(to, self.header()?)
            }
            "copy_varbit" => {
                let (to, to_field) = self.field()?;
                self.expect("=")?;
                let (from, from_field) = self.field()?;
                Op::CopyVarbit(to, to_field, from, from_field)
            }
            "set_valid" => Op::SetValid(self.header()?),
            "set_invalid" => Op::SetInvalid(self.header()?),
            "extract" => {
                let header = self.header()?;
                let width = if self.take("varbit") { Some(self.expr()?) } else { None };
                Op::Extract(header, width)
            }
            "lookahead" => {
                let dst = self.lvalue()?;
                let skip = if self.take("skip") { self.number("a number of bits")? } else { 0 };
                Op::Lookahead { dst, skip }
            }
            "advance" => Op::Advance(self.expr()?),
            "verify" => {
                let condition = self.expr()?;
                self.expect(",")?;
                Op::Verify(condition, self.expr()?)
            }
            "emit" => Op::Emit(self.header()?),
            "apply" => {
                let table = self.reference("table", |n| &n.tables, |p| &p.tables, |table| &table.name)?;
                let hit = if self.take("hit") { Some(self.slot()?) } else { None };
                let action = if self.take("action") { Some(self.slot()?) } else { None };
                Op::Apply { table, hit, action }
            }
            "read" => {
                let register = self.register_id()?;
                let index = self.index()?;
                Op::RegisterRead(self.result()?, register, index)
            }
            "write" => {
                let register = self.register_id()?;
                let index = self.index()?;
                self.expect("=")?;
                Op::RegisterWrite(register, index, self.expr()?)
            }
            "count" => {
                let counter = self.reference("counter", |n| &n.counters, |p| &p.counters, |counter| &counter.name)?;
                Op::Count(counter, self.index()?)
            }
            "execute_meter" => {
                let meter = self.meter_id()?;
                let index = self.index()?;
                Op::MeterExecute(meter, index, self.result()?)
            }
            "read_meter" => {
                let meter = self.meter_id()?;
                Op::DirectMeterRead(meter, self.result()?)
            }
            "begin_atomic" => Op::BeginAtomic,
            "end_atomic" => Op::EndAtomic,
            "compute" => return self.computation(),
            "random" => {
                let low = self.expr()?;
                self.expect(",")?;
                let high = self.expr()?;
                Op::Random(self.result()?, low, high)
            }
            "log" => {
                let message = self.quoted("a quoted message")?;
                let values = if self.take(",") { self.exprs()? } else { Vec::new() };
                Op::Log(message, values)
            }
            "assert" => Op::Assert(self.expr()?),
            _ => {
                self.at -= 1;
                return self.request().map(Op::Request);
            }
        })
    }

    fn assignment(&mut self) -> Option<Op> {
        if self.is_no_assignment() {
            let help = "an instruction starts with a keyword, or is `PLACE = VALUE`";
            let message = format!("`{}` is not an instruction", self.text_of(self.at));
            return self.error_with(self.span(), message, help);
        }
        let dst = self.lvalue()?;
        self.expect("=")?;
        Some(Op::Assign(dst, self.expr()?))
    }

    fn computation(&mut self) -> Option<Op> {
        let algorithm = self.algorithm()?;
        self.expect("(")?;
        let mut data = Vec::new();
        while !self.take(")") {
            if !data.is_empty() {
                self.expect(",")?;
            }
            data.push(self.data()?);
        }
        Some(Op::Compute(self.result()?, algorithm, data))
    }

    /// Whether the next word is not a keyword but is followed by a token that cannot follow an l-value.
    fn is_no_assignment(&self) -> bool {
        self.peek() == TokenKind::Word
            && ["=", "[", "."].iter().all(|next| !self.is_ahead(1, next))
            && !self.is_tagged()
    }

    fn request(&mut self) -> Option<Request> {
        let word = self.keyword();
        self.at += 1;
        Some(match word {
            "clone" => {
                let ingress = self.take("ingress");
                if !ingress {
                    self.expect("egress")?;
                }
                self.expect("session")?;
                let session = self.expr()?;
                Request::Clone { ingress, session, keep: self.keep()? }
            }
            "resubmit" => Request::Resubmit(self.keep()?),
            "recirculate" => Request::Recirculate(self.keep()?),
            "truncate" => Request::Truncate(self.expr()?),
            "digest" => {
                let digest = self.reference("digest", |n| &n.digests, |p| &p.digests, |digest| &digest.name)?;
                self.expect("(")?;
                let values = if self.is(")") { Vec::new() } else { self.exprs()? };
                self.expect(")")?;
                Request::Digest(digest, values)
            }
            _ => {
                self.at -= 1;
                return self.expected("an instruction or the end of the block");
            }
        })
    }

    fn keep(&mut self) -> Option<Option<u32>> {
        Some(if self.take("keep") { Some(self.number("the number of a field list")?) } else { None })
    }

    fn data(&mut self) -> Option<HashInput> {
        if self.take("payload") {
            return Some(HashInput::Payload);
        }
        if self.take("varbit") {
            let (header, field) = self.field()?;
            return Some(HashInput::Varbit(header, field));
        }
        Some(HashInput::Value(self.expr()?))
    }

    fn index(&mut self) -> Option<Expr> {
        self.expect("[")?;
        let index = self.expr()?;
        self.expect("]")?;
        Some(index)
    }

    fn result(&mut self) -> Option<LValue> {
        self.expect("->")?;
        self.lvalue()
    }

    fn register_id(&mut self) -> Option<RegisterId> {
        self.reference("register", |n| &n.registers, |p| &p.registers, |register| &register.name)
    }

    fn meter_id(&mut self) -> Option<MeterId> {
        self.reference("meter", |n| &n.meters, |p| &p.meters, |meter| &meter.name)
    }
}

/// The blocks of a body by name.
struct Labels {
    names: Index<BlockId>,
    count: usize,
}
