//! Load: frames offered to an interface, and frames counted where they arrive.
//!
//! Measuring a switch takes a sender that is faster than the switch and a receiver that is not slower, on a machine
//! whose cores the switch wants as well. So the two ends cost as little as the kernel allows:
//!
//! - [`Flood`] offers as much as there is: the kernel itself makes copies of a frame and sends them, without a socket
//!   and without a system call for each (some ten million a second and core).
//! - [`Pace`] offers a given rate through any [`Port`](crate::Port), in an order and with contents of its own: what a
//!   search for the highest rate without loss takes.
//! - [`Sink`] counts what arrives before the kernel's stack looks at it, and drops it.
//! - [`Link`] says beforehand whether an interface can carry frames, and of what [`payload_len`].
//!
//! `Flood` and `Sink` need root (CAP_NET_ADMIN and CAP_BPF). Like ports they leave nothing behind.

mod flood;
mod link;
mod pace;
mod sink;

pub use crate::interface::payload_len;
pub use flood::{Flood, Vary};
pub use link::Link;
pub use pace::Pace;
pub use sink::{Arrived, Sink};
