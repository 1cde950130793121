//! Connects rows with snapshots: packets get the row, and the machine its pages.

use bits::Bits;
use engine::{Objects, RowState, StateRow};
use ir::StaleAction;
use resilient::snapshots::{SnapshotCounts, SnapshotStatus};
use resilient::{RowId, RowValues, SnapshotEvent, SnapshotPages};
use switch::{Frame, RowSwitch, Time};

use crate::ResilientSwitch;
use crate::counts::drop_reason;
use crate::row_format::{RowFormat, RowKind, group_of};

/// The registers of a switch, as pages.
pub(crate) struct RegisterPages<'a> {
    pub objects: &'a mut Objects,
    pub formats: &'a [RowFormat],
}

/// The last snapshot of a row that the switch owns or asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotReport {
    /// Name of the group.
    pub group: String,
    /// Number of the row in its group.
    pub row: u32,
    /// Its state.
    pub status: SnapshotStatus,
}

/// Returns the row of arrays that a name of the stores denotes.
pub(crate) fn array_row(formats: &[RowFormat], id: &RowId) -> Option<StateRow> {
    let group = group_of(formats, id)?;
    let index = u32::from_be_bytes(id.key().try_into().ok()?);
    Some(StateRow { group: group as u32, index: u64::from(index) })
}

impl RegisterPages<'_> {
    fn row(&self, id: &RowId) -> StateRow {
        array_row(self.formats, id).expect("the switch asked for the row")
    }
}

impl SnapshotPages for RegisterPages<'_> {
    fn begin_cut(&mut self, id: &RowId) -> Vec<u32> {
        self.objects.begin_cut(self.row(id))
    }

    fn cut_page(&mut self, id: &RowId, page: u32) -> RowValues {
        RowValues::new(&self.objects.cut_page(self.row(id), page)).expect("a page fits a row of the stores")
    }

    fn set_page(&mut self, id: &RowId, page: u32, bytes: Option<&[u8]>) -> bool {
        self.objects.set_page(self.row(id), page, bytes)
    }
}

/// Calls a method of the snapshots of a switch, with the replica and the registers.
macro_rules! with_snapshots {
    ($switch:ident.$method:ident($now:expr $(, $argument:expr)*)) => {{
        let ResilientSwitch { inner, replica, snapshots, formats, .. } = $switch;
        let mut pages = $crate::snapshots::RegisterPages { objects: inner.objects_mut(), formats };
        snapshots.$method($now, replica, &mut pages $(, $argument)*)
    }};
}
pub(crate) use with_snapshots;

impl<S: RowSwitch> ResilientSwitch<S> {
    /// Returns the counts of snapshots.
    pub fn snapshot_counts(&self) -> SnapshotCounts {
        self.snapshots.counts()
    }

    /// Returns the snapshots of the rows that the switch owns or asks for.
    pub fn snapshot_reports(&self, now: Time) -> Vec<SnapshotReport> {
        let report = |status: SnapshotStatus| {
            let row = array_row(&self.formats, &status.row)?;
            let group = self.formats[row.group as usize].name.clone();
            Some(SnapshotReport { group, row: row.index as u32, status })
        };
        self.snapshots.status(now).filter_map(report).collect()
    }

    /// Records the rows that packets have changed in the last step.
    pub(crate) fn note_changes(&mut self, now: Time) {
        for row in self.inner.objects_mut().take_changed_rows() {
            if let Some(id) = self.row_id(row) {
                self.snapshots.changed(now, &id);
            }
        }
    }

    /// Carries out the effects of the snapshot machine. Returns whether there was anything.
    pub(crate) fn act_on_snapshots(&mut self, now: Time, output: &mut Vec<Frame>) -> bool {
        let events = self.snapshots.take_events();
        let has_any = !events.is_empty();
        events.into_iter().for_each(|event| self.take_snapshot_event(now, event, output));
        has_any
    }

    fn take_snapshot_event(&mut self, now: Time, event: SnapshotEvent, output: &mut Vec<Frame>) {
        let (SnapshotEvent::Opened(id)
        | SnapshotEvent::Closed(id)
        | SnapshotEvent::Refused(id, _)
        | SnapshotEvent::Stale(id, _)
        | SnapshotEvent::Lost { row: id, .. }) = event;
        let Some(row) = array_row(&self.formats, &id) else { return };
        match event {
            SnapshotEvent::Opened(_) => self.opened(now, row, &id, output),
            SnapshotEvent::Closed(_) => self.inner.objects_mut().set_row_state(row, RowState::Absent),
            SnapshotEvent::Refused(_, reason) => {
                self.inner.drop_parked(row, drop_reason(reason));
                self.settle_kept(now, row);
            }
            SnapshotEvent::Stale(_, is_stale) => self.note_stale(row, is_stale),
            SnapshotEvent::Lost { .. } => {
                self.inner.objects_mut().set_snapshot_row_state(row, RowState::Absent);
                if self.inner.parked(row) > 0 {
                    self.acquire(now, row);
                }
            }
        }
    }

    /// Lets packets use a row, beginning with those that have waited for it.
    fn opened(&mut self, now: Time, row: StateRow, id: &RowId, output: &mut Vec<Frame>) {
        self.inner.objects_mut().set_snapshot_row_state(row, RowState::Owned);
        self.run_parked(now, row, id, output);
    }

    fn note_stale(&mut self, row: StateRow, is_stale: bool) {
        let RowKind::Snapshots(format) = &self.formats[row.group as usize].rows else { return };
        let objects = self.inner.objects_mut();
        match format.when_stale {
            StaleAction::Flag(register) => {
                objects.write_register(register, row.index, &Bits::new(u128::from(is_stale), 1));
            }
            StaleAction::Drop if is_stale => objects.set_row_state(row, RowState::Stale),
            StaleAction::Drop if objects.row_state(row) == RowState::Stale => {
                objects.set_row_state(row, RowState::Owned);
            }
            StaleAction::Drop => {}
        }
    }

    /// Returns the number of rows whose last snapshot is older than its bound.
    pub fn stale_rows(&self, now: Time) -> usize {
        self.snapshots.status(now).filter(|status| status.is_stale).count()
    }
}
