//! Constructs a trace from events.

use engine::{Event, PacketState, Watch, WriteTarget};
use ir::{BlockId, BodyId, BodyKind, Expr, HeaderId, LocId, Program, SlotId, Terminator};

use bits::Bits;

use super::model::{HeaderChange, Pass, PassKind, PassOutcome, Section, Step, StepKind, Trace};
use super::{Recorder, TracedValue, shown};
use crate::{Frame, Time};

/// Maximum number of steps in a trace. A program that loops through the switch ends long before.
const MAX_STEPS: usize = 10_000;

/// The headers of a packet after the parser.
type ParsedHeaders = Vec<(HeaderId, engine::HeaderState)>;

/// A body in execution.
#[derive(Debug)]
struct RunningBody {
    body: BodyId,
    /// The last block that it was seen to enter.
    block: BlockId,
    /// Its steps, except for the outermost body, whose steps are its section's.
    steps: Vec<Step>,
}

/// A recorder that makes a [`Trace`] of one frame.
#[derive(Debug)]
pub struct Tracer {
    trace: Trace,
    /// Headers after the parser, by pass; copies have their parent's.
    parsed: Vec<ParsedHeaders>,
    /// The pass whose block runs.
    pass: usize,
    /// The packet's state as reconstructed from events, for the values before a write.
    shadow: Option<PacketState>,
    /// Bodies in execution, outermost first.
    bodies: Vec<RunningBody>,
    steps: usize,
}

impl Tracer {
    /// Starts a trace of this frame, without passes.
    pub fn new(now: Time, frame: &Frame) -> Tracer {
        let trace =
            Trace { time_ns: now.as_ns(), port: frame.port.0, data: hex(&frame.data), passes: Vec::new(), cut: false };
        Tracer { trace, parsed: Vec::new(), pass: 0, shadow: None, bodies: Vec::new(), steps: 0 }
    }

    /// Returns the trace.
    pub fn finish(self) -> Trace {
        self.trace
    }

    fn push(&mut self, program: &Program, what: StepKind, loc: LocId) {
        let at = (loc.as_u32() != 0).then(|| program.locs.get(loc).map(ToString::to_string)).flatten();
        self.push_step(Step { what, at });
    }

