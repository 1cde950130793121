//! Packet subscriptions over several switches: from what hosts want to the rules of each switch.
//!
//! ```text
//! Network ──> Ways: at each switch, the port towards each host ──┐
//! rules that deliver to hosts ───────────────────────────────────┴──> rules that deliver to ports, for each switch
//! ```
//!
//! A publisher sends messages into the network without saying to whom; each switch passes them on by their contents
//! (content-based routing). [`Ways`] decides over which links, before any rule is known. Then a rule that delivers to
//! hosts is, at each switch, the same rule delivering to the ports towards them; [`Ways::rule`] makes one of the other,
//! so that rules come and go one by one.
//!
//! # Ways
//!
//! Every switch has ports *down*, each with the hosts that can be reached below it, and at most one port *up*, for all
//! other hosts. Messages go up, and from each switch on their way down to where they are wanted; from above they go
//! down only. That is so in two shapes:
//!
//! - **In layers**, as leaf-spine networks and fat trees are: links join neighbouring layers only, the hosts are at the
//!   lowest. A switch may have many ports up, of which it uses one; which one follows from its number, so that the load of
//!   many switches spreads over the layer above. A message may come down on any of them.
//! - **A tree** in any other network: shortest paths to a root in the middle. The other links carry no messages.
//!
//! Nothing that came in on a port leaves by it, and nothing that came from above goes up ([`Ways::split_horizon`]): so no
//! message goes round, and none comes twice. [`Ways::new`] walks every way once and refuses a network in which a host
//! would be missed or reached twice. A host does not get its own messages.
//!
//! # What goes up
//!
//! With [`Upward::Exact`] a message goes up if a host above wants it: switches far down know the rules of all hosts. With
//! [`Upward::Everything`] all messages go up, and a switch knows the rules of the hosts below it only: fewer entries, more
//! traffic.
//!
//! # State
//!
//! A test of an aggregate (`avg(price) > 50`) is decided where the host is connected; the switches before it pass on
//! whatever could matter, so that the last one sees every message that the aggregate is over. Counters, which rules of
//! different hosts share, belong to one switch, and rules of a network cannot speak of them.
//!
//! The crate is pure: it knows neither programs nor entries, topology files nor simulators.

#![forbid(unsafe_code)]

mod layers;
mod network;
mod remote;
mod tree;
mod walk;
mod ways;

pub use network::{Far, HostId, Network, NetworkError, SwitchId};
pub use remote::Unfit;
pub use ways::{Shape, Upward, Ways};
