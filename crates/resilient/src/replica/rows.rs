//! Rows of a switch: grants, acknowledgements, and the ways in which a row is lost.

use switch::Time;

use super::entry::Phase;
use super::{ReplicaEvent, StateReplica};
use crate::carried::CarriedOutputs;
use crate::layout::NodeId;
use crate::message::{RefusalReason, Request, RequestBody, StoreMessage};
use crate::mutant::Mutant;
use crate::row::{RowId, RowValues};

impl StateReplica {
    /// Asks for a row, if there is a lease. Each call uses a new ask.
    pub(super) fn send_ask(&mut self, now: Time, row: &RowId) {
        let Some(entry) = self.rows.get_mut(row) else { return };
        let survives = self.config.mutation.is(Mutant::AskSurvivesLease);
        if survives && entry.phase == (Phase::Asked { is_sent: true }) {
            return;
        }
        let is_leased = self.sessions.get(&entry.shard).is_some_and(|session| session.is_live && now < session.end);
        entry.phase = Phase::Asked { is_sent: is_leased };
        if is_leased {
            self.next_ask += 1;
            entry.ask = self.next_ask;
            self.retransmit(now, row);
        }
    }

    pub(super) fn granted(
        &mut self,
        now: Time,
        from: NodeId,
        row: &RowId,
        ask: u64,
        (epoch, seq, values, is_shared): (u64, u64, &Option<RowValues>, bool),
    ) {
        let mutation = self.config.mutation;
        let Some(entry) = self.rows.get_mut(row) else { return self.release_unowned(from, row, epoch) };
        let is_current = entry.ask == ask || mutation.is(Mutant::AskIgnored);
        let is_leased = self.sessions.get(&entry.shard).is_some_and(|session| session.is_live && now < session.end);
        if entry.phase != (Phase::Asked { is_sent: true }) || !is_current || !is_leased {
            return;
        }
        let seq = if mutation.is(Mutant::SeqRestarts) { 0 } else { seq };
        entry.grant(now, epoch, seq, values.clone(), is_shared);
        self.asks -= 1;
        self.granted += 1;
        self.events.push(ReplicaEvent::Granted { row: *row, values: values.clone(), is_shared });
    }

    /// Gives back a row that the switch neither has nor asks for: it lost the row, or the grant arrived too late.
    pub(super) fn release_unowned(&mut self, to: NodeId, row: &RowId, epoch: u64) {
        let body = RequestBody::Release { row: *row, epoch, is_idle: false };
        let request = Request { layout: self.layout.epoch(), owner: self.owner, body };
        let to = self.layout.head(self.layout.shard_of(row)).map_or(to, |head| head.node);
        self.events.push(ReplicaEvent::Send { to, message: StoreMessage::Request(request) });
    }

    pub(super) fn refused(&mut self, row: &RowId, ask: u64, reason: RefusalReason) {
        let is_current = |phase: Phase, current: u64| phase == (Phase::Asked { is_sent: true }) && current == ask;
        if self.rows.get(row).is_some_and(|entry| is_current(entry.phase, entry.ask)) {
            self.rows.remove(row);
            self.asks -= 1;
            self.events.push(ReplicaEvent::Refused { row: *row, reason });
        }
    }

    /// Handles a recall: another switch waits for a row. A row that is asked for is not released: the grant of this
    /// epoch may be under way, and would be accepted.
    pub(super) fn recalled(&mut self, now: Time, from: NodeId, row: &RowId, epoch: u64) {
        let mutation = self.config.mutation;
        if mutation.is(Mutant::RecallIgnored) {
            return;
        }
        let Some(entry) = self.rows.get_mut(row) else { return self.release_unowned(from, row, epoch) };
        if mutation.is(Mutant::ReleasedWhileAsking) && matches!(entry.phase, Phase::Asked { .. }) {
            return self.release_unowned(from, row, epoch);
        }
        if entry.phase == Phase::Owned && entry.epoch == epoch {
            if entry.is_shared && mutation.is(Mutant::ReadAfterRecall) {
                return self.release_unowned(from, row, epoch);
            }
            self.release(now, row);
        }
    }

    /// Gives a recalled row back, once it is no longer pinned and its writes are acknowledged.
    pub(super) fn give_back(&mut self, now: Time, row: &RowId) {
        let is_free = |entry: &&super::RowEntry| entry.phase == Phase::Owned && entry.is_recalled && !entry.is_pinned;
        if self.rows.get(row).filter(is_free).is_some() {
            self.lose(now, row, Phase::Draining { then_release: true });
        }
    }

