//! Tests the compiler and both executors against the reference evaluator.
//!
//! ```text
//! seed ─> generate ─> program ─┬─> check ─┬─> p4_reference ────────────┐
//!                              │          └─> lower ─┬─> interpreter ──┼─> the same packets, registers?
//!                              └─> entries, packets  └─> machine code ─┘
//! ```
//!
//! [`compare`] runs one program, [`generate`] makes one from a seed, and [`shrink`] makes a failing one small. Packet
//! tests run on the evaluator with [`run_script`]. The design is in docs/design/reference.md.

#![forbid(unsafe_code)]

mod compare;
mod generate;
mod script;
mod shrink;
mod traffic;

pub use compare::{PACKETS, Verdict, compare};
pub use generate::generate;
pub use script::run_script;
pub use shrink::shrink;
