//! Orders rows by the times at which they are due.

use std::collections::BTreeSet;

use switch::Time;

use crate::row::RowId;

/// Rows by time, each at most once. The owner of the queue records the time of each row, too.
#[cfg_attr(feature = "simulation", derive(Clone, Hash))]
#[derive(Debug, Default)]
pub(crate) struct TimerQueue(BTreeSet<(Time, RowId)>);

impl TimerQueue {
    /// Sets the time of a row, or removes the row. `noted` is the row's time in the queue, before and after.
    pub fn set(&mut self, row: &RowId, noted: &mut Option<Time>, at: Option<Time>) {
        if *noted == at {
            return;
        }
        if let Some(before) = std::mem::replace(noted, at) {
            self.0.remove(&(before, *row));
        }
        self.0.extend(at.map(|at| (at, *row)));
    }

    /// Returns the row that is due first, and its time.
    pub fn first(&self) -> Option<(Time, RowId)> {
        self.0.first().copied()
    }
}
