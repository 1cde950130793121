//! Whether a message that everyone wants reaches everyone once.

use std::collections::{BTreeMap, BTreeSet};

use crate::network::{Far, HostId, Network, NetworkError, SwitchId};
use crate::ways::At;

/// Walks the ways of a message from each switch with a host.
///
/// # Errors
/// [`NetworkError::Apart`], with a host that the message does not reach, or reaches twice.
pub(crate) fn check(
    network: &Network,
    all: &[At],
    hosts: &BTreeMap<HostId, (SwitchId, u32)>,
) -> Result<(), NetworkError> {
    let starts: BTreeSet<SwitchId> = hosts.values().map(|(switch, _)| *switch).collect();
    for start in starts {
        let mut missing: BTreeSet<HostId> = hosts.keys().copied().collect();
        let mut visited = BTreeSet::new();
        let mut going = vec![(start, None)];
        while let Some((switch, from)) = going.pop() {
            // Twice at a switch is twice at the hosts below it, or a circle.
            if !visited.insert(switch) {
                let host = all[switch.0].below.values().flatten().next().copied();
                return Err(NetworkError::Apart(start, host.unwrap_or(HostId(0))));
            }
            let at = &all[switch.0];
            let from_above = from.is_some_and(|port| at.above.contains(&port));
            let down = at.below.keys().copied();
            for port in down.chain(at.up.filter(|_| !from_above)).filter(|port| Some(*port) != from) {
                match network.switches[switch.0][&port] {
                    Far::Switch(other, its_port) => going.push((other, Some(its_port))),
                    Far::Host(host) if !missing.remove(&host) => return Err(NetworkError::Apart(start, host)),
                    Far::Host(_) => {}
                }
            }
        }
        if let Some(host) = missing.first() {
            return Err(NetworkError::Apart(start, *host));
        }
    }
    Ok(())
}
