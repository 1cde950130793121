//! Replicates rows by periodic snapshots: packets change a row without waiting, and its changed pages are sent to the
//! stores at an interval. After a failure, another switch continues from the last complete snapshot.
//!
//! ```text
//!   Asked ── granted ──> Restoring ── all pages came ──> Open ── recalled ──> Closing ── last snapshot ──> (none)
//!     └──────────────────────┴────────── lease ended ──────┴────────────────────┘
//! ```
//!
//! A switch owns a row with snapshots like any row, for its lease ([`StateReplica`]). A snapshot begins with a *cut*
//! between two packets, which the switch makes. Pages that have changed since the last cut are written to rows of their
//! own, each to the one of its two places that does not belong to the last snapshot. When the stores have acknowledged
//! all of them, a write of the row itself says where the pages are ([`SnapshotForm`]). So each node has either the
//! complete new snapshot or the complete former one, and the stores have no notion of snapshots. The next cut is made
//! after that write is acknowledged: until then, both places of a page are needed.
//!
//! **Age.** The state of a switch differs from the last complete snapshot by the changes of packets since its cut. The
//! age of the snapshot is the time since the first of them, or 0 if there is none. If it exceeds the bound, the row is
//! *stale*. So a switch that continues with the snapshot has a state that the former one had at most this long before
//! the last packet that used the row while it was not stale.

mod form;
mod row;

use std::collections::{BTreeMap, BTreeSet};

use switch::Time;

use crate::message::RefusalReason;
use crate::mutant::{Mutant, Mutation};
use crate::replica::{ReplicaEvent, StateReplica};
use crate::row::{RowId, RowValues};
use crate::timer_queue::TimerQueue;
pub use form::{MAX_PAGES, SnapshotForm};
use row::{RowPhase, SnapshotRow};

/// Limits of the work for snapshots in one step.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotLimits {
    /// Maximum number of pages that are copied and sent in a call of [`SnapshotReplica::tick`].
    pub pages_per_tick: usize,
    /// Maximum number of pages of a row that are sent and not acknowledged, or asked for.
    pub window: usize,
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        SnapshotLimits { pages_per_tick: 4, window: 64 }
    }
}

/// The pages of a switch's rows.
pub trait SnapshotPages {
    /// Begins a cut of a row: its current state. Returns the pages that have changed since the last cut.
    fn begin_cut(&mut self, row: &RowId) -> Vec<u32>;

    /// Returns a page as it was at the cut. It is called once for each page that changed.
    fn cut_page(&mut self, row: &RowId, page: u32) -> RowValues;

    /// Sets a page of a row that packets do not use; to zeros if there are no bytes. Returns false if the bytes are not
    /// those of such a page.
    fn set_page(&mut self, row: &RowId, page: u32, bytes: Option<&[u8]>) -> bool;
}

/// An effect on packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotEvent {
    /// Packets may use the row, which is pinned: it stays open until [`SnapshotReplica::unpin`], which follows when the
    /// packets that waited for it have run.
    Opened(RowId),
    /// Packets may no longer use the row. They wait.
    Closed(RowId),
    /// The switch no longer owns the row, so packets may not use it. If packets wait, it has to ask again.
    Lost {
        /// The row.
        row: RowId,
        /// Whether the stores have its last state.
        is_complete: bool,
    },
    /// The row was refused. Packets that waited for it are dropped.
    Refused(RowId, RefusalReason),
    /// The row begins or ceases to be stale.
    Stale(RowId, bool),
}

/// Counts of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotCounts {
    /// Complete snapshots.
    pub snapshots: u64,
    /// Pages of them.
    pub pages: u64,
    /// Bytes of these pages.
    pub bytes: u64,
    /// Rows that were restored from a snapshot.
    pub restored: u64,
    /// Snapshots at the stores that lacked pages, or had another format: their rows started with zeros.
    pub damaged: u64,
    /// Times at which a row became stale.
    pub stale: u64,
    /// Rows that were given back without a last snapshot, because the stores or the switch had no room for more rows.
    pub unsaved: u64,
}

/// State of a row of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotStatus {
    /// The row.
    pub row: RowId,
    /// Whether packets may use the row.
    pub is_open: bool,
    /// The age of the last complete snapshot.
    pub age_ns: u64,
    /// Whether it exceeds the bound.
    pub is_stale: bool,
    /// The number of the last complete snapshot, counted over all owners of the row.
    pub number: u64,
}

/// The times at which rows are due.
#[derive(Debug, Default)]
struct RowTimers {
    /// The times of cuts, repeated requests and stale rows.
    due: TimerQueue,
    /// Rows with pages that may be copied now, by the times of their cuts. A step visits as many as its budget allows.
    copies: TimerQueue,
}

