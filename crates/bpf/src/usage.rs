//! Finds the slots and fields that a pipeline reads and writes.

use std::collections::BTreeSet;

use engine::Step;
use ir::{
    Body, BodyId, Expr, HashInput, HeaderId, HeaderRef, LValue, Match, MeterId, Op, Program, RegisterId, SlotId,
    TableId, Terminator, ValueSetId,
};

use crate::KernelPipeline;
use crate::emit::Crc;
use crate::header_order::keeps_headers;

/// The uses of storage in the bodies that a pipeline runs.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    pub slots_read: BTreeSet<SlotId>,
    pub fields_read: BTreeSet<(HeaderId, u32)>,
    pub fields_written: BTreeSet<(HeaderId, u32)>,
    /// Headers whose validity is used, or that are extracted.
    pub headers: BTreeSet<HeaderId>,
    /// Registers that are read or written.
    pub registers: BTreeSet<RegisterId>,
    /// Meters that are executed, direct ones included.
    pub meters: BTreeSet<MeterId>,
    /// CRCs that are computed.
    pub crcs: BTreeSet<Crc>,
    /// Value sets that are matched.
    pub value_sets: BTreeSet<ValueSetId>,
    /// Tables that are applied.
    pub tables: BTreeSet<TableId>,
    /// Bodies that are run, those of actions included.
    pub bodies: BTreeSet<BodyId>,
    /// Headers that a body changes after it may have emitted them.
    pub changed_by_deparser: BTreeSet<HeaderId>,
    /// Whether there is an `@atomic` section.
    pub has_atomic: bool,
    /// Whether a time is read.
    pub reads_time: bool,
    /// Whether meters or aging entries need a time.
    pub reads_nanoseconds: bool,
    /// Whether a header of the packet becomes valid or invalid after the parser, be it emitted or not.
    pub changes_validity: bool,
    /// Whether every packet leaves with the headers that it came with.
    pub keeps_headers: bool,
    /// Whether packets that leave with other headers stay in the kernel.
    pub moves_headers: bool,
}

/// Maximum size of all headers that a program emits in bytes, if it moves them. It bounds the code.
const MAX_MOVED_BYTES: u32 = 4000;

impl Usage {
    pub fn new(program: &Program, pipeline: &KernelPipeline) -> Usage {
        let mut usage = Usage::default();
        usage.slots_read.extend(pipeline.drop_site);
        for step in &pipeline.steps {
            match step {
                Step::Run(body) => usage.body(program, *body),
                Step::StopUnless(slot, _) | Step::DropIf(slot, _) | Step::Keep(_, slot) => {
                    usage.slots_read.insert(*slot);
                }
                _ => {}
            }
        }
        usage.copies(pipeline);
        let ages = usage.tables.iter().any(|table| program.tables[*table].idle_timeout);
        usage.reads_nanoseconds = ages || !usage.meters.is_empty();
        usage.reads_time |= usage.reads_nanoseconds;
        usage.changed_by_deparser = changed_by_deparser(program, pipeline);
        usage.headers_of_packets(program, pipeline);
        usage
    }

    /// Notes what is read by steps that copy it to something that is read.
    fn copies(&mut self, pipeline: &KernelPipeline) {
        // The last copy comes first, as it may be one of an earlier copy.
        for step in pipeline.steps.iter().rev() {
            match step {
                Step::Copy(to, from) if self.slots_read.contains(to) => _ = self.slots_read.insert(*from),
                Step::TimeTo(slot) => self.reads_time |= self.slots_read.contains(slot),
                _ => {}
            }
        }
        self.reads_time |= pipeline.arrival_time.is_some_and(|slot| self.slots_read.contains(&slot));
    }

