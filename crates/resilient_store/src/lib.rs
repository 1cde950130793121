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
//! remembers its lives.

#![forbid(unsafe_code)]

mod cluster;
mod hook;
mod key_file;
mod lives;
mod open;
mod server;
mod socket;

pub use cluster::{Cluster, ClusterError, ClusterMember};
pub use hook::StoreHook;
pub use key_file::{KeyFileError, create_key_file};
pub use lives::{LifeError, StoreDirectory};
pub use open::{OpenError, random_number};
pub use server::{StoreServer, StoreStatistics};
pub use socket::{ClusterNotice, NoticeHandler};
