//! A node of the chains that store the rows.
//!
//! ```text
//!   requests ──> head: decides ──> Operation ──> log, rows ── Forward ──> middle … tail ──> replies
//!                 │  waiters                        └── trimmed <── Progress (applied, stable) ──┘
//! ```
//!
//! The head turns requests into [`Operation`](crate::message::Operation)s, including repeated ones and renewals. Each
//! node applies all operations in the same order and keeps those that the tail may not have yet. Only the tail replies.
//! A successor reports the last operation that it has applied, and gets the next ones; one that lags too far gets a
//! copy of the rows first, while operations continue.
//!
//! A node refuses messages of another layout. So nothing passes a chain if one of its nodes has a newer layout.

mod aging;
#[cfg(feature = "simulation")]
mod fingerprint;
mod group_commit;
mod group_tally;
mod head;
mod link;
mod operation_log;
mod outbox;
mod pools;
mod record;
mod recovery;
mod report;
mod row_index;
mod row_table;
mod shard;
mod sharing;
mod successor;
mod waiters;

use std::sync::Arc;

use switch::Time;

use crate::layout::{ChainMember, FIRST_EPOCH, ShardId, StoreLayout};
use crate::message::{NodeStatus, Peer, Request, RequestBody, StatusRequest, StoreMessage};
use crate::mutant::{Mutant, Mutation};
pub use group_commit::{CommitBatch, EntryChange, GroupCommit};
use outbox::Outbox;
pub use record::{ShardChange, ShardState, StoreRecord};
pub use recovery::StoreRecovery;
pub use report::{CarriedReport, PoolReport, ShardReport, ShardRole};
use shard::ShardNode;

/// Settings of a store node. Lease and drift must be those of all nodes and switches.
#[derive(Clone, Copy, Debug)]
pub struct StoreConfig {
    /// Length of a session's lease.
    pub lease_ns: u64,
    /// Maximum error of each clock against the true time, in parts per million.
    pub drift_ppm: u32,
    /// Interval of recalls while a switch waits for a row.
    pub recall_ns: u64,
    /// Time after which a waiter that has not repeated its request is forgotten.
    pub waiter_timeout_ns: u64,
    /// Time after which operations without a report of the successor are sent again.
    pub retransmit_ns: u64,
    /// Maximum number of rows of a shard.
    pub max_rows: usize,
    /// Maximum number of switches that wait for one row.
    pub max_row_waiters: usize,
    /// Maximum number of asks that wait for rows of a shard.
    pub max_waiters: usize,
    /// Maximum number of operations that wait for the rest of the chain. Requests beyond it are dropped.
    pub max_log: usize,
    /// Maximum memory for outputs that travel with the writes of a shard, in bytes. Further ones are dropped and
    /// counted, and their writes are not.
    pub max_carried_bytes: usize,
    /// Approximate length of a message between nodes, in bytes.
    pub max_frame_bytes: usize,
    /// Whether [`StoreEvent::Persist`] is emitted, and messages wait for [`StoreNode::persisted`].
    pub is_durable: bool,
    /// The error to make, in builds of the simulator.
    pub mutation: Mutation,
}

impl Default for StoreConfig {
    fn default() -> Self {
        StoreConfig {
            lease_ns: 1_000_000_000,
            drift_ppm: 500,
            recall_ns: 10_000_000,
            waiter_timeout_ns: 1_000_000_000,
            retransmit_ns: 10_000_000,
            max_rows: 1 << 24,
            max_row_waiters: 64,
            max_waiters: 1 << 16,
            max_log: 1 << 16,
            max_carried_bytes: 16 << 20,
            max_frame_bytes: 1300,
            is_durable: false,
            mutation: Mutation::default(),
        }
    }
}

/// An effect of a node.
// The large variant is that of durable stores; a box for each record would make them slower.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreEvent {
    /// A message leaves.
    Send {
        /// The receiver.
        to: Peer,
        /// The message.
        message: StoreMessage,
    },
    /// A record goes to the disk. Messages that depend on it follow after [`StoreNode::persisted`].
    Persist {
        /// The number of the record: 1, 2, and on.
        number: u64,
        /// The record.
        record: StoreRecord,
    },
}

/// Values that all shards of a node need during a call.
struct ShardContext<'a> {
    now: Time,
    config: &'a StoreConfig,
    layout: &'a StoreLayout,
    me: ChainMember,
    random: &'a mut rng::SplitMix64,
    outbox: &'a mut Outbox,
}

impl ShardContext<'_> {
    fn is(&self, mutant: Mutant) -> bool {
        self.config.mutation.is(mutant)
    }
}

/// A store node in one life. After calls of `receive`, [`StoreNode::flush`] sends the resulting messages.
#[cfg_attr(feature = "simulation", derive(Clone))]
#[derive(Debug)]
pub struct StoreNode {
    config: StoreConfig,
    me: ChainMember,
    layout: Arc<StoreLayout>,
    random: rng::SplitMix64,
    shards: Vec<Option<Box<ShardNode>>>,
    outbox: Outbox,
}

