//! Holds a packet's state in one of the two executors, and the units of machine code.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use engine::{PacketState, Requested};
use ir::{BodyId, FieldListItem, LocId, Op, Program, Request, SlotId};
use jit::{InPlacePacket, MayWait, NativeProgram, Plan, Probe, SlotSet, Speed, Step, Unit, UnitOutcome, Unsupported};

use switch::{Backup, PortId};

use super::layout::Layout;

/// A packet's state. Traced packets are interpreted, whatever executor the others use.
#[derive(Debug)]
pub(super) enum State {
    Interpreted(PacketState),
    Compiled(Box<jit::Packet>),
}

/// A packet's state in any representation, with slots.
pub(super) trait Slots {
    /// Returns the low 64 bits of a slot.
    fn number(&self, slot: SlotId) -> u64;
    fn set_slot_to(&mut self, slot: SlotId, value: u64);
    /// Appends the numbers of the bits of a slot that are set, in ascending order.
    fn ports(&self, slot: SlotId, into: &mut Vec<Backup>);

    /// Sets a slot if the program has it.
    #[inline]
    fn set(&mut self, slot: Option<SlotId>, value: u64) {
        if let Some(slot) = slot {
            self.set_slot_to(slot, value);
        }
    }
}

impl Slots for State {
    #[inline]
    fn number(&self, slot: SlotId) -> u64 {
        match self {
            State::Interpreted(state) => state.slot(slot).low_u64(),
            State::Compiled(packet) => packet.slot_word(slot),
        }
    }

    fn ports(&self, slot: SlotId, into: &mut Vec<Backup>) {
        match self {
            State::Interpreted(state) => {
                let ports = state.slot(slot);
                add_ports((0..ports.width().div_ceil(64) as usize).map(|index| ports.word(index)), into);
            }
            State::Compiled(packet) => add_ports(packet.slot_words(slot).iter().copied(), into),
        }
    }

    #[inline]
    fn set_slot_to(&mut self, slot: SlotId, value: u64) {
        match self {
            State::Interpreted(state) => state.set_slot_to(slot, value),
            State::Compiled(packet) => packet.set_slot_to(slot, value),
        }
    }
}

impl Slots for InPlacePacket<'_> {
    #[inline]
    fn number(&self, slot: SlotId) -> u64 {
        self.slot_word(slot)
    }

    fn ports(&self, slot: SlotId, into: &mut Vec<Backup>) {
        add_ports(self.slot_words(slot).iter().copied(), into);
    }

    #[inline]
    fn set_slot_to(&mut self, slot: SlotId, value: u64) {
        InPlacePacket::set_slot_to(self, slot, value);
    }
}

/// Appends the ports whose bits are set in words, the least significant first. Their copies have replica id 0.
fn add_ports(words: impl Iterator<Item = u64>, into: &mut Vec<Backup>) {
    for (word, first) in words.zip((0..).step_by(64)) {
        let mut left = word;
        while left != 0 {
            into.push(Backup { port: PortId(first + left.trailing_zeros()), rid: 0 });
            left &= left - 1;
        }
    }
}

impl Clone for State {
    fn clone(&self) -> Self {
        match self {
            State::Interpreted(state) => State::Interpreted(state.clone()),
            State::Compiled(packet) => State::Compiled(packet.clone()),
        }
    }

    /// Copies a state into the memory of another one of the same executor.
    fn clone_from(&mut self, source: &Self) {
        match (self, source) {
            (State::Interpreted(state), State::Interpreted(source)) => state.clone_from(source),
            (State::Compiled(packet), State::Compiled(source)) => packet.as_mut().clone_from(source),
            (state, source) => *state = source.clone(),
        }
    }
}

impl State {
    pub fn interpreted(&self) -> Option<&PacketState> {
        match self {
            State::Interpreted(state) => Some(state),
            State::Compiled(_) => None,
        }
    }

    /// Returns the packet's bytes. Machine code may have changed them.
    pub fn data(&self) -> &[u8] {
        match self {
            State::Interpreted(state) => state.data(),
            State::Compiled(packet) => packet.data(),
        }
    }

    pub fn parser_error(&self) -> u32 {
        match self {
            State::Interpreted(state) => state.parser_error(),
            State::Compiled(packet) => packet.parser_error(),
        }
    }

