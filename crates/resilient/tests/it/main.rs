//! Tests of the protocol by simulation.

mod seeds;