/// The rows with snapshots of one switch.
#[derive(Debug)]
pub struct SnapshotReplica {
    /// Groups, and the form of their snapshots.
    forms: BTreeMap<u64, SnapshotForm>,
    /// The group of each group of pages.
    by_page_group: BTreeMap<u64, u64>,
    rows: BTreeMap<RowId, SnapshotRow>,
    timers: RowTimers,
    events: Vec<SnapshotEvent>,
    counts: SnapshotCounts,
    limits: SnapshotLimits,
    mutation: Mutation,
    /// Rows that the switch had before, for the mutant that restores them from its memory.
    had: BTreeSet<RowId>,
}

/// The context of a call, for the methods of a row.
struct SnapshotContext<'a> {
    now: Time,
    replica: &'a mut StateReplica,
    pages: &'a mut dyn SnapshotPages,
    events: &'a mut Vec<SnapshotEvent>,
    counts: &'a mut SnapshotCounts,
    mutation: Mutation,
    window: usize,
    /// Number of pages that may still be copied.
    budget: usize,
}

impl SnapshotContext<'_> {
    fn is(&self, mutant: Mutant) -> bool {
        self.mutation.is(mutant)
    }
}

macro_rules! context {
    ($all:ident, $now:ident, $replica:ident, $pages:ident, $budget:expr) => {
        SnapshotContext {
            now: $now,
            replica: $replica,
            pages: $pages,
            events: &mut $all.events,
            counts: &mut $all.counts,
            mutation: $all.mutation,
            window: $all.limits.window,
            budget: $budget,
        }
    };
}

impl SnapshotReplica {
    /// Creates the replica of a switch whose groups have snapshots of these forms.
    pub fn new(forms: BTreeMap<u64, SnapshotForm>, limits: SnapshotLimits, mutation: Mutation) -> SnapshotReplica {
        let by_page_group = forms.iter().map(|(group, form)| (form.page_group, *group)).collect();
        SnapshotReplica {
            forms,
            by_page_group,
            rows: BTreeMap::new(),
            timers: RowTimers::default(),
            events: Vec::new(),
            counts: SnapshotCounts::default(),
            limits,
            mutation,
            had: BTreeSet::new(),
        }
    }

    /// Whether events of this row are for [`SnapshotReplica::take`].
    pub fn has(&self, row: &RowId) -> bool {
        self.forms.contains_key(&row.group()) || self.by_page_group.contains_key(&row.group())
    }

    /// Returns the effects since the last call.
    pub fn take_events(&mut self) -> Vec<SnapshotEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns the counts.
    pub fn counts(&self) -> SnapshotCounts {
        self.counts
    }

