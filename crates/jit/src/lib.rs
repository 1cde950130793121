//! Compiles the pipeline IR to machine code, just in time.
//!
//! This is the second executor. [`engine::Interpreter`] defines the meaning of a program; compiled code agrees with it
//! on every bit and is fast. [`NativeProgram`] is a program in machine code and [`Packet`] is one packet that it works
//! on. The [`engine::Objects`] are the interpreter's own, so one executor can continue where the other stopped.
//!
//! The cost of a packet is proportional to the fields it touches. A packet stays where it arrived: a header is an
//! address, a field is a load at a known offset, and a write goes back in place. The outgoing packet is the incoming
//! one unless headers were added, removed or moved.
//!
//! # Units
//!
//! An architecture runs several bodies in sequence, with work of its own between some of them. It describes this in a
//! [`Plan`]: each [`Unit`] is a list of [`Step`]s and becomes one function, in which slots and header addresses live in
//! registers. Between units, the packet's frame holds everything that a later unit or the architecture reads. A *fresh*
//! unit is the first to see a packet. It assumes that every slot except the plan's given slots is 0 and does not read
//! it.
//!
//! # Batches
//!
//! A [`Batch`] is up to 32 packets that a fresh unit processes in one call: a second function of the unit loops over
//! them. A third function, the *scout*, runs first as a key-prefetch pass. It records the keys that the packets will
//! look up, each table then looks up all of these keys at once, and a packet whose key equals the recorded one finds
//! its record without a call. Where a table's key depends on the result of another table, scout and lookups repeat in
//! rounds. Tables that fit in near caches are searched inline, and if all do, there is no scout. For a packet that
//! completes, the batch keeps only its row: where the packet lies and the unit's results. A packet that needs more work
//! stops the loop with all of its state in the frame. Batching changes timing only, never results.
//!
//! Loop and scout are specialised for each path through the parser while the code budget lasts, so that header
//! addresses and validity are constants in them: see [`FinishedPacket::is_special`].
//!
//! # Failures
//!
//! Compilation can fail: [`Unsupported`] gives the reason, and the caller falls back to the interpreter. Execution
//! cannot fail: packets are checked against their length wherever they are read, indices against their arrays, and the
//! interpreter's fuel bounds loops.
//!
//! The crate knows no architecture. It is one of three crates with `unsafe` (`jit`, `ports`, `tables`); here it covers
//! the generated code and the functions which that code calls.

mod batch;
mod bit_set;
mod calls;
mod chain;
mod copies;
mod emit;
mod generate;
mod header_changes;
mod host;
mod in_place;
mod layout;
mod liveness;
mod native;
mod ones_complement;
mod packet;
mod pass;
mod probe;
mod scout;
#[cfg(test)]
mod text;
mod waiting;
mod walk;

pub use batch::{Batch, FinishedPacket, Progress};
pub use copies::{Copies, CopyOrigin};
pub use header_changes::{changes_headers_before, longest_parse};
pub use in_place::InPlacePacket;
pub use native::{NativeProgram, Speed, UnitOutcome, verify_code};
pub use packet::{DeferredRequest, Packet, SlotSet};
pub use probe::{Probe, ProbedPart};
pub use waiting::{PreservedSlots, RequestsByPacket, WaitingOfPacket, WaitingRequests};
pub use walk::{reads, requests, writes};

pub use engine::{MayWait, Plan, Step, Unit};

/// Maximum number of packets in a [`Batch`].
pub const BATCH: usize = scout::BATCH;
/// Maximum number of [results](Unit::results) of a unit.
pub const RESULTS: usize = scout::RESULTS;

/// The reason why a program cannot become machine code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// The program has more headers, slots or code than are worth compiling.
    #[error("the program is too large to be compiled")]
    TooLarge,
    /// The code generator does not support this machine.
    #[error("machine code cannot be generated here: {0}")]
    Machine(String),
    /// The caller needs the code no longer.
    #[error("the compilation was cancelled")]
    Cancelled,
}

/// Return codes of compiled functions.
pub(crate) mod code {
    pub const RETURN: u64 = 0;
    pub const EXIT: u64 = 1;
    pub const REJECT: u64 = 2;
    pub const OUT_OF_FUEL: u64 = 3;
    pub const ASSERT_FAILED: u64 = 4;
    pub const PENDING: u64 = 5;
    pub const STOPPED: u64 = 6;
    pub const ROW_REFUSED: u64 = 7;
}
