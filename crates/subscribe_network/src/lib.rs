//! Extends packet subscriptions to several switches: derives the rules of each switch from the rules of hosts.
//!
//! ```text
//! Network ──> Routes: at each switch, the port towards each host ──┐
//! rules that deliver to hosts ─────────────────────────────────────┴──> rules that deliver to ports, for each switch
//! ```
//!
//! A publisher sends messages into the network without naming receivers; each switch forwards them by their contents
//! (content-based routing). [`Routes`] selects the links before any rule is known. At each switch, a rule that delivers
//! to hosts then becomes the same rule delivering to the ports towards them. [`Routes::rule`] converts rules one by
//! one, so that they can be added and removed individually.
//!
//! # Routes
//!
//! Every switch has *down* ports, each with the hosts reachable below it, and at most one *up* port for all other
//! hosts. Messages go up, and from each switch on their path down to the hosts that want them; messages from above only
//! go down. There are two topologies:
//!
//! - **Layers**, as in leaf-spine networks and fat trees: links join neighbouring layers only, and hosts are below the
//!   lowest. A switch with several up ports uses one of them, chosen by its number, so that the load of many switches
//!   spreads over the layer above. Messages may come down on any of them.
//! - **A tree** in any other network: shortest paths to a root in the middle. The other links carry no messages.
//!
//! A message never leaves by the port that it came in on, and a message from above never goes up
//! ([`Routes::split_horizon`]). There are therefore no loops and no duplicates. [`Routes::new`] traverses every route
//! once and rejects a network in which a host would be missed or reached twice. A host does not receive its own
//! messages.
//!
//! # Upward traffic
//!
//! With [`Upward::Exact`] a message goes up if a host above wants it; lower switches hold the rules of all hosts. With
//! [`Upward::Everything`] all messages go up, and a switch holds only the rules of the hosts below it: fewer entries,
//! more traffic.
//!
//! # State
//!
//! Tests of an aggregate (`avg(price) > 50`) are decided at the switch of the host. The switches before it forward
//! every message that could matter, so that the last one sees all messages of the aggregate. Counters, which rules of
//! different hosts share, belong to one switch; rules of a network cannot use them.
//!
//! The crate is pure: it knows no programs, entries, topology files or simulators.

#![forbid(unsafe_code)]

mod delivery_check;
mod layers;
mod network;
mod routes;
mod tree;
mod weaken;

pub use network::{HostId, LinkEnd, Network, NetworkError, SwitchId};
pub use routes::{Routes, RoutingTopology, Upward};
pub use weaken::UnsupportedRule;
