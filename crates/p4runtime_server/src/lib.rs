//! Implements a P4Runtime server (specification 1.5): arbitration, reads, writes, pipelines, packet I/O and
//! notifications.
//!
//! ```text
//!   clients ── gRPC ──> service ──> Server (sans-IO) ── Operation ──> packet thread ──> switch, between two batches
//!      ^                   │           arbitration · pipeline              │
//!      └──── bounded ──────┘           translation · shadow                └── notifications ──> digests, packets
//! ```
//!
//! The protocol is a state machine that reads no clock and opens no socket. The service around it owns tasks, queues
//! and the listener. Writes are checked and translated off the packet thread and handed to it as one operation, so
//! that no packet sees part of an atomic batch. What clients wrote is kept beside the switch, as they wrote it, in a
//! copy-on-write shadow: reading a million entries blocks no writer. With a [`store::Store`] the state outlives the
//! process: what a call acknowledges is durable.
//!
//! The switch is a [`switch::SwitchControl`]; nothing here names an architecture.

#![forbid(unsafe_code)]

mod adaptive_spin;
mod arbitration;
mod array_mirror;
mod array_storage;
mod batch_status;
mod bounded_queue;
mod caller;
mod connections;
mod cow_map;
mod data_plane;
mod difference;
mod digests;
mod entity_key;
mod exchange;
mod framing;
mod hook;
mod key;
mod listen;
mod memory_budget;
mod message_admission;
mod packed_map;
mod pipeline;
mod read;
mod read_pace;
mod restrictions;
mod role;
mod schema;
mod server;
mod service;
mod shadow;
mod status;
#[cfg(test)]
mod steps;
pub mod store;
mod stream_place;
mod switch_ops;
mod trailer;
mod translate;
pub mod translation;
mod write;

pub use arbitration::{Outbox, StreamId};
pub use array_mirror::{KeptArrays, RestoredArrays};
pub use caller::Caller;
pub use data_plane::{
    DataPlane, DataPlaneChannels, DataPlaneHandle, NotificationReceiver, NotificationSender, OperationReceiver,
    SwitchBuilder, WakeFn, switch_builder,
};
pub use grpc_admission::{BoundServer, Tls};
pub use hook::{OperationHook, RunChannels};
pub use listen::{ListenError, Listening, bind, listen, listen_bound, listen_on, listen_with_store};
pub use pipeline::Pipeline;
#[cfg(any(test, feature = "testing"))]
pub use server::testing;
pub use server::{API_VERSION, RestoredUpdates, Server, Settings};
pub use status::{Code, Refusal, Status};
