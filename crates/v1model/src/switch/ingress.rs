//! Runs parser and ingress, and the actions at the end of ingress.

use std::sync::Arc;

use bits::Bits;
use engine::{Ending, Interpreter, Now, Requested, Watch};

use ir::{BodyId, DigestId, FieldListItem, LocId};
use switch::trace::{PassKind, PassOutcome, Recorder};
use switch::{Backup, DropReason, Notification, PRIORITIES, PortId, Replica, Time};

use super::Switch;
use super::packet::{Instance, Leaving, Packet, Work};
use super::paths::PathReason;
use super::state::{Slots, State, unit};

/// The actions that ingress or egress requested. The last of each kind counts.
#[derive(Default)]
pub(super) struct RequestedActions {
    /// Session and field list.
    pub clone: Option<(u32, Option<u32>)>,
    pub resubmit: Option<Option<u32>>,
    pub recirculate: Option<Option<u32>>,
}

impl RequestedActions {
    /// Returns the action that takes a packet out of its batch, if there is one.
    pub fn path_reason(&self) -> Option<PathReason> {
        match (&self.clone, &self.resubmit, &self.recirculate) {
            (_, Some(_), _) => Some(PathReason::Resubmitted),
            (_, _, Some(_)) => Some(PathReason::Recirculated),
            (Some(_), None, None) => Some(PathReason::Cloned),
            (None, None, None) => None,
        }
    }
}

/// The reason why a block did not complete, and the place in the source.
pub(super) type BlockFailure = (DropReason, u32);

/// Returns the consequence of an ending for the packet.
pub(super) fn judge(ending: Ending, in_ingress: bool) -> Result<(), BlockFailure> {
    match ending {
        Ending::Return | Ending::Exit | Ending::Reject => Ok(()),
        Ending::AssertFailed(loc) => {
            let reason = if in_ingress { DropReason::IngressAssert } else { DropReason::EgressAssert };
            Err((reason, loc.as_u32()))
        }
        Ending::OutOfFuel(loc) => Err((DropReason::OutOfFuel, loc.as_u32())),
        Ending::Pending(_) => Err((DropReason::NotYet, 0)),
        Ending::RowRefused => Err((DropReason::RowUnavailable, 0)),
    }
}

impl Switch {
    /// Runs a block of the program.
    pub(super) fn run<R: Recorder>(
        &mut self,
        role: &'static str,
        body: BodyId,
        packet: &mut Packet,
        now: Time,
        recorder: &mut R,
    ) -> Result<(), BlockFailure> {
        let State::Interpreted(state) = &mut packet.state else {
            unreachable!("packets of machine code run unit by unit")
        };
        recorder.section(packet.pass, role, &self.program, body, state);
        let now = Now { ns: now.as_ns() };
        let in_ingress = matches!(role, "parser" | "verify_checksum" | "ingress");
        let notes = packet.tiny.as_mut().and_then(|tiny| tiny.entry_notes(recorder));
        let ending = match notes {
            Some(mut notes) => {
                let watch: &mut dyn Watch = &mut notes;
                Interpreter::run(&self.program, &mut self.objects, body, state, now, watch)
            }
            None => Interpreter::run(&self.program, &mut self.objects, body, state, now, recorder),
        };
        judge(ending, in_ingress)
    }

    /// Runs a unit of machine code. Returns false if it stopped because the switch must act.
    pub(super) fn run_unit(&mut self, unit: usize, packet: &mut Packet, now: Time) -> Result<bool, BlockFailure> {
        let (State::Compiled(state), Some(machine)) = (&mut packet.state, &self.machine) else {
            unreachable!("packets of the interpreter run block by block")
        };
        let in_ingress = matches!(unit, unit::INGRESS | unit::PARSE);
        match machine.compiled.run(unit, state, &mut self.objects, Now { ns: now.as_ns() }) {
            jit::UnitOutcome::Done(ending) => judge(ending, in_ingress).map(|()| true),
            jit::UnitOutcome::Failed(_, ending) => judge(ending, in_ingress).map(|()| true),
            jit::UnitOutcome::Stopped(_) => Ok(false),
        }
    }

