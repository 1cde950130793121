//! Shortest paths to every host, as entries of the built-in router.
//!
//! Every switch gets a route to each host that can be reached: to all neighbours that are nearest to it, by links; flows
//! spread over them. Ties are kept in the order of ports, so that the same topology gives the same entries.

use std::collections::VecDeque;

use serde_json::{Value, json};
use wire::ethernet::Address;

use crate::topology::{End, Node, Topology};

/// The built-in router: `builtin:router`.
pub const ROUTER: &str = include_str!("../programs/router.p4");

/// Most paths that a route spreads over.
const MAX_PATHS: usize = 32;

/// The Ethernet address of a switch's port: locally administered, unlike those of hosts.
pub fn port_mac(switch: usize, port: u32) -> Address {
    let ([.., a, b], [.., c, d]) = ((switch as u32 + 1).to_be_bytes(), port.to_be_bytes());
    Address([0x06, 0x00, a, b, c, d])
}

/// Links from every switch to the switch `from`; `None` where there is no way.
fn distances(topology: &Topology, neighbours: &[Vec<(u32, End)>], from: usize) -> Vec<Option<u32>> {
    let mut distance = vec![None; topology.switches.len()];
    distance[from] = Some(0);
    let mut reached = VecDeque::from([(from, 0)]);
    while let Some((switch, links)) = reached.pop_front() {
        for (_, end) in &neighbours[switch] {
            if let Node::Switch(next) = end.node
                && distance[next].is_none()
            {
                distance[next] = Some(links + 1);
                reached.push_back((next, links + 1));
            }
        }
    }
    distance
}

/// Entries of the built-in router for every switch, in the order of the switches: an entries file each, as JSON.
pub fn shortest_paths(topology: &Topology) -> Vec<Value> {
    let neighbours: Vec<_> = (0..topology.switches.len()).map(|switch| topology.ports(switch)).collect();
    let mut routes: Vec<Vec<Value>> = neighbours.iter().enumerate().map(|(at, ports)| own(at, ports)).collect();
    let mut known: Vec<Option<Vec<Option<u32>>>> = vec![None; topology.switches.len()];
    for (at, host) in topology.hosts.iter().enumerate() {
        let (Some((address, _)), Some(End { node: Node::Switch(edge), .. })) = (host.address, topology.uplink(at))
        else {
            continue;
        };
        let distance = known[edge].get_or_insert_with(|| distances(topology, &neighbours, edge));
        for (switch, routes) in routes.iter_mut().enumerate() {
            let Some(here) = distance[switch] else { continue };
            let nearer = |end: &End| match end.node {
                Node::Host(other) => here == 0 && other == at,
                Node::Switch(next) => distance[next].is_some_and(|there| there + 1 == here),
            };
            let next_hops = neighbours[switch].iter().filter(|(_, end)| nearer(end)).take(MAX_PATHS);
            let paths: Vec<Value> = next_hops.map(|(port, end)| forward(topology, *port, *end)).collect();
            if !paths.is_empty() {
                routes.push(json!({
                    "table": "RouterIngress.routes",
                    "match": { "hdr.ipv4.dst": [address.to_string(), 32] },
                    "one_shot": paths,
                }));
            }
        }
    }
    routes.into_iter().map(|entries| json!({ "table_entries": entries })).collect()
}

/// What a router says of itself on each port.
fn own(switch: usize, ports: &[(u32, End)]) -> Vec<Value> {
    let mut entries = Vec::new();
    for (port, _) in ports {
        let mac = port_mac(switch, *port).to_string();
        entries.push(json!({
            "table": "RouterIngress.neighbours", "match": { "standard_metadata.ingress_port": port },
            "action_name": "RouterIngress.arp_reply", "action_params": { "mac": mac },
        }));
        entries.push(json!({
            "table": "RouterEgress.port_mac", "match": { "standard_metadata.egress_port": port },
            "action_name": "RouterEgress.set_source", "action_params": { "mac": mac },
        }));
    }
    entries
}

fn forward(topology: &Topology, port: u32, end: End) -> Value {
    let mac = match end.node {
        Node::Host(host) => topology.hosts[host].mac,
        Node::Switch(switch) => port_mac(switch, end.port),
    };
    json!({
        "action_name": "RouterIngress.forward",
        "action_params": { "mac": mac.to_string(), "port": port },
        "weight": 1,
    })
}
