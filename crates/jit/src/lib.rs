//! Programs of the pipeline IR as machine code.
//!
//! The second executor beside [`engine::Interpreter`], which says what a program means; this one agrees with it on every
//! bit and is fast. [`Compiled`] is a program in machine code, [`Packet`] one packet that it works on, and the
//! [`engine::Objects`] are the interpreter's own, so that one executor can go on where the other stopped.
//!
//! The cost of a packet is the fields it touches. A packet stays where it arrived: a header is an address, a field is a
//! load at a known offset, a write goes back in place, and the outgoing packet is the incoming one unless headers were
//! added, removed or moved.
//!
//! # Units
//!
//! An architecture runs some bodies one after the other and does things of its own in between. It says which in a
//! [`Plan`]: each [`Unit`] is a list of [`Step`]s that become one function, in which slots and the places of headers are
//! values in registers. Between units everything that a later unit or the architecture looks at is in the packet's
//! frame. A unit that is *fresh* is the first to see a packet and takes everything but the plan's given slots to be 0,
//! without reading it.
//!
//! # Batches
//!
//! A [`Batch`] is up to 32 packets that a fresh unit runs on in one call: a second function of the unit is a loop over
//! them. They are scouted before the first one runs: a third function notes which keys they will look up, tables are
//! asked for all of these at once, and packets whose key is the noted one find their record without a call. Where a
//! table's key is what others gave, that goes on in rounds. Keys of tables that are near are looked up in place, and
//! where all are near there is no scout. Of a packet that comes to its end nothing is kept but where it lies and the
//! unit's results; one for which there is more to do stops the loop, with all of its state in the frame. Nothing but
//! time tells the difference.
//!
//! Loop and scout are made once for each path through the parser, as far as that is worth it, so that places and validity
//! of headers are constants in them: see [`Ended::is_special`].
//!
//! # What can go wrong
//!
//! Compiling can fail: [`Unsupported`] says why, and whoever runs the program interprets it. Running cannot: packets
//! are checked against their length wherever they are read, indices against their arrays, and loops are bounded by the
//! interpreter's fuel.
//!
//! The crate knows no architecture. It is one of three with `unsafe`: the generated code and what it calls.

mod batch;
mod calls;
mod chain;
mod compiled;
mod emit;
mod layout;
mod lent;
mod packet;
mod probe;
mod scout;
#[cfg(test)]
mod text;
mod walk;

pub use batch::{Batch, Ended, Progress};
pub use compiled::{Compiled, Outcome, Speed};
pub use lent::Lent;
pub use packet::{Packet, Preserved};
pub use probe::{Part, Probe};
pub use walk::{reads, writes};

use ir::{BodyId, SlotId};

/// The most packets of a [`Batch`].
pub const BATCH: usize = scout::BATCH;
/// The most [results](Unit::results) of a unit.
pub const RESULTS: usize = scout::RESULTS;

/// Why a program cannot become machine code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// Headers, slots or code beyond what is worth compiling.
    #[error("the program is too large to be compiled")]
    TooLarge,
    /// No code can be generated for this machine.
    #[error("no machine code can be made here: {0}")]
    Machine(String),
}

/// What a unit does, step by step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Runs a body. However it ends by itself, the next step follows.
    Run(BodyId),
    /// Writes the parser's error to a slot.
    ErrorTo(SlotId),
    /// Writes the packet's length in bytes to a slot, cut to its width.
    LengthTo(SlotId),
    /// Notes how many bytes the valid headers have, for [`Packet::measured_bytes`].
    Measure,
    /// Ends the unit unless a slot has this value.
    StopUnless(SlotId, u64),
    /// Ends the unit if a slot has this value, of a packet that whoever runs the unit is done with then: in a batch
    /// nothing of it is kept but the unit's results.
    DropIf(SlotId, u64),
    /// Copies a slot to another (the first), zero-extended or cut to its width.
    Copy(SlotId, SlotId),
    /// Sets a slot to a number, cut to its width.
    Set(SlotId, u64),
    /// Ends the unit if anything is asked for.
    StopIfAsked,
}

/// A function of machine code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// What it does.
    pub steps: Vec<Step>,
    /// Whether it is the first to see a packet.
    pub fresh: bool,
    /// The units that can follow on the same packet, by their place in the plan.
    pub next: Vec<usize>,
    /// The slots, at most [`RESULTS`], that a batch keeps of each packet, the low 64 bits of them; `None` if the unit
    /// never runs on a batch.
    pub results: Option<Vec<SlotId>>,
}

/// How an architecture runs a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The units.
    pub units: Vec<Unit>,
    /// The slots that the architecture writes before units and reads after them; `None` for all there are.
    pub visible: Option<Vec<SlotId>>,
    /// The slots of up to 64 bits that it sets before a fresh unit, which takes all others to be 0.
    pub given: Vec<SlotId>,
}

/// How code ends, as a number.
pub(crate) mod code {
    pub const RETURN: u64 = 0;
    pub const EXIT: u64 = 1;
    pub const REJECT: u64 = 2;
    pub const OUT_OF_FUEL: u64 = 3;
    pub const ASSERT_FAILED: u64 = 4;
    pub const PENDING: u64 = 5;
    pub const STOPPED: u64 = 6;
}
