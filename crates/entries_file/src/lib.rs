//! Entries files: the state of a switch apart from its program, as JSON written by people.
//!
//! ```json
//! { "table_entries": [
//!     { "table": "MyIngress.ipv4_lpm", "match": { "hdr.ipv4.dstAddr": ["10.0.1.1", 32] },
//!       "action_name": "MyIngress.ipv4_forward", "action_params": { "dstAddr": "08:00:00:00:01:11", "port": 1 } },
//!     { "table": "MyIngress.ipv4_lpm", "default_action": true, "action_name": "MyIngress.drop" } ],
//!   "multicast_group_entries": [ { "multicast_group_id": 1, "replicas": [ { "egress_port": 2, "instance": 1 } ] } ],
//!   "clone_session_entries": [
//!     { "clone_session_id": 5, "replicas": [ { "egress_port": 3 } ], "packet_length_bytes": 128 } ],
//!   "register_entries": [ { "register": "MyIngress.seen", "index": 0, "value": 1 } ] }
//! ```
//!
//! This is the format of the `sN-runtime.json` files of the public P4 tutorials. Their `target`, `p4info` and
//! `bmv2_json` members are accepted and ignored; comments and trailing commas are allowed. [`parse`] checks a file
//! against a program and returns [`Entries`], ready to be applied, or reports all errors with their positions: a file
//! with a mistake is not applied at all.
//!
//! Values are numbers (`7`, `"0x7"`, `"0b111"`; negative ones in two's complement) or addresses (`"10.0.0.1"`, `"::1"`,
//! `"08:00:00:00:01:11"`), and are checked against the width of their field. The syntax of a key depends on its match
//! kind: `exact` and `optional` take a value, `lpm` takes `[value, prefix length]` or `"10.0.0.0/8"`, `ternary` takes
//! `[value, mask]` or `"value &&& mask"`, `range` takes `[low, high]` or `"low..high"`. An omitted `lpm`, `ternary`,
//! `range` or `optional` element matches everything. Where priorities are needed, the larger number wins.
//!
//! Everything else that a control plane can write has a section, too, with P4Runtime's terms where it has them:
//!
//! ```json
//! { "action_profile_members": [
//!     { "action_profile": "MyIngress.ecmp", "member_id": 1,
//!       "action_name": "set_port", "action_params": { "port": 1 } } ],
//!   "action_profile_groups": [
//!     { "action_profile": "MyIngress.ecmp", "group_id": 7,
//!       "members": [ { "member_id": 1, "weight": 2, "watch_port": 1 } ] } ],
//!   "table_entries": [
//!     { "table": "t", "match": { "hdr.h.a": 1 }, "group_id": 7 },
//!     { "table": "t", "match": { "hdr.h.a": 2 }, "member_id": 1 },
//!     { "table": "t", "match": { "hdr.h.a": 3 }, "one_shot": [ { "action_name": "drop", "weight": 1 } ] },
//!     { "table": "u", "match": { "hdr.h.a": 1 }, "action_name": "drop", "idle_timeout_ns": 5000000000,
//!       "meter_config": { "cir": 10, "cburst": 1, "pir": 20, "pburst": 2 } } ],
//!   "value_set_entries": [ { "value_set": "MyParser.kinds", "match": { "kinds": 5 } } ],
//!   "multicast_group_entries": [
//!     { "multicast_group_id": 1, "replicas": [ { "egress_port": 2, "backup_ports": [3] } ] } ],
//!   "clone_session_entries": [ { "clone_session_id": 6, "multicast_group_id": 1 } ],
//!   "meter_entries": [ { "meter": "m", "index": 0, "cir": 10, "cburst": 1, "pir": 20, "pburst": 2 } ],
//!   "queue_entries": [ { "port": 1, "priority": 0, "rate_pps": 100, "depth": 10 } ],
//!   "crc_entries": [ { "algorithm": "crc16_custom", "polynomial": "0x1021", "initial": "0xffff", "final_xor": 0,
//!                      "reflect_in": false, "reflect_out": false } ] }
//! ```
//!
//! A meter entry without `index` applies to all elements, a queue entry without `priority` to all queues of its port. A
//! member is selected only while its `watch_port` is up; `backup_ports` replace an `egress_port` that is down.
//!
//! [`apply`] writes entries to any switch, by its control interface. Only the switch knows whether it has room for
//! them, so it can still reject some: each is reported at its position, and the others are applied. A full table is
//! reported once, with the number of entries that do not fit. The command applies files to switches that have received
//! no packet, and ends if an entry is rejected. Labs try their files, and the changes of their scenarios, on such
//! switches before they start. The crate knows no architecture.
//!
//! [`check_stream`] reads a regular file of any length in little memory: it keeps the checked entries packed until they
//! are applied.

mod apply;
mod arrays;
mod data;
mod element;
mod groups;
mod json;
mod packed;
mod profiles;
mod scan;
mod stream;
mod table;
mod value;

use diagnostics::{Diagnostics, FileId, SourceMap};
use ir::Program;

pub use apply::apply;
pub use data::*;
pub use scan::SeekableInput;
pub use stream::{EntryStream, StreamCheck, check_stream};
pub use value::{ValueError, text as parse_value};

/// Maximum size of a file in bytes.
pub const MAX_FILE_BYTES: u64 = 256 << 20;

/// Maximum number of copies that one group or session makes of a packet.
pub use switch::MAX_REPLICAS;

/// Reads the file `file` of `map` and checks it against `program` and the architecture's largest port number. Returns
/// `None` if there was an error; `diagnostics` then has all errors.
pub fn parse(
    map: &SourceMap,
    file: FileId,
    program: &Program,
    max_port: u32,
    diagnostics: &mut Diagnostics,
) -> Option<Entries> {
    let before = diagnostics.error_count();
    let text = map.file(file).text().clone();
    let entries = json::read(&text, file, program, max_port, diagnostics);
    (diagnostics.error_count() == before).then_some(entries)
}
