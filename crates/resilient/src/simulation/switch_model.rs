//! A switch with a replica: parks packets whose rows it does not own, and holds outputs.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::FixedState;
use switch::Time;

use super::carried_model::{self, CarriedModel};
use super::lookup::{self, Lookup};
use super::program::{ProgramInput, RowNumber, RowProgram, number_of, values_of};
use super::snapshot_model::{SnapshotEffect, SnapshotInput, SnapshotModel};
use crate::history::Specification;
use crate::holders::RowAccess;
use crate::layout::{NodeId, StoreLayout};
use crate::message::{IfMissing, RefusalReason, StoreMessage};
use crate::mutant::{Mutant, Mutation};
use crate::replica::{ReplicaEvent, StateReplica};
use crate::row::{RowId, RowValues};

/// Maximum number of packets that wait for one row.
const MAX_PARKED: usize = 16;

/// An input of a switch.
#[derive(Clone, Copy, Debug)]
pub struct SwitchInput {
    /// Its number in the history.
    pub number: usize,
    /// The row that it accesses.
    pub row: RowId,
    /// The access.
    pub input: ProgramInput,
}

/// Maximum number of outputs of a row that are held. Further packets of the row are dropped.
const MAX_HELD: usize = 8;

/// A lookup at a switch.
#[derive(Clone, Copy, Debug)]
pub struct SwitchLookup {
    /// Its number in the history.
    pub number: usize,
    /// The lookup.
    pub lookup: Lookup,
}

/// Lookups that wait for a row.
#[derive(Debug, Default)]
struct WaitingLookups {
    queue: VecDeque<SwitchLookup>,
    /// The number of lookups that waited when the switch asked.
    asked: usize,
}

/// An effect of a switch.
#[derive(Debug)]
pub enum SwitchEffect {
    /// The program runs with an input.
    Run(usize),
    /// An input is dropped because too many packets wait, or its output is lost on the path to the stores and back.
    Drop(usize),
    /// An output leaves.
    Output(usize, Option<RowNumber>),
    /// A lookup has this result.
    Found(usize, Option<u32>),
    /// A lookup is dropped.
    DropLookup(usize),
    /// Something happened to a row with snapshots.
    Snapshot(SnapshotEffect),
    /// A message leaves.
    Send(NodeId, StoreMessage),
}

/// An output that waits for a write.
#[derive(Clone, Copy, Debug)]
struct HeldOutput {
    seq: u64,
    number: usize,
    output: Option<RowNumber>,
}

/// A switch, as the wrapper around a real one will work.
#[derive(Debug)]
pub struct SwitchModel {
    /// The replica.
    pub replica: StateReplica,
    numbers: HashMap<RowId, Option<RowNumber>, FixedState>,
    parked: HashMap<RowId, VecDeque<SwitchInput>, FixedState>,
    held: HashMap<RowId, VecDeque<HeldOutput>, FixedState>,
    /// The outputs that travel with writes.
    carried: CarriedModel,
    /// The results of rows that are looked up.
    found: HashMap<RowId, Option<u32>, FixedState>,
    waiting: HashMap<RowId, WaitingLookups, FixedState>,
    /// The times of the last uses of rows that are looked up.
    used: HashMap<RowId, Time, FixedState>,
    /// The action of the stores for a lookup that creates its row.
    creation: IfMissing,
    /// The use for which the switch asks for a row when an input only reads it.
    read_access: RowAccess,
    /// Idle time of rows that are looked up; 0 if they do not age.
    idle_ms: u32,
    /// The rows with snapshots, if there are any.
    pub snapshots: Option<SnapshotModel>,
    /// Outputs that have left, for a mutant.
    left: Vec<(RowId, HeldOutput)>,
    mutation: Mutation,
}

impl SwitchModel {
    /// Creates a switch with this replica.
    pub fn new(
        replica: StateReplica,
        (creation, idle_ms): (IfMissing, u32),
        read_access: RowAccess,
        mutation: Mutation,
    ) -> SwitchModel {
        SwitchModel {
            replica,
            numbers: HashMap::default(),
            parked: HashMap::default(),
            held: HashMap::default(),
            carried: CarriedModel::default(),
            found: HashMap::default(),
            waiting: HashMap::default(),
            used: HashMap::default(),
            creation,
            read_access,
            idle_ms,
            snapshots: None,
            left: Vec::new(),
            mutation,
        }
    }

