//! Sends the packets of plans, repeats them, and matches their echoes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use wire::tpp::{Addressing, Packet, Status, UDP_PORT};

use super::bonds::written;
use super::mutant::{ExecutorMutant, ExecutorMutation};
use super::outcome::{ExecutedProgram, PartEcho};
use super::packets::pushes;
use super::plan::ExecutionPlan;
use super::retry::blocks;
use crate::asm::TinyProgram;

/// Length of the name behind a program: a sequence number and a random tag.
const NAME_LEN: usize = 16;

/// Maximum number of packets of all requests of an executor.
const MAX_PACKETS: usize = 1 << 16;

/// The times and bounds of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutorSettings {
    /// Time after which a packet is sent a second time, in nanoseconds. It doubles with each try.
    pub timeout_ns: u64,
    /// Longest time between two tries, in nanoseconds.
    pub longest_timeout_ns: u64,
    /// Maximum number of packets that wait for their echoes.
    pub in_flight: usize,
    /// Maximum number of requests whose outcome was not taken.
    pub requests: usize,
}

impl Default for ExecutorSettings {
    /// Returns a timeout of 1 s that grows to 8 s, 32 packets, and 4096 requests.
    fn default() -> ExecutorSettings {
        let second = 1_000_000_000;
        ExecutorSettings { timeout_ns: second, longest_timeout_ns: 8 * second, in_flight: 32, requests: 4096 }
    }
}

/// Number of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u64);

/// A datagram to [`UDP_PORT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingProgram {
    /// The request that it belongs to.
    pub request: RequestId,
    /// The destination.
    pub to: IpAddr,
    /// The payload.
    pub datagram: Vec<u8>,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// All packets came back.
    Executed(ExecutedProgram),
    /// Packets did not come back in all their tries.
    Unanswered {
        /// Number of packets that were sent, with retries.
        sent: u32,
        /// Packets of the plan that came back, and their number in all.
        echoed: (usize, usize),
    },
    /// The deadline passed.
    TooLate {
        /// Number of packets that were sent, with retries; 0 if others took all the time.
        sent: u32,
        /// Packets of the plan that came back, and their number in all.
        echoed: (usize, usize),
    },
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request.
    pub request: RequestId,
    /// Its outcome.
    pub outcome: RequestOutcome,
}

/// Counts of datagrams that completed nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedReplies {
    /// Malformed ones, those with a wrong checksum, and those without a name.
    pub damaged: u64,
    /// Ones with a name that nothing was sent with, or from another address than that to which it was sent.
    pub foreign: u64,
    /// Ones whose instructions, constants or header differ from what was sent.
    pub altered: u64,
    /// Further copies of an echo, and echoes of requests that have ended.
    pub repeated: u64,
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
struct SentPacket {
    tag: u64,
    request: RequestId,
    part: usize,
    sent_ns: u64,
}

/// The state of a packet of a plan.
#[derive(Clone, Debug)]
enum PartState {
    /// It waits for its first try.
    Queued,
    /// It was sent, and waits for an echo or for its next try.
    Sent {
        /// Number of tries.
        tries: u32,
        /// Sequence numbers of the tries.
        sequences: Vec<u64>,
        /// Time of the next try, in nanoseconds; `None` while that waits for its turn.
        again_ns: Option<u64>,
    },
    /// It came back.
    Echoed(PartEcho),
}

#[derive(Clone, Debug)]
struct PendingRequest {
    to: IpAddr,
    plan: Arc<ExecutionPlan>,
    deadline_ns: u64,
    parts: Vec<PartState>,
}

impl PendingRequest {
    fn sent(&self) -> u32 {
        let sent = |part: &PartState| match part {
            PartState::Queued => 0,
            PartState::Sent { tries, .. } => *tries,
            PartState::Echoed(echo) => echo.sent,
        };
        self.parts.iter().map(sent).sum()
    }

    fn echoed(&self) -> (usize, usize) {
        (self.parts.iter().filter(|part| matches!(part, PartState::Echoed(_))).count(), self.parts.len())
    }
}

