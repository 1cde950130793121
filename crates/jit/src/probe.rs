//! Defines probes: calls from compiled code into a measuring tool.

use ir::{BodyId, TableId};

/// A function that [probed code](crate::NativeProgram::probed) calls whenever a part of it has ended, with the part's
/// [number](ProbedPart::number). The code that ran since the previous call belongs to that part.
pub type Probe = extern "C" fn(u64);

/// A part of a packet's processing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbedPart {
    /// The architecture's work between units; reported when the unit with this index in the plan begins.
    Before(usize),
    /// A body that a step runs, or a stretch of it; reported at its end and before each table that it applies.
    Body(BodyId),
    /// A table: its key, the lookup and the action.
    Table(TableId),
}

impl ProbedPart {
    /// Returns the unique number of the part.
    pub fn number(self) -> u64 {
        match self {
            ProbedPart::Before(unit) => unit as u64,
            ProbedPart::Body(body) => 1 << 32 | u64::from(body.as_u32()),
            ProbedPart::Table(table) => 2 << 32 | u64::from(table.as_u32()),
        }
    }
}
