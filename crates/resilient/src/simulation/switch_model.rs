//! A switch with a replica: parks packets whose rows it does not own, and holds outputs.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::FixedState;
use switch::Time;

use super::program::{ProgramInput, RowNumber, RowProgram, number_of, values_of};
use crate::history::Specification;
use crate::layout::{NodeId, StoreLayout};
use crate::message::StoreMessage;
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

/// An effect of a switch.
#[derive(Debug)]
pub enum SwitchEffect {
    /// The program runs with an input.
    Run(usize),
    /// An input is dropped: too many packets wait.
    Drop(usize),
    /// An output leaves.
    Output(usize, Option<RowNumber>),
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
    /// Outputs that have left, for a mutant.
    left: Vec<(RowId, HeldOutput)>,
    mutation: Mutation,
}

impl SwitchModel {
    /// Creates a switch with this replica.
    pub fn new(replica: StateReplica, mutation: Mutation) -> SwitchModel {
        SwitchModel {
            replica,
            numbers: HashMap::default(),
            parked: HashMap::default(),
            held: HashMap::default(),
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
