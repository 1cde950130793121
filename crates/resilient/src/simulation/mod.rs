//! Simulates switches and store nodes with an abstract network, under faults, and judges the histories of all rows.
//!
//! [`simulate`] draws everything from a seed: the [`Scenario`], the inputs, the faults. After the faults all machines
//! run and the network delivers: then each input must have an output within a bounded time. The history of each row
//! must be linearizable ([`crate::history`]), rows that the stores make must be the same for all packets, no input may
//! have two outputs, and the outputs of a row leave a switch in the order of its inputs.

mod disk;
mod faults;
mod lookup;
mod machine;
mod network;
mod operator;
mod program;
mod record;
mod scenario;
mod switch_model;
mod world;

pub use disk::NodeDisk;
pub use program::{ProgramInput, RowNumber, RowProgram};
pub use record::RunHistory;
pub use scenario::{FaultChances, Scenario};
pub use world::{simulate, simulate_traced};

/// An error that a run has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// No order of the inputs explains the outputs of this row.
    NotLinearizable(u32),
    /// An input of this row has two outputs.
    TwoOutputs(u32),
    /// Outputs of this row left a switch in another order than their inputs came.
    Reordered(u32),
    /// An input of this row had no output long after all faults.
    NoOutput(u32),
    /// No order of the lookups explains their outputs.
    Lookups(String),
}

/// Result of a run.
#[derive(Clone, Debug, Default)]
pub struct SimulationReport {
    /// The errors.
    pub violations: Vec<Violation>,
    /// Number of rows whose search took too long.
    pub undecided: usize,
    /// Number of inputs.
    pub inputs: usize,
    /// Number of inputs with an output.
    pub outputs: usize,
    /// Number of lookups.
    pub lookups: usize,
    /// Number of lookups with an output.
    pub answered_lookups: usize,
    /// Number of messages that were sent.
    pub messages: u64,
    /// Epoch of the last layout.
    pub layouts: u64,
}