    /// Ends the use of a row.
    pub(super) fn lose(&mut self, now: Time, row: &RowId, phase: Phase) {
        let Some(entry) = self.rows.get_mut(row) else { return };
        entry.phase = phase;
        self.granted -= 1;
        let pending = entry.is_pending().then_some(entry.seq);
        self.events.push(ReplicaEvent::Lost { row: *row, last_acknowledged: entry.acked, pending });
        self.settle(now, row);
    }

    /// Completes the loss of a row, once it has no unacknowledged writes.
    fn settle(&mut self, now: Time, row: &RowId) {
        let Some(entry) = self.rows.get_mut(row) else { return };
        let Phase::Draining { then_release } = entry.phase else { return };
        if entry.is_pending() && !(then_release && self.config.mutation.is(Mutant::ReleasedBeforeAck)) {
            return;
        }
        if then_release {
            entry.phase = Phase::Releasing;
            self.retransmit(now, row);
        } else {
            self.forget(now, row);
        }
    }

    /// Forgets a row, or asks for it again.
    pub(super) fn forget(&mut self, now: Time, row: &RowId) {
        let Some(entry) = self.rows.get_mut(row) else { return };
        if !entry.is_wanted {
            self.rows.remove(row);
            return;
        }
        let wish = (std::mem::take(&mut entry.if_missing), entry.idle_ms, entry.access);
        *entry = super::RowEntry::asked(entry.shard, wish);
        self.asks += 1;
        self.send_ask(now, row);
    }

    pub(super) fn acked(&mut self, now: Time, row: &RowId, (epoch, seq): (u64, u64), outputs: Option<&CarriedOutputs>) {
        let mutation = self.config.mutation;
        let (rows, mut sender) = self.sender();
        let Some(entry) = rows.get_mut(row) else { return };
        let is_current = entry.epoch == epoch;
        let is_writer = matches!(entry.phase, Phase::Owned | Phase::Draining { .. } | Phase::Releasing);
        let seq = if mutation.is(Mutant::AckOfNewer) { entry.seq } else { seq };
        let is_duplicate = mutation.is(Mutant::DuplicateReleases) && seq == entry.acked;
        if !is_current || !is_writer || seq > entry.seq || (seq <= entry.acked && !is_duplicate) {
            return self.return_uncounted(row, epoch, seq, outputs);
        }
        entry.acked = seq;
        entry.acked_at = now;
        sender.settle_carried((row, entry), seq, outputs);
        sender.events.push(ReplicaEvent::Acknowledged { row: *row, seq });
        if seq < entry.sent {
            return;
        }
        sender.latency.record(now.since_ns(entry.sent_at));
        entry.due = None;
        if entry.is_pending() {
            return sender.send_write(now, (row, entry), None);
        }
        #[cfg(feature = "simulation")]
        {
            entry.acked_values = entry.values.clone();
        }
        if entry.phase != Phase::Owned {
            self.settle(now, row);
        }
    }

    /// Loses a row whose epoch has ended, with the writes that were not applied.
    pub(super) fn stale(&mut self, now: Time, row: &RowId, epoch: u64) {
        let Some(entry) = self.rows.get_mut(row) else { return };
        let is_writer = matches!(entry.phase, Phase::Owned | Phase::Draining { .. });
        if !is_writer || entry.epoch != epoch || self.config.mutation.is(Mutant::StaleIgnored) {
            return;
        }
        let pending = entry.is_pending().then_some(entry.seq);
        self.carried.lost += u64::from(entry.carried > 0);
        if entry.phase == Phase::Owned {
            self.granted -= 1;
            self.events.push(ReplicaEvent::Lost { row: *row, last_acknowledged: entry.acked, pending });
        }
        if let Some(seq) = pending {
            self.events.push(ReplicaEvent::Abandoned { row: *row, seq });
        }
        self.forget(now, row);
    }

    /// Sends again what a row waits for.
    pub(super) fn retransmit(&mut self, now: Time, row: &RowId) {
        let (rows, mut sender) = self.sender();
        let Some(entry) = rows.get_mut(row) else { return };
        let body = match entry.phase {
            Phase::Asked { is_sent: true } => {
                let (if_missing, idle_ms, access) = (entry.if_missing.clone(), entry.idle_ms, entry.access);
                RequestBody::Acquire { row: *row, ask: entry.ask, if_missing, idle_ms, access }
            }
            Phase::Releasing => RequestBody::Release { row: *row, epoch: entry.epoch, is_idle: entry.is_idle },
            Phase::Owned | Phase::Draining { .. } if entry.is_pending() => {
                return sender.send_write(now, (row, entry), None);
            }
            _ => return,
        };
        sender.start_timer(now, (row, entry));
        sender.send(entry.shard, body);
    }
}
