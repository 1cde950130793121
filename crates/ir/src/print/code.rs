//! Prints bodies: one instruction per line, then the terminator, each with its source position after a `;`.

use std::fmt;

use super::{Out, Printer, separated, tagged};
use crate::text::{Index, write_label, write_string};
use crate::*;

/// Names of the blocks of one body.
pub(super) struct BlockNames<'b> {
    body: &'b Body,
    exact: Option<Index<BlockId>>,
}

impl<'b> BlockNames<'b> {
    pub(super) fn plain(body: &'b Body) -> Self {
        BlockNames { body, exact: None }
    }

    fn exact(body: &'b Body) -> Self {
        BlockNames { body, exact: Some(crate::text::index(&body.blocks, |block| &block.name)) }
    }

    pub(super) fn write(&self, out: Out<'_>, block: BlockId) -> fmt::Result {
        let name = self.body.blocks.get(block).map(|block| block.name.as_str());
        let found = self.exact.as_ref().map(|index| name.and_then(|name| index.get(name)).copied());
        tagged(out, block, name, found)
    }
}

impl Printer<'_> {
    pub(super) fn body(&self, out: Out<'_>, id: BodyId, body: &Body) -> fmt::Result {
        out.write_str(match body.kind {
            BodyKind::Parser => "parser ",
            BodyKind::Control => "control ",
            BodyKind::Action => "action_body ",
        })?;
        self.body_name(out, id)?;
        out.write_str(" {\n")?;
        let blocks = BlockNames::exact(body);
        for (id, block) in &body.blocks {
            out.write_str(if block.is_state { "  state " } else { "  block " })?;
            blocks.write(out, id)?;
            out.write_str(":\n")?;
            for instr in &block.instrs {
                out.write_str("    ")?;
                self.op(out, &instr.op)?;
                self.loc(out, instr.loc)?;
                out.write_char('\n')?;
            }
            out.write_str("    ")?;
            self.terminator(out, &blocks, &block.terminator, block.loc)?;
            out.write_char('\n')?;
        }
        out.write_str("}\n")
    }

    pub(super) fn body_name(&self, out: Out<'_>, id: BodyId) -> fmt::Result {
        let name = self.program.bodies.get(id).map(|body| body.name.as_str());
        self.entity(out, id, name, |names| &names.bodies)
    }

    pub(super) fn op(&self, out: Out<'_>, op: &Op) -> fmt::Result {
        match op {
            Op::Assign(dst, value) => {
                self.lvalue(out, dst)?;
                out.write_str(" = ")?;
                self.expr(out, value)
            }
            Op::CopyHeader(to, from) => {
                out.write_str("copy ")?;
                self.header_ref(out, to)?;
                out.write_str(" = ")?;
                self.header_ref(out, from)
            }
            Op::CopyVarbit(to, to_field, from, from_field) => {
                out.write_str("copy_varbit ")?;
                self.field(out, to, *to_field)?;
                out.write_str(" = ")?;
                self.field(out, from, *from_field)
            }
            Op::SetValid(header) => self.with_header(out, "set_valid", header),
            Op::SetInvalid(header) => self.with_header(out, "set_invalid", header),
            Op::Extract(header, width) => {
                self.with_header(out, "extract", header)?;
                let Some(width) = width else { return Ok(()) };
                self.with_expr(out, " varbit", width)
            }
            Op::Lookahead { dst, skip } => {
                out.write_str("lookahead ")?;
                self.lvalue(out, dst)?;
                if *skip == 0 { Ok(()) } else { write!(out, " skip {skip}") }
            }
            Op::Advance(bits) => self.with_expr(out, "advance", bits),
            Op::Verify(condition, error) => {
                out.write_str("verify ")?;
                self.exprs(out, [condition, error])
            }
            Op::Emit(header) => self.with_header(out, "emit", header),
            Op::Apply { table, hit, action } => {
                out.write_str("apply ")?;
                self.table_name(out, *table)?;
                self.with_slot(out, " hit ", *hit)?;
                self.with_slot(out, " action ", *action)
            }
            Op::RegisterRead(dst, register, index) => {
                out.write_str("read ")?;
                self.register_name(out, *register)?;
                self.index(out, index)?;
                self.to(out, dst)
            }
            Op::RegisterWrite(register, index, value) => {
                out.write_str("write ")?;
                self.register_name(out, *register)?;
                self.index(out, index)?;
                self.with_expr(out, " =", value)
            }
            Op::Count(counter, index) => {
                out.write_str("count ")?;
                self.counter_name(out, *counter)?;
                self.index(out, index)
            }
            Op::MeterExecute(meter, index, dst) => {
                out.write_str("execute_meter ")?;
                self.meter_name(out, *meter)?;
                self.index(out, index)?;
                self.to(out, dst)
            }
            Op::DirectMeterRead(meter, dst) => {
                out.write_str("read_meter ")?;
                self.meter_name(out, *meter)?;
                self.to(out, dst)
            }
            Op::BeginAtomic => out.write_str("begin_atomic"),
            Op::EndAtomic => out.write_str("end_atomic"),
            Op::Compute(dst, algorithm, data) => {
                write!(out, "compute {algorithm}(")?;
                separated(out, data, ", ", |out, data| self.data(out, data))?;
                out.write_char(')')?;
                self.to(out, dst)
            }
            Op::Random(dst, low, high) => {
                out.write_str("random ")?;
                self.exprs(out, [low, high])?;
                self.to(out, dst)
            }
            Op::Request(request) => self.request(out, request),
            Op::Log(message, values) => {
                out.write_str("log ")?;
                write_string(out, message)?;
                for value in values {
                    self.with_expr(out, ",", value)?;
                }
                Ok(())
            }
            Op::Assert(condition) => self.with_expr(out, "assert", condition),
        }
    }

    fn with_slot(&self, out: Out<'_>, word: &str, slot: Option<SlotId>) -> fmt::Result {
        let Some(slot) = slot else { return Ok(()) };
        out.write_str(word)?;
        self.slot(out, slot)
    }

    fn request(&self, out: Out<'_>, request: &Request) -> fmt::Result {
        let keep = |out: Out<'_>, list: &Option<u32>| match list {
            Some(list) => write!(out, " keep {list}"),
            None => Ok(()),
        };
        match request {
            Request::Clone { ingress, session, keep: list } => {
                let word = if *ingress { "clone ingress session" } else { "clone egress session" };
                self.with_expr(out, word, session)?;
                keep(out, list)
            }
            Request::Resubmit(list) => {
                out.write_str("resubmit")?;
                keep(out, list)
            }
            Request::Recirculate(list) => {
                out.write_str("recirculate")?;
                keep(out, list)
            }
            Request::Truncate(bytes) => self.with_expr(out, "truncate", bytes),
            Request::Digest(digest, values) => {
                out.write_str("digest ")?;
                self.digest_name(out, *digest)?;
                out.write_char('(')?;
                self.exprs(out, values)?;
                out.write_char(')')
            }
        }
    }

    fn with_header(&self, out: Out<'_>, word: &str, header: &HeaderRef) -> fmt::Result {
        write!(out, "{word} ")?;
        self.header_ref(out, header)
    }

    fn with_expr(&self, out: Out<'_>, word: &str, expr: &Expr) -> fmt::Result {
        write!(out, "{word} ")?;
        self.expr(out, expr)
    }

    fn index(&self, out: Out<'_>, index: &Expr) -> fmt::Result {
        out.write_char('[')?;
        self.expr(out, index)?;
        out.write_char(']')
    }

    fn to(&self, out: Out<'_>, dst: &LValue) -> fmt::Result {
        out.write_str(" -> ")?;
        self.lvalue(out, dst)
    }

    pub(super) fn terminator(
        &self,
        out: Out<'_>,
        blocks: &BlockNames<'_>,
        terminator: &Terminator,
        loc: LocId,
    ) -> fmt::Result {
        match terminator {
            Terminator::Goto(target) => {
                out.write_str("goto ")?;
                blocks.write(out, *target)?;
            }
            Terminator::Branch { condition, then, otherwise } => {
                self.with_expr(out, "branch", condition)?;
                out.write_str(" -> ")?;
                blocks.write(out, *then)?;
                out.write_str(" else ")?;
                blocks.write(out, *otherwise)?;
            }
            Terminator::Switch { subject, cases, default } => {
                self.with_expr(out, "switch", subject)?;
                out.write_str(" {")?;
                self.loc(out, loc)?;
                for (value, target) in cases {
                    write!(out, "\n      {value} -> ")?;
                    blocks.write(out, *target)?;
                }
                out.write_str("\n      default -> ")?;
                blocks.write(out, *default)?;
                return out.write_str("\n    }");
            }
            Terminator::Select { keys, cases } => {
                out.write_str("select ")?;
                self.exprs(out, keys)?;
                out.write_str(" {")?;
                self.loc(out, loc)?;
                for case in cases {
                    out.write_str("\n      ")?;
                    separated(out, &case.matches, ", ", |out, matching| self.matching(out, matching))?;
                    out.write_str(" -> ")?;
                    blocks.write(out, case.target)?;
                }
                return out.write_str("\n    }");
            }
            Terminator::Return => out.write_str("return")?,
            Terminator::Reject => out.write_str("reject")?,
            Terminator::Exit => out.write_str("exit")?,
        }
        self.loc(out, loc)
    }

    pub(super) fn matching(&self, out: Out<'_>, matching: &Match) -> fmt::Result {
        let (left, op, right) = match matching {
            Match::Any => return out.write_char('_'),
            Match::Value(value) => return self.expr(out, value),
            Match::ValueSet(set) => {
                out.write_str("in ")?;
                return self.value_set_name(out, *set);
            }
            Match::Mask(value, mask) => (value, "&&&", mask),
            Match::Range(low, high) => (low, "..", high),
            Match::RangeSigned(low, high) => (low, "..s", high),
        };
        self.expr(out, left)?;
        write!(out, " {op} ")?;
        self.expr(out, right)
    }

    /// Prints the role of a body in the architecture.
    pub(super) fn role(&self, out: Out<'_>, role: &str, body: BodyId) -> fmt::Result {
        out.write_str("role ")?;
        write_label(out, role)?;
        out.write_str(": ")?;
        self.body_name(out, body)?;
        out.write_char('\n')
    }
}
