//! The switch's side of the protocol.
//!
//! A wrapper around a switch asks [`StateReplica::is_owned`] before each access of a row, and parks a packet whose row
//! is not owned. It holds the outputs of a packet until the writes that the packet made or saw are acknowledged.
//!
//! Reads need no test of the lease when the output leaves: the read took effect between the arrival of the packet and
//! its departure. So the time of the test must not be earlier than the arrival.

mod entry;
mod leases;
mod rows;
mod session;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use foldhash::SharedSeed;
use foldhash::fast::SeedableRandomState;
use switch::Time;

use crate::layout::{ChainMember, NodeId, ShardId, StoreLayout, SwitchId};
use crate::message::{IfMissing, OwnerId, RefusalReason, ReplyBody, StoreMessage};
use crate::mutant::{Mutant, Mutation};
use crate::row::{RowId, RowValues};
use entry::{Phase, RowEntry};
use session::ShardSession;

/// Settings of a replica. The lease must be that of the store.
#[derive(Clone, Copy, Debug)]
pub struct ReplicaConfig {
    /// Length of a session's lease. It is renewed after half of it.
    pub lease_ns: u64,
    /// Time after which a request without reply is sent again.
    pub retransmit_ns: u64,
    /// Maximum number of rows that are owned, asked for, or given back.
    pub max_rows: usize,
    /// Maximum number of rows that are asked for.
    pub max_asks: usize,
    /// Seed of the hash of rows. It is random and secret where packets choose keys: others could provoke collisions.
    pub hash_seed: u64,
    /// The error to make, in builds of the simulator.
    pub mutation: Mutation,
}

