//! From events to a trace.

use engine::{Event, PacketState, Watch, WriteTarget};
use ir::{BlockId, BodyId, BodyKind, Expr, HeaderId, LocId, Program, SlotId, Terminator};

use bits::Bits;

use super::model::{Change, Outcome, Pass, PassKind, Section, Step, Trace, What};
use super::{Recorder, Value, shown};
use crate::{Frame, Time};

/// The most steps a trace has. A program that loops through the switch ends long before.
const MAX_STEPS: usize = 10_000;

/// The headers of a packet as the parser left them.
type Parsed = Vec<(HeaderId, engine::HeaderState)>;

/// A body that runs.
#[derive(Debug)]
struct Running {
    body: BodyId,
    /// The block that it was last seen to go on with.
    block: BlockId,
    /// What it did, for all but the outermost, whose steps are its section's.
    steps: Vec<Step>,
}

/// Makes a [`Trace`] of one frame.
#[derive(Debug)]
pub struct Tracer {
    trace: Trace,
    /// What the parser found, by pass; copies have their parent's.
    parsed: Vec<Parsed>,
    /// The pass whose block runs.
    pass: usize,
    /// The packet's state as events tell it, to know what was there before a write.
    shadow: Option<PacketState>,
    /// Bodies that run, outermost first.
    bodies: Vec<Running>,
    steps: usize,
}

impl Tracer {
    /// A trace of this frame, with no pass yet.
    pub fn new(now: Time, frame: &Frame) -> Tracer {
        let trace =
            Trace { time_ns: now.as_ns(), port: frame.port.0, data: hex(&frame.data), passes: Vec::new(), cut: false };
        Tracer { trace, parsed: Vec::new(), pass: 0, shadow: None, bodies: Vec::new(), steps: 0 }
    }

    /// What was recorded.
    pub fn finish(self) -> Trace {
        self.trace
    }

    fn push(&mut self, program: &Program, what: What, loc: LocId) {
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

    /// An action ended: what it did belongs to the table that ran it.
    fn close_action(&mut self) {
        let Some(Running { steps: done, .. }) = self.bodies.pop() else { return };
        let into = match self.bodies.as_mut_slice() {
            [_, .., running] => Some(&mut running.steps),
            _ => self.trace.passes.get_mut(self.pass).and_then(|p| p.sections.last_mut()).map(|s| &mut s.steps),
        };
        let Some(into) = into else { return };
        match into.last_mut() {
            Some(Step { what: What::Table { steps, .. }, .. }) => steps.extend(done),
            _ => into.extend(done),
        }
    }

    fn block_name(&self, program: &Program, block: BlockId) -> String {
        let body = self.bodies.last().map(|running| &program.bodies[running.body]);
        body.and_then(|body| body.blocks.get(block)).map_or(String::new(), |block| block.name.clone())
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
                let old = Value::new(name.as_str(), was);
                *was = value.clone();
                (old, Value::new(name, value))
            }
            WriteTarget::Nowhere => return,
        };
        // The compiler's own names mean nothing to a reader.
        if let Some(name) = shown::author_name(&new.name).map(str::to_owned) {
            let (old, new) = (Value { name: name.clone(), ..old }, Value { name, ..new });
            self.push(program, What::Write { old, new }, loc);
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
                fields.push(Value::new(field.name.as_str(), &value));
                if let Some(slot) = shadow.header_mut(header).fields.get_mut(index) {
                    *slot = value;
                }
            }
            shadow.header_mut(header).valid = true;
        }
        let header = shown::header(program, header).to_owned();
        self.push(program, What::Extract { header, at_bit, bits, fields }, loc);
    }

    /// The terminator of the body that runs which decides next. Blocks that only lead on are not told of.
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

    /// The body that runs goes on with a block.
    fn goes_to(&mut self, block: BlockId) {
        if let Some(running) = self.bodies.last_mut() {
            running.block = block;
        }
    }

    /// What decided and its value.
    fn shown_key(&self, program: &Program, key: &Expr, value: &Bits) -> Value {
        match shown::expr(program, key, self.shadow.as_ref()) {
            Some(name) => Value::new(name, value),
            None => Value::symbolic("", value, shown::key(value)),
        }
    }

    fn branched(&mut self, program: &Program, value: bool, target: BlockId, loc: LocId) {
        let condition = match self.deciding(program) {
            Some(Terminator::Branch { condition, .. }) => shown::expr(program, condition, self.shadow.as_ref()),
            _ => None,
        };
        self.goes_to(target);
        self.push(program, What::Branch { condition, value }, loc);
    }

    fn switched(&mut self, program: &Program, value: &Bits, target: BlockId, loc: LocId) {
        let subject = match self.deciding(program) {
            Some(Terminator::Switch { subject, .. }) => self.shown_key(program, subject, value),
            _ => Value::symbolic("", value, shown::key(value)),
        };
        self.goes_to(target);
        self.push(program, What::Switch { subject }, loc);
    }

    fn selected(&mut self, program: &Program, values: &[Bits], case: Option<BlockId>, loc: LocId) {
        let keys = match self.deciding(program) {
            Some(Terminator::Select { keys, .. }) => {
                keys.iter().zip(values).map(|(key, value)| self.shown_key(program, key, value)).collect()
            }
            _ => values.iter().map(|value| Value::symbolic("", value, shown::key(value))).collect(),
        };
        let target = case.map(|block| self.block_name(program, block));
        if let Some(block) = case {
            self.goes_to(block);
        }
        self.push(program, What::Select { keys, target }, loc);
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
            self.push(program, What::Copy { from: name(from), to: name(to) }, loc);
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
        let (egress_port, sections, outcome) = (None, Vec::new(), Outcome::Running);
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
        self.push_step(Step { what: What::Note { text: text() }, at: None });
    }

    fn end(&mut self, pass: usize, outcome: impl FnOnce() -> Outcome) {
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
        self.end(pass, || Outcome::Sent { port, to_controller, data: hex(data), changes });
    }
}

