//! Tests of the protocol by simulation.

mod durable;
mod joining;
mod mutants;
mod rig;
mod seeds;
mod traps;
