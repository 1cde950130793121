//! Generates load: offers frames to an interface and counts them at the receiver.
//!
//! Measuring a switch takes a sender that is faster than the switch and a receiver that is not slower, on a machine
//! whose cores the switch needs too. So both ends cost as little as the kernel allows:
//!
//! - [`Flood`] offers the maximum load: the kernel itself copies a frame and sends the copies, without a socket and
//!   without a system call per frame (some ten million per second and core).
//! - [`Pace`] offers a given rate through any [`Port`](crate::Port), with given frames in a given order, for searching
//!   the highest rate without loss.
//! - [`Sink`] counts frames before the kernel's stack sees them, or in the driver, and drops them.
//! - [`ThroughputTest`] searches for the highest rate that a forwarder between two interfaces carries, and
//!   [`measure_latency`] measures single frames at a light load.
//! - [`RedirectOnly`] and [`HandWrittenRouter`] forward at XDP, as baselines: the first shows the cost of the path, the
//!   second that of a router as programmers write it with the kernel's own tables.
//! - [`MapLookups`] looks up keys in the kernel's own maps, as a baseline for tables.
//! - [`Link`] reports whether an interface can carry frames, and their maximum [`payload_len`].
//!
//! `Flood`, `Sink` and the forwarders need root (CAP_NET_ADMIN and CAP_BPF). Like ports, they leave no state behind.

mod flood;
mod latency;
mod link;
mod map_lookups;
mod pace;
mod rate_search;
mod sink;
mod throughput;
mod xdp_redirect;
mod xdp_router;

pub use crate::interface::payload_len;
pub use flood::{Flood, FrameMix, FrameVariety, Vary};
pub use latency::{LATENCY_RATE_PPS, measure_latency};
pub use link::Link;
pub use map_lookups::{LookupMap, MapLookups, lookup_key};
pub use pace::Pace;
pub use sink::{Arrived, Sink};
pub use throughput::{LoadError, LoadPath, LoadTrial, ThroughputTest, best_trial};
pub use xdp_redirect::RedirectOnly;
pub use xdp_router::{HandWrittenRouter, Ipv4Route, NextHop};
