//! A packet's state in one of the two executors, and the units that machine code is made of.

use std::sync::Arc;

use engine::{PacketState, Preserved, Requested};
use ir::{Kept, LocId, Op, Program, Request, SlotId};
use jit::{Compiled, Lent, Plan, Probe, Speed, Step, Unit, Unsupported};

use super::layout::Layout;

/// A packet's state. Packets that are traced are interpreted, whatever the others are.
#[derive(Clone, Debug)]
pub(super) enum State {
    Interpreted(PacketState),
    Compiled(Box<jit::Packet>),
}

/// Values of a field list.
pub(super) enum KeptValues {
    Interpreted(Preserved),
    Compiled(jit::Preserved),
}

/// Something with slots: a packet's state, wherever it is.
pub(super) trait Slots {
    /// The low 64 bits of a slot.
    fn number(&self, slot: SlotId) -> u64;
    fn set_slot_to(&mut self, slot: SlotId, value: u64);

    /// Sets a slot if the program has it.
    fn set(&mut self, slot: Option<SlotId>, value: u64) {
        if let Some(slot) = slot {
            self.set_slot_to(slot, value);
        }
    }
}

impl Slots for State {
    fn number(&self, slot: SlotId) -> u64 {
        match self {
            State::Interpreted(state) => state.slot(slot).low_u64(),
            State::Compiled(packet) => packet.slot_word(slot),
        }
    }

    fn set_slot_to(&mut self, slot: SlotId, value: u64) {
        match self {
            State::Interpreted(state) => state.set_slot_to(slot, value),
            State::Compiled(packet) => packet.set_slot_to(slot, value),
        }
    }
}

impl Slots for Lent<'_> {
    #[inline]
    fn number(&self, slot: SlotId) -> u64 {
        self.slot_word(slot)
    }

    #[inline]
    fn set_slot_to(&mut self, slot: SlotId, value: u64) {
        Lent::set_slot_to(self, slot, value);
    }
}

impl State {
    pub fn interpreted(&self) -> Option<&PacketState> {
        match self {
            State::Interpreted(state) => Some(state),
            State::Compiled(_) => None,
        }
    }

    /// The packet's bytes. Machine code may have changed them.
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

    /// Bytes of all valid headers that live from block to block.
    pub fn header_bytes(&self, layout: &Layout) -> usize {
        match self {
            State::Interpreted(state) => {
                let valid = layout.headers.iter().map(|header| state.header(*header)).filter(|header| header.valid);
                valid.map(|header| header.len_bits()).sum::<usize>() / 8
            }
            State::Compiled(packet) => packet.header_bytes(),
        }
    }

    /// The packet that leaves.
    pub fn finish(&mut self) -> Vec<u8> {
        match self {
            State::Interpreted(state) => state.finish(),
            State::Compiled(packet) => packet.take_output(),
        }
    }

    pub fn preserve(&self, kept: &[Kept]) -> KeptValues {
        match self {
            State::Interpreted(state) => KeptValues::Interpreted(state.preserve(kept)),
            State::Compiled(packet) => KeptValues::Compiled(packet.preserve(kept)),
        }
    }

    /// Puts the values of a field list back; a packet and its copies are in one executor.
    pub fn restore(&mut self, kept: &KeptValues) {
        match (self, kept) {
            (State::Interpreted(state), KeptValues::Interpreted(kept)) => state.restore(kept),
            (State::Compiled(packet), KeptValues::Compiled(kept)) => packet.restore(kept),
            _ => unreachable!("copies stay in the executor of the packet they are made from"),
        }
    }
}

/// The units of the plan.
pub(super) mod unit {
    /// Parser and ingress.
    pub const INGRESS: usize = 0;
    /// Egress and, unless something is asked for or the packet is dropped, the deparser.
    pub const EGRESS: usize = 1;
    /// Checksum computation and deparser.
    pub const DEPARSE: usize = 2;
    /// The parser alone, for copies of the packet as it came in.
    pub const PARSE: usize = 3;
}

/// A program in machine code.
#[derive(Debug)]
pub(super) struct Machine {
    pub compiled: Compiled,
    /// Whether the packet as it came in may be asked for after code ran on it.
    pub keeps_original: bool,
}

impl Machine {
    pub fn new(
        program: &Arc<Program>,
        layout: &Layout,
        drop_port: u32,
        probe: Option<Probe>,
    ) -> Result<Machine, Unsupported> {
        let (blocks, standard) = (layout.blocks, layout.standard);
        let mut parse = vec![Step::Run(blocks.parser)];
        parse.extend(standard.parser_error.map(Step::ErrorTo));
        parse.push(Step::Measure);
        let mut ingress = parse.clone();
        ingress.extend([Step::Run(blocks.verify_checksum), Step::Run(blocks.ingress)]);
        let deparse = vec![Step::Run(blocks.compute_checksum), Step::Run(blocks.deparser)];
        let mut egress =
            vec![Step::Run(blocks.egress), Step::StopIfAsked, Step::StopIf(standard.egress_spec, u64::from(drop_port))];
        egress.extend(deparse.clone());
        let plan = Plan {
            units: vec![
                Unit { steps: ingress, fresh: true, next: vec![unit::EGRESS] },
                Unit { steps: egress, fresh: false, next: vec![unit::DEPARSE, unit::EGRESS] },
                Unit { steps: deparse, fresh: false, next: Vec::new() },
                Unit { steps: parse, fresh: true, next: vec![unit::EGRESS] },
            ],
            visible: Some(standard.all()),
        };
        let mut instrs = program.bodies.values().flat_map(|body| body.blocks.values()).flat_map(|block| &block.instrs);
        let keeps_original =
            instrs.any(|instr| matches!(&instr.op, Op::Request(Request::Clone { .. } | Request::Resubmit(_))));
        let compiled = match probe {
            Some(probe) => Compiled::probed(program, &plan, Speed::Run, probe)?,
            None => Compiled::new(program, &plan, Speed::Run)?,
        };
        Ok(Machine { compiled, keeps_original })
    }
}
