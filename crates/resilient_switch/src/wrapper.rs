//! The wrapper: what happens around each step of the switch inside.

use std::collections::BTreeMap;
use std::sync::Arc;

use bits::Bits;
use engine::{RowState, RowWrite, StateRow};
use ir::{Program, ResilientGroup};
use resilient::message::IfMissing;
use resilient::{
    DatagramSealer, HoldMode, NodeId, RefusalReason, ReplicaConfig, ReplicaEvent, RowAccess, RowId, RowValues,
    SnapshotLimits, SnapshotReplica, StateReplica, StoreLayout, StoreMessage, SwitchId, WriteProgress,
};
use switch::{DropReason, Frame, HeldOutput, Output, RowSwitch, Time};

use crate::counts::{EventCounts, drop_reason};
use crate::held::{HeldOutputs, HoldResult};
use crate::idle::IdleRows;
use crate::in_band::{InBand, InBandCarrier};
use crate::kept::KeptRows;
use crate::piggyback::{CarriedFrames, FrameBundle};
use crate::planned_move::PlannedMove;
use crate::row_format::{RowFormat, RowKind, group_of};
use crate::snapshots::{array_row, with_snapshots};
use crate::write_prediction::WritePrediction;

/// Settings of the wrapper.
#[derive(Clone, Copy, Debug)]
pub struct ResilientConfig {
    /// Settings of the protocol.
    pub replica: ReplicaConfig,
    /// Maximum number of packets that wait for rows. Further ones are dropped and counted.
    pub max_parked: usize,
    /// Maximum memory of outputs that wait for acknowledgements, in bytes. Further ones are dropped and counted.
    pub max_held_bytes: usize,
}

impl Default for ResilientConfig {
    fn default() -> Self {
        ResilientConfig { replica: ReplicaConfig::default(), max_parked: 4096, max_held_bytes: 64 << 20 }
    }
}

/// Maximum number of events for which memory is kept.
const MAX_KEPT_EVENTS: usize = 4096;

/// The reason for which the methods for other rows get no row with snapshots.
const OF_SNAPSHOTS: &str = "`act` gives the events of rows with snapshots to their machine";

/// Reason that stores keep the values of every row.
const ROW_LENGTH: &str = "a valid program has rows of this length";

/// Reason that a program's state cannot be replicated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResilientError {
    /// The program has no resilient state.
    #[error("the program has no @resilient register or table, so there is nothing to replicate")]
    NoState,
}

/// Returns the groups of a valid program's resilient state.
///
/// # Errors
/// If there are none.
pub fn replicated_groups(program: &Program) -> Result<Vec<ResilientGroup>, ResilientError> {
    let groups = program.resilient_groups().expect("a valid program has valid annotations");
    if groups.is_empty() { Err(ResilientError::NoState) } else { Ok(groups) }
}

/// A switch whose rows are replicated.
pub struct ResilientSwitch<S> {
    pub(crate) inner: S,
    pub(crate) replica: StateReplica,
    pub(crate) snapshots: SnapshotReplica,
    has_sessions: bool,
    /// The next deadline of the protocol; before it, only events need work.
    quiet_until: Time,
    pub(crate) groups: Vec<ResilientGroup>,
    pub(crate) formats: Vec<RowFormat>,
    /// For each row of tables that was asked for, the number of packets that waited for it by then.
    pub(crate) asked: BTreeMap<StateRow, usize>,
    /// Rows whose packets wait for further rows.
    pub(crate) kept: KeptRows,
    idle: IdleRows,
    prediction: WritePrediction,
    pub(crate) held: HeldOutputs,
    /// The place in which outputs wait for acknowledgements.
    pub(crate) hold: HoldMode,
    pub(crate) carried: CarriedFrames,
    pub(crate) counts: EventCounts,
    /// The last move of rows to other switches.
    pub(crate) planned: Option<PlannedMove>,
    max_held_bytes: usize,
    /// The conversion of messages into frames, if the switch itself carries them.
    pub(crate) in_band: Option<InBandCarrier>,
    messages: Vec<(NodeId, StoreMessage)>,
    /// Memory of lists that each step fills anew.
    writes: Vec<RowWrite>,
    waiting: Vec<HeldOutput>,
    events: Vec<ReplicaEvent>,
    settled: Vec<Output>,
    row_bytes: Vec<u8>,
}

