//! The state of a queue pair at a requester.
//!
//! ```text
//!            requests[0]                          send_index
//!                │                                    │
//!   ── done ──┬──┴───── sent, not done ─────┬─────────┴─ not sent since the queue pair went back ──
//!           oldest                                                        sent (never sent from here on)     next
//! ```

use std::collections::VecDeque;

use switch::Time;
use wire::roce::Psn;

use super::request::PendingRequest;
use super::{EndedRequests, EndedResult, FailureReason};
use crate::endpoint::QpEndpoint;
use crate::path::{FramePath, FrameTemplate};

/// Maximum number of sequence numbers that the requests of a queue pair take: far less than half of the space.
const MAX_NUMBERS: u32 = 1 << 21;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QpState {
    /// It does not know the other end.
    Open,
    Connected,
    /// A request failed. Nothing more is sent.
    Failed,
}

/// A queue pair.
#[derive(Debug)]
pub(super) struct RequesterQp {
    pub local: QpEndpoint,
    pub path: FramePath,
    pub template: FrameTemplate,
    pub state: QpState,
    /// Maximum number of READs and atomic operations outstanding.
    pub max_reads: u16,
    /// Requests that have not ended, in the order of their numbers.
    pub requests: VecDeque<PendingRequest>,
    /// First number that is not completed.
    pub oldest: Psn,
    /// First number that was never sent.
    pub sent: Psn,
    /// Number of the next request.
    next: Psn,
    /// Place in `requests` of the request that is sent next, and the index of its packet.
    pub send_index: usize,
    pub send_packet: u32,
    /// Number of READs and atomic operations that are outstanding.
    pub reads: u16,
    /// Time of the timeout, if there is no progress before.
    pub deadline: Option<Time>,
    /// Time before which nothing is sent, because the responder is not ready.
    pub sends_from: Option<Time>,
    /// Number of timeouts since the last progress.
    retries: u8,
    /// Number of attempts that answers caused since the last progress.
    naks: u16,
    /// Whether it went back and has made no progress since. More signs of the same loss do not count.
    pub is_recovering: bool,
    /// Number of the last gap that the responder reported, without progress since.
    pub gap: Option<Psn>,
}

impl RequesterQp {
    pub fn new(local: QpEndpoint, path: FramePath) -> RequesterQp {
        RequesterQp {
            local,
            path,
            template: FrameTemplate::new(&path, local.number),
            state: QpState::Open,
            max_reads: local.max_reads,
            requests: VecDeque::new(),
            oldest: local.psn,
            sent: local.psn,
            next: local.psn,
            send_index: 0,
            send_packet: 0,
            reads: 0,
            deadline: None,
            sends_from: None,
            retries: 0,
            naks: 0,
            is_recovering: false,
            gap: None,
        }
    }

    pub fn connect(&mut self, peer: QpEndpoint) {
        self.template = FrameTemplate::new(&self.path, peer.number);
        self.max_reads = self.local.max_reads.min(peer.max_reads);
        self.state = QpState::Connected;
    }

    /// Whether a request with this number of packets can be added.
    pub fn has_room(&self, packets: u32, queue_len: usize) -> bool {
        self.requests.len() < queue_len && self.next.since(self.oldest) + packets <= MAX_NUMBERS
    }

    pub fn push(&mut self, mut request: PendingRequest) {
        request.first = self.next;
        self.next = request.end();
        self.requests.push_back(request);
    }

    /// Records that all numbers before this one are completed, and that the other end is alive.
    #[inline]
    pub fn progress(&mut self, oldest: Psn, deadline: Time) {
        self.oldest = oldest;
        (self.retries, self.naks) = (0, 0);
        self.is_recovering = false;
        self.gap = None;
        // A responder that is not ready has its own time.
        self.deadline = (self.sent != oldest && self.sends_from.is_none()).then_some(deadline);
    }

    /// Removes the first request. Its numbers are completed.
    pub fn pop(&mut self) -> Option<PendingRequest> {
        let request = self.requests.pop_front()?;
        self.reads -= u16::from(request.is_outstanding);
        match self.send_index.checked_sub(1) {
            Some(index) => self.send_index = index,
            // An answer to an earlier attempt arrived before the next one was sent.
            None => self.send_packet = 0,
        }
        Some(request)
    }

    /// Goes back to the oldest request that has not ended: this one and all later ones are retransmitted.
    pub fn go_back(&mut self) {
        self.requests.iter_mut().take(self.send_index + 1).for_each(|request| request.is_outstanding = false);
        self.reads = 0;
        self.send_index = 0;
        self.send_packet = self.requests.front().map_or(0, |request| request.done);
        self.is_recovering = true;
        // The next packet that is sent sets it.
        self.deadline = None;
    }

    /// Goes back because an answer shows a loss, and returns true. Returns false after `max_naks` such attempts without
    /// progress.
    #[must_use]
    pub fn retry_after_nak(&mut self, max_naks: u16) -> bool {
        if self.naks >= max_naks {
            return false;
        }
        self.naks += 1;
        self.go_back();
        true
    }

    /// Goes back after a timeout, and returns true. Returns false after `max_retries` retransmissions without progress.
    #[must_use]
    pub fn retry_after_timeout(&mut self, max_retries: u8) -> bool {
        if self.retries >= max_retries {
            return false;
        }
        self.retries += 1;
        self.go_back();
        true
    }

    /// Ends the first request with this reason, and all others as flushed.
    pub fn fail(&mut self, reason: FailureReason, ended: &mut EndedRequests) {
        self.state = QpState::Failed;
        let mut reason = reason;
        while let Some(request) = self.pop() {
            ended.push(self.local.number, request.token, EndedResult::Failed(reason));
            ended.recycle(request.data);
            reason = FailureReason::Flushed;
        }
        (self.deadline, self.sends_from) = (None, None);
    }
}
