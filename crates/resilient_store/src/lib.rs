//! Runs stores of resilient state, and connects live switches to them, over UDP.
//!
//! ```text
//!   cluster.toml ─> Cluster ─┬─> StoreServer::run     a store node: `triplane store run`
//!                            ├─> StoreHook            a switch's messages, between two batches: `triplane run --store`
//!                            └─> OperatorServer::run  the operator: `triplane store operate`
//! ```
//!
//! Switches and stores know each other from a [`Cluster`] file, which all of them read. A message counts only from the
//! address that the file gives its sender. The store node itself is a state machine of the crate `resilient`; this
//! crate gives it a socket, a clock, and a directory that remembers its lives. The operator keeps its layouts with a
//! [`LayoutKeeper`], and answers people on a [`StatusSocket`].

#![forbid(unsafe_code)]

mod cluster;
mod hook;
mod layout_keeper;
mod lives;
mod open;
mod operator_server;
mod operator_status;
mod operator_text;
mod server;
mod socket;
mod status_socket;

pub use cluster::{Cluster, ClusterError, ClusterMember};
pub use hook::StoreHook;
pub use layout_keeper::{FileKeeper, KeeperError, LayoutKeeper, LayoutSwap};
pub use lives::{LifeError, StoreDirectory};
pub use open::{OpenError, random_number};
pub use operator_server::OperatorServer;
pub use operator_status::{
    ChainStatus, HistoryLine, OperatorRequest, OperatorResponse, OperatorStatus, StoreRole, StoreStatus,
};
pub use server::{StoreServer, StoreStatistics};
pub use status_socket::{StatusError, StatusSocket, ask_operator, next_status};
