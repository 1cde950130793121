//! Exports a switch's metrics to Prometheus.
//!
//! ```text
//!   scraper ── HTTP ──> MetricsServer: its own thread ── request ──> SnapshotSource: polled between two batches
//!                            └── text format <── MetricsSnapshot, at most one per second ──┘
//! ```
//!
//! [`listen`] returns both ends. The thread that forwards packets polls the [`SnapshotSource`]: it checks one flag, and
//! copies numbers when a snapshot is requested. The number of scrapers does not affect it.
//!
//! The owner of the source decides where the numbers come from: the crate has no knowledge of any architecture or
//! switch.

#![forbid(unsafe_code)]

mod family;
mod listener;
mod snapshot;
mod text;

pub use family::{MetricFamily, MetricKind};
pub use grpc_admission::BoundServer;
pub use listener::{ListenError, MetricsServer, bind, listen, listen_bound};
pub use snapshot::{MetricsSnapshot, SnapshotSource};
