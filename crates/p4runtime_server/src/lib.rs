//! A P4Runtime server (specification 1.5): what controllers write and read, who of them may, and what they are told.
//!
//! ```text
//!   clients ── gRPC ──> service ──> Server (sans-IO) ── Operation ──> plane ──> switch, between two batches
//!      ^                   │           arbitration · pipeline            │
//!      └──── bounded ──────┘           translation · mirror              └── notifications ──> digests, packets
//! ```
//!
//! The protocol is a state machine that reads no clock and opens no socket; the service around it owns tasks, queues and
//! the listener. What a write asks for is checked and translated beside the packets and handed to their thread as one
//! operation, so that a batch is seen as a whole. What clients wrote is kept beside the switch as they wrote it, in a
//! mirror whose snapshots cost nothing: reading a million entries holds no writer up. With a [`keep::Store`] it outlives the
//! process: what a call acknowledges is durable.

#![forbid(unsafe_code)]

mod arbitration;
mod asked;
mod budget;
pub mod bytestring;
mod difference;
mod digests;
mod gate;
mod intake;
pub mod keep;
mod key;
mod listen;
mod lookout;
mod mirror;
mod op;
mod pipeline;
mod place;
mod plane;
mod queue;
mod read;
mod role;
mod schema;
mod seats;
mod server;
mod service;
mod shelf;
mod status;
mod swap;
mod translate;
mod write;

pub use arbitration::{Outbox, StreamId};
pub use grpc_admission::Tls;
pub use listen::{ListenError, Listening, listen, listen_and_keep, listen_on};
pub use pipeline::Pipeline;
pub use plane::{
    Both, Builder, Notified, Operation, Plane, PlaneEnd, PlaneHandle, Teller, Waker, plane, switch_builder,
};
#[cfg(any(test, feature = "testing"))]
pub use server::testing;
pub use server::{API_VERSION, Lost, Server, Settings};
pub use status::{Code, Refusal, Status};
