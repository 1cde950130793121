//! Represents a packet between two blocks, and operations on packets: create, copy, drop, recycle.

use engine::{Dependency, MissingRow, PacketState};
use switch::trace::{PassKind, PassOutcome, Recorder};
use switch::{DropReason, PortId, Time};

use super::Switch;
use super::ingress::BlockFailure;
use super::state::{Slots, State};
use super::tiny::TinyPacket;

/// Maximum number of packets kept for reuse.
const MAX_SPARE: usize = 1024;

/// The values of `instance_type`, as `simple_switch` numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instance {
    Normal = 0,
    IngressClone = 1,
    EgressClone = 2,
    Recirculated = 4,
    Replicated = 5,
    Resubmitted = 6,
}

/// A packet in the switch.
#[derive(Debug)]
pub(super) struct Packet {
    pub state: State,
    /// The packet as received, if code that changes it in place runs and it may be requested.
    pub original: Vec<u8>,
    /// The port on which it, or the packet it was copied from, arrived.
    pub ingress_port: PortId,
    /// Number of times that it, including its ancestors, was resubmitted, recirculated or cloned.
    pub passes: u16,
    /// Number of bytes to which it is truncated.
    pub max_bytes: u32,
    /// The egress queue that its mirror session chose, if it is a clone; else 0.
    pub class_of_service: u8,
    /// Length of its headers after the parser, in bytes.
    pub parsed_bytes: usize,
    /// The row of resilient state that it, or an ancestor, has used.
    pub row: Option<Dependency>,
    /// Rows that do not exist: it has waited for the stores to say so.
    pub missing: Vec<MissingRow>,
    /// Its tiny packet program, if it has one and these are executed.
    pub tiny: Option<Box<TinyPacket>>,
    /// Its trace, 0 for none, and its pass there.
    pub trace: u64,
    pub pass: usize,
}

impl Packet {
    /// Returns the received bytes.
    pub fn as_it_came(&self) -> &[u8] {
        match self.state {
            State::Interpreted(_) => self.state.data(),
            State::Compiled(_) => &self.original,
        }
    }

    /// Returns the number of bytes that the packet adds to a queue: its length at the start of this pass, with the tiny
    /// program. Egress, which decides on the length of the frame that leaves, comes after the queue.
    pub fn bytes_in_queue(&self) -> usize {
        self.state.data().len() + self.tiny.as_ref().map_or(0, |tiny| tiny.program_len())
    }
}

/// A departure from a queue: port, time, and number of packets left in the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub port: PortId,
    pub at: Time,
    pub depth: usize,
}

/// A pending step.
#[derive(Debug)]
pub(super) enum Work {
    /// Parser and ingress, at this time.
    Ingress(Box<Packet>, Time),
    /// Egress and deparser.
    Egress(Box<Packet>, Leaving),
}

impl Work {
    pub fn packet(&self) -> &Packet {
        match self {
            Work::Ingress(packet, _) | Work::Egress(packet, _) => packet,
        }
    }

    pub fn packet_mut(&mut self) -> &mut Packet {
        match self {
            Work::Ingress(packet, _) | Work::Egress(packet, _) => packet,
        }
    }

    pub fn into_packet(self) -> Box<Packet> {
        match self {
            Work::Ingress(packet, _) | Work::Egress(packet, _) => packet,
        }
    }
}

impl Switch {
    /// Makes a packet that was just received.
    pub(super) fn packet<R: Recorder>(
        &mut self,
        data: Vec<u8>,
        ingress_port: PortId,
        tiny: Option<Box<TinyPacket>>,
        recorder: &mut R,
    ) -> Box<Packet> {
        let pass = recorder.begin(None, PassKind::Received, data.len());
        let notes_entries = tiny.as_ref().is_some_and(|tiny| tiny.notes_entries());
        let mut packet = self.blank(data, recorder.records() || notes_entries);
        packet.tiny = tiny;
        packet.ingress_port = ingress_port;
        packet.passes = 0;
        packet.trace = if recorder.records() { self.trace_number } else { 0 };
        packet.pass = pass;
        packet
    }

    /// Makes a packet with unspecified state; a packet of the usual executor is reused if one is there.
    pub(super) fn spare_packet(&mut self, interpreted: bool) -> Box<Packet> {
        let machine = self.machine.as_ref().filter(|_| !interpreted);
        let spare = if machine.is_some() == self.machine.is_some() { self.spare.pop() } else { None };
        spare.unwrap_or_else(|| {
            Box::new(Packet {
                state: match machine {
                    Some(machine) => State::Compiled(Box::new(machine.compiled.packet(Vec::new()))),
                    None => State::Interpreted(PacketState::new(&self.program, Vec::new())),
                },
                original: Vec::new(),
                ingress_port: PortId(0),
                passes: 0,
                max_bytes: u32::MAX,
                class_of_service: 0,
                parsed_bytes: 0,
                row: None,
                missing: Vec::new(),
                tiny: None,
                trace: 0,
                pass: 0,
            })
        })
    }

