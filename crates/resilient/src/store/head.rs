//! The head of a chain: it decides which switches may use a row.

use std::cmp::Ordering;

use super::ShardContext;
use super::shard::ShardNode;
use super::waiters::Waiter;
use crate::holders::{RowAccess, RowReader};
use crate::message::{CreatedRow, IfMissing, Operation, OwnerId, RefusalReason, ReplyBody, RequestBody, RowRecord};
use crate::mutant::Mutant;
use crate::row::RowId;

/// A switch's ask for a row.
#[derive(Clone, Debug, Hash)]
pub(super) struct Wish {
    /// The number of the ask.
    pub ask: u64,
    /// The action if the row has no values.
    pub if_missing: IfMissing,
    /// Idle time of the row in milliseconds; 0 if it does not age.
    pub idle_ms: u32,
    /// The use that the switch asks for.
    pub access: RowAccess,
}

impl ShardNode {
    /// Turns a request into an operation. A node that is no head, or has not everything, drops it.
    pub fn request(&mut self, context: &mut ShardContext<'_>, owner: OwnerId, body: RequestBody) {
        if !self.serves(context) || self.log.len() >= context.config.max_log {
            return;
        }
        match body {
            RequestBody::Renew { nonce, .. } => self.apply(context, Operation::Renew { owner, nonce }),
            RequestBody::Acquire { row, ask, if_missing, idle_ms, access } => {
                self.acquire(context, owner, &row, Wish { ask, if_missing, idle_ms, access });
            }
            RequestBody::Write { row, epoch, seq, values, outputs } => {
                self.apply(context, Operation::Write { owner, row, epoch, seq, values, outputs });
            }
            RequestBody::Release { row, epoch, is_idle } => {
                let is_new = self.rows.get(&row).is_some_and(|state| state.has_grant(epoch));
                self.apply(context, Operation::Release { owner, row, epoch });
                if is_new {
                    self.released(context, &row, is_idle);
                }
                self.serve_waiters(context, &row, is_new);
            }
        }
    }

    /// Whether the node may make operations.
    pub fn serves(&self, context: &ShardContext<'_>) -> bool {
        let is_active = self.is_active || context.is(Mutant::IncompleteServes) || context.is(Mutant::InactiveServes);
        let is_complete = self.is_complete() || context.is(Mutant::IncompleteServes);
        self.is_head && is_active && is_complete
    }

    fn acquire(&mut self, context: &mut ShardContext<'_>, owner: OwnerId, row: &RowId, wish: Wish) {
        let Wish { ask, idle_ms, .. } = wish;
        if self.session(context, owner) <= context.now {
            return;
        }
        let state = self.rows.get(row);
        if state.is_none() && self.rows.len() >= context.config.max_rows {
            let reason = RefusalReason::StoreFull;
            return context.outbox.reply(owner, ReplyBody::Refused { row: *row, ask, reason });
        }
        if let Some((held, is_shared)) = state.and_then(|state| state.held_by(owner)) {
            match ask.cmp(&held.ask) {
                Ordering::Less => return,
                // The grant was lost, or is late.
                Ordering::Equal => {
                    let (row, epoch) = (*row, held.epoch);
                    let grant = Operation::Grant { owner, row, ask, epoch, created: None, idle_ms, is_shared };
                    return self.apply(context, grant);
                }
                Ordering::Greater if is_shared && context.is(Mutant::UpgradeKeepsGrant) => {}
                Ordering::Greater if is_shared => {
                    self.end_reading(context, row, held);
                    self.serve_waiters(context, row, true);
                }
                Ordering::Greater => return self.grant(context, owner, row, wish, false),
            }
        }
        let is_free = self.holders_in_the_way(context, row, owner, &wish).is_empty();
        if is_free && self.waiters.front(row).is_none_or(|front| front.owner == owner) {
            self.waiters.retain(row, |waiter| waiter.owner != owner);
            return self.grant(context, owner, row, wish, false);
        }
        self.enqueue(context, owner, row, wish);
    }

    fn enqueue(&mut self, context: &mut ShardContext<'_>, owner: OwnerId, row: &RowId, wish: Wish) {
        let is_first = self.waiters.is_empty(row);
        let ask = wish.ask;
        let waiter = Waiter { owner, wish, heard: context.now };
        let (max_row, max) = (context.config.max_row_waiters, context.config.max_waiters);
        match self.waiters.push(*row, waiter, max_row, max) {
            Ok(()) if is_first => self.serve_waiters(context, row, false),
            Ok(()) => {}
            Err(reason) => context.outbox.reply(owner, ReplyBody::Refused { row: *row, ask, reason }),
        }
    }

