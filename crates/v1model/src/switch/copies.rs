//! Makes copies that pass egress at once, one after the other, with the memory of the packet that they are copies of.
//!
//! A copy needs its bytes only when it leaves. So it passes egress in the buffer of its packet, what leaves is copied,
//! and the packet returns to its state after ingress: its frame and the headers that it had, but not the payload.
//! Copies do so if nothing delays them and no pass through egress requests another one. Then the order of all passes is
//! that of a queue of pending passes, which the other copies take.

use jit::{InPlacePacket, UnitOutcome};
use switch::{Backup, DropReason, Egress, Frame, PortId, Replica};

use super::Switch;
use super::in_place::{PacketOutput, PassResult, ReceivedPacket};
use super::packet::Leaving;
use super::state::Slots;

impl Switch {
    /// Whether copies of a packet pass egress as soon as they are made.
    pub(super) fn copies_pass_at_once(&self, came: ReceivedPacket<'_>) -> bool {
        let ends = self.machine.as_ref().is_some_and(|machine| machine.copies_end);
        ends && came.whole.is_some() && self.work.is_empty()
    }

    /// Sends a packet to replicas: copies, and at last the packet itself, whose departure is returned.
    pub(super) fn replicate_at_once(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        replicas: &[Replica],
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> Result<Leaving, PassResult> {
        let rid_slot = self.layout.standard.egress_rid;
        let passing = replicas.len().min(self.work_left as usize);
        let refused = (replicas.len() - passing) as u64;
        if refused > 0 {
            self.drops.count_many(&mut self.registry, DropReason::LoopLimit, 0, refused);
        }
        let Some((last, others)) = replicas[..passing].split_last() else { return Err(PassResult::Gone) };
        self.work_left -= passing as u32;
        let mut checkpoint = std::mem::take(&mut self.checkpoint);
        if !others.is_empty() {
            lent.save(&mut checkpoint);
        }
        for replica in others {
            let Backup { port, rid } = replica.choose(|port| self.ports.is_up(port));
            lent.set(rid_slot, u64::from(rid));
            self.pass_copy(lent, port, came, output);
            lent.restore(&checkpoint);
        }
        self.checkpoint = checkpoint;
        let Backup { port, rid } = last.choose(|port| self.ports.is_up(port));
        lent.set(rid_slot, u64::from(rid));
        Ok(self.pass_queue(lent, port, came.at))
    }

    /// Runs egress for a copy and sends it. The state of the packet is unspecified afterwards.
    fn pass_copy(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        port: PortId,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) {
        let leaving = self.pass_queue(lent, port, came.at);
        let outcome = self.run_egress(lent, leaving);
        if self.failed(outcome, false).is_err() {
            return;
        }
        match outcome {
            UnitOutcome::Done(_) => self.send_copy(lent, leaving, output),
            _ if lent.has_requests() => {
                let packet = self.detached(lent, came, output);
                self.after_egress(packet, leaving, false, output.made, &mut ());
                output.flush();
            }
            _ => _ = self.dropped_by_program(lent, DropReason::EgressProgram),
        }
    }

    /// Sends a copy of a deparsed packet.
    fn send_copy(&mut self, lent: &InPlacePacket<'_>, leaving: Leaving, output: &mut PacketOutput<'_>) {
        let Leaving { port, at, .. } = leaving;
        let max_bytes = output.max_bytes as usize;
        let length = lent.output_length().min(max_bytes);
        if let Some(reason) = self.obstacle(port, length) {
            return self.drops.count(&mut self.registry, reason, 0);
        }
        self.ports.count_tx(&mut self.registry, port, length);
        let mut data = lent.output_copy();
        data.truncate(max_bytes);
        if self.config.cpu_port == Some(port) {
            self.hand_up(data, at);
        } else {
            output.output.push(Egress::Owned(Frame { port, data }));
        }
    }
}
