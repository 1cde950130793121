//! Runs packet tests in the P4 community's STF format: packets sent to a switch, and packets expected from it.
//!
//! ```text
//! # the table gets an entry, a packet arrives on port 0, and this must leave by port 2
//! add ipv4_lpm ipv4.dst:0x0a000100/24 forward(port:2)
//! packet 0 ffffffffffff 000000000001 0800 4500
//! expect 2 ffffffffffff ************ 0800 45**$
//! ```
//!
//! A test has three steps, each with a value as its result. [`parse`] reads a file into a [`Script`]. [`bind`] resolves
//! its names and values in a program and returns a [`Test`]. [`Test::run`] drives a switch through it, in virtual time,
//! and returns a [`Report`]. Mistakes of the first two steps are diagnostics with their positions in the script; those
//! of the third are in the report.
//!
//! # Semantics of a script
//! The semantics are those of p4c's runner for BMv2. A line is a command; `#` begins a comment.
//!
//! | command | meaning |
//! |---|---|
//! | `packet PORT HEX...` | the bytes arrive on the port |
//! | `expect PORT HEX...` | a packet that begins with these digits leaves by the port (`*`: any digit, `$`: its end) |
//! | `expect PORT` | some packet leaves by the port |
//! | `no_packet` | no packet leaves by any port except those expected |
//! | `add TABLE [PRIORITY] KEY:VALUE... ACTION(ARG:VALUE, ...) [= ID]` | an entry |
//! | `add TABLE ... ACTION(VALUE, ...)` | the same, with the values in the order of the parameters |
//! | `setdefault TABLE ACTION(...)` | sets the default action |
//! | `remove all`, `remove ID` | removes entries that the script added |
//! | `check_counter NAME(INDEX or ID) [packets or bytes == N]` | checks a counter (`!=`, `<`, `<=`, `>`, `>=` too) |
//! | `wait` | advances the time by a second |
//! | `mirroring_add ID PORT`, `mirroring_add_mc ID GROUP` | adds a mirror session |
//! | `mirroring_delete ID`, `mirroring_get ID` | removes or reads a mirror session |
//! | `mc_mgrp_create ID`, `mc_node_associate GROUP NODE` | multicast groups |
//! | `mc_node_create RID PORT...`, `mc_node_update NODE PORT...` | multicast nodes, numbered from 0 |
//! | `mc_set_lag_membership LAG PORT...` | a link aggregation group |
//! | `mc_node_create RID PORT... \| LAG...` | a copy for one member of each LAG: the same while it is up |
//! | `counter_read`, `counter_write NAME INDEX PACKETS BYTES` | counters |
//! | `register_read`, `register_write NAME INDEX VALUE`, `register_reset NAME` | registers |
//! | `meter_get_rates`, `meter_array_set_rates` | meters |
//! | `meter_set_rates NAME INDEX RATE:BURST RATE:BURST` | rates in units per microsecond, the committed one first |
//!
//! - At the end of the script, the packets that left by each port are compared to the expected ones, in order. Packets
//!   by ports that no `packet` or `expect` names are ignored, unless the script says `no_packet`.
//! - Tables and actions are named in full or by any unambiguous ending, keys by an ending that begins after a dot.
//!   `h$0.f` is `h[0].f`; `h.$valid$`, `h.valid` and `h` name the key `h.isValid()`.
//! - A larger priority wins. (The runner turns a priority p into 10000 - p, and in BMv2 the smaller number wins.)
//! - A key that is left out is 0 where the match is exact and matches everything elsewhere.
//! - In a ternary value only digits are matched: `*` matches anything, and so does every bit to the left of the first
//!   digit. `0x0101` for 32 bits matches any upper 16 bits.
//! - In a value for a longest-prefix match the digits before a `*` count from the left: `0x0a**` has an 8-bit prefix.
//!   `VALUE/LENGTH` gives the length explicitly.
//! - Virtual time advances by a second between a command that writes to the switch and the next packet, and by a
//!   millisecond between packets.
//!
//! # Extensions
//! `check_counter` checks, and `remove` removes; the runner ignores both. These commands exist here only, named as
//! `simple_switch_CLI` names them where it has them:
//!
//! | command | meaning |
//! |---|---|
//! | `check_register NAME(INDEX) == N` | checks a register's present value |
//! | `check_digest NAME VALUE...` | checks that the oldest unchecked digest has these values |
//! | `check_idle [ID...]` | checks that since the last `check_idle` exactly these entries were reported as idle |
//! | `table_set_timeout ID MS` | sets an idle timeout in milliseconds, checked once per second |
//! | `member PROFILE ID ACTION [ARG=VALUE...]`, `group PROFILE ID MEMBER...` | a member, a group with this number |
//! | `add TABLE ... member=ID`, `add TABLE ... group=ID` | an entry with a member or a group |
//! | `act_prof_create_member PROFILE ACTION(...)` | a member, numbered from 0 |
//! | `act_prof_create_group PROFILE` | a group, numbered from 0 |
//! | `act_prof_add_member_to_group PROFILE MEMBER GROUP [weight:N]` | adds a member to a group |
//! | the same with `[watch_port:PORT]` | the member is chosen only while the port is up |
//! | `table_indirect_add TABLE [PRIORITY] KEY:VALUE... MEMBER` | an entry with a member |
//! | `table_indirect_add_with_group TABLE ... GROUP` | an entry with a group |
//! | `pvs_add SET VALUE...`, `pvs_clear SET` | members of value sets |
//! | `set_queue_rate PPS [PORT [QUEUE]]`, `set_queue_depth PACKETS [PORT [QUEUE]]` | egress queues |
//! | `set_crc16_parameters POLYNOMIAL INITIAL FINAL_XOR REFLECT_IN REFLECT_OUT` | `crc16_custom`; the last two: 0 or 1 |
//! | `set_crc32_parameters ...` | `crc32_custom`, with the same parameters |
//! | `port_up PORT`, `port_down PORT` | link state |
//! | `mc_node_create RID PORT:BACKUP...` | the first backup port that is up replaces a port that is down |
//! | `mc_node_update NODE PORT:BACKUP...` | the same |
//!
//! Port 510 is the CPU port: a packet on it is one that the control plane sends, and `expect 510` is for packets to the
//! control plane. Both have the controller header as the program reads and writes it.
//!
//! Values of `range` keys are written `LOW..HIGH`, a ternary value may be written `VALUE&&&MASK`, and IPv4 addresses
//! are numbers. `ARG=VALUE` is `ARG:VALUE`, and commas between arguments may be left out.

mod bind;
mod data;
mod keys;
mod lex;
mod parse;
mod plan;
mod report;
mod run;
mod script;
mod value;

pub use bind::bind;
pub use data::{PacketPattern, difference};
pub use parse::parse;
pub use plan::{Cell, EntryRef, Op, Test};
pub use report::{Arrival, Failure, Reading, Report, Sent};
pub use run::{CommandRefusal, PacketPath, PreparedTest, RunOptions};
pub use script::{NodeReplica, NodeTargets, Relation, Script};

/// Maximum size of a script, in bytes.
pub const MAX_FILE_BYTES: u64 = 64 << 20;
