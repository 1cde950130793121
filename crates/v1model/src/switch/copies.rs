//! Makes copies that pass egress at once, one after the other, with the memory of the packet that they are copies of.
//!
//! A copy needs its bytes only when it leaves. So it passes egress in the buffer of its packet, what leaves is copied,
//! and the packet returns to its state after ingress: the headers that it had, but not the payload. Copies do so if
//! nothing delays them and no pass through egress requests another one. Then the order of all passes is that of a queue
//! of pending passes, which the other copies take.

use std::cell::Cell;
use std::sync::Arc;

use engine::Now;
use jit::{InPlacePacket, PreservedSlots, UnitOutcome};
use switch::{Backup, DropReason, Egress, Frame, PRIORITIES, PortId, Replica};

use super::Switch;
use super::egress::obstacle;
use super::in_place::{PacketOutput, PassResult, ReceivedPacket};
use super::ingress::judge;
use super::packet::{Instance, Leaving};
use super::state::{Machine, Slots, input, result, unit};

/// A clone of a packet of a batch, which passes egress in the memory of the packet as received.
pub(super) struct CloneInPlace<'c> {
    /// Number of its mirror session.
    pub session: u32,
    pub keep: Option<u32>,
    pub kept: PreservedSlots<'c>,
    pub original: &'c mut [u8],
}

impl Switch {
    /// Whether copies of a packet pass egress as soon as they are made.
    pub(super) fn copies_pass_at_once(&self, came: ReceivedPacket<'_>) -> bool {
        let ends = self.machine.as_ref().is_some_and(|machine| machine.copies_pass);
        ends && came.queues_open && self.work.is_empty()
    }

    /// Sends a packet to replicas: copies, and at last the packet itself.
    pub(super) fn replicate_at_once(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        replicas: &[Replica],
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> PassResult {
        let passing = replicas.len().min(self.work_left as usize);
        let refused = (replicas.len() - passing) as u64;
        if refused > 0 {
            self.drops.count_many(&mut self.registry, DropReason::LoopLimit, 0, refused);
        }
        if passing == 0 {
            return PassResult::Gone;
        }
        self.work_left -= passing as u32;
        let others = passing - 1;
        match self.pass_copies(lent, (replicas[..passing].iter(), others), None, came, output) {
            Some(port) => self.leave_in_place(lent, Leaving { port, at: came.at, depth: 0 }, output),
            None => PassResult::Gone,
        }
    }

    /// Clones a packet of a batch as received, and lets the copies of the clone pass egress. From then on, passes are
    /// counted. `again` provides the state of the clone.
    pub(super) fn clone_in_place(
        &mut self,
        machine: &Machine,
        CloneInPlace { session, keep, kept, original }: CloneInPlace<'_>,
        again: &mut jit::Packet,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) {
        output.counts_passes = true;
        self.work_left = self.config.max_work - 1;
        self.registry.add(self.stats.ingress_clones, 1);
        if !self.may_clone((came.passes, 0), session, &mut ()) {
            return;
        }
        let (mirrors, groups) = (Arc::clone(&self.mirrors), Arc::clone(&self.groups));
        let Some(session) = mirrors.get(session) else { return };
        let group = session.group.and_then(|group| groups.get(group)).map_or(&[][..], |group| &group.replicas);
        let copies = session.replicas.len() + group.len();
        let mut output = PacketOutput::new(output.output, output.made, output.index);
        output.max_bytes = session.max_bytes.unwrap_or(u32::MAX);
        machine.compiled.in_place(again, original, 0, |lent| {
            let standard = self.layout.standard;
            lent.set_slot_to(standard.ingress_port, u64::from(came.by.0));
            let now = Now { ns: came.at.as_ns() };
            let outcome = lent.run(unit::PARSE, &mut self.objects, now);
            self.count_parser_error(lent.parser_error());
            if self.failed(outcome, true).is_err() {
                return;
            }
            lent.clear_slots(&machine.metadata);
            lent.keep_preserved(kept, self.field_list(keep));
            lent.set(standard.instance_type, Instance::IngressClone as u64);
            if copies == 0 {
                return self.drops.count(&mut self.registry, DropReason::NoGroup, 0);
            }
            if copies > 1 {
                self.registry.add(self.stats.replicated, 1);
                self.registry.add(self.stats.replicas, copies as u64);
            }
            self.work_left -= copies as u32;
            let class = Some(session.class_of_service).filter(|class| *class != 0);
            let replicas = session.replicas.iter().chain(group);
            self.pass_copies(lent, (replicas, copies), class, came, &mut output);
        });
    }

    /// Lets copies of a packet pass egress, and sends the first `sent` of them. Returns the port of the copy behind
    /// these, if it passes egress: the packet has become that copy. `class` is the queue that a mirror session chose.
    fn pass_copies<'r>(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        (replicas, sent): (impl Iterator<Item = &'r Replica>, usize),
        class: Option<u8>,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> Option<PortId> {
        let priority = class.map_or_else(|| self.priority(lent), usize::from).min(PRIORITIES - 1);
        if let Some(slot) = self.layout.standard.packet_length.filter(|_| self.reads_length()) {
            lent.set_slot_to(slot, self.length_in_egress(lent) as u64);
        }
        let cpu_port = self.config.cpu_port;
        let (max_bytes, max_frame) = (output.max_bytes as usize, self.config.max_frame);
        let has_site = self.layout.standard.drop_site.is_some();
        let Switch { objects, ports, registry, drops, copy_origin, .. } = self;
        let chosen = Cell::new(PortId(0));
        let (mut for_controller, mut last) = (Vec::new(), None);
        let inputs = replicas.map(|replica| {
            let Backup { port, rid } = replica.choose(|port| ports.is_up(port));
            chosen.set(port);
            let mut inputs = [0; jit::RESULTS];
            (inputs[input::EGRESS_PORT], inputs[input::EGRESS_RID]) = (u64::from(port.0), u64::from(rid));
            inputs
        });
        let now = Now { ns: came.at.as_ns() };
        lent.run_on_copies(unit::COPY, copy_origin, objects, now, inputs, |number, copy| {
            let port = chosen.get();
            let mut count = |sent| ports.count_passed(registry, (port, priority), 1, sent);
            let ending = match copy.outcome() {
                UnitOutcome::Done(ending) | UnitOutcome::Failed(_, ending) => ending,
                UnitOutcome::Stopped(_) => {
                    count([0; 2]);
                    let site = if has_site { copy.result(result::DROP_SITE) as u32 } else { 0 };
                    return drops.count(registry, DropReason::EgressProgram, site);
                }
            };
            if let Err((reason, site)) = judge(ending, false) {
                count([0; 2]);
                return drops.count(registry, reason, site);
            }
            if number == sent {
                count([0; 2]);
                last = Some(port);
                return;
            }
            let bytes = copy.output();
            let bytes = &bytes[..bytes.len().min(max_bytes)];
            if let Some(reason) = obstacle(ports, max_frame, port, bytes.len()) {
                count([0; 2]);
                return drops.count(registry, reason, 0);
            }
            count([1, bytes.len() as u64]);
            let data = bytes.to_vec();
            if cpu_port == Some(port) {
                for_controller.push(data);
            } else {
                output.output.push(Egress::Owned(Frame { port, data }));
            }
        });
        for data in for_controller {
            self.hand_up(data, came.at);
        }
        last
    }
}
