//! Runs egress and deparser, and the actions at their end.

use switch::trace::{PassKind, PassOutcome, Recorder};
use switch::{DropReason, Frame, Notification, PortId, Ports, Time};

use super::Switch;
use super::packet::{Instance, Leaving, Packet, Work};
use super::state::{Slots, State, unit};

/// Returns the reason why a packet of this length cannot leave by a port, if there is one.
#[inline]
pub(super) fn obstacle(ports: &Ports, max_frame: usize, port: PortId, length: usize) -> Option<DropReason> {
    if !ports.contains(port) {
        Some(DropReason::NoEgressPort)
    } else if !ports.is_up(port) {
        Some(DropReason::EgressPortDown)
    } else if length > max_frame {
        Some(DropReason::TooLong)
    } else {
        None
    }
}

impl Switch {
    /// Runs egress, checksum computation and deparser, and the actions after them.
    pub(super) fn egress<R: Recorder>(
        &mut self,
        mut packet: Box<Packet>,
        leaving: Leaving,
        output: &mut Vec<Frame>,
        recorder: &mut R,
    ) {
        let now = leaving.at;
        let before = self.begin_pass(&packet);
        // Headers added or removed by ingress change the length that egress sees.
        let is_read = packet.state.interpreted().is_some() || self.reads_length();
        let length = if is_read { packet.state.data().len() + self.header_bytes(&packet.state) } else { 0 };
        self.prepare(&mut packet.state, length.saturating_sub(packet.parsed_bytes), leaving);
        recorder.egress(packet.pass, leaving.port.0);
        let compiled = matches!(packet.state, State::Compiled(_));
        let ran = if compiled {
            self.run_unit(unit::EGRESS, &mut packet, now)
        } else {
            self.run("egress", self.layout.blocks.egress, &mut packet, now, recorder).map(|()| false)
        };
        match ran {
            Ok(deparsed) => {
                self.end_pass(&mut packet);
                self.after_egress(packet, leaving, deparsed, output, recorder);
            }
            Err(failure) => self.abort_pass(packet, before.map(|it| Work::Egress(it, leaving)), failure, recorder),
        }
    }

    /// Performs the actions after egress. Machine code may have run the deparser already.
    pub(super) fn after_egress<R: Recorder>(
        &mut self,
        mut packet: Box<Packet>,
        leaving: Leaving,
        deparsed: bool,
        output: &mut Vec<Frame>,
        recorder: &mut R,
    ) {
        let now = leaving.at;
        let standard = self.layout.standard;
        // Machine code runs the deparser directly if no action is requested and the packet is not dropped.
        if deparsed {
            let mut data = packet.state.finish();
            data.truncate(packet.max_bytes as usize);
            return self.transmit(packet, data, leaving, output, recorder);
        }
        let asked = self.asked(&mut packet, now);
        if let Some((session, keep)) = asked.clone {
            self.clone_as_it_is(&packet, session, keep, now, recorder);
        }
        if packet.state.number(standard.egress_spec) == u64::from(self.layout.drop_port) {
            return self.drop_by_program(packet, DropReason::EgressProgram, recorder);
        }
        self.deparse(packet, leaving, asked.recirculate, output, recorder);
    }

    /// Runs checksum computation and deparser, and sends the packet, or recirculates it with a field list.
    pub(super) fn deparse<R: Recorder>(
        &mut self,
        mut packet: Box<Packet>,
        leaving: Leaving,
        recirculate: Option<Option<u32>>,
        output: &mut Vec<Frame>,
        recorder: &mut R,
    ) {
        let now = leaving.at;
        let blocks = self.layout.blocks;
        let ran = if matches!(packet.state, State::Compiled(_)) {
            self.run_unit(unit::DEPARSE, &mut packet, now).map(drop)
        } else {
            [("compute_checksum", blocks.compute_checksum), ("deparser", blocks.deparser)]
                .into_iter()
                .try_for_each(|(role, body)| self.run(role, body, &mut packet, now, recorder))
        };
        if let Err(failure) = ran {
            return self.drop_failed(packet, failure, recorder);
        }
        let mut data = packet.state.finish();
        data.truncate(packet.max_bytes as usize);
        match recirculate {
            Some(keep) => self.recirculate(packet, data, keep, now, recorder),
            None => self.transmit(packet, data, leaving, output, recorder),
        }
    }

    /// Whether machine code reads the length that a packet has in egress.
    pub(super) fn reads_length(&self) -> bool {
        self.machine.as_ref().is_some_and(|machine| machine.reads_length)
    }

