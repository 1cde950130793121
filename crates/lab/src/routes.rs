//! Computes shortest paths to every host, as entries of the built-in router.
//!
//! Every switch gets a route to each reachable host, through all neighbours that are nearest to the host in number of
//! links; flows spread over them. Ties keep the order of ports, so the same topology gives the same entries.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

use serde_json::{Value, json};
use wire::ethernet::Address;

use crate::topology::{End, Node, Topology};

/// The built-in router: `builtin:router`.
pub const ROUTER: &str = include_str!("../programs/router.p4");

/// Maximum number of paths that a route spreads over.
const MAX_PATHS: usize = 32;

/// Returns the Ethernet address of a switch's port: locally administered, and distinct from those of hosts.
pub fn port_mac(switch: usize, port: u32) -> Address {
    let ([.., a, b], [.., c, d]) = ((switch as u32 + 1).to_be_bytes(), port.to_be_bytes());
    Address([0x06, 0x00, a, b, c, d])
}

/// Number of links from every switch to the switch `from`; `None` where there is no path.
fn distances_to(topology: &Topology, neighbours: &[Vec<(u32, End)>], from: usize) -> Vec<Option<u32>> {
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

/// The shortest paths through a topology. The entries are made from them one switch at a time, because those of a whole
/// large network would take gigabytes.
pub struct ShortestPaths<'a> {
    topology: &'a Topology,
    neighbours: Vec<Vec<(u32, End)>>,
    /// The switch, the index and the address of every host that has an address and a link to a switch.
    edges: Vec<(usize, usize, Ipv4Addr)>,
    /// Number of links to each switch that has hosts, from every switch.
    distances: BTreeMap<usize, Vec<Option<u32>>>,
}

impl<'a> ShortestPaths<'a> {
    /// Finds the shortest paths to all hosts.
    pub fn new(topology: &'a Topology) -> ShortestPaths<'a> {
        let neighbours: Vec<_> = (0..topology.switches.len()).map(|switch| topology.ports(switch)).collect();
        let edges = edges(topology);
        let mut distances = BTreeMap::new();
        for (edge, _, _) in &edges {
            distances.entry(*edge).or_insert_with(|| distances_to(topology, &neighbours, *edge));
        }
        ShortestPaths { topology, neighbours, edges, distances }
    }

    /// Returns the number of switches on a shortest path between two hosts with addresses; `None` without a path.
    pub fn switches_between(&self, from: usize, to: usize) -> Option<usize> {
        let edge = |host| self.edges.iter().find(|(_, other, _)| *other == host).map(|(switch, ..)| *switch);
        let links = self.distances.get(&edge(to)?)?.get(edge(from)?)?.as_ref()?;
        Some(*links as usize + 1)
    }

    /// Returns a switch's entries for the built-in router: an entries file, as JSON.
    pub fn entries(&self, switch: usize) -> Value {
        let own_neighbours = &self.neighbours[switch];
        let mut entries = own(switch, own_neighbours);
        for (edge, host, address) in &self.edges {
            let distance = &self.distances[edge];
            let Some(here) = distance[switch] else { continue };
            let nearer = |end: &End| match end.node {
                Node::Host(other) => here == 0 && other == *host,
                Node::Switch(next) => distance[next].is_some_and(|there| there + 1 == here),
            };
            let next_hops = own_neighbours.iter().filter(|(_, end)| nearer(end)).take(MAX_PATHS);
            let paths: Vec<Value> = next_hops.map(|(port, end)| forward(self.topology, *port, *end)).collect();
            if !paths.is_empty() {
                entries.push(json!({
                    "table": "RouterIngress.routes",
                    "match": { "hdr.ipv4.dst": [address.to_string(), 32] },
                    "one_shot": paths,
                }));
            }
        }
        json!({ "table_entries": entries })
    }
}

/// Returns the content of [`ShortestPaths::edges`], in the order of hosts.
fn edges(topology: &Topology) -> Vec<(usize, usize, Ipv4Addr)> {
    let mut edges: Vec<Option<usize>> = vec![None; topology.hosts.len()];
    for link in &topology.links {
        for ends in [[0, 1], [1, 0]] {
            if let [Node::Host(host), Node::Switch(edge)] = ends.map(|end| link.ends[end].node) {
                edges[host].get_or_insert(edge);
            }
        }
    }
    let hosts = topology.hosts.iter().enumerate();
    hosts.filter_map(|(at, host)| Some((edges[at]?, at, host.address?.0))).collect()
}

/// The entries for a router's own Ethernet address on each port: ARP replies and source addresses.
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