    /// Finds out how the headers of packets change. Bodies, and what they change after emitting it, are known.
    fn headers_of_packets(&mut self, program: &Program, pipeline: &KernelPipeline) {
        let has_other_validity = |op: &Op| match op {
            Op::SetValid(header) | Op::SetInvalid(header) | Op::CopyHeader(header, _) => match header {
                HeaderRef::Header(header) => !program.headers[*header].local,
                HeaderRef::Element(..) => true,
            },
            _ => false,
        };
        let emitted = |op: &Op| match op {
            Op::Emit(HeaderRef::Header(header)) => program.layout(*header).fixed_bits() / 8,
            _ => 0,
        };
        let all = || self.bodies.iter().flat_map(|body| ops(&program.bodies[*body]));
        let changes_validity = all().any(has_other_validity);
        let emitted_bytes = all().map(emitted).fold(0, u32::saturating_add);
        self.changes_validity = changes_validity;
        self.keeps_headers = keeps_headers(program, pipeline, self);
        self.moves_headers = !self.keeps_headers && emitted_bytes <= MAX_MOVED_BYTES;
    }

    /// Whether a field is kept in scratch memory.
    pub fn is_kept(&self, header: HeaderId, field: u32) -> bool {
        self.fields_read.contains(&(header, field)) || self.fields_written.contains(&(header, field))
    }

    fn body(&mut self, program: &Program, id: BodyId) {
        if !self.bodies.insert(id) {
            return;
        }
        for block in program.bodies[id].blocks.values() {
            block.instrs.iter().for_each(|instr| self.op(program, &instr.op));
            match &block.terminator {
                Terminator::Branch { condition, .. } => self.expr(condition),
                Terminator::Switch { subject, .. } => self.expr(subject),
                Terminator::Select { keys, cases } => {
                    keys.iter().for_each(|key| self.expr(key));
                    cases.iter().flat_map(|case| &case.matches).for_each(|one| self.one_match(one));
                }
                Terminator::Goto(_) | Terminator::Return | Terminator::Reject | Terminator::Exit => {}
            }
        }
    }

    fn one_match(&mut self, one: &Match) {
        match one {
            Match::Any => {}
            Match::ValueSet(set) => _ = self.value_sets.insert(*set),
            Match::Value(value) => self.expr(value),
            Match::Mask(a, b) | Match::Range(a, b) | Match::RangeSigned(a, b) => {
                self.expr(a);
                self.expr(b);
            }
        }
    }

    fn place(&mut self, place: &LValue) {
        if let LValue::Field(HeaderRef::Header(header), field) = place {
            self.fields_written.insert((*header, *field));
        }
    }

    fn header(&mut self, header: &HeaderRef) {
        if let HeaderRef::Header(header) = header {
            self.headers.insert(*header);
        }
    }

    fn copy_header(&mut self, program: &Program, to: &HeaderRef, from: &HeaderRef) {
        self.header(to);
        self.header(from);
        if let (HeaderRef::Header(to), HeaderRef::Header(from)) = (to, from) {
            for field in 0..program.layout(*to).fields.len() as u32 {
                self.fields_written.insert((*to, field));
                self.fields_read.insert((*from, field));
            }
        }
    }

