//! The states of rows.

use std::sync::atomic::{AtomicU8, Ordering};

/// The rights of this switch on a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum RowState {
    /// Another switch may own it.
    #[default]
    Absent,
    /// It may be read, as other switches may.
    Shared,
    /// It may be read and written.
    Owned,
    /// It may be read and written, and some of its writes are not acknowledged.
    Unacknowledged,
    /// It is owned, and its last snapshot is too old.
    Stale,
}

impl RowState {
    const ALL: [RowState; 5] =
        [RowState::Absent, RowState::Shared, RowState::Owned, RowState::Unacknowledged, RowState::Stale];
}

/// The states of a group's rows, one byte each. Compiled code reads them, and notes writes.
#[derive(Debug)]
pub(super) struct RowStates(Box<[AtomicU8]>);

impl RowStates {
    pub fn new(rows: u64) -> RowStates {
        RowStates((0..rows).map(|_| AtomicU8::new(RowState::default() as u8)).collect())
    }

    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    #[inline]
    pub fn get(&self, row: u64) -> Option<RowState> {
        let state = self.0.get(usize::try_from(row).ok()?)?.load(Ordering::Relaxed);
        Some(RowState::ALL[usize::from(state)])
    }

    /// Sets the state of a row.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn set(&self, row: u64, state: RowState) {
        self.0[row as usize].store(state as u8, Ordering::Relaxed);
    }

    pub fn address(&self) -> u64 {
        self.0.as_ptr() as u64
    }
}