    /// Handles an input.
    pub fn input(&mut self, now: Time, input: SwitchInput, effects: &mut Vec<SwitchEffect>) {
        if !self.parked.contains_key(&input.row) && self.may_run(now, &input) {
            self.run(now, input, effects);
        } else {
            let parked = self.parked.entry(input.row).or_default();
            if parked.len() < MAX_PARKED {
                parked.push_back(input);
                self.ask_for(now, &input);
            } else {
                effects.push(SwitchEffect::Drop(input.number));
            }
        }
        self.take_events(now, effects);
    }

    fn may_run(&self, now: Time, input: &SwitchInput) -> bool {
        match input.input {
            ProgramInput::Read => self.replica.is_readable(now, &input.row),
            _ => self.replica.is_owned(now, &input.row),
        }
    }

    /// Asks for the row of an input.
    fn ask_for(&mut self, now: Time, input: &SwitchInput) {
        let access = if input.input == ProgramInput::Read { self.read_access } else { RowAccess::Write };
        self.replica.acquire_or(now, input.row, access, IfMissing::Grant, 0);
    }

    /// Runs the inputs that wait for a row which the switch now has. Those from the first on that writes a shared row
    /// wait until it is owned.
    fn run_parked(&mut self, now: Time, row: &RowId, effects: &mut Vec<SwitchEffect>) {
        while let Some(input) = self.parked.get(row).and_then(|parked| parked.front().copied()) {
            if !self.may_run(now, &input) {
                return self.ask_for(now, &input);
            }
            self.parked.get_mut(row).and_then(VecDeque::pop_front);
            self.run(now, input, effects);
        }
        self.parked.remove(row);
    }

    /// Handles a lookup.
    pub fn look_up(&mut self, now: Time, lookup: SwitchLookup, effects: &mut Vec<SwitchEffect>) {
        let row = lookup.lookup.row();
        if self.replica.is_readable(now, &row)
            && let Some(found) = self.found.get(&row)
        {
            effects.push(SwitchEffect::Found(lookup.number, *found));
            if !self.mutation.is(Mutant::UseUncounted) {
                self.used.insert(row, now);
            }
        } else {
            let waiting = self.waiting.entry(row).or_default();
            if waiting.queue.len() < MAX_PARKED {
                waiting.queue.push_back(lookup);
                if waiting.queue.len() == 1 {
                    self.ask(now, &row);
                }
            } else {
                effects.push(SwitchEffect::DropLookup(lookup.number));
            }
        }
        self.take_events(now, effects);
    }

    /// Handles a packet of a row with snapshots.
    pub fn change(&mut self, now: Time, input: SnapshotInput, effects: &mut Vec<SwitchEffect>) {
        self.tick(now, effects);
        self.with_snapshots(effects, |snapshots, replica, seen| snapshots.input(now, replica, input, seen));
        self.take_events(now, effects);
    }

    /// Returns the time at which `tick` is due.
    pub fn next_deadline(&self) -> Option<Time> {
        let snapshots = self.snapshots.as_ref().and_then(SnapshotModel::next_deadline);
        let idle = self.used.values().min().filter(|_| self.idle_ms > 0).map(|used| self.idle_at(*used));
        self.replica.next_deadline().into_iter().chain(snapshots).chain(idle).min()
    }

    fn with_snapshots(
        &mut self,
        effects: &mut Vec<SwitchEffect>,
        call: impl FnOnce(&mut SnapshotModel, &mut StateReplica, &mut Vec<SnapshotEffect>),
    ) {
        let mut seen = Vec::new();
        if let Some(snapshots) = &mut self.snapshots {
            call(snapshots, &mut self.replica, &mut seen);
        }
        effects.extend(seen.into_iter().map(SwitchEffect::Snapshot));
    }

    /// Asks for a row that lookups wait for.
    fn ask(&mut self, now: Time, row: &RowId) {
        let Some(waiting) = self.waiting.get_mut(row) else { return };
        if waiting.asked == 0 {
            waiting.asked = waiting.queue.len();
        }
        let makes_row = waiting.queue.iter().any(|waiting| waiting.lookup.makes_row());
        let if_missing = if makes_row { self.creation.clone() } else { IfMissing::Refuse };
        self.replica.acquire_or(now, *row, RowAccess::Read, if_missing, self.idle_ms);
    }

