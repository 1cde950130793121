//! Rows that a switch shares with others for reading, and requests to write one of them.

use switch::Time;

use super::entry::{Phase, RowEntry};
use super::{ReplicaEvent, StateReplica};
use crate::holders::RowAccess;
use crate::mutant::Mutant;
use crate::row::RowId;

impl StateReplica {
    /// Whether the row may be read now. [`StateReplica::is_owned`] returns whether it may also be written.
    pub fn is_readable(&self, now: Time, row: &RowId) -> bool {
        let Some(entry) = self.rows.get(row) else { return false };
        if entry.is_shared && self.config.mutation.is(Mutant::ReaderLeaseFromGrant) {
            return entry.phase == Phase::Owned && now.since_ns(entry.acked_at) < self.config.lease_ns;
        }
        let is_leased = self.lease_end(now, entry.shard).is_some() || self.config.mutation.is(Mutant::LeaseIgnored);
        entry.phase == Phase::Owned && is_leased
    }

    /// Loses a shared row whose separate lease has ended, for a mutant.
    pub(super) fn end_late_reading(&mut self, now: Time, row: &RowId) {
        let is_late = self.config.mutation.is(Mutant::ReaderLeaseFromGrant);
        let is_shared = |entry: &RowEntry| entry.phase == Phase::Owned && entry.is_shared;
        if is_late && self.rows.get(row).is_some_and(is_shared) && !self.is_readable(now, row) {
            self.lose(now, row, Phase::Draining { then_release: false });
        }
    }

    /// Turns the ask for a row into one for writing. A shared row is given up: the new ask shows it to the store, and
    /// packets wait until the other readers have given it back.
    pub(super) fn strengthen(&mut self, now: Time, row: &RowId) {
        let Some(entry) = self.rows.get_mut(row) else { return };
        match entry.phase {
            Phase::Owned if entry.is_shared => {
                let last_acknowledged = entry.acked;
                let wish = (std::mem::take(&mut entry.if_missing), entry.idle_ms, RowAccess::Write);
                *entry = RowEntry::asked(entry.shard, wish);
                self.granted -= 1;
                self.asks += 1;
                self.events.push(ReplicaEvent::Lost { row: *row, last_acknowledged, pending: None });
            }
            Phase::Asked { .. } if entry.access != RowAccess::Write => entry.access = RowAccess::Write,
            _ => return,
        }
        self.send_ask(now, row);
    }
}