    pub fn take_requests(&mut self) -> Vec<(Requested, LocId)> {
        match self {
            State::Interpreted(state) => state.take_requests(),
            State::Compiled(packet) if packet.has_requests() => packet.take_requests(),
            State::Compiled(_) => Vec::new(),
        }
    }

    /// Takes back the memory of requests that were taken.
    pub fn reuse_requests(&mut self, requests: Vec<(Requested, LocId)>) {
        if let State::Compiled(packet) = self {
            packet.reuse_requests(requests);
        }
    }

    /// Returns the length of all valid headers that live across blocks.
    pub fn header_bytes(&self, layout: &Layout) -> usize {
        match self {
            State::Interpreted(state) => {
                let valid = layout.headers.iter().map(|header| state.header(*header)).filter(|header| header.valid);
                valid.map(|header| header.len_bits()).sum::<usize>() / 8
            }
            State::Compiled(packet) => packet.header_bytes(),
        }
    }

    /// Returns the packet to send.
    pub fn finish(&mut self) -> Vec<u8> {
        match self {
            State::Interpreted(state) => state.finish(),
            State::Compiled(packet) => packet.take_output(),
        }
    }

    /// Takes the values of a field list from another packet. A packet and its copies use the same executor.
    pub fn keep(&mut self, from: &State, kept: &[FieldListItem]) {
        match (self, from) {
            (State::Interpreted(state), State::Interpreted(from)) => state.restore(&from.preserve(kept)),
            (State::Compiled(packet), State::Compiled(from)) => packet.keep(from, kept),
            _ => unreachable!("copies stay in the executor of the packet they are made from"),
        }
    }
}

/// The units of the plan.
pub(super) mod unit {
    /// Parser and ingress.
    pub const INGRESS: usize = 0;
    /// Egress and, unless an action is requested or the packet is dropped, the deparser.
    pub const EGRESS: usize = 1;
    /// Checksum computation and deparser.
    pub const DEPARSE: usize = 2;
    /// The parser alone, for copies of the packet as received.
    pub const PARSE: usize = 3;
    /// The whole pipeline of a packet, if no action is requested, it leaves by one port, and no queue delays it.
    pub const WHOLE: usize = 4;
    /// [`EGRESS`] of copies that pass one by one. It has no code in programs that make no such copies.
    pub const COPY: usize = 5;
}

/// Indices of the results that batches keep for packets of the unit for the whole pipeline.
pub(super) mod result {
    pub const EGRESS_PORT: usize = 0;
    /// Unspecified if the program has no such slot.
    pub const PRIORITY: usize = 1;
    /// Unspecified if the program has no such slot.
    pub const DROP_SITE: usize = 2;
}

/// Whether the requests of a packet, or of a copy, that passed egress hold. Nothing holds if the egress block, which is
/// this step, failed; a packet that fails in the deparser has been through egress.
pub(super) fn requests_hold(outcome: UnitOutcome, egress: usize) -> bool {
    !matches!(outcome, UnitOutcome::Failed(step, _) if step <= egress)
}

/// A program in machine code.
#[derive(Debug)]
pub(super) struct Machine {
    pub compiled: NativeProgram,
    /// Whether the packet as received may be requested after code ran on it.
    pub keeps_original: bool,
    /// Number of bytes at the start of each packet of a batch that are kept instead of the packet: code changes no
    /// others.
    pub kept_start: Option<usize>,
    /// The step of [`unit::WHOLE`] at which egress begins.
    pub egress_begins: usize,
    /// Whether the length that a packet has in egress is read.
    pub reads_length: bool,
    /// Whether [`unit::WHOLE`] runs on batches only. Packets that run alone pass [`unit::INGRESS`] and then
    /// [`unit::EGRESS`], which is a little slower and saves compile time.
    pub is_whole_batched_only: bool,
    /// Whether copies pass egress one by one, in the buffer of their packet.
    pub copies_pass: bool,
    /// The step of [`unit::COPY`] that runs the egress block.
    pub copy_egress_begins: usize,
    /// Whether no pass through egress requests another pass.
    pub copies_end: bool,
    /// Whether packets of a batch can set requests aside.
    pub requests_wait: bool,
    /// [`Layout::metadata`] in the frames of the machine code.
    pub metadata: SlotSet,
}

