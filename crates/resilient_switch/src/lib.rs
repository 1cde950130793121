//! Wraps a switch so that the state that its program marks `@resilient` survives the switch.
//!
//! ```text
//!            frames ──> ResilientSwitch ──> the switch inside ──> frames, notifications
//!                          │       ▲            │  waits for a row; wrote a row; output depends on a row
//!    requests to stores <──┘       └────────────┘
//! ```
//!
//! [`ResilientSwitch`] is a switch: the same drivers run it, live and simulated. It does four things around each step.
//! It asks the stores for the rows that packets wait for; when a row arrives, these packets run. It sends the writes of
//! packets to the stores. It holds the outputs of these packets until the stores have acknowledged the writes, or lets
//! them travel with the writes ([`resilient::HoldMode`]). And it takes rows away from the program when its lease ends,
//! or when another switch needs them. Rows with snapshots are copied between two steps, and outputs do not wait for
//! them.
//!
//! The protocol is in the crate `resilient`. The driver chooses the transport of its messages: in frames between the
//! ports of switches ([`InBand`]), or by sockets of the host ([`ResilientSwitch::take_messages`]). In the former case,
//! [`InBandSwitch`] is any switch of the network, since messages also pass those without resilient state.

#![forbid(unsafe_code)]

mod counts;
mod forwarded;
mod held;
mod idle;
pub mod in_band;
mod in_band_switch;
mod kept;
mod listing;
mod piggyback;
mod planned_move;
mod row_format;
mod snapshots;
mod wrapper;
mod write_prediction;

pub use counts::{RefusalCounts, ResilientCounts};
pub use in_band::{InBand, StoreRoute};
pub use in_band_switch::InBandSwitch;
pub use listing::{ListedRow, RowCursor, RowListing, RowQuery};
pub use piggyback::PiggybackCounts;
pub use planned_move::MoveProgress;
pub use row_format::group_numbers;
pub use snapshots::SnapshotReport;
pub use wrapper::{ResilientConfig, ResilientError, ResilientSwitch, replicated_groups};