impl<S: RowSwitch> ResilientSwitch<S> {
    /// Wraps a switch whose program has resilient state. `incarnation` is random, and never used before by a
    /// switch with this number.
    ///
    /// # Errors
    /// If the program has no resilient state.
    pub fn new(
        mut inner: S,
        config: ResilientConfig,
        layout: Arc<StoreLayout>,
        (number, incarnation): (SwitchId, u64),
    ) -> Result<ResilientSwitch<S>, ResilientError> {
        let program = Arc::clone(inner.program());
        let groups = replicated_groups(&program)?;
        let formats: Vec<RowFormat> =
            (0..groups.len()).map(|number| RowFormat::new(&program, &groups, number)).collect();
        let forms = formats.iter().filter_map(|format| match &format.rows {
            RowKind::Snapshots(snapshots) => Some((format.id, snapshots.form)),
            RowKind::Arrays(_) | RowKind::Tables { .. } => None,
        });
        let snapshots = SnapshotReplica::new(forms.collect(), SnapshotLimits::default(), config.replica.mutation);
        inner.own_rows(config.max_parked);
        Ok(ResilientSwitch {
            inner,
            replica: StateReplica::new(config.replica, layout, number, incarnation),
            snapshots,
            has_sessions: false,
            quiet_until: Time::ZERO,
            groups,
            idle: IdleRows::new(formats.iter().map(|format| format.idle_ms)),
            prediction: WritePrediction::new(formats.len()),
            formats,
            asked: BTreeMap::new(),
            kept: KeptRows::new(rng::mix([incarnation, u64::from(number.0), 0]), config.replica.retransmit_ns),
            held: HeldOutputs::default(),
            hold: config.replica.hold,
            carried: CarriedFrames::default(),
            counts: EventCounts::default(),
            planned: None,
            max_held_bytes: config.max_held_bytes,
            in_band: None,
            messages: Vec::new(),
            writes: Vec::new(),
            waiting: Vec::new(),
            events: Vec::new(),
            settled: Vec::new(),
            row_bytes: Vec::new(),
        })
    }

    /// Switches to messages in frames between ports, in datagrams that `sealer` seals and opens.
    pub fn carry_in_band(&mut self, in_band: InBand, sealer: DatagramSealer) {
        self.in_band = Some(InBandCarrier::new(in_band, sealer));
    }

    /// Returns the switch inside.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Ends the replication, and returns the switch inside. Packets that wait for rows, and outputs that wait for
    /// acknowledgements, are dropped and counted.
    pub fn into_inner(mut self) -> S {
        self.stop_waiting();
        self.inner
    }

    /// Returns the number of outputs that wait for acknowledgements.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Removes and returns the messages for the stores, unless frames carry them.
    pub fn take_messages(&mut self) -> Vec<(NodeId, StoreMessage)> {
        std::mem::take(&mut self.messages)
    }

    /// Handles a message of a store, and appends the frames that may leave now to `output`.
    pub fn deliver(&mut self, now: Time, from: NodeId, message: &StoreMessage, output: &mut Vec<Frame>) {
        self.deliver_all(now, std::iter::once((from, message)), output);
    }

    /// Handles messages of stores in order. Consecutive acknowledgements are processed together: no packet
    /// runs in between, so none uses a row that they would release.
    pub fn deliver_all<'m>(
        &mut self,
        now: Time,
        messages: impl Iterator<Item = (NodeId, &'m StoreMessage)>,
        output: &mut Vec<Frame>,
    ) {
        let mut has_effects = false;
        for (from, message) in messages {
            let is_acknowledgement = message.is_acknowledgement();
            if has_effects && !is_acknowledgement {
                self.act(now, output);
            }
            self.replica.receive(now, from, message);
            has_effects = is_acknowledgement;
            if !is_acknowledgement {
                self.act(now, output);
            }
        }
        if has_effects {
            self.act(now, output);
        }
    }