/// Maximum number of bytes at the start of a packet that are kept instead of the complete packet.
pub(super) const MAX_KEPT_START: usize = 64;

/// Whether the parser or ingress writes to a slot.
fn writes_early(program: &Program, layout: &Layout, slot: SlotId) -> bool {
    let blocks = layout.blocks;
    [blocks.parser, blocks.verify_checksum, blocks.ingress].iter().any(|body| jit::writes(program, *body, slot))
}

/// Returns the blocks behind the queues.
fn behind(layout: &Layout) -> [BodyId; 3] {
    let blocks = layout.blocks;
    [blocks.egress, blocks.compute_checksum, blocks.deparser]
}

/// Whether egress, or a packet that egress sends through the pipeline again, reads the length of the packet, which
/// changes with the headers that ingress adds and removes.
fn reads_length(program: &Program, layout: &Layout, length: SlotId) -> bool {
    let is_kept = |kept: &FieldListItem| matches!(kept, FieldListItem::Slot(kept) if *kept == length);
    behind(layout).iter().any(|body| jit::reads(program, *body, length))
        || program.field_lists.values().flatten().any(is_kept)
}

/// Returns the step that stops a packet of a batch with requests, unless these may wait.
fn stop(may_wait: MayWait) -> Step {
    let MayWait { clones, passes, .. } = may_wait;
    if clones || passes { Step::StopUnlessWaiting(may_wait) } else { Step::StopIfRequested }
}

/// Returns the switch's work between ingress and egress for a packet that continues at once.
fn between(program: &Program, layout: &Layout, drop_port: u32, may_wait: MayWait) -> Vec<Step> {
    let standard = layout.standard;
    let mut steps = vec![stop(may_wait)];
    steps.extend(standard.mcast_grp.map(|slot| Step::StopUnless(slot, 0)));
    steps.push(Step::DropIf(standard.egress_spec, u64::from(drop_port)));
    steps.extend(standard.replicas.map(|slot| Step::StopUnless(slot, 0)));
    steps.push(Step::Copy(standard.egress_port, standard.egress_spec));
    // The switch counts by what ingress chose; egress may write to these slots.
    steps.push(Step::Keep(result::EGRESS_PORT, standard.egress_port));
    steps.extend(standard.priority.map(|slot| Step::Keep(result::PRIORITY, slot)));
    steps.push(Step::Set(standard.egress_spec, u64::from(drop_port == 0)));
    let length = standard.packet_length.filter(|slot| reads_length(program, layout, *slot));
    steps.extend(length.map(Step::PresentLengthTo));
    let zero =
        [standard.instance_type, standard.enq_qdepth, standard.deq_qdepth, standard.deq_timedelta, standard.drop_site];
    steps.extend(zero.into_iter().flatten().map(|slot| Step::Set(slot, 0)));
    let times = [standard.egress_global_timestamp, standard.enq_timestamp];
    let clock = standard.ingress_global_timestamp.filter(|clock| !writes_early(program, layout, *clock));
    let set = |time| clock.map_or(Step::TimeTo(time), |clock| Step::Copy(time, clock));
    steps.extend(times.into_iter().flatten().map(set));
    steps
}

/// Returns the steps of the parser.
fn parse_steps(layout: &Layout) -> Vec<Step> {
    let mut steps = vec![Step::Run(layout.blocks.parser)];
    steps.extend(layout.standard.parser_error.map(Step::ErrorTo));
    steps.push(Step::Measure);
    steps
}

/// Returns the steps from the parser to the end of ingress.
fn ingress_steps(layout: &Layout) -> Vec<Step> {
    let mut steps: Vec<Step> = layout.standard.packet_length.map(Step::LengthTo).into_iter().collect();
    steps.extend(parse_steps(layout));
    steps.extend([Step::Run(layout.blocks.verify_checksum), Step::Run(layout.blocks.ingress)]);
    steps
}

/// Returns the steps from egress to the deparser. `stop` ends those of a packet with requests.
fn egress_steps(layout: &Layout, stop: Step) -> Vec<Step> {
    let (blocks, drop) = (layout.blocks, Step::DropIf(layout.standard.egress_spec, u64::from(layout.drop_port)));
    vec![Step::Run(blocks.egress), stop, drop, Step::Run(blocks.compute_checksum), Step::Run(blocks.deparser)]
}

