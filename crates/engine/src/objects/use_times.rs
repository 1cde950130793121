//! Keeps the times at which packets last used the entries of tables whose rows age.
//!
//! Each view has its own times, so that a packet stores one word: rows that age are used by one worker.

use std::fmt;

use cranelift_entity::SecondaryMap;
use ir::TableId;

use super::Objects;
use crate::tables::Handle;

/// Times of hits have a step of 2^20 ns, so that most packets find the time already stored.
const STEP_MASK: u64 = (1 << 20) - 1;

/// Returns the time that is recorded for a hit: the last nanosecond of its step. So no row is removed early, and
/// removal is late by at most a step: idle times are at least 1 ms.
#[inline]
pub fn use_time(now_ns: u64) -> u64 {
    now_ns | STEP_MASK
}

/// The time of the last hit of each entry of each table, in nanoseconds, by its handle; 0 if there was none. An entry
/// may have the time of an earlier one with its handle, which is not later than the step in which it was added.
#[derive(Default)]
pub(super) struct UseTimes(SecondaryMap<TableId, Vec<u64>>);

impl UseTimes {
    /// Returns the time of the last hit of an entry, or 0.
    pub fn of(&self, table: TableId, handle: Handle) -> u64 {
        self.0[table].get(handle.0 as usize).copied().unwrap_or(0)
    }

    fn set(&mut self, table: TableId, handle: Handle, now_ns: u64) {
        let times = self.at_least(table, handle.0 as usize + 1);
        times[handle.0 as usize] = use_time(now_ns);
    }

    /// Returns the times of a table, of at least this number of handles.
    #[inline]
    fn at_least(&mut self, table: TableId, handles: usize) -> &mut [u64] {
        let times = &mut self.0[table];
        if times.len() < handles {
            times.resize(handles, 0);
        }
        times
    }
}

/// Shows only entries that were used, so that equal states have equal output regardless of their memory.
impl fmt::Debug for UseTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = |times: &Vec<u64>| {
            times.iter().enumerate().filter(|(_, time)| **time > 0).map(|(at, time)| (at, *time)).collect::<Vec<_>>()
        };
        f.debug_map()
            .entries(self.0.iter().map(|(table, times)| (table, used(times))).filter(|(_, used)| !used.is_empty()))
            .finish()
    }
}

impl Objects {
    /// Records the time of a hit, if the table's entries are rows that age. A pass that is undone has used the row,
    /// too.
    #[inline]
    pub fn note_use(&mut self, table: TableId, handle: Handle, now_ns: u64) {
        if self.control().tables[table].notes_uses {
            self.use_times.set(table, handle, now_ns);
        }
    }

    /// Returns the time of the last hit of each entry of a table whose rows age, by its handle. Compiled code stores
    /// [`use_time`] there, as [`Objects::note_use`] does. There is one for each handle until an entry is added.
    #[inline]
    pub fn use_times(&mut self, table: TableId) -> &mut [u64] {
        let handles = self.control().tables[table].entries.handle_count();
        self.use_times.at_least(table, handles)
    }
}
