//! One row with snapshots.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use switch::Time;

use super::form::PagePlaces;
use super::{SnapshotContext, SnapshotEvent, SnapshotForm};
use crate::mutant::Mutant;
use crate::row::{RowId, RowValues};

/// Shortest time after which requests are retransmitted.
const MIN_RESEND_NS: u64 = 100_000;

/// Longest time after which requests are retransmitted.
const MAX_RESEND_NS: u64 = 100_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowPhase {
    /// The switch waits for the row.
    Asked,
    /// It waits for the pages.
    Restoring,
    /// Packets may use the row.
    Open,
    /// Packets may no longer use it. The last snapshot is made.
    Closing,
}

/// A page that was sent.
#[derive(Debug)]
struct SentPage {
    values: RowValues,
    /// The number of the write; `None` while the switch does not own the page's row.
    seq: Option<u64>,
}

/// A snapshot in progress.
#[derive(Debug)]
struct SentSnapshot {
    /// Pages that are not copied yet.
    left: VecDeque<u32>,
    sent: BTreeMap<u32, SentPage>,
    /// The places of all pages when the snapshot is complete.
    places: PagePlaces,
    /// The number of the row's write, if the row was written.
    commit: Option<u64>,
    pages: u64,
    bytes: u64,
}

#[derive(Debug)]
pub(super) struct SnapshotRow {
    form: SnapshotForm,
    pub phase: RowPhase,
    /// The number of the last complete snapshot.
    pub number: u64,
    /// The places of its pages.
    places: PagePlaces,
    /// Pages that have not arrived yet, while the row is restored.
    missing: BTreeSet<u32>,
    snapshot: Option<SentSnapshot>,
    last_cut: Option<Time>,
    /// Time of the first change that is not in the last complete snapshot.
    uncovered_since: Option<Time>,
    /// Time of the first change after the cut of the snapshot in progress.
    changed_since_cut: Option<Time>,
    pub is_stale: bool,
    pub is_recalled: bool,
    /// Whether the row stays open although it is recalled, until [`super::SnapshotReplica::unpin`].
    pub is_pinned: bool,
    /// Time at which requests without an answer are retransmitted, and the next interval.
    resend: Option<(Time, u64)>,
    /// Its time in the queue of rows that are due.
    pub due_timer: Option<Time>,
    /// Its time in the queue of rows with pages to copy.
    pub copies_timer: Option<Time>,
}

impl SnapshotRow {
    pub fn asked(form: SnapshotForm) -> SnapshotRow {
        SnapshotRow {
            form,
            phase: RowPhase::Asked,
            number: 0,
            places: vec![0; form.pages as usize],
            missing: BTreeSet::new(),
            snapshot: None,
            last_cut: None,
            uncovered_since: None,
            changed_since_cut: None,
            is_stale: false,
            is_recalled: false,
            is_pinned: false,
            resend: None,
            due_timer: None,
            copies_timer: None,
        }
    }

    /// Returns the age of the last complete snapshot.
    pub fn age_ns(&self, now: Time) -> u64 {
        self.uncovered_since.map_or(0, |since| now.since_ns(since))
    }

    /// Whether the last complete snapshot has every change by packets.
    fn is_covered(&self) -> bool {
        self.snapshot.is_none() && self.uncovered_since.is_none()
    }

    /// Takes ownership of the row, and begins to restore it from its last snapshot.
    pub fn granted(&mut self, context: &mut SnapshotContext<'_>, id: &RowId, values: Option<&RowValues>, keeps: bool) {
        if self.phase != RowPhase::Asked {
            return;
        }
        self.phase = RowPhase::Restoring;
        if keeps {
            return self.open(context, id);
        }
        let restored = match values {
            None => (0..self.form.pages).all(|page| context.pages.set_page(id, page, None)),
            Some(values) => self.restore(context, id, values),
        };
        if !restored {
            return self.begin_again(context, id);
        }
        context.counts.restored += u64::from(values.is_some());
        self.ask_for_missing(context, id);
        self.open_if_whole(context, id);
    }

    /// Restores the contents of the row itself, and records the pages that have to be asked for.
    fn restore(&mut self, context: &mut SnapshotContext<'_>, id: &RowId, values: &RowValues) -> bool {
        let Some((number, rest)) = SnapshotForm::split(values) else { return false };
        self.number = number;
        if self.form.is_inline() {
            return context.pages.set_page(id, 0, Some(rest));
        }
        let Some(places) = self.form.places(rest) else { return false };
        for (page, place) in (0..).zip(&places) {
            if *place == 0 {
                context.pages.set_page(id, page, None);
            } else {
                self.missing.insert(page);
            }
        }
        self.places = places;
        true
    }

