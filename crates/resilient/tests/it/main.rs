//! Tests of the protocol by simulation.

mod mutants;
mod seeds;
