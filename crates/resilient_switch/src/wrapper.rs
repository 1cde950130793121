//! The wrapper: what happens around each step of the switch inside.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::{RowState, StateRow};
use ir::{Program, ReplicationMode, ResilientGroup};
use resilient::message::IfMissing;
use resilient::{
    DatagramSealer, NodeId, RefusalReason, ReplicaConfig, ReplicaEvent, RowId, RowValues, StateReplica, StoreLayout,
    StoreMessage, SwitchId,
};
use switch::{DropReason, Frame, Notification, Output, RowSwitch, Time};

use crate::held::HeldOutputs;
use crate::in_band::{InBand, InBandCarrier};
use crate::kept::KeptRows;
use crate::row_format::{RowFormat, RowKind};

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

/// Reason that a program's state cannot be replicated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResilientError {
    /// The program has no resilient state.
    #[error("the program has no @resilient register or table, so there is nothing to replicate")]
    NoState,
    /// A group is replicated by snapshots.
    #[error("\"{group}\" has \"every\": snapshots are not supported yet")]
    Snapshots {
        /// The group.
        group: String,
    },
}

/// Returns the groups of a valid program's resilient state.
///
/// # Errors
/// If there are none, or some that cannot be replicated.
pub fn replicated_groups(program: &Program) -> Result<Vec<ResilientGroup>, ResilientError> {
    let groups = program.resilient_groups().expect("a valid program has valid annotations");
    match groups.iter().find(|group| group.mode != ReplicationMode::EveryWrite) {
        Some(group) => Err(ResilientError::Snapshots { group: group.name.clone() }),
        None if groups.is_empty() => Err(ResilientError::NoState),
        None => Ok(groups),
    }
}

/// A switch whose rows are replicated.
pub struct ResilientSwitch<S> {
    pub(crate) inner: S,
    replica: StateReplica,
    has_sessions: bool,
    formats: Vec<RowFormat>,
    /// For each row of tables that was asked for, the number of packets that waited for it by then.
    asked: BTreeMap<StateRow, usize>,
    /// Rows of tables whose packets wait for further rows.
    kept: KeptRows,
    held: HeldOutputs,
    max_held_bytes: usize,
    /// How messages travel if the switch itself carries them.
    pub(crate) in_band: Option<InBandCarrier>,
    messages: Vec<(NodeId, StoreMessage)>,
    /// Notifications that were held.
    pub(crate) notifications: Vec<Notification>,
}

impl<S: RowSwitch> ResilientSwitch<S> {
    /// Wraps a switch whose program has resilient state. `incarnation` is random, and never used before by a
    /// switch with this number.
    ///
    /// # Errors
    /// If the program has no resilient state, or some that cannot be replicated.
    pub fn new(
        mut inner: S,
        config: ResilientConfig,
        layout: Arc<StoreLayout>,
        (number, incarnation): (SwitchId, u64),
    ) -> Result<ResilientSwitch<S>, ResilientError> {
        let program = Arc::clone(inner.program());
        let groups = replicated_groups(&program)?;
        let formats = (0..groups.len()).map(|number| RowFormat::new(&program, &groups, number)).collect();
        inner.own_rows(config.max_parked);
        Ok(ResilientSwitch {
            inner,
            replica: StateReplica::new(config.replica, layout, number, incarnation),
            has_sessions: false,
            formats,
            asked: BTreeMap::new(),
            kept: KeptRows::new(rng::mix([incarnation, u64::from(number.0), 0]), config.replica.retransmit_ns),
            held: HeldOutputs::default(),
            max_held_bytes: config.max_held_bytes,
            in_band: None,
            messages: Vec::new(),
            notifications: Vec::new(),
        })
    }

    /// Carries messages in frames between ports from now on, in datagrams that `sealer` seals and opens.
    pub fn carry_in_band(&mut self, in_band: InBand, sealer: DatagramSealer) {
        self.in_band = Some(InBandCarrier::new(in_band, sealer));
    }

