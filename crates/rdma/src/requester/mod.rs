//! The end in a switch: it sends requests and matches the answers.

mod answer;
mod queue_pair;
mod request;
mod send;

use std::collections::VecDeque;
use std::ops::AddAssign;

use rng::SplitMix64;
use switch::Time;
use wire::ethernet;
use wire::roce::{NakCode, Psn};

use crate::endpoint::{self, MAX_SLOTS, QpEndpoint, QpNumber};
use crate::frame::{Receipt, ReceivedPacket};
use crate::memory::MemoryKey;
use crate::mutant::{Mutant, Mutation};
use crate::path::FramePath;
use crate::random::NumberSource;
use crate::sink::FrameSink;

use queue_pair::{QpState, RequesterQp};
use request::{PendingRequest, Work};

/// Limits of a requester, the same for all its queue pairs.
#[derive(Clone, Copy, Debug)]
pub struct RequesterConfig {
    /// Maximum number of outstanding READs and atomic operations of a queue pair. The other end may allow fewer.
    pub max_reads: u16,
    /// Maximum number of requests of a queue pair, including those that wait for others.
    pub queue_len: usize,
    /// Maximum size of a READ or WRITE in bytes.
    pub max_message: u32,
    /// Time without progress after which requests are retransmitted, in nanoseconds.
    pub timeout_ns: u64,
    /// Maximum number of consecutive timeouts without progress, after which requests are sent again.
    pub max_retries: u8,
    /// Maximum number of consecutive attempts without progress that answers cause: NAKs, and answers that show the loss
    /// of an earlier one. The other end is alive then, so they may be more than the timeouts.
    pub max_naks: u16,
}

impl Default for RequesterConfig {
    fn default() -> RequesterConfig {
        RequesterConfig {
            max_reads: 16,
            queue_len: 1024,
            max_message: 1 << 20,
            timeout_ns: 1_000_000,
            max_retries: 7,
            max_naks: 256,
        }
    }
}

/// Remote memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRange {
    /// Virtual address of the first byte.
    pub address: u64,
    /// Key of the region.
    pub key: MemoryKey,
    /// Number of bytes.
    pub len: u32,
}

/// The reason for which a request is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestRefusal {
    /// There are too many queue pairs.
    #[error("there are {MAX_SLOTS} queue pairs, which is the maximum")]
    TooManyQueuePairs,
    /// There is no such queue pair.
    #[error("there is no such queue pair")]
    NoQueuePair,
    /// The queue pair has failed, or is not connected.
    #[error("the queue pair is not connected")]
    NotConnected,
    /// The queue of requests is full.
    #[error("the queue pair has too many requests")]
    Full,
    /// The message is longer than [`RequesterConfig::max_message`].
    #[error("the message is too long")]
    TooLong,
}

/// The reason for which a request failed. It may have been executed nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// The responder refused it.
    Refused(NakCode),
    /// There was no progress in [`RequesterConfig::max_retries`] or [`RequesterConfig::max_naks`] attempts.
    NoAnswer,
    /// An earlier request of its queue pair failed, or the queue pair was closed.
    Flushed,
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome<'a> {
    /// A READ: the bytes that the memory held.
    Read(&'a [u8]),
    /// A WRITE: the memory has the bytes.
    Written,
    /// An atomic operation: the value before it.
    Original(u64),
    /// It failed, and so did its queue pair. The owner closes it and opens another one.
    Failed(FailureReason),
}

/// A request that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion<'a> {
    /// Its queue pair.
    pub number: QpNumber,
    /// The number that its owner gave it.
    pub token: u64,
    /// Its result.
    pub outcome: RequestOutcome<'a>,
}