    /// Begins with zeros, because the stores do not have the complete snapshot: they have lost rows, or have others.
    fn begin_again(&mut self, context: &mut SnapshotContext<'_>, id: &RowId) {
        context.counts.damaged += 1;
        self.missing.clear();
        self.places.fill(0);
        (0..self.form.pages).for_each(|page| _ = context.pages.set_page(id, page, None));
        self.open(context, id);
    }

    fn ask_for_missing(&mut self, context: &mut SnapshotContext<'_>, id: &RowId) {
        for page in self.missing.iter().take(context.window) {
            context.replica.acquire(context.now, self.form.page_row(id, *page, self.places[*page as usize]));
        }
        self.start_resending(context.now);
    }

    /// Asks for another page, in place of one that has arrived.
    fn ask_for_next(&mut self, context: &mut SnapshotContext<'_>, id: &RowId) {
        if let Some(page) = self.missing.iter().nth(context.window - 1) {
            context.replica.acquire(context.now, self.form.page_row(id, *page, self.places[*page as usize]));
        }
        self.resend = None;
        self.start_resending(context.now);
    }

    fn open_if_whole(&mut self, context: &mut SnapshotContext<'_>, id: &RowId) {
        if self.missing.is_empty() || context.is(Mutant::RestoredEarly) {
            self.open(context, id);
        }
    }

    fn open(&mut self, context: &mut SnapshotContext<'_>, id: &RowId) {
        if self.phase != RowPhase::Restoring {
            return;
        }
        self.phase = RowPhase::Open;
        self.resend = None;
        self.is_pinned = true;
        context.events.push(SnapshotEvent::Opened(*id));
    }

    /// Handles the grant of a page's row, which is then read or written.
    pub fn page_granted(
        &mut self,
        context: &mut SnapshotContext<'_>,
        id: &RowId,
        (page, place): (u32, u8),
        values: Option<&RowValues>,
    ) {
        let is_at = |places: &PagePlaces| places.get(page as usize) == Some(&place);
        if self.phase == RowPhase::Restoring && is_at(&self.places) && self.missing.remove(&page) {
            let bytes = values.map(RowValues::bytes);
            if bytes.is_none() || !context.pages.set_page(id, page, bytes) {
                return self.begin_again(context, id);
            }
            self.ask_for_next(context, id);
            return self.open_if_whole(context, id);
        }
        if self.snapshot.as_ref().is_some_and(|it| is_at(&it.places) && it.sent.contains_key(&page)) {
            self.send_page(context, id, page);
            return self.advance(context, id);
        }
        // The answer to an earlier ask: another switch may want the row.
        context.replica.release(context.now, &self.form.page_row(id, page, place));
    }

    /// Asks again for a page's row that the snapshot needs.
    pub fn page_lost(&mut self, context: &mut SnapshotContext<'_>, id: &RowId, (page, place): (u32, u8)) {
        let Some(snapshot) = self.snapshot.as_mut().filter(|it| it.places.get(page as usize) == Some(&place)) else {
            return;
        };
        if context.is(Mutant::LostPageIgnored) {
            snapshot.sent.remove(&page);
            return self.advance(context, id);
        }
        if let Some(sent) = snapshot.sent.get_mut(&page) {
            sent.seq = None;
            context.replica.acquire(context.now, self.form.page_row(id, page, place));
        }
    }

    pub fn page_acknowledged(
        &mut self,
        context: &mut SnapshotContext<'_>,
        id: &RowId,
        (page, place): (u32, u8),
        seq: u64,
    ) {
        let Some(snapshot) = self.snapshot.as_mut().filter(|it| it.places.get(page as usize) == Some(&place)) else {
            return;
        };
        if snapshot.sent.get(&page).and_then(|sent| sent.seq).is_some_and(|sent| sent <= seq) {
            snapshot.sent.remove(&page);
            self.resend = None;
            self.start_resending(context.now);
            if context.is(Mutant::BoundOfPages) {
                self.uncovered_since = Some(context.now);
            }
            self.advance(context, id);
        }
    }

    /// Records a change by packets, the first one since the last cut.
    pub fn changed(&mut self, now: Time) {
        let since = if self.snapshot.is_some() { &mut self.changed_since_cut } else { &mut self.uncovered_since };
        since.get_or_insert(now);
    }

    /// Performs the work that is due.
    pub fn tick(&mut self, context: &mut SnapshotContext<'_>, id: &RowId) {
        self.note_age(context, id);
        if self.resend.is_some_and(|(at, _)| at <= context.now) {
            self.send_again(context, id);
        }
        self.advance(context, id);
        self.send_pages(context, id);
        self.advance(context, id);
    }

