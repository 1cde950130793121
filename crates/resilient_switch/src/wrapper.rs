//! The wrapper: what happens around each step of the switch inside.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::{RowState, StateRow};
use ir::{Program, ReplicationMode, ResilientGroup};
use resilient::{NodeId, ReplicaConfig, ReplicaEvent, StateReplica, StoreLayout, StoreMessage, SwitchId};
use switch::{DropReason, Frame, Notification, Output, RowSwitch, Time};

use crate::held::HeldOutputs;
use crate::in_band::InBand;
use crate::row_format::{RowFormat, row_id, row_of};

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
    #[error("the program has no @resilient register, so there is nothing to replicate")]
    NoState,
    /// A group is replicated by snapshots.
    #[error("\"{group}\" has \"every\": snapshots are not supported yet")]
    Snapshots {
        /// The group.
        group: String,
    },
}

/// Returns the groups of a valid program's resilient registers.
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
    held: HeldOutputs,
    max_held_bytes: usize,
    /// How messages travel if the switch itself carries them.
    pub(crate) in_band: Option<InBand>,
    messages: Vec<(NodeId, StoreMessage)>,
    /// Notifications that were held.
    pub(crate) notifications: Vec<Notification>,
}

impl<S: RowSwitch> ResilientSwitch<S> {
    /// Wraps a switch whose program has resilient registers. `incarnation` is random, and never used before by a
    /// switch with this number.
    ///
    /// # Errors
    /// If the program has no resilient registers, or some that cannot be replicated.
    pub fn new(
        mut inner: S,
        config: ResilientConfig,
        layout: Arc<StoreLayout>,
        (number, incarnation): (SwitchId, u64),
    ) -> Result<ResilientSwitch<S>, ResilientError> {
        let program = Arc::clone(inner.program());
        let groups = replicated_groups(&program)?;
        let formats = groups.iter().map(|group| RowFormat::new(&program, group)).collect();
        inner.own_rows(config.max_parked);
        Ok(ResilientSwitch {
            inner,
            replica: StateReplica::new(config.replica, layout, number, incarnation),
            has_sessions: false,
            formats,
            held: HeldOutputs::default(),
            max_held_bytes: config.max_held_bytes,
            in_band: None,
            messages: Vec::new(),
            notifications: Vec::new(),
        })
    }

    /// Carries messages in frames between ports from now on.
    pub fn carry_in_band(&mut self, in_band: InBand) {
        self.in_band = Some(in_band);
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
    }

    /// Ends a step of the switch inside: replicates what packets wrote, and holds what depends on it.
    pub(crate) fn end_step(&mut self, now: Time, output: &mut Vec<Frame>) {
        self.collect(now, output);
        self.act(now, output);
    }

    /// Returns the time at which the protocol has something to do.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        if self.has_sessions { self.replica.next_deadline() } else { Some(Time::ZERO) }
    }

    /// Takes from the switch inside what the last step left: writes, outputs that wait, rows that packets wait for.
    fn collect(&mut self, now: Time, output: &mut Vec<Frame>) {
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
        for row in self.inner.take_awaited() {
            self.replica.acquire(now, row_id(row));
        }
    }

    /// Replicates the values of a row.
    fn write(&mut self, now: Time, row: StateRow, writes: u64) {
        let id = row_id(row);
        let values = self.inner.objects().row_values(row);
        let values = self.formats[row.group as usize].to_bytes(&values);
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
        if let Some(in_band) = self.in_band.as_ref().filter(|_| !self.messages.is_empty()) {
            output.extend(in_band.frames(&self.messages));
            self.messages.clear();
        }
    }

    fn event(&mut self, now: Time, event: ReplicaEvent, output: &mut Vec<Frame>) {
        match event {
            ReplicaEvent::Granted { row: id, values } => {
                let Some(row) = self.row(&id) else { return self.replica.finished_parked(now, &id) };
                let Some(values) = self.formats[row.group as usize].to_values(values.as_ref()) else {
                    self.inner.drop_parked(row, DropReason::RowUnavailable);
                    return self.replica.finished_parked(now, &id);
                };
                self.inner.objects_mut().set_row_values(row, &values);
                self.inner.objects_mut().set_row_state(row, RowState::Owned);
                self.inner.resume(row);
                self.inner.step(now, &mut Vec::new(), output);
                self.collect(now, output);
                self.replica.finished_parked(now, &id);
            }
            ReplicaEvent::Refused { row: id, .. } => {
                if let Some(row) = self.row(&id) {
                    self.inner.drop_parked(row, DropReason::RowUnavailable);
                }
            }
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
                if let Some(row) = self.row(&id) {
                    self.inner.objects_mut().set_row_state(row, RowState::Absent);
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

    /// Returns the row that a name of the stores means, if the program has it.
    fn row(&self, id: &resilient::RowId) -> Option<StateRow> {
        let row = row_of(id)?;
        self.inner.objects().has_row(row).then_some(row)
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
