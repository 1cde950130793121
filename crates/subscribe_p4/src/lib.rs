//! Packet subscriptions and P4: from a program's annotated headers to a whole program that matches rules, and from the
//! tables of compiled rules to its entries.
//!
//! The *static step* ("Packet Subscriptions for Programmable ASICs", section 3.1) is done once for an application.
//! [`read`] takes a checked P4_16 program whose headers say what rules may ask for, and gives its [`Format`];
//! [`program`] takes both and gives the text of a whole program for v1model:
//!
//! ```text
//! headers + parser + annotations ── read ──> Format ── program ──> parser, tables for each field, leaf table, deparser
//!                                              └── rules ──> subscribe::Format: what rules may speak of
//! ```
//!
//! The generated program is ordinary P4_16. It has no rules in it: its tables are the stages of [`subscribe::stages`], whose
//! entries come and go with the rules while packets flow.
//!
//! A packet may carry several messages (`@query_messages` before a stack of headers). Each is matched by itself, and each
//! subscriber gets a packet with just the messages that it asked for; the page of [`program`] says how.
//!
//! Aggregates (`@query_aggregate`) and counters (`@query_counter`) are registers: read before the tables that ask for them, written
//! once a message's leaf is known. What they hold is what [`subscribe::Memory`] says.
//!
//! [`read_back`](read_back::read_back) goes the other way: entries of anybody, as a file or a switch has them, become a
//! [`subscribe::Chain`], which says what they do with a message, and whether others do the same.
//!
//! The crate reads no files and prints nothing. It knows v1model's packages and metadata, and no switch.

#![forbid(unsafe_code)]

pub mod entries;
mod fit;
pub mod format;
mod groups;
mod mend;
pub mod possible;
mod read;
pub mod read_back;
mod rules;
mod stateful;
mod turn;
mod widths;
mod write;

pub use fit::{Misfit, misfit, order};
pub use format::Format;
pub use mend::{mend, state};
pub use possible::Possible;
pub use read::read;
pub use rules::{Rules, rules};
pub use write::{EVERYONE, Options, REST_SESSION, bare, program, stage_tables};