    /// Records whether the row is stale now.
    fn note_age(&mut self, context: &mut SnapshotContext<'_>, id: &RowId) {
        let exceeds = self.form.bound_ns.is_some_and(|bound_ns| self.age_ns(context.now) > bound_ns);
        let is_stale = self.phase == RowPhase::Open && exceeds && !context.is(Mutant::BoundIgnored);
        if is_stale != self.is_stale {
            self.is_stale = is_stale;
            context.counts.stale += u64::from(is_stale);
            context.events.push(SnapshotEvent::Stale(*id, is_stale));
        }
    }

    /// Performs every step that is possible now, except copying pages.
    pub fn advance(&mut self, context: &mut SnapshotContext<'_>, id: &RowId) {
        if self.phase == RowPhase::Open && self.is_recalled && !self.is_pinned {
            self.phase = RowPhase::Closing;
            context.events.push(SnapshotEvent::Closed(*id));
        }
        if self.cut_due().is_some_and(|due| due <= context.now) {
            self.begin_snapshot(context, id);
        }
        if let Some(snapshot) = &self.snapshot
            && snapshot.left.is_empty()
            && (snapshot.sent.is_empty() || context.is(Mutant::CommittedEarly))
            && snapshot.commit.is_none()
            && !self.form.is_inline()
        {
            let values = SnapshotForm::to_values(self.number.wrapping_add(1), &snapshot.places);
            self.commit(context, id, values);
        }
        if self.phase == RowPhase::Closing && (self.is_covered() || context.is(Mutant::ClosedAtOnce)) {
            // The row is given back, and `Lost` follows.
            context.replica.unpin(context.now, id);
        }
    }

    /// Gives the row back without its last snapshot if it is closing: the stores accept no more pages, and the row
    /// could otherwise not be used.
    pub fn give_up_closing(&mut self, context: &mut SnapshotContext<'_>, id: &RowId) {
        if self.phase == RowPhase::Closing {
            context.counts.unsaved += 1;
            context.replica.unpin(context.now, id);
        }
    }

    /// Returns the time at which the next snapshot begins, if packets have changed the row.
    fn cut_due(&self) -> Option<Time> {
        let is_in_use = matches!(self.phase, RowPhase::Open | RowPhase::Closing);
        let changed = self.uncovered_since.filter(|_| is_in_use && self.snapshot.is_none())?;
        let next = self.last_cut.map_or(Time::ZERO, |last| last.after_ns(self.form.every_ns));
        Some(if self.phase == RowPhase::Closing { changed } else { changed.max(next) })
    }

    fn begin_snapshot(&mut self, context: &mut SnapshotContext<'_>, id: &RowId) {
        let left: VecDeque<u32> = context.pages.begin_cut(id).into();
        self.last_cut = Some(context.now);
        self.changed_since_cut = None;
        if left.is_empty() {
            self.uncovered_since = None;
            return;
        }
        let (sent, places) = (BTreeMap::new(), self.places.clone());
        self.snapshot = Some(SentSnapshot { left, sent, places, commit: None, pages: 0, bytes: 0 });
    }

    /// Copies and sends pages of the snapshot.
    fn send_pages(&mut self, context: &mut SnapshotContext<'_>, id: &RowId) {
        while let Some(snapshot) =
            self.snapshot.as_mut().filter(|it| it.sent.len() < context.window && context.budget > 0)
        {
            let Some(page) = snapshot.left.pop_front() else { break };
            context.budget -= 1;
            let values = context.pages.cut_page(id, page);
            snapshot.pages += 1;
            snapshot.bytes += values.bytes().len() as u64;
            if self.form.is_inline() {
                let values = SnapshotForm::to_inline_values(self.number.wrapping_add(1), &values);
                return self.commit(context, id, values);
            }
            let place = &mut snapshot.places[page as usize];
            *place = if *place == 1 { 2 } else { 1 };
            if context.is(Mutant::WrittenInPlace) {
                *place = 1;
            }
            snapshot.sent.insert(page, SentPage { values, seq: None });
            self.send_page(context, id, page);
        }
    }

    /// Writes a page, or asks for its row.
    fn send_page(&mut self, context: &mut SnapshotContext<'_>, id: &RowId, page: u32) {
        let Some(snapshot) = self.snapshot.as_mut() else { return };
        let Some(sent) = snapshot.sent.get_mut(&page).filter(|sent| sent.seq.is_none()) else { return };
        let row = self.form.page_row(id, page, snapshot.places[page as usize]);
        if !context.replica.is_owned(context.now, &row) {
            context.replica.acquire(context.now, row);
            return self.start_resending(context.now);
        }
        let seq = context.replica.write(context.now, &row, Some(sent.values.clone()));
        sent.seq = Some(seq);
        if context.replica.acknowledged(&row) >= seq {
            // The place has these bytes already.
            snapshot.sent.remove(&page);
        }
        self.start_resending(context.now);
    }