/// Counts of a requester.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequesterCounts {
    /// Packets that were sent, including repeated ones.
    pub sent: u64,
    /// Packets that were sent again.
    pub repeated: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Negative acknowledgements.
    pub naks: u64,
    /// Answers whose sequence number shows that an earlier one was lost.
    pub implied_naks: u64,
    /// Answers to requests that are completed, or were never made.
    pub ghosts: u64,
    /// Answers that do not match their request.
    pub invalid: u64,
    /// Packets with a wrong integrity check.
    pub corrupt: u64,
}

impl AddAssign for RequesterCounts {
    fn add_assign(&mut self, other: RequesterCounts) {
        let RequesterCounts { sent, repeated, timeouts, naks, implied_naks, ghosts, invalid, corrupt } = other;
        self.sent += sent;
        self.repeated += repeated;
        self.timeouts += timeouts;
        self.naks += naks;
        self.implied_naks += implied_naks;
        self.ghosts += ghosts;
        self.invalid += invalid;
        self.corrupt += corrupt;
    }
}

/// A result that the owner has not taken yet.
#[derive(Debug)]
struct EndedRequest {
    number: QpNumber,
    token: u64,
    result: EndedResult,
}

#[derive(Debug)]
enum EndedResult {
    Read(Vec<u8>),
    Written,
    Original(u64),
    Failed(FailureReason),
}

/// Maximum number of buffers that are kept for later READs.
const MAX_SPARE: usize = 64;

/// Results of requests, and buffers for the bytes that were read.
#[derive(Debug, Default)]
struct EndedRequests {
    list: VecDeque<EndedRequest>,
    spare: Vec<Vec<u8>>,
}

impl EndedRequests {
    fn push(&mut self, number: QpNumber, token: u64, result: EndedResult) {
        self.list.push_back(EndedRequest { number, token, result });
    }

