//! Rows that several switches read: the holders in the way of an ask, and their recall.
//!
//! ```text
//!   asks in order:   W1     R2 R3     W4        R5
//!   holders:         1      2, 3      4         5          R: reads, W: writes
//! ```
//!
//! Asks that cannot be granted wait, first come, first served. An ask for reading also waits after one for writing, so
//! a succession of readers does not starve a writer. When a row is free, all asks for reading at the front are granted
//! together. Each holder is recalled as soon as an ask waits, and keeps the row until its packets have run.

use switch::Time;

use super::ShardContext;
use super::head::Wish;
use super::shard::ShardNode;
use crate::holders::{MAX_READERS, RowAccess, RowReader};
use crate::message::{IfMissing, Operation, OwnerId, ReplyBody};
use crate::mutant::Mutant;
use crate::row::RowId;

impl ShardNode {
    /// Returns the holders of a row with live sessions.
    pub fn live_holders(&self, context: &ShardContext<'_>, row: &RowId) -> impl Iterator<Item = RowReader> {
        let state = self.rows.get(row).filter(|_| !context.is(Mutant::GrantedToAnybody));
        let holders = state.map(|state| state.holders.iter(state.ask, state.epoch));
        let now = context.now;
        holders.into_iter().flatten().filter(move |holder| self.session(context, holder.owner) > now)
    }

    /// Whether a row has a holder with a live session.
    pub fn is_held(&self, context: &ShardContext<'_>, row: &RowId) -> bool {
        self.live_holders(context, row).next().is_some()
    }

    /// Returns the holders that have to give a row back before a switch gets it.
    pub fn holders_in_the_way(
        &self,
        context: &ShardContext<'_>,
        row: &RowId,
        owner: OwnerId,
        wish: &Wish,
    ) -> Vec<RowReader> {
        let mut others: Vec<RowReader> = self.live_holders(context, row).filter(|other| other.owner != owner).collect();
        let state = self.rows.get(row);
        let is_shared = state.is_some_and(|state| state.holders.is_shared());
        let has_values = state.is_some_and(|state| state.values.is_some());
        let sets_values = !has_values && matches!(wish.if_missing, IfMissing::Create(_) | IfMissing::Allocate(_));
        if is_shared && wish.access != RowAccess::Write && !sets_values && others.len() < MAX_READERS {
            others.clear();
        }
        if is_shared && context.is(Mutant::ReaderNotRecalled) {
            others.pop();
        }
        others
    }

    /// Whether a grant is for reading only. `was_given_back` says that a switch gave the row back for this ask: it may
    /// need the row again, and both can share it if they only read.
    pub fn is_for_reading(
        &self,
        context: &ShardContext<'_>,
        row: &RowId,
        access: RowAccess,
        was_given_back: bool,
    ) -> bool {
        match access {
            RowAccess::Read => true,
            RowAccess::ReadFirst => was_given_back || self.is_held(context, row),
            RowAccess::Write => false,
        }
    }

    /// Ends the grants of readers whose sessions have ended, if another one would exceed the maximum: readers with live
    /// sessions are never dropped.
    pub fn make_room_for_reader(&mut self, context: &mut ShardContext<'_>, row: &RowId, owner: OwnerId) {
        let readers = self.rows.get(row).map_or(&[][..], |state| state.holders.readers());
        if readers.iter().filter(|reader| reader.owner != owner).count() < MAX_READERS {
            return;
        }
        let is_over = |reader: &&RowReader| self.session(context, reader.owner) <= context.now;
        let ended: Vec<RowReader> = readers.iter().filter(is_over).copied().collect();
        for reader in ended {
            self.end_reading(context, row, reader);
        }
    }

    /// Recalls a row from these holders. Returns the time at which to do so again, or at which the first session ends.
    pub fn recall(&self, context: &mut ShardContext<'_>, row: &RowId, holders: &[RowReader]) -> Time {
        let recall_at = context.now.after_ns(context.config.recall_ns.max(1));
        for RowReader { owner, epoch, .. } in holders {
            context.outbox.reply(*owner, ReplyBody::Recall { row: *row, epoch: *epoch });
        }
        holders.iter().map(|holder| self.session(context, holder.owner)).fold(recall_at, Time::min)
    }

    /// Ends the grant of a reader that no longer uses it: it has asked again, or its session has ended.
    pub fn end_reading(&mut self, context: &mut ShardContext<'_>, row: &RowId, reader: RowReader) {
        let RowReader { owner, epoch, .. } = reader;
        self.apply(context, Operation::Release { owner, row: *row, epoch });
        self.released(context, row, false);
    }
}