impl Default for ReplicaConfig {
    fn default() -> Self {
        ReplicaConfig {
            lease_ns: 1_000_000_000,
            retransmit_ns: 10_000_000,
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
    /// The row may be used. Packets that waited for it run next; then comes [`StateReplica::finished_parked`].
    Granted {
        /// The row.
        row: RowId,
        /// Its values; `None` for a row that was never written, or was removed.
        values: Option<RowValues>,
    },
    /// The row cannot be had now. Packets that waited for it are dropped.
    Refused {
        /// The row.
        row: RowId,
        /// The reason.
        reason: RefusalReason,
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
    /// Writes up to `seq` that are not acknowledged were not applied, or nobody knows. Outputs that wait for them are
    /// dropped.
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

/// The rows of one switch.
#[derive(Debug)]
pub struct StateReplica {
    config: ReplicaConfig,
    layout: Arc<StoreLayout>,
    owner: OwnerId,
    rows: HashMap<RowId, RowEntry, SeedableRandomState>,
    asks: usize,
    next_ask: u64,
    sessions: BTreeMap<ShardId, ShardSession>,
    next_nonce: u64,
    /// No lease ends, and no renewal is due, before this time.
    sessions_due: Time,
    /// Retransmissions by time. An item counts if the row has the same time.
    timers: VecDeque<(Time, RowId)>,
    events: Vec<ReplicaEvent>,
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
            next_ask: 0,
            sessions: BTreeMap::new(),
            next_nonce: 0,
            sessions_due: Time::from_ns(u64::MAX),
            timers: VecDeque::new(),
            events: Vec::new(),
        }
    }

    /// Returns the effects since the last call.
    pub fn take_events(&mut self) -> impl Iterator<Item = ReplicaEvent> + '_ {
        self.events.drain(..)
    }

    /// Returns the layout.
    pub fn layout(&self) -> &Arc<StoreLayout> {
        &self.layout
    }

    /// Whether the row may be read and written now.
    pub fn is_owned(&self, now: Time, row: &RowId) -> bool {
        let Some(entry) = self.rows.get(row) else { return false };
        let is_leased = self.lease_end(now, entry.shard).is_some() || self.config.mutation.is(Mutant::LeaseIgnored);
        entry.phase == Phase::Owned && is_leased
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

    /// Asks for a row, with or without values, unless it is owned or asked for. `Granted` or `Refused` follows.
    pub fn acquire(&mut self, now: Time, row: RowId) {
        self.acquire_or(now, row, IfMissing::Grant);
    }

    /// Asks for a row, as [`StateReplica::acquire`], and says what to do if it has no values; that counts only for a
    /// new ask.
    pub fn acquire_or(&mut self, now: Time, row: RowId, if_missing: IfMissing) {
        self.expire(now);
        if let Some(entry) = self.rows.get_mut(&row) {
            entry.is_wanted = matches!(entry.phase, Phase::Draining { .. } | Phase::Releasing);
            if entry.is_wanted {
                entry.if_missing = if_missing;
            }
            return;
        }
        if let Some(reason) = self.full() {
            self.events.push(ReplicaEvent::Refused { row, reason });
            return;
        }
        let shard = self.layout.shard_of(&row);
        self.rows.insert(row, RowEntry::asked(shard, if_missing));
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
        let entry = self.rows.get_mut(row).filter(|entry| entry.phase == Phase::Owned).expect("the row is owned");
        // The newest values, not the acknowledged ones: others may be under way.
        if entry.values == values {
            return entry.seq;
        }
        #[cfg(feature = "simulation")]
        if self.config.mutation.is(Mutant::ElidedWhilePending) && entry.acked_values == values {
            entry.values = values;
            return entry.acked;
        }
        entry.seq = entry.seq.saturating_add(1);
        entry.values = values;
        let seq = entry.seq;
        if entry.sent == entry.acked {
            self.send_write(now, row);
        }
        seq
    }

    /// Gives an owned row back once its writes are acknowledged. `Lost` follows.
    pub fn release(&mut self, now: Time, row: &RowId) {
        if let Some(entry) = self.rows.get_mut(row).filter(|entry| entry.phase == Phase::Owned) {
            entry.is_recalled = true;
            self.give_back(now, row);
        }
    }

    /// Reports that all packets that waited for the row have run. A recalled row may then be given back.
    pub fn finished_parked(&mut self, now: Time, row: &RowId) {
        if let Some(entry) = self.rows.get_mut(row) {
            entry.has_parked = false;
            self.give_back(now, row);
        }
    }

    /// Takes a message from a store node.
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
    }

    /// Takes a layout, if it is newer and has the same number of shards. Requests without reply go to the new heads.
    pub fn set_layout(&mut self, now: Time, layout: &Arc<StoreLayout>) {
        if layout.epoch() <= self.layout.epoch() || layout.chains().len() != self.layout.chains().len() {
            return;
        }
        for shard in self.layout.shards() {
            let is_kept =
                |member: &&ChainMember| layout.chain(shard).is_some_and(|new| new.position(**member).is_some());
            let keeps_rows = self.layout.chain(shard).is_some_and(|old| old.members.iter().find(is_kept).is_some());
            if let Some(session) = self.sessions.get_mut(&shard).filter(|_| !keeps_rows) {
                // Nobody there gave this lease, or knows the rows.
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

    /// Does what is due: the ends of leases, renewals, retransmissions.
    pub fn tick(&mut self, now: Time) {
        self.expire(now);
        while let Some((due, row)) = self.timers.front().copied().filter(|(due, _)| *due <= now) {
            self.timers.pop_front();
            if self.rows.get(&row).is_some_and(|entry| entry.due == Some(due)) {
                self.retransmit(now, &row);
            }
        }
        if self.sessions_due <= now {
            self.renew(now);
        }
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
            ReplyBody::Granted { row, ask, epoch, seq, values } => {
                self.granted(now, from, row, *ask, (*epoch, *seq, values));
            }
            ReplyBody::Refused { row, ask, reason } => self.refused(row, *ask, *reason),
            ReplyBody::Recall { row, epoch } => self.recalled(now, from, row, *epoch),
            ReplyBody::Acked { row, epoch, seq } => self.acked(now, row, *epoch, *seq),
            ReplyBody::Stale { row, epoch } => self.stale(now, row, *epoch),
            ReplyBody::Released { row, epoch } => {
                let is_current = |entry: &&RowEntry| entry.phase == Phase::Releasing && entry.epoch == *epoch;
                if self.rows.get(row).filter(is_current).is_some() {
                    self.forget(now, row);
                }
            }
        }
    }
}
