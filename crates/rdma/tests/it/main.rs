//! Tests of requester and responder, by simulation and by single packets.

mod batches;
mod mutants;
mod pair;
mod seeds;
mod setup;
mod simulation;
mod traps;
