//! Emits the code of a pipeline.
//!
//! ```text
//! r6 the context   r7 start of the packet   r8 scratch memory   r9 end of the packet
//! r1 to r4 values of expressions     r5 the tables that the packet sees   r0 anything
//! ```
//!
//! Slots, kept fields and all that must survive a join of paths are words of scratch memory. The verifier does not
//! track memory of maps, so it need not tell paths apart that differ in these values only.

mod atomic;
mod body;
mod commit;
mod compile;
mod expr;
mod hash;
mod headers;
mod meter;
mod order;
mod packet;
mod partial;
mod prefixes;
mod profile;
mod reason;
mod register;
mod rules;
mod scratch;
mod table;
mod value_set;

use std::collections::{BTreeMap, BTreeSet};

use engine::Step;
use ir::{BodyKind, Expr, LocId, MeterId, Program, SlotId, TableId};

use crate::asm::{AccessSize, Alu, AluOperand, AsmError, Assembly, Cond, Instruction, Label, Links, MapRef, Reg};
use crate::layout::{GATE_OPEN, RegionLayout, Unsupported};
use crate::usage::Usage;
use crate::{KernelPipeline, uapi};
pub(crate) use commit::{PORT_LENGTH_SHIFT, PORT_RECEIVES};
pub use compile::compile;
pub(crate) use hash::{CRC_TABLE_WORDS, Crc};
use headers::EmitSite;
use meter::MeterSite;
pub use order::{HAND_OVER_MARK, MAX_FOLLOWED, MAX_WAITING};
pub use reason::HandOverReason;
use register::RegisterSite;
use scratch::{Scratch, ScratchWord};

const R0: Reg = Reg(0);
const R1: Reg = Reg(1);
const R2: Reg = Reg(2);
const R3: Reg = Reg(3);
const R4: Reg = Reg(4);
/// The start of the copy of the tables that the packet uses.
const TABLES: Reg = Reg(5);
const CONTEXT: Reg = Reg(6);
const PACKET: Reg = Reg(7);
const SCRATCH: Reg = Reg(8);
const PACKET_END: Reg = Reg(9);

/// Maximum number of instructions of a program. The verifier processes at most a million.
const MAX_INSTRUCTIONS: usize = 200_000;

/// A place at which the code hands packets over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HandOver {
    /// The place in the program; the unknown place if there is none.
    pub loc: LocId,
    /// The reason.
    pub reason: HandOverReason,
}

/// The code of a pipeline.
#[derive(Clone, Debug)]
pub struct KernelCode {
    code: Assembly,
    /// The memory that the code uses.
    pub layout: RegionLayout,
    /// The places at which packets are handed over, in order of their places in the program, each once.
    pub hand_overs: Vec<HandOver>,
    /// Whether some path leads to a port.
    pub can_forward: bool,
    /// Whether some path leads to a drop.
    pub can_drop: bool,
}

impl KernelCode {
    /// Returns the tables that the code looks up, with the maximum number of their entries.
    pub fn tables(&self) -> impl Iterator<Item = (TableId, u32)> {
        self.layout.tables.iter().map(|(id, table)| (*id, table.capacity))
    }

    /// Returns the place in the program of the instruction at a position of the encoded code; `None` if it belongs to
    /// no place.
    pub fn place_of(&self, position: usize, has_long_jumps: bool) -> Option<LocId> {
        self.code.mark_at(position, has_long_jumps).filter(|mark| *mark > 0).map(LocId::from_u32)
    }

    /// Encodes the code for one port.
    ///
    /// # Errors
    /// [`AsmError`]: a kernel without long jumps cannot run the program.
    pub fn encode(&self, links: &Links, has_long_jumps: bool) -> Result<Vec<u64>, AsmError> {
        self.code.assemble(links, has_long_jumps)
    }
}

