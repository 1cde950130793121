//! Keeps a member's view of a peer.

use std::collections::VecDeque;

use switch::Time;

use super::DatagramRefusal;
use super::replay_window::ReplayWindow;

/// Time between two requests to a peer.
const REQUEST_INTERVAL_NS: u64 = 1_000_000;

/// Time between two requests to a peer with other settings.
const DISAGREEING_INTERVAL_NS: u64 = 1_000_000_000;

/// Maximum number of datagrams that wait for a peer's start number. The oldest are lost first.
const MAX_WAITING: usize = 8;

/// Whether a peer has the settings of this member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PeerSettings {
    /// The same settings, or not known yet.
    #[default]
    Alike,
    /// Other settings.
    Other,
}

/// The state of a peer.
#[derive(Debug, Default)]
pub(super) struct PeerState {
    /// Its proved start number.
    pub start: Option<u64>,
    /// The counters received from this start.
    pub window: ReplayWindow,
    /// The counter of the last datagram sent to it.
    pub sent: u64,
    /// The challenge that it has not answered yet; 0 for none. It stays the same until it is answered.
    pub challenge: u64,
    challenges: u64,
    requested: Option<Time>,
    settings: PeerSettings,
    was_reported: bool,
    waiting: VecDeque<Vec<u8>>,
}

impl PeerState {
    /// Queues a datagram.
    pub fn wait(&mut self, datagram: Vec<u8>) {
        if self.settings == PeerSettings::Other {
            return;
        }
        if self.waiting.len() == MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(datagram);
    }

    /// Records the start number that the peer has proved. Returns the datagrams that waited for it.
    pub fn adopt(&mut self, start: u64) -> Vec<Vec<u8>> {
        (self.challenge, self.settings) = (0, PeerSettings::Alike);
        if self.start != Some(start) {
            (self.start, self.window) = (Some(start), ReplayWindow::default());
        }
        self.waiting.drain(..).collect()
    }

    /// Records the proof that the peer has other settings. Returns whether this is to be reported.
    pub fn reject(&mut self) -> bool {
        (self.challenge, self.settings, self.start) = (0, PeerSettings::Other, None);
        self.waiting.clear();
        !std::mem::replace(&mut self.was_reported, true)
    }

    /// Returns the challenge to send. It is unique within this member's start; only the peer can answer it, so it need
    /// not be secret.
    pub fn challenge(&mut self) -> u64 {
        if self.challenge == 0 {
            self.challenges += 1;
            self.challenge = self.challenges;
        }
        self.challenge
    }

    /// Whether the peer's start number may be requested now. The next request is some time later.
    pub fn may_request(&mut self, now: Time) -> bool {
        let interval = match self.settings {
            PeerSettings::Alike => REQUEST_INTERVAL_NS,
            PeerSettings::Other => DISAGREEING_INTERVAL_NS,
        };
        let is_due = self.requested.is_none_or(|requested| now.since_ns(requested) >= interval);
        if is_due {
            self.requested = Some(now);
        }
        is_due
    }

    /// Returns the reason to refuse a datagram with other start numbers.
    pub fn refusal(&self) -> DatagramRefusal {
        match self.settings {
            PeerSettings::Alike => DatagramRefusal::OtherStart,
            PeerSettings::Other => DatagramRefusal::OtherSettings,
        }
    }
}
