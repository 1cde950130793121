//! Contains the subcommands, one per file.

pub mod bench;
pub mod build;
pub mod check;
pub mod completions;
pub mod demo;
pub mod dump;
pub mod p4info;
pub mod run;
pub mod stf;
pub mod trace;
