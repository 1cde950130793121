//! Outputs that travel with writes (RedPlane, section 5.4.1).
//!
//! A row has at most one write under way, and only its first send carries outputs. Outputs of later writes wait in the
//! switch's memory, so outputs that travel always precede those that wait. They leave with the acknowledgement of
//! exactly their write: one of a later write means that they are lost.

use switch::Time;

use super::entry::{Phase, RowEntry};
use super::{ReplicaEvent, StateReplica};
use crate::carried::{CarriedOutputs, HoldMode};
use crate::mutant::Mutant;
use crate::row::{RowId, RowValues};
use crate::wire_form::room_for_outputs;

/// Counts of writes whose first send carried outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarriedCounts {
    /// Writes that carried outputs.
    pub sent: u64,
    /// Writes whose outputs returned, and left.
    pub returned: u64,
    /// Writes whose outputs are lost: the request or its acknowledgement was lost or late, a store had no memory for
    /// them, or the write was not applied.
    pub lost: u64,
}

impl StateReplica {
    /// Returns the length of the outputs that could travel with a write of these values now, in bytes; 0 if none can:
    /// outputs are held locally, the write costs no request, or another write is under way.
    pub fn room_for_outputs(&self, row: &RowId, values: Option<&RowValues>) -> usize {
        if self.config.hold == HoldMode::Local {
            return 0;
        }
        let sends = |entry: &&RowEntry| {
            let is_idle = entry.sent == entry.acked || self.config.mutation.is(Mutant::OutputsOvertake);
            entry.phase == Phase::Owned && is_idle && entry.values.as_ref() != values
        };
        match self.rows.get(row).filter(sends) {
            Some(_) => room_for_outputs(row, values, self.config.max_datagram_bytes),
            None => 0,
        }
    }

    /// Writes an owned row as [`StateReplica::write`] does. The outputs, for which there is
    /// [room](StateReplica::room_for_outputs), travel with the request. `OutputsReturned` follows before
    /// `Acknowledged`, or they are lost.
    pub fn write_with_outputs(
        &mut self,
        now: Time,
        row: &RowId,
        values: Option<RowValues>,
        outputs: CarriedOutputs,
    ) -> u64 {
        let room = self.room_for_outputs(row, values.as_ref());
        assert!(outputs.bytes().len() <= room, "the outputs have no room beside the write");
        self.write_and_send(now, row, values, Some(outputs)).seq
    }

    /// Implements a mutant: outputs leave with an acknowledgement that does not count.
    pub(super) fn return_uncounted(&mut self, row: &RowId, epoch: u64, seq: u64, outputs: Option<&CarriedOutputs>) {
        let (mutation, Some(entry), Some(outputs)) = (self.config.mutation, self.rows.get(row), outputs) else {
            return;
        };
        let is_repeated = entry.epoch == epoch && mutation.is(Mutant::OutputsReturnedTwice);
        let is_of_before = entry.epoch != epoch && mutation.is(Mutant::OutputsOfFormerEpoch);
        if is_repeated || is_of_before {
            self.events.push(ReplicaEvent::OutputsReturned { row: *row, seq, outputs: outputs.clone() });
        }
    }
}