    /// Replaces the snapshot at the stores.
    fn commit(&mut self, context: &mut SnapshotContext<'_>, id: &RowId, values: Option<RowValues>) {
        let Some(snapshot) = self.snapshot.as_mut() else { return };
        if !context.replica.is_owned(context.now, id) {
            // The lease has ended, and `Lost` follows.
            return;
        }
        snapshot.commit = Some(context.replica.write(context.now, id, values));
        self.start_resending(context.now);
        if context.is(Mutant::SnapshotsOverlap) && !self.form.is_inline() {
            let uncovered_since = self.uncovered_since;
            self.complete(context);
            self.uncovered_since = uncovered_since;
        }
    }

    pub fn acknowledged(&mut self, context: &mut SnapshotContext<'_>, id: &RowId, seq: u64) {
        let commit = self.snapshot.as_ref().and_then(|snapshot| snapshot.commit);
        if commit.is_some_and(|commit| commit <= seq) {
            self.complete(context);
            self.note_age(context, id);
            self.advance(context, id);
        }
    }

    fn complete(&mut self, context: &mut SnapshotContext<'_>) {
        let Some(snapshot) = self.snapshot.take() else { return };
        self.number = self.number.wrapping_add(1);
        self.places = snapshot.places;
        self.resend = None;
        self.uncovered_since = self.changed_since_cut.take();
        if context.is(Mutant::BoundFromAck) {
            self.uncovered_since = self.uncovered_since.map(|_| context.now);
        }
        if context.is(Mutant::ChangesForgotten) {
            self.uncovered_since = None;
        }
        context.counts.snapshots += 1;
        context.counts.pages += snapshot.pages;
        context.counts.bytes += snapshot.bytes;
    }

    /// Gives back the rows of pages.
    pub fn lost(&mut self, context: &mut SnapshotContext<'_>, id: &RowId) {
        if self.is_stale {
            context.events.push(SnapshotEvent::Stale(*id, false));
        }
        let is_complete = self.phase == RowPhase::Closing && (self.is_covered() || context.is(Mutant::ClosedAtOnce));
        context.events.push(SnapshotEvent::Lost { row: *id, is_complete });
        if !self.form.is_inline() {
            for page in 0..self.form.pages {
                [1, 2].into_iter().for_each(|place| {
                    context.replica.release(context.now, &self.form.page_row(id, page, place));
                });
            }
        }
    }

    /// Returns the first interval of retransmission.
    fn resend_ns(&self) -> u64 {
        self.form.bound_ns.map_or(MAX_RESEND_NS, |bound_ns| (bound_ns / 8).clamp(MIN_RESEND_NS, MAX_RESEND_NS))
    }

    fn start_resending(&mut self, now: Time) {
        if self.resend.is_none() {
            let first = self.resend_ns();
            self.resend = Some((now.after_ns(first), 2 * first));
        }
    }

    /// Retransmits requests without an answer.
    fn send_again(&mut self, context: &mut SnapshotContext<'_>, id: &RowId) {
        let now = context.now;
        self.resend = self.resend.map(|(_, next)| (now.after_ns(next), (2 * next).min(MAX_RESEND_NS)));
        if self.phase == RowPhase::Restoring {
            for page in self.missing.iter().take(context.window) {
                let row = self.form.page_row(id, *page, self.places[*page as usize]);
                if context.replica.is_owned(now, &row) {
                    // Only a new grant contains the page.
                    context.replica.release(now, &row);
                }
                context.replica.acquire(now, row);
                context.replica.send_again(now, &row);
            }
            return;
        }
        let Some(snapshot) = &self.snapshot else { return };
        for (page, sent) in &snapshot.sent {
            let row = self.form.page_row(id, *page, snapshot.places[*page as usize]);
            if sent.seq.is_none() {
                context.replica.acquire(now, row);
            }
            context.replica.send_again(now, &row);
        }
        if snapshot.commit.is_some() {
            context.replica.send_again(now, id);
        }
    }

    /// Returns the time of the last cut if pages of it may be copied.
    pub fn copies_cut(&self, window: usize) -> Option<Time> {
        let copies = self.snapshot.as_ref().is_some_and(|it| !it.left.is_empty() && it.sent.len() < window);
        self.last_cut.filter(|_| copies)
    }

    /// Returns the time at which work other than copying is due.
    pub fn next_due(&self) -> Option<Time> {
        let bound_ns = self.form.bound_ns.filter(|_| self.phase == RowPhase::Open && !self.is_stale);
        let stale = self.uncovered_since.zip(bound_ns).map(|(since, bound_ns)| since.after_ns(bound_ns).after_ns(1));
        let times = [stale, self.cut_due(), self.resend.map(|(at, _)| at)];
        times.into_iter().flatten().min()
    }
}