    /// Returns an empty buffer.
    fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps a buffer for another READ.
    fn recycle(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < MAX_SPARE && buffer.capacity() > 0 {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}

/// The end in a switch. It sends READs, WRITEs and atomic operations over queue pairs.
///
/// After each call, its owner takes frames with [`Requester::transmit`] and results with
/// [`Requester::next_completion`].
#[derive(Debug)]
pub struct Requester {
    config: RequesterConfig,
    queue_pairs: Vec<Option<RequesterQp>>,
    ended: EndedRequests,
    /// The result that was lent last.
    lent: Vec<u8>,
    counts: RequesterCounts,
    mutation: Mutation,
    /// Queue pair that may send first in the next call.
    first: usize,
}

impl Requester {
    /// Creates a requester without queue pairs.
    pub fn new(config: RequesterConfig) -> Requester {
        Requester::with_mutation(config, Mutation::default())
    }

    /// Creates a requester with an error, for tests.
    pub fn with_mutation(config: RequesterConfig, mutation: Mutation) -> Requester {
        Requester {
            config,
            queue_pairs: Vec::new(),
            ended: EndedRequests::default(),
            lent: Vec::new(),
            counts: RequesterCounts::default(),
            mutation,
            first: 0,
        }
    }

    /// Opens a queue pair, and returns the values of this end that the other end needs.
    ///
    /// # Errors
    /// Returns an error if there are too many.
    pub fn open(&mut self, rng: &mut dyn NumberSource, path: FramePath) -> Result<QpEndpoint, RequestRefusal> {
        let slot = endpoint::free_slot(&mut self.queue_pairs).ok_or(RequestRefusal::TooManyQueuePairs)?;
        let mut number = endpoint::draw_number(rng, slot);
        let mut psn = endpoint::draw_psn(rng);
        let is_reopened = self.mutation.is(Mutant::SameNumbersAfterReopening);
        if is_reopened || self.mutation.is(Mutant::SameNumbersAfterRestart) {
            psn = Psn::new(0);
        }
        if is_reopened {
            number = endpoint::draw_number(&mut SplitMix64::new(0), slot);
        }
        let local = QpEndpoint { number, psn, max_reads: self.config.max_reads };
        self.queue_pairs[slot] = Some(RequesterQp::new(local, path));
        Ok(local)
    }

    /// Sets the Ethernet address of the other end of a queue pair, before it is connected.
    pub fn set_destination(&mut self, number: QpNumber, destination: ethernet::Address) {
        if let Some(qp) = find(&mut self.queue_pairs, number) {
            qp.path.destination = destination;
        }
    }

    /// Connects a queue pair to the other end.
    ///
    /// # Errors
    /// Returns an error if there is no such queue pair, or if it was connected before.
    pub fn connect(&mut self, number: QpNumber, peer: QpEndpoint) -> Result<(), RequestRefusal> {
        let qp = find(&mut self.queue_pairs, number).ok_or(RequestRefusal::NoQueuePair)?;
        if qp.state != QpState::Open {
            return Err(RequestRefusal::NotConnected);
        }
        qp.connect(peer);
        Ok(())
    }

    /// Closes a queue pair. Its requests end as flushed. Returns false if there is none with this number.
    pub fn close(&mut self, number: QpNumber) -> bool {
        let Some(qp) = find(&mut self.queue_pairs, number) else { return false };
        qp.fail(FailureReason::Flushed, &mut self.ended);
        self.queue_pairs[number.slot()] = None;
        true
    }

    /// Requests to read memory.
    ///
    /// # Errors
    /// Returns an error if the request is not accepted. Then it has no completion.
    pub fn read(&mut self, number: QpNumber, token: u64, range: MemoryRange) -> Result<(), RequestRefusal> {
        self.submit(number, token, Work::Read(range), range.len, &[])
    }

    /// Requests to write `data` to memory at `address`.
    ///
    /// # Errors
    /// Returns an error if the request is not accepted. Then it has no completion.
    pub fn write(
        &mut self,
        number: QpNumber,
        token: u64,
        address: u64,
        key: MemoryKey,
        data: &[u8],
    ) -> Result<(), RequestRefusal> {
        let len = u32::try_from(data.len()).map_err(|_| RequestRefusal::TooLong)?;
        self.submit(number, token, Work::Write(MemoryRange { address, key, len }), len, data)
    }

    /// Requests to add to the number in the eight bytes at `address`, a multiple of eight.
    ///
    /// # Errors
    /// Returns an error if the request is not accepted. Then it has no completion.
    pub fn fetch_add(
        &mut self,
        number: QpNumber,
        token: u64,
        address: u64,
        key: MemoryKey,
        add: u64,
    ) -> Result<(), RequestRefusal> {
        self.submit(number, token, Work::FetchAdd { address, key, add }, 0, &[])
    }

    /// Requests to replace the number in the eight bytes at `address`, a multiple of eight, if it is `compare`.
    ///
    /// # Errors
    /// Returns an error if the request is not accepted. Then it has no completion.
    pub fn compare_swap(
        &mut self,
        number: QpNumber,
        token: u64,
        address: u64,
        key: MemoryKey,
        compare: u64,
        swap: u64,
    ) -> Result<(), RequestRefusal> {
        self.submit(number, token, Work::CompareSwap { address, key, compare, swap }, 0, &[])
    }

    #[inline]
    fn submit(
        &mut self,
        number: QpNumber,
        token: u64,
        work: Work,
        len: u32,
        data: &[u8],
    ) -> Result<(), RequestRefusal> {
        let qp = find(&mut self.queue_pairs, number).ok_or(RequestRefusal::NoQueuePair)?;
        if len > self.config.max_message {
            return Err(RequestRefusal::TooLong);
        }
        let packets = if self.mutation.is(Mutant::ReadTakesOneNumber) && matches!(work, Work::Read(_)) {
            1
        } else {
            qp.path.mtu.packets(len)
        };
        if qp.state != QpState::Connected {
            return Err(RequestRefusal::NotConnected);
        }
        if !qp.has_room(packets, self.config.queue_len) {
            return Err(RequestRefusal::Full);
        }
        let mut buffer = Vec::new();
        if !data.is_empty() {
            buffer = self.ended.buffer();
            buffer.extend_from_slice(data);
        }
        qp.push(PendingRequest::new(token, work, packets, buffer));
        Ok(())
    }

    /// Returns the number of requests of a queue pair that have not ended, 0 if there is no such queue pair.
    pub fn outstanding(&mut self, number: QpNumber) -> usize {
        find(&mut self.queue_pairs, number).map_or(0, |qp| qp.requests.len())
    }

    /// Removes and returns the result of a request. Results of a queue pair are in the order of its requests.
    #[inline]
    pub fn next_completion(&mut self) -> Option<Completion<'_>> {
        let EndedRequest { number, token, result } = self.ended.list.pop_front()?;
        let outcome = match result {
            EndedResult::Read(data) => {
                let before = std::mem::replace(&mut self.lent, data);
                self.ended.recycle(before);
                RequestOutcome::Read(&self.lent)
            }
            EndedResult::Written => RequestOutcome::Written,
            EndedResult::Original(value) => RequestOutcome::Original(value),
            EndedResult::Failed(reason) => RequestOutcome::Failed(reason),
        };
        Some(Completion { number, token, outcome })
    }

    /// Returns the counts since the start.
    pub fn counts(&self) -> &RequesterCounts {
        &self.counts
    }

    /// Writes frames to `sink` until there is no room or nothing may be sent now. Queue pairs take turns to send first.
    pub fn transmit(&mut self, now: Time, sink: &mut impl FrameSink) {
        let count = self.queue_pairs.len();
        for turn in 0..count {
            let index = (self.first + turn) % count;
            let Some(qp) = &mut self.queue_pairs[index] else { continue };
            if !qp.transmit(now, sink, &self.config, &mut self.counts, self.mutation) {
                self.first = index;
                return;
            }
        }
    }

    /// Processes an answer.
    pub fn on_frame(&mut self, now: Time, frame: &[u8]) -> Receipt {
        let Some(received) = ReceivedPacket::parse(frame) else { return Receipt::NotOurs };
        let Some(qp) = find(&mut self.queue_pairs, received.destination()) else { return Receipt::NotOurs };
        if !qp.path.is_of_peer(received.addresses) && !self.mutation.is(Mutant::SourceUnchecked) {
            return Receipt::NotOurs;
        }
        if !received.is_intact() && !self.mutation.is(Mutant::IcrcUnchecked) {
            self.counts.corrupt += 1;
            return Receipt::Ours;
        }
        let mut answer = answer::AnswerContext {
            now,
            config: &self.config,
            counts: &mut self.counts,
            ended: &mut self.ended,
            mutation: self.mutation,
        };
        answer.packet(qp, &received.packet);
        Receipt::Ours
    }

    /// Prepares retransmissions for queue pairs without progress, and fails those that have retried too often.
    pub fn tick(&mut self, now: Time) {
        for qp in self.queue_pairs.iter_mut().flatten() {
            if qp.deadline.is_none_or(|deadline| deadline > now) {
                continue;
            }
            self.counts.timeouts += 1;
            let max_retries =
                if self.mutation.is(Mutant::RetriesUnbounded) { u8::MAX } else { self.config.max_retries };
            if !qp.retry_after_timeout(max_retries) {
                qp.fail(FailureReason::NoAnswer, &mut self.ended);
            }
        }
    }

    /// Returns the time at which [`Requester::tick`] or [`Requester::transmit`] has something to do, if there is one.
    pub fn next_event(&self) -> Option<Time> {
        let times = self.queue_pairs.iter().flatten().flat_map(|qp| [qp.deadline, qp.sends_from]);
        times.flatten().min()
    }
}

/// Returns the queue pair with exactly this number.
#[inline]
fn find(queue_pairs: &mut [Option<RequesterQp>], number: QpNumber) -> Option<&mut RequesterQp> {
    queue_pairs.get_mut(number.slot())?.as_mut().filter(|qp| qp.local.number == number)
}