    /// Collects the actions requested by the last block. Digests and truncation are carried out at once.
    pub(super) fn asked(&mut self, packet: &mut Packet, now: Time) -> RequestedActions {
        let mut requests = packet.state.take_requests();
        let asked = self.carry_out(&mut requests, &mut packet.max_bytes, now);
        packet.state.reuse_requests(requests);
        asked
    }

    /// Carries out requested digests, and truncation as far as it changes the number of bytes to send. Returns the
    /// other actions.
    pub(super) fn carry_out(
        &mut self,
        requests: &mut Vec<(Requested, LocId)>,
        max_bytes: &mut u32,
        now: Time,
    ) -> RequestedActions {
        let mut asked = RequestedActions::default();
        for (request, _) in requests.drain(..) {
            match request {
                Requested::Clone { session, keep, .. } => asked.clone = Some((session, keep)),
                Requested::Resubmit(keep) => asked.resubmit = Some(keep),
                Requested::Recirculate(keep) => asked.recirculate = Some(keep),
                Requested::Truncate(bytes) => *max_bytes = (*max_bytes).min(bytes),
                Requested::Digest(digest, values) => self.send_digest(digest, values, now),
                Requested::Hold => {}
            }
        }
        asked
    }

    /// Sends a digest to the control plane.
    pub(super) fn send_digest(&mut self, digest: DigestId, values: Vec<Bits>, time: Time) {
        self.registry.add(self.stats.digests, 1);
        self.notify(Notification::Digest { digest, values, time });
    }

    /// Runs the parser, checksum verification and ingress, and the actions after them.
    pub(super) fn ingress<R: Recorder>(&mut self, mut packet: Box<Packet>, now: Time, recorder: &mut R) {
        let standard = self.layout.standard;
        let length = packet.state.data().len() as u64;
        packet.state.set_slot_to(standard.ingress_port, u64::from(packet.ingress_port.0));
        packet.state.set(standard.packet_length, length);
        packet.state.set(standard.ingress_global_timestamp, now.as_us());

        let before = self.begin_pass(&packet);
        let done = match packet.state {
            State::Interpreted(_) => self.blocks_of_ingress(&mut packet, now, recorder),
            State::Compiled(_) => {
                if self.machine.as_ref().is_some_and(|machine| machine.keeps_original) {
                    packet.original.clear();
                    packet.original.extend_from_slice(packet.state.data());
                }
                let result = self.run_unit(unit::INGRESS, &mut packet, now).map(drop);
                self.note_parsed(&mut packet);
                result
            }
        };
        match done {
            Ok(()) => {
                self.end_pass(&mut packet);
                self.after_ingress(packet, now, recorder);
            }
            Err(failure) => self.abort_pass(packet, before.map(|it| Work::Ingress(it, now)), failure, recorder),
        }
    }

    /// Performs the actions after ingress.
    pub(super) fn after_ingress<R: Recorder>(&mut self, mut packet: Box<Packet>, now: Time, recorder: &mut R) {
        let standard = self.layout.standard;
        let asked = self.asked(&mut packet, now);
        if let Some((session, keep)) = asked.clone {
            self.clone_as_it_came(&packet, session, keep, now, recorder);
        }
        if let Some(keep) = asked.resubmit {
            return self.resubmit(packet, keep, now, recorder);
        }
        let group = standard.mcast_grp.map_or(0, |slot| packet.state.number(slot) as u32);
        if group != 0 {
            packet.state.set(standard.instance_type, Instance::Replicated as u64);
            return self.multicast(packet, group, now, recorder);
        }
        let port = packet.state.number(standard.egress_spec) as u32;
        if port == self.layout.drop_port {
            return self.drop_by_program(packet, DropReason::IngressProgram, recorder);
        }
        if let Some(slot) = standard.replicas {
            let mut chosen = Vec::new();
            packet.state.ports(slot, &mut chosen);
            if !chosen.is_empty() {
                packet.state.set(standard.instance_type, Instance::Replicated as u64);
                let ports = || chosen.iter().map(|chosen| chosen.port.0).collect();
                recorder.end(packet.pass, || PassOutcome::ReplicatedToPorts { ports: ports() });
                return self.replicate(packet, chosen.iter().copied(), now, recorder);
            }
        }
        packet.state.set(standard.instance_type, Instance::Normal as u64);
        self.enqueue(packet, PortId(port), now, recorder);
    }