/// The state of an emission.
struct Emitter<'p> {
    program: &'p Program,
    pipeline: &'p KernelPipeline,
    usage: &'p Usage,
    layout: &'p RegionLayout,
    scratch: Scratch,
    code: Assembly,
    /// Hands the packet over.
    slow: Label,
    /// Gives the packet up: the region is not as this code left it.
    abort: Label,
    /// Begins the commit of a packet that leaves.
    forward: Label,
    /// Begins the commit of a packet that is dropped.
    drop: Label,
    /// Places of hand-overs by the number of the instruction that jumps.
    hand_overs: Vec<(usize, HandOver)>,
    /// Pending counts: the word with the index plus 1, and the counter.
    counts: Vec<(ScratchWord, ir::CounterId)>,
    /// Pending hits: the word with the number of the record, and the table.
    hits: Vec<(ScratchWord, TableId)>,
    /// Pending writes of registers, in the order of the program.
    register_sites: Vec<RegisterSite>,
    /// The places that execute meters.
    meter_sites: Vec<MeterSite>,
    /// The colours of direct meters.
    colours: BTreeMap<MeterId, ScratchWord>,
    /// The places at which headers are emitted.
    emits: Vec<EmitSite>,
    /// The size of the valid headers after the parser in bits, if egress needs it.
    measured: Option<ScratchWord>,
    /// Number of bytes that the parser has consumed at this place.
    cursor: u32,
    /// Number of words for spilled values in use.
    spilled: u32,
    /// The place of the operation that is emitted.
    loc: LocId,
    parser_end: Option<Label>,
    is_too_large: bool,
}

impl<'p> Emitter<'p> {
    fn new(
        program: &'p Program,
        pipeline: &'p KernelPipeline,
        usage: &'p Usage,
        layout: &'p RegionLayout,
        scratch: Scratch,
    ) -> Self {
        let mut code = Assembly::default();
        let (slow, abort, forward, drop) = (code.label(), code.label(), code.label(), code.label());
        Emitter {
            program,
            pipeline,
            usage,
            layout,
            scratch,
            code,
            slow,
            abort,
            forward,
            drop,
            hand_overs: Vec::new(),
            counts: Vec::new(),
            hits: Vec::new(),
            register_sites: Vec::new(),
            meter_sites: Vec::new(),
            colours: BTreeMap::new(),
            emits: Vec::new(),
            measured: None,
            cursor: 0,
            spilled: 0,
            loc: LocId::from_u32(0),
            parser_end: None,
            is_too_large: false,
        }
    }

    /// Emits the whole program.
    fn emit_all(&mut self) -> Result<(), Unsupported> {
        self.begin();
        for (number, step) in self.pipeline.steps.iter().enumerate() {
            self.spilled = 0;
            self.step(number, step);
            if self.is_too_large || self.code.len() > MAX_INSTRUCTIONS {
                return Err(Unsupported::Code(self.loc));
            }
        }
        self.loc = LocId::from_u32(0);
        self.leave();
        self.commit();
        self.scratch_words().map(drop)
    }

    /// Whether the code has more instructions than the kernel accepts. Emission then ends as soon as it can.
    fn is_full(&mut self) -> bool {
        self.is_too_large |= self.code.len() > MAX_INSTRUCTIONS;
        self.is_too_large
    }

    fn scratch_words(&self) -> Result<u32, Unsupported> {
        self.scratch.words().ok_or(Unsupported::Code(LocId::from_u32(0)))
    }

    fn finish(mut self, layout: RegionLayout) -> KernelCode {
        let kept = self.code.prune();
        let reached: BTreeSet<HandOver> =
            self.hand_overs.iter().filter(|(at, _)| kept[*at]).map(|(_, hand_over)| *hand_over).collect();
        let can = |label| self.code.is_bound(label);
        KernelCode {
            can_forward: can(self.forward),
            can_drop: can(self.drop),
            hand_overs: reached.into_iter().collect(),
            layout,
            code: self.code,
        }
    }

    /// Finds the scratch memory of the processor and clears it.
    fn begin(&mut self) {
        let (has_cpu, is_busy) = (self.code.label(), self.code.label());
        self.mov(CONTEXT, R1);
        self.load_packet();
        self.push(Instruction::Call(uapi::GET_SMP_PROCESSOR_ID));
        self.jump_if(Cond::Lt, R0, self.layout.options.cpus as i32, has_cpu);
        // A processor without scratch memory, or a run that began during another one, hands over at once.
        self.bind(is_busy);
        self.redirect_to_socket();
        self.bind(has_cpu);
        self.push(Instruction::LoadAddress(SCRATCH, MapRef::Region, 0));
        self.alu(Alu::Lsh, R0, self.layout.cpu_bytes.trailing_zeros() as i32);
        self.alu(Alu::Add, SCRATCH, R0);
        self.load_word(R0, ScratchWord::EPOCH);
        self.alu(Alu::And, R0, 1);
        self.jump_if(Cond::Ne, R0, 0, is_busy);
        let reads_time = self.usage.reads_time;
        if reads_time {
            self.push(Instruction::Call(uapi::KTIME_GET_NS));
            self.store_word(ScratchWord::TIME, R0);
        }
        self.enter_epoch();
        self.hand_over_from_closed_ports();
        self.complete_checksum();
        self.hand_over_overtaking();
        for word in self.scratch.cleared() {
            self.store_imm(word, 0);
        }
        if reads_time {
            self.set_time();
        }
        self.mov(R1, PACKET_END);
        self.alu(Alu::Sub, R1, PACKET);
        self.store_word(ScratchWord::LENGTH, R1);
        self.store_imm(ScratchWord::OUT, 1);
        let no_error = self.error_named("NoError");
        self.store_imm(ScratchWord::ERROR, no_error as i32);
        if let Some(arrival) = self.pipeline.arrival_time {
            self.copy_word(arrival, ScratchWord::TIME);
        }
        let ingress_port = self.pipeline.ingress_port;
        if let Some(word) = self.read_slot(ingress_port) {
            self.push(Instruction::LoadPort(R1));
            self.truncate(R1, self.program.slots[ingress_port].width);
            self.store_word(word, R1);
        }
    }

