//! A row as a switch knows it.

use switch::Time;

use crate::layout::ShardId;
use crate::message::IfMissing;
use crate::row::RowValues;

/// State of a row at a switch.
///
/// ```text
///   Asked ── Granted ──> Owned ── recalled ──> Draining ── all acknowledged ──> Releasing ── Released ──> (none)
///                          └───── lease ended ──> Draining ── all acknowledged, or stale ──> (none)
/// ```
///
/// A row that the switch wants again returns to `Asked` instead of being forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The switch waits for a grant. The ask was sent only if `is_sent`; it is not without a lease.
    Asked { is_sent: bool },
    /// The switch may use the row during its lease.
    Owned,
    /// The switch may not use the row any more, but has unacknowledged writes.
    Draining { then_release: bool },
    /// The switch gives the row back.
    Releasing,
}

#[derive(Debug)]
pub(super) struct RowEntry {
    pub shard: ShardId,
    pub phase: Phase,
    /// The number of the current ask.
    pub ask: u64,
    /// What the store does if the row has no values.
    pub if_missing: IfMissing,
    /// The epoch of the grant.
    pub epoch: u64,
    /// The newest write.
    pub seq: u64,
    /// The newest acknowledged write.
    pub acked: u64,
    /// The newest write that was sent.
    pub sent: u64,
    /// The values of the newest write.
    pub values: Option<RowValues>,
    /// The acknowledged values, for mutants.
    #[cfg(feature = "simulation")]
    pub acked_values: Option<RowValues>,
    /// Whether packets that waited for the row have not run yet.
    pub has_parked: bool,
    /// Whether another switch waits for the row.
    pub is_recalled: bool,
    /// Whether the switch asked for the row while it was giving the row back.
    pub is_wanted: bool,
    /// Time of the next retransmission.
    pub due: Option<Time>,
}

impl RowEntry {
    pub fn asked(shard: ShardId, if_missing: IfMissing) -> RowEntry {
        RowEntry {
            shard,
            phase: Phase::Asked { is_sent: false },
            ask: 0,
            if_missing,
            epoch: 0,
            seq: 0,
            acked: 0,
            sent: 0,
            values: None,
            #[cfg(feature = "simulation")]
            acked_values: None,
            has_parked: false,
            is_recalled: false,
            is_wanted: false,
            due: None,
        }
    }

    /// Takes the row into possession.
    pub fn grant(&mut self, epoch: u64, seq: u64, values: Option<RowValues>) {
        let RowEntry { shard, ask, .. } = *self;
        let asked = RowEntry::asked(shard, std::mem::take(&mut self.if_missing));
        *self = RowEntry { phase: Phase::Owned, ask, epoch, seq, acked: seq, sent: seq, ..asked };
        #[cfg(feature = "simulation")]
        self.acked_values.clone_from(&values);
        self.values = values;
        self.has_parked = true;
    }

    /// Whether writes are not acknowledged yet.
    pub fn is_pending(&self) -> bool {
        self.seq > self.acked
    }
}