    /// Runs the parser, checksum verification and ingress in turn.
    fn blocks_of_ingress<R: Recorder>(
        &mut self,
        packet: &mut Packet,
        now: Time,
        recorder: &mut R,
    ) -> Result<(), BlockFailure> {
        let blocks = self.layout.blocks;
        self.parse(packet, now, recorder)?;
        self.run("verify_checksum", blocks.verify_checksum, packet, now, recorder)?;
        self.run("ingress", blocks.ingress, packet, now, recorder)
    }

    /// Counts a parser error, and records what machine code measured after the parser.
    fn note_parsed(&mut self, packet: &mut Packet) {
        self.count_parser_error(packet.state.parser_error());
        if let State::Compiled(state) = &packet.state {
            packet.parsed_bytes = state.measured_bytes();
        }
    }

    /// Whether a number is that of an error of the program.
    #[inline]
    pub(super) fn is_parser_error(&self, error: u32) -> bool {
        error != self.layout.no_error && (error as usize) < self.program.errors.len()
    }

    pub(super) fn count_parser_error(&mut self, error: u32) {
        if self.is_parser_error(error) {
            self.registry.add(self.stats.parser_errors, 1);
        }
    }

    /// Runs the parser and records its error.
    pub(super) fn parse<R: Recorder>(
        &mut self,
        packet: &mut Packet,
        now: Time,
        recorder: &mut R,
    ) -> Result<(), BlockFailure> {
        if let State::Compiled(_) = packet.state {
            let result = self.run_unit(unit::PARSE, packet, now).map(drop);
            self.note_parsed(packet);
            return result;
        }
        let result = self.run("parser", self.layout.blocks.parser, packet, now, recorder);
        self.note_parsed(packet);
        let error = packet.state.parser_error();
        packet.state.set(self.layout.standard.parser_error, u64::from(error));
        packet.parsed_bytes = self.header_bytes(&packet.state);
        if let Some(state) = packet.state.interpreted() {
            recorder.parsed(packet.pass, &self.program, state);
        }
        result
    }

    /// Sends a clone of the packet as received through the parser and to the mirror session. Of the metadata only the
    /// fields of the field list are kept.
    fn clone_as_it_came<R: Recorder>(
        &mut self,
        packet: &Packet,
        session: u32,
        keep: Option<u32>,
        now: Time,
        recorder: &mut R,
    ) {
        self.registry.add(self.stats.ingress_clones, 1);
        if !self.may_clone((packet.passes, packet.pass), session, recorder) {
            return;
        }
        let data = packet.as_it_came().to_vec();
        let mut copy = self.renewed(packet, data, PassKind::IngressClone { session }, recorder);
        copy.state.set_slot_to(self.layout.standard.ingress_port, u64::from(packet.ingress_port.0));
        if let Err(failure) = self.parse(&mut copy, now, recorder) {
            return self.drop_failed(copy, failure, recorder);
        }
        self.clear_metadata(&mut copy);
        self.keep(packet, &mut copy, keep);
        copy.state.set(self.layout.standard.instance_type, Instance::IngressClone as u64);
        self.mirror(copy, session, now, recorder);
    }

