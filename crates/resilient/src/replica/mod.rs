//! The switch's side of the protocol.
//!
//! A wrapper around a switch asks [`StateReplica::is_owned`] before each write of a row, [`StateReplica::is_readable`]
//! before each read, and parks a packet that may not use its row in this way. It holds the outputs of a packet until
//! the writes that the packet made or observed are acknowledged.
//!
//! Reads need no test of the lease when the output leaves: the read took effect between the arrival of the packet and
//! its departure. So the time of the test must not be earlier than the arrival.

mod carrying;
mod entry;
#[cfg(feature = "simulation")]
mod fingerprint;
mod leases;
mod report;
mod rows;
mod sender;
mod session;
mod sharing;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use foldhash::SharedSeed;
use foldhash::fast::SeedableRandomState;
use switch::Time;

use crate::carried::{CarriedOutputs, HoldMode};
use crate::holders::RowAccess;
use crate::latency::LatencyHistogram;
use crate::layout::{ChainMember, NodeId, ShardId, StoreLayout, SwitchId};
use crate::message::{IfMissing, OwnerId, RefusalReason, ReplyBody, StoreMessage};
use crate::mutant::{Mutant, Mutation};
use crate::row::{RowId, RowValues};
use crate::wire_form::MAX_PAYLOAD;
pub use carrying::CarriedCounts;
use entry::{Phase, RowEntry};
pub use report::{ReplicaCounts, RowProgress, RowReport};
use session::ShardSession;

/// Settings of a replica. The lease must be that of the store.
#[derive(Clone, Copy, Debug)]
pub struct ReplicaConfig {
    /// Length of a session's lease. It is renewed after half of it.
    pub lease_ns: u64,
    /// Time after which a request without reply is sent again.
    pub retransmit_ns: u64,
    /// The place in which outputs wait for the acknowledgement of their write.
    pub hold: HoldMode,
    /// Maximum length of a datagram that carries outputs, in bytes; [`MAX_PAYLOAD`] at most.
    pub max_datagram_bytes: usize,
    /// Maximum number of rows that are owned, asked for, or given back.
    pub max_rows: usize,
    /// Maximum number of rows that are asked for.
    pub max_asks: usize,
    /// Seed of the hash of rows. It must be random and secret if packets choose keys: a sender could otherwise provoke
    /// collisions.
    pub hash_seed: u64,
    /// The error to make, in builds of the simulator.
    pub mutation: Mutation,
}

impl Default for ReplicaConfig {
    fn default() -> Self {
        ReplicaConfig {
            lease_ns: 1_000_000_000,
            retransmit_ns: 10_000_000,
            hold: HoldMode::default(),
            max_datagram_bytes: MAX_PAYLOAD,
            max_rows: 1 << 20,
            max_asks: 1 << 14,
            hash_seed: 0,
            mutation: Mutation::default(),
        }
    }
}

/// An effect of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaEvent {
    /// The row may be used, and is pinned: the switch keeps it until [`StateReplica::unpin`], which follows when the
    /// packets that waited for it have run.
    Granted {
        /// The row.
        row: RowId,
        /// Its values; `None` for a row that was never written, or was removed.
        values: Option<RowValues>,
        /// Whether the row may only be read, since others may read it, too.
        is_shared: bool,
    },
    /// The row cannot be had now. Packets that waited for it are dropped.
    Refused {
        /// The row.
        row: RowId,
        /// The reason.
        reason: RefusalReason,
    },
    /// The outputs that travelled with a write have returned, and leave now. `Acknowledged` follows.
    OutputsReturned {
        /// The row.
        row: RowId,
        /// The write.
        seq: u64,
        /// The outputs.
        outputs: CarriedOutputs,
    },
    /// Writes up to `seq` are safe: outputs that wait for them may leave.
    Acknowledged {
        /// The row.
        row: RowId,
        /// The newest acknowledged write.
        seq: u64,
    },
    /// The row may not be used any more. If writes are pending, `Acknowledged` or `Abandoned` follows.
    Lost {
        /// The row.
        row: RowId,
        /// The newest acknowledged write.
        last_acknowledged: u64,
        /// The newest write that is not acknowledged.
        pending: Option<u64>,
    },
    /// A pinned row was recalled. It is given back after [`StateReplica::unpin`].
    Recalled {
        /// The row.
        row: RowId,
    },
    /// Writes up to `seq` that are not acknowledged were not applied, or their outcome is unknown. Outputs that wait
    /// for them are dropped.
    Abandoned {
        /// The row.
        row: RowId,
        /// The newest write.
        seq: u64,
    },
    /// A message leaves.
    Send {
        /// The receiver.
        to: NodeId,
        /// The message.
        message: StoreMessage,
    },
}

