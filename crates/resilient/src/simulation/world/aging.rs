//! Judges the aging of rows: they are removed, and their epochs are not reused.

use std::sync::Arc;

use super::World;
use crate::message::{Reply, ReplyBody, StoreMessage};
use crate::simulation::{Violation, lookup};
use crate::store::StoreNode;

impl World {
    /// Checks that rows that age are removed after a long silence, in memory and on disks.
    pub(super) fn expect_aged(&mut self) {
        if self.scenario.idle_ms == 0 {
            return;
        }
        self.run_until(self.now + 10 * (self.scenario.replica.lease_ns + u64::from(self.scenario.idle_ms) * 1_000_000));
        let layout = Arc::clone(&self.operators.kept.layout);
        for member in layout.chains().iter().flat_map(|chain| &chain.members) {
            let number = member.node.0 as usize;
            let rows = self.nodes[number].program.iter().flat_map(StoreNode::all_rows).map(|state| state.row);
            let left = rows.chain(self.disks[number].rows()).find(lookup::is_looked_up);
            self.report.violations.extend(left.map(|row| Violation::RowLeft(row, member.node)));
        }
    }

    /// Checks that each grant of a row has an epoch of its own, also after the row was removed.
    pub(super) fn check_grant(&mut self, message: &StoreMessage) {
        let StoreMessage::Reply(Reply { owner, body: ReplyBody::Granted { row, ask, epoch, .. } }) = message else {
            return;
        };
        let first = *self.grants.entry((*row, *epoch)).or_insert((*owner, *ask));
        if first != (*owner, *ask) && !self.report.violations.contains(&Violation::EpochReused(*row)) {
            self.report.violations.push(Violation::EpochReused(*row));
        }
    }
}