    /// Converts the time of the kernel's clock to that of the run, which may not be known yet.
    fn set_time(&mut self) {
        self.push(Instruction::LoadAddress(R1, MapRef::Region, self.layout.clock_origin));
        self.push(Instruction::Load(AccessSize::B8, R1, R1, 0));
        self.jump_if(Cond::Eq, R1, 0, self.slow);
        self.load_word(R2, ScratchWord::TIME);
        // The process has another clock than the kernel, in a namespace of its own.
        self.jump_if(Cond::Lt, R2, R1, self.slow);
        self.alu(Alu::Sub, R2, R1);
        if self.usage.reads_nanoseconds {
            self.store_word(ScratchWord::TIME_NS, R2);
        }
        self.alu(Alu::Div, R2, 1000);
        self.store_word(ScratchWord::TIME, R2);
    }

    /// Loads the start and the end of the packet. The verifier then knows nothing about its length.
    fn load_packet(&mut self) {
        self.push(Instruction::Load(AccessSize::B4, PACKET, CONTEXT, uapi::XDP_MD_DATA));
        self.push(Instruction::Load(AccessSize::B4, PACKET_END, CONTEXT, uapi::XDP_MD_DATA_END));
    }

    /// Jumps unless the packet has this many bytes from a pointer on. Overwrites r0.
    fn check_bytes(&mut self, from: Reg, bytes: i32, otherwise: Label) {
        self.mov(R0, from);
        self.alu(Alu::Add, R0, bytes);
        self.jump_if(Cond::Gt, R0, PACKET_END, otherwise);
    }

    /// Makes the epoch odd, and chooses the tables. The writer flips the gate and then reads the epochs; so it either
    /// sees that this processor is busy, or this processor sees the flip.
    fn enter_epoch(&mut self) {
        self.alu(Alu::Mov, R0, 1);
        self.push(Instruction::AtomicFetchAdd(SCRATCH, ScratchWord::EPOCH.offset(), R0));
        self.push(Instruction::LoadAddress(R1, MapRef::Region, self.layout.gate));
        self.push(Instruction::Load(AccessSize::B8, R1, R1, 0));
        self.mov(R2, R1);
        self.alu(Alu::And, R2, GATE_OPEN as i32);
        self.jump_if(Cond::Eq, R2, 0, self.slow);
        // Whatever the gate has, the copy begins at most this far behind the first one.
        self.alu(Alu::And, R1, self.layout.copy_bytes as i32);
        self.push(Instruction::LoadAddress(TABLES, MapRef::Region, self.layout.tables_begin));
        self.alu(Alu::Add, TABLES, R1);
    }

    /// Makes the epoch even. What the packet read and wrote is done then.
    fn leave_epoch(&mut self) {
        if cfg!(target_arch = "x86_64") {
            // Stores are not reordered with accesses before them.
            self.load_word(R0, ScratchWord::EPOCH);
            self.alu(Alu::Add, R0, 1);
            self.store_word(ScratchWord::EPOCH, R0);
        } else {
            self.alu(Alu::Mov, R0, 1);
            self.push(Instruction::AtomicFetchAdd(SCRATCH, ScratchWord::EPOCH.offset(), R0));
        }
    }

    /// Loads the address of a byte of the tables.
    fn load_table_address(&mut self, reg: Reg, offset: u32) {
        self.mov(reg, TABLES);
        self.alu(Alu::Add, reg, (offset - self.layout.tables_begin) as i32);
    }

