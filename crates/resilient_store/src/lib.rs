//! Runs stores of resilient state, and connects live switches to them, over UDP.
//!
//! ```text
//!   cluster.toml ─> Cluster ─┬─> StoreServer::run     a store node: `triplane store run`
//!                            ├─> StoreHook            a switch's messages, between two batches: `triplane run --store`
//!                            └─> OperatorServer::run  the operator: `triplane store operate`
//! ```
//!
//! Switches and stores read the addresses of all members from a [`Cluster`] file. A message counts only if it comes
//! from its sender's address in the file, and with the key of the cluster ([`resilient::sealed`]). The store node
//! itself is a state machine of the crate `resilient`; this crate gives it a socket, a clock, and a directory with its
//! lives and, for a durable store, its rows. The operator keeps its layouts with a [`LayoutKeeper`], and answers users
//! on a [`StatusSocket`].

#![forbid(unsafe_code)]

mod cluster;
mod disk;
mod disk_log;
mod disk_writer;
mod durable_file;
mod hook;
mod key_file;
mod layout_changes;
mod layout_keeper;
mod layout_text;
mod lives;
mod open;
mod operator_server;
mod operator_status;
mod operator_text;
mod rows_socket;
mod server;
mod socket;
mod status_socket;

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
pub use layout_keeper::{FileKeeper, KeeperError, LayoutKeeper, LayoutSwap};
pub use layout_text::{LayoutText, LayoutTextError, MAX_LAYOUT_BYTES};
pub use lives::{LifeError, StoreDirectory};
pub use open::{OpenError, random_number};
pub use operator_server::OperatorServer;
pub use operator_status::{
    ChainStatus, GroupRows, HistoryLine, OperatorRequest, OperatorResponse, OperatorStatus, StoreRole, StoreStatus,
};
pub use rows_socket::{
    ListedRows, MAX_AWAY_MS, MoveStatus, NamedValue, RowStatus, RowsRequest, RowsResponse, RowsSocket, ask_switch,
    malformed, next_progress,
};
pub use server::{ServeError, StoreServer, StoreStatistics};
pub use socket::{ClusterNotice, NoticeHandler};
pub use status_socket::{StatusError, StatusSocket, ask_operator, next_status};