    /// Makes a packet with empty state around these bytes.
    fn blank(&mut self, data: Vec<u8>, interpreted: bool) -> Box<Packet> {
        let mut packet = self.spare_packet(interpreted);
        match &mut packet.state {
            State::Interpreted(state) => drop(state.reset(&self.program, data)),
            State::Compiled(state) => drop(state.reset_inputs(data, 0)),
        }
        packet.max_bytes = u32::MAX;
        packet.class_of_service = 0;
        packet.parsed_bytes = 0;
        packet.row = self.current_row();
        packet.missing.clear();
        packet
    }

    /// Makes a further pass of these bytes with empty state: the next form of `parent`, or a clone of it as received.
    pub(super) fn renewed<R: Recorder>(
        &mut self,
        parent: &Packet,
        data: Vec<u8>,
        kind: PassKind,
        recorder: &mut R,
    ) -> Box<Packet> {
        let pass = recorder.begin(Some(parent.pass), kind, data.len());
        let mut packet = self.blank(data, parent.state.interpreted().is_some());
        packet.ingress_port = parent.ingress_port;
        packet.passes = parent.passes + 1;
        packet.tiny.clone_from(&parent.tiny);
        (packet.trace, packet.pass) = (parent.trace, pass);
        packet
    }

    /// Makes a copy with all state.
    pub(super) fn copied<R: Recorder>(&mut self, parent: &Packet, kind: PassKind, recorder: &mut R) -> Box<Packet> {
        let pass = recorder.begin(Some(parent.pass), kind, parent.state.data().len());
        let mut copy = self.spare_packet(parent.state.interpreted().is_some());
        copy.state.clone_from(&parent.state);
        copy.original.clear();
        copy.ingress_port = parent.ingress_port;
        copy.passes = parent.passes;
        copy.max_bytes = parent.max_bytes;
        copy.class_of_service = parent.class_of_service;
        copy.parsed_bytes = parent.parsed_bytes;
        copy.row = parent.row;
        copy.missing.clear();
        copy.tiny.clone_from(&parent.tiny);
        (copy.trace, copy.pass) = (parent.trace, pass);
        copy
    }

    /// Keeps a packet for reuse.
    pub(super) fn recycle(&mut self, mut packet: Box<Packet>) {
        packet.tiny = None;
        // Only packets of the executor that runs without a trace are kept.
        let usual = packet.state.interpreted().is_none() == self.machine.is_some();
        if usual && self.spare.len() < MAX_SPARE {
            self.spare.push(packet);
        }
    }

    /// Drops a packet for a reason outside the program.
    pub(super) fn drop_packet<R: Recorder>(&mut self, packet: Box<Packet>, reason: DropReason, recorder: &mut R) {
        self.drop_at(packet, reason, 0, recorder);
    }

    /// Drops a packet for a reason that concerns its egress port.
    pub(super) fn drop_at_port<R: Recorder>(
        &mut self,
        packet: Box<Packet>,
        reason: DropReason,
        port: PortId,
        recorder: &mut R,
    ) {
        self.drops.count(&mut self.registry, reason, 0);
        recorder.end(packet.pass, || PassOutcome::dropped_at_port(reason, port.0));
        self.recycle(packet);
    }

    /// Drops a packet because the program said so: `$drop_site` has the place.
    pub(super) fn drop_by_program<R: Recorder>(&mut self, packet: Box<Packet>, reason: DropReason, recorder: &mut R) {
        let site = self.layout.standard.drop_site.map_or(0, |slot| packet.state.number(slot) as u32);
        self.drop_at(packet, reason, site, recorder);
    }

    /// Drops a packet because a block of the program did not complete.
    pub(super) fn drop_failed<R: Recorder>(&mut self, packet: Box<Packet>, failure: BlockFailure, recorder: &mut R) {
        self.drop_at(packet, failure.0, failure.1, recorder);
    }

    fn drop_at<R: Recorder>(&mut self, packet: Box<Packet>, reason: DropReason, site: u32, recorder: &mut R) {
        self.drops.count(&mut self.registry, reason, site);
        recorder.end(packet.pass, || PassOutcome::dropped(reason, self.drops.place(site)));
        self.recycle(packet);
    }

    /// Returns the present length of the packet's headers in bytes.
    pub(super) fn header_bytes(&self, state: &State) -> usize {
        state.header_bytes(&self.layout)
    }
}
