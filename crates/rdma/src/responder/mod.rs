//! The end at a server: it executes requests on memory.

mod execute;
mod queue_pair;

use std::collections::VecDeque;

use rng::SplitMix64;
use wire::roce::{Extension, NakCode, Opcode};

use crate::endpoint::{self, MAX_SLOTS, QpEndpoint, QpNumber};
use crate::frame::{Receipt, ReceivedPacket};
use crate::memory::{self, AccessRights, MemoryKey, ProtectionDomain, RegionTable, RegistrationError};
use crate::mutant::{Mutant, Mutation};
use crate::path::FramePath;
use crate::random::NumberSource;
use crate::sink::FrameSink;

use queue_pair::ResponderQp;

/// Number of frames whose memory is prefetched before the first one is executed.
pub const MAX_BATCH: usize = 32;

/// Limits of a responder.
#[derive(Clone, Copy, Debug)]
pub struct ResponderConfig {
    /// Maximum number of READs and atomic operations that a queue pair may have outstanding.
    pub max_reads: u16,
    /// Maximum size of a message in bytes: of the answer to a READ, or of a WRITE.
    pub max_message: u32,
}

impl Default for ResponderConfig {
    fn default() -> ResponderConfig {
        ResponderConfig { max_reads: 16, max_message: 1 << 20 }
    }
}

/// Counts of a responder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponderCounts {
    /// READs that were answered, without repeated ones.
    pub reads: u64,
    /// WRITEs that were applied completely.
    pub writes: u64,
    /// Atomic operations that were applied.
    pub atomics: u64,
    /// Repeated requests, which were answered again.
    pub duplicates: u64,
    /// Packets after a gap.
    pub out_of_sequence: u64,
    /// Negative acknowledgements.
    pub naks: u64,
    /// Packets with a wrong integrity check.
    pub corrupt: u64,
    /// Packets that were dropped for other reasons: for a failed queue pair, repeated atomic operations that are too
    /// old, responses.
    pub dropped: u64,
    /// Frames for which the sink had no room.
    pub no_room: u64,
}

/// A queue pair that refused a request. It sends no more answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpFailure {
    /// Its number at this end.
    pub number: QpNumber,
    /// The reason, as the requester has it.
    pub reason: NakCode,
}

/// The reason why a connection is not accepted: there are too many queue pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are {MAX_SLOTS} queue pairs, which is the maximum")]
pub struct AcceptError;

