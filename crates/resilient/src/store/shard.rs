//! A shard at a node: its role in the chain, its rows, and the operations that it applies.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use switch::Time;

use super::ShardContext;
use super::link::SuccessorLink;
use super::operation_log::OperationLog;
use super::pools::PoolSearches;
use super::record::{ShardChange, ShardState, StoreRecord};
use super::row_table::RowTable;
use super::waiters::WaiterQueues;
use crate::expiry_ns;
use crate::layout::{ChainMember, ShardId};
use crate::message::{Content, CopyChunk, Operation, OwnerId, ReplyBody, ShardStatus};
use crate::mutant::Mutant;

/// Number of sessions above which ended ones are removed.
const MANY_SESSIONS: usize = 64;

/// A shard at a node.
#[derive(Debug)]
pub(super) struct ShardNode {
    pub shard: ShardId,
    pub is_head: bool,
    pub is_tail: bool,
    pub is_member: bool,
    pub content: Content,
    /// Number of the record of the last part that was copied.
    pub content_record: u64,
    /// Whether the node has had everything that the chain acknowledged. It then stays so.
    pub is_active: bool,
    /// Number of the record that says so.
    active_record: u64,
    pub rows: RowTable,
    /// Ends of sessions by this node's clock.
    sessions: HashMap<OwnerId, Time, FixedState>,
    /// No session ends before this time.
    grace_until: Time,
    pub log: OperationLog,
    /// The last operation when the node took its layout, or when it became active after that.
    pub floor: u64,
    /// The last operation that the whole chain has applied, as far as this node knows.
    pub stable: u64,
    pub link: Option<SuccessorLink>,
    pub waiters: WaiterQueues,
    pub pools: PoolSearches,
    /// Operations that came too early, by the index of the first.
    pub early: BTreeMap<u64, Vec<Operation>>,
    /// The part of a copy that came last, until it can be taken.
    pub next_chunk: Option<CopyChunk>,
    /// Whether the predecessor is to get a report.
    pub report_due: bool,
}

impl ShardNode {
    /// Creates a shard without rows. `seed` is random.
    pub fn new(shard: ShardId, seed: u64) -> ShardNode {
        ShardNode {
            shard,
            is_head: false,
            is_tail: false,
            is_member: false,
            content: Content::Empty,
            content_record: 0,
            is_active: false,
            active_record: 0,
            rows: RowTable::new(seed),
            sessions: HashMap::default(),
            grace_until: Time::ZERO,
            log: OperationLog::default(),
            floor: 0,
            stable: 0,
            link: None,
            waiters: WaiterQueues::default(),
            pools: PoolSearches::default(),
            early: BTreeMap::new(),
            next_chunk: None,
            report_due: false,
        }
    }

    pub fn is_member(&self) -> bool {
        self.is_member
    }

    /// Returns the record after which the node is active even if it restarts.
    pub fn active_record(&self) -> Option<u64> {
        (self.is_member && self.is_active).then_some(self.active_record)
    }

    pub fn is_complete(&self) -> bool {
        self.content == Content::Complete
    }

    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Returns what the operator wants to know.
    pub fn status(&self, is_active: bool, is_complete: bool) -> ShardStatus {
        let (rows, log) = (self.rows.len() as u64, self.log.len() as u64);
        let pending = self.log.last().saturating_sub(self.stable);
        ShardStatus { shard: self.shard, is_active, is_complete, rows, log, pending }
    }

    /// Makes the node one that has all rows: none.
    pub fn found(&mut self, context: &mut ShardContext<'_>) {
        self.content = Content::Complete;
        self.activate(context);
    }

    pub fn activate(&mut self, context: &mut ShardContext<'_>) {
        self.is_active = true;
        self.floor = self.log.last();
        self.active_record = self.persist(context, |_| ShardChange::Nothing);
    }

    /// Emits a record of a change that was made, and returns its number.
    pub fn persist(&self, context: &mut ShardContext<'_>, change: impl FnOnce(&ShardNode) -> ShardChange) -> u64 {
        let keeps = !context.is(Mutant::OperationsUnpersisted);
        let record = || match (self.state(), change(self)) {
            record if keeps => record,
            (state, change) => {
                let change = match change {
                    ShardChange::Applied { row, number, .. } => ShardChange::Applied { row, number, kept: None },
                    change => change,
                };
                (ShardState { first: state.last + 1, ..state }, change)
            }
        };
        context.outbox.persist(|| {
            let (state, change) = record();
            StoreRecord::Shard { shard: self.shard, state, change }
        })
    }

    /// Forgets everything.
    pub fn clear(&mut self, context: &mut ShardContext<'_>) {
        let cleared = ShardNode::new(self.shard, context.random.next_u64());
        let ShardNode { is_head, is_tail, is_member, .. } = *self;
        let link = self.link.as_ref().map(|link| SuccessorLink::new(link.to, !self.is_tail));
        *self = ShardNode { is_head, is_tail, is_member, link, grace_until: self.grace_until, ..cleared };
        self.persist(context, |_| ShardChange::Cleared);
    }

