//! Executes programs as datagrams (paper, section 4.4): reliably, on one switch, reflected by a switch, on many
//! switches, and programs that are too large for a packet.
//!
//! ```text
//! source ──> ExecutionPlan ──> packets ──> ProgramExecutor ──> datagrams ──> switches, receiver
//!              guards, groups of              retries, matching                   │
//!              instructions, ranges of        of echoes                    <──────┘
//!              hops                              │
//! ExecutedProgram <── words in the order of the source
//! ```
//!
//! | pattern | here |
//! |---|---|
//! | reliable | [`ProgramExecutor`] sends each packet again until its echo comes, at most [`ExecutionOptions::tries`] times. A program whose repetition could store twice is refused by [`ExecutionPlan::new`] |
//! | targeted | [`ExecutionOptions::switch`]: a `CEXEC` on the number of the switch before the program, and the hop number behind it as a proof |
//! | reflective | [`ExecutionOptions::reflects`]: the first switch that reaches the end sends the packet back |
//! | scatter-gather | [`ScatterGather`]: many requests with one deadline; failures are outcomes of their targets |
//! | large programs | [`ExecutionPlan`] splits them by instructions and by hops |
//!
//! Packets of a large program are executed at different times. They carry together what depends on each other:
//! instructions that share a word, the halves of a value, and everything behind an instruction that may end the
//! program. What does not fit is refused.
//!
//! An echo is matched by the address to which its packet was sent, a sequence number and a random tag. It completes a
//! request if everything that switches do not change is as it was sent. Each try has its own name, and the echo of any
//! of them counts; all others of that packet are then repeated ones.
//!
//! Time and random numbers are arguments. Memory is bounded by [`ExecutorSettings`].

mod bonds;
mod gather;
mod mutant;
mod outcome;
mod packets;
mod plan;
mod requests;
mod retry;

pub use gather::{ScatterGather, ScatterTarget};
pub use mutant::{ExecutorMutant, ExecutorMutation};
pub use outcome::{ExecutedProgram, StoreOutcome, StoreVerdict};
pub use plan::{ExecutionOptions, ExecutionPlan};
pub use requests::{
    Completion, ExecutorSettings, OutgoingProgram, ProgramExecutor, RefusedReplies, RequestId, RequestOutcome,
};
