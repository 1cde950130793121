//! Makes copies that pass egress at once, one after the other, with the memory of the packet that they are copies of.
//!
//! A copy needs its bytes only when it leaves. So it passes egress in the buffer of its packet, what leaves is copied,
//! and the packet returns to its state after ingress: the headers that it had, but not the payload. Copies do so if
//! nothing delays them and no pass is pending. Then the order of all passes is that of a queue of pending passes, which
//! the other copies take.

use engine::{Now, Requested};
use jit::{Copies, InPlacePacket, PreservedSlots, UnitOutcome};
use switch::{Backup, DropReason, Egress, Frame, PRIORITIES, PortId};

use super::Switch;
use super::egress::obstacle;
use super::in_place::{PacketOutput, PassResult, ReceivedPacket};
use super::ingress::judge;
use super::packet::{Instance, Leaving};
use super::state::{Machine, Slots, State, input, requests_hold, result, unit};

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
        let passes = self.machine.as_ref().is_some_and(|machine| machine.copies_pass);
        passes && came.queues_open && self.work.is_empty()
    }

    /// Sends a packet to these ports: copies, and at last the packet itself.
    pub(super) fn replicate_at_once(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        chosen: &[Backup],
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> PassResult {
        let passing = chosen.len().min(self.work_left as usize);
        let refused = (chosen.len() - passing) as u64;
        if refused > 0 {
            self.drops.count_many(&mut self.registry, DropReason::LoopLimit, 0, refused);
        }
        let Some(others) = passing.checked_sub(1) else { return PassResult::Gone };
        self.work_left -= passing as u32;
        match self.pass_copies(lent, (&chosen[..passing], others), None, came, output) {
            Some(port) => self.leave_in_place(lent, Leaving { port, at: came.at, depth: 0 }, output),
            None => PassResult::Gone,
        }
    }

    /// Clones a packet of a batch as received, and lets the copies of the clone pass egress. From then on, passes are
    /// counted. `again` provides the state of the clone.
    pub(super) fn clone_in_place(
        &mut self,
        machine: &Machine,
        clone: CloneInPlace<'_>,
        again: &mut jit::Packet,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) {
        output.counts_passes = true;
        self.work_left = self.config.max_work - 1;
        self.registry.add(self.stats.ingress_clones, 1);
        if !self.may_clone((came.passes, 0), clone.session, &mut ()) {
            return;
        }
        let Some(session) = self.mirrors.get(clone.session) else { return };
        let class = Some(session.class_of_service).filter(|class| *class != 0);
        let mut output = PacketOutput::new(output.output, output.made, output.index);
        output.max_bytes = session.max_bytes.unwrap_or(u32::MAX);
        let group = session.group.and_then(|group| self.groups.get(group));
        let group = group.map_or(&[][..], |group| &group.replicas);
        let mut chosen = std::mem::take(&mut self.chosen);
        chosen.clear();
        for replica in session.replicas.iter().chain(group) {
            chosen.push(replica.choose(|port| self.ports.is_up(port)));
        }
        machine.compiled.in_place(again, clone.original, 0, |lent| {
            let standard = self.layout.standard;
            lent.set_slot_to(standard.ingress_port, u64::from(came.by.0));
            let outcome = lent.run(unit::PARSE, &mut self.objects, Now { ns: came.at.as_ns() });
            self.count_parser_error(lent.parser_error());
            if self.failed(outcome, true).is_err() {
                return;
            }
            lent.clear_slots(&machine.metadata);
            lent.keep_preserved(clone.kept, self.field_list(clone.keep));
            lent.set(standard.instance_type, Instance::IngressClone as u64);
            match chosen.len() {
                0 => return self.drops.count(&mut self.registry, DropReason::NoGroup, 0),
                1 => {}
                copies => {
                    self.registry.add(self.stats.replicated, 1);
                    self.registry.add(self.stats.replicas, copies as u64);
                }
            }
            self.work_left -= chosen.len() as u32;
            let came = ReceivedPacket { passes: came.passes + 1, ..came };
            self.pass_copies(lent, (&chosen, chosen.len()), class, came, &mut output);
        });
        self.chosen = chosen;
    }

    /// Lets copies of a packet pass egress, and sends the first `sent` of them. Returns the port of the copy after
    /// these, if it passes egress: the packet has become that copy. `class` is the queue that a mirror session chose.
    fn pass_copies(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        (chosen, sent): (&[Backup], usize),
        class: Option<u8>,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> Option<PortId> {
        let priority = class.map_or_else(|| self.priority(lent), usize::from).min(PRIORITIES - 1);
        if let Some(slot) = self.layout.standard.packet_length.filter(|_| self.reads_length()) {
            lent.set_slot_to(slot, self.length_in_egress(lent) as u64);
        }
        let max_frame = self.config.max_frame;
        let egress = self.machine.as_ref().map_or(0, |machine| machine.copy_egress_begins);
        let mut origin = std::mem::take(&mut self.copy_origin);
        let mut copies = lent.copies(unit::COPY, &mut origin, Now { ns: came.at.as_ns() });
        let mut last = None;
        for (number, Backup { port, rid }) in chosen.iter().copied().enumerate() {
            let mut inputs = [0; jit::RESULTS];
            (inputs[input::EGRESS_PORT], inputs[input::EGRESS_RID]) = (u64::from(port.0), u64::from(rid));
            let outcome = copies.run(&mut self.objects, inputs);
            let mut max_bytes = output.max_bytes;
            if copies.has_deferred() {
                let hold = requests_hold(outcome, egress);
                for request in copies.take_deferred() {
                    match request {
                        Requested::Truncate(bytes) => max_bytes = max_bytes.min(bytes),
                        Requested::Digest(..) if !hold => {}
                        Requested::Digest(digest, values) => self.send_digest(digest, values, came.at),
                        _ => unreachable!("only digests and truncations are deferred"),
                    }
                }
            }
            let counted = |this: &mut Switch, sent| {
                this.ports.count_passed(&mut this.registry, (port, priority), 1, sent);
            };
            let ending = match outcome {
                UnitOutcome::Done(ending) | UnitOutcome::Failed(_, ending) => ending,
                UnitOutcome::Stopped(_) => {
                    counted(self, [0; 2]);
                    self.stopped_copy(&copies, (port, max_bytes), came, output);
                    continue;
                }
            };
            if let Err((reason, site)) = judge(ending, false) {
                counted(self, [0; 2]);
                self.drops.count(&mut self.registry, reason, site);
                continue;
            }
            if number == sent {
                counted(self, [0; 2]);
                output.max_bytes = max_bytes;
                last = Some(port);
                continue;
            }
            let bytes = copies.output();
            let bytes = &bytes[..bytes.len().min(max_bytes as usize)];
            if let Some(reason) = obstacle(&self.ports, max_frame, port, bytes.len()) {
                counted(self, [0; 2]);
                self.drops.count(&mut self.registry, reason, 0);
                continue;
            }
            counted(self, [1, bytes.len() as u64]);
            let data = bytes.to_vec();
            if self.config.cpu_port == Some(port) {
                self.hand_up(data, came.at);
            } else {
                output.output.push(Egress::Owned(Frame { port, data }));
            }
        }
        self.copy_origin = origin;
        last
    }

    /// Drops a copy because egress said so, or lets one that has requests continue on its own.
    #[cold]
    fn stopped_copy(
        &mut self,
        copies: &Copies<'_, '_>,
        (port, max_bytes): (PortId, u32),
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) {
        if !copies.has_requests() {
            let site = self.layout.standard.drop_site.map_or(0, |_| copies.result(result::DROP_SITE) as u32);
            return self.drops.count(&mut self.registry, DropReason::EgressProgram, site);
        }
        let mut packet = self.spare_packet(false);
        if let State::Compiled(state) = &mut packet.state {
            copies.detach_into(state);
        }
        packet.original.clear();
        packet.original.extend_from_slice(came.original);
        (packet.ingress_port, packet.passes) = (came.by, came.passes);
        (packet.max_bytes, packet.class_of_service, packet.parsed_bytes) = (max_bytes, 0, copies.measured_bytes());
        (packet.trace, packet.pass) = (0, 0);
        let leaving = Leaving { port, at: came.at, depth: 0 };
        self.after_egress(packet, leaving, false, output.made, &mut ());
        output.flush();
    }
}