    /// Whether a clone can be made of a packet that was in the pipeline `passes` times and is now in the recorder's
    /// pass `pass`. If not, the clone is counted as dropped.
    pub(super) fn may_clone<R: Recorder>(
        &mut self,
        (passes, pass): (u16, usize),
        session: u32,
        recorder: &mut R,
    ) -> bool {
        let (reason, why) = if self.mirrors.get(session).is_none() {
            (DropReason::NoMirrorSession, "the mirror session does not exist")
        } else if passes >= self.config.max_passes {
            (DropReason::LoopLimit, "the packet has been through the switch too often")
        } else {
            return true;
        };
        self.drops.count(&mut self.registry, reason, 0);
        recorder.note(pass, || format!("no clone for session {session}: {why}"));
        false
    }

    /// Sets all metadata to 0; headers stay.
    pub(super) fn clear_metadata(&self, packet: &mut Packet) {
        match &mut packet.state {
            State::Interpreted(state) => {
                for slot in &self.layout.metadata {
                    state.set_slot_to(*slot, 0);
                }
            }
            State::Compiled(state) => {
                let machine = self.machine.as_ref().expect("the packet runs machine code");
                state.clear_slots(&machine.metadata);
            }
        }
    }

    /// Returns what a field list has; nothing if there is no list.
    pub(super) fn field_list(&self, list: Option<u32>) -> &[FieldListItem] {
        let kept = list.and_then(|list| self.program.field_lists.get(&list));
        kept.map_or(&[], |kept| kept.as_slice())
    }

    /// Copies the values of a field list.
    pub(super) fn keep(&self, from: &Packet, to: &mut Packet, list: Option<u32>) {
        to.state.keep(&from.state, self.field_list(list));
    }

    /// Sends a clone to all destinations of its session.
    pub(super) fn mirror<R: Recorder>(&mut self, mut packet: Box<Packet>, session: u32, now: Time, recorder: &mut R) {
        let Some(found) = self.mirrors.get(session) else { return self.recycle(packet) };
        packet.max_bytes = found.max_bytes.unwrap_or(u32::MAX);
        packet.class_of_service = found.class_of_service;
        if let ([replica], None) = (found.replicas.as_slice(), found.group) {
            return self.send_clone_to(replica.choose(|port| self.ports.is_up(port)), packet, now, recorder);
        }
        let (mirrors, groups) = (Arc::clone(&self.mirrors), Arc::clone(&self.groups));
        let Some(session) = mirrors.get(session) else { return self.recycle(packet) };
        let group = session.group.and_then(|group| groups.get(group));
        let group = group.map_or(&[][..], |group| group.replicas.as_slice());
        let replicas = || session.replicas.iter().chain(group);
        let copies = session.replicas.len() + group.len();
        match replicas().next() {
            None => self.drop_packet(packet, DropReason::NoGroup, recorder),
            Some(replica) if copies == 1 => {
                self.send_clone_to(replica.choose(|port| self.ports.is_up(port)), packet, now, recorder);
            }
            Some(_) => {
                recorder.end(packet.pass, || PassOutcome::Replicated { group: None, copies });
                let chosen: Vec<Backup> = replicas().map(|replica| self.choose(replica)).collect();
                self.replicate(packet, chosen.into_iter(), now, recorder);
            }
        }
    }

    /// Sends a clone to the only destination of its session.
    fn send_clone_to<R: Recorder>(&mut self, chosen: Backup, mut packet: Box<Packet>, now: Time, recorder: &mut R) {
        packet.state.set(self.layout.standard.egress_rid, u64::from(chosen.rid));
        self.enqueue(packet, chosen.port, now, recorder);
    }

    pub(super) fn resubmit<R: Recorder>(
        &mut self,
        packet: Box<Packet>,
        keep: Option<u32>,
        now: Time,
        recorder: &mut R,
    ) {
        if packet.passes >= self.config.max_passes {
            return self.drop_packet(packet, DropReason::LoopLimit, recorder);
        }
        self.registry.add(self.stats.resubmitted, 1);
        let data = packet.as_it_came().to_vec();
        let mut again = self.renewed(&packet, data, PassKind::Resubmitted, recorder);
        self.keep(&packet, &mut again, keep);
        again.state.set(self.layout.standard.instance_type, Instance::Resubmitted as u64);
        recorder.end(packet.pass, || PassOutcome::Resubmitted);
        self.recycle(packet);
        self.work.push_back(Work::Ingress(again, now));
    }

