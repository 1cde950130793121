//! The bounds of a model: they make its state space finite.

use resilient::{Mutant, RowAccess};

/// An input of the program that every switch runs: a row is a set of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowInput {
    /// Outputs the set.
    Read,
    /// Adds the number of the input, and outputs the set.
    Add,
    /// Removes the row, and outputs the empty set.
    Clear,
}

/// Bounds of the events in a run.
#[derive(Clone, Debug)]
pub struct ModelBounds {
    /// Number of switches.
    pub switches: u8,
    /// Number of store nodes. All are members of the first chain.
    pub nodes: u8,
    /// Number of rows.
    pub rows: u8,
    /// Length of a lease, in ticks of a switch's clock at its slowest.
    pub lease_ticks: u8,
    /// Ticks after which a message without a reply is retransmitted.
    pub retransmit_ticks: u8,
    /// Whether the switches have leases at the start.
    pub is_warm: bool,
    /// Number of ticks. A switch or node may observe each tick at any later time.
    pub ticks: u8,
    /// Number of inputs, at most 8.
    pub inputs: u8,
    /// The kinds of inputs.
    pub kinds: &'static [RowInput],
    /// Whether outputs travel with writes.
    pub is_piggyback: bool,
    /// The use for which a switch asks for the row of a read.
    pub read_access: RowAccess,
    /// Number of messages that arrive twice. Any number of messages may be lost, late, or reordered.
    pub repetitions: u8,
    /// Number of switches that crash and restart at once.
    pub crashes: u8,
    /// Number of nodes that lose their memory.
    pub amnesias: u8,
    /// Number of layouts after the first.
    pub layouts: u8,
    /// Index of the last operation that a node may forward.
    pub operations: u64,
    /// The error to make.
    pub mutant: Option<Mutant>,
}

impl ModelBounds {
    /// Two switches, one row and one node: leases end and rows move while messages are late.
    pub fn leases() -> ModelBounds {
        ModelBounds {
            switches: 2,
            nodes: 1,
            rows: 1,
            lease_ticks: 2,
            retransmit_ticks: 100,
            is_warm: true,
            ticks: 2,
            inputs: 2,
            kinds: &[RowInput::Read, RowInput::Add],
            is_piggyback: false,
            read_access: RowAccess::Write,
            repetitions: 0,
            crashes: 0,
            amnesias: 0,
            layouts: 0,
            operations: u64::MAX,
            mutant: None,
        }
    }

    /// Three inputs of all kinds, without any ticks, while three messages arrive twice.
    pub fn repeats() -> ModelBounds {
        ModelBounds { kinds: &ALL_INPUTS, ticks: 0, inputs: 3, repetitions: 3, ..ModelBounds::leases() }
    }

    /// Two switches that share a row for reading, and write it: leases end while messages are late.
    pub fn readers() -> ModelBounds {
        ModelBounds { read_access: RowAccess::Read, ..ModelBounds::leases() }
    }

    /// Switches that have no leases yet, or crash, and retransmit requests that are not answered within a tick.
    pub fn crashes() -> ModelBounds {
        ModelBounds { is_warm: false, retransmit_ticks: 1, ticks: 1, crashes: 1, ..ModelBounds::leases() }
    }

    /// A switch that writes and a chain of two nodes: the operator changes it twice, and one node loses its memory.
    /// Leases do not end.
    pub fn chain() -> ModelBounds {
        ModelBounds {
            switches: 1,
            nodes: 2,
            lease_ticks: 100,
            ticks: 0,
            inputs: 1,
            kinds: &[RowInput::Add],
            amnesias: 1,
            layouts: 2,
            operations: 5,
            ..ModelBounds::leases()
        }
    }

    /// Adds an error to the model.
    pub fn with(self, mutant: Mutant) -> ModelBounds {
        ModelBounds { mutant: Some(mutant), ..self }
    }
}

/// All kinds of inputs.
const ALL_INPUTS: [RowInput; 3] = [RowInput::Read, RowInput::Add, RowInput::Clear];