    fn push_step(&mut self, step: Step) {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            self.trace.cut = true;
            return;
        }
        if let [_, .., running] = self.bodies.as_mut_slice() {
            return running.steps.push(step);
        }
        if let Some(section) = self.trace.passes.get_mut(self.pass).and_then(|pass| pass.sections.last_mut()) {
            section.steps.push(step);
        }
    }

    /// Closes an action: its steps belong to the table that ran it.
    fn close_action(&mut self) {
        let Some(RunningBody { steps: done, .. }) = self.bodies.pop() else { return };
        let into = match self.bodies.as_mut_slice() {
            [_, .., running] => Some(&mut running.steps),
            _ => self.trace.passes.get_mut(self.pass).and_then(|p| p.sections.last_mut()).map(|s| &mut s.steps),
        };
        let Some(into) = into else { return };
        match into.last_mut() {
            Some(Step { what: StepKind::Table { steps, .. }, .. }) => steps.extend(done),
            _ => into.extend(done),
        }
    }

    fn block_name(&self, program: &Program, block: BlockId) -> String {
        let body = self.bodies.last().map(|running| &program.bodies[running.body]);
        body.and_then(|body| body.blocks.get(block)).map_or(String::new(), |block| block.name.clone())
    }

    /// Returns the name of the parser state that a block is: a block that only returns is `accept` (P4_16 13.3).
    fn state_name(&self, program: &Program, block: BlockId) -> String {
        let body = self.bodies.last().map(|running| &program.bodies[running.body]);
        match body.and_then(|body| body.blocks.get(block)) {
            Some(end) if !end.is_state && end.instrs.is_empty() && matches!(end.terminator, Terminator::Return) => {
                "accept".to_owned()
            }
            _ => self.block_name(program, block),
        }
    }

    fn write(&mut self, program: &Program, place: WriteTarget, value: &Bits, loc: LocId) {
        let Some(shadow) = &mut self.shadow else { return };
        let (old, new) = match place {
            WriteTarget::Slot(slot) => {
                let old = slot_value(program, slot, shadow.slot(slot));
                shadow.set_slot(slot, value.clone());
                (old, slot_value(program, slot, value))
            }
            WriteTarget::Field(header, field) => {
                let name = field_name(program, header, field);
                let Some(was) = shadow.header_mut(header).fields.get_mut(field as usize) else { return };
                let old = TracedValue::new(name.as_str(), was);
                *was = value.clone();
                (old, TracedValue::new(name, value))
            }
            WriteTarget::Nowhere => return,
        };
        // The compiler's own names mean nothing to a reader.
        if let Some(name) = shown::author_name(&new.name).map(str::to_owned) {
            let (old, new) = (TracedValue { name: name.clone(), ..old }, TracedValue { name, ..new });
            self.push(program, StepKind::Write { old, new }, loc);
        }
    }

    fn extracted(&mut self, program: &Program, header: HeaderId, at_bit: usize, bits: usize, loc: LocId) {
        let layout = program.layout(header);
        let mut fields = Vec::new();
        if let Some(shadow) = &mut self.shadow {
            let variable = (bits as u32).saturating_sub(layout.fixed_bits());
            let mut at = at_bit;
            for (index, field) in layout.fields.iter().enumerate() {
                let width = if field.varbit { variable } else { field.width };
                if at + width as usize > shadow.data().len() * 8 {
                    break;
                }
                let value = Bits::read(shadow.data(), at, width);
                at += width as usize;
                fields.push(TracedValue::new(field.name.as_str(), &value));
                if let Some(slot) = shadow.header_mut(header).fields.get_mut(index) {
                    *slot = value;
                }
            }
            shadow.header_mut(header).valid = true;
        }
        let header = shown::header(program, header).to_owned();
        self.push(program, StepKind::Extract { header, at_bit, bits, fields }, loc);
    }

    /// Returns the next terminator of the running body that makes a decision. Unconditional jumps are not reported.
    fn deciding<'p>(&self, program: &'p Program) -> Option<&'p Terminator> {
        let running = self.bodies.last()?;
        let blocks = &program.bodies[running.body].blocks;
        let mut at = running.block;
        for _ in 0..blocks.len() {
            match &blocks.get(at)?.terminator {
                Terminator::Goto(to) => at = *to,
                terminator => return Some(terminator),
            }
        }
        None
    }

    /// Records that the running body enters a block.
    fn goes_to(&mut self, block: BlockId) {
        if let Some(running) = self.bodies.last_mut() {
            running.block = block;
        }
    }

    /// Returns a key with its value.
    fn shown_key(&self, program: &Program, key: &Expr, value: &Bits) -> TracedValue {
        match shown::expr(program, key, self.shadow.as_ref()) {
            Some(name) => TracedValue::new(name, value),
            None => TracedValue::symbolic("", value, shown::key(value)),
        }
    }

    fn branched(&mut self, program: &Program, value: bool, target: BlockId, loc: LocId) {
        let condition = match self.deciding(program) {
            Some(Terminator::Branch { condition, .. }) => shown::expr(program, condition, self.shadow.as_ref()),
            _ => None,
        };
        self.goes_to(target);
        self.push(program, StepKind::Branch { condition, value }, loc);
    }

    fn switched(&mut self, program: &Program, value: &Bits, target: BlockId, loc: LocId) {
        let subject = match self.deciding(program) {
            Some(Terminator::Switch { subject, .. }) => self.shown_key(program, subject, value),
            _ => TracedValue::symbolic("", value, shown::key(value)),
        };
        self.goes_to(target);
        self.push(program, StepKind::Switch { subject }, loc);
    }

    fn selected(&mut self, program: &Program, values: &[Bits], case: Option<BlockId>, loc: LocId) {
        let keys = match self.deciding(program) {
            Some(Terminator::Select { keys, .. }) => {
                keys.iter().zip(values).map(|(key, value)| self.shown_key(program, key, value)).collect()
            }
            _ => values.iter().map(|value| TracedValue::symbolic("", value, shown::key(value))).collect(),
        };
        let target = case.map(|block| self.state_name(program, block));
        if let Some(block) = case {
            self.goes_to(block);
        }
        self.push(program, StepKind::Select { keys, target }, loc);
    }

    fn copied(&mut self, program: &Program, to: Option<HeaderId>, from: Option<HeaderId>, loc: LocId) {
        if let (Some(shadow), Some(to)) = (&mut self.shadow, to) {
            let copy = match from {
                Some(from) => shadow.header(from).clone(),
                None => engine::HeaderState::new(program.layout(to)),
            };
            *shadow.header_mut(to) = copy;
        }
        let name = |header: Option<HeaderId>| header.map(|header| shown::header(program, header).to_owned());
        if to.is_none_or(|to| shown::author_name(&program.headers[to].name).is_some()) {
            self.push(program, StepKind::Copy { from: name(from), to: name(to) }, loc);
        }
    }
}

