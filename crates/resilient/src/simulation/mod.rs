//! Simulates switches and store nodes with an abstract network, under faults, and judges the histories of all rows.
//!
//! [`simulate`] draws everything from a seed: the [`Scenario`], the inputs, the faults. After the faults all machines
//! run and the network delivers: then each input must have an output within a bounded time. The history of each row
//! must be linearizable ([`crate::history`]), rows that the stores create must be the same for all packets, no input
//! may have two outputs, and the outputs of a row leave a switch in the order of its inputs.
//!
//! [`simulate_snapshots`] does the same for rows with snapshots. A switch that continues with a row must have a state
//! that the former one had between two packets, at most the bound before its last packet.

mod carried_model;
mod disk;
mod dump;
mod faults;
mod lookup;
mod machine;
mod network;
mod operator;
mod program;
mod record;
mod scenario;
mod snapshot_history;
mod snapshot_model;
mod switch_model;
mod world;

pub use disk::NodeDisk;
pub use dump::history_line;
pub use program::{ProgramInput, RowNumber, RowProgram};
pub use record::{RowHistory, RunHistory};
pub use scenario::{FaultChances, Scenario};
pub use world::{simulate, simulate_histories, simulate_snapshots, simulate_traced};

use crate::layout::NodeId;
use crate::message::StoreMessage;
use crate::row::RowId;

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
    /// Two grants of this row have the same epoch.
    EpochReused(RowId),
    /// A row that ages still exists at this node long after its last use.
    RowLeft(RowId, NodeId),
    /// A switch continued with a state of this row that the previous switch did not have between two packets.
    NoCut(u32),
    /// A switch continued with a state of this row that was older than the bound.
    TooOld(u32),
    /// A switch gave this row back, and the next one did not have its last state.
    LostInMove(u32),
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
    /// Number of writes that were sent with an output.
    pub carried: u64,
    /// Number of acknowledgements that were sent with an output.
    pub carried_back: u64,
    /// Number of times that a switch continued with a snapshot.
    pub restored: usize,
    /// Epoch of the last layout.
    pub layouts: u64,
}

impl SimulationReport {
    /// Counts a message that is sent.
    fn count(&mut self, message: &StoreMessage) {
        self.messages += 1;
        if message.carried_bytes() > 0 {
            self.carried += u64::from(matches!(message, StoreMessage::Request(_)));
            self.carried_back += u64::from(matches!(message, StoreMessage::Reply(_)));
        }
    }
}
