//! The requirements of the P4Runtime specification, chapter by chapter, over gRPC. docs/p4runtime.md lists them with
//! the names of these tests, and a test compares the list to the tests.

#![allow(deprecated, reason = "fields that are deprecated are still to be served")]

mod arbitration;
mod arrays;
mod batches;
mod counters;
mod defaults;
mod digests;
mod entry_actions;
mod listed;
mod matches;
mod multicast;
mod packet_io;
mod pipeline;
mod profiles;
mod reads;
pub mod rig;
mod symmetry;
mod table_reads;
mod tables;
mod translation;
