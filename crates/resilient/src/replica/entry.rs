//! A row as a switch knows it.

use switch::Time;

use crate::holders::RowAccess;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    /// The switch waits for a grant. The ask was sent only if `is_sent`; it is not without a lease.
    Asked { is_sent: bool },
    /// The switch may use the row during its lease. If the row is shared, the switch only reads it.
    Owned,
    /// The switch may not use the row any more, but has unacknowledged writes.
    Draining { then_release: bool },
    /// The switch gives the row back.
    Releasing,
}

#[cfg_attr(feature = "simulation", derive(Clone))]
#[derive(Debug)]
pub(super) struct RowEntry {
    pub shard: ShardId,
    pub phase: Phase,
    /// The number of the current ask.
    pub ask: u64,
    /// The action of the store if the row has no values.
    pub if_missing: IfMissing,
    /// Idle time of the row in milliseconds; 0 if it does not age.
    pub idle_ms: u32,
    /// The use that the switch asks for.
    pub access: RowAccess,
    /// Whether the grant is for reading, and other switches may have the row, too.
    pub is_shared: bool,
    /// The epoch of the grant.
    pub epoch: u64,
    /// The newest write.
    pub seq: u64,
    /// The newest acknowledged write.
    pub acked: u64,
    /// The newest write that was sent.
    pub sent: u64,
    /// The write under way whose first send carried outputs; 0 if there is none.
    pub carried: u64,
    /// The values of the newest write.
    pub values: Option<RowValues>,
    /// The acknowledged values, for mutants.
    #[cfg(feature = "simulation")]
    pub acked_values: Option<RowValues>,
    /// Whether the row is kept although it is recalled, until [`super::StateReplica::unpin`].
    pub is_pinned: bool,
    /// Whether another switch waits for the row.
    pub is_recalled: bool,
    /// Whether the row is given back because no packet has used it for its idle time.
    pub is_idle: bool,
    /// Whether the switch asked for the row while it was giving the row back.
    pub is_wanted: bool,
    /// Time of the next retransmission.
    pub due: Option<Time>,
    /// Time of the first send of the newest write that was sent.
    pub sent_at: Time,
    /// Time of the grant, or of the last acknowledgement after it.
    pub acked_at: Time,
}

impl RowEntry {
    /// Creates a row that the switch asks for, with the store's action if the row has no values, and the idle time.
    pub fn asked(shard: ShardId, (if_missing, idle_ms, access): (IfMissing, u32, RowAccess)) -> RowEntry {
        RowEntry {
            shard,
            phase: Phase::Asked { is_sent: false },
            ask: 0,
            if_missing,
            idle_ms,
            access,
            is_shared: false,
            epoch: 0,
            seq: 0,
            acked: 0,
            sent: 0,
            carried: 0,
            values: None,
            #[cfg(feature = "simulation")]
            acked_values: None,
            is_pinned: false,
            is_recalled: false,
            is_idle: false,
            is_wanted: false,
            due: None,
            sent_at: Time::ZERO,
            acked_at: Time::ZERO,
        }
    }

    /// Takes ownership of the row.
    pub fn grant(&mut self, now: Time, epoch: u64, seq: u64, values: Option<RowValues>, is_shared: bool) {
        let RowEntry { shard, ask, idle_ms, access, .. } = *self;
        let asked = RowEntry::asked(shard, (std::mem::take(&mut self.if_missing), idle_ms, access));
        *self = RowEntry { phase: Phase::Owned, ask, epoch, seq, acked: seq, sent: seq, acked_at: now, ..asked };
        #[cfg(feature = "simulation")]
        self.acked_values.clone_from(&values);
        self.values = values;
        self.is_pinned = true;
        self.is_shared = is_shared;
    }

    /// Whether writes are not acknowledged yet.
    pub fn is_pending(&self) -> bool {
        self.seq > self.acked
    }
}