    fn found(&mut self, now: Time, row: &RowId, found: Option<u32>, effects: &mut Vec<SwitchEffect>) {
        self.found.insert(*row, found);
        self.used.insert(*row, now);
        let waiting = self.waiting.remove(row).unwrap_or_default();
        effects.extend(waiting.queue.iter().map(|lookup| SwitchEffect::Found(lookup.number, found)));
        self.replica.unpin(now, row);
    }

    /// Completes the lookups that waited when the switch asked for a row that does not exist, and asks again for the
    /// others.
    fn missing(&mut self, now: Time, row: &RowId, effects: &mut Vec<SwitchEffect>) {
        let Some(mut waiting) = self.waiting.remove(row) else { return };
        let asked = if self.mutation.is(Mutant::MissOfLaterPackets) { usize::MAX } else { waiting.asked };
        let mut again = WaitingLookups::default();
        for (at, lookup) in waiting.queue.drain(..).enumerate() {
            if at < asked && !lookup.lookup.makes_row() {
                effects.push(SwitchEffect::Found(lookup.number, None));
            } else {
                again.queue.push_back(lookup);
            }
        }
        if !again.queue.is_empty() {
            self.waiting.insert(*row, again);
            self.ask(now, row);
        }
    }

    /// Handles a message.
    pub fn receive(&mut self, now: Time, from: NodeId, message: &StoreMessage, effects: &mut Vec<SwitchEffect>) {
        self.replica.receive(now, from, message);
        self.take_events(now, effects);
    }

    /// Handles a layout from the operator.
    pub fn set_layout(&mut self, now: Time, layout: &Arc<StoreLayout>, effects: &mut Vec<SwitchEffect>) {
        self.replica.set_layout(now, layout);
        self.take_events(now, effects);
    }

    /// Performs the work that is due.
    pub fn tick(&mut self, now: Time, effects: &mut Vec<SwitchEffect>) {
        self.replica.tick(now);
        self.take_events(now, effects);
        self.with_snapshots(effects, |snapshots, replica, seen| snapshots.tick(now, replica, seen));
        self.take_events(now, effects);
        self.release_idle(now);
        self.take_events(now, effects);
    }

    fn idle_at(&self, used: Time) -> Time {
        used.after_ns(u64::from(self.idle_ms) * 1_000_000)
    }

    /// Gives back the rows that were not used for their idle time.
    fn release_idle(&mut self, now: Time) {
        if self.idle_ms == 0 {
            return;
        }
        let is_idle = |(_, used): &(&RowId, &Time)| self.idle_at(**used) <= now;
        let mut idle: Vec<RowId> = self.used.iter().filter(is_idle).map(|(row, _)| *row).collect();
        idle.sort_unstable();
        for row in idle {
            self.replica.release_idle(now, &row);
            self.used.insert(row, now);
        }
    }

    fn run(&mut self, now: Time, input: SwitchInput, effects: &mut Vec<SwitchEffect>) {
        if self.held.get(&input.row).is_some_and(|held| held.len() >= MAX_HELD) {
            effects.push(SwitchEffect::Drop(input.number));
            return;
        }
        effects.push(SwitchEffect::Run(input.number));
        let number = self.numbers.get(&input.row).copied().unwrap_or_default();
        let (after, output) = RowProgram { has_removals: true }.step(&number, &input.input);
        let pending = if input.input == ProgramInput::Read {
            let waits = !self.mutation.is(Mutant::ReadNotWaiting);
            self.replica.pending_seq(&input.row).filter(|_| waits)
        } else {
            self.numbers.insert(input.row, after);
            if self.run_carrying(now, (input, output), values_of(after), effects) {
                return;
            }
            let seq = self.replica.write(now, &input.row, values_of(after));
            Some(seq).filter(|seq| *seq > self.replica.acknowledged(&input.row))
        };
        match pending {
            Some(seq) => {
                let held = HeldOutput { seq, number: input.number, output };
                self.held.entry(input.row).or_default().push_back(held);
            }
            None => effects.push(SwitchEffect::Output(input.number, output)),
        }
    }

