//! Tests of tables in remote memory.

mod layout;
mod mutants;
mod placement;
mod routes;
mod scenario;
mod seeds;
mod servers;
mod traps;
mod world;