/// The sender of programs as datagrams.
#[derive(Clone, Debug)]
pub struct ProgramExecutor {
    settings: ExecutorSettings,
    requests: BTreeMap<RequestId, PendingRequest>,
    last_request: u64,
    /// Number of packets of the requests.
    packets: usize,
    /// Sequence number of the last datagram.
    last: u64,
    sent_packets: BTreeMap<u64, SentPacket>,
    /// Packets that wait for their first try, or for another one.
    queue: VecDeque<(RequestId, usize)>,
    retries: VecDeque<(RequestId, usize)>,
    /// Number of packets that were sent and did not come back yet.
    in_flight: usize,
    /// Times of the next tries and of deadlines, which have no packet, in nanoseconds.
    timers: BTreeSet<(u64, RequestId, Option<usize>)>,
    completions: VecDeque<Completion>,
    refused: RefusedReplies,
    mutation: ExecutorMutation,
}

impl ProgramExecutor {
    /// Creates an executor without requests.
    pub fn new(settings: ExecutorSettings) -> ProgramExecutor {
        ProgramExecutor::with_mutation(settings, ExecutorMutation::default())
    }

    /// Creates an executor with an error.
    #[doc(hidden)]
    pub fn with_mutation(settings: ExecutorSettings, mutation: ExecutorMutation) -> ProgramExecutor {
        ProgramExecutor {
            settings,
            requests: BTreeMap::new(),
            last_request: 0,
            packets: 0,
            last: 0,
            sent_packets: BTreeMap::new(),
            queue: VecDeque::new(),
            retries: VecDeque::new(),
            in_flight: 0,
            timers: BTreeSet::new(),
            completions: VecDeque::new(),
            refused: RefusedReplies::default(),
            mutation,
        }
    }

    /// Accepts a request: a plan for the path to an address, which ends at `deadline_ns` at the latest. Returns `None`
    /// while there are [`ExecutorSettings::requests`], or 65,536 packets of them.
    pub fn execute(&mut self, to: IpAddr, plan: Arc<ExecutionPlan>, deadline_ns: u64) -> Option<RequestId> {
        let is_full = self.requests.len() + self.completions.len() >= self.settings.requests;
        if is_full || self.packets + plan.packets() > MAX_PACKETS {
            return None;
        }
        self.packets += plan.packets();
        self.last_request += 1;
        let id = RequestId(self.last_request);
        let parts = vec![PartState::Queued; plan.packets()];
        self.queue.extend((0..parts.len()).map(|part| (id, part)));
        self.timers.insert((deadline_ns, id, None));
        self.requests.insert(id, PendingRequest { to, plan, deadline_ns, parts });
        Some(id)
    }

    /// Returns the next datagram to send, if there is one. `random` returns numbers that nobody can predict.
    pub fn send(&mut self, now_ns: u64, mut random: impl FnMut() -> u64) -> Option<OutgoingProgram> {
        self.expire(now_ns);
        let bound = self.settings.in_flight.max(1) + usize::from(self.mutation.is(ExecutorMutant::BoundIgnored));
        let next = match self.retries.pop_front() {
            Some(next) => Some(next),
            None if self.in_flight < bound => self.queue.pop_front(),
            None => None,
        };
        let (id, part) = next?;
        let request = self.requests.get_mut(&id)?;
        self.last += 1;
        let (sequence, tag) = (self.last, random());
        let (before, mut sequences) = match &mut request.parts[part] {
            PartState::Sent { tries, sequences, .. } => (*tries, std::mem::take(sequences)),
            _ => {
                self.in_flight += 1;
                (0, Vec::new())
            }
        };
        if self.mutation.is(ExecutorMutant::EarlierTryForgotten) {
            sequences.drain(..).for_each(|sequence| _ = self.sent_packets.remove(&sequence));
        }
        sequences.push(sequence);
        let doublings = if self.mutation.is(ExecutorMutant::NoBackoff) { 0 } else { before };
        let factor = 1u64.checked_shl(doublings).unwrap_or(u64::MAX);
        let wait_ns = self.settings.timeout_ns.saturating_mul(factor).min(self.settings.longest_timeout_ns.max(1));
        let again_ns = now_ns.saturating_add(wait_ns.max(1));
        request.parts[part] = PartState::Sent { tries: before + 1, sequences, again_ns: Some(again_ns) };
        self.timers.insert((again_ns, id, Some(part)));
        self.sent_packets.insert(sequence, SentPacket { tag, request: id, part, sent_ns: now_ns });
        let name = [sequence.to_be_bytes(), tag.to_be_bytes()].concat();
        let datagram = request.plan.parts[part].program.packet(&name);
        Some(OutgoingProgram { request: id, to: request.to, datagram })
    }