/// Returns the steps of [`unit::WHOLE`], and the number of the step at which egress begins.
pub(super) fn whole_steps(program: &Program, layout: &Layout, waiting: [MayWait; 2]) -> (Vec<Step>, usize) {
    let mut whole = ingress_steps(layout);
    whole.extend(between(program, layout, layout.drop_port, waiting[0]));
    let egress_begins = whole.len();
    whole.extend(egress_steps(layout, stop(waiting[1])));
    (whole, egress_begins)
}

/// Indices of the inputs of [`unit::COPY`].
pub(super) mod input {
    pub const EGRESS_PORT: usize = 0;
    pub const EGRESS_RID: usize = 1;
}

/// Returns the switch's work for a copy that passes an open queue, except its length and the kind of instance.
fn for_copies(layout: &Layout, drop_port: u32) -> Vec<Step> {
    let standard = layout.standard;
    let mut steps = vec![Step::InputTo(input::EGRESS_PORT, standard.egress_port)];
    steps.extend(standard.egress_rid.map(|slot| Step::InputTo(input::EGRESS_RID, slot)));
    steps.push(Step::Set(standard.egress_spec, u64::from(drop_port == 0)));
    let zero = [standard.enq_qdepth, standard.deq_qdepth, standard.deq_timedelta, standard.drop_site];
    steps.extend(zero.into_iter().flatten().map(|slot| Step::Set(slot, 0)));
    let times = [standard.egress_global_timestamp, standard.enq_timestamp];
    steps.extend(times.into_iter().flatten().map(Step::TimeTo));
    steps
}

/// Whether packets have the same results in any order: no state that packets change can be read, and no random number
/// is drawn.
fn is_order_free(program: &Program) -> bool {
    let mut instrs = program.bodies.values().flat_map(|body| body.blocks.values()).flat_map(|block| &block.instrs);
    let keeps_state = |op: &Op| {
        matches!(op, Op::RegisterRead(..) | Op::RegisterWrite(..) | Op::MeterExecute(..) | Op::DirectMeterRead(..))
    };
    let has_order = |op: &Op| keeps_state(op) || matches!(op, Op::Random(..) | Op::BeginAtomic | Op::EndAtomic);
    !instrs.any(|instr| has_order(&instr.op)) && program.tables.values().all(|table| table.meter.is_none())
}

/// Returns the requests that may wait until all packets of a batch have run: after ingress, and after egress.
fn waiting(program: &Program, layout: &Layout, keeps_original: bool, copies_end: bool) -> [MayWait; 2] {
    let lists = || program.field_lists.values().flatten();
    let kept = |item: &FieldListItem| if let FieldListItem::Slot(slot) = item { Some(*slot) } else { None };
    let has_requests = keeps_original || !copies_end;
    if !has_requests || !is_order_free(program) || lists().any(|item| kept(item).is_none()) {
        return [MayWait::default(); 2];
    }
    // The values of field lists are those at the end of egress, unless the packet as received is requested.
    let blocks = [layout.blocks.compute_checksum, layout.blocks.deparser];
    let changes = |slot| blocks.iter().any(|body| jit::writes(program, *body, slot));
    let recirculates = !keeps_original && !lists().filter_map(kept).any(changes);
    let after_ingress = MayWait { clones: copies_end, passes: true, resubmission_ends: true };
    [after_ingress, MayWait { clones: false, passes: recirculates, resubmission_ends: false }]
}

impl Machine {
    /// Compiles a program, unless `is_cancelled` becomes true meanwhile.
    pub fn new(
        program: &Arc<Program>,
        layout: &Layout,
        probe: Option<Probe>,
        is_cancelled: &AtomicBool,
    ) -> Result<Machine, Unsupported> {
        Self::with_speed(program, layout, probe, Speed::Run, is_cancelled)
    }

