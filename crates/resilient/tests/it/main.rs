//! Tests of the protocol by simulation.

mod joining;
mod mutants;
mod rig;
mod seeds;
mod traps;
