//! A switch: the shipped replica, and a program whose packets are parked and whose outputs are held.

use std::collections::VecDeque;

use resilient::message::IfMissing;
use resilient::{
    CarriedOutputs, Mutant, NodeId, ReplicaEvent, RowAccess, RowId, RowValues, StateReplica, StoreMessage,
};
use switch::Time;

use crate::bounds::{ModelBounds, RowInput};
use crate::observed::set_after;

/// Group of the rows.
const GROUP: u64 = 1;

/// An effect of a switch.
#[derive(Clone, Debug)]
pub enum SwitchEffect {
    /// The program runs with this input.
    Run(u8),
    /// An output leaves: input and set.
    Output(u8, u8),
    /// A message leaves.
    Send(NodeId, StoreMessage),
}

/// An input with its number.
#[derive(Clone, Copy, Debug, Hash)]
struct ParkedInput {
    number: u8,
    input: RowInput,
}

/// A row as the program sees it.
#[derive(Clone, Debug, Default, Hash)]
struct ProgramRow {
    set: u8,
    parked: Vec<ParkedInput>,
    /// Sequence number, input and output.
    held: VecDeque<(u64, u8, u8)>,
}

/// A switch.
#[derive(Clone, Debug, Hash)]
pub struct ModelSwitch {
    /// The replica.
    pub replica: StateReplica,
    /// Number of its earlier starts.
    pub start: u8,
    rows: Vec<ProgramRow>,
    reads_wait: bool,
    read_access: RowAccess,
}

/// Returns the name of a row.
pub fn row_id(row: u8) -> RowId {
    RowId::of_index(GROUP, u32::from(row))
}

fn number_of(row: &RowId) -> usize {
    usize::from(row.key().last().copied().unwrap_or_default())
}

fn values_of(set: u8) -> Option<RowValues> {
    RowValues::new(&[set]).filter(|_| set != 0)
}

fn set_of(values: Option<&RowValues>) -> u8 {
    values.and_then(|values| values.bytes().first().copied()).unwrap_or_default()
}

impl ModelSwitch {
    /// Creates a switch that has just started.
    pub fn new(replica: StateReplica, start: u8, bounds: &ModelBounds) -> ModelSwitch {
        let rows = vec![ProgramRow::default(); usize::from(bounds.rows)];
        let reads_wait = bounds.mutant != Some(Mutant::ReadNotWaiting);
        ModelSwitch { replica, start, rows, reads_wait, read_access: bounds.read_access }
    }

    /// Whether the switch may read a row.
    pub fn reads(&self, now: Time, row: u8) -> bool {
        self.replica.is_readable(now, &row_id(row))
    }

    /// Whether the switch may write a row.
    pub fn owns(&self, now: Time, row: u8) -> bool {
        self.replica.is_owned(now, &row_id(row))
    }

    /// Handles an input.
    pub fn input(&mut self, now: Time, row: u8, number: u8, input: RowInput) -> Vec<SwitchEffect> {
        let mut effects = Vec::new();
        let parked = ParkedInput { number, input };
        self.rows[usize::from(row)].parked.push(parked);
        self.run_parked(now, row, &mut effects);
        self.take_events(now, effects)
    }

    /// Runs the packets of a row as far as the switch may, and asks for the row for the next one.
    fn run_parked(&mut self, now: Time, row: u8, effects: &mut Vec<SwitchEffect>) {
        while let Some(packet) = self.rows[usize::from(row)].parked.first().copied() {
            let (may_run, access) = match packet.input {
                RowInput::Read => (self.reads(now, row), self.read_access),
                RowInput::Add | RowInput::Clear => (self.owns(now, row), RowAccess::Write),
            };
            if !may_run {
                return self.replica.acquire_or(now, row_id(row), access, IfMissing::Grant, 0);
            }
            self.rows[usize::from(row)].parked.remove(0);
            self.run(now, row, packet, effects);
        }
    }

    /// Handles a message of a node, or a layout of the operator.
    pub fn receive(&mut self, now: Time, from: Option<NodeId>, message: &StoreMessage) -> Vec<SwitchEffect> {
        match (from, message) {
            (Some(from), message) => self.replica.receive(now, from, message),
            (None, StoreMessage::Layout(layout)) => self.replica.set_layout(now, layout),
            (None, _) => {}
        }
        self.take_events(now, Vec::new())
    }

    /// Performs the work that is due.
    pub fn tick(&mut self, now: Time) -> Vec<SwitchEffect> {
        self.replica.tick(now);
        self.take_events(now, Vec::new())
    }

    /// Opens the sessions of a switch that has just started.
    pub fn open(&mut self, now: Time) -> Vec<SwitchEffect> {
        self.replica.open_sessions(now);
        self.take_events(now, Vec::new())
    }

    fn run(&mut self, now: Time, row: u8, packet: ParkedInput, effects: &mut Vec<SwitchEffect>) {
        effects.push(SwitchEffect::Run(packet.number));
        let id = row_id(row);
        let state = &mut self.rows[usize::from(row)];
        state.set = set_after(state.set, packet.number, packet.input);
        let pending = if packet.input == RowInput::Read {
            self.replica.pending_seq(&id).filter(|_| self.reads_wait)
        } else {
            let values = values_of(state.set);
            let outputs = CarriedOutputs::new(&[packet.number, state.set]);
            if let Some(outputs) = outputs.filter(|_| self.replica.room_for_outputs(&id, values.as_ref()) > 0) {
                self.replica.write_with_outputs(now, &id, values, outputs);
                return;
            }
            let seq = self.replica.write(now, &id, values);
            Some(seq).filter(|seq| *seq > self.replica.acknowledged(&id))
        };
        match pending {
            Some(seq) => state.held.push_back((seq, packet.number, state.set)),
            None => effects.push(SwitchEffect::Output(packet.number, state.set)),
        }
    }

    fn take_events(&mut self, now: Time, mut effects: Vec<SwitchEffect>) -> Vec<SwitchEffect> {
        loop {
            let events: Vec<ReplicaEvent> = self.replica.take_events().collect();
            if events.is_empty() {
                return effects;
            }
            events.into_iter().for_each(|event| self.take_event(now, event, &mut effects));
        }
    }

    fn take_event(&mut self, now: Time, event: ReplicaEvent, effects: &mut Vec<SwitchEffect>) {
        match event {
            ReplicaEvent::Granted { row, values, .. } => {
                let number = number_of(&row);
                self.rows[number].set = set_of(values.as_ref());
                self.run_parked(now, number as u8, effects);
                self.replica.unpin(now, &row);
            }
            ReplicaEvent::Refused { row, .. } => self.rows[number_of(&row)].parked.clear(),
            ReplicaEvent::OutputsReturned { outputs, .. } => {
                if let [number, output] = outputs.bytes() {
                    effects.push(SwitchEffect::Output(*number, *output));
                }
            }
            ReplicaEvent::Acknowledged { row, seq } => {
                let held = &mut self.rows[number_of(&row)].held;
                while let Some((_, number, output)) = held.pop_front_if(|(of, ..)| *of <= seq) {
                    effects.push(SwitchEffect::Output(number, output));
                }
            }
            // It is given back as soon as its packets have run.
            ReplicaEvent::Recalled { .. } => {}
            ReplicaEvent::Lost { row, .. } => self.rows[number_of(&row)].set = 0,
            ReplicaEvent::Abandoned { row, .. } => self.rows[number_of(&row)].held.clear(),
            ReplicaEvent::Send { to, message } => effects.push(SwitchEffect::Send(to, message)),
        }
    }
}
