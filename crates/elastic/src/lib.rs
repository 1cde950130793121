//! Keeps tables that are too large for the switch in the memory of servers, with one READ a lookup.
//!
//! ```text
//!   controller ── write ──> ElasticTable ── Read, Write ──> memory client ──> servers
//!   packet ────── lookup ─>      │       <── completed ───────────┘
//!                                └── Answer: hit, miss, dropped
//! ```
//!
//! The central type is [`ElasticTable`]. It follows Kim et al., *TEA* (SIGCOMM 2020), with these differences: a key may
//! be in any of `w` consecutive cells instead of in one of two buckets; insertions find shortest augmenting paths;
//! cells are authenticated; an overlay makes writes visible at once and covers what is in flight; packets wait in the
//! switch, in one list a key. The layout of the paper can be selected ([`layout::LayoutKind`],
//! [`placement::PlacementRule`]).
//!
//! **Invariants.**
//! - A lookup returns the record that its key has when the answer is given. It sees every accepted write.
//! - Memory that was lost, or that this switch did not write for this cell of this copy, is invalid: never a miss.
//! - An entry is in a cell, or in the overlay, at each moment. It leaves the overlay when all copies have acknowledged
//!   its write and all lookups that began before have ended.
//! - Packets of a key are answered in the order of their arrival. Each packet ends once, with an answer or a counted
//!   drop.
//! - A copy is read only after it was filled under an epoch of its own.
//!
//! The limit of the check: a server that returns an earlier, authentic content of a cell is not detected within the
//! epoch of its copy.
//!
//! The crate is sans-IO: READs and WRITEs are effects with tokens, completions are inputs. It has no clock, socket or
//! thread, and knows neither P4 programs nor RDMA. The feature `mutants` compiles errors that its simulation must find.

#![forbid(unsafe_code)]

pub mod admission;
pub mod cell;
pub mod keys;
pub mod layout;
pub mod ledger;
pub mod lookups;
mod mutant;
pub mod overlay;
pub mod placement;
pub mod prefixes;
pub mod record;
pub mod routes;
mod slots;
pub mod table;

pub use mutant::{ElasticMutant, ElasticMutation};
pub use table::{
    ElasticDrop, ElasticTable, EntryKey, LookupOutcome, LookupStart, MemoryToken, TableConfig, TableEffect, WriteFault,
};