    /// Returns the switch inside.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Ends the replication, and returns the switch inside. Outputs that wait for acknowledgements are dropped.
    pub fn into_inner(self) -> S {
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

    /// Takes a message of a store, and appends the frames that may leave now to `output`.
    pub fn deliver(&mut self, now: Time, from: NodeId, message: &StoreMessage, output: &mut Vec<Frame>) {
        self.replica.receive(now, from, message);
        self.act(now, output);
    }

    /// Takes a layout of the operator.
    pub fn set_layout(&mut self, now: Time, layout: &Arc<StoreLayout>, output: &mut Vec<Frame>) {
        self.replica.set_layout(now, layout);
        self.act(now, output);
    }

    /// Returns the epoch of the layout, which is 0 until there is one with stores.
    pub fn layout_epoch(&self) -> u64 {
        self.replica.layout().epoch()
    }

    /// Begins a step: rows whose lease has ended are taken from the program before it runs.
    pub(crate) fn begin_step(&mut self, now: Time, output: &mut Vec<Frame>) {
        if !std::mem::replace(&mut self.has_sessions, true) {
            // A switch that is to take over has its lease before the first packet.
            self.replica.open_sessions(now);
        }
        self.replica.tick(now);
        self.act(now, output);
        for id in self.kept.take_due(now) {
            self.replica.finished_parked(now, &id);
        }
        self.act(now, output);
    }

    /// Ends a step of the switch inside: replicates what packets wrote, and holds what depends on it.
    pub(crate) fn end_step(&mut self, now: Time, output: &mut Vec<Frame>) {
        self.collect(now, output);
        self.act(now, output);
    }

    /// Returns the time at which the protocol has something to do.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let deadline = || self.replica.next_deadline().into_iter().chain(self.kept.next_due()).min();
        if self.has_sessions { deadline() } else { Some(Time::ZERO) }
    }

    /// Takes from the switch inside what the last step left: writes, outputs that wait, rows that packets wait for.
    /// Returns these rows.
    fn collect(&mut self, now: Time, output: &mut Vec<Frame>) -> Vec<StateRow> {
        let writes = self.inner.objects_mut().take_row_writes();
        let mut written = BTreeSet::new();
        for write in writes {
            // The values are those after the last write; outputs wait for them from the first one on.
            if written.insert(write.row) {
                self.write(now, write.row, write.writes);
            }
        }
        for held in self.inner.take_held() {
            if !self.held.must_wait(held.dependency) {
                self.release(held.output, output);
            } else if self.held.bytes() >= self.max_held_bytes {
                self.drop_output(held.output, DropReason::RowQueueFull);
            } else {
                self.held.hold(held);
            }
        }
        let awaited = self.inner.take_awaited();
        awaited.iter().for_each(|row| self.acquire(now, *row));
        awaited
    }

    /// Asks for a row for which packets wait.
    fn acquire(&mut self, now: Time, row: StateRow) {
        let Some(id) = self.row_id(row) else { return };
        let if_missing = match &self.formats[row.group as usize].rows {
            RowKind::Arrays(_) => IfMissing::Grant,
            RowKind::Tables { creation } => {
                self.asked.entry(row).or_insert(self.inner.parked(row));
                if self.inner.objects().row_has_maker(row) { creation.clone() } else { IfMissing::Refuse }
            }
        };
        self.replica.acquire_or(now, id, if_missing);
    }

