//! Simulates a network on one machine, in virtual time: exact and repeatable. `lab_live` runs the same topologies as
//! namespaces and links.
//!
//! A [`Topology`] says which hosts and switches there are and how links join them. It is read from a file
//! ([`read`]) or generated ([`generate`]). [`sim`] runs it in virtual time, faster than real time, and the same to the
//! byte for the same seed. [`routes`] has a built-in router for switches without a program of their own.
//!
//! ```text
//! lab.toml ── read ──┐                 ┌── sim: virtual time, programs on simulated hosts
//! fat-tree ─ generate┴──> Topology ────┤
//! topology.json ─ read ─┘              └── emit: back to a file
//! ```
//!
//! The crate knows neither P4 nor how switches are made: the caller passes in [`sim::Element`]s, the same
//! devices that forward real frames. It reads no clock, opens no socket and prints nothing. Threads run parts of one
//! simulation, or several simulations ([`scenario::run_seeds`]); no result depends on their number.

#![forbid(unsafe_code)]

mod emit;
pub mod generate;
mod random;
pub mod read;
pub mod routes;
pub mod scenario;
pub mod sim;
mod topology;

pub use emit::emit;
pub use random::Random;
pub use read::UNLIMITED;
pub use topology::{
    Delay, End, Endpoint, Entries, Hold, Host, HostShim, IntRole, KernelUse, Lease, Link, Node, NotAQuantity,
    ProgramEdge, Rate, Shape, ShimRule, Size, SwitchProgram, TinyAccess, Topology, TopologySwitch,
};