impl Watch for Tracer {
    fn event(&mut self, program: &Program, event: Event<'_>) {
        let name = |header: HeaderId| shown::header(program, header).to_owned();
        match event {
            Event::BodyBegins { body } => {
                self.bodies.push(Running { body, block: BlockId::from_u32(0), steps: Vec::new() });
            }
            Event::BodyEnds { body, .. } => {
                if program.bodies[body].kind == BodyKind::Action && self.bodies.len() > 1 {
                    self.close_action();
                }
            }
            Event::State { block, .. } => {
                self.goes_to(block);
                let step = What::State { name: self.block_name(program, block) };
                self.push(program, step, LocId::from_u32(0));
            }
            Event::Extracted { header, at_bit, bits, loc } => self.extracted(program, header, at_bit, bits, loc),
            Event::Advanced { bits, loc } => self.push(program, What::Advance { bits }, loc),
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
                    self.push(program, What::Validity { header: name(header), valid }, loc);
                }
            }
            Event::Applied { table, key, entry, member, action, args, loc } => {
                let step = What::Table {
                    table: program.tables[table].name.clone(),
                    key: program.tables[table]
                        .keys
                        .iter()
                        .zip(key)
                        .map(|(k, v)| Value::new(k.name.as_str(), v))
                        .collect(),
                    hit: entry.is_some(),
                    entry: entry.map(|entry| shown::entry(program, table, entry)),
                    member: member.map(|(_, member)| member),
                    action: action.map(|action| program.actions[action].name.clone()),
                    args: action.map_or(Vec::new(), |action| {
                        let params = &program.actions[action].params;
                        params.iter().zip(args).map(|(param, arg)| Value::new(param.name.as_str(), arg)).collect()
                    }),
                    steps: Vec::new(),
                };
                self.push(program, step, loc);
            }
            Event::RegisterRead { register, index, value, loc } => {
                let register = program.registers[register].name.clone();
                let value = Value::new(register.as_str(), value);
                self.push(program, What::Register { register, index, value, written: false }, loc);
            }
            Event::RegisterWritten { register, index, value, loc } => {
                let register = program.registers[register].name.clone();
                let value = Value::new(register.as_str(), value);
                self.push(program, What::Register { register, index, value, written: true }, loc);
            }
            Event::Counted { counter, index, loc } => {
                let counter = program.counters[counter].name.clone();
                self.push(program, What::Count { counter, index }, loc);
            }
            Event::Metered { meter, index, colour, loc } => {
                let meter = program.meters[meter].name.clone();
                let colour = format!("{colour:?}").to_lowercase();
                self.push(program, What::Meter { meter, index, colour }, loc);
            }
            Event::Computed { algorithm, data, value, loc } => {
                let algorithm = format!("{algorithm:?}").to_lowercase();
                let value = Value::new("checksum", value);
                self.push(program, What::Compute { algorithm, data: hex(data), value }, loc);
            }
            Event::Requested { request, loc } => {
                self.push(program, What::Request { request: shown::request(program, request) }, loc);
            }
            Event::Emitted { header, bits, loc } => {
                self.push(program, What::Emit { header: name(header), bits }, loc);
            }
            Event::ParserError { error, loc } => {
                let error = program.errors.get(error as usize).cloned().unwrap_or_else(|| error.to_string());
                self.push(program, What::ParserError { error }, loc);
            }
            Event::Log { text, loc } => self.push(program, What::Note { text: text.to_string() }, loc),
        }
    }
}

/// Bytes in hexadecimal.
fn hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn field_name(program: &Program, header: HeaderId, field: u32) -> String {
    let layout = program.layout(header);
    let field = layout.fields.get(field as usize).map_or("", |field| field.name.as_str());
    format!("{}.{field}", program.headers[header].name)
}

fn slot_value(program: &Program, slot: SlotId, value: &Bits) -> Value {
    let name = program.slots[slot].name.as_str();
    if name.ends_with(".parser_error")
        && let Some(error) = program.errors.get(value.low_u64() as usize)
    {
        return Value::symbolic(name, value, error.as_str());
    }
    Value::new(name, value)
}

/// What is no longer as the parser found it, header by header.
fn changes(program: &Program, parsed: &Parsed, state: &PacketState) -> Vec<Change> {
    let mut changes = Vec::new();
    for (id, _) in program.headers.iter().filter(|(_, header)| !header.local) {
        let now = state.header(id);
        let name = || program.headers[id].name.clone();
        match (parsed.iter().find(|(parsed, _)| *parsed == id), now.valid) {
            (None, true) => changes.push(Change::Added { header: name() }),
            (Some(_), false) => changes.push(Change::Removed { header: name() }),
            (Some((_, was)), true) => {
                for (index, (old, new)) in was.fields.iter().zip(&now.fields).enumerate().filter(|(_, (o, n))| o != n) {
                    let name = field_name(program, id, index as u32);
                    changes.push(Change::Field { old: Value::new(name.as_str(), old), new: Value::new(name, new) });
                }
            }
            (None, false) => {}
        }
    }
    changes
}
