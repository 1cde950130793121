//! Finds links whose MTU is too small for what must pass them.

use diagnostics::Span;
use lab::{End, Node, Topology};
use wire::roce::Mtu;

/// Smallest MTU over which the messages of stores travel: 1,400 bytes after the headers of IPv4 and UDP.
const MIN_STORE_MTU: u32 = 1_428;

/// Returns the links that are too narrow for the messages of stores, in a live lab, or of memory servers.
pub fn narrow_links(topology: &Topology, is_live: bool) -> Vec<(Span, String)> {
    let least_of = |end: &End| match end.node {
        // Stores of a simulation exchange messages of any length.
        Node::Host(at) if topology.hosts[at].is_store && is_live => Some(("a store", MIN_STORE_MTU)),
        Node::Host(at) if topology.hosts[at].memory.is_some() => {
            Some(("a memory server", Mtu::Mtu256.ip_bytes() as u32))
        }
        _ => None,
    };
    let finding = |link: &lab::Link| {
        let (host, least) = link.ends.iter().filter_map(least_of).find(|(_, least)| link.shape.mtu < *least)?;
        Some((link.span, format!("the link of {host} needs an MTU of at least {least} bytes")))
    };
    topology.links.iter().filter_map(finding).collect()
}
