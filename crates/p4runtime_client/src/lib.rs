//! Implements the client side of P4Runtime: one library for every program that controls a switch.
//!
//! ```text
//!   ServerTarget ── connect ──> Client ── read, write, pipeline configuration ──> server
//!    (address, TLS)               └── open_stream ──> ControllerStream
//!                                                      ├── arbitration: asks for mastership
//!                                                      └── events: mastership, packets, digests, idle timeouts
//! ```
//!
//! [`Client`] is the central type. It is asynchronous and cheap to clone; every clone uses the same connection.
//! [`BlockingClient`] wraps it for programs without an executor of their own.
//!
//! - **Mastership.** [`Client::become_primary`] takes part in the election of one role and one device (specification
//!   5.3). [`Mastership`] hides the differences between servers.
//! - **Errors carry facts.** [`CallError::Rejected`] has one [`UpdateError`] for each update of a write that failed
//!   (specification 12.3). [`ConnectError::NotTls`] says that a TLS client met a server without TLS. The library
//!   renders no advice: callers know the names of their options.
//! - **Limits.** A call ends after [`CALL_TIMEOUT`], a connection attempt after [`CONNECT_TIMEOUT`], and a request
//!   has at most [`MAX_MESSAGE_BYTES`]. Answers have at most [`MAX_ANSWER_BYTES`]; only reads ([`MAX_MESSAGE_BYTES`])
//!   and pipeline configurations ([`MAX_CONFIG_BYTES`]) may have more.
//! - **Memory.** The memory of a message is computed before it is decoded, and bounded by [`MemoryLimits`]. A call
//!   whose answer would take more fails with OUT_OF_RANGE, as if the answer were too long.
//! - **Names.** [`names`] resolves the ids of P4Info.
//!
//! The crate prints nothing and has no knowledge of any program, table or architecture.

#![forbid(unsafe_code)]

mod blocking;
mod bounded_codec;
mod client;
mod connect;
mod election;
mod error;
mod mastership;
pub mod names;
mod stream;

pub use blocking::{BlockingClient, Wakeup, fetch_p4info};
pub use bounded_codec::MemoryLimits;
pub use client::{Client, EntityStream};
pub use connect::{ClientTls, ConnectError, ServerTarget, TargetError};
/// The cause of a failed TLS handshake.
pub use credentials::HandshakeFailure;
pub use election::ElectionError;
pub use error::{CallError, Rejection, UpdateError};
pub use mastership::Mastership;
pub use stream::{ArbitrationSender, ControllerStream, EventReceiver, StreamEvent};
/// The status codes of gRPC, which P4Runtime uses for updates as well.
pub use tonic::Code;

use std::time::Duration;

/// Maximum time for an answer: of a unary call, and of each message of a read.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time for a connection attempt, including the TLS handshake.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a request, and of a message of a read: 64 MiB.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// Maximum size of a pipeline configuration that a server reports: 16 MiB, the maximum size of the P4Info of a program.
pub const MAX_CONFIG_BYTES: usize = 16 << 20;
/// Maximum size of all other answers, and of a message of a stream: 4 MiB, gRPC's default.
pub const MAX_ANSWER_BYTES: usize = 4 << 20;