    /// Takes its place in a new layout. A new head takes all sessions for renewed: it knows no waiter, and may have
    /// lost or never had the times of sessions. `is_restart` says that the node has just come back from its disk.
    pub fn take_role(&mut self, context: &mut ShardContext<'_>, is_restart: bool) {
        let Some(chain) = context.layout.chain(self.shard) else { return };
        let position = chain.position(context.me);
        if self.is_member && position.is_none() {
            // A member that is a learner now missed a layout without it.
            self.clear(context);
        }
        let was_head = std::mem::replace(&mut self.is_head, position == Some(0));
        self.is_member = position.is_some();
        self.is_tail = position.is_some_and(|position| position + 1 == chain.members.len());
        if self.is_head && (!was_head || is_restart) {
            self.take_over(context);
        }
        self.waiters.clear();
        self.early.clear();
        self.next_chunk = None;
        self.floor = self.log.last();
        let is_member = |to: ChainMember| chain.position(to).is_some();
        match chain.successor(context.me) {
            Some(to) if self.link.as_ref().is_some_and(|link| link.to == to && !is_restart) => {
                self.link.iter_mut().for_each(|link| link.enter_layout(is_member(to)));
            }
            successor => self.link = successor.map(|to| SuccessorLink::new(to, is_member(to))),
        }
        self.report_due = true;
    }

    fn take_over(&mut self, context: &mut ShardContext<'_>) {
        if context.is(Mutant::GrantsForgotten) {
            self.rows.free_all();
        }
        if context.is(Mutant::SessionsForgotten) {
            self.sessions.clear();
        } else {
            self.wait_for_sessions(context);
        }
    }

    /// Takes all sessions for renewed now.
    pub fn wait_for_sessions(&mut self, context: &ShardContext<'_>) {
        self.grace_until = self.grace_until.max(self.session_end(context));
    }

    /// Returns the end of a session that is renewed now.
    fn session_end(&self, context: &ShardContext<'_>) -> Time {
        let drift_ppm = if context.is(Mutant::NoDriftMargin) { 0 } else { context.config.drift_ppm };
        context.now.after_ns(expiry_ns(context.config.lease_ns, drift_ppm))
    }

    fn renew(&mut self, context: &ShardContext<'_>, owner: OwnerId) {
        let now = context.now;
        if self.sessions.len() >= MANY_SESSIONS && !self.sessions.contains_key(&owner) {
            self.sessions.retain(|_, end| *end > now);
        }
        self.sessions.insert(session_of(context, owner), self.session_end(context));
    }

    /// Returns the end of a switch's session, which may be over.
    pub fn session(&self, context: &ShardContext<'_>, owner: OwnerId) -> Time {
        if context.is(Mutant::NeverExpires) {
            return Time::from_ns(u64::MAX);
        }
        self.sessions.get(&session_of(context, owner)).copied().unwrap_or_default().max(self.grace_until)
    }

    /// Applies the next operation. The tail replies, if it has all rows.
    pub fn apply(&mut self, context: &mut ShardContext<'_>, operation: Operation) {
        let (owner, reply) = match &operation {
            Operation::Renew { owner, nonce } => {
                self.renew(context, *owner);
                (*owner, Some(ReplyBody::Renewed { shard: self.shard, nonce: *nonce }))
            }
            Operation::Grant { owner, .. }
            | Operation::Miss { owner, .. }
            | Operation::Write { owner, .. }
            | Operation::Release { owner, .. } => (*owner, self.rows.apply(&operation, context.config.mutation)),
        };
        let (row, number) = (operation.row().copied(), operation.number().copied());
        let is_kept = self.link.is_some() || !self.is_tail;
        self.log.push(operation, is_kept);
        self.persist(context, |shard| ShardChange::Applied {
            row: row.and_then(|row| shard.rows.get(&row).cloned()),
            number: number.and_then(|row| shard.rows.get(&row).cloned().map(Box::new)),
            kept: shard.log.from(shard.log.last()).next().cloned(),
        });
        let replies = (self.is_tail && self.is_complete()) || (self.is_head && context.is(Mutant::TailSkipped));
        if let Some(reply) = reply.filter(|_| replies) {
            context.outbox.reply(owner, reply);
        }
    }

    /// Does what is due.
    pub fn tick(&mut self, context: &mut ShardContext<'_>) {
        while let Some((_, row)) = self.waiters.next_due().filter(|(due, _)| *due <= context.now) {
            self.serve_waiters(context, &row);
        }
        if let Some(link) = self.link.as_mut().filter(|link| link.due.is_some_and(|due| due <= context.now)) {
            link.resend();
        }
    }

    /// Returns the time at which `tick` is due.
    pub fn next_deadline(&self) -> Option<Time> {
        let waiters = self.waiters.next_due().map(|(due, _)| due);
        waiters.into_iter().chain(self.link.as_ref().and_then(|link| link.due)).min()
    }
}

fn session_of(context: &ShardContext<'_>, owner: OwnerId) -> OwnerId {
    if context.is(Mutant::SessionOfSwitch) { OwnerId { incarnation: 0, ..owner } } else { owner }
}
