//! Provides what the tests of all crates share; only ever a dev-dependency.
//!
//! | module | for |
//! |---|---|
//! | [`allocations`] | the memory that a computation takes |
//! | [`memory`] | the memory that a process takes |
//! | [`skip`](mod@skip) | tests that need a privilege or a tool |
//! | [`golden`] | expected texts in files, which `UPDATE_EXPECT=1` rewrites |
//! | [`etcd`] | etcd servers |
//! | [`port`] | TCP ports that a test needs to know before a server listens on them |
//! | [`lock`](mod@lock) | tests of one binary that must not run at the same time |
//! | [`mutants`] | errors that a crate's test builds switch on, and the seeds that find them |
//! | [`seed`] | the seeds of random tests, from the environment |
//!
//! The crate knows nothing of P4 or switches, so crates low in the stack can use it without compiling the
//! workspace.

pub mod allocations;
pub mod etcd;
pub mod golden;
pub mod lock;
pub mod memory;
pub mod mutants;
pub mod port;
pub mod seed;
pub mod skip;

pub use lock::lock;
pub use seed::number;
pub use skip::{forbidden, optional, skip};
