//! Executes one packet (volume 1, sections 9.7.4 and 9.7.5).

use wire::roce::{AtomicEth, Extension, NakCode, Opcode, Packet, Position, Psn, Reth, Syndrome};

use super::queue_pair::{PartialWrite, ResponderQp, Sequence};
use super::{QpFailure, Responder, ResponderConfig, ResponderCounts};
use crate::frame::{Receipt, ReceivedPacket};
use crate::memory::{Access, MemoryKey, RegionTable};
use crate::mutant::{Mutant, Mutation};
use crate::sink::FrameSink;

/// Number of bytes that an atomic operation changes.
const ATOMIC_BYTES: usize = 8;

/// The parts of a responder that a packet of one queue pair uses.
struct Execution<'a, B, S> {
    qp: &'a mut ResponderQp,
    regions: &'a mut RegionTable<B>,
    counts: &'a mut ResponderCounts,
    config: &'a ResponderConfig,
    sink: &'a mut S,
    mutation: Mutation,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Responder<B> {
    /// Executes a packet of a queue pair that exists.
    #[inline]
    pub(super) fn on_packet(&mut self, received: &ReceivedPacket, sink: &mut impl FrameSink) -> Receipt {
        let number = received.destination();
        // An earlier packet of the batch cannot close a queue pair.
        let Some(Some(qp)) = self.queue_pairs.get_mut(number.slot()) else { return Receipt::NotOurs };
        if !received.is_intact() && !self.mutation.is(Mutant::IcrcUnchecked) {
            self.counts.corrupt += 1;
            return Receipt::Ours;
        }
        if qp.has_failed || !received.packet.opcode().is_request() {
            self.counts.dropped += 1;
            return Receipt::Ours;
        }
        let (regions, counts, config) = (&mut self.regions, &mut self.counts, &self.config);
        let mut execution = Execution { qp, regions, counts, config, sink, mutation: self.mutation };
        if let Err(reason) = execution.packet(&received.packet) {
            execution.refuse(received.packet.psn(), reason);
            self.failures.push_back(QpFailure { number, reason });
        }
        Receipt::Ours
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>, S: FrameSink> Execution<'_, B, S> {
    /// Executes a packet.
    ///
    /// # Errors
    /// Returns the reason if the queue pair has to fail.
    #[inline]
    fn packet(&mut self, packet: &Packet<&[u8]>) -> Result<(), NakCode> {
        let sequence = self.qp.sequence(packet.psn());
        match sequence {
            Sequence::Expected => self.execute(packet),
            Sequence::Duplicate if self.mutation.is(Mutant::DuplicateIsGap) => {
                self.report_gap();
                Ok(())
            }
            Sequence::Duplicate => {
                self.counts.duplicates += 1;
                self.repeat(packet);
                Ok(())
            }
            Sequence::Gap if self.mutation.is(Mutant::GapAccepted) => {
                self.qp.expected = packet.psn();
                self.execute(packet)
            }
            Sequence::Gap => {
                self.report_gap();
                Ok(())
            }
        }
    }

    /// Reports the missing packets, once for each gap: the requester repeats them, and all later ones.
    fn report_gap(&mut self) {
        self.counts.out_of_sequence += 1;
        if self.qp.is_gap_reported && !self.mutation.is(Mutant::NakRepeated) {
            return;
        }
        self.qp.is_gap_reported = true;
        self.counts.naks += 1;
        let sent = self.qp.acknowledge(self.qp.expected, Syndrome::Nak(NakCode::SequenceError), self.sink);
        self.note_room(sent);
    }

    fn refuse(&mut self, psn: Psn, reason: NakCode) {
        self.counts.naks += 1;
        self.qp.has_failed = true;
        let sent = self.qp.acknowledge(psn, Syndrome::Nak(reason), self.sink);
        self.note_room(sent);
    }

    fn note_room(&mut self, has_sent: bool) {
        self.counts.no_room += u64::from(!has_sent);
    }

    #[inline]
    fn execute(&mut self, packet: &Packet<&[u8]>) -> Result<(), NakCode> {
        let opcode = packet.opcode();
        // Packets of a WRITE follow each other without others in between.
        let is_continuation = matches!(opcode, Opcode::Write(Position::Middle | Position::Last));
        if self.qp.write.is_some() != is_continuation {
            return Err(NakCode::InvalidRequest);
        }
        match (opcode, packet.extension()) {
            (Opcode::ReadRequest, Extension::Reth(reth)) => self.read(packet.psn(), &reth),
            (Opcode::Write(position), Extension::Reth(reth)) => self.begin_write(packet, position, &reth),
            (Opcode::Write(position), Extension::None) => self.continue_write(packet, position),
            (Opcode::CompareSwap | Opcode::FetchAdd, Extension::AtomicEth(atomic)) => {
                self.swap(packet.psn(), opcode, &atomic)
            }
            // SENDs have no receive buffers here, and immediate data has no receiver.
            _ => Err(NakCode::InvalidRequest),
        }
    }

    #[inline]
    fn read(&mut self, psn: Psn, reth: &Reth) -> Result<(), NakCode> {
        if reth.len > self.config.max_message {
            return Err(NakCode::InvalidRequest);
        }
        let packets = self.answer_read(psn, reth).ok_or(NakCode::RemoteAccessError)?;
        let numbers = if self.mutation.is(Mutant::ReadTakesOneNumber) { 1 } else { packets };
        self.qp.advance(numbers);
        self.qp.complete();
        self.counts.reads += 1;
        Ok(())
    }

    /// Sends the current contents of the memory, and returns the number of packets. None if the access is not allowed.
    /// Packets without room are dropped: for the requester they are lost.
    #[inline]
    fn answer_read(&mut self, psn: Psn, reth: &Reth) -> Option<u32> {
        let (key, mtu) = (MemoryKey(reth.key), self.qp.path.mtu);
        let packets = mtu.packets(reth.len);
        // An empty READ touches no memory, so its key is not checked (volume 1, section 9.4.1.1).
        let bytes = match reth.len {
            0 => &[][..],
            len => self.regions.bytes_to_read(self.qp.domain, key, reth.address, len.into())?,
        };
        for index in 0..packets {
            let start = index as usize * mtu.bytes();
            let part = &bytes[start..start + mtu.payload_of(index, reth.len)];
            if !self.qp.send_part(psn, index, packets, part, self.sink) {
                self.counts.no_room += 1;
                break;
            }
        }
        Some(packets)
    }

    fn begin_write(&mut self, packet: &Packet<&[u8]>, position: Position, reth: &Reth) -> Result<(), NakCode> {
        if reth.len > self.config.max_message || (self.qp.path.mtu.packets(reth.len) == 1) != position.is_last() {
            return Err(NakCode::InvalidRequest);
        }
        let key = MemoryKey(reth.key);
        // The complete range is checked with the first packet, so that a refused WRITE writes nothing.
        if reth.len > 0 {
            let access =
                self.regions.bytes_to_change(self.qp.domain, key, Access::Write, reth.address, reth.len.into());
            access.ok_or(NakCode::RemoteAccessError)?;
        }
        self.write_part(packet, position, PartialWrite { key, address: reth.address, left: reth.len })
    }

    fn continue_write(&mut self, packet: &Packet<&[u8]>, position: Position) -> Result<(), NakCode> {
        let write = self.qp.write.ok_or(NakCode::InvalidRequest)?;
        self.write_part(packet, position, write)
    }

    /// Writes the payload of one packet, which has to be as long as its place in the message demands.
    fn write_part(&mut self, packet: &Packet<&[u8]>, position: Position, write: PartialWrite) -> Result<(), NakCode> {
        let (payload, mtu) = (packet.payload(), self.qp.path.mtu);
        let is_last = write.left as usize <= mtu.bytes();
        let expected = if is_last { write.left as usize } else { mtu.bytes() };
        if is_last != position.is_last() || payload.len() != expected {
            return Err(NakCode::InvalidRequest);
        }
        let len = payload.len() as u64;
        if len > 0 {
            let bytes = self.regions.bytes_to_change(self.qp.domain, write.key, Access::Write, write.address, len);
            bytes.ok_or(NakCode::RemoteAccessError)?.copy_from_slice(payload);
        }
        let rest = PartialWrite { address: write.address + len, left: write.left - len as u32, ..write };
        self.qp.write = (!is_last).then_some(rest);
        self.qp.advance(1);
        if is_last {
            self.qp.complete();
            self.counts.writes += 1;
        }
        if packet.is_ack_requested() {
            let sent = self.qp.acknowledge(packet.psn(), Syndrome::ACK, self.sink);
            self.note_room(sent);
        }
        Ok(())
    }

    /// Executes an atomic operation on eight bytes, which hold a number with the lowest byte first.
    fn swap(&mut self, psn: Psn, opcode: Opcode, atomic: &AtomicEth) -> Result<(), NakCode> {
        if !atomic.address.is_multiple_of(ATOMIC_BYTES as u64) {
            return Err(NakCode::InvalidRequest);
        }
        let (key, len) = (MemoryKey(atomic.key), ATOMIC_BYTES as u64);
        let bytes = self.regions.bytes_to_change(self.qp.domain, key, Access::Swap, atomic.address, len);
        let bytes = bytes.ok_or(NakCode::RemoteAccessError)?;
        let mut word = [0; ATOMIC_BYTES];
        word.copy_from_slice(bytes);
        let original = u64::from_le_bytes(word);
        let new = match opcode {
            Opcode::FetchAdd => original.wrapping_add(atomic.swap_or_add),
            _ if original == atomic.compare => atomic.swap_or_add,
            _ => original,
        };
        bytes.copy_from_slice(&new.to_le_bytes());
        self.qp.keep_result(psn, original);
        self.qp.advance(1);
        self.qp.complete();
        self.counts.atomics += 1;
        let sent = self.qp.send_original(psn, original, self.sink);
        self.note_room(sent);
        Ok(())
    }

    /// Answers a request that was executed before. A READ reads again; a WRITE is not repeated (section 9.7.5.1.4).
    fn repeat(&mut self, packet: &Packet<&[u8]>) {
        let psn = packet.psn();
        match (packet.opcode(), packet.extension()) {
            (Opcode::ReadRequest, Extension::Reth(reth)) => {
                let past = self.qp.expected.since(psn);
                let is_whole = reth.len <= self.config.max_message && self.qp.path.mtu.packets(reth.len) <= past;
                let is_ignored = self.mutation.is(Mutant::DuplicateReadIgnored);
                if !is_whole || is_ignored || self.answer_read(psn, &reth).is_none() {
                    self.counts.dropped += 1;
                }
            }
            (Opcode::CompareSwap | Opcode::FetchAdd, Extension::AtomicEth(atomic)) => {
                if self.mutation.is(Mutant::AtomicRepeated) {
                    self.redo(|this| this.swap(psn, packet.opcode(), &atomic));
                    return;
                }
                match self.qp.kept_result(psn) {
                    Some(original) => {
                        let sent = self.qp.send_original(psn, original, self.sink);
                        self.note_room(sent);
                    }
                    None => self.counts.dropped += 1,
                }
            }
            (Opcode::Write(_), extension) => {
                if let (true, Extension::Reth(reth)) = (self.mutation.is(Mutant::WriteRepeated), extension) {
                    self.redo(|this| this.begin_write(packet, Position::Only, &reth));
                    return;
                }
                if !packet.is_ack_requested() {
                    return;
                }
                // Acknowledges the newest number, since the requester may have missed more acknowledgements.
                let sent = self.qp.acknowledge(self.qp.expected.minus(1), Syndrome::ACK, self.sink);
                self.note_room(sent);
            }
            _ => self.counts.dropped += 1,
        }
    }

    /// Executes a repeated request once more, as some mutants do.
    fn redo(&mut self, execute: impl FnOnce(&mut Self) -> Result<(), NakCode>) {
        let (expected, write, is_gap_reported) = (self.qp.expected, self.qp.write.take(), self.qp.is_gap_reported);
        let _ = execute(self);
        (self.qp.expected, self.qp.write, self.qp.is_gap_reported) = (expected, write, is_gap_reported);
    }
}
