//! Replicates rows of switch state, so that another switch continues where a failed one stopped.
//!
//! ```text
//!   switch ── accesses ──> StateReplica ── requests ──> head ──> middle ──> tail ── replies ──> StateReplica
//!                                                        └──── StoreNode: rows, sessions, waiters ────┘
//! ```
//!
//! A **row** ([`RowId`]) is the unit of ownership. One switch owns it and reads and writes it, or several share it and
//! only read it.
//!
//! The central types are [`StateReplica`], which runs beside a switch, and [`StoreNode`], a node of a chain. A
//! [`LayoutOperator`] removes dead nodes from chains and adds others. The protocol is that of Kim et al., *RedPlane*
//! (SIGCOMM 2021), with these differences: a switch renews one session per shard instead of each row; a row is fenced
//! by an epoch; an owner gives a row back when another switch asks for it; chains change while they run.
//!
//! **Invariants.**
//! - A switch uses a row only during its lease, which it counts from the first send of the renewal. The store counts
//!   from the renewal's arrival, and waits longer by the drift of both clocks ([`expiry_ns`]).
//! - An ask is valid only during the lease in which it was sent. A grant for another ask is not accepted: the
//!   store may have granted the row again in between.
//! - Each grant has a new epoch of the row. A write counts only in its epoch, and only with a higher sequence number.
//! - A row is granted for writing when every other switch has given it back, or its session has ended.
//! - A row that ages is removed only after its idle time without use, together with its partner. Epochs never return.
//! - Every answer has passed all of the chain, as operations in the order of the head. So a node that was
//!   removed from the chain does no harm, even if it does not know of its removal.
//! - Outputs that travel with a write ([`CarriedOutputs`]) leave only with the first acknowledgement that covers it, in
//!   its epoch. Stores neither keep nor read them.
//! - A later snapshot of a row replaces an earlier one atomically ([`SnapshotReplica`]).
//! - A message counts only if a member with the cluster's key sent it to this receiver, and only once
//!   ([`DatagramSealer`]).
//! - A node that lost its memory is another [`ChainMember`], and has to copy the rows.
//!
//! The crate is sans-IO: time and random numbers are arguments, messages and effects are values. It knows neither
//! switches nor sockets. The feature `simulation` adds a simulator of complete systems with faults, and the [`Mutant`]s
//! that it must find.

#![forbid(unsafe_code)]

pub mod carried;
pub mod history;
pub mod holders;
pub mod latency;
pub mod layout;
pub mod message;
mod mutant;
pub mod operator;
pub mod replica;
mod request_counts;
mod row;
pub mod sealed;
#[cfg(feature = "simulation")]
pub mod simulation;
pub mod snapshots;
pub mod store;
mod sweep;
mod timer_queue;
pub mod wire_form;

pub use carried::{CarriedOutputs, HoldMode};
pub use holders::{RowAccess, RowHolders, RowReader};
pub use latency::LatencyHistogram;
pub use layout::{ChainMember, NodeId, OperatorId, ShardChain, ShardId, StoreLayout, SwitchId};
pub use message::{OwnerId, Peer, RefusalReason, StoreMessage};
pub use mutant::{Mutant, Mutation};
pub use operator::{LayoutOperator, LayoutRecord, OperatorConfig, OperatorEvent};
pub use replica::{
    CarriedCounts, ReplicaConfig, ReplicaCounts, ReplicaEvent, RowProgress, RowReport, StateReplica, WriteProgress,
};
pub use request_counts::RequestCounts;
pub use row::{MAX_KEY_BYTES, MAX_VALUE_BYTES, RowId, RowValues};
pub use sealed::{ClusterFingerprint, ClusterKey, DatagramSealer, RefusedDatagrams};
pub use snapshots::{SnapshotEvent, SnapshotForm, SnapshotLimits, SnapshotPages, SnapshotReplica};
pub use store::{StoreConfig, StoreEvent, StoreNode};
pub use sweep::{PacedSweep, idle_ns};

/// Returns the time that a store waits before it considers a lease ended. `drift_ppm` bounds the error of each clock
/// against the true time. The switch's clock may be slow by it and the store's fast, so twice the drift counts.
pub fn expiry_ns(lease_ns: u64, drift_ppm: u32) -> u64 {
    const MILLION: u128 = 1_000_000;
    let drift = u128::from(drift_ppm).min(MILLION - 1);
    let expiry = (u128::from(lease_ns) * (MILLION + drift)).div_ceil(MILLION - drift);
    u64::try_from(expiry).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drift_of_both_clocks_counts() {
        assert_eq!(expiry_ns(1_000_000_000, 0), 1_000_000_000);
        assert_eq!(expiry_ns(1_000_000_000, 500), 1_001_000_501);
        assert_eq!(expiry_ns(u64::MAX, 500_000), u64::MAX);
    }
}
