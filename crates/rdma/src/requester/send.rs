//! Sends requests.

use switch::Time;
use wire::roce::{Extension, Opcode, Position};

use super::queue_pair::{QpState, RequesterQp};
use super::request::{Work, rest_of};
use super::{RequesterConfig, RequesterCounts};
use crate::mutant::{Mutant, Mutation};
use crate::path::PacketHead;
use crate::sink::FrameSink;

/// Number of packets of a WRITE for which one acknowledgement is requested. Without it, a long WRITE would show no
/// progress until its end, and a slow path would be taken for a dead one.
const PACKETS_PER_ACK: u32 = 64;

impl RequesterQp {
    /// Sends all packets that may be sent. Returns false if there is no more room.
    #[inline]
    pub(super) fn transmit(
        &mut self,
        now: Time,
        sink: &mut impl FrameSink,
        config: &RequesterConfig,
        counts: &mut RequesterCounts,
        mutation: Mutation,
    ) -> bool {
        if self.state != QpState::Connected || self.sends_from.is_some_and(|time| time > now) {
            return true;
        }
        self.sends_from = None;
        while let Some(request) = self.requests.get(self.send_index) {
            let is_full = self.reads >= self.max_reads && !mutation.is(Mutant::WindowIgnored);
            if request.work.has_answer() && is_full {
                return true;
            }
            if !self.send_next(sink, counts) {
                return false;
            }
            if self.deadline.is_none() && !mutation.is(Mutant::LossUnnoticed) {
                self.deadline = Some(now.after_ns(config.timeout_ns));
            }
        }
        true
    }

    /// Sends the next packet. Returns false if there is no room.
    #[inline]
    fn send_next(&mut self, sink: &mut impl FrameSink, counts: &mut RequesterCounts) -> bool {
        let request = &mut self.requests[self.send_index];
        let mtu = self.path.mtu;
        // A READ requests the rest of its answer, from the sequence number of the rest.
        let index = if request.work.has_answer() { request.done } else { self.send_packet };
        let offset = index * mtu.bytes() as u32;
        let (opcode, extension, payload) = match &request.work {
            Work::Read(range) => (Opcode::ReadRequest, rest_of(range, offset), &[][..]),
            Work::Write(range) => {
                let position = Position::of(index, request.packets);
                let extension = if position.is_first() { rest_of(range, 0) } else { Extension::None };
                let payload = &request.data[offset as usize..][..mtu.payload_of(index, range.len)];
                (Opcode::Write(position), extension, payload)
            }
            work => {
                let Some((opcode, atomic)) = work.atomic() else { unreachable!("READs and WRITEs are above") };
                (opcode, Extension::AtomicEth(atomic), &[][..])
            }
        };
        let is_border = (index + 1).is_multiple_of(PACKETS_PER_ACK) || index + 1 == request.packets;
        let is_ack_requested = !request.work.has_answer() && is_border;
        let len = self.template.frame_len(&extension, payload.len());
        let Some(room) = sink.room(len) else { return false };
        let head = PacketHead { opcode, psn: request.first.plus(index), is_ack_requested, extension };
        self.template.write(room, &head, payload);
        sink.commit(len);
        counts.sent += 1;
        counts.repeated += u64::from(head.psn.is_before(self.sent));
        let end = if request.work.has_answer() { request.end() } else { head.psn.plus(1) };
        if self.sent.is_before(end) {
            self.sent = end;
        }
        if request.work.has_answer() {
            request.is_outstanding = true;
            self.reads += 1;
        }
        self.send_packet = index + 1;
        if end == request.end() {
            (self.send_index, self.send_packet) = (self.send_index + 1, 0);
        }
        true
    }
}
