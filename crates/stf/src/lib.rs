//! Packet tests in the P4 community's STF format: what goes into a switch, and what has to come out.
//!
//! ```text
//! # the table gets an entry, a packet comes in by port 0, and this has to leave by port 2
//! add ipv4_lpm ipv4.dst:0x0a000100/24 forward(port:2)
//! packet 0 ffffffffffff 000000000001 0800 4500
//! expect 2 ffffffffffff ************ 0800 45**$
//! ```
//!
//! Three steps, each a value: [`parse`] reads a file into a [`Script`], [`bind`] holds its names and values against a
//! program and gives a [`Test`], and [`Test::run`] drives a switch through it, in virtual time, and gives a
//! [`Report`]. Mistakes of the first two steps are diagnostics at their place in the script; those of the third are
//! in the report.
//!
//! # What a script means
//! The meaning is that of p4c's runner for BMv2. A line is a command; `#` begins a comment.
//!
//! | command | meaning |
//! |---|---|
//! | `packet PORT HEX...` | the bytes come in by the port |
//! | `expect PORT HEX...` | a packet that begins with these digits (`*`: any digit) leaves by the port; with `$` at the end it has no more bytes |
//! | `expect PORT` | some packet leaves by the port |
//! | `no_packet` | nothing leaves but what is expected, whichever port it is |
//! | `add TABLE [PRIORITY] KEY:VALUE... ACTION(ARG:VALUE, ...) [= ID]` | an entry |
//! | `setdefault TABLE ACTION(...)` | another default action |
//! | `remove all`, `remove ID` | takes away what the script added |
//! | `check_counter NAME(INDEX or ID) [packets or bytes == N]` | a counter's value now (`!=`, `<`, `<=`, `>`, `>=` too) |
//! | `wait` | lets a second pass |
//! | `mirroring_add ID PORT`, `mirroring_add_mc ID GROUP`, `mirroring_delete ID`, `mirroring_get ID` | mirror sessions |
//! | `mc_mgrp_create ID`, `mc_node_create RID PORT...`, `mc_node_update NODE PORT...`, `mc_node_associate GROUP NODE` | multicast; nodes are numbered from 0 |
//! | `mc_set_lag_membership LAG PORT...`, `mc_node_create RID PORT... \| LAG...` | a copy for one member of each link aggregation group: the same for all packets, another one only while that is down |
//! | `counter_read`, `counter_write NAME INDEX PACKETS BYTES` | counters |
//! | `register_read`, `register_write NAME INDEX VALUE`, `register_reset NAME` | registers |
//! | `meter_get_rates`, `meter_set_rates NAME INDEX RATE:BURST RATE:BURST`, `meter_array_set_rates` | meters; rates are units a microsecond, the committed one first |
//!
//! - The packets that leave by a port are compared with what is expected there in order, when the script has ended.
//!   Packets by ports that no `packet` or `expect` names are ignored, unless the script says `no_packet`.
//! - Tables and actions are named in full or by any ending that is not ambiguous, keys by an ending that begins behind
//!   a dot. `h$0.f` is `h[0].f`; `h.$valid$`, `h.valid` and `h` name the key `h.isValid()`.
//! - A larger priority wins. (The runner turns a priority p into 10000 - p, and in BMv2 the smaller number wins.)
//! - A key that is left out is 0 where the match is exact and matches everything elsewhere.
//! - In a ternary value the digits say what is matched: `*` matches anything, and so does every bit to the left of the
//!   first digit. `0x0101` for 32 bits says nothing of the upper 16 bits.
//! - In a value for a longest-prefix match the digits before a `*` count from the left: `0x0a**` has an 8-bit prefix.
//!   `VALUE/LENGTH` says it plainly.
//! - Virtual time advances by a second between a command that writes to the switch and the next packet, and by a
//!   millisecond between packets.
//!
//! # What goes beyond it
//! `check_counter` checks, and `remove` removes; the runner ignores both. These commands exist here only, named as
//! `simple_switch_CLI` names them where it has them:
//!
//! | command | meaning |
//! |---|---|
//! | `check_register NAME(INDEX) == N` | a register's value now |
//! | `check_digest NAME VALUE...` | the oldest digest that nobody asked for yet has these values |
//! | `check_idle [ID...]` | since the last `check_idle`, the control plane was told that these entries are idle, and no others |
//! | `table_set_timeout ID MS` | the entry is idle when no packet hits it for so many milliseconds, looked at once a second |
//! | `act_prof_create_member PROFILE ACTION(...)`, `act_prof_create_group PROFILE` | members and groups, each numbered from 0 |
//! | `act_prof_add_member_to_group PROFILE MEMBER GROUP [weight:N] [watch_port:PORT]` | a member of a group, chosen only while the port is up |
//! | `table_indirect_add TABLE [PRIORITY] KEY:VALUE... MEMBER`, `table_indirect_add_with_group TABLE ... GROUP` | entries of tables with a profile |
//! | `pvs_add SET VALUE...`, `pvs_clear SET` | members of value sets |
//! | `set_queue_rate PPS [PORT [QUEUE]]`, `set_queue_depth PACKETS [PORT [QUEUE]]` | egress queues |
//! | `set_crc16_parameters POLYNOMIAL INITIAL FINAL_XOR REFLECT_IN REFLECT_OUT`, `set_crc32_parameters` | what `crc16_custom` and `crc32_custom` compute; the last two are 0 or 1 |
//! | `port_up PORT`, `port_down PORT` | link state |
//! | `mc_node_create RID PORT:BACKUP...` | the first of the backup ports that is up stands in for the port while it is down; `mc_node_update` too |
//!
//! Port 510 is the CPU port: what comes in by it is a packet that the control plane sends, and `expect 510` is for what
//! it gets. Both have the controller header as the program reads and writes it.
//!
//! Values of `range` keys are written `LOW..HIGH`, and a ternary value may be written `VALUE&&&MASK`.

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
pub use data::{Pattern, difference};
pub use parse::parse;
pub use plan::Test;
pub use report::{Arrival, Failure, Reading, Report, Sent};
pub use run::{RunOptions, Way};
pub use script::Script;

/// The largest script that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 64 << 20;
