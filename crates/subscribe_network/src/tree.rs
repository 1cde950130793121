//! Computes routes over a spanning tree of any network.

use std::collections::{BTreeMap, BTreeSet};

use crate::network::{LinkEnd, Network, SwitchId};
use crate::routes::SwitchPorts;

/// Returns the centre: the switch with the smallest distance to its farthest switch; the first of several.
pub(crate) fn middle(network: &Network) -> Option<SwitchId> {
    let farthest = |switch: &SwitchId| {
        let distances = network.distances([*switch]);
        // Switches connected to more of the network come first.
        (distances.iter().filter(|links| links.is_none()).count(), distances.into_iter().flatten().max())
    };
    (0..network.switches.len()).map(SwitchId).min_by_key(farthest)
}

/// Returns the up and down ports of every switch on shortest paths to `root`.
pub(crate) fn routes(network: &Network, root: SwitchId) -> Vec<SwitchPorts> {
    let distances = network.distances([root]);
    let mut all: Vec<SwitchPorts> = vec![SwitchPorts::default(); network.switches.len()];
    let mut order: Vec<SwitchId> = (0..network.switches.len()).map(SwitchId).collect();
    order.retain(|switch| distances[switch.0].is_some());
    // Farthest first: the hosts below a switch are known before the switch is visited.
    order.sort_by_key(|switch| std::cmp::Reverse(distances[switch.0]));
    let mut children: Vec<BTreeMap<u32, SwitchId>> = vec![BTreeMap::new(); network.switches.len()];
    for switch in order {
        let nearer = |far: &LinkEnd| match far {
            LinkEnd::Switch(other, port) if distances[other.0].map(|links| links + 1) == distances[switch.0] => {
                Some((*other, *port))
            }
            _ => None,
        };
        let parent = network.switches[switch.0].iter().find_map(|(port, far)| Some((*port, nearer(far)?)));
        let mut at = SwitchPorts::default();
        if let Some((port, (parent, its_port))) = parent {
            at.up = Some(port);
            at.above = vec![port];
            children[parent.0].insert(its_port, switch);
        }
        for (port, far) in &network.switches[switch.0] {
            if let LinkEnd::Host(host) = far {
                at.below.insert(*port, BTreeSet::from([*host]));
            }
        }
        for (port, child) in &children[switch.0] {
            at.below.insert(*port, all[child.0].below.values().flatten().copied().collect());
        }
        all[switch.0] = at;
    }
    all
}