    /// Returns the rows that the switch owns or asks for.
    pub fn status(&self, now: Time) -> impl Iterator<Item = SnapshotStatus> + '_ {
        self.rows.iter().map(move |(id, row)| SnapshotStatus {
            row: *id,
            is_open: row.phase == RowPhase::Open,
            age_ns: row.age_ns(now),
            is_stale: row.is_stale,
            number: row.number,
        })
    }

    /// Asks for a row that packets wait for. `Opened` or `Refused` follows.
    pub fn acquire(&mut self, now: Time, replica: &mut StateReplica, row: RowId) {
        let Some(form) = self.forms.get(&row.group()) else { return };
        let asked = self.rows.entry(row).or_insert_with(|| SnapshotRow::asked(*form));
        if asked.phase == RowPhase::Asked {
            replica.acquire(now, row);
        }
    }

    /// Records that packets have changed a row now, for the first time since its last cut.
    pub fn changed(&mut self, now: Time, id: &RowId) {
        if let Some(row) = self.rows.get_mut(id) {
            row.changed(now);
            reschedule(&mut self.timers, self.limits.window, id, row);
        }
    }

    /// Unpins a row, so that a recall closes it: the packets that waited for it have run.
    pub fn unpin(&mut self, now: Time, replica: &mut StateReplica, pages: &mut dyn SnapshotPages, id: &RowId) {
        let mut context = context!(self, now, replica, pages, 0);
        if let Some(row) = self.rows.get_mut(id) {
            row.is_pinned = false;
            row.advance(&mut context, id);
            reschedule(&mut self.timers, self.limits.window, id, row);
        }
    }

    /// Handles an event of a row, for which [`SnapshotReplica::has`] is true.
    pub fn take(&mut self, now: Time, replica: &mut StateReplica, pages: &mut dyn SnapshotPages, event: &ReplicaEvent) {
        let Some(id) = event.row().copied() else { return };
        if let Some(group) = self.by_page_group.get(&id.group()) {
            let Some((index, page, place)) = SnapshotForm::page_of(&id) else { return };
            return self.take_page(now, replica, pages, (RowId::of_index(*group, index), page, place), event);
        }
        let mut context = context!(self, now, replica, pages, 0);
        let Some(row) = self.rows.get_mut(&id) else {
            if matches!(event, ReplicaEvent::Granted { .. }) {
                replica.release(now, &id);
                replica.unpin(now, &id);
            }
            return;
        };
        match event {
            ReplicaEvent::Granted { values, .. } => {
                let keeps = context.is(Mutant::RestoredFromMemory) && !self.had.insert(id);
                row.granted(&mut context, &id, values.as_ref().filter(|_| !keeps), keeps);
            }
            ReplicaEvent::Acknowledged { seq, .. } => row.acknowledged(&mut context, &id, *seq),
            ReplicaEvent::Recalled { .. } => {
                row.is_recalled = true;
                row.advance(&mut context, &id);
            }
            ReplicaEvent::Lost { .. } => {
                row.lost(&mut context, &id);
                return self.remove(&id);
            }
            ReplicaEvent::Refused { reason, .. } => {
                self.events.push(SnapshotEvent::Refused(id, *reason));
                return self.remove(&id);
            }
            ReplicaEvent::OutputsReturned { .. } | ReplicaEvent::Abandoned { .. } | ReplicaEvent::Send { .. } => {}
        }
        reschedule(&mut self.timers, self.limits.window, &id, row);
    }

    fn take_page(
        &mut self,
        now: Time,
        replica: &mut StateReplica,
        pages: &mut dyn SnapshotPages,
        (id, page, place): (RowId, u32, u8),
        event: &ReplicaEvent,
    ) {
        let mut context = context!(self, now, replica, pages, 0);
        let Some(row) = self.rows.get_mut(&id) else {
            if let ReplicaEvent::Granted { row: page_row, .. } = event {
                replica.release(now, page_row);
                replica.unpin(now, page_row);
            }
            return;
        };
        match event {
            ReplicaEvent::Granted { row: page_row, values, .. } => {
                row.page_granted(&mut context, &id, (page, place), values.as_ref());
                context.replica.unpin(now, page_row);
            }
            ReplicaEvent::Acknowledged { seq, .. } => row.page_acknowledged(&mut context, &id, (page, place), *seq),
            ReplicaEvent::Lost { .. } => row.page_lost(&mut context, &id, (page, place)),
            ReplicaEvent::Refused { reason: RefusalReason::StoreFull | RefusalReason::ReplicaFull, .. } => {
                row.give_up_closing(&mut context, &id);
            }
            // A page that is refused for now is asked for again later.
            _ => {}
        }
        reschedule(&mut self.timers, self.limits.window, &id, row);
    }

    /// Performs the work that is due: cuts, retransmissions of pages, rows that become stale. It is called before
    /// packets with the same time.
    pub fn tick(&mut self, now: Time, replica: &mut StateReplica, pages: &mut dyn SnapshotPages) {
        let mut due = Vec::new();
        while let Some((_, id)) = self.timers.due.first().filter(|(at, _)| *at <= now) {
            let Some(row) = self.rows.get_mut(&id) else { break };
            self.timers.due.set(&id, &mut row.due_timer, None);
            due.push(id);
        }
        let mut context = context!(self, now, replica, pages, self.limits.pages_per_tick);
        for id in &due {
            if let Some(row) = self.rows.get_mut(id) {
                row.tick(&mut context, id);
                reschedule(&mut self.timers, self.limits.window, id, row);
            }
        }
        // The rest of the budget goes to the oldest cuts. Others are not visited.
        while let Some((_, id)) = self.timers.copies.first().filter(|_| context.budget > 0) {
            let Some(row) = self.rows.get_mut(&id) else { break };
            let before = context.budget;
            row.tick(&mut context, &id);
            reschedule(&mut self.timers, self.limits.window, &id, row);
            if context.budget == before {
                break;
            }
        }
    }

    /// Returns the time at which `tick` is due.
    pub fn next_deadline(&self) -> Option<Time> {
        let first = |queue: &TimerQueue| queue.first().map(|(at, _)| at);
        first(&self.timers.due).into_iter().chain(first(&self.timers.copies)).min()
    }

    fn remove(&mut self, id: &RowId) {
        let Some(mut row) = self.rows.remove(id) else { return };
        self.timers.due.set(id, &mut row.due_timer, None);
        self.timers.copies.set(id, &mut row.copies_timer, None);
    }
}

/// Updates the timers of a row.
fn reschedule(timers: &mut RowTimers, window: usize, id: &RowId, row: &mut SnapshotRow) {
    let (due, copies) = (row.next_due(), row.copies_cut(window));
    timers.due.set(id, &mut row.due_timer, due);
    timers.copies.set(id, &mut row.copies_timer, copies);
}