macro_rules! context {
    ($node:ident, $now:ident) => {
        ShardContext {
            now: $now,
            config: &$node.config,
            layout: &$node.layout,
            me: $node.me,
            random: &mut $node.random,
            outbox: &mut $node.outbox,
        }
    };
}

impl StoreNode {
    /// Creates a node without rows, and without a layout. `seed` is random.
    pub fn joining(config: StoreConfig, me: ChainMember, seed: u64) -> StoreNode {
        let outbox = Outbox::new(config.is_durable, config.mutation.is(Mutant::PersistedLater));
        let random = rng::SplitMix64::new(seed);
        StoreNode { config, me, layout: Arc::default(), random, shards: Vec::new(), outbox }
    }

    /// Creates a node of the first layout of a store. The shards that it is a member of are empty and complete.
    pub fn founding(
        config: StoreConfig,
        me: ChainMember,
        seed: u64,
        now: Time,
        layout: &Arc<StoreLayout>,
    ) -> StoreNode {
        let mut node = StoreNode::joining(config, me, seed);
        node.set_layout(now, layout);
        let mut context = context!(node, now);
        for shard in node.shards.iter_mut().flatten().filter(|shard| shard.is_member() && !shard.is_active) {
            shard.found(&mut context);
        }
        node
    }

    /// Returns the node in its life.
    pub fn member(&self) -> ChainMember {
        self.me
    }

    /// Returns the layout.
    pub fn layout(&self) -> &Arc<StoreLayout> {
        &self.layout
    }

    /// Whether the node has all rows of a shard that it learns. It may then become the tail, in the next layout.
    pub fn is_complete(&self, shard: ShardId) -> bool {
        let is_learned = |shard: &ShardNode| !shard.is_member() && shard.is_complete();
        self.shard(shard).is_some_and(|shard| is_learned(shard) && self.outbox.is_persisted(shard.content_record))
    }

    /// Whether the node is a member of a shard's chain, with everything that the chain has ever acknowledged. If it is
    /// not, no layout may rely on it. The answer is of [`StoreNode::layout`].
    pub fn is_active(&self, shard: ShardId) -> bool {
        let record = self.shard(shard).and_then(ShardNode::active_record);
        record.is_some_and(|record| self.outbox.is_persisted(record))
    }

    /// Returns the number of rows of a shard, including those without values.
    pub fn rows(&self, shard: ShardId) -> usize {
        self.shard(shard).map_or(0, ShardNode::rows)
    }

    /// Returns all rows, for simulations.
    #[cfg(feature = "simulation")]
    pub fn all_rows(&self) -> impl Iterator<Item = &crate::message::RowRecord> {
        let shards = self.shards.iter().flatten();
        shards.flat_map(|shard| shard.rows.range(0..shard.rows.positions())).map(|(_, row)| row)
    }

    fn shard(&self, shard: ShardId) -> Option<&ShardNode> {
        self.shards.get(usize::from(shard.0)).and_then(Option::as_deref)
    }