    /// Grants a row that is free for this use, with first values if it has none; or answers that it does not exist.
    /// `was_given_back` as in [`ShardNode::is_for_reading`].
    fn grant(&mut self, context: &mut ShardContext<'_>, owner: OwnerId, row: &RowId, wish: Wish, was_given_back: bool) {
        let is_shared = self.is_for_reading(context, row, wish.access, was_given_back);
        if is_shared {
            self.make_room_for_reader(context, row, owner);
        }
        let Wish { ask, if_missing, idle_ms, .. } = wish;
        let state = self.rows.get(row);
        let is_missing = state.is_none_or(|state| state.values.is_none()) || context.is(Mutant::NumberAnew);
        let created = match if_missing {
            _ if !is_missing => None,
            IfMissing::Grant => None,
            IfMissing::Refuse if context.is(Mutant::MissSkipsChain) => {
                let reason = RefusalReason::NoSuchRow;
                return context.outbox.reply(owner, ReplyBody::Refused { row: *row, ask, reason });
            }
            IfMissing::Refuse => return self.apply(context, Operation::Miss { owner, row: *row, ask }),
            IfMissing::Create(values) => Some(CreatedRow { values, number: None }),
            IfMissing::Allocate(pool) => match self.allocate(context, row, pool) {
                Some(created) => Some(created),
                None => {
                    let reason = RefusalReason::PoolExhausted;
                    return context.outbox.reply(owner, ReplyBody::Refused { row: *row, ask, reason });
                }
            },
        };
        let state = self.rows.get(row);
        // A store that has forgotten its rows in an earlier life does not use their epochs again.
        let unused = (context.me.life.saturating_sub(1) & u64::from(u32::MAX)) << 32;
        let floor = if context.is(Mutant::EpochFloorForgotten) { 0 } else { self.rows.epoch_floor() };
        // The row of a number has epoch 0 until its first grant.
        let known = state.map(|state| state.epoch).filter(|epoch| *epoch > 0).unwrap_or(unused).max(floor);
        let is_same_owner = state.is_some_and(|state| state.held_by(owner).is_some());
        let keeps = context.is(Mutant::EpochKept)
            || (is_same_owner && context.is(Mutant::NewerAskSameEpoch))
            || (is_shared && context.is(Mutant::SharedEpochKept));
        let epoch = if keeps { known.max(1) } else { known.saturating_add(1) };
        self.apply(context, Operation::Grant { owner, row: *row, ask, epoch, created, idle_ms, is_shared });
    }

    /// Grants a row to the first waiters, or recalls it from the holders in their way. `was_given_back` says that one
    /// of these has just given it back.
    pub fn serve_waiters(&mut self, context: &mut ShardContext<'_>, row: &RowId, was_given_back: bool) {
        let (now, timeout_ns) = (context.now, context.config.waiter_timeout_ns);
        self.waiters.retain(row, |waiter| now.since_ns(waiter.heard) <= timeout_ns);
        let recall_at = now.after_ns(context.config.recall_ns.max(1));
        let mut has_granted = false;
        while let Some(Waiter { owner, wish, .. }) = self.waiters.front(row) {
            let holders = self.holders_in_the_way(context, row, owner, &wish);
            if has_granted && !holders.is_empty() || self.log.len() >= context.config.max_log {
                return self.waiters.set_due(row, Some(recall_at));
            }
            if !holders.is_empty() {
                // After the first of them has given the row back, the others have been recalled, too.
                if !(was_given_back && self.waiters.is_timed(row)) {
                    let due = self.recall(context, row, &holders);
                    self.waiters.set_due(row, Some(due));
                }
                return;
            }
            self.waiters.retain(row, |waiter| waiter.owner != owner);
            if self.session(context, owner) > now {
                self.grant(context, owner, row, wish, was_given_back);
                has_granted = true;
            }
        }
    }
}

impl RowRecord {
    /// Whether a grant with this epoch is current, unless the session of its holder has ended.
    fn has_grant(&self, epoch: u64) -> bool {
        self.holders.iter(self.ask, self.epoch).any(|holder| holder.epoch == epoch)
    }

    /// Returns the grant of a switch, and whether it is for reading only.
    fn held_by(&self, owner: OwnerId) -> Option<(RowReader, bool)> {
        let held = self.holders.iter(self.ask, self.epoch).find(|holder| holder.owner == owner)?;
        Some((held, self.holders.is_shared()))
    }
}
