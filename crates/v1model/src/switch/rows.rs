//! Lets packets wait for rows of `@resilient` state, and keeps back what must wait for their acknowledgement.
//!
//! A pass, one run of ingress or egress, uses one row of registers at most. If the switch does not own the row, the
//! effects of the pass are undone, and the packet is *parked* as it was before the pass. The output of a packet after
//! it wrote a row, or read a row with unacknowledged writes, is *held*: frames, copies, digests, packet-ins.

use engine::{Dependency, Ending, RowRefusal, StateRow};
use jit::{InPlacePacket, UnitOutcome};
use switch::trace::{PassKind, PassOutcome, Recorder};
use switch::{AwaitedRow, DropReason, Frame, HeldOutput, Notification, Output, PortId, RowSwitch, Time};

use super::Switch;
use super::in_place::{PacketOutput, ReceivedPacket};
use super::ingress::BlockFailure;
use super::packet::{Packet, Work};
use super::parked::{ParkedPacket, ParkedPackets};
use super::paths::PathReason;

/// Packets that wait for rows, and outputs that are held.
#[derive(Debug, Default)]
pub(super) struct RowQueues {
    /// The row that the packet of the running pass has used, if any.
    current: Option<Dependency>,
    pub(super) parked: ParkedPackets,
    awaited: Vec<AwaitedRow>,
    held: Vec<HeldOutput>,
}