    /// Accepts a datagram from an address and port. It completes a request only if it is the echo of one of its
    /// packets, from the address to which that was sent.
    pub fn receive(&mut self, now_ns: u64, (from, port): (IpAddr, u16), datagram: &[u8]) {
        self.expire(now_ns);
        let packet = Packet::new_checked(datagram).ok();
        let packet =
            packet.filter(|packet| packet.is_checksum_right() || self.mutation.is(ExecutorMutant::DamagedAccepted));
        let name = packet.as_ref().and_then(|packet| packet.payload().first_chunk::<NAME_LEN>());
        let (Some(packet), Some(name)) = (&packet, name) else {
            self.refused.damaged += 1;
            return;
        };
        let name = u128::from_be_bytes(*name);
        let (sequence, tag) = ((name >> 64) as u64, name as u64);
        let Some(sent) = self.sent_packets.get(&sequence).copied() else {
            // Nothing was sent with a later number.
            let counter = if (1..=self.last).contains(&sequence) {
                &mut self.refused.repeated
            } else {
                &mut self.refused.foreign
            };
            *counter += 1;
            return;
        };
        let Some(request) = self.requests.get_mut(&sent.request) else { return };
        let is_source = request.to == from && port == UDP_PORT || self.mutation.is(ExecutorMutant::SourceIgnored);
        if !is_source || sent.tag != tag && !self.mutation.is(ExecutorMutant::TagIgnored) {
            self.refused.foreign += 1;
            return;
        }
        let program = TinyProgram::decode(packet);
        let is_echo = is_echo(&request.plan.parts[sent.part].program, &program);
        if !is_echo && !self.mutation.is(ExecutorMutant::AlteredAccepted) {
            self.refused.altered += 1;
            return;
        }
        let PartState::Sent { tries, sequences, again_ns } = &mut request.parts[sent.part] else {
            // Only with an error: the names of a packet end with its echo.
            self.in_flight = self.in_flight.saturating_sub(1);
            return;
        };
        let (tries, again_ns) = (*tries, *again_ns);
        let rtt_ns = now_ns.saturating_sub(sent.sent_ns);
        let sequences = std::mem::take(sequences);
        request.parts[sent.part] = PartState::Echoed(PartEcho { program, rtt_ns, sent: tries });
        let place = (sent.request, sent.part);
        match again_ns {
            Some(again_ns) => _ = self.timers.remove(&(again_ns, place.0, Some(place.1))),
            None => self.retries.retain(|waiting| *waiting != place),
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        if !self.mutation.is(ExecutorMutant::DuplicateAccepted) {
            sequences.iter().for_each(|sequence| _ = self.sent_packets.remove(sequence));
        }
        let (echoed, all) = request.echoed();
        if echoed == all {
            let echoes: Vec<PartEcho> = request.parts.iter().filter_map(echo_of).collect();
            let outcome = RequestOutcome::Executed(request.plan.executed(&echoes));
            self.complete(sent.request, outcome);
        }
    }

    /// Returns the next outcome, if there is one. Requests end at their deadlines.
    pub fn completed(&mut self, now_ns: u64) -> Option<Completion> {
        self.expire(now_ns);
        self.completions.pop_front()
    }

    /// Forgets a request. It has no outcome.
    pub fn cancel(&mut self, request: RequestId) {
        self.forget(request);
        self.completions.retain(|completion| completion.request != request);
    }

    /// Returns the time of the next try or deadline, in nanoseconds; 0 if something can be sent or taken now, and
    /// `None` if nothing is left to do.
    pub fn next_deadline(&self) -> Option<u64> {
        let can_send =
            !self.retries.is_empty() || !self.queue.is_empty() && self.in_flight < self.settings.in_flight.max(1);
        if can_send || !self.completions.is_empty() {
            return Some(0);
        }
        self.timers.first().map(|(at_ns, ..)| *at_ns)
    }

    /// Returns the number of packets that were sent and did not come back yet.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns the counts of datagrams that completed nothing.
    pub fn refused(&self) -> RefusedReplies {
        self.refused
    }

    /// Ends requests whose deadline or last try has passed, and prepares the retries that are due.
    fn expire(&mut self, now_ns: u64) {
        while let Some((at_ns, id, part)) = self.timers.first().copied().filter(|(at_ns, ..)| *at_ns <= now_ns) {
            self.timers.remove(&(at_ns, id, part));
            let Some(request) = self.requests.get_mut(&id) else { continue };
            let Some(part) = part else {
                let (sent, echoed) = (request.sent(), request.echoed());
                if !self.mutation.is(ExecutorMutant::DeadlineIgnored) {
                    self.complete(id, RequestOutcome::TooLate { sent, echoed });
                }
                continue;
            };
            let limit = request.plan.options.tries.max(1) + u32::from(self.mutation.is(ExecutorMutant::OneTryMore));
            let PartState::Sent { tries, again_ns, .. } = &mut request.parts[part] else { continue };
            if *tries >= limit {
                let (sent, echoed) = (request.sent(), request.echoed());
                self.complete(id, RequestOutcome::Unanswered { sent, echoed });
            } else {
                *again_ns = None;
                self.retries.push_back((id, part));
            }
        }
    }

    fn complete(&mut self, request: RequestId, outcome: RequestOutcome) {
        self.forget(request);
        self.completions.push_back(Completion { request, outcome });
    }

    /// Removes all that belongs to a request.
    fn forget(&mut self, id: RequestId) {
        let Some(request) = self.requests.remove(&id) else { return };
        self.packets -= request.parts.len();
        self.timers.remove(&(request.deadline_ns, id, None));
        for (part, state) in request.parts.iter().enumerate() {
            let PartState::Sent { sequences, again_ns, .. } = state else { continue };
            self.in_flight = self.in_flight.saturating_sub(1);
            sequences.iter().for_each(|sequence| _ = self.sent_packets.remove(sequence));
            again_ns.iter().for_each(|at_ns| _ = self.timers.remove(&(*at_ns, id, Some(part))));
        }
        self.queue.retain(|(other, _)| *other != id);
        self.retries.retain(|(other, _)| *other != id);
    }
}

fn echo_of(part: &PartState) -> Option<PartEcho> {
    match part {
        PartState::Echoed(echo) => Some(echo.clone()),
        _ => None,
    }
}

/// Whether a program can be what became of another one on its way: it is done, and differs only in what switches and
/// receivers change.
fn is_echo(sent: &TinyProgram, came: &TinyProgram) -> bool {
    let (before, after) = (&sent.repr, &came.repr);
    let stack = match (before.addressing, after.addressing) {
        (Addressing::Stack { pointer: before }, Addressing::Stack { .. }) => Some(before),
        (Addressing::Hop { len: before }, Addressing::Hop { len: after }) if before == after => None,
        _ => return false,
    };
    let is_same_header = before.word_size == after.word_size
        && before.is_reflective == after.is_reflective
        && before.is_read_only == after.is_read_only
        && before.encapsulated == after.encapsulated
        && before.application == after.application
        && before.hop <= after.hop
        && after.status.contains(Status::DONE)
        && after.status.contains(before.status);
    is_same_header
        && sent.instructions == came.instructions
        && sent.memory.len() == came.memory.len()
        && has_constants(sent, came, stack)
}

/// Whether the words that no instruction writes are those that were sent. `stack` is where a stack begins, in bytes.
fn has_constants(sent: &TinyProgram, came: &TinyProgram, stack: Option<usize>) -> bool {
    let word = sent.repr.word_size.bytes();
    let pushes = pushes(&sent.instructions);
    let is_written = |at: usize| match stack {
        Some(start) if at >= start => pushes > 0,
        None if at < pushes * word => true,
        _ => sent
            .instructions
            .iter()
            .filter_map(written)
            .any(|word_at| (word_at * word..(word_at + 1) * word).contains(&at)),
    };
    blocks(sent)
        .zip(blocks(came))
        .flat_map(|(sent, came)| sent.iter().zip(came).enumerate())
        .all(|(at, (sent, came))| sent == came || is_written(at))
}
