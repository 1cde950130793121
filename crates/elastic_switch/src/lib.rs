//! Wraps a switch so that the entries of its `@elastic` tables lie in the memory of servers.
//!
//! ```text
//!            frames ──> ElasticSwitch ──> the switch inside ──> frames, notifications
//!                          │       ▲          │  waits for an entry       ▲
//!        READs, WRITEs <───┘       └──────────┘                           │
//!                                             control plane ── changes of ledgers
//! ```
//!
//! [`ElasticSwitch`] is a switch: the same drivers run it, live and simulated. Packets wait in the switch inside, by
//! the mechanism of `@resilient` tables: a miss ends the pass, its effects are undone, and the packet waits for the
//! key. The wrapper looks the key up in an [`elastic::ElasticTable`], adds the entry that a server returned, and lets
//! the packets run. Afterwards the entry is removed, unless it is popular.
//!
//! **Invariants.**
//! - A packet runs to completion once, with answers for all keys that it looked up.
//! - Packets of a key run in the order of their arrival.
//! - An entry in the table inside is the one that the control plane wrote last.
//!
//! RoCEv2 and setup frames to the switch's own address are consumed here. All other frames go to the program.

#![forbid(unsafe_code)]

mod config;
mod entry_form;
mod forwarded;
mod hold_down;
mod membership;
mod read_rate;
mod servers;
mod wrapper;

pub use config::{ElasticConfig, ElasticError};
pub use entry_form::EntryForm;
pub use membership::{MAX_SERVERS, MembershipError, ServerCounts, ServerState, bytes_per_server};
pub use servers::{MemoryServerPort, SwitchAddress};
pub use wrapper::{ElasticCounts, ElasticSwitch};
