//! Networks in layers: leaf-spine, fat trees.

use std::collections::{BTreeMap, BTreeSet};

use crate::network::{Far, HostId, Network, SwitchId};
use crate::ways::At;

/// Ports up and down of every switch, if links join neighbouring layers only; a switch's layer is its distance from the
/// nearest switch with a host.
pub(crate) fn ways(network: &Network, hosts: &BTreeMap<HostId, (SwitchId, u32)>) -> Option<Vec<At>> {
    let layers = network.distances(hosts.values().map(|(switch, _)| *switch));
    let mut all: Vec<At> = vec![At::default(); network.switches.len()];
    let mut order: Vec<SwitchId> = (0..network.switches.len()).map(SwitchId).collect();
    // Those without a way to any host carry nothing.
    order.retain(|switch| layers[switch.0].is_some());
    order.sort_by_key(|switch| layers[switch.0]);
    let mut in_layer = BTreeMap::<u32, usize>::new();
    for switch in order {
        let layer = layers[switch.0].expect("it was kept");
        let mut at = At::default();
        let mut up = Vec::new();
        for (port, far) in &network.switches[switch.0] {
            match far {
                Far::Host(host) => {
                    at.below.insert(*port, BTreeSet::from([*host]));
                }
                Far::Switch(other, _) if layers[other.0] == Some(layer + 1) => up.push(*port),
                Far::Switch(other, _) if layers[other.0].is_some_and(|below| below + 1 == layer) => {
                    let below = all[other.0].below.values().flatten().copied().collect();
                    at.below.insert(*port, below);
                }
                Far::Switch(..) => return None,
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
