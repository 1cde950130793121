//! The session of a switch at one shard.

use std::collections::VecDeque;

use switch::Time;

use crate::mutant::{Mutant, Mutation};

/// Maximum number of renewals whose time of sending is kept.
const MAX_NONCES: usize = 64;

/// The lease of a switch at a shard.
#[cfg_attr(feature = "simulation", derive(Clone, Hash))]
#[derive(Debug, Default)]
pub(super) struct ShardSession {
    /// Whether the lease is valid, as far as the time is known.
    pub is_live: bool,
    /// End of the lease, if it is live.
    pub end: Time,
    /// Time of the next renewal.
    pub due: Time,
    /// Time of the last reply, or of the start.
    pub heard: Time,
    /// The renewals that may still be answered, with the time of their first send.
    sent: VecDeque<(u64, Time)>,
}

impl ShardSession {
    pub fn new(now: Time) -> ShardSession {
        ShardSession { heard: now, ..ShardSession::default() }
    }

    /// Returns the nonce of a renewal that is sent now. `next` is a number that was not used yet.
    pub fn send(&mut self, now: Time, next: &mut u64, lease_ns: u64) -> u64 {
        while self.sent.front().is_some_and(|(_, at)| now.since_ns(*at) >= lease_ns) {
            self.sent.pop_front();
        }
        if self.sent.len() < MAX_NONCES {
            *next += 1;
            self.sent.push_back((*next, now));
        }
        self.sent.back().map_or(*next, |(nonce, _)| *nonce)
    }

    /// Counts a reply, and returns whether a lease begins.
    pub fn renewed(&mut self, now: Time, nonce: u64, lease_ns: u64, mutation: Mutation) -> bool {
        let Some(position) = self.sent.iter().position(|(sent, _)| *sent == nonce) else { return false };
        let mut first_sent = self.sent[position].1;
        if mutation.is(Mutant::LeaseFromLastSend) {
            first_sent = self.sent.back().map_or(first_sent, |(_, at)| *at);
        }
        if mutation.is(Mutant::LeaseFromReply) {
            first_sent = now;
        }
        self.sent.drain(..=position);
        self.heard = now;
        let end = first_sent.after_ns(lease_ns);
        if end <= now {
            return false;
        }
        let begins = !self.is_live;
        self.end = if begins { end } else { self.end.max(end) };
        self.is_live = true;
        self.due = first_sent.after_ns(lease_ns / 2).max(now);
        begins
    }
}
