//! Sends requests about a row that has been found.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::SeedableRandomState;
use switch::Time;

use super::entry::RowEntry;
use super::{CarriedCounts, ReplicaConfig, ReplicaEvent, StateReplica};
use crate::carried::CarriedOutputs;
use crate::latency::LatencyHistogram;
use crate::layout::{ShardId, StoreLayout};
use crate::message::{OwnerId, Request, RequestBody, StoreMessage};
#[cfg(feature = "simulation")]
use crate::mutant::Mutant;
use crate::row::RowId;

/// The parts of a replica, other than its rows, that are needed to send requests.
pub(super) struct RequestSender<'r> {
    pub config: &'r ReplicaConfig,
    layout: &'r StoreLayout,
    owner: OwnerId,
    timers: &'r mut VecDeque<(Time, RowId)>,
    pub events: &'r mut Vec<ReplicaEvent>,
    pub latency: &'r mut LatencyHistogram,
    pub carried: &'r mut CarriedCounts,
}

impl StateReplica {
    /// Returns the rows and what sends requests about them, so that a write looks its row up once.
    pub(super) fn sender(&mut self) -> (&mut HashMap<RowId, RowEntry, SeedableRandomState>, RequestSender<'_>) {
        let StateReplica { config, layout, owner, rows, timers, events, latency, carried, .. } = self;
        (rows, RequestSender { config, layout, owner: *owner, timers, events, latency, carried })
    }
}

impl RequestSender<'_> {
    /// Sends the newest values of a row, and outputs with their first send.
    pub fn send_write(&mut self, now: Time, (row, entry): (&RowId, &mut RowEntry), outputs: Option<CarriedOutputs>) {
        #[cfg(feature = "simulation")]
        if entry.sent == entry.seq && entry.due.is_some() && self.config.mutation.is(Mutant::WriteNotRetransmitted) {
            return;
        }
        #[allow(unused_mut)]
        let mut values = entry.values.clone();
        #[cfg(feature = "simulation")]
        if entry.due.is_some() && self.config.mutation.is(Mutant::RetransmitsOldValues) {
            values = entry.acked_values.clone();
        }
        if entry.sent < entry.seq {
            entry.sent_at = now;
        }
        entry.sent = entry.seq;
        if outputs.is_some() {
            entry.carried = entry.seq;
            self.carried.sent += 1;
        }
        self.start_timer(now, (row, entry));
        self.send(entry.shard, RequestBody::Write { row: *row, epoch: entry.epoch, seq: entry.seq, values, outputs });
    }

    /// Lets outputs leave that an acknowledgement of the current epoch returns, if it is the first one that covers
    /// their write. Without them, they are lost.
    pub fn settle_carried(
        &mut self,
        (row, entry): (&RowId, &mut RowEntry),
        seq: u64,
        outputs: Option<&CarriedOutputs>,
    ) {
        if entry.carried == 0 || entry.carried > seq {
            return;
        }
        let carried = std::mem::take(&mut entry.carried);
        match outputs.filter(|_| carried == seq) {
            Some(outputs) => {
                self.carried.returned += 1;
                self.events.push(ReplicaEvent::OutputsReturned { row: *row, seq, outputs: outputs.clone() });
            }
            None => self.carried.lost += 1,
        }
    }

    /// Starts the timer of a row's request.
    pub fn start_timer(&mut self, now: Time, (row, entry): (&RowId, &mut RowEntry)) {
        let due = now.after_ns(self.config.retransmit_ns.max(1));
        entry.due = Some(due);
        self.timers.push_back((due, *row));
    }

    /// Sends a request to the head of a shard.
    pub fn send(&mut self, shard: ShardId, body: RequestBody) {
        if let Some(head) = self.layout.head(shard) {
            let request = Request { layout: self.layout.epoch(), owner: self.owner, body };
            self.events.push(ReplicaEvent::Send { to: head.node, message: StoreMessage::Request(request) });
        }
    }
}
