//! The interpreter: the meaning of the IR.
use ir::{BodyId, LocId, Program, TableId};
use crate::{Objects, PacketState, Watch};
/// The most blocks that one run of a body executes, those of the actions it applies included.
pub const FUEL_BLOCKS: u32 = 100_000;

/// When a body runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Nanoseconds since whatever the caller counts from.
    pub ns: u64,
}

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// At its end; a parser accepted.
    Return,
    /// By `exit`.
    Exit,
    /// The parser refused the packet; [`PacketState::parser_error`] says why.
    Reject,
    /// After [`FUEL_BLOCKS`] blocks: the program has a loop that the packet did not end. The place is the last block's.
    OutOfFuel(LocId),
    /// A condition that the program relies on did not hold there.
    AssertFailed(LocId),
    /// A table did not answer yet. What the body did before the lookup stays done; the caller runs it again on a copy
    /// of the packet that it took before.
    Pending(TableId),
}
/// The executor that defines what programs mean.
pub struct Interpreter;
impl Interpreter {
    /// Runs a body on a packet.
    pub fn run<W: Watch + ?Sized>(_program: &Program, _objects: &mut Objects, _body: BodyId, _state: &mut PacketState, _now: Now, _watch: &mut W) -> Ending {
        Ending::Return
    }
}