impl Recorder for Tracer {
    fn records(&self) -> bool {
        true
    }

    fn begin(&mut self, parent: Option<usize>, kind: PassKind, bytes: usize) -> usize {
        let parsed = parent.and_then(|parent| self.parsed.get(parent)).cloned().unwrap_or_default();
        self.parsed.push(parsed);
        let (egress_port, sections, outcome) = (None, Vec::new(), PassOutcome::Running);
        self.trace.passes.push(Pass { parent, kind, bytes, egress_port, sections, outcome });
        self.trace.passes.len() - 1
    }

    fn section(&mut self, pass: usize, role: &str, program: &Program, body: BodyId, state: &PacketState) {
        self.pass = pass;
        self.bodies.clear();
        self.shadow = Some(state.clone());
        if let Some(pass) = self.trace.passes.get_mut(pass) {
            let body = program.bodies[body].name.clone();
            pass.sections.push(Section { role: role.to_string(), body, steps: Vec::new() });
        }
    }

    fn parsed(&mut self, pass: usize, program: &Program, state: &PacketState) {
        if let Some(parsed) = self.parsed.get_mut(pass) {
            let headers = program.headers.keys().map(|id| (id, state.header(id)));
            *parsed = headers.filter(|(_, header)| header.valid).map(|(id, h)| (id, h.clone())).collect();
        }
    }

    fn egress(&mut self, pass: usize, port: u32) {
        if let Some(pass) = self.trace.passes.get_mut(pass) {
            pass.egress_port = Some(port);
        }
    }

    fn note(&mut self, pass: usize, text: impl FnOnce() -> String) {
        self.pass = pass;
        self.bodies.clear();
        self.push_step(Step { what: StepKind::Note { text: text() }, at: None });
    }

    fn end(&mut self, pass: usize, outcome: impl FnOnce() -> PassOutcome) {
        if let Some(pass) = self.trace.passes.get_mut(pass) {
            pass.outcome = outcome();
        }
    }

    fn sent(
        &mut self,
        pass: usize,
        port: u32,
        to_controller: bool,
        data: &[u8],
        program: &Program,
        state: &PacketState,
    ) {
        let changes = self.parsed.get(pass).map_or(Vec::new(), |parsed| changes(program, parsed, state));
        self.end(pass, || PassOutcome::Sent { port, to_controller, data: hex(data), changes });
    }
}