    /// Emits one step.
    fn step(&mut self, number: usize, step: &Step) {
        self.loc = LocId::from_u32(0);
        match *step {
            Step::Run(body) => {
                let end = self.code.label();
                match self.program.bodies[body].kind {
                    BodyKind::Parser => self.parser(body, end),
                    BodyKind::Control | BodyKind::Action => self.control(body, end, end),
                }
                self.bind(end);
            }
            Step::ErrorTo(slot) => self.copy_word(slot, ScratchWord::ERROR),
            Step::LengthTo(slot) => self.copy_word(slot, ScratchWord::LENGTH),
            Step::Measure => self.measure_headers(),
            Step::PresentLengthTo(slot) => self.present_length_to(slot),
            Step::StopUnless(slot, value) => self.stop_unless(slot, value),
            Step::DropIf(slot, value) => {
                let stays = self.code.label();
                let verdict = if number < self.pipeline.egress_begins { 1 } else { 2 };
                if let Some(word) = self.known_slot(slot) {
                    self.load_word(R1, word);
                    self.jump_unless_number(Cond::Eq, R1, value, stays);
                    self.store_imm(ScratchWord::VERDICT, verdict);
                    self.jump(self.drop);
                    self.bind(stays);
                }
            }
            Step::Copy(to, from) => {
                if self.read_slot(to).is_some()
                    && let Some(word) = self.known_slot(from)
                {
                    self.copy_word(to, word);
                }
            }
            Step::Keep(index, slot) => {
                if index == self.pipeline.egress_port
                    && let Some(word) = self.known_slot(slot)
                {
                    self.load_word(R1, word);
                    self.store_word(ScratchWord::PORT, R1);
                }
            }
            Step::Set(slot, value) => {
                if let Some(word) = self.read_slot(slot) {
                    self.number(R1, value);
                    self.truncate(R1, self.program.slots[slot].width);
                    self.store_word(word, R1);
                }
            }
            Step::TimeTo(slot) => self.copy_word(slot, ScratchWord::TIME),
            // Requests are handed over where they are made.
            Step::InputTo(..) | Step::StopIfRequested | Step::StopUnlessWaiting(_) => {}
        }
    }

    /// Hands over packets whose slot has another value, as they have several copies.
    fn stop_unless(&mut self, slot: SlotId, value: u64) {
        // A slot without a word is wide, and the program hands over where it writes to it.
        let (Some(word), Some(loc)) = (self.read_slot(slot), self.place_of_other_value(slot, value)) else { return };
        let goes_on = self.code.label();
        self.load_word(R1, word);
        self.jump_if_number(Cond::Eq, R1, value, goes_on);
        self.loc = loc;
        self.hand_over(HandOverReason::Multicast);
        self.bind(goes_on);
    }

    /// Returns a place at which the program gives a slot another value.
    fn place_of_other_value(&self, slot: SlotId, value: u64) -> Option<LocId> {
        let blocks = self.usage.bodies.iter().flat_map(|body| self.program.bodies[*body].blocks.values());
        let mut instrs = blocks.flat_map(|block| &block.instrs);
        let place = instrs.find(|instr| match &instr.op {
            ir::Op::Assign(ir::LValue::Slot(to), ir::Expr::Const(given)) => *to == slot && given.low_u64() != value,
            ir::Op::Assign(ir::LValue::Slot(to), _)
            | ir::Op::Lookahead { dst: ir::LValue::Slot(to), .. }
            | ir::Op::Compute(ir::LValue::Slot(to), ..)
            | ir::Op::RegisterRead(ir::LValue::Slot(to), ..)
            | ir::Op::MeterExecute(_, _, ir::LValue::Slot(to))
            | ir::Op::DirectMeterRead(_, ir::LValue::Slot(to)) => *to == slot,
            ir::Op::Apply { hit, action, .. } => [hit, action].into_iter().any(|to| *to == Some(slot)),
            _ => false,
        });
        place.map(|instr| instr.loc).or((value != 0).then(|| LocId::from_u32(0)))
    }

    /// Copies a word to a slot, truncated, if the slot is read.
    fn copy_word(&mut self, to: SlotId, from: ScratchWord) {
        if let Some(word) = self.read_slot(to) {
            self.load_word(R1, from);
            self.truncate(R1, self.program.slots[to].width);
            self.store_word(word, R1);
        }
    }

    /// Returns the word of a slot, if it has one: it is narrow, and something reads it.
    fn read_slot(&self, slot: SlotId) -> Option<ScratchWord> {
        self.scratch.slots.get(&slot).copied()
    }

    /// Returns the word of a slot that a step reads, or hands over.
    fn known_slot(&mut self, slot: SlotId) -> Option<ScratchWord> {
        let word = self.read_slot(slot);
        if word.is_none() {
            self.hand_over(HandOverReason::WideValue);
        }
        word
    }

