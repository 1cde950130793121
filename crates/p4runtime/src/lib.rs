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
//! mirror whose snapshots cost nothing: reading a million entries holds no writer up.

#![forbid(unsafe_code)]

mod arbitration;
pub mod bytestring;
mod op;
mod plane;
mod role;
mod schema;
mod shelf;
mod status;

pub use plane::{Builder, Notified, Operation, Plane, PlaneEnd, PlaneHandle, Waker, plane};
pub use status::{Code, Refusal, Status};
