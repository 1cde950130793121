//! Keeps the layouts of a cluster of stores in etcd, so that operators on several machines share them.
//!
//! ```text
//!   LayoutOperator ──> EtcdKeeper: LayoutKeeper ──> EtcdClient ──> KV.Range, KV.Txn, Auth.Authenticate
//!                      (epochs, text)               (servers in turn, timeouts, token)
//! ```
//!
//! The record is the value of one key, `PREFIX/layout`, as the JSON text that layout files have. A change is a
//! transaction that replaces the value if the key's revision is that of the record with the previous epoch. etcd
//! executes transactions one after another, so one of several operators that change the same record is first, and the
//! others read its record.
//!
//! Invariants:
//! - Reads are linearizable: they show every change that was acknowledged to anyone.
//! - A transaction is sent once. If its answer is lost, the caller does not know whether it was executed, and it may be
//!   executed later. Nothing else relies on it: a later transaction for the same epoch compares the same revision, so
//!   at most one of the two succeeds.
//! - Every call has a time limit, and every answer a limit of its length.
//!
//! The interface is `proto/etcdserverpb/etcd.proto`: only the messages and fields that are used. The crate prints
//! nothing, and knows neither command-line options nor files.

#![forbid(unsafe_code)]

mod client;
mod endpoints;
mod error;
mod keeper;
pub mod proto;

pub use endpoints::{EndpointError, EtcdEndpoints};
pub use error::EtcdError;
pub use keeper::{EtcdConfig, EtcdConfigError, EtcdKeeper, EtcdLogin, EtcdTls};
