//! What code tells whoever measures it.

use ir::{BodyId, TableId};

/// Called by code that was [made to be measured](crate::Compiled::probed) whenever a part of it has ended, with the
/// part's [number](Part::number). What has run since the call before is that part.
pub type Probe = extern "C" fn(u64);

/// A part of what happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// What the architecture does between units: told when the unit with this number in the plan begins.
    Before(usize),
    /// A body that a step runs, or a stretch of it: told at its end, and before each table that it applies.
    Body(BodyId),
    /// A table: its key, the lookup and the action.
    Table(TableId),
}

impl Part {
    /// A number that no other part has.
    pub fn number(self) -> u64 {
        match self {
            Part::Before(unit) => unit as u64,
            Part::Body(body) => 1 << 32 | u64::from(body.as_u32()),
            Part::Table(table) => 2 << 32 | u64::from(table.as_u32()),
        }
    }

    /// The part with this number.
    pub fn from_number(number: u64) -> Option<Part> {
        let id = number as u32;
        match number >> 32 {
            0 => Some(Part::Before(id as usize)),
            1 => Some(Part::Body(BodyId::from_u32(id))),
            2 => Some(Part::Table(TableId::from_u32(id))),
            _ => None,
        }
    }
}