    fn error_named(&self, name: &str) -> u32 {
        self.program.errors.iter().position(|error| error == name).unwrap_or(0) as u32
    }

    /// Emits a hand-over at the present place. No code may follow, except behind a label.
    fn hand_over(&mut self, reason: HandOverReason) {
        self.hand_overs.push((self.code.len(), HandOver { loc: self.loc, reason }));
        self.jump(self.slow);
    }

    /// Emits a hand-over under a condition.
    fn hand_over_if(&mut self, cond: Cond, reg: Reg, operand: impl Into<AluOperand>, reason: HandOverReason) {
        self.hand_overs.push((self.code.len(), HandOver { loc: self.loc, reason }));
        self.jump_if(cond, reg, operand, self.slow);
    }

    fn push(&mut self, instruction: Instruction) {
        self.code.set_mark(self.loc.as_u32());
        self.code.push(instruction);
    }

    fn bind(&mut self, label: Label) {
        self.code.push(Instruction::Bind(label));
    }

    fn jump(&mut self, to: Label) {
        self.push(Instruction::Jump(to));
    }

    fn jump_if(&mut self, cond: Cond, reg: Reg, operand: impl Into<AluOperand>, to: Label) {
        self.push(Instruction::JumpIf(cond, reg, operand.into(), to));
    }

    /// Jumps under a comparison with a number of any size. Overwrites r0.
    fn jump_if_number(&mut self, cond: Cond, reg: Reg, number: u64, to: Label) {
        match small(number) {
            Some(number) => self.jump_if(cond, reg, number, to),
            None => {
                self.push(Instruction::Load64(R0, number));
                self.jump_if(cond, reg, R0, to);
            }
        }
    }

    fn jump_unless_number(&mut self, cond: Cond, reg: Reg, number: u64, to: Label) {
        self.jump_if_number(cond.inverse(), reg, number, to);
    }

    fn alu(&mut self, alu: Alu, reg: Reg, operand: impl Into<AluOperand>) {
        self.push(Instruction::Alu64(alu, reg, operand.into()));
    }

    fn mov(&mut self, to: Reg, from: Reg) {
        self.alu(Alu::Mov, to, from);
    }

    /// Loads a number.
    fn number(&mut self, reg: Reg, number: u64) {
        match small(number) {
            Some(number) => self.alu(Alu::Mov, reg, number),
            None => self.push(Instruction::Load64(reg, number)),
        }
    }

    /// Clears all but the low bits.
    fn truncate(&mut self, reg: Reg, width: u32) {
        match width {
            0 => self.alu(Alu::Mov, reg, 0),
            1..=31 => self.alu(Alu::And, reg, ((1u32 << width) - 1) as i32),
            32 => self.push(Instruction::Alu32(Alu::Mov, reg, reg.into())),
            33..=63 => {
                self.alu(Alu::Lsh, reg, 64 - width as i32);
                self.alu(Alu::Rsh, reg, 64 - width as i32);
            }
            _ => {}
        }
    }

    fn load_word(&mut self, to: Reg, word: ScratchWord) {
        self.push(Instruction::Load(AccessSize::B8, to, SCRATCH, word.offset()));
    }

    fn store_word(&mut self, word: ScratchWord, from: Reg) {
        self.push(Instruction::Store(AccessSize::B8, SCRATCH, word.offset(), from));
    }

    fn store_imm(&mut self, word: ScratchWord, number: i32) {
        self.push(Instruction::StoreImm(AccessSize::B8, SCRATCH, word.offset(), number));
    }

    /// Takes a word for a value that must survive the evaluation of others. The caller gives it back by
    /// [`Emitter::give_back`].
    fn spill(&mut self) -> ScratchWord {
        self.spilled += 1;
        self.scratch.spill(self.spilled - 1)
    }

    /// Evaluates expressions without problems into words, which the caller gives back.
    fn spill_all<'e>(&mut self, values: impl Iterator<Item = &'e Expr>) -> Vec<ScratchWord> {
        let spill = |value| {
            self.eval(value, 0);
            let word = self.spill();
            self.store_word(word, R1);
            word
        };
        values.map(spill).collect()
    }

    fn give_back(&mut self, count: u32) {
        self.spilled -= count;
    }
}

/// Returns a number of 16 bits as it is loaded from a packet.
fn network(number: u16) -> i32 {
    i32::from(number.to_be())
}

/// Returns a number as an immediate, if it stays the same when it is sign-extended.
fn small(number: u64) -> Option<i32> {
    i32::try_from(number.cast_signed()).ok()
}

/// Labels of nodes, in the order of their emission.
type Labels<K> = BTreeMap<K, Label>;
