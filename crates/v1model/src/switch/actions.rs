//! Carries out what packets in place request: clones, replicas, digests, further passes.
//!
//! The packet itself stays in place as long as it can; only its copies are allocated. The order is that of
//! [`super::ingress`] and [`super::egress`]: copies that were made before a packet leave before it.

use engine::Now;
use ir::FieldListItem;
use jit::InPlacePacket;
use switch::{Backup, DropReason, PortId};

use super::Switch;
use super::in_place::{PacketOutput, PassResult, ReceivedPacket};
use super::ingress::RequestedActions;
use super::packet::{Instance, Leaving, Packet};
use super::paths::{Path, PathReason};
use super::state::{Slots, State, unit};

impl Switch {
    /// Collects the actions that a packet requested, and counts its passes from now on: `used` have been made.
    fn asked_in_place(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        (used, reason): (u32, PathReason),
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> RequestedActions {
        let is_first = !std::mem::replace(&mut output.counts_passes, true);
        if is_first {
            self.work_left = self.config.max_work - used;
        }
        let mut asked = RequestedActions::default();
        if lent.has_requests() {
            let mut requests = lent.take_requests();
            asked = self.carry_out(&mut requests, &mut output.max_bytes, came.at);
            lent.reuse_requests(requests);
        }
        if output.path.is_none() {
            let reason = if self.must_hold() { PathReason::Resilient } else { reason };
            output.path = Some((Path::Single, asked.path_reason().unwrap_or(reason)));
        }
        asked
    }

    /// Performs the actions after ingress. Returns the departure of the packet if it continues to egress at once.
    pub(super) fn act_after_ingress(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        group: u32,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> Result<Leaving, PassResult> {
        let standard = self.layout.standard;
        let reason = if lent.has_requests() { PathReason::Requested } else { PathReason::Multicast };
        let asked = self.asked_in_place(lent, (1, reason), came, output);
        if let Some((session, keep)) = asked.clone {
            let copies_end = self.machine.as_ref().is_some_and(|machine| machine.copies_end);
            let at_once = copies_end && self.copies_pass_at_once(came);
            self.clone_original(session, keep, came, |state, kept| lent.keep_for(state, kept));
            if at_once {
                self.run_pending(output);
            }
        }
        if let Some(keep) = asked.resubmit {
            return Err(self.resubmit_in_place(lent, keep, came, output));
        }
        if group != 0 {
            return self.multicast_in_place(lent, group, came, output);
        }
        let port = lent.number(standard.egress_spec) as u32;
        if port == self.layout.drop_port {
            return Err(self.dropped_by_program(lent, DropReason::IngressProgram));
        }
        if let Some(slot) = standard.replicas {
            let mut chosen = self.taken_choice();
            lent.ports(slot, &mut chosen);
            if !chosen.is_empty() {
                return self.replicate_in_place(lent, chosen, came, output);
            }
            self.chosen = chosen;
        }
        lent.set(standard.instance_type, Instance::Normal as u64);
        self.enqueue_in_place(lent, PortId(port), reason, came, output)
    }

    /// Sends a packet to a queue, which it passes at once if the queue is open.
    pub(super) fn enqueue_in_place(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        port: PortId,
        reason: PathReason,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> Result<Leaving, PassResult> {
        if !output.counts_passes {
            self.work_left = self.config.max_work - 1;
        }
        if !self.queues.is_open(port, self.priority(lent)) {
            let packet = self.detached(lent, came, output);
            output.record_copy(reason);
            self.enqueue(packet, port, came.at, &mut ());
            return Err(PassResult::Gone);
        }
        let leaving = self.pass_queue(lent, port, came.at);
        // Copies that were made before this packet run first; what they cause runs after it.
        self.run_pending(output);
        match self.work_left.checked_sub(1) {
            Some(left) => {
                self.work_left = left;
                Ok(leaving)
            }
            None => {
                self.drops.count(&mut self.registry, DropReason::LoopLimit, 0);
                Err(PassResult::Gone)
            }
        }
    }

    /// Runs the passes that are pending now, but not those that they cause.
    pub(super) fn run_pending(&mut self, output: &mut PacketOutput<'_>) {
        let row = self.current_row();
        for _ in 0..self.work.len() {
            if let Some(work) = self.work.pop_front() {
                self.run_work(work, output.made, &mut ());
            }
        }
        self.continue_pass(row);
        output.flush();
    }

    /// Sends copies to all replicas of a group but the last, which is the packet itself.
    fn multicast_in_place(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        group: u32,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> Result<Leaving, PassResult> {
        let mut chosen = self.taken_choice();
        if let Some(copies) = self.groups.without_backups(group) {
            chosen.extend_from_slice(copies);
            copies.iter().for_each(|copy| self.ports.prefetch_passed(&self.registry, copy.port));
        } else if let Some(found) = self.groups.get(group) {
            chosen.extend(found.replicas.iter().map(|replica| replica.choose(|port| self.ports.is_up(port))));
        }
        if chosen.is_empty() {
            let reason = if self.groups.get(group).is_some() { DropReason::EmptyGroup } else { DropReason::NoGroup };
            self.drops.count(&mut self.registry, reason, 0);
            self.chosen = chosen;
            return Err(PassResult::Gone);
        }
        self.replicate_in_place(lent, chosen, came, output)
    }

    /// Returns the empty list of ports and replica ids of copies, whose memory is reused.
    pub(super) fn taken_choice(&mut self) -> Vec<Backup> {
        let mut chosen = std::mem::take(&mut self.chosen);
        chosen.clear();
        chosen
    }

    /// Sends copies to all these ports but the last, which gets the packet itself.
    fn replicate_in_place(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        chosen: Vec<Backup>,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> Result<Leaving, PassResult> {
        lent.set(self.layout.standard.instance_type, Instance::Replicated as u64);
        self.registry.add(self.stats.replicated, 1);
        self.registry.add(self.stats.replicas, chosen.len() as u64);
        let result = if self.copies_pass_at_once(came) {
            Err(self.replicate_at_once(lent, &chosen, came, output))
        } else {
            self.replicate_by_queues(lent, &chosen, came, output)
        };
        self.chosen = chosen;
        result
    }

    /// Sends copies to the queues of all these ports but the last, whose queue gets the packet itself.
    fn replicate_by_queues(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        chosen: &[Backup],
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> Result<Leaving, PassResult> {
        let rid_slot = self.layout.standard.egress_rid;
        let Some((last, others)) = chosen.split_last() else { return Err(PassResult::Gone) };
        for Backup { port, rid } in others {
            if self.is_work_used_up() {
                continue;
            }
            lent.set(rid_slot, u64::from(*rid));
            let copy = self.detached(lent, came, output);
            self.enqueue(copy, *port, came.at, &mut ());
        }
        if self.is_work_used_up() {
            return Err(PassResult::Gone);
        }
        lent.set(rid_slot, u64::from(last.rid));
        self.enqueue_in_place(lent, last.port, PathReason::Multicast, came, output)
    }

    /// Sends a packet through the pipeline again, as it came.
    fn resubmit_in_place(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        keep: Option<u32>,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> PassResult {
        if !self.stays_for_another_pass(keep, came) {
            let packet = self.detached(lent, came, output);
            output.record_copy(PathReason::Resubmitted);
            self.resubmit(packet, keep, came.at, &mut ());
            return PassResult::Gone;
        }
        self.registry.add(self.stats.resubmitted, 1);
        lent.restart_as_it_came(came.original, self.field_list(keep));
        lent.set(self.layout.standard.instance_type, Instance::Resubmitted as u64);
        output.max_bytes = u32::MAX;
        PassResult::Again
    }

    /// Performs the actions after egress.
    pub(super) fn act_after_egress(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        leaving: Leaving,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> PassResult {
        let asked = self.asked_in_place(lent, (2, PathReason::Requested), came, output);
        if let Some((session, keep)) = asked.clone {
            self.clone_present(lent, session, keep, came, output);
        }
        if lent.number(self.layout.standard.egress_spec) == u64::from(self.layout.drop_port) {
            return self.dropped_by_program(lent, DropReason::EgressProgram);
        }
        let keeps_original = self.machine.as_ref().is_some_and(|machine| machine.keeps_original);
        let goes_on = asked.recirculate.filter(|keep| keeps_original || !self.stays_for_another_pass(*keep, came));
        if goes_on.is_some() {
            let packet = self.detached(lent, came, output);
            output.record_copy(PathReason::Recirculated);
            self.deparse(packet, leaving, goes_on, output.made, &mut ());
            return PassResult::Gone;
        }
        let outcome = lent.run(unit::DEPARSE, &mut self.objects, Now { ns: came.at.as_ns() });
        if let Err(result) = self.failed(outcome, false) {
            return result;
        }
        match asked.recirculate {
            Some(keep) => self.recirculate_in_place(lent, keep, came, output),
            None => self.leave_in_place(lent, leaving, output),
        }
    }

    /// Sends a deparsed packet, which may stay in place for another pass, through the pipeline again.
    pub(super) fn recirculate_in_place(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        keep: Option<u32>,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> PassResult {
        let most = self.config.max_frame.min(output.max_bytes as usize);
        let Some(start) = lent.output_start().filter(|start| lent.room() - start <= most) else {
            let mut data = lent.output_copy();
            data.truncate(output.max_bytes as usize);
            let packet = self.detached(lent, came, output);
            output.record_copy(PathReason::Recirculated);
            self.recirculate(packet, data, keep, came.at, &mut ());
            return PassResult::Gone;
        };
        self.registry.add(self.stats.recirculated, 1);
        lent.restart(start, self.field_list(keep));
        lent.set(self.layout.standard.instance_type, Instance::Recirculated as u64);
        output.max_bytes = u32::MAX;
        PassResult::Again
    }

    /// Whether a packet can stay in place for another pass: no work comes before it, it may make the pass, no
    /// header is kept, and it cannot have to wait for a row.
    fn stays_for_another_pass(&self, keep: Option<u32>, came: ReceivedPacket<'_>) -> bool {
        if self.rows.is_some() {
            return false;
        }
        let is_slot = |kept: &FieldListItem| matches!(kept, FieldListItem::Slot(_));
        let may_pass = came.passes < self.config.max_passes && self.work_left >= 2;
        self.work.is_empty() && may_pass && self.field_list(keep).iter().all(is_slot)
    }

    /// Clones the packet as it came to a mirror session: see [`Switch::clone_as_it_came`].
    pub(super) fn clone_original(
        &mut self,
        session: u32,
        keep: Option<u32>,
        came: ReceivedPacket<'_>,
        keep_for: impl FnOnce(&mut jit::Packet, &[FieldListItem]),
    ) {
        self.registry.add(self.stats.ingress_clones, 1);
        if !self.may_clone((came.passes, 0), session, &mut ()) {
            return;
        }
        let mut copy = self.packet(came.original.to_vec(), came.by, None, &mut ());
        copy.passes = came.passes + 1;
        copy.state.set_slot_to(self.layout.standard.ingress_port, u64::from(came.by.0));
        if let Err(failure) = self.parse(&mut copy, came.at, &mut ()) {
            return self.drop_failed(copy, failure, &mut ());
        }
        self.send_clone(copy, keep, keep_for, (session, Instance::IngressClone), came);
    }

    /// Clones the packet with its present headers to a mirror session: see [`Switch::clone_as_it_is`].
    fn clone_present(
        &mut self,
        lent: &InPlacePacket<'_>,
        session: u32,
        keep: Option<u32>,
        came: ReceivedPacket<'_>,
        output: &PacketOutput<'_>,
    ) {
        self.registry.add(self.stats.egress_clones, 1);
        if !self.may_clone((came.passes, 0), session, &mut ()) {
            return;
        }
        let mut copy = self.detached(lent, came, output);
        copy.passes += 1;
        let keep_for = |state: &mut jit::Packet, kept: &[FieldListItem]| lent.keep_for(state, kept);
        self.send_clone(copy, keep, keep_for, (session, Instance::EgressClone), came);
    }

    /// Sends a clone to its session with the metadata of a field list only.
    fn send_clone(
        &mut self,
        mut copy: Box<Packet>,
        keep: Option<u32>,
        keep_for: impl FnOnce(&mut jit::Packet, &[FieldListItem]),
        (session, instance): (u32, Instance),
        came: ReceivedPacket<'_>,
    ) {
        self.clear_metadata(&mut copy);
        if let State::Compiled(state) = &mut copy.state {
            keep_for(state, self.field_list(keep));
        }
        copy.state.set(self.layout.standard.instance_type, instance as u64);
        self.mirror(copy, session, came.at, &mut ());
    }

    /// Makes an owned packet with the state of the packet in place.
    pub(super) fn detached(
        &mut self,
        lent: &InPlacePacket<'_>,
        came: ReceivedPacket<'_>,
        output: &PacketOutput<'_>,
    ) -> Box<Packet> {
        let mut packet = self.spare_packet(false);
        if let State::Compiled(state) = &mut packet.state {
            lent.detach_into(state);
        }
        packet.original.clear();
        packet.original.extend_from_slice(came.original);
        packet.ingress_port = came.by;
        packet.passes = came.passes;
        packet.max_bytes = output.max_bytes;
        packet.class_of_service = 0;
        packet.parsed_bytes = lent.measured_bytes();
        packet.row = self.current_row();
        packet.missing.clear();
        (packet.trace, packet.pass) = (0, 0);
        packet
    }
}
