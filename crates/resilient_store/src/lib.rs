//! Runs stores of resilient state, and connects live switches to them, over UDP.
//!
//! ```text
//!   cluster.toml ─> Cluster ─┬─> StoreServer::run     a store node: `triplane store run`
//!                            └─> StoreHook            a switch's messages, between two batches: `triplane run --store`
//! ```
//!
//! Switches and stores know each other from a [`Cluster`] file, which all of them read. A message counts only from the
//! address that the file gives its sender, and with the key of the cluster ([`resilient::sealed`]). The store node
//! itself is a state machine of the crate `resilient`; this crate gives it a socket, a clock, and a directory that
//! remembers its lives and, of a durable store, its rows.

#![forbid(unsafe_code)]

mod cluster;
mod disk;
mod disk_log;
mod disk_writer;
mod hook;
mod key_file;
mod lives;
mod open;
mod server;
mod socket;

pub use cluster::{Cluster, ClusterError, ClusterMember};
/// The disk of a store without its socket, for benchmarks.
#[doc(hidden)]
pub mod bench {
    pub use crate::disk::{DiskOwner, StoreDisk};
    pub use crate::disk_writer::{DiskWriter, ServerDisk};
}

pub use disk::DiskError;
pub use disk_writer::DiskStatistics;
pub use hook::StoreHook;
pub use key_file::{KeyFileError, create_key_file};
pub use lives::{LifeError, StoreDirectory};
pub use open::{OpenError, random_number};
pub use server::{ServeError, StoreServer, StoreStatistics};
pub use socket::{ClusterNotice, NoticeHandler};
