//! The state of a queue pair at a responder.

use std::collections::VecDeque;

use wire::roce::{Aeth, Extension, Opcode, Psn, Syndrome};

use crate::endpoint::QpEndpoint;
use crate::memory::{MemoryKey, ProtectionDomain};
use crate::path::{FramePath, FrameTemplate, PacketHead};
use crate::sink::FrameSink;

/// A WRITE of several packets, the first of them applied.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartialWrite {
    pub key: MemoryKey,
    /// Virtual address of the next byte.
    pub address: u64,
    /// Number of bytes that have not arrived.
    pub left: u32,
}

/// A queue pair.
#[derive(Debug)]
pub(super) struct ResponderQp {
    pub local: QpEndpoint,
    pub domain: ProtectionDomain,
    pub path: FramePath,
    template: FrameTemplate,
    /// Sequence number of the next request.
    pub expected: Psn,
    /// Number of messages that were completed, 24 bits.
    pub message_number: u32,
    /// Whether the current gap was reported.
    pub is_gap_reported: bool,
    pub write: Option<PartialWrite>,
    /// The last atomic operations and their results, oldest first: at most as many as may be outstanding.
    replays: VecDeque<(Psn, u64)>,
    pub has_failed: bool,
}

/// The relation of a packet to the one that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sequence {
    /// It is the expected packet.
    Expected,
    /// It was executed before.
    Duplicate,
    /// Packets before it are missing.
    Gap,
}

impl ResponderQp {
    pub fn new(local: QpEndpoint, peer: QpEndpoint, domain: ProtectionDomain, path: FramePath) -> ResponderQp {
        ResponderQp {
            local,
            domain,
            path,
            template: FrameTemplate::new(&path, peer.number),
            expected: peer.psn,
            message_number: 0,
            is_gap_reported: false,
            write: None,
            replays: VecDeque::with_capacity(local.max_reads.into()),
            has_failed: false,
        }
    }

    pub fn sequence(&self, psn: Psn) -> Sequence {
        match psn {
            psn if psn == self.expected => Sequence::Expected,
            psn if psn.is_before(self.expected) => Sequence::Duplicate,
            _ => Sequence::Gap,
        }
    }

    /// Moves on to the packet that comes `packets` later.
    pub fn advance(&mut self, packets: u32) {
        self.expected = self.expected.plus(packets);
        self.is_gap_reported = false;
    }

    /// Counts a message as completed.
    pub fn complete(&mut self) {
        self.message_number = self.message_number.wrapping_add(1) & wire::roce::PSN_MASK;
    }

    /// Records the result of an atomic operation for repeated requests.
    pub fn keep_result(&mut self, psn: Psn, original: u64) {
        if self.replays.len() >= usize::from(self.local.max_reads.max(1)) {
            self.replays.pop_front();
        }
        self.replays.push_back((psn, original));
    }

    /// Returns the result of an atomic operation that was executed before.
    pub fn kept_result(&self, psn: Psn) -> Option<u64> {
        self.replays.iter().find(|(kept, _)| *kept == psn).map(|(_, original)| *original)
    }

    fn aeth(&self, syndrome: Syndrome) -> Aeth {
        Aeth { syndrome, message_number: self.message_number }
    }

    /// Sends an acknowledgement, or the reason for its absence. Returns false if there is no room.
    pub fn acknowledge(&mut self, psn: Psn, syndrome: Syndrome, sink: &mut impl FrameSink) -> bool {
        let extension = Extension::Aeth(self.aeth(syndrome));
        self.send(Opcode::Acknowledge, psn, extension, &[], sink)
    }

    /// Sends the value before an atomic operation. Returns false if there is no room.
    pub fn send_original(&mut self, psn: Psn, original: u64, sink: &mut impl FrameSink) -> bool {
        let extension = Extension::AtomicAckEth(self.aeth(Syndrome::ACK), original);
        self.send(Opcode::AtomicAcknowledge, psn, extension, &[], sink)
    }

    /// Sends packet `index` of the `count` packets that answer a READ. Returns false if there is no room.
    #[inline]
    pub fn send_part(&mut self, first: Psn, index: u32, count: u32, part: &[u8], sink: &mut impl FrameSink) -> bool {
        let position = wire::roce::Position::of(index, count);
        let extension = match position {
            wire::roce::Position::Middle => Extension::None,
            _ => Extension::Aeth(self.aeth(Syndrome::ACK)),
        };
        self.send(Opcode::ReadResponse(position), first.plus(index), extension, part, sink)
    }

    #[inline]
    fn send(
        &mut self,
        opcode: Opcode,
        psn: Psn,
        extension: Extension,
        payload: &[u8],
        sink: &mut impl FrameSink,
    ) -> bool {
        let len = self.template.frame_len(&extension, payload.len());
        let Some(room) = sink.room(len) else { return false };
        let head = PacketHead { opcode, psn, is_ack_requested: false, extension };
        self.template.write(room, &head, payload);
        sink.commit(len);
        true
    }
}