    /// Sets the metadata for egress.
    pub(super) fn prepare(&self, state: &mut impl Slots, length: usize, leaving: Leaving) {
        let standard = self.layout.standard;
        state.set(standard.packet_length, length as u64);
        state.set(standard.egress_global_timestamp, leaving.at.as_us());
        if let (Some(enqueued), Some(waited)) = (standard.enq_timestamp, standard.deq_timedelta) {
            let enqueued = state.number(enqueued);
            state.set_slot_to(waited, leaving.at.as_us().wrapping_sub(enqueued));
        }
        state.set(standard.deq_qdepth, leaving.depth as u64);
        state.set_slot_to(standard.egress_port, u64::from(leaving.port.0));
        // The choices of ingress have been carried out; only egress can drop the packet now.
        state.set_slot_to(standard.egress_spec, u64::from(self.layout.drop_port == 0));
        state.set(standard.drop_site, 0);
    }

    /// Clones the packet with its present headers to the mirror session and through egress. Of the metadata only the
    /// fields of the field list are kept.
    fn clone_as_it_is<R: Recorder>(
        &mut self,
        packet: &Packet,
        session: u32,
        keep: Option<u32>,
        now: Time,
        recorder: &mut R,
    ) {
        self.registry.add(self.stats.egress_clones, 1);
        if !self.may_clone((packet.passes, packet.pass), session, recorder) {
            return;
        }
        let mut copy = self.copied(packet, PassKind::EgressClone { session }, recorder);
        copy.passes += 1;
        self.clear_metadata(&mut copy);
        self.keep(packet, &mut copy, keep);
        copy.state.set(self.layout.standard.instance_type, Instance::EgressClone as u64);
        self.mirror(copy, session, now, recorder);
    }

    /// Sends the packet through the whole pipeline again, with the bytes with which it would leave.
    pub(super) fn recirculate<R: Recorder>(
        &mut self,
        packet: Box<Packet>,
        data: Vec<u8>,
        keep: Option<u32>,
        now: Time,
        recorder: &mut R,
    ) {
        if packet.passes >= self.config.max_passes {
            return self.drop_packet(packet, DropReason::LoopLimit, recorder);
        }
        if data.len() > self.config.max_frame {
            return self.drop_packet(packet, DropReason::TooLong, recorder);
        }
        self.registry.add(self.stats.recirculated, 1);
        let bytes = data.len();
        let mut again = self.renewed(&packet, data, PassKind::Recirculated, recorder);
        self.keep(&packet, &mut again, keep);
        again.state.set(self.layout.standard.instance_type, Instance::Recirculated as u64);
        recorder.end(packet.pass, || PassOutcome::Recirculated { bytes });
        self.recycle(packet);
        self.work.push_back(Work::Ingress(again, now));
    }

    /// Returns the reason why a packet of this length cannot leave by a port, if there is one.
    pub(super) fn obstacle(&self, port: PortId, length: usize) -> Option<DropReason> {
        obstacle(&self.ports, self.config.max_frame, port, length)
    }

    /// Sends a packet to a port or to the control plane.
    fn transmit<R: Recorder>(
        &mut self,
        mut packet: Box<Packet>,
        mut data: Vec<u8>,
        leaving: Leaving,
        output: &mut Vec<Frame>,
        recorder: &mut R,
    ) {
        let mut port = leaving.port;
        let to_controller = self.config.cpu_port == Some(port);
        let tiny = packet.tiny.take().filter(|_| !to_controller);
        if let Some(tiny) = &tiny {
            if !self.run_int(tiny, packet.ingress_port, &mut data, leaving) {
                return self.drop_at_port(packet, DropReason::IntDiscard, port, recorder);
            }
            tiny.put_back(&mut data);
        }
        // What leaves by a port that strips programs.
        let stripped = tiny.as_ref().and_then(|_| self.stripped(port, &data)).transpose();
        let Ok(stripped) = stripped else {
            return self.drop_at_port(packet, DropReason::ProgramStays, port, recorder);
        };
        let length = stripped.as_ref().map_or(data.len(), |(rest, _)| rest.len());
        if let Some(reason) = self.obstacle(port, length) {
            return self.drop_at_port(packet, reason, port, recorder);
        }
        self.ports.count_tx(&mut self.registry, port, length);
        self.queues.sent(port, leaving.at, length);
        if let Some(tiny) = &tiny {
            port = self.run_tiny(tiny, packet.ingress_port, &mut data, length, leaving);
        }
        if let Some((rest, programs)) = stripped.filter(|_| port == leaving.port) {
            self.count_stripped(packet.ingress_port, programs);
            data = rest;
        }
        if let Some(state) = packet.state.interpreted() {
            recorder.sent(packet.pass, port.0, to_controller, &data, &self.program, state);
        }
        self.recycle(packet);
        if to_controller {
            self.hand_up(data, leaving.at);
        } else {
            self.send(Frame { port, data }, output);
        }
    }

    /// Queues a packet for the control plane.
    pub(super) fn hand_up(&mut self, data: Vec<u8>, time: Time) {
        if let Some(port) = self.config.cpu_port {
            self.registry.add(self.stats.packets_in, 1);
            self.notify(Notification::PacketIn { port, data, time });
        }
    }
}
