//! Leases of sessions: renewals, and the end of a lease.

use switch::Time;

use super::entry::Phase;
use super::{ReplicaEvent, StateReplica};
use crate::layout::ShardId;
use crate::message::{RequestBody, StoreMessage};
use crate::mutant::Mutant;
use crate::row::RowId;

impl StateReplica {
    /// Counts the reply to a renewal. If a lease begins, rows that are wanted are asked for.
    pub(super) fn renewed(&mut self, now: Time, shard: ShardId, nonce: u64) {
        let (lease_ns, mutation) = (self.config.lease_ns, self.config.mutation);
        let Some(session) = self.sessions.get_mut(&shard) else { return };
        let begins = session.renewed(now, nonce, lease_ns, mutation);
        self.sessions_due = self.sessions_due.min(session.due).min(session.end);
        if begins {
            for row in self.rows_of(shard, |phase| matches!(phase, Phase::Asked { .. })) {
                self.send_ask(now, &row);
            }
        }
    }

    /// Ends the leases whose time is over. Their rows are lost, and their asks are void: the store may have granted
    /// these rows to others since.
    pub(super) fn expire(&mut self, now: Time) {
        if now < self.sessions_due {
            return;
        }
        let is_over = |(_, session): &(&ShardId, &super::ShardSession)| session.is_live && now >= session.end;
        while let Some(shard) = self.sessions.iter().find(is_over).map(|(shard, _)| *shard) {
            if let Some(session) = self.sessions.get_mut(&shard) {
                session.is_live = false;
            }
            if self.config.mutation.is(Mutant::LeaseRevived) || self.config.mutation.is(Mutant::LeaseIgnored) {
                continue;
            }
            for row in self.rows_of(shard, |phase| matches!(phase, Phase::Owned | Phase::Asked { .. })) {
                self.expire_row(now, &row);
            }
        }
    }

    fn expire_row(&mut self, now: Time, row: &RowId) {
        let Some(entry) = self.rows.get_mut(row) else { return };
        if let Phase::Asked { is_sent } = &mut entry.phase {
            *is_sent = false;
            if self.config.mutation.is(Mutant::AskSurvivesLease) {
                *is_sent = true;
                return;
            }
            entry.due = None;
            return;
        }
        if entry.is_shared && self.config.mutation.is(Mutant::ReaderLeaseFromGrant) {
            return;
        }
        self.lose(now, row, Phase::Draining { then_release: false });
    }

    /// Sends the renewals that are due, and finds the next time at which a lease ends or a renewal is due.
    pub(super) fn renew(&mut self, now: Time) {
        let due = |(_, session): &(&ShardId, &super::ShardSession)| session.due <= now;
        while let Some(shard) = self.sessions.iter().find(due).map(|(shard, _)| *shard) {
            self.send_renewal(now, shard);
        }
        let times =
            |session: &super::ShardSession| session.due.min(if session.is_live { session.end } else { session.due });
        self.sessions_due = self.sessions.values().map(times).min().unwrap_or(Time::from_ns(u64::MAX));
    }

    /// Sends a renewal. Without a reply for a lease, also asks the nodes of the chain for a newer layout.
    pub(super) fn send_renewal(&mut self, now: Time, shard: ShardId) {
        let Some(session) = self.sessions.get_mut(&shard) else { return };
        let nonce = session.send(now, &mut self.next_nonce, self.config.lease_ns);
        session.due = now.after_ns(self.config.retransmit_ns.max(1));
        self.sessions_due = self.sessions_due.min(session.due);
        if now.since_ns(session.heard) > self.config.lease_ns {
            session.heard = now;
            for member in self.layout.chain(shard).iter().flat_map(|chain| &chain.members) {
                let message = StoreMessage::LayoutRequest(self.layout.epoch());
                self.events.push(ReplicaEvent::Send { to: member.node, message });
            }
        }
        self.send(shard, RequestBody::Renew { shard, nonce });
    }

    /// Sends a request to the head of a shard.
    fn send(&mut self, shard: ShardId, body: RequestBody) {
        self.sender().1.send(shard, body);
    }

    fn rows_of(&self, shard: ShardId, is_wanted: impl Fn(Phase) -> bool) -> Vec<RowId> {
        let rows = self.rows.iter().filter(|(_, entry)| entry.shard == shard && is_wanted(entry.phase));
        rows.map(|(row, _)| *row).collect()
    }
}
