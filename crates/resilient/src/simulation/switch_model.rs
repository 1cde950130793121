//! A switch with a replica: parks packets whose rows it does not own, and holds outputs.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::FixedState;
use switch::Time;

use super::lookup::{self, Lookup};
use super::program::{ProgramInput, RowNumber, RowProgram, number_of, values_of};
use crate::history::Specification;
use crate::layout::{NodeId, StoreLayout};
use crate::message::{IfMissing, RefusalReason, StoreMessage};
use crate::mutant::{Mutant, Mutation};
use crate::replica::{ReplicaEvent, StateReplica};
use crate::row::RowId;

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
    /// An input is dropped: too many packets wait.
    Drop(usize),
    /// An output leaves.
    Output(usize, Option<RowNumber>),
    /// A lookup has this result.
    Found(usize, Option<u32>),
    /// A lookup is dropped.
    DropLookup(usize),
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
    /// The results of rows that are looked up.
    found: HashMap<RowId, Option<u32>, FixedState>,
    waiting: HashMap<RowId, WaitingLookups, FixedState>,
    /// What the stores do for a lookup that makes its row.
    creation: IfMissing,
    /// Outputs that have left, for a mutant.
    left: Vec<(RowId, HeldOutput)>,
    mutation: Mutation,
}

impl SwitchModel {
    /// Creates a switch with this replica.
    pub fn new(replica: StateReplica, creation: IfMissing, mutation: Mutation) -> SwitchModel {
        SwitchModel {
            replica,
            numbers: HashMap::default(),
            parked: HashMap::default(),
            held: HashMap::default(),
            found: HashMap::default(),
            waiting: HashMap::default(),
            creation,
            left: Vec::new(),
            mutation,
        }
    }

    /// Takes an input.
    pub fn input(&mut self, now: Time, input: SwitchInput, effects: &mut Vec<SwitchEffect>) {
        if self.replica.is_owned(now, &input.row) {
            self.run(now, input, effects);
        } else {
            let parked = self.parked.entry(input.row).or_default();
            if parked.len() < MAX_PARKED {
                parked.push_back(input);
                self.replica.acquire(now, input.row);
            } else {
                effects.push(SwitchEffect::Drop(input.number));
            }
        }
        self.take_events(now, effects);
    }

    /// Takes a lookup.
    pub fn look_up(&mut self, now: Time, lookup: SwitchLookup, effects: &mut Vec<SwitchEffect>) {
        let row = lookup.lookup.row();
        if self.replica.is_owned(now, &row)
            && let Some(found) = self.found.get(&row)
        {
            effects.push(SwitchEffect::Found(lookup.number, *found));
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

    /// Asks for a row that lookups wait for.
    fn ask(&mut self, now: Time, row: &RowId) {
        let Some(waiting) = self.waiting.get_mut(row) else { return };
        if waiting.asked == 0 {
            waiting.asked = waiting.queue.len();
        }
        let makes_row = waiting.queue.iter().any(|waiting| waiting.lookup.makes_row());
        let if_missing = if makes_row { self.creation.clone() } else { IfMissing::Refuse };
        self.replica.acquire_or(now, *row, if_missing);
    }

    fn found(&mut self, now: Time, row: &RowId, found: Option<u32>, effects: &mut Vec<SwitchEffect>) {
        self.found.insert(*row, found);
        let waiting = self.waiting.remove(row).unwrap_or_default();
        effects.extend(waiting.queue.iter().map(|lookup| SwitchEffect::Found(lookup.number, found)));
        self.replica.finished_parked(now, row);
    }

    /// Lets the lookups go on that waited when the switch asked for a row that does not exist, and asks for the others.
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

    /// Takes a message.
    pub fn receive(&mut self, now: Time, from: NodeId, message: &StoreMessage, effects: &mut Vec<SwitchEffect>) {
        self.replica.receive(now, from, message);
        self.take_events(now, effects);
    }

    /// Takes a layout from the operator.
    pub fn set_layout(&mut self, now: Time, layout: &Arc<StoreLayout>, effects: &mut Vec<SwitchEffect>) {
        self.replica.set_layout(now, layout);
        self.take_events(now, effects);
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Time, effects: &mut Vec<SwitchEffect>) {
        self.replica.tick(now);
        self.take_events(now, effects);
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

    fn take_events(&mut self, now: Time, effects: &mut Vec<SwitchEffect>) {
        loop {
            let events: Vec<ReplicaEvent> = self.replica.take_events().collect();
            if events.is_empty() {
                return;
            }
            for event in events {
                self.take_event(now, event, effects);
            }
        }
    }

    fn take_event(&mut self, now: Time, event: ReplicaEvent, effects: &mut Vec<SwitchEffect>) {
        match event {
            ReplicaEvent::Granted { row, values } if lookup::is_looked_up(&row) => {
                self.found(now, &row, lookup::output_of(values.as_ref()), effects);
            }
            ReplicaEvent::Refused { row, reason: RefusalReason::NoSuchRow } => self.missing(now, &row, effects),
            ReplicaEvent::Refused { row, .. } if lookup::is_looked_up(&row) => {
                let waiting = self.waiting.remove(&row).unwrap_or_default();
                effects.extend(waiting.queue.iter().map(|lookup| SwitchEffect::DropLookup(lookup.number)));
            }
            ReplicaEvent::Lost { row, .. } if lookup::is_looked_up(&row) => {
                self.found.remove(&row);
                self.ask(now, &row);
            }
            ReplicaEvent::Granted { row, values } => {
                self.numbers.insert(row, number_of(values.as_ref()));
                for input in self.parked.remove(&row).unwrap_or_default() {
                    self.run(now, input, effects);
                }
                self.replica.finished_parked(now, &row);
            }
            ReplicaEvent::Refused { row, .. } => {
                self.parked.remove(&row);
            }
            ReplicaEvent::Acknowledged { row, seq } => self.release(&row, seq, effects),
            ReplicaEvent::Lost { row, .. } => {
                self.numbers.remove(&row);
            }
            ReplicaEvent::Abandoned { row, .. } => {
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