    /// Returns the effects that are ready.
    pub fn take_events(&mut self) -> impl Iterator<Item = StoreEvent> + '_ {
        self.outbox.take()
    }

    /// Reports that the records up to this number are on disk.
    pub fn persisted(&mut self, up_to: u64) {
        self.outbox.persisted(up_to);
    }

    /// Adopts a layout, if it is newer. A node in its first life that has never had a layout is complete in the shards
    /// that the first layout assigns to it: they are empty.
    pub fn set_layout(&mut self, now: Time, layout: &Arc<StoreLayout>) {
        if layout.epoch() <= self.layout.epoch() {
            return;
        }
        let was_new = self.layout.epoch() == 0;
        self.layout = Arc::clone(layout);
        if !self.config.mutation.is(Mutant::LayoutUnpersisted) {
            let left = layout.shards().filter(|shard| self.leaves(*shard)).collect();
            self.outbox.persist(|| StoreRecord::Layout { layout: Arc::clone(layout), left });
        }
        self.shards.resize_with(layout.chains().len(), || None);
        let mut context = context!(self, now);
        // Nothing passes the first chain without all of its members, so this one cannot lack anything.
        let is_founder = was_new && layout.epoch() == FIRST_EPOCH && self.me.life_count() == 1;
        for (id, chain) in layout.shards().zip(layout.chains()) {
            let shard = &mut self.shards[usize::from(id.0)];
            let is_in = chain.position(self.me).is_some() || chain.learner == Some(self.me);
            if is_in {
                let shard = shard.get_or_insert_with(|| Box::new(ShardNode::new(id, context.random.next_u64())));
                shard.take_role(&mut context, false);
                if is_founder && shard.is_member() {
                    shard.found(&mut context);
                }
            } else if let Some(mut removed) = shard.take() {
                removed.clear(&mut context);
            }
        }
        self.flush(now);
    }

    /// Whether the node forgets the rows of a shard in its new layout.
    fn leaves(&self, id: ShardId) -> bool {
        let Some((shard, chain)) = self.shard(id).zip(self.layout.chain(id)) else { return false };
        let is_member = chain.position(self.me).is_some();
        !is_member && (shard.is_member() || chain.learner != Some(self.me))
    }

    /// Handles a message.
    pub fn receive(&mut self, now: Time, from: Peer, message: StoreMessage) {
        let epoch = match &message {
            StoreMessage::Request(request) => request.layout,
            StoreMessage::Forward(forward) => forward.layout,
            StoreMessage::Progress(progress) => progress.layout,
            StoreMessage::Layout(layout) => return self.set_layout(now, layout),
            StoreMessage::LayoutRequest(epoch) => return self.send_layout(from, *epoch),
            StoreMessage::StatusRequest(request) => return self.send_status(from, *request),
            StoreMessage::Reply(_) | StoreMessage::Status(_) => return,
        };
        if epoch != self.layout.epoch() && !self.config.mutation.is(Mutant::LayoutIgnored) {
            return self.refuse(from, epoch);
        }
        let mut context = context!(self, now);
        match message {
            StoreMessage::Request(Request { owner, body, .. }) => {
                let shard = shard_of(context.layout, &body);
                if let Some(Some(shard)) = self.shards.get_mut(usize::from(shard.0)) {
                    shard.request(&mut context, owner, body);
                }
            }
            StoreMessage::Forward(forward) => {
                if let Some(Some(shard)) = self.shards.get_mut(usize::from(forward.shard.0)) {
                    shard.forwarded(&mut context, from, forward);
                }
            }
            StoreMessage::Progress(progress) => {
                if let Some(Some(shard)) = self.shards.get_mut(usize::from(progress.shard.0)) {
                    shard.progressed(&mut context, from, progress);
                }
            }
            _ => {}
        }
    }

    /// Handles messages that have arrived together, and flushes. This is faster than handling them one by one.
    pub fn receive_all(&mut self, now: Time, messages: &mut Vec<(Peer, StoreMessage)>) {
        for (id, shard) in self.layout.shards().zip(&self.shards) {
            let Some(shard) = shard else { continue };
            let requests = messages.iter().filter_map(|(_, message)| match message {
                StoreMessage::Request(request) if shard_of(&self.layout, &request.body) == id => request.body.row(),
                _ => None,
            });
            shard.rows.fetch(requests);
        }
        messages.drain(..).for_each(|(from, message)| self.receive(now, from, message));
        self.flush(now);
    }

    /// Refuses a message of another layout.
    fn refuse(&mut self, from: Peer, epoch: u64) {
        if epoch < self.layout.epoch() {
            self.send_layout(from, epoch);
        } else {
            self.outbox.send(from, StoreMessage::LayoutRequest(self.layout.epoch()));
        }
    }

    fn send_layout(&mut self, to: Peer, epoch: u64) {
        if epoch < self.layout.epoch() {
            self.outbox.send(to, StoreMessage::Layout(Arc::clone(&self.layout)));
        }
    }

    /// Answers the operator. The answer waits for the disk, like any message.
    fn send_status(&mut self, from: Peer, request: StatusRequest) {
        if !matches!(from, Peer::Operator(_)) {
            return;
        }
        self.send_layout(from, request.layout);
        let shards = self.layout.shards().zip(&self.shards).filter_map(|(id, shard)| {
            let (is_active, is_complete) = (self.is_active(id), self.is_complete(id));
            shard.as_ref().map(|shard| shard.status(is_active, is_complete))
        });
        let (life, layout, shards) = (self.me.life, self.layout.epoch(), shards.collect());
        let (number, groups) = (request.number, self.group_statuses());
        self.outbox.send(from, StoreMessage::Status(NodeStatus { number, life, layout, shards, groups }));
    }

    /// Sends operations to successors and reports to predecessors.
    pub fn flush(&mut self, now: Time) {
        let mut context = context!(self, now);
        self.shards.iter_mut().flatten().for_each(|shard| shard.flush(&mut context));
    }

    /// Performs the work that is due: recalls, ends of sessions, retransmissions.
    pub fn tick(&mut self, now: Time) {
        let mut context = context!(self, now);
        for shard in self.shards.iter_mut().flatten() {
            shard.tick(&mut context);
            shard.flush(&mut context);
        }
    }

    /// Returns the time at which `tick` is due.
    pub fn next_deadline(&self) -> Option<Time> {
        self.shards.iter().flatten().filter_map(|shard| shard.next_deadline()).min()
    }
}

fn shard_of(layout: &StoreLayout, body: &RequestBody) -> ShardId {
    match body {
        RequestBody::Renew { shard, .. } => *shard,
        RequestBody::Acquire { row, .. } | RequestBody::Write { row, .. } | RequestBody::Release { row, .. } => {
            layout.shard_of(row)
        }
    }
}