/// Whether a unit ended because it may not use a row.
pub(super) fn is_refused(outcome: UnitOutcome) -> bool {
    matches!(outcome, UnitOutcome::Failed(_, Ending::RowRefused))
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
        if !packet.missing.is_empty() {
            self.objects.set_missing_rows(&packet.missing);
        }
        let mut before = self.copied(packet, PassKind::Received, &mut ());
        (before.trace, before.pass) = (packet.trace, packet.pass);
        before.missing.clone_from(&packet.missing);
        Some(before)
    }

    /// Ends a pass that completed: later outputs of the packet depend on it.
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
        let refusal = self.objects.take_refusal().filter(|_| failure.0 == DropReason::RowUnavailable);
        let Some(refusal) = refusal else {
            self.end_pass(&mut packet);
            return self.drop_failed(packet, failure, recorder);
        };
        let parsed_now = matches!(again, Some(Work::Ingress(..)));
        if parsed_now && self.is_parser_error(packet.state.parser_error()) {
            self.registry.take_back(self.stats.parser_errors, 1);
        }
        match self.refuse(refusal, again.map(ParkedPacket::Work)) {
            None => recorder.end(packet.pass, || PassOutcome::Parked),
            Some(reason) => recorder.end(packet.pass, || PassOutcome::dropped(reason, None)),
        }
        self.recycle(packet);
    }

    /// Undoes a pass that may not use a row, and parks its packet, or drops it and returns the reason.
    pub(super) fn refuse(&mut self, refusal: RowRefusal, again: Option<ParkedPacket>) -> Option<DropReason> {
        self.objects.undo_pass();
        let rows = self.rows.as_mut()?;
        rows.current = None;
        let reason = match (refusal, again) {
            (RowRefusal::Absent(row), Some(again)) if rows.parked.has_room() => {
                let is_first = rows.parked.park(row, again);
                // The packets of an elastic entry are followed to each key that they wait for.
                if is_first || rows.parked.is_elastic(row) {
                    rows.awaited.push(AwaitedRow { row, after: rows.parked.origin });
                }
                return None;
            }
            (RowRefusal::Absent(row), again) => {
                if rows.parked.of_row(row) == 0 {
                    self.objects.forget_row(row);
                }
                if let Some(ParkedPacket::Frame(frame)) = again {
                    rows.parked.reuse(frame);
                }
                if rows.parked.is_elastic(row) { DropReason::TableQueueFull } else { DropReason::RowQueueFull }
            }
            (RowRefusal::Second(_), _) => DropReason::SecondRow,
            (RowRefusal::Stale(_), _) => DropReason::StaleSnapshot,
        };
        self.drops.count(&mut self.registry, reason, 0);
        Some(reason)
    }

    /// Ends the pass of a packet in place, from the parser on. Returns false if the packet waits for a row, or was
    /// dropped because of one.
    pub(super) fn end_pass_in_place(
        &mut self,
        lent: &InPlacePacket<'_>,
        outcome: UnitOutcome,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> bool {
        if self.rows.is_none() {
            return true;
        }
        let Some(refusal) = self.objects.take_refusal().filter(|_| is_refused(outcome)) else {
            self.end_running_pass();
            return true;
        };
        debug_assert_eq!(came.passes, 0, "a packet that passes again leaves its buffer before");
        output.record_copy(PathReason::Resilient);
        self.park_received(refusal, lent.input(), came);
        false
    }

    /// Parks a packet in place that code may have changed, or drops it.
    pub(super) fn park_received(&mut self, refusal: RowRefusal, changed: &[u8], came: ReceivedPacket<'_>) {
        let is_kept = self.machine.as_ref().is_some_and(|machine| machine.keeps_original);
        let kept = if is_kept { &came.original[..came.original.len().min(changed.len())] } else { &[] };
        let Some(rows) = &mut self.rows else { return };
        let again = match refusal {
            RowRefusal::Absent(row) if rows.parked.is_elastic(row) => {
                ParkedPacket::Frame(rows.parked.frame([kept, &changed[kept.len()..]], came.by))
            }
            _ => {
                let received = [kept, &changed[kept.len()..]].concat();
                ParkedPacket::Work(Work::Ingress(self.packet(received, came.by, None, &mut ()), came.at))
            }
        };
        self.refuse(refusal, Some(again));
    }

    /// Ends the pass of a packet at which a batch stopped, like [`Switch::end_pass_in_place`].
    pub(super) fn end_batched_pass(
        &mut self,
        lent: &mut InPlacePacket<'_>,
        outcome: UnitOutcome,
        came: ReceivedPacket<'_>,
        output: &mut PacketOutput<'_>,
    ) -> bool {
        lent.take_over_pass(&mut self.objects);
        self.end_pass_in_place(lent, outcome, came, output)
    }

    /// Ends a pass that completed. Later outputs depend on it.
    pub(super) fn end_running_pass(&mut self) {
        if let Some(rows) = &mut self.rows {
            rows.current = self.objects.end_pass();
        }
    }

    /// Continues with a packet that has used this row, if any.
    pub(super) fn continue_pass(&mut self, row: Option<Dependency>) {
        if let Some(rows) = &mut self.rows {
            rows.current = row;
        }
    }

    /// Whether current outputs must wait.
    pub(super) fn must_hold(&self) -> bool {
        self.rows.as_ref().is_some_and(|rows| rows.waits_for().is_some())
    }

    /// Returns the row that packets made now have used: that of the running pass.
    pub(super) fn current_row(&self) -> Option<Dependency> {
        self.rows.as_ref().and_then(|rows| rows.current)
    }

    /// Forgets the running pass: later outputs belong to no packet, or to another one.
    pub(super) fn leave_pass(&mut self) {
        if let Some(rows) = &mut self.rows {
            rows.current = None;
        }
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
    fn own_rows(&mut self, max_parked: usize) {
        let groups = self.program.resilient_groups().expect("a valid program has valid annotations");
        self.objects.own_rows(&self.program, &groups);
        let parked = ParkedPackets::new(max_parked, groups.len());
        self.rows = Some(Box::new(RowQueues { parked, ..RowQueues::default() }));
    }

    fn count_received(&mut self, port: PortId, bytes: usize) {
        self.ports.count_rx(&mut self.registry, port, bytes);
    }

    fn count_sent(&mut self, port: PortId, bytes: usize) {
        self.ports.count_tx(&mut self.registry, port, bytes);
    }

    #[inline]
    fn has_waiting(&self) -> bool {
        self.rows.as_ref().is_some_and(|rows| !rows.awaited.is_empty() || !rows.held.is_empty())
    }

    fn swap_awaited(&mut self, into: &mut Vec<AwaitedRow>) {
        into.clear();
        if let Some(rows) = &mut self.rows {
            std::mem::swap(&mut rows.awaited, into);
        }
    }

    fn parked(&self, row: StateRow) -> usize {
        self.rows.as_ref().map_or(0, |rows| rows.parked.of_row(row))
    }

    fn all_parked(&self) -> usize {
        self.rows.as_ref().map_or(0, |rows| rows.parked.count())
    }

    fn resume(&mut self, row: StateRow) {
        if let Some(rows) = &mut self.rows {
            rows.parked.resume(row);
        }
    }

    fn resume_without(&mut self, row: StateRow, most: usize) {
        let missing = self.objects.missing_row(row);
        for _ in 0..most {
            let Some(packet) = self.rows.as_mut().and_then(|rows| rows.parked.take_first(row)) else { return };
            let mut work = self.work_of(packet, Time::ZERO);
            work.packet_mut().missing.extend(missing.clone());
            if let Some(rows) = &mut self.rows {
                rows.parked.resume_packet(row, ParkedPacket::Work(work));
            }
        }
    }

    fn drop_parked(&mut self, row: StateRow, reason: DropReason) {
        while let Some(packet) = self.rows.as_mut().and_then(|rows| rows.parked.take_first(row)) {
            match packet {
                ParkedPacket::Work(work) => self.drop_packet(work.into_packet(), reason, &mut ()),
                ParkedPacket::Frame(frame) => {
                    self.drops.count(&mut self.registry, reason, 0);
                    if let Some(rows) = &mut self.rows {
                        rows.parked.reuse(frame);
                    }
                }
            }
        }
    }

    fn drop_all_parked(&mut self, reason: DropReason) {
        let rows = self.rows.as_ref().map(|rows| rows.parked.rows()).unwrap_or_default();
        rows.into_iter().for_each(|row| self.drop_parked(row, reason));
    }

    fn release_notification(&mut self, notification: Notification) {
        self.queue_notification(notification);
    }

    fn count_lost_notification(&mut self) {
        self.registry.add(self.stats.lost_notifications, 1);
    }

    fn swap_held(&mut self, into: &mut Vec<HeldOutput>) {
        into.clear();
        if let Some(rows) = &mut self.rows {
            std::mem::swap(&mut rows.held, into);
        }
    }
}
