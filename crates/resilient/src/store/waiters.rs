//! The switches that wait for rows of others, at the head of a shard.

use std::collections::{BTreeMap, VecDeque};

use switch::Time;

use super::head::Wish;
use crate::message::{OwnerId, RefusalReason};
use crate::row::RowId;
use crate::timer_queue::TimerQueue;

/// A switch that waits for a row.
#[derive(Clone, Debug, Hash)]
pub(super) struct Waiter {
    pub owner: OwnerId,
    pub wish: Wish,
    /// Time of its last request.
    pub heard: Time,
}

#[cfg_attr(feature = "simulation", derive(Clone, Hash))]
#[derive(Debug, Default)]
struct RowQueue {
    waiters: VecDeque<Waiter>,
    due: Option<Time>,
}

/// Queues of rows, first come, first served. They live at the head only: switches repeat their requests.
#[cfg_attr(feature = "simulation", derive(Clone, Hash))]
#[derive(Debug, Default)]
pub(super) struct WaiterQueues {
    queues: BTreeMap<RowId, RowQueue>,
    timers: TimerQueue,
    count: usize,
}

impl WaiterQueues {
    pub fn clear(&mut self) {
        *self = WaiterQueues::default();
    }

    /// Returns the number of asks that wait.
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self, row: &RowId) -> bool {
        !self.queues.contains_key(row)
    }

    pub fn front(&self, row: &RowId) -> Option<Waiter> {
        self.queues.get(row)?.waiters.front().cloned()
    }

    /// Adds a waiter, or renews its place.
    pub fn push(&mut self, row: RowId, waiter: Waiter, max_row: usize, max: usize) -> Result<(), RefusalReason> {
        if let Some(queue) = self.queues.get_mut(&row) {
            if let Some(known) = queue.waiters.iter_mut().find(|known| known.owner == waiter.owner) {
                if waiter.wish.ask > known.wish.ask {
                    known.wish = waiter.wish;
                }
                known.heard = waiter.heard;
                return Ok(());
            }
            if queue.waiters.len() >= max_row {
                return Err(RefusalReason::RowContended);
            }
        }
        if self.count >= max {
            return Err(RefusalReason::ShardContended);
        }
        self.queues.entry(row).or_default().waiters.push_back(waiter);
        self.count += 1;
        Ok(())
    }

    /// Removes the waiters of a row that do not satisfy a condition. A queue without waiters ends.
    pub fn retain(&mut self, row: &RowId, keep: impl FnMut(&Waiter) -> bool) {
        let Some(queue) = self.queues.get_mut(row) else { return };
        let before = queue.waiters.len();
        queue.waiters.retain(keep);
        self.count -= before - queue.waiters.len();
        if queue.waiters.is_empty() {
            self.set_due(row, None);
            self.queues.remove(row);
        }
    }

    /// Whether the row is visited again at some time.
    pub fn is_timed(&self, row: &RowId) -> bool {
        self.queues.get(row).is_some_and(|queue| queue.due.is_some())
    }

    /// Sets the time at which the row is looked at again.
    pub fn set_due(&mut self, row: &RowId, due: Option<Time>) {
        if let Some(queue) = self.queues.get_mut(row) {
            self.timers.set(row, &mut queue.due, due);
        }
    }

    /// Returns the row that is due first.
    pub fn next_due(&self) -> Option<(Time, RowId)> {
        self.timers.first()
    }
}
