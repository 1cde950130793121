//! Wraps a switch so that the state which its program marks `@resilient` survives the switch.
//!
//! ```text
//!            frames ──> ResilientSwitch ──> the switch inside ──> frames, notifications
//!                          │       ▲            │  waits for a row; wrote a row; output depends on a row
//!    requests to stores <──┘       └────────────┘
//! ```
//!
//! [`ResilientSwitch`] is a switch: the same drivers run it, live and simulated. It does four things around each step.
//! It asks the stores for the rows that packets wait for; when a row comes, these packets run. It sends what packets
//! wrote to the stores. It holds what these packets sent until the stores have acknowledged the writes. And it takes
//! rows away from the program when its lease ends, or when another switch needs them.
//!
//! The protocol is in the crate `resilient`. How its messages travel is the driver's choice: in frames between the
//! ports of switches ([`InBand`]), or by sockets of the host ([`ResilientSwitch::take_messages`]).

#![forbid(unsafe_code)]

mod forwarded;
mod held;
pub mod in_band;
mod kept;
mod row_format;
mod wrapper;

pub use in_band::{InBand, StoreRoute};
pub use wrapper::{ResilientConfig, ResilientError, ResilientSwitch, replicated_groups};
