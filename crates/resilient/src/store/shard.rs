//! A shard at a node: its role in the chain, its rows, and the operations that it applies.

#[cfg(feature = "simulation")]
mod fingerprint;

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;
use switch::Time;

use super::ShardContext;
use super::aging::RowClocks;
use super::link::SuccessorLink;
use super::operation_log::OperationLog;
use super::pools::PoolSearches;
use super::record::{ShardChange, ShardState, StoreRecord};
use super::report::CarriedReport;
use super::row_table::RowTable;
use super::waiters::WaiterQueues;
use crate::expiry_ns;
use crate::layout::{ChainMember, ShardId};
use crate::message::{Content, CopyChunk, Operation, OwnerId, ReplyBody, ShardStatus};
use crate::mutant::Mutant;
use crate::row::RowId;

/// Number of sessions above which ended ones are removed.
const MANY_SESSIONS: usize = 64;

/// A shard at a node.
#[cfg_attr(feature = "simulation", derive(Clone))]
#[derive(Debug)]
pub(super) struct ShardNode {
    pub shard: ShardId,
    pub is_head: bool,
    pub is_tail: bool,
    pub is_member: bool,
    pub content: Content,
    /// Number of the record of the last part that was copied.
    pub content_record: u64,
    /// Whether the node has had all operations that the chain acknowledged. It then stays so.
    pub is_active: bool,
    /// Number of the record that says so.
    active_record: u64,
    pub rows: RowTable,
    /// Ends of sessions by this node's clock.
    sessions: HashMap<OwnerId, Time, FixedState>,
    /// No session ends before this time.
    grace_until: Time,
    pub log: OperationLog,
    pub carried: CarriedReport,
    /// The last operation when the node took its layout, or when it became active after that.
    pub floor: u64,
    /// The last operation that all nodes of the chain have applied, as far as this node knows.
    pub stable: u64,
    pub link: Option<SuccessorLink>,
    pub waiters: WaiterQueues,
    pub pools: PoolSearches,
    pub clocks: RowClocks,
    /// Operations that came too early, by the index of the first.
    pub early: BTreeMap<u64, Vec<Operation>>,
    /// The part of a copy that arrived last, until it can be applied.
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
            carried: CarriedReport::default(),
            floor: 0,
            stable: 0,
            link: None,
            waiters: WaiterQueues::default(),
            pools: PoolSearches::default(),
            clocks: RowClocks::default(),
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

    /// Returns the status for the operator.
    pub fn status(&self, is_active: bool, is_complete: bool) -> ShardStatus {
        let (rows, log) = (self.rows.len() as u64, self.log.len() as u64);
        let pending = self.log.last().saturating_sub(self.stable);
        ShardStatus { shard: self.shard, is_active, is_complete, rows, log, pending }
    }

