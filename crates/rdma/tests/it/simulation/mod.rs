//! A simulation of a requester, a responder and a network with faults, and a model that judges it. A seed gives the
//! same run on every machine.
//!
//! ```text
//!   operations ──> Requester <──> network: loss, copies, delay, corruption, routers <──> Responder ──> memory
//!        completions <──┘                                                                                │
//!                 └──────────────────────────> model <───────────────────────────────────────────────────┘
//! ```

mod model;
mod network;
mod scenario;
mod tenant;
mod world;

pub use scenario::Scenario;

use rdma::Mutant;

/// An error that the model finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A READ returned bytes that the memory did not hold between its issue and its completion.
    WrongRead(String),
    /// The memory changed to a value that no request of this time gives it.
    WrongChange(String),
    /// A request completed without its effect, or with a wrong value.
    WrongCompletion(String),
    /// A request failed without a cause.
    WrongFailure(String),
    /// Requests did not end.
    NoEnd(String),
    /// A gap was reported twice.
    GapReportedTwice,
    /// More READs were outstanding than were negotiated.
    WindowExceeded(usize),
    /// A tenant had access to memory that it must not have.
    AccessGranted(&'static str),
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct SimulationReport {
    pub violations: Vec<Violation>,
    /// Requests that completed, failed, and packets on the network.
    pub completed: u64,
    pub failed: u64,
    pub packets: u64,
    pub retries: u64,
    pub duplicates: u64,
    pub wraps: u64,
    pub counts: rdma::RequesterCounts,
}

/// Runs a seed.
pub fn simulate(seed: u64, mutant: Option<Mutant>) -> SimulationReport {
    world::World::new(Scenario::of_seed(seed), mutant).run()
}