    /// Handles a layout of the operator.
    pub fn set_layout(&mut self, now: Time, layout: &Arc<StoreLayout>, output: &mut Vec<Frame>) {
        self.replica.set_layout(now, layout);
        self.act(now, output);
    }

    /// Returns the epoch of the layout, which is 0 until there is one with stores.
    pub fn layout_epoch(&self) -> u64 {
        self.replica.layout().epoch()
    }

    /// Begins a step: rows whose lease has ended are taken from the program before it runs.
    #[inline]
    pub(crate) fn begin_step(&mut self, now: Time, output: &mut Vec<Frame>) {
        if now >= self.quiet_until {
            self.do_due(now, output);
        }
    }

    /// Performs the work that is due, if any.
    fn do_due(&mut self, now: Time, output: &mut Vec<Frame>) {
        let is_new = !self.has_sessions;
        if let Some(deadline) = self.next_deadline().filter(|deadline| *deadline > now) {
            self.quiet_until = deadline;
            return;
        }
        if is_new {
            // A switch that is to take over has its lease before the first packet.
            self.has_sessions = true;
            self.replica.open_sessions(now);
        }
        self.replica.tick(now);
        self.act(now, output);
        with_snapshots!(self.tick(now));
        self.act(now, output);
        self.release_idle(now);
        for id in self.kept.take_due(now) {
            self.unpin(now, &id);
        }
        self.act(now, output);
    }

    /// Ends a step of the switch inside: replicates what packets wrote, and holds what depends on it.
    #[inline]
    pub(crate) fn end_step(&mut self, now: Time, output: &mut Vec<Frame>) {
        if self.inner.objects().has_row_changes() || self.inner.has_waiting() {
            self.collect(now, output);
            self.act(now, output);
        }
    }