    /// Marks the node as complete: it has all rows, as there are none.
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
                    ShardChange::Removed { row, partner, .. } => ShardChange::Removed { row, partner, kept: None },
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
        let ShardNode { is_head, is_tail, is_member, carried, .. } = *self;
        let link = self.link.as_ref().map(|link| SuccessorLink::new(link.to, !self.is_tail));
        *self = ShardNode { is_head, is_tail, is_member, carried, link, grace_until: self.grace_until, ..cleared };
        self.persist(context, |_| ShardChange::Cleared);
    }

    /// Takes its place in a new layout. A new head considers all sessions renewed: it knows no waiter, and may have
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
        if !self.is_head || !was_head || is_restart {
            let visits = self.is_head && self.rows.len() > 0;
            self.clocks.restart(context.now, visits.then_some(context.config.lease_ns));
        }
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
        if context.is(Mutant::ReadersForgotten) {
            self.rows.forget_readers();
        }
        if context.is(Mutant::SessionsForgotten) {
            self.sessions.clear();
        } else {
            self.wait_for_sessions(context);
        }
    }

    /// Considers all sessions renewed now.
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
    pub fn apply(&mut self, context: &mut ShardContext<'_>, mut operation: Operation) {
        self.bound_outputs(context, &mut operation);
        let reply = match &operation {
            Operation::Renew { owner, nonce } => {
                self.renew(context, *owner);
                Some((*owner, ReplyBody::Renewed { shard: self.shard, nonce: *nonce }))
            }
            Operation::Grant { owner, .. }
            | Operation::Miss { owner, .. }
            | Operation::Write { owner, .. }
            | Operation::Release { owner, .. } => {
                self.rows.apply(&operation, context.config.mutation).map(|reply| (*owner, reply))
            }
            Operation::Remove { .. } => {
                self.rows.apply(&operation, context.config.mutation);
                None
            }
        };
        self.note_at_head(context, &operation);
        let (row, second, is_removal) =
            (operation.row().copied(), operation.second_row().copied(), matches!(operation, Operation::Remove { .. }));
        let is_kept = self.link.is_some() || !self.is_tail;
        if self.is_tail {
            operation.take_outputs();
        }
        self.log.push(operation, is_kept);
        self.persist(context, |shard| {
            let mut kept = shard.log.from(shard.log.last()).next().cloned();
            // They are not worth a write to the disk: after a restart, they are lost.
            kept.as_mut().and_then(Operation::take_outputs);
            let state = |row: RowId| shard.rows.get(&row).cloned();
            match row.filter(|_| is_removal) {
                Some(row) => ShardChange::Removed { row, partner: second, kept },
                None => ShardChange::Applied {
                    row: row.and_then(state),
                    number: second.and_then(state).map(Box::new),
                    kept,
                },
            }
        });
        let replies = (self.is_tail && self.is_complete()) || (self.is_head && context.is(Mutant::TailSkipped));
        if let Some((owner, reply)) = reply.filter(|_| replies) {
            context.outbox.reply(owner, reply);
        }
    }

    /// Counts the outputs of an operation, or drops them if the node has too many in memory.
    fn bound_outputs(&mut self, context: &ShardContext<'_>, operation: &mut Operation) {
        let bytes = operation.carried_bytes();
        if bytes == 0 {
            return;
        }
        if bytes + self.log.carried_bytes() + context.outbox.carried_bytes() > context.config.max_carried_bytes {
            operation.take_outputs();
            self.carried.dropped += 1;
        } else {
            self.carried.writes += 1;
        }
    }

    /// Records the facts about an operation that only the head needs.
    fn note_at_head(&mut self, context: &ShardContext<'_>, operation: &Operation) {
        match operation {
            Operation::Grant { row, idle_ms, is_shared, .. } if self.is_head => {
                if let Some((position, _)) = self.rows.find_row(row) {
                    if !context.is(Mutant::IdleClockKept) {
                        self.clocks.granted(context.now, position, *idle_ms, *is_shared);
                    }
                    self.clocks.see_grant(context.now, *idle_ms);
                }
            }
            Operation::Remove { row, partner, .. } => {
                self.pools.removed(row);
                partner.iter().for_each(|partner| self.pools.removed(partner));
            }
            _ => {}
        }
    }

    /// Performs the work that is due.
    pub fn tick(&mut self, context: &mut ShardContext<'_>) {
        while let Some((_, row)) = self.waiters.next_due().filter(|(due, _)| *due <= context.now) {
            self.serve_waiters(context, &row, false);
        }
        if let Some(link) = self.link.as_mut().filter(|link| link.due.is_some_and(|due| due <= context.now)) {
            link.resend();
        }
        self.visit_rows(context);
    }

    /// Returns the time at which `tick` is due.
    pub fn next_deadline(&self) -> Option<Time> {
        let waiters = self.waiters.next_due().map(|(due, _)| due);
        let link = self.link.as_ref().and_then(|link| link.due);
        waiters.into_iter().chain(link).chain(self.clocks.due()).min()
    }
}

fn session_of(context: &ShardContext<'_>, owner: OwnerId) -> OwnerId {
    if context.is(Mutant::SessionOfSwitch) { OwnerId { incarnation: 0, ..owner } } else { owner }
}