/// The end at a server. It executes READs, WRITEs and atomic operations on registered memory, such as a `Vec<u8>`.
///
/// It has no timers: a requester that misses an answer asks again.
#[derive(Debug)]
pub struct Responder<B> {
    config: ResponderConfig,
    regions: RegionTable<B>,
    queue_pairs: Vec<Option<ResponderQp>>,
    failures: VecDeque<QpFailure>,
    counts: ResponderCounts,
    mutation: Mutation,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Responder<B> {
    /// Creates a responder without memory and queue pairs.
    pub fn new(config: ResponderConfig) -> Responder<B> {
        Responder::with_mutation(config, Mutation::default())
    }

    /// Creates a responder with an error, for tests.
    pub fn with_mutation(config: ResponderConfig, mutation: Mutation) -> Responder<B> {
        Responder {
            config,
            regions: RegionTable::new(mutation),
            queue_pairs: Vec::new(),
            failures: VecDeque::new(),
            counts: ResponderCounts::default(),
            mutation,
        }
    }

    /// Registers memory under the virtual addresses from `start`, and returns its key.
    ///
    /// # Errors
    /// Returns an error if there are too many regions, or if the addresses exceed 2^64.
    pub fn register(
        &mut self,
        rng: &mut dyn NumberSource,
        domain: ProtectionDomain,
        rights: AccessRights,
        start: u64,
        bytes: B,
    ) -> Result<MemoryKey, RegistrationError> {
        self.regions.register(rng, domain, rights, start, bytes)
    }

    /// Removes a memory region and returns its memory. None if there is no such key.
    pub fn deregister(&mut self, key: MemoryKey) -> Option<B> {
        self.regions.deregister(key)
    }

    /// Returns the memory with this key.
    pub fn memory(&self, key: MemoryKey) -> Option<&B> {
        self.regions.bytes(key)
    }

    /// Returns the memory with this key, to change.
    pub fn memory_mut(&mut self, key: MemoryKey) -> Option<&mut B> {
        self.regions.bytes_mut(key)
    }

    /// Accepts a connection, and returns the values of this end that the other end needs.
    ///
    /// # Errors
    /// Returns an error if there are too many queue pairs.
    pub fn accept(
        &mut self,
        rng: &mut dyn NumberSource,
        domain: ProtectionDomain,
        path: FramePath,
        peer: QpEndpoint,
    ) -> Result<QpEndpoint, AcceptError> {
        let slot = endpoint::free_slot(&mut self.queue_pairs).ok_or(AcceptError)?;
        let mut fixed = SplitMix64::new(0);
        let rng: &mut dyn NumberSource =
            if self.mutation.is(Mutant::SameNumbersAfterRestart) { &mut fixed } else { rng };
        let number = endpoint::draw_number(rng, slot);
        let max_reads = peer.max_reads.min(self.config.max_reads);
        let local = QpEndpoint { number, psn: endpoint::draw_psn(rng), max_reads };
        self.queue_pairs[slot] = Some(ResponderQp::new(local, peer, domain, path));
        Ok(local)
    }

    /// Closes a queue pair. Returns false if there is none with this number.
    pub fn close(&mut self, number: QpNumber) -> bool {
        let found = find(&self.queue_pairs, number).is_some();
        if found {
            self.queue_pairs[number.slot()] = None;
        }
        found
    }

    /// Returns the number of queue pairs.
    pub fn queue_pairs(&self) -> usize {
        self.queue_pairs.iter().flatten().count()
    }

    /// Removes and returns the next failure of a queue pair. There is at most one for each.
    pub fn next_failure(&mut self) -> Option<QpFailure> {
        self.failures.pop_front()
    }

    /// Returns the counts since the start.
    pub fn counts(&self) -> &ResponderCounts {
        &self.counts
    }

    /// Executes the request in a frame, and writes its answer to `sink`. If there is no room for the answer, the packet
    /// counts as lost.
    pub fn on_frame(&mut self, frame: &[u8], sink: &mut impl FrameSink) -> Receipt {
        match self.own(frame) {
            Some(packet) => self.on_packet(&packet, sink),
            None => Receipt::NotOurs,
        }
    }

    /// Executes the requests in up to [`MAX_BATCH`] frames, as [`Responder::on_frame`] does each. The memory that they
    /// name is prefetched first. `on_receipt` gets the index of each frame.
    ///
    /// # Panics
    /// Panics if there are more frames.
    pub fn on_frames(
        &mut self,
        frames: &[&[u8]],
        sink: &mut impl FrameSink,
        mut on_receipt: impl FnMut(usize, Receipt),
    ) {
        assert!(frames.len() <= MAX_BATCH, "{} frames in a batch", frames.len());
        let mut packets = [None; MAX_BATCH];
        // A prefetch waits for the translation of its address. Without other work between them, these waits overlap.
        let mut named: [&[u8]; MAX_BATCH] = [&[]; MAX_BATCH];
        for ((packet, named), frame) in packets.iter_mut().zip(&mut named).zip(frames) {
            *packet = self.own(frame);
            *named = packet.as_ref().and_then(|packet| self.named(packet)).unwrap_or_default();
        }
        memory::prefetch_all(&named[..frames.len()]);
        for (index, packet) in packets[..frames.len()].iter().enumerate() {
            let receipt = packet.as_ref().map_or(Receipt::NotOurs, |packet| self.on_packet(packet, sink));
            on_receipt(index, receipt);
        }
    }

    /// Returns the packet in a frame if it is from the peer of a queue pair.
    #[inline]
    fn own<'a>(&self, frame: &'a [u8]) -> Option<ReceivedPacket<'a>> {
        let packet = ReceivedPacket::parse(frame)?;
        let qp = find(&self.queue_pairs, packet.destination())?;
        (qp.path.is_of_peer(packet.addresses) || self.mutation.is(Mutant::SourceUnchecked)).then_some(packet)
    }

    /// Returns the memory that a READ names, for prefetching. The packet may be corrupt: a hint does no harm.
    #[inline]
    fn named(&self, packet: &ReceivedPacket) -> Option<&[u8]> {
        if packet.packet.opcode() != Opcode::ReadRequest {
            return None;
        }
        let (Extension::Reth(reth), Some(qp)) =
            (packet.packet.extension(), find(&self.queue_pairs, packet.destination()))
        else {
            return None;
        };
        self.regions.bytes_to_read(qp.domain, MemoryKey(reth.key), reth.address, reth.len.into())
    }
}

/// Returns the queue pair with exactly this number.
#[inline]
fn find(queue_pairs: &[Option<ResponderQp>], number: QpNumber) -> Option<&ResponderQp> {
    queue_pairs.get(number.slot())?.as_ref().filter(|qp| qp.local.number == number)
}