    /// Returns the stores' name of a row; `None` if the switch neither owns it nor waits for it.
    fn row_id(&self, row: StateRow) -> Option<RowId> {
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

    /// Replicates the values of a row.
    fn write(&mut self, now: Time, row: StateRow, writes: u64) {
        let (Some(id), RowKind::Arrays(format)) = (self.row_id(row), &self.formats[row.group as usize].rows) else {
            unreachable!("packets write rows of arrays")
        };
        let values = format.to_bytes(&self.inner.objects().row_values(row));
        let seq = self.replica.write(now, &id, Some(values));
        if self.replica.acknowledged(&id) < seq {
            self.held.wrote(row, writes, seq);
        } else if !self.held.is_pending(row) {
            self.inner.objects_mut().set_row_state(row, RowState::Owned);
        }
    }

    /// Carries out what the protocol decided, until nothing is left to do.
    fn act(&mut self, now: Time, output: &mut Vec<Frame>) {
        loop {
            let events: Vec<ReplicaEvent> = self.replica.take_events().collect();
            if events.is_empty() {
                break;
            }
            events.into_iter().for_each(|event| self.event(now, event, output));
        }
        if let Some(in_band) = self.in_band.as_mut().filter(|_| !self.messages.is_empty()) {
            in_band.send(now, self.messages.drain(..));
            output.extend(in_band.take_frames());
        }
    }

    fn event(&mut self, now: Time, event: ReplicaEvent, output: &mut Vec<Frame>) {
        match event {
            ReplicaEvent::Granted { row: id, values } => self.granted(now, &id, values.as_ref(), output),
            ReplicaEvent::Refused { row: id, reason } => self.refused(now, &id, reason, output),
            ReplicaEvent::Acknowledged { row: id, seq } => {
                let Some(row) = self.row(&id) else { return };
                for settled in self.held.settle(row, seq) {
                    self.release(settled, output);
                }
                if !self.held.is_pending(row) && self.inner.objects().row_state(row) == RowState::Unacknowledged {
                    self.inner.objects_mut().set_row_state(row, RowState::Owned);
                }
            }
            ReplicaEvent::Lost { row: id, .. } => {
                let Some(row) = self.row(&id) else { return };
                match &self.formats[row.group as usize].rows {
                    RowKind::Arrays(_) => self.inner.objects_mut().set_row_state(row, RowState::Absent),
                    RowKind::Tables { .. } => {
                        self.inner.objects_mut().remove_row_entries(row);
                        self.forget(now, row);
                    }
                }
            }
            ReplicaEvent::Abandoned { row: id, seq } => {
                let Some(row) = self.row(&id) else { return };
                for settled in self.held.settle(row, seq) {
                    self.drop_output(settled, DropReason::RowUnavailable);
                }
            }
            ReplicaEvent::Send { to, message } => self.messages.push((to, message)),
        }
    }

    /// Takes a row into possession, and runs the packets that wait for it.
    fn granted(&mut self, now: Time, id: &RowId, values: Option<&RowValues>, output: &mut Vec<Frame>) {
        let group = self.group(id);
        let objects = self.inner.objects_mut();
        let taken = match group.map(|group| (group, &self.formats[group].rows)) {
            None => None,
            Some((_, RowKind::Arrays(format))) => self.row(id).map(|row| match format.to_values(values) {
                Some(values) => {
                    let objects = self.inner.objects_mut();
                    objects.set_row_values(row, &values);
                    objects.set_row_state(row, RowState::Owned);
                    (row, true)
                }
                None => (row, false),
            }),
            Some((group, RowKind::Tables { .. })) => objects.track_row(group as u32, id.key()).map(|row| {
                self.asked.remove(&row);
                (row, values.is_some_and(|values| objects.add_row_entries(row, values.bytes())))
            }),
        };
        match taken {
            Some((row, true)) => {
                self.inner.resume(row);
                self.inner.step(now, &mut Vec::new(), output);
                let awaited = self.collect(now, output);
                self.settle_kept(now, row);
                if !awaited.is_empty() && self.inner.objects().row_key(row).is_some() {
                    // Another switch may have what they wait for, and wait for this row.
                    return self.kept.keep(now, id, awaited);
                }
            }
            Some((row, false)) => {
                self.inner.drop_parked(row, DropReason::RowUnavailable);
                self.replica.release(now, id);
            }
            None => self.replica.release(now, id),
        }
        self.replica.finished_parked(now, id);
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
            self.inner.drop_parked(row, DropReason::RowUnavailable);
        }
        self.settle_kept(now, row);
        self.forget(now, row);
    }

    /// Lets the rows go that were kept because their packets waited for this one.
    fn settle_kept(&mut self, now: Time, row: StateRow) {
        for id in self.kept.settle(row) {
            self.replica.finished_parked(now, &id);
        }
    }

    /// Returns the place of a row's group, if the program has it.
    fn group(&self, id: &RowId) -> Option<usize> {
        self.formats.iter().position(|format| format.id == id.group())
    }

    /// Returns the row that a name of the stores means, if the program has it, and the switch knows it.
    fn row(&self, id: &RowId) -> Option<StateRow> {
        let (group, objects) = (self.group(id)?, self.inner.objects());
        match &self.formats[group].rows {
            RowKind::Arrays(_) => {
                let index = u32::from_be_bytes(id.key().try_into().ok()?);
                let row = StateRow { group: group as u32, index: u64::from(index) };
                objects.has_row(row).then_some(row)
            }
            RowKind::Tables { .. } => objects.row_with_key(group as u32, id.key()),
        }
    }

    /// Lets an output leave.
    fn release(&mut self, released: Output, output: &mut Vec<Frame>) {
        match released {
            Output::Frame(frame) => output.push(frame),
            Output::Notification(notification) => self.notifications.push(notification),
        }
    }

    /// Drops an output: its frame counts as dropped and no more as sent.
    fn drop_output(&mut self, dropped: Output, reason: DropReason) {
        if let Output::Frame(Frame { port, data }) = dropped {
            self.inner.take_back_sent(port, &[(reason, 1)], data.len() as u64);
        }
    }
}
