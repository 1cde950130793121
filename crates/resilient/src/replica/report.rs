//! Reports the rows and counters of a replica, for status output and metrics.

use switch::Time;

use super::entry::Phase;
use super::{CarriedCounts, StateReplica};
use crate::latency::LatencyHistogram;
use crate::layout::ShardId;
use crate::row::{RowId, RowValues};

/// Progress of a row at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowProgress {
    /// The switch waits for a grant.
    Asked,
    /// The switch may use the row.
    Owned,
    /// The switch may read the row, as may others.
    Shared,
    /// The switch gives the row back, or has lost it and waits for the acknowledgement of its writes.
    Releasing,
}

/// A row as its switch sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowReport {
    /// The progress.
    pub progress: RowProgress,
    /// The epoch of the grant; 0 without one.
    pub epoch: u64,
    /// The newest values; `None` if the row has none, or is asked for.
    pub values: Option<RowValues>,
    /// Whether writes are not acknowledged.
    pub is_pending: bool,
    /// Time of the grant, or of the last acknowledgement after it. `None` while the row is asked for.
    pub acknowledged_at: Option<Time>,
}

/// Counts of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaCounts {
    /// Rows that may be used.
    pub granted: usize,
    /// Rows that are asked for.
    pub asked: usize,
    /// Rows that are given back, or were lost with writes under way.
    pub releasing: usize,
    /// Retransmitted requests about rows.
    pub retransmissions: u64,
    /// Times from the first send of a write to its acknowledgement.
    pub latency: LatencyHistogram,
    /// Writes that carried outputs.
    pub carried: CarriedCounts,
}

impl StateReplica {
    /// Whether no row is asked for or given back.
    pub fn is_settled(&self) -> bool {
        self.rows.len() == self.granted
    }

    /// Returns the state of a row; `None` if it is neither owned, asked for, nor being given back.
    pub fn row_report(&self, row: &RowId) -> Option<RowReport> {
        let entry = self.rows.get(row)?;
        let progress = match entry.phase {
            Phase::Asked { .. } => RowProgress::Asked,
            Phase::Owned if entry.is_shared => RowProgress::Shared,
            Phase::Owned => RowProgress::Owned,
            Phase::Draining { .. } | Phase::Releasing => RowProgress::Releasing,
        };
        Some(RowReport {
            progress,
            epoch: entry.epoch,
            values: entry.values.clone(),
            is_pending: entry.is_pending(),
            acknowledged_at: (progress != RowProgress::Asked).then_some(entry.acked_at),
        })
    }

    /// Returns the counts.
    pub fn counts(&self) -> ReplicaCounts {
        ReplicaCounts {
            granted: self.granted,
            asked: self.asks,
            releasing: self.rows.len() - self.granted - self.asks,
            retransmissions: self.retransmissions,
            latency: self.latency.clone(),
            carried: self.carried,
        }
    }

    /// Returns the remaining lease at each shard that has a session, in nanoseconds; 0 without a lease.
    pub fn leases_left_ns(&self, now: Time) -> impl Iterator<Item = (ShardId, u64)> + '_ {
        let left = move |shard| self.lease_end(now, shard).map_or(0, |end| end.since_ns(now));
        self.sessions.keys().map(move |shard| (*shard, left(*shard)))
    }
}
