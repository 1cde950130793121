//! Lets packets wait for rows of `@resilient` registers, and keeps back what must wait for their acknowledgement.
//!
//! A pass, one run of ingress or egress, uses one row at most. If the switch does not own the row, the effects of the
//! pass are undone, and the packet is *parked* as it was before the pass. What a packet sends after it wrote a row, or
//! read one with unacknowledged writes, is *held*: frames, copies, digests, packet-ins.

use std::collections::{BTreeMap, VecDeque};

use engine::{Dependency, Row};
use switch::trace::{PassKind, PassOutcome, Recorder};
use switch::{DropReason, Frame, HeldOutput, Notification, Output, RowSwitch, Time};

use super::Switch;
use super::ingress::BlockFailure;
use super::packet::{Packet, Work};

/// Packets that wait for rows, and outputs that are held.
#[derive(Debug, Default)]
pub(super) struct RowQueues {
    /// The row that the packet of the running pass has used, if any.
    current: Option<Dependency>,
    parked: BTreeMap<Row, VecDeque<Work>>,
    parked_packets: usize,
    max_parked: usize,
    /// Passes whose row has come.
    resumed: VecDeque<Work>,
    awaited: Vec<Row>,
    held: Vec<HeldOutput>,
}

impl RowQueues {
    /// Returns the dependency of what the running pass sends, if it must wait.
    fn waits_for(&self) -> Option<Dependency> {
        self.current.filter(Dependency::must_wait)
    }
}

impl Switch {
    /// Begins a pass. Returns the packet as it is now, if it may have to run again.
    pub(super) fn begin_pass(&mut self, packet: &Packet) -> Option<Box<Packet>> {
        let rows = self.rows.as_mut()?;
        rows.current = packet.row;
        self.objects.begin_pass(packet.row);
        let mut before = self.copied(packet, PassKind::Received, &mut ());
        (before.trace, before.pass) = (packet.trace, packet.pass);
        Some(before)
    }

    /// Ends a pass that completed: what the packet sends from now on depends on what it did.
    pub(super) fn end_pass(&mut self, packet: &mut Packet) {
        if let Some(rows) = &mut self.rows {
            packet.row = self.objects.end_pass();
            rows.current = packet.row;
        }
    }

    /// Ends a pass that did not complete: parks the packet if it awaits a row, else drops it. `again` makes the work
    /// with which it begins once more.
    pub(super) fn abort_pass<R: Recorder>(
        &mut self,
        mut packet: Box<Packet>,
        again: Option<Work>,
        failure: BlockFailure,
        recorder: &mut R,
    ) {
        let (Some(rows), Some(again)) = (&mut self.rows, again) else {
            return self.drop_failed(packet, failure, recorder);
        };
        match (failure.0, self.objects.take_awaited_row()) {
            (DropReason::RowUnavailable, Some(_)) if rows.parked_packets >= rows.max_parked => {
                self.objects.undo_pass();
                self.drop_failed(packet, (DropReason::RowQueueFull, 0), recorder);
            }
            (DropReason::RowUnavailable, Some(row)) => {
                self.objects.undo_pass();
                let queue = rows.parked.entry(row).or_default();
                if queue.is_empty() {
                    rows.awaited.push(row);
                }
                let is_ingress = matches!(again, Work::Ingress(..));
                queue.push_back(again);
                rows.parked_packets += 1;
                if is_ingress && self.is_parser_error(packet.state.parser_error()) {
                    self.registry.take_back(self.stats.parser_errors, 1);
                }
                recorder.end(packet.pass, || PassOutcome::Parked);
                self.recycle(packet);
            }
            (DropReason::SecondRow, _) => {
                self.objects.undo_pass();
                self.drop_failed(packet, failure, recorder);
            }
            _ => {
                self.end_pass(&mut packet);
                self.drop_failed(packet, failure, recorder);
            }
        }
    }

    /// Returns the row that packets made now have used: that of the running pass.
    pub(super) fn current_row(&self) -> Option<Dependency> {
        self.rows.as_ref().and_then(|rows| rows.current)
    }

    /// Forgets the running pass: what is sent next belongs to no packet, or to another.
    pub(super) fn leave_pass(&mut self) {
        if let Some(rows) = &mut self.rows {
            rows.current = None;
        }
    }

    /// Returns the next pass whose row has come.
    pub(super) fn next_resumed(&mut self, now: Time) -> Option<Work> {
        let work = self.rows.as_mut()?.resumed.pop_front()?;
        Some(match work {
            Work::Ingress(packet, _) => Work::Ingress(packet, now),
            Work::Egress(packet, leaving) => Work::Egress(packet, super::packet::Leaving { at: now, ..leaving }),
        })
    }

    /// Sends a frame, or holds it.
    pub(super) fn send(&mut self, frame: Frame, output: &mut Vec<Frame>) {
        match self.rows.as_mut().and_then(|rows| Some((rows.waits_for()?, rows))) {
            None => output.push(frame),
            Some((dependency, rows)) => rows.held.push(HeldOutput { dependency, output: Output::Frame(frame) }),
        }
    }

    /// Holds a notification if it must wait, else returns it.
    pub(super) fn hold_notification(&mut self, notification: Notification) -> Option<Notification> {
        let Some((dependency, rows)) = self.rows.as_mut().and_then(|rows| Some((rows.waits_for()?, rows))) else {
            return Some(notification);
        };
        rows.held.push(HeldOutput { dependency, output: Output::Notification(notification) });
        None
    }
}

impl RowSwitch for Switch {
    /// Packets are interpreted from now on.
    fn own_rows(&mut self, max_parked: usize) {
        let groups = self.program.resilient_groups().expect("a valid program has valid annotations");
        self.objects.own_rows(&groups);
        (self.machine, self.in_place, self.compile_job) = (None, None, None);
        self.spare.clear();
        self.rows = Some(Box::new(RowQueues { max_parked, ..RowQueues::default() }));
    }

    fn take_awaited(&mut self) -> Vec<Row> {
        self.rows.as_mut().map(|rows| std::mem::take(&mut rows.awaited)).unwrap_or_default()
    }

    fn parked(&self, row: Row) -> usize {
        self.rows.as_ref().and_then(|rows| rows.parked.get(&row)).map_or(0, VecDeque::len)
    }

    fn resume(&mut self, row: Row) {
        let Some(rows) = &mut self.rows else { return };
        if let Some(parked) = rows.parked.remove(&row) {
            rows.parked_packets -= parked.len();
            rows.resumed.extend(parked);
        }
    }

    fn drop_parked(&mut self, row: Row, reason: DropReason) {
        let Some(rows) = &mut self.rows else { return };
        let parked = rows.parked.remove(&row).unwrap_or_default();
        rows.parked_packets -= parked.len();
        for work in parked {
            self.drop_packet(work.into_packet(), reason, &mut ());
        }
    }

    fn take_held(&mut self) -> Vec<HeldOutput> {
        self.rows.as_mut().map(|rows| std::mem::take(&mut rows.held)).unwrap_or_default()
    }
}
