//! Executes pipeline IR programs: packet state, objects and the interpreter.
//!
//! Three parts take part in a run. [`PacketState`] is one packet in the pipeline: its bytes, headers and slots.
//! [`Objects`] holds the state that outlives packets: tables, profiles, registers, counters, meters, value sets. It
//! also accepts and checks the control plane's requests. An *executor* runs one body of an [`ir::Program`] on both. The
//! [`Interpreter`] defines the meaning of a program and is kept simple; a faster executor has to agree with it on every
//! bit, and uses the same two parts.
//!
//! ```text
//!               Program (what)         Now (when)
//!                      \                /
//!   PacketState ──>  Interpreter::run(body)  ──> Ending, PacketState with requests
//!                      /                \
//!               Objects (state)        Watch (events for traces)
//! ```
//!
//! An architecture (v1model) runs one body after the other and acts on their results: the ending, the slots it knows,
//! and the [`Requested`] copies, resubmissions and digests. After [`Ending::Reject`] of a parser, the error is in
//! [`PacketState::parser_error`]; headers extracted before it stay valid.
//!
//! Packets may run on several threads at once: [`Objects::worker`] gives another thread a view of the same state, and
//! the table there shows how each kind of state is shared. Readers never block anybody.
//!
//! The crate is pure: time is an argument, random numbers come from a seed, and there is no I/O and no thread. It knows
//! nothing of architectures, of P4 source, or of the text form of entries. It expects programs that the IR's validator
//! accepts, and panics on others; no packet and no control request makes it panic.

mod algorithm;
mod bit_string;
mod interpreter;
mod objects;
mod packet;
mod plan;
pub mod tables;
mod watch;

pub use algorithm::{Algorithms, CrcParams};
pub use bit_string::BitString;
pub use interpreter::{Ending, FUEL_BLOCKS, Interpreter, NO_ACTION, Now};
pub use objects::{
    ActionCall, ActionSpec, Applied, CELLS_PER_PAGE, ChangedEntry, Colour, CounterValue, DIRTY_PAGE, Dependency,
    EntryError, EntryHandle, EntryStats, GroupMember, INLINE_USE_PACKET, INLINE_USE_WRITES, InlineArray,
    InlineDependency, InlineRows, InlineWrite, Installed, LedgerChange, MAX_INLINE_USES, Meter, MeterConfig,
    MissingRow, OWNED_ROW, Objects, PageStates, PageWrite, RECORD_ACTION, RECORD_HIT, RECORD_NO_ACTION, RowRefusal,
    RowState, RowWrite, SharedWords, StateRow, TableEntry, UNACKNOWLEDGED_ROW, USES_PLACE, WeightedCall, ZEROS_PLACE,
    inline_arrays, meter_word, record_places, use_time,
};
pub use packet::{HeaderState, PacketState, Preserved, Requested};
pub use plan::{MAX_RESULTS, MayWait, Plan, Step, Unit};
pub use watch::{Event, Watch, WriteTarget};