/// The number of a write, and how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteProgress {
    /// The number: outputs wait until it is acknowledged.
    pub seq: u64,
    /// Whether it is.
    pub is_acknowledged: bool,
}

impl ReplicaEvent {
    /// Returns the row that the event is about.
    pub fn row(&self) -> Option<&RowId> {
        match self {
            ReplicaEvent::Granted { row, .. }
            | ReplicaEvent::Refused { row, .. }
            | ReplicaEvent::OutputsReturned { row, .. }
            | ReplicaEvent::Acknowledged { row, .. }
            | ReplicaEvent::Lost { row, .. }
            | ReplicaEvent::Recalled { row }
            | ReplicaEvent::Abandoned { row, .. } => Some(row),
            ReplicaEvent::Send { .. } => None,
        }
    }
}

/// The rows of one switch.
#[cfg_attr(feature = "simulation", derive(Clone))]
#[derive(Debug)]
pub struct StateReplica {
    config: ReplicaConfig,
    layout: Arc<StoreLayout>,
    owner: OwnerId,
    rows: HashMap<RowId, RowEntry, SeedableRandomState>,
    asks: usize,
    granted: usize,
    next_ask: u64,
    sessions: BTreeMap<ShardId, ShardSession>,
    next_nonce: u64,
    /// No lease ends, and no renewal is due, before this time.
    sessions_due: Time,
    /// Retransmissions by time. An item counts if the row has the same time.
    timers: VecDeque<(Time, RowId)>,
    events: Vec<ReplicaEvent>,
    /// Number of retransmitted requests about rows.
    retransmissions: u64,
    latency: LatencyHistogram,
    carried: CarriedCounts,
}

impl StateReplica {
    /// Creates the replica of a switch that starts. `incarnation` is random, and never used before.
    pub fn new(config: ReplicaConfig, layout: Arc<StoreLayout>, switch: SwitchId, incarnation: u64) -> StateReplica {
        let hasher = SeedableRandomState::with_seed(incarnation ^ config.hash_seed, SharedSeed::global_fixed());
        StateReplica {
            config,
            layout,
            owner: OwnerId { switch, incarnation },
            rows: HashMap::with_hasher(hasher),
            asks: 0,
            granted: 0,
            next_ask: 0,
            sessions: BTreeMap::new(),
            next_nonce: 0,
            sessions_due: Time::from_ns(u64::MAX),
            timers: VecDeque::new(),
            events: Vec::new(),
            retransmissions: 0,
            latency: LatencyHistogram::default(),
            carried: CarriedCounts::default(),
        }
    }

