//! Tests of the protocol by simulation.

mod aging;
mod durable;
mod joining;
mod mutants;
mod piggyback;
mod rig;
mod seeds;
mod sharing;
mod traps;