    /// Compiles like [`Machine::new`] with this goal.
    pub fn with_speed(
        program: &Arc<Program>,
        layout: &Layout,
        probe: Option<Probe>,
        speed: Speed,
        is_cancelled: &AtomicBool,
    ) -> Result<Machine, Unsupported> {
        let (blocks, standard, drop_port) = (layout.blocks, layout.standard, layout.drop_port);
        let (parse, ingress) = (parse_steps(layout), ingress_steps(layout));
        let deparse = vec![Step::Run(blocks.compute_checksum), Step::Run(blocks.deparser)];
        let mut instrs = program.bodies.values().flat_map(|body| body.blocks.values()).flat_map(|block| &block.instrs);
        let requests_original =
            instrs.any(|instr| matches!(&instr.op, Op::Request(Request::Clone { .. } | Request::Resubmit(_))));
        let has_rows = program.has_rows();
        // A packet that waits for a row runs again as it was received.
        let before_egress = [blocks.parser, blocks.verify_checksum, blocks.ingress, blocks.egress];
        let changes_before_rows =
            has_rows && jit::changes_headers_before(program, &before_egress, |op| program.uses_row(op));
        let keeps_original = requests_original || changes_before_rows;
        let parsed = jit::longest_parse(program, blocks.parser).filter(|_| changes_before_rows && !requests_original);
        let kept_start = parsed.map(|bits| bits.div_ceil(8) as usize).filter(|bytes| *bytes <= MAX_KEPT_START);
        let asks_for_pass = |request: &Request| matches!(request, Request::Clone { .. } | Request::Recirculate(_));
        let copies_end = !behind(layout).iter().any(|body| jit::requests(program, *body, asks_for_pass));
        // A packet that waits for a row in a later pass has to keep the state from the previous pass.
        let waiting = match has_rows {
            true => [MayWait::default(); 2],
            false => waiting(program, layout, requests_original, copies_end),
        };
        let egress = |stop| egress_steps(layout, stop);
        let (whole, egress_begins) = whole_steps(program, layout, waiting);
        let unit = |steps, fresh, next: &[usize]| Unit { steps, fresh, next: next.to_vec(), ..Unit::default() };
        let is_multicast =
            standard.replicas.is_some() || standard.mcast_grp.is_some_and(|group| writes_early(program, layout, group));
        let port = standard.egress_port;
        let results = vec![port, standard.priority.unwrap_or(port), standard.drop_site.unwrap_or(port)];
        let is_whole_batched_only = speed.saves_compile_time(program, &whole);
        let for_copies = for_copies(layout, drop_port);
        let copy_egress_begins = for_copies.len();
        let copy = Unit {
            results: Some(results.clone()),
            runs_on_copies: true,
            ..unit([for_copies, egress(Step::StopIfRequested)].concat(), false, &[])
        };
        let whole = Unit {
            results: Some(results),
            is_batched_only: is_whole_batched_only,
            ..unit(whole, true, &[unit::EGRESS, unit::DEPARSE, unit::COPY])
        };
        let given = [standard.ingress_global_timestamp, standard.instance_type];
        let mut plan = Plan {
            units: vec![
                unit(ingress, true, &[unit::EGRESS, unit::COPY]),
                unit(egress(Step::StopIfRequested), false, &[unit::DEPARSE, unit::EGRESS]),
                unit(deparse, false, &[]),
                unit(parse, true, &[unit::EGRESS, unit::COPY]),
                whole,
            ],
            visible: Some(standard.all()),
            given: given.into_iter().flatten().chain([standard.ingress_port]).collect(),
            deparser: Some(blocks.deparser),
        };
        // Copies that may wait for rows need packets of their own.
        if (requests_original || is_multicast) && !has_rows {
            plan.units.push(copy);
        } else {
            plan.units.iter_mut().for_each(|unit| unit.next.retain(|next| *next != unit::COPY));
        }
        let has_copies = plan.units.len() > unit::COPY;
        let compiled = match probe {
            Some(probe) => NativeProgram::probed(program, &plan, speed, probe)?,
            None => NativeProgram::cancellable(program, &plan, speed, is_cancelled)?,
        };
        let reads_length = standard.packet_length.is_some_and(|slot| reads_length(program, layout, slot));
        let requests_wait = waiting != [MayWait::default(); 2];
        let metadata = compiled.slot_set(&layout.metadata);
        let copies_pass = has_copies && compiled.runs_on_copies(unit::COPY);
        Ok(Machine {
            compiled,
            keeps_original,
            kept_start,
            egress_begins,
            reads_length,
            is_whole_batched_only,
            copies_pass,
            copy_egress_begins,
            copies_end,
            requests_wait,
            metadata,
        })
    }
}
