//! Networks with common topologies.

use std::collections::BTreeMap;

use rng::SplitMix64;
use subscribe_network::{HostId, LinkEnd, Network, SwitchId};

/// Returns a network of this many switches without links.
fn switches(count: usize) -> Network {
    Network { switches: vec![BTreeMap::new(); count] }
}

fn free_port(network: &Network, switch: usize) -> u32 {
    network.switches[switch].len() as u32
}

fn link(network: &mut Network, one: usize, other: usize) {
    let (here, there) = (free_port(network, one), free_port(network, other));
    network.switches[one].insert(here, LinkEnd::Switch(SwitchId(other), there));
    network.switches[other].insert(there, LinkEnd::Switch(SwitchId(one), here));
}

/// Connects a new host to a switch.
fn host(network: &mut Network, switch: usize) {
    let host = network.hosts().expect("one connection each").len() as u32;
    let port = free_port(network, switch);
    network.switches[switch].insert(port, LinkEnd::Host(HostId(host)));
}

pub fn star(hosts: usize) -> Network {
    let mut network = switches(1);
    (0..hosts).for_each(|_| host(&mut network, 0));
    network
}

/// Returns a line of switches with one host each.
pub fn line(count: usize) -> Network {
    let mut network = switches(count);
    (0..count).for_each(|at| host(&mut network, at));
    (1..count).for_each(|at| link(&mut network, at - 1, at));
    network
}

pub fn ring(count: usize) -> Network {
    let mut network = line(count);
    link(&mut network, count - 1, 0);
    network
}

pub fn leaf_spine(leaves: usize, spines: usize, hosts: usize) -> Network {
    let mut network = switches(leaves + spines);
    for leaf in 0..leaves {
        (0..hosts).for_each(|_| host(&mut network, leaf));
        (0..spines).for_each(|spine| link(&mut network, leaf, leaves + spine));
    }
    network
}

/// Returns a fat tree of switches with `k` ports: edge switches, then aggregation switches, then cores.
pub fn fat_tree(k: usize) -> Network {
    let (half, edges) = (k / 2, k * k / 2);
    let mut network = switches(2 * edges + half * half);
    for edge in 0..edges {
        (0..half).for_each(|_| host(&mut network, edge));
        let pod = edge / half;
        (0..half).for_each(|at| link(&mut network, edge, edges + pod * half + at));
    }
    for at in 0..edges {
        (0..half).for_each(|up| link(&mut network, edges + at, 2 * edges + at % half * half + up));
    }
    network
}

/// Returns a random tree of switches with one host each, with some additional links.
pub fn random(rng: &mut SplitMix64, count: usize) -> Network {
    let mut network = switches(count);
    (0..count).for_each(|at| host(&mut network, at));
    for at in 1..count {
        let other = rng.below(at as u64) as usize;
        link(&mut network, other, at);
    }
    for _ in 0..count / 2 {
        let (one, other) = (rng.below(count as u64) as usize, rng.below(count as u64) as usize);
        if one != other {
            link(&mut network, one, other);
        }
    }
    network
}