    /// Returns the effects since the last call.
    pub fn take_events(&mut self) -> impl Iterator<Item = ReplicaEvent> + '_ {
        self.drop_ended_timers();
        self.events.drain(..)
    }

    /// Exchanges the effects since the last call for an empty list, whose memory is used for the next ones.
    pub fn swap_events(&mut self, into: &mut Vec<ReplicaEvent>) {
        into.clear();
        if !self.events.is_empty() {
            self.drop_ended_timers();
            std::mem::swap(&mut self.events, into);
        }
    }

    /// Returns the layout.
    pub fn layout(&self) -> &Arc<StoreLayout> {
        &self.layout
    }

    /// Whether the row may be read and written now.
    pub fn is_owned(&self, now: Time, row: &RowId) -> bool {
        let Some(entry) = self.rows.get(row) else { return false };
        let is_leased = self.lease_end(now, entry.shard).is_some() || self.config.mutation.is(Mutant::LeaseIgnored);
        entry.phase == Phase::Owned && !entry.is_shared && is_leased
    }

    /// Returns the end of the lease at a shard, if there is one now.
    pub fn lease_end(&self, now: Time, shard: ShardId) -> Option<Time> {
        self.sessions.get(&shard).filter(|session| session.is_live && now < session.end).map(|session| session.end)
    }

    /// Returns the newest acknowledged write of a row, or 0.
    pub fn acknowledged(&self, row: &RowId) -> u64 {
        self.rows.get(row).map_or(0, |entry| entry.acked)
    }

    /// Returns the newest write of a row if it is not acknowledged.
    pub fn pending_seq(&self, row: &RowId) -> Option<u64> {
        self.rows.get(row).filter(|entry| entry.is_pending()).map(|entry| entry.seq)
    }

    /// Asks for a row for writing, with or without values, unless it is owned. `Granted` or `Refused` follows.
    pub fn acquire(&mut self, now: Time, row: RowId) {
        self.acquire_or(now, row, RowAccess::Write, IfMissing::Grant, 0);
    }

    /// Asks for a row, unless the switch may use it in this way already or has asked for this use. Sets the action if
    /// the row has no values, and its idle time in milliseconds, 0 if it does not age; both count only for a new ask.
    /// If the row is shared and the switch wants to write, it gives the row up: `Lost` follows, and then `Granted`.
    pub fn acquire_or(&mut self, now: Time, row: RowId, access: RowAccess, if_missing: IfMissing, idle_ms: u32) {
        self.expire(now);
        self.end_late_reading(now, &row);
        if let Some(entry) = self.rows.get_mut(&row) {
            let was_wanted = entry.is_wanted;
            entry.is_wanted = matches!(entry.phase, Phase::Draining { .. } | Phase::Releasing);
            if entry.is_wanted {
                let access = if was_wanted { access.max(entry.access) } else { access };
                (entry.if_missing, entry.idle_ms, entry.access) = (if_missing, idle_ms, access);
            } else if access == RowAccess::Write {
                self.strengthen(now, &row);
            }
            return;
        }
        if let Some(reason) = self.full() {
            self.events.push(ReplicaEvent::Refused { row, reason });
            return;
        }
        let shard = self.layout.shard_of(&row);
        self.rows.insert(row, RowEntry::asked(shard, (if_missing, idle_ms, access)));
        self.asks += 1;
        self.send_ask(now, &row);
        self.open_session(now, shard);
    }

    /// Opens sessions at all shards, so that the first row of each costs one round trip. Without it, a session is
    /// opened when the first row is asked for.
    pub fn open_sessions(&mut self, now: Time) {
        for shard in self.layout.shards() {
            self.open_session(now, shard);
        }
    }

    fn open_session(&mut self, now: Time, shard: ShardId) {
        if let Entry::Vacant(session) = self.sessions.entry(shard) {
            session.insert(ShardSession::new(now));
            self.send_renewal(now, shard);
        }
    }

    fn full(&self) -> Option<RefusalReason> {
        if self.rows.len() >= self.config.max_rows {
            return Some(RefusalReason::ReplicaFull);
        }
        (self.asks >= self.config.max_asks).then_some(RefusalReason::TooManyAsks)
    }

    /// Writes an owned row and returns the number of the write: outputs wait until it is acknowledged. Values that the
    /// row has already cost no write. The caller has tested [`StateReplica::is_owned`] with the same time.
    pub fn write(&mut self, now: Time, row: &RowId, values: Option<RowValues>) -> u64 {
        self.write_and_send(now, row, values, None).seq
    }

    /// Does what [`StateReplica::write`] does, and also returns whether the write is acknowledged already.
    pub fn write_row(&mut self, now: Time, row: &RowId, values: Option<RowValues>) -> WriteProgress {
        self.write_and_send(now, row, values, None)
    }

    fn write_and_send(
        &mut self,
        now: Time,
        row: &RowId,
        values: Option<RowValues>,
        outputs: Option<CarriedOutputs>,
    ) -> WriteProgress {
        let (rows, mut sender) = self.sender();
        let is_owned = |entry: &&mut RowEntry| entry.phase == Phase::Owned && !entry.is_shared;
        let entry = rows.get_mut(row).filter(is_owned).expect("the row is owned");
        // The newest values, not the acknowledged ones: others may be under way.
        if entry.values == values {
            return WriteProgress { seq: entry.seq, is_acknowledged: !entry.is_pending() };
        }
        #[cfg(feature = "simulation")]
        if sender.config.mutation.is(Mutant::ElidedWhilePending) && entry.acked_values == values {
            entry.values = values;
            return WriteProgress { seq: entry.acked, is_acknowledged: true };
        }
        entry.seq = entry.seq.saturating_add(1);
        entry.values = values;
        // Outputs travel only if no write is under way.
        if entry.sent == entry.acked || outputs.is_some() {
            sender.send_write(now, (row, entry), outputs);
        }
        WriteProgress { seq: entry.seq, is_acknowledged: false }
    }

    /// Sends the request of a row again now, if it has no answer.
    pub fn send_again(&mut self, now: Time, row: &RowId) {
        self.retransmit(now, row);
    }

    /// Gives an owned row back once its writes are acknowledged. `Lost` follows.
    pub fn release(&mut self, now: Time, row: &RowId) {
        if let Some(entry) = self.rows.get_mut(row).filter(|entry| entry.phase == Phase::Owned) {
            entry.is_recalled = true;
            if entry.is_pinned {
                self.events.push(ReplicaEvent::Recalled { row: *row });
            }
            self.give_back(now, row);
        }
    }

    /// Gives back an owned row that no packet has used for its idle time, unless packets wait for it. `Lost` follows.
    pub fn release_idle(&mut self, now: Time, row: &RowId) {
        let is_free = |entry: &&mut RowEntry| entry.phase == Phase::Owned && !entry.is_pinned && !entry.is_recalled;
        if let Some(entry) = self.rows.get_mut(row).filter(is_free) {
            entry.is_idle = true;
            self.release(now, row);
        }
    }

    /// Lets the switch give the row back when it is recalled. Until then, a row that was granted is pinned: packets
    /// that waited for it run first.
    pub fn unpin(&mut self, now: Time, row: &RowId) {
        if let Some(entry) = self.rows.get_mut(row) {
            entry.is_pinned = false;
            self.give_back(now, row);
        }
    }

    /// Handles a message from a store node.
    pub fn receive(&mut self, now: Time, from: NodeId, message: &StoreMessage) {
        self.expire(now);
        match message {
            StoreMessage::Reply(reply)
                if reply.owner == self.owner || self.config.mutation.is(Mutant::IncarnationIgnored) =>
            {
                self.reply(now, from, &reply.body);
            }
            StoreMessage::Layout(layout) => self.set_layout(now, layout),
            StoreMessage::LayoutRequest(epoch) if *epoch < self.layout.epoch() => {
                let message = StoreMessage::Layout(Arc::clone(&self.layout));
                self.events.push(ReplicaEvent::Send { to: from, message });
            }
            _ => {}
        }
        if !message.is_acknowledgement() {
            self.drop_ended_timers();
        }
    }

    /// Adopts a layout, if it is newer and has the same number of shards. Requests without reply go to the new heads.
    pub fn set_layout(&mut self, now: Time, layout: &Arc<StoreLayout>) {
        if layout.epoch() <= self.layout.epoch() || layout.chains().len() != self.layout.chains().len() {
            return;
        }
        for shard in self.layout.shards() {
            let is_kept =
                |member: &&ChainMember| layout.chain(shard).is_some_and(|new| new.position(**member).is_some());
            let keeps_rows = self.layout.chain(shard).is_some_and(|old| old.members.iter().find(is_kept).is_some());
            if let Some(session) = self.sessions.get_mut(&shard).filter(|_| !keeps_rows) {
                // The new members did not give this lease, and do not have the rows.
                session.end = now;
            }
        }
        self.layout = Arc::clone(layout);
        for session in self.sessions.values_mut().filter(|session| session.due > now && !session.is_live) {
            session.due = now;
        }
        self.sessions_due = now;
        self.expire(now);
        let waiting: Vec<RowId> =
            self.rows.iter().filter(|(_, entry)| entry.due.is_some()).map(|(row, _)| *row).collect();
        for row in waiting {
            self.retransmit(now, &row);
        }
    }

    /// Performs the work that is due: ends of leases, renewals, retransmissions.
    pub fn tick(&mut self, now: Time) {
        self.expire(now);
        while let Some((due, row)) = self.timers.front().copied().filter(|(due, _)| *due <= now) {
            self.timers.pop_front();
            if self.rows.get(&row).is_some_and(|entry| entry.due == Some(due)) {
                self.retransmissions += 1;
                self.retransmit(now, &row);
            }
        }
        if self.sessions_due <= now {
            self.renew(now);
        }
        self.drop_ended_timers();
    }

    /// Removes the first timers if their requests have been answered, so that they cause no wake-up.
    fn drop_ended_timers(&mut self) {
        let has_ended = |(due, row): &mut (Time, RowId)| self.rows.get(row).is_none_or(|entry| entry.due != Some(*due));
        while self.timers.pop_front_if(has_ended).is_some() {}
    }

    /// Returns the time at which `tick` is due.
    pub fn next_deadline(&self) -> Option<Time> {
        let retransmission = self.timers.front().map(|(due, _)| *due);
        let session = (!self.sessions.is_empty()).then_some(self.sessions_due);
        retransmission.into_iter().chain(session).min()
    }

    fn reply(&mut self, now: Time, from: NodeId, reply: &ReplyBody) {
        match reply {
            ReplyBody::Renewed { shard, nonce } => self.renewed(now, *shard, *nonce),
            ReplyBody::Granted { row, ask, epoch, seq, values, is_shared } => {
                self.granted(now, from, row, *ask, (*epoch, *seq, values, *is_shared));
            }
            ReplyBody::Refused { row, ask, reason } => self.refused(row, *ask, *reason),
            ReplyBody::Recall { row, epoch } => self.recalled(now, from, row, *epoch),
            ReplyBody::Acked { row, epoch, seq, outputs } => {
                self.acked(now, row, (*epoch, *seq), outputs.as_ref());
            }
            ReplyBody::Stale { row, epoch } => self.stale(now, row, *epoch),
            ReplyBody::Probe { row, epoch } => {
                if !self.rows.contains_key(row) {
                    self.release_unowned(from, row, *epoch);
                }
            }
            ReplyBody::Released { row, epoch } => {
                let is_current = |entry: &&RowEntry| entry.phase == Phase::Releasing && entry.epoch == *epoch;
                if self.rows.get(row).filter(is_current).is_some() {
                    self.forget(now, row);
                }
            }
        }
    }
}
