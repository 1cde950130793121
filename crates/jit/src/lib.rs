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

use ir::{BodyId, SlotId};

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

/// One step of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Runs a body. The next step follows, whether the body returned or exited.
    Run(BodyId),
    /// Writes the parser's error to a slot.
    ErrorTo(SlotId),
    /// Writes the packet's length in bytes to a slot, truncated to its width.
    LengthTo(SlotId),
    /// Records the total size of the valid headers in bytes, for [`Packet::measured_bytes`].
    Measure,
    /// Writes to a slot the length in bytes that the packet has with its present headers: its length as received, less
    /// the size that [`Step::Measure`] recorded, plus the size of the valid headers; 0 if this is negative.
    PresentLengthTo(SlotId),
    /// Ends the unit unless a slot has this value.
    StopUnless(SlotId, u64),
    /// Ends the unit if a slot has this value, for a packet that the caller drops in that case: in a batch, only the
    /// unit's results are kept.
    DropIf(SlotId, u64),
    /// Copies the second slot to the first, zero-extended or truncated to its width.
    Copy(SlotId, SlotId),
    /// Writes the input of a copy with this index to a slot, truncated to its width: see
    /// [`Copies::run`].
    InputTo(usize, SlotId),
    /// Sets a slot to a number, truncated to its width.
    Set(SlotId, u64),
    /// Writes the time of the run in microseconds to a slot, truncated to its width.
    TimeTo(SlotId),
    /// Makes the present value of a slot the unit's result with this index, instead of the value at the end of the
    /// unit.
    Keep(usize, SlotId),
    /// Ends the unit if the packet has pending requests (clone, resubmit, digest and the like). In a batch, digests and
    /// truncations are [deferred](Batch::take_deferred) and do not end it.
    StopIfRequested,
    /// Ends the unit like [`Step::StopIfRequested`], but in a batch, requests that may wait are
    /// [set aside](Batch::take_waiting) if there are no others.
    StopUnlessWaiting(MayWait),
}

/// Requests that the caller can act on when other packets of the batch have run already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MayWait {
    /// Whether clones may wait.
    pub clones: bool,
    /// Whether resubmissions and recirculations may wait.
    pub passes: bool,
    /// Whether a resubmission ends the unit, as a stop at this step of a packet that is done.
    pub resubmission_ends: bool,
}

/// A list of steps that becomes one function of machine code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// Steps in execution order.
    pub steps: Vec<Step>,
    /// Whether this unit is the first to see a packet.
    pub fresh: bool,
    /// Units that can follow on the same packet, as indices into the plan.
    pub next: Vec<usize>,
    /// Slots, at most [`RESULTS`], whose low 64 bits at the end of the unit, or at a [`Step::Keep`], a batch keeps for
    /// each packet; `None` if the unit never runs on a batch.
    pub results: Option<Vec<SlotId>>,
    /// Whether the unit never runs on a packet outside a batch, so there is no code for that.
    pub is_batched_only: bool,
    /// Whether the unit, which is not fresh, runs on [copies](InPlacePacket::copies) of a packet only.
    pub runs_on_copies: bool,
}

/// The units in which an architecture runs a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Units, referred to by index.
    pub units: Vec<Unit>,
    /// Slots that the architecture writes before units and reads after them; `None` means all slots.
    pub visible: Option<Vec<SlotId>>,
    /// Slots of up to 64 bits that the architecture sets before a fresh unit. The unit assumes that all others are 0.
    pub given: Vec<SlotId>,
    /// The body at whose end the outgoing packet is complete, for programs in which nothing is emitted. In all others
    /// it is the body that emits.
    pub deparser: Option<BodyId>,
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
