//! Computes routes in layered networks: leaf-spine and fat trees.

use std::collections::{BTreeMap, BTreeSet};

use crate::network::{HostId, LinkEnd, Network, SwitchId};
use crate::routes::SwitchPorts;

/// Returns the up and down ports of every switch, if links join neighbouring layers only. The layer of a switch is its
/// distance from the nearest switch with a host.
pub(crate) fn routes(network: &Network, hosts: &BTreeMap<HostId, (SwitchId, u32)>) -> Option<Vec<SwitchPorts>> {
    let layers = network.distances(hosts.values().map(|(switch, _)| *switch));
    let mut all: Vec<SwitchPorts> = vec![SwitchPorts::default(); network.switches.len()];
    let mut order: Vec<SwitchId> = (0..network.switches.len()).map(SwitchId).collect();
    // A switch without a path to any host carries no messages.
    order.retain(|switch| layers[switch.0].is_some());
    order.sort_by_key(|switch| layers[switch.0]);
    let mut in_layer = BTreeMap::<u32, usize>::new();
    for switch in order {
        let layer = layers[switch.0].expect("it was kept");
        let mut at = SwitchPorts::default();
        let mut up = Vec::new();
        for (port, far) in &network.switches[switch.0] {
            match far {
                LinkEnd::Host(host) => {
                    at.below.insert(*port, BTreeSet::from([*host]));
                }
                LinkEnd::Switch(other, _) if layers[other.0] == Some(layer + 1) => up.push(*port),
                LinkEnd::Switch(other, _) if layers[other.0].is_some_and(|below| below + 1 == layer) => {
                    let below = all[other.0].below.values().flatten().copied().collect();
                    at.below.insert(*port, below);
                }
                LinkEnd::Switch(..) => return None,
            }
        }
        let number = in_layer.entry(layer).or_default();
        at.up = (!up.is_empty()).then(|| up[*number % up.len()]);
        at.above = up;
        *number += 1;
        all[switch.0] = at;
    }
    Some(all)
}