    /// Writes a row together with the output, and returns whether the output fits.
    fn run_carrying(
        &mut self,
        now: Time,
        (input, output): (SwitchInput, Option<RowNumber>),
        values: Option<RowValues>,
        effects: &mut Vec<SwitchEffect>,
    ) -> bool {
        let room = self.replica.room_for_outputs(&input.row, values.as_ref());
        let Some(outputs) = carried_model::encode((input.number, output), room, self.mutation) else { return false };
        let seq = self.replica.write_with_outputs(now, &input.row, values, outputs);
        self.carried.sent(input.row, seq, input.number);
        if self.mutation.is(Mutant::OutputsLeaveAtSend) {
            effects.push(SwitchEffect::Output(input.number, output));
        }
        true
    }

    fn take_events(&mut self, now: Time, effects: &mut Vec<SwitchEffect>) {
        loop {
            let events: Vec<ReplicaEvent> = self.replica.take_events().collect();
            if events.is_empty() {
                return;
            }
            for event in events {
                self.take_event(now, event, effects);
            }
            self.with_snapshots(effects, |snapshots, replica, seen| snapshots.act(now, replica, seen));
        }
    }

    fn take_event(&mut self, now: Time, event: ReplicaEvent, effects: &mut Vec<SwitchEffect>) {
        if let Some(snapshots) =
            self.snapshots.as_mut().filter(|snapshots| event.row().is_some_and(|it| snapshots.has(it)))
        {
            return snapshots.take(now, &mut self.replica, &event);
        }
        match event {
            ReplicaEvent::Granted { row, values, .. } if lookup::is_looked_up(&row) => {
                self.found(now, &row, lookup::output_of(values.as_ref()), effects);
            }
            ReplicaEvent::Refused { row, reason: RefusalReason::NoSuchRow } => self.missing(now, &row, effects),
            ReplicaEvent::Refused { row, .. } if lookup::is_looked_up(&row) => {
                let waiting = self.waiting.remove(&row).unwrap_or_default();
                effects.extend(waiting.queue.iter().map(|lookup| SwitchEffect::DropLookup(lookup.number)));
            }
            ReplicaEvent::Lost { row, .. } if lookup::is_looked_up(&row) => {
                self.found.remove(&row);
                self.used.remove(&row);
                self.ask(now, &row);
            }
            ReplicaEvent::Granted { row, values, .. } => {
                self.numbers.insert(row, number_of(values.as_ref()));
                self.run_parked(now, &row, effects);
                self.replica.unpin(now, &row);
            }
            ReplicaEvent::Refused { row, .. } => {
                self.parked.remove(&row);
            }
            ReplicaEvent::OutputsReturned { row, outputs, .. } => {
                if let Some((number, output)) = carried_model::decode(&outputs)
                    && !self.mutation.is(Mutant::OutputsLeaveAtSend)
                {
                    self.carried.returned(&row);
                    effects.push(SwitchEffect::Output(number, output));
                }
            }
            ReplicaEvent::Acknowledged { row, seq } => {
                effects.extend(self.carried.lost(&row, seq).map(SwitchEffect::Drop));
                self.release(&row, seq, effects);
            }
            ReplicaEvent::Lost { row, .. } => {
                self.numbers.remove(&row);
            }
            ReplicaEvent::Recalled { .. } => {}
            ReplicaEvent::Abandoned { row, seq } => {
                effects.extend(self.carried.lost(&row, seq).map(SwitchEffect::Drop));
                self.held.remove(&row);
            }
            ReplicaEvent::Send { to, message } => effects.push(SwitchEffect::Send(to, message)),
        }
    }

    fn release(&mut self, row: &RowId, seq: u64, effects: &mut Vec<SwitchEffect>) {
        if self.mutation.is(Mutant::DuplicateReleases) {
            let again = self.left.iter().filter(|(of, held)| of == row && held.seq == seq);
            effects.extend(again.map(|(_, held)| SwitchEffect::Output(held.number, held.output)));
        }
        let Some(held) = self.held.get_mut(row) else { return };
        while let Some(output) = held.pop_front_if(|held| held.seq <= seq) {
            effects.push(SwitchEffect::Output(output.number, output.output));
            if self.mutation.is(Mutant::DuplicateReleases) {
                self.left.push((*row, output));
            }
        }
    }
}
