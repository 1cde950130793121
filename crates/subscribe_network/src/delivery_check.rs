//! Checks that a message for all hosts reaches every host exactly once.

use std::collections::{BTreeMap, BTreeSet};

use crate::network::{HostId, LinkEnd, Network, NetworkError, SwitchId};
use crate::routes::SwitchPorts;

/// Follows the routes of a message from each switch with a host.
///
/// # Errors
/// [`NetworkError::Apart`], with a host that the message does not reach, or reaches twice.
pub(crate) fn check(
    network: &Network,
    all: &[SwitchPorts],
    hosts: &BTreeMap<HostId, (SwitchId, u32)>,
) -> Result<(), NetworkError> {
    let starts: BTreeSet<SwitchId> = hosts.values().map(|(switch, _)| *switch).collect();
    for start in starts {
        let mut missing: BTreeSet<HostId> = hosts.keys().copied().collect();
        let mut visited = BTreeSet::new();
        let mut going = vec![(start, None)];
        while let Some((switch, from)) = going.pop() {
            // A second visit reaches the hosts below twice, or is a loop.
            if !visited.insert(switch) {
                let host = all[switch.0].below.values().flatten().next().copied();
                return Err(NetworkError::Apart(start, host.unwrap_or(HostId(0))));
            }
            let at = &all[switch.0];
            let from_above = from.is_some_and(|port| at.above.contains(&port));
            let down = at.below.keys().copied();
            for port in down.chain(at.up.filter(|_| !from_above)).filter(|port| Some(*port) != from) {
                match network.switches[switch.0][&port] {
                    LinkEnd::Switch(other, its_port) => going.push((other, Some(its_port))),
                    LinkEnd::Host(host) if !missing.remove(&host) => return Err(NetworkError::Apart(start, host)),
                    LinkEnd::Host(_) => {}
                }
            }
        }
        if let Some(host) = missing.first() {
            return Err(NetworkError::Apart(start, *host));
        }
    }
    Ok(())
}