    fn multicast<R: Recorder>(&mut self, packet: Box<Packet>, group: u32, now: Time, recorder: &mut R) {
        let groups = Arc::clone(&self.groups);
        let Some(members) = groups.get(group) else {
            return self.drop_packet(packet, DropReason::NoGroup, recorder);
        };
        let replicas = &members.replicas;
        if replicas.is_empty() {
            return self.drop_packet(packet, DropReason::EmptyGroup, recorder);
        }
        recorder.end(packet.pass, || PassOutcome::Replicated { group: Some(group), copies: replicas.len() });
        let chosen: Vec<Backup> = replicas.iter().map(|replica| self.choose(replica)).collect();
        self.replicate(packet, chosen.into_iter(), now, recorder);
    }

    /// Returns the port and the replica id that a replica uses now.
    fn choose(&self, replica: &Replica) -> Backup {
        replica.choose(|port| self.ports.is_up(port))
    }

    /// Sends a copy of a packet to every one of these ports.
    fn replicate<R: Recorder>(
        &mut self,
        packet: Box<Packet>,
        chosen: impl ExactSizeIterator<Item = Backup>,
        now: Time,
        recorder: &mut R,
    ) {
        self.registry.add(self.stats.replicated, 1);
        self.registry.add(self.stats.replicas, chosen.len() as u64);
        for Backup { port, rid } in chosen {
            if self.is_work_used_up() {
                continue;
            }
            let mut copy = self.copied(&packet, PassKind::Replica { rid }, recorder);
            copy.state.set(self.layout.standard.egress_rid, u64::from(rid));
            self.enqueue(copy, port, now, recorder);
        }
        self.recycle(packet);
    }

    /// Whether the present work uses up the passes of the frame. Then the next copy is counted as dropped: it is not
    /// made, since it would be dropped anyway.
    pub(super) fn is_work_used_up(&mut self) -> bool {
        let is_used_up = self.work.len() >= self.work_left as usize;
        if is_used_up {
            self.drops.count(&mut self.registry, DropReason::LoopLimit, 0);
        }
        is_used_up
    }

    /// Puts a packet into the queue of a port, or passes it to egress at once if nothing delays it there.
    pub(super) fn enqueue<R: Recorder>(&mut self, mut packet: Box<Packet>, port: PortId, now: Time, recorder: &mut R) {
        let standard = self.layout.standard;
        let priority = match packet.class_of_service {
            0 => standard.priority.map_or(0, |slot| packet.state.number(slot) as usize),
            class => usize::from(class),
        };
        let priority = priority.min(PRIORITIES - 1);
        let depth = self.queues.depth(port, priority);
        packet.state.set(standard.enq_timestamp, now.as_us());
        packet.state.set(standard.enq_qdepth, depth as u64);
        self.note_queue(&mut packet, port, priority, (now, depth));
        if self.queues.is_open(port, priority) {
            self.ports.count_enqueue(&mut self.registry, port, priority, true, 0);
            self.work.push_back(Work::Egress(packet, Leaving { port, at: now, depth: 0 }));
            return;
        }
        let pass = packet.pass;
        let bytes = packet.bytes_in_queue();
        let refused = self.queues.push(now, port, priority, bytes, packet).err();
        self.count_offered(port, priority, refused.is_none(), bytes);
        let depth = self.queues.depth(port, priority);
        self.ports.count_enqueue(&mut self.registry, port, priority, refused.is_none(), depth);
        match refused {
            Some(switch::QueueFull(packet)) => self.drop_at_port(packet, DropReason::QueueFull, port, recorder),
            None => recorder.end(pass, || PassOutcome::Queued { port: port.0, priority, depth }),
        }
    }
}
