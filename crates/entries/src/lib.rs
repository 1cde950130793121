//! Entries files: what a switch holds besides its program, as JSON that people write.
//!
//! ```json
//! { "table_entries": [
//!     { "table": "MyIngress.ipv4_lpm", "match": { "hdr.ipv4.dstAddr": ["10.0.1.1", 32] },
//!       "action_name": "MyIngress.ipv4_forward", "action_params": { "dstAddr": "08:00:00:00:01:11", "port": 1 } },
//!     { "table": "MyIngress.ipv4_lpm", "default_action": true, "action_name": "MyIngress.drop" } ],
//!   "multicast_group_entries": [ { "multicast_group_id": 1, "replicas": [ { "egress_port": 2, "instance": 1 } ] } ],
//!   "clone_session_entries": [ { "clone_session_id": 5, "replicas": [ { "egress_port": 3 } ], "packet_length_bytes": 128 } ],
//!   "register_entries": [ { "register": "MyIngress.seen", "index": 0, "value": 1 } ] }
//! ```
//!
//! This is the format of the `sN-runtime.json` files of the public P4 tutorials, whose `target`, `p4info` and
//! `bmv2_json` members are accepted and not used; comments and trailing commas are allowed too. [`parse`] holds a file
//! against a program and gives [`Entries`], ready to be applied, or the findings, every one of them at its place: a
//! wrong file is never half applied.
//!
//! Values are numbers (`7`, `"0x7"`, `"0b111"`; negative ones in two's complement) or addresses (`"10.0.0.1"`, `"::1"`,
//! `"08:00:00:00:01:11"`), held against the width of what they are for. Keys are written by match kind: `exact` and
//! `optional` a value, `lpm` `[value, prefix length]` or `"10.0.0.0/8"`, `ternary` `[value, mask]` or `"value &&&
//! mask"`, `range` `[low, high]` or `"low..high"`. A `lpm`, `ternary`, `range` or `optional` element that is left out
//! matches everything. Where priorities are needed, a larger number wins.
//!
//! This crate knows files and programs, not switches.

mod groups;
mod json;
mod names;
mod table;
mod value;

use bits::Bits;
use ir::{Entry, Program, RegisterId, TableId};
use source::{Diagnostics, FileId, SourceMap, Span};

/// The largest file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 256 << 20;

/// Everything a file asks for, checked against the program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entries {
    /// Entries of tables, in the file's order.
    pub tables: Vec<(TableId, Entry, Span)>,
    /// New default actions: table, index into its actions, arguments.
    pub defaults: Vec<(TableId, u32, Vec<Bits>, Span)>,
    /// Multicast groups.
    pub groups: Vec<Group>,
    /// Mirror sessions, which `clone` copies packets to.
    pub mirrors: Vec<Mirror>,
    /// Register elements: register, index, value.
    pub registers: Vec<(RegisterId, u64, Bits)>,
}

/// A multicast group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What the program writes to `mcast_grp`; never 0.
    pub id: u32,
    /// The copies.
    pub replicas: Vec<Replica>,
}

/// One copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The port it goes to.
    pub port: u32,
    /// What the program sees as `egress_rid`.
    pub instance: u32,
}

/// A mirror session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// The session number that `clone` names.
    pub id: u32,
    /// The copies.
    pub replicas: Vec<Replica>,
    /// How many bytes of the packet are copied; `None` for all.
    pub truncate: Option<u32>,
}

/// Reads the file `file` of `map` and checks it against `program`. `None` when there was an error; all of them are in
/// `diagnostics` then.
pub fn parse(map: &SourceMap, file: FileId, program: &Program, diagnostics: &mut Diagnostics) -> Option<Entries> {
    let before = diagnostics.error_count();
    let text = map.file(file).text().clone();
    let entries = json::read(&text, file, program, diagnostics);
    (diagnostics.error_count() == before).then_some(entries)
}
