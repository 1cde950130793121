//! Connects packet subscriptions and P4: generates a P4 program that matches rules from a program's annotated headers,
//! and translates the tables of compiled rules to entries of that program.
//!
//! The *static step* ("Packet Subscriptions for Programmable ASICs", section 3.1) runs once per application. [`read`]
//! extracts the [`ProgramFormat`] from a checked P4_16 program whose annotations declare the fields of rules;
//! [`program`] generates the text of a complete v1model program:
//!
//! ```text
//! headers + parser + annotations ── read ──> Format ── program ──> parser, tables for each field, leaf table, deparser
//!                                              └── rules ──> subscribe::MessageFormat: the vocabulary of rules
//! ```
//!
//! The generated program is ordinary P4_16 and contains no rules. Its tables are the stages of [`subscribe::stages`],
//! whose entries are added and removed with the rules while packets flow.
//!
//! A packet may carry several messages (`@query_messages` before a stack of headers). Each is matched separately, and
//! each subscriber receives a packet with only its messages; see [`program`].
//!
//! Aggregates (`@query_aggregate`) and counters (`@query_counter`) are registers. They are read before the tables that
//! test them and written once a message's leaf is known. [`subscribe::Memory`] is their reference semantics.
//!
//! [`read_back`](read_back::read_back) is the inverse translation: it converts arbitrary entries of a file or a switch
//! to a [`subscribe::TableChain`], which gives the delivery of a message and can be compared with other tables.
//!
//! The crate reads no files and prints nothing. It knows v1model's packages and metadata, and no switch.

#![forbid(unsafe_code)]

mod consistent_update;
pub mod entries;
pub mod format;
mod groups;
mod match_states;
mod mismatch;
mod network_entries;
pub mod possible;
mod read;
pub mod read_back;
mod rule_format;
mod state_entries;
mod widths;
mod write;

pub use consistent_update::repair::{entity_state, repair};
pub use format::ProgramFormat;
pub use match_states::{match_states, slot_identities};
pub use mismatch::{ProgramMismatch, mismatch, order};
pub use possible::Possible;
pub use read::read;
pub use read_back::is_rule_table;
pub use rule_format::{RuleFormat, rule_format};
pub use write::{
    EVERYONE, FLOOD, HOST_ADDRESSES, ProgramOptions, REST_SESSION, bare, bitmap_of, program, stage_tables,
};
