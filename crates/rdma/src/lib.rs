//! Reads and writes the memory of servers over RoCEv2, from both ends.
//!
//! ```text
//!   reads, writes, atomics ──> Requester ── requests ──────────────────> Responder ──> memory regions
//!        completions       <──           <── responses, ACKs, NAKs ──
//! ```
//!
//! A [`Requester`] is the end in a switch, a [`Responder`] the one at a server whose network card does no RDMA. Both
//! speak the reliable connection of the InfiniBand Architecture Specification, volume 1, chapter 9, in the packets of
//! [`wire::roce`], as real cards and the soft RoCE of Linux do. `cargo xtask interop-roce` connects both with soft
//! RoCE; cards have not been tried. Connections are set up by their owners: each end gives a [`QpEndpoint`], which the
//! other one gets by some other way. One way is [`setup`], which a [`MemorySession`] (of a switch with a server) and a
//! [`MemoryNode`] (a server) use.
//!
//! **Invariants.**
//! - Each packet of a READ response has the bytes that the memory held at one moment between issue and completion, and
//!   after all earlier requests of its queue pair. Packets of one response may be of different moments.
//! - A WRITE, or an atomic operation, is applied once, in the order of its queue pair, and completes after that.
//! - At most the negotiated number of READs and atomic operations of a queue pair is outstanding.
//! - Each request completes once: with its result, or with the reason why its queue pair failed.
//! - Queue pair numbers, sequence numbers and memory keys have random parts. So packets of an earlier incarnation do
//!   not match.
//! - No packet changes anything unless its integrity check, its addresses and its queue pair number are valid.
//! - Memory outside the regions of a protection domain is not read or written for its queue pairs.
//!
//! The crate is sans-IO. Time and random numbers are arguments; frames are written into the memory of a [`FrameSink`].
//! It does not know tables or P4. The feature `mutants` adds the errors that the tests must find.

#![forbid(unsafe_code)]

mod endpoint;
mod frame;
mod memory;
mod mutant;
mod node;
mod path;
mod random;
mod requester;
mod responder;
mod session;
pub mod setup;
mod sink;

pub use endpoint::{QpEndpoint, QpNumber};
pub use frame::Receipt;
pub use memory::{AccessRights, MemoryKey, ProtectionDomain, RegistrationError};
pub use mutant::{Mutant, Mutation};
pub use node::{AllocateFn, MAX_READS, MemoryNode, MemoryNodeConfig};
pub use path::FramePath;
pub use random::NumberSource;
pub use requester::{
    Completion, FailureReason, MemoryRange, RequestOutcome, RequestRefusal, Requester, RequesterConfig, RequesterCounts,
};
pub use responder::{AcceptError, MAX_BATCH, QpFailure, Responder, ResponderConfig, ResponderCounts};
pub use session::{MemorySession, MemorySessionConfig, SessionEvent};
pub use sink::{FrameList, FrameSink};
