//! The head of a chain: it decides who owns a row.

use super::ShardContext;
use super::shard::ShardNode;
use super::waiters::Waiter;
use crate::message::{CreatedRow, IfMissing, Operation, OwnerId, RefusalReason, ReplyBody, RequestBody};
use crate::mutant::Mutant;
use crate::row::RowId;

/// An ask, and what to do if the row has no values.
type Wish = (u64, IfMissing);

impl ShardNode {
    /// Turns a request into an operation. A node that is no head, or has not everything, drops it.
    pub fn request(&mut self, context: &mut ShardContext<'_>, owner: OwnerId, body: RequestBody) {
        let serves = self.is_active || context.is(Mutant::IncompleteServes) || context.is(Mutant::InactiveServes);
        let is_complete = self.is_complete() || context.is(Mutant::IncompleteServes);
        if !self.is_head || !serves || !is_complete || self.log.len() >= context.config.max_log {
            return;
        }
        match body {
            RequestBody::Renew { nonce, .. } => self.apply(context, Operation::Renew { owner, nonce }),
            RequestBody::Acquire { row, ask, if_missing } => self.acquire(context, owner, &row, (ask, if_missing)),
            RequestBody::Write { row, epoch, seq, values } => {
                self.apply(context, Operation::Write { owner, row, epoch, seq, values });
            }
            RequestBody::Release { row, epoch } => {
                self.apply(context, Operation::Release { owner, row, epoch });
                if !self.waiters.is_empty(&row) {
                    self.serve_waiters(context, &row);
                }
            }
        }
    }

    fn acquire(&mut self, context: &mut ShardContext<'_>, owner: OwnerId, row: &RowId, wish: Wish) {
        let ask = wish.0;
        if self.session(context, owner) <= context.now {
            return;
        }
        let state = self.rows.get(row);
        if state.is_none() && self.rows.len() >= context.config.max_rows {
            let reason = RefusalReason::StoreFull;
            return context.outbox.reply(owner, ReplyBody::Refused { row: *row, ask, reason });
        }
        if let Some(state) = state.filter(|state| state.owner == Some(owner)) {
            let (known, epoch) = (state.ask, state.epoch);
            return match ask.cmp(&known) {
                std::cmp::Ordering::Less => {}
                // The grant was lost, or is late.
                std::cmp::Ordering::Equal => {
                    self.apply(context, Operation::Grant { owner, row: *row, ask, epoch, created: None });
                }
                std::cmp::Ordering::Greater => self.grant(context, owner, row, wish),
            };
        }
        let is_free = !self.is_owned(context, row);
        if is_free && self.waiters.front(row).is_none_or(|front| front.owner == owner) {
            self.waiters.retain(row, |waiter| waiter.owner != owner);
            return self.grant(context, owner, row, wish);
        }
        self.enqueue(context, owner, row, wish);
    }

    fn enqueue(&mut self, context: &mut ShardContext<'_>, owner: OwnerId, row: &RowId, (ask, if_missing): Wish) {
        let is_first = self.waiters.is_empty(row);
        let waiter = Waiter { owner, ask, if_missing, heard: context.now };
        let (max_row, max) = (context.config.max_row_waiters, context.config.max_waiters);
        match self.waiters.push(*row, waiter, max_row, max) {
            Ok(()) if is_first => self.serve_waiters(context, row),
            Ok(()) => {}
            Err(reason) => context.outbox.reply(owner, ReplyBody::Refused { row: *row, ask, reason }),
        }
    }

    /// Whether a row has an owner whose session goes on.
    pub fn is_owned(&self, context: &ShardContext<'_>, row: &RowId) -> bool {
        let owner = self.rows.get(row).and_then(|state| state.owner);
        owner.is_some_and(|owner| self.session(context, owner) > context.now) && !context.is(Mutant::GrantedToAnybody)
    }

    /// Grants a row that is free or the switch's own, with first values if it has none; or says that there is none.
    fn grant(&mut self, context: &mut ShardContext<'_>, owner: OwnerId, row: &RowId, (ask, if_missing): Wish) {
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
            IfMissing::Allocate(pool) => match self.allocate(context, pool) {
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
        let known = state.map_or(unused, |state| state.epoch);
        let is_same_owner = state.is_some_and(|state| state.owner == Some(owner));
        let keeps = context.is(Mutant::EpochKept) || (is_same_owner && context.is(Mutant::NewerAskSameEpoch));
        let epoch = if keeps { known.max(1) } else { known.saturating_add(1) };
        self.apply(context, Operation::Grant { owner, row: *row, ask, epoch, created });
    }

    /// Grants a free row to the first waiter, or recalls it from its owner.
    pub fn serve_waiters(&mut self, context: &mut ShardContext<'_>, row: &RowId) {
        let (now, timeout_ns) = (context.now, context.config.waiter_timeout_ns);
        self.waiters.retain(row, |waiter| now.since_ns(waiter.heard) <= timeout_ns);
        let Some(first) = self.waiters.front(row) else { return };
        let recall_at = now.after_ns(context.config.recall_ns.max(1));
        if self.is_owned(context, row) {
            let Some(state) = self.rows.get(row) else { return };
            let (Some(owner), epoch) = (state.owner, state.epoch) else { return };
            context.outbox.reply(owner, ReplyBody::Recall { row: *row, epoch });
            let session_end = self.session(context, owner);
            return self.waiters.set_due(row, Some(recall_at.min(session_end)));
        }
        if self.session(context, first.owner) <= now {
            self.waiters.retain(row, |waiter| waiter.owner != first.owner);
            return self.waiters.set_due(row, Some(now));
        }
        if self.log.len() < context.config.max_log {
            self.waiters.retain(row, |waiter| waiter.owner != first.owner);
            self.grant(context, first.owner, row, (first.ask, first.if_missing));
        }
        self.waiters.set_due(row, Some(recall_at));
    }
}
