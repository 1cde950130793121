//! Hashes all state that determines a replica's behaviour, so that a model checker recognizes equal states.

use std::hash::{Hash, Hasher};

use switch::Time;

use super::{RowEntry, StateReplica};
use crate::row::RowId;

impl Hash for StateReplica {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        // A new field must be hashed, or listed here with the reason. `sessions_due` only saves searches.
        let StateReplica {
            config: _,
            layout,
            owner,
            rows,
            asks,
            next_ask,
            sessions,
            next_nonce,
            sessions_due: _,
            timers,
            events,
            // Reports.
            granted: _,
            retransmissions: _,
            latency: _,
            carried: _,
        } = self;
        assert!(events.is_empty(), "the effects belong to the state, too");
        (layout, owner, asks, next_ask, sessions, next_nonce).hash(hasher);
        let mut sorted: Vec<_> = rows.iter().collect();
        sorted.sort_unstable_by_key(|(row, _)| **row);
        sorted.hash(hasher);
        let counts = |(due, row): &&(Time, RowId)| rows.get(row).is_some_and(|entry| entry.due == Some(*due));
        timers.iter().filter(counts).for_each(|timer| timer.hash(hasher));
    }
}

impl Hash for RowEntry {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let RowEntry {
            shard,
            phase,
            ask,
            if_missing,
            idle_ms,
            access,
            is_shared,
            epoch,
            seq,
            acked,
            sent,
            carried,
            values,
            acked_values,
            is_pinned,
            is_recalled,
            is_idle,
            is_wanted,
            due,
            // Reports.
            sent_at: _,
            acked_at: _,
        } = self;
        (shard, phase, ask, if_missing, idle_ms, epoch, seq, acked, sent, values, acked_values).hash(hasher);
        (is_pinned, is_recalled, is_idle, is_wanted, due, carried).hash(hasher);
        (access, is_shared).hash(hasher);
    }
}
