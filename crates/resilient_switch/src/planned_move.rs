//! Gives rows back on request, so that other switches can take them without waiting for a lease to end.
//!
//! A move visits the places of its groups and gives each row back as a recall of the stores would: its packets run, its
//! writes are acknowledged, and their outputs leave before the row is free. So nothing is lost. A bounded number of
//! rows is under way at a time, so packets of other rows are processed meanwhile.
//!
//! A packet that needs such a row afterwards makes the switch request it again. During the *away* time, if one is
//! given, the packet is dropped instead ([`DropReason::RowsAway`]), and the move also releases rows that were already
//! requested when it began.

use engine::StateRow;
use resilient::{RowId, RowProgress};
use switch::{DropReason, Frame, RowSwitch, Time};

use crate::ResilientSwitch;
use crate::listing::{MAX_SCANNED, RowCursor};

/// Maximum number of rows that are given back at a time.
const MAX_UNDER_WAY: usize = 256;

/// Rows that are given back.
#[derive(Debug)]
pub(crate) struct PlannedMove {
    /// The index of a group; all groups if omitted.
    group: Option<u32>,
    /// Time until which packets do not ask for rows of these groups.
    away_until: Option<Time>,
    at: RowCursor,
    /// Whether each place was visited, and no row is left.
    is_scanned: bool,
    /// Whether this pass over the places has found a row.
    has_found: bool,
    /// The rows that are being given back, with the epochs of their grants.
    under_way: Vec<(RowId, u64)>,
    moved: u64,
}

/// Progress of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveProgress {
    /// Rows that were given back.
    pub moved: u64,
    /// Rows that are being given back.
    pub under_way: usize,
    /// Rows of the groups that are still granted to the switch.
    pub granted: u64,
    /// Whether the move is complete.
    pub is_done: bool,
    /// Remaining time for which packets do not ask for these rows, in nanoseconds.
    pub away_ns: u64,
}

impl PlannedMove {
    fn has(&self, group: u32) -> bool {
        self.group.is_none_or(|only| only == group)
    }

    /// Whether packets may not ask for rows of a group.
    pub fn keeps_away(&self, now: Time, group: u32) -> bool {
        self.has(group) && self.away_until.is_some_and(|until| now < until)
    }

    fn is_done(&self) -> bool {
        self.is_scanned && self.under_way.is_empty()
    }
}

impl<S: RowSwitch> ResilientSwitch<S> {
    /// Begins to give back the rows of a group, or of all, instead of any earlier move. With `away_ns`, packets do not
    /// ask for such rows for this time.
    pub fn start_move(&mut self, now: Time, group: Option<u32>, away_ns: Option<u64>) {
        self.planned = Some(PlannedMove {
            group,
            away_until: away_ns.map(|ns| now.after_ns(ns)),
            at: RowCursor::default(),
            is_scanned: false,
            has_found: false,
            under_way: Vec::new(),
            moved: 0,
        });
    }

    /// Continues a move. Appends the frames that may leave now to `output`.
    pub fn continue_move(&mut self, now: Time, output: &mut Vec<Frame>) {
        let Some(mut planned) = self.planned.take() else { return };
        if !planned.is_done() {
            self.begin_step(now, output);
            self.settle_moved(&mut planned);
            self.give_back_rows(now, &mut planned);
            self.act(now, output);
            self.settle_moved(&mut planned);
        }
        self.planned = Some(planned);
    }

    /// Returns the progress of the last move, if there was one.
    pub fn move_progress(&self, now: Time) -> Option<MoveProgress> {
        let planned = self.planned.as_ref()?;
        let granted =
            (0..self.groups.len()).filter(|group| planned.has(*group as u32)).map(|group| self.granted_in(group));
        Some(MoveProgress {
            moved: planned.moved,
            under_way: planned.under_way.len(),
            granted: granted.sum(),
            is_done: planned.is_done(),
            away_ns: planned.away_until.map_or(0, |until| until.since_ns(now)),
        })
    }

    /// Whether a packet may not ask for this row now.
    pub(crate) fn is_kept_away(&self, now: Time, row: StateRow) -> bool {
        self.planned.as_ref().is_some_and(|planned| planned.keeps_away(now, row.group))
    }

    /// Drops the packets that wait for a row that may not be asked for.
    pub(crate) fn drop_away(&mut self, row: StateRow) {
        self.asked.remove(&row);
        self.inner.drop_parked(row, DropReason::RowsAway);
        self.inner.objects_mut().forget_row(row);
    }

    /// Counts the rows that were given back.
    fn settle_moved(&self, planned: &mut PlannedMove) {
        let before = planned.under_way.len();
        planned.under_way.retain(|(id, epoch)| {
            let report = self.replica.row_report(id);
            report.is_some_and(|report| report.epoch == *epoch && report.progress != RowProgress::Asked)
        });
        planned.moved += (before - planned.under_way.len()) as u64;
    }

    /// Gives back the next rows.
    fn give_back_rows(&mut self, now: Time, planned: &mut PlannedMove) {
        let mut scanned = 0;
        while !planned.is_scanned && scanned < MAX_SCANNED && planned.under_way.len() < MAX_UNDER_WAY {
            let Some(place) = self.place_from(planned.at, planned.group) else {
                // Rows that were asked for before may still arrive: another pass is needed.
                let is_away = planned.away_until.is_some_and(|until| now < until);
                planned.is_scanned = !(is_away && std::mem::take(&mut planned.has_found));
                planned.at = RowCursor::default();
                break;
            };
            (scanned, planned.at) = (scanned + 1, place.after());
            let Some((id, report)) = self.row_at(place.row()) else { continue };
            planned.has_found |= report.progress != RowProgress::Releasing;
            let is_new = || planned.under_way.iter().all(|(known, _)| *known != id);
            if matches!(report.progress, RowProgress::Owned | RowProgress::Shared) && is_new() {
                self.replica.release(now, &id);
                planned.under_way.push((id, report.epoch));
            }
        }
    }
}
