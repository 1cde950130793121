//! Runs programs of the pipeline IR.
//!
//! Three things meet in a run. [`PacketState`] is one packet in the pipeline: its bytes, headers and slots. [`Objects`]
//! is what outlives packets: tables, profiles, registers, counters, meters, value sets; it is also where the control
//! plane writes, each request checked. An *executor* runs one body of an [`ir::Program`] on both: the
//! [`Interpreter`], which defines what a program means and is kept obvious; a faster one has to agree with it on every
//! bit, and uses the same two.
//!
//! ```text
//!               Program (what)         Now (when)
//!                      \                /
//!   PacketState ──>  Interpreter::run(body)  ──> Ending, PacketState with requests
//!                      /                \
//!               Objects (state)        Watch (events for traces)
//! ```
//!
//! An architecture (v1model) runs one body after the other and acts on what they leave: the ending, the slots it
//! knows, and the [`Requested`] copies, resubmissions and digests. For a parser, [`Ending::Reject`] leaves the error
//! in [`PacketState::parser_error`]; headers extracted before it stay.
//!
//! Packets may run on several threads at once: [`Objects::worker`] gives another thread its view of the same state, and
//! the table there says how each kind of state is shared. Nobody waits for anybody who reads.
//!
//! The crate is pure: time is an argument, random numbers come from a seed, there is no input or output and no
//! thread. It knows nothing of architectures, of P4 source, or of how entries are written down. It expects programs
//! that the IR's validator accepts, and panics on others; no packet and no control request makes it panic.

mod algorithm;
mod bit_string;
mod interpreter;
mod objects;
mod packet;
pub mod tables;
mod watch;

pub use algorithm::{Algorithms, CrcParams};
pub use bit_string::BitString;
pub use interpreter::{Ending, FUEL_BLOCKS, Interpreter, Now};
pub use objects::{
    ActionCall, ActionSpec, Applied, Colour, CounterValue, EntryError, GroupMember, Installed, Meter, MeterConfig,
    Objects, RECORD_ACTION, RECORD_HIT, RECORD_NO_ACTION, TableEntry, WeightedCall, record_places,
};
pub use packet::{HeaderState, PacketState, Preserved, Requested};
pub use watch::{Event, Watch, Written};