    /// Returns the time at which the protocol has something to do.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let others =
            || self.kept.next_due().into_iter().chain(self.idle.next_due()).chain(self.snapshots.next_deadline());
        let deadline = || self.replica.next_deadline().into_iter().chain(others()).min();
        if self.has_sessions { deadline() } else { Some(Time::ZERO) }
    }

    /// Takes the results of the last step from the switch inside: writes, outputs that wait, rows that packets wait
    /// for. Returns these rows.
    pub(crate) fn collect(&mut self, now: Time, output: &mut Vec<Frame>) -> Vec<StateRow> {
        let (mut writes, mut waiting) = (std::mem::take(&mut self.writes), std::mem::take(&mut self.waiting));
        self.inner.objects_mut().swap_row_writes(&mut writes);
        self.inner.swap_held(&mut waiting);
        let mut bundles = self.bundle_frames(&writes, &mut waiting);
        self.held.begin_step();
        for RowWrite { row, writes } in writes.drain(..) {
            self.write(now, row, writes, &mut bundles);
        }
        self.note_changes(now);
        for held in waiting.drain(..) {
            match self.held.hold(held, self.max_held_bytes) {
                HoldResult::Held => {}
                HoldResult::Leaves(free) => self.release(free, output),
                HoldResult::Full(lost) => self.drop_output(lost, DropReason::RowQueueFull),
            }
        }
        (self.writes, self.waiting) = (writes, waiting);
        let awaited = self.inner.take_awaited();
        awaited.iter().for_each(|row| self.acquire(now, *row));
        awaited
    }

    /// Asks for a row for which packets wait.
    pub(crate) fn acquire(&mut self, now: Time, row: StateRow) {
        let Some(id) = self.row_id(row) else { return };
        if self.is_kept_away(now, row) {
            // A row that was shared is no longer usable.
            self.replica.release(now, &id);
            return self.drop_away(row);
        }
        let (access, if_missing) = match &self.formats[row.group as usize].rows {
            RowKind::Snapshots(_) => return self.snapshots.acquire(now, &mut self.replica, id),
            RowKind::Arrays(_) => (self.array_access(now, row, &id), IfMissing::Grant),
            RowKind::Tables { creation } => {
                self.asked.entry(row).or_insert(self.inner.parked(row));
                let makes_row = self.inner.objects().row_has_maker(row);
                (RowAccess::Read, if makes_row { creation.clone() } else { IfMissing::Refuse })
            }
        };
        self.replica.acquire_or(now, id, access, if_missing, self.formats[row.group as usize].idle_ms);
    }

    /// Returns the use for which packets need a row of arrays.
    fn array_access(&self, now: Time, row: StateRow, id: &RowId) -> RowAccess {
        let RowKind::Arrays(format) = &self.formats[row.group as usize].rows else { return RowAccess::Write };
        // A packet that waits for a shared row wants to write it.
        let writes = self.inner.objects().has_write_wish(row) || self.replica.is_readable(now, id);
        let reads = format.may_share && !writes && !self.prediction.predicts_write(row.group);
        if reads { RowAccess::ReadFirst } else { RowAccess::Write }
    }

    /// Gives back rows that no packet has used for their idle time.
    fn release_idle(&mut self, now: Time) {
        for row in self.idle.take_due(now, self.inner.objects()) {
            if self.inner.parked(row) == 0
                && let Some(id) = self.row_id(row)
            {
                self.replica.release_idle(now, &id);
            }
        }
    }

    /// Returns the stores' name of a row; `None` if the switch neither owns it nor waits for it.
    pub(crate) fn row_id(&self, row: StateRow) -> Option<RowId> {
        let group = self.formats[row.group as usize].id;
        match self.inner.objects().row_key(row) {
            Some(key) => RowId::new(group, key),
            None if self.inner.objects().has_row(row) => Some(RowId::of_index(group, row.index as u32)),
            None => None,
        }
    }

    /// Forgets a row of tables, unless packets wait for it: then asks for it again.
    fn forget(&mut self, now: Time, row: StateRow) {
        if self.inner.parked(row) > 0 {
            return self.acquire(now, row);
        }
        self.inner.objects_mut().forget_row(row);
    }

    /// Returns the stores' name of a row of arrays, and its values.
    pub(crate) fn row_content(&self, row: StateRow) -> Option<(RowId, RowValues)> {
        let RowKind::Arrays(_) = &self.formats[row.group as usize].rows else { return None };
        let mut bytes = Vec::new();
        self.inner.objects().append_row_bytes(row, &mut bytes);
        Some((self.row_id(row)?, RowValues::new(&bytes).expect(ROW_LENGTH)))
    }

    /// Replicates the values of a row that a packet has written, once in a step: they are those after the last write,
    /// and outputs wait for them from the first one on. The frames of its bundle travel with them.
    fn write(&mut self, now: Time, row: StateRow, writes: u64, bundles: &mut BTreeMap<StateRow, FrameBundle>) {
        let Some(mut held) = self.held.first_write(row) else { return };
        let objects = self.inner.objects();
        self.row_bytes.clear();
        objects.append_row_bytes(row, &mut self.row_bytes);
        let values = Some(RowValues::new(&self.row_bytes).expect(ROW_LENGTH));
        // Packets write rows of arrays.
        let id = RowId::of_index(self.formats[row.group as usize].id, row.index as u32);
        let bundle = if bundles.is_empty() { None } else { bundles.remove(&row) };
        let written = match bundle.and_then(|bundle| Some((bundle.outputs()?, bundle))) {
            Some((outputs, bundle)) => {
                let seq = self.replica.write_with_outputs(now, &id, values, outputs);
                self.carried.sent(row, seq, bundle);
                WriteProgress { seq, is_acknowledged: false }
            }
            None => self.replica.write_row(now, &id, values),
        };
        if !written.is_acknowledged {
            held.wrote(writes, written.seq);
        } else if !held.is_pending() {
            self.inner.objects_mut().set_row_state(row, RowState::Owned);
        }
    }

    /// Carries out the effects of the protocol, until there are none. It must follow every call of the protocol's
    /// machines.
    pub(crate) fn act(&mut self, now: Time, output: &mut Vec<Frame>) {
        self.quiet_until = Time::ZERO;
        let mut events = std::mem::take(&mut self.events);
        loop {
            let has_acted = self.act_on_snapshots(now, output);
            self.replica.swap_events(&mut events);
            if events.is_empty() && !has_acted {
                break;
            }
            for event in &mut events {
                self.counts.note(event, &self.formats);
                if event.row().is_some_and(|row| self.snapshots.has(row)) {
                    with_snapshots!(self.take(now, event));
                    self.act_on_snapshots(now, output);
                } else {
                    self.event(now, event, output);
                }
            }
        }
        // A lost lease makes an event for each row.
        events.shrink_to(MAX_KEPT_EVENTS);
        self.events = events;
        if let Some(in_band) = self.in_band.as_mut().filter(|_| !self.messages.is_empty()) {
            in_band.send(now, self.messages.drain(..));
            output.extend(in_band.take_frames());
        }
    }

    /// Handles an event that does not concern a row with snapshots. A message is moved out of it.
    fn event(&mut self, now: Time, event: &mut ReplicaEvent, output: &mut Vec<Frame>) {
        match event {
            ReplicaEvent::Granted { row: id, values, is_shared } => {
                self.granted(now, id, (values.as_ref(), *is_shared), output);
            }
            ReplicaEvent::Refused { row: id, reason } => self.refused(now, id, *reason, output),
            ReplicaEvent::OutputsReturned { row: id, seq, outputs } => {
                let Some(row) = self.row(id) else { return };
                output.extend(self.carried.returned(row, *seq, outputs));
            }
            ReplicaEvent::Acknowledged { row: id, seq } => {
                let (Some(row), seq) = (self.row(id), *seq) else { return };
                let lost = self.carried.lost(row, seq);
                self.drop_carried(lost, DropReason::RowOutputLost);
                let mut settled = std::mem::take(&mut self.settled);
                let is_settled = self.held.settle(row, seq, &mut settled);
                settled.drain(..).for_each(|settled| self.release(settled, output));
                self.settled = settled;
                if is_settled && self.inner.objects().row_state(row) == RowState::Unacknowledged {
                    self.inner.objects_mut().set_row_state(row, RowState::Owned);
                }
            }
            ReplicaEvent::Lost { row: id, .. } => {
                let Some(row) = self.row(id) else { return };
                match &self.formats[row.group as usize].rows {
                    RowKind::Arrays(_) => self.inner.objects_mut().set_row_state(row, RowState::Absent),
                    RowKind::Tables { .. } => {
                        self.inner.objects_mut().remove_row_entries(row);
                        self.forget(now, row);
                    }
                    RowKind::Snapshots(_) => unreachable!("{OF_SNAPSHOTS}"),
                }
            }
            ReplicaEvent::Recalled { .. } => {}
            ReplicaEvent::Abandoned { row: id, seq } => {
                let (Some(row), seq) = (self.row(id), *seq) else { return };
                let lost = self.carried.lost(row, seq);
                self.drop_carried(lost, DropReason::RowUnavailable);
                let mut settled = Vec::new();
                self.held.settle(row, seq, &mut settled);
                settled.into_iter().for_each(|settled| self.drop_output(settled, DropReason::RowUnavailable));
            }
            ReplicaEvent::Send { to, message } => {
                self.messages.push((*to, std::mem::replace(message, StoreMessage::LayoutRequest(0))));
            }
        }
    }

    /// Takes ownership of a row, and runs the packets that wait for it.
    fn granted(
        &mut self,
        now: Time,
        id: &RowId,
        (values, is_shared): (Option<&RowValues>, bool),
        output: &mut Vec<Frame>,
    ) {
        let objects = self.inner.objects_mut();
        // For aging, the row is used now.
        objects.advance_clock(now.as_ns());
        let taken = match group_of(&self.formats, id).map(|group| (group, &self.formats[group].rows)) {
            None => None,
            Some((_, RowKind::Arrays(format))) => match (self.row(id), format.to_values(values)) {
                (Some(row), Some(values)) => {
                    return self.granted_array(now, (row, id), (&values, is_shared), output);
                }
                (row, _) => row.map(|row| (row, false)),
            },
            Some((group, RowKind::Tables { .. })) => objects.track_row(group as u32, id.key()).map(|row| {
                self.asked.remove(&row);
                self.idle.granted(now, group);
                (row, values.is_some_and(|values| objects.add_row_entries(row, values.bytes())))
            }),
            Some((_, RowKind::Snapshots(_))) => unreachable!("{OF_SNAPSHOTS}"),
        };
        match taken {
            Some((row, true)) => return self.run_parked(now, row, id, output),
            Some((row, false)) => self.inner.drop_parked(row, DropReason::RowSwitchFull),
            None => {}
        }
        self.replica.release(now, id);
        self.unpin(now, id);
    }

    /// Takes ownership of a row of arrays, and runs the packets that wait for it. Records whether they write it, unless
    /// it was asked for because one of them does.
    fn granted_array(
        &mut self,
        now: Time,
        (row, id): (StateRow, &RowId),
        (values, is_shared): (&[Bits], bool),
        output: &mut Vec<Frame>,
    ) {
        let objects = self.inner.objects_mut();
        let was_wanted_for_writing = objects.has_write_wish(row);
        objects.set_row_values(row, values);
        objects.set_row_state(row, if is_shared { RowState::Shared } else { RowState::Owned });
        self.run_parked(now, row, id, output);
        if !was_wanted_for_writing {
            let objects = self.inner.objects();
            let has_written = objects.row_state(row) == RowState::Unacknowledged || objects.has_write_wish(row);
            self.prediction.note(row.group, has_written);
        }
    }

    /// Runs the packets that wait for a row, which the switch now has. Keeps the row if they wait for further rows:
    /// another switch may have those rows, and wait for this one.
    pub(crate) fn run_parked(&mut self, now: Time, row: StateRow, id: &RowId, output: &mut Vec<Frame>) {
        self.inner.resume(row);
        self.inner.step(now, &mut Vec::new(), output);
        let mut awaited = self.collect(now, output);
        awaited.retain(|other| *other != row);
        self.settle_kept(now, row);
        if awaited.is_empty() {
            self.unpin(now, id);
        } else {
            self.kept.keep(now, id, awaited);
        }
    }

    /// Ends the wait for a row. Packets that were there when the switch asked know that there is none, if that is why.
    fn refused(&mut self, now: Time, id: &RowId, reason: RefusalReason, output: &mut Vec<Frame>) {
        let Some(row) = self.row(id) else { return };
        let waited = self.asked.remove(&row);
        if let Some(waited) = waited.filter(|_| reason == RefusalReason::NoSuchRow) {
            self.inner.resume_without(row, waited);
            self.inner.step(now, &mut Vec::new(), output);
            self.collect(now, output);
        } else {
            self.inner.drop_parked(row, drop_reason(reason));
        }
        self.settle_kept(now, row);
        self.forget(now, row);
    }

    /// Unpins a row, so that it is given back when another switch wants it: the packets that waited for it have run.
    fn unpin(&mut self, now: Time, id: &RowId) {
        if self.snapshots.has(id) {
            with_snapshots!(self.unpin(now, id));
        } else {
            self.replica.unpin(now, id);
        }
    }

    /// Unpins the rows that were kept because their packets waited for this one.
    pub(crate) fn settle_kept(&mut self, now: Time, row: StateRow) {
        for id in self.kept.settle(row) {
            self.unpin(now, &id);
        }
    }

    /// Returns the row that a name of the stores means, if the program has it, and the switch knows it.
    fn row(&self, id: &RowId) -> Option<StateRow> {
        let (group, objects) = (group_of(&self.formats, id)?, self.inner.objects());
        match &self.formats[group].rows {
            RowKind::Arrays(_) => array_row(&self.formats, id).filter(|row| objects.has_row(*row)),
            RowKind::Tables { .. } => objects.row_with_key(group as u32, id.key()),
            RowKind::Snapshots(_) => unreachable!("{OF_SNAPSHOTS}"),
        }
    }

    /// Lets an output leave.
    fn release(&mut self, released: Output, output: &mut Vec<Frame>) {
        match released {
            Output::Frame(frame) => output.push(frame),
            Output::Notification(notification) => self.inner.release_notification(notification),
        }
    }

    /// Drops an output: its frame counts as dropped and no more as sent, its notification as lost.
    pub(crate) fn drop_output(&mut self, dropped: Output, reason: DropReason) {
        match dropped {
            Output::Frame(Frame { port, data }) => {
                self.inner.take_back_sent(port, &[(reason, 1)], data.len() as u64);
            }
            Output::Notification(_) => self.inner.count_lost_notification(),
        }
    }
}
