//! Counts the events of a switch with resilient state, for metrics and for its summary.

use resilient::{RefusalReason, ReplicaCounts, ReplicaEvent, RequestCounts, RowId};
use switch::{DropReason, RowSwitch, Time};

use crate::ResilientSwitch;
use crate::piggyback::PiggybackCounts;
use crate::row_format::{RowFormat, group_of};

/// Asks that the stores, or the switch itself, refused, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusalCounts {
    /// There is no such row, and the packet creates none.
    pub no_such_row: u64,
    /// All numbers of the pool are taken.
    pub pool_exhausted: u64,
    /// The stores have their maximum number of rows.
    pub store_full: u64,
    /// The switch owns or asks for its maximum number of rows.
    pub switch_full: u64,
    /// Too many switches wait for the row or its shard.
    pub contended: u64,
}

/// Events so far.
#[derive(Debug, Default)]
pub(crate) struct EventCounts {
    requests: RequestCounts,
    refusals: RefusalCounts,
    /// Number of rows granted to the switch, by the place of the group.
    granted: Vec<u64>,
}

/// Counts and gauges of a switch with resilient state.
#[derive(Clone, Debug)]
pub struct ResilientCounts {
    /// Names of the groups, with the number of their rows that are granted to the switch.
    pub groups: Vec<(String, u64)>,
    /// Counts of the protocol's machine.
    pub replica: ReplicaCounts,
    /// Requests.
    pub requests: RequestCounts,
    /// Refusals.
    pub refusals: RefusalCounts,
    /// Outputs that wait for acknowledgements.
    pub held: usize,
    /// Memory that they take, in bytes.
    pub held_bytes: usize,
    /// Frames that travelled with writes.
    pub piggyback: PiggybackCounts,
    /// Packets that wait for rows.
    pub parked: usize,
    /// Remaining lease at each shard, in nanoseconds; 0 without a lease.
    pub leases_left_ns: Vec<(u16, u64)>,
    /// The epoch of the layout; 0 until there is one with stores.
    pub layout_epoch: u64,
}

impl EventCounts {
    /// Counts an event.
    pub fn note(&mut self, event: &ReplicaEvent, formats: &[RowFormat]) {
        match event {
            ReplicaEvent::Granted { row, .. } => {
                if let Some(granted) = self.granted(row, formats) {
                    *granted += 1;
                }
            }
            ReplicaEvent::Lost { row, .. } => {
                if let Some(granted) = self.granted(row, formats) {
                    *granted = granted.saturating_sub(1);
                }
            }
            ReplicaEvent::Refused { reason, .. } => self.refusals.count(*reason),
            ReplicaEvent::Send { message, .. } => self.requests.note(message),
            ReplicaEvent::Recalled { .. }
            | ReplicaEvent::OutputsReturned { .. }
            | ReplicaEvent::Acknowledged { .. }
            | ReplicaEvent::Abandoned { .. } => {}
        }
    }

    fn granted(&mut self, row: &RowId, formats: &[RowFormat]) -> Option<&mut u64> {
        self.granted.resize(formats.len(), 0);
        self.granted.get_mut(group_of(formats, row)?)
    }
}

impl RefusalCounts {
    fn count(&mut self, reason: RefusalReason) {
        *match reason {
            RefusalReason::NoSuchRow => &mut self.no_such_row,
            RefusalReason::PoolExhausted => &mut self.pool_exhausted,
            RefusalReason::StoreFull => &mut self.store_full,
            RefusalReason::ReplicaFull | RefusalReason::TooManyAsks => &mut self.switch_full,
            RefusalReason::RowContended | RefusalReason::ShardContended => &mut self.contended,
        } += 1;
    }
}

/// Returns the reason for which packets are dropped if their row is refused.
pub(crate) fn drop_reason(refusal: RefusalReason) -> DropReason {
    match refusal {
        RefusalReason::PoolExhausted => DropReason::RowPoolExhausted,
        RefusalReason::StoreFull => DropReason::RowStoreFull,
        RefusalReason::ReplicaFull | RefusalReason::TooManyAsks => DropReason::RowSwitchFull,
        RefusalReason::RowContended | RefusalReason::ShardContended | RefusalReason::NoSuchRow => {
            DropReason::RowUnavailable
        }
    }
}

impl<S: RowSwitch> ResilientSwitch<S> {
    /// Returns the counts.
    pub fn counts(&self, now: Time) -> ResilientCounts {
        let leases = self.replica.leases_left_ns(now);
        ResilientCounts {
            groups: self
                .groups
                .iter()
                .enumerate()
                .map(|(at, group)| (group.name.clone(), self.granted_in(at)))
                .collect(),
            replica: self.replica.counts(),
            requests: self.counts.requests,
            refusals: self.counts.refusals,
            held: self.held.len(),
            held_bytes: self.held.bytes(),
            piggyback: self.carried.counts,
            parked: self.inner.all_parked(),
            leases_left_ns: leases.map(|(shard, left_ns)| (shard.0, left_ns)).collect(),
            layout_epoch: self.layout_epoch(),
        }
    }

    /// Returns the number of rows of a group that are granted to the switch.
    pub(crate) fn granted_in(&self, group: usize) -> u64 {
        self.counts.granted.get(group).copied().unwrap_or(0)
    }

    /// Drops packets and outputs that wait for rows or acknowledgements: the switch stops.
    pub(crate) fn stop_waiting(&mut self) {
        for output in self.held.take_all() {
            self.drop_output(output, DropReason::RowWaitEnded);
        }
        let carried = self.carried.take_all();
        self.drop_carried(carried, DropReason::RowWaitEnded);
        self.inner.drop_all_parked(DropReason::RowWaitEnded);
    }
}
