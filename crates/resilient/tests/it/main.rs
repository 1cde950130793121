//! Tests of the protocol by simulation.

mod mutants;
mod rig;
mod seeds;
mod traps;