    fn op(&mut self, program: &Program, op: &Op) {
        match op {
            Op::Assign(place, value) => {
                self.expr(value);
                self.place(place);
            }
            Op::CopyHeader(to, from) => self.copy_header(program, to, from),
            Op::SetValid(header) | Op::SetInvalid(header) | Op::Extract(header, _) | Op::Emit(header) => {
                self.header(header);
            }
            Op::Lookahead { dst, .. } => self.place(dst),
            Op::Verify(a, b) => {
                self.expr(a);
                self.expr(b);
            }
            Op::Apply { table, .. } => {
                self.tables.insert(*table);
                let table = &program.tables[*table];
                let selector = table.profile.and_then(|profile| program.profiles[profile].selector);
                self.crcs.extend(selector.and_then(Crc::of));
                self.meters.extend(table.meter);
                table.keys.iter().for_each(|key| self.expr(&key.expr));
                table.actions.iter().for_each(|action| self.body(program, program.actions[action.action].body));
            }
            Op::Advance(value) | Op::Count(_, value) | Op::Assert(value) => self.expr(value),
            Op::Compute(place, algorithm, data) => {
                self.crcs.extend(Crc::of(*algorithm));
                self.place(place);
                data.iter().for_each(|piece| {
                    if let HashInput::Value(value) = piece {
                        self.expr(value);
                    }
                });
            }
            Op::RegisterRead(place, register, index) => {
                self.registers.insert(*register);
                self.place(place);
                self.expr(index);
            }
            Op::RegisterWrite(register, index, value) => {
                self.registers.insert(*register);
                self.expr(index);
                self.expr(value);
            }
            Op::BeginAtomic => self.has_atomic = true,
            Op::MeterExecute(meter, index, place) => {
                self.meters.insert(*meter);
                self.place(place);
                self.expr(index);
            }
            Op::DirectMeterRead(_, place) => self.place(place),
            // These are always handed over, or have no effect.
            Op::CopyVarbit(..) | Op::EndAtomic | Op::Random(..) | Op::Request(_) | Op::Log(..) => {}
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Const(_) | Expr::PacketLength | Expr::VarbitWidth(..) | Expr::VarbitEq(_) => {}
            Expr::Slot(slot) => _ = self.slots_read.insert(*slot),
            Expr::Field(HeaderRef::Header(header), field) => _ = self.fields_read.insert((*header, *field)),
            Expr::Valid(header) => self.header(header),
            Expr::Field(HeaderRef::Element(..), _) => {}
            Expr::Unary(_, a) | Expr::Slice(a, ..) | Expr::ZeroExtend(a, _) | Expr::SignExtend(a, _) => self.expr(a),
            Expr::Binary(_, a, b) | Expr::Concat(a, b) => {
                self.expr(a);
                self.expr(b);
            }
            Expr::Choose(a, b, c) => [a, b, c].into_iter().for_each(|part| self.expr(part)),
        }
    }
}

/// Returns all operations of a body.
pub(crate) fn ops(body: &Body) -> impl Iterator<Item = &Op> {
    body.blocks.values().flat_map(|block| &block.instrs).map(|instr| &instr.op)
}

/// Whether a body emits headers.
pub(crate) fn emits(body: &Body) -> bool {
    ops(body).any(|op| matches!(op, Op::Emit(_)))
}

/// Returns the headers that are changed by steps that emit headers. What the actions of a body do counts as done by the
/// body.
fn changed_by_deparser(program: &Program, pipeline: &KernelPipeline) -> BTreeSet<HeaderId> {
    let mut changed = BTreeSet::new();
    for step in &pipeline.steps {
        let Step::Run(body) = step else { continue };
        let mut reached = Usage::default();
        reached.body(program, *body);
        let bodies = || reached.bodies.iter().map(|body| &program.bodies[*body]);
        if bodies().any(emits) {
            changed.extend(bodies().flat_map(changed_headers));
        }
    }
    changed
}

/// Returns the headers that a body changes itself.
fn changed_headers(body: &Body) -> impl Iterator<Item = HeaderId> {
    ops(body).filter_map(|op| match op {
        Op::Assign(LValue::Field(HeaderRef::Header(header), _), _)
        | Op::Compute(LValue::Field(HeaderRef::Header(header), _), ..)
        | Op::RegisterRead(LValue::Field(HeaderRef::Header(header), _), ..)
        | Op::MeterExecute(_, _, LValue::Field(HeaderRef::Header(header), _))
        | Op::DirectMeterRead(_, LValue::Field(HeaderRef::Header(header), _))
        | Op::CopyHeader(HeaderRef::Header(header), _)
        | Op::SetValid(HeaderRef::Header(header))
        | Op::SetInvalid(HeaderRef::Header(header)) => Some(*header),
        _ => None,
    })
}
