//! Describes how an architecture runs the bodies of a program, for executors that compile.
//!
//! An architecture runs several bodies in sequence, with work of its own between some of them. It describes this in a
//! [`Plan`]: each [`Unit`] is a list of [`Step`]s. Between units, the architecture acts on the packet.

use ir::{BodyId, SlotId};

/// Maximum number of [results](Unit::results) of a unit.
pub const MAX_RESULTS: usize = 3;

/// One step of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Runs a body. The next step follows, whether the body returned or exited.
    Run(BodyId),
    /// Writes the parser's error to a slot.
    ErrorTo(SlotId),
    /// Writes the packet's length in bytes to a slot, truncated to its width.
    LengthTo(SlotId),
    /// Records the total size of the valid headers in bytes.
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
    /// Writes the input of a copy with this index to a slot, truncated to its width.
    InputTo(usize, SlotId),
    /// Sets a slot to a number, truncated to its width.
    Set(SlotId, u64),
    /// Writes the time of the run in microseconds to a slot, truncated to its width.
    TimeTo(SlotId),
    /// Makes the present value of a slot the unit's result with this index, instead of the value at the end of the
    /// unit.
    Keep(usize, SlotId),
    /// Ends the unit if the packet has pending requests (clone, resubmit, digest and the like). In a batch, digests and
    /// truncations are deferred and do not end it.
    StopIfRequested,
    /// Ends the unit like [`Step::StopIfRequested`], but in a batch, requests that may wait are
    /// set aside if there are no others.
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

/// A list of steps that becomes one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// Steps in execution order.
    pub steps: Vec<Step>,
    /// Whether this unit is the first to see a packet.
    pub fresh: bool,
    /// Units that can follow on the same packet, as indices into the plan.
    pub next: Vec<usize>,
    /// Slots, at most [`MAX_RESULTS`], whose low 64 bits at the end of the unit, or at a [`Step::Keep`], a batch keeps
    /// for each packet; `None` if the unit never runs on a batch.
    pub results: Option<Vec<SlotId>>,
    /// Whether the unit never runs on a packet outside a batch, so there is no code for that.
    pub is_batched_only: bool,
    /// Whether the unit, which is not fresh, runs on copies of a packet only.
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