impl Watch for Tracer {
    fn event(&mut self, program: &Program, event: Event<'_>) {
        let name = |header: HeaderId| shown::header(program, header).to_owned();
        match event {
            Event::BodyBegins { body } => {
                self.bodies.push(RunningBody { body, block: BlockId::from_u32(0), steps: Vec::new() });
            }
            Event::BodyEnds { body, .. } => {
                if program.bodies[body].kind == BodyKind::Action && self.bodies.len() > 1 {
                    self.close_action();
                }
            }
            Event::State { block, .. } => {
                self.goes_to(block);
                let step = StepKind::State { name: self.block_name(program, block) };
                self.push(program, step, LocId::from_u32(0));
            }
            Event::Extracted { header, at_bit, bits, loc } => self.extracted(program, header, at_bit, bits, loc),
            Event::Advanced { bits, loc } => self.push(program, StepKind::Advance { bits }, loc),
            Event::Selected { keys, case, loc } => self.selected(program, keys, case.map(|(_, block)| block), loc),
            Event::Branched { condition, target, loc } => self.branched(program, condition, target, loc),
            Event::Switched { subject, target, loc } => self.switched(program, subject, target, loc),
            Event::Assigned { place, value, loc } => self.write(program, place, value, loc),
            Event::Copied { to, from, loc } => self.copied(program, to, from, loc),
            Event::Validity { header, valid, loc } => {
                if let Some(shadow) = &mut self.shadow {
                    shadow.header_mut(header).valid = valid;
                }
                if shown::author_name(&program.headers[header].name).is_some() {
                    self.push(program, StepKind::Validity { header: name(header), valid }, loc);
                }
            }
            Event::Applied { table, key, entry, member, action, args, loc, .. } => {
                let step = StepKind::Table {
                    table: program.tables[table].name.clone(),
                    key: program.tables[table]
                        .keys
                        .iter()
                        .zip(key)
                        .map(|(k, v)| TracedValue::new(k.name.as_str(), v))
                        .collect(),
                    hit: entry.is_some(),
                    entry: entry.map(|entry| shown::entry(program, table, entry)),
                    member: member.map(|(_, member)| member),
                    action: action.map(|action| program.actions[action].name.clone()),
                    args: action.map_or(Vec::new(), |action| {
                        let params = &program.actions[action].params;
                        params.iter().zip(args).map(|(param, arg)| TracedValue::new(param.name.as_str(), arg)).collect()
                    }),
                    steps: Vec::new(),
                };
                self.push(program, step, loc);
            }
            Event::RegisterRead { register, index, value, loc } => {
                let register = program.registers[register].name.clone();
                let value = TracedValue::new(register.as_str(), value);
                self.push(program, StepKind::Register { register, index, value, written: false }, loc);
            }
            Event::RegisterWritten { register, index, value, loc } => {
                let register = program.registers[register].name.clone();
                let value = TracedValue::new(register.as_str(), value);
                self.push(program, StepKind::Register { register, index, value, written: true }, loc);
            }
            Event::Counted { counter, index, loc } => {
                let counter = program.counters[counter].name.clone();
                self.push(program, StepKind::Count { counter, index }, loc);
            }
            Event::Metered { meter, index, colour, loc } => {
                let meter = program.meters[meter].name.clone();
                let colour = format!("{colour:?}").to_lowercase();
                self.push(program, StepKind::Meter { meter, index, colour }, loc);
            }
            Event::Computed { algorithm, data, value, loc } => {
                let algorithm = format!("{algorithm:?}").to_lowercase();
                let value = TracedValue::new("checksum", value);
                self.push(program, StepKind::Compute { algorithm, data: hex(data), value }, loc);
            }
            Event::Requested { request, loc } => {
                self.push(program, StepKind::Request { request: shown::request(program, request) }, loc);
            }
            Event::Emitted { header, bits, loc } => {
                self.push(program, StepKind::Emit { header: name(header), bits }, loc);
            }
            Event::ParserError { error, loc } => {
                let error = program.errors.get(error as usize).cloned().unwrap_or_else(|| error.to_string());
                self.push(program, StepKind::ParserError { error }, loc);
            }
            Event::Log { text, loc } => self.push(program, StepKind::Note { text: text.to_string() }, loc),
        }
    }
}

/// Renders bytes in hexadecimal.
fn hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn field_name(program: &Program, header: HeaderId, field: u32) -> String {
    let layout = program.layout(header);
    let field = layout.fields.get(field as usize).map_or("", |field| field.name.as_str());
    format!("{}.{field}", program.headers[header].name)
}

fn slot_value(program: &Program, slot: SlotId, value: &Bits) -> TracedValue {
    let name = program.slots[slot].name.as_str();
    if name.ends_with(".parser_error")
        && let Some(error) = program.errors.get(value.low_u64() as usize)
    {
        return TracedValue::symbolic(name, value, error.as_str());
    }
    TracedValue::new(name, value)
}

/// Returns the differences to the parsed headers, header by header.
fn changes(program: &Program, parsed: &ParsedHeaders, state: &PacketState) -> Vec<HeaderChange> {
    let mut changes = Vec::new();
    for (id, _) in program.headers.iter().filter(|(_, header)| !header.local) {
        let now = state.header(id);
        let name = || program.headers[id].name.clone();
        match (parsed.iter().find(|(parsed, _)| *parsed == id), now.valid) {
            (None, true) => changes.push(HeaderChange::Added { header: name() }),
            (Some(_), false) => changes.push(HeaderChange::Removed { header: name() }),
            (Some((_, was)), true) => {
                for (index, (old, new)) in was.fields.iter().zip(&now.fields).enumerate().filter(|(_, (o, n))| o != n) {
                    let name = field_name(program, id, index as u32);
                    changes.push(HeaderChange::Field {
                        old: TracedValue::new(name.as_str(), old),
                        new: TracedValue::new(name, new),
                    });
                }
            }
            (None, false) => {}
        }
    }
    changes
}
