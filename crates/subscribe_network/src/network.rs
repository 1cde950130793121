//! Defines switches, hosts and the links between them.

use std::collections::BTreeMap;

/// Index of a switch in [`Network::switches`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SwitchId(pub usize);

/// Number of a host, from 0. Rules deliver to these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub u32);

/// The far end of a port's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LinkEnd {
    /// A host.
    Host(HostId),
    /// A switch and its port.
    Switch(SwitchId, u32),
}

/// A network. Each host has one link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// For each switch, the far ends of its ports by port number.
    pub switches: Vec<BTreeMap<u32, LinkEnd>>,
}

/// Reason that messages cannot be delivered in a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkError {
    /// This host has more than one link.
    Twice(HostId),
    /// No route leads from one host's switch to the other host.
    Apart(SwitchId, HostId),
    /// The requested root is not in the network.
    NoRoot(SwitchId),
}

impl Network {
    /// Returns the switch and the port of each host.
    ///
    /// # Errors
    /// [`NetworkError::Twice`].
    pub fn hosts(&self) -> Result<BTreeMap<HostId, (SwitchId, u32)>, NetworkError> {
        let mut hosts = BTreeMap::new();
        for (at, ports) in self.switches.iter().enumerate() {
            for (port, far) in ports {
                if let LinkEnd::Host(host) = far
                    && hosts.insert(*host, (SwitchId(at), *port)).is_some()
                {
                    return Err(NetworkError::Twice(*host));
                }
            }
        }
        Ok(hosts)
    }

    /// Returns the ports of a switch that lead to switches, with those switches.
    pub(crate) fn neighbours(&self, switch: SwitchId) -> impl Iterator<Item = (u32, SwitchId)> {
        self.switches[switch.0].iter().filter_map(|(port, far)| match far {
            LinkEnd::Switch(other, _) => Some((*port, *other)),
            LinkEnd::Host(_) => None,
        })
    }

    /// Returns the number of links from the nearest of some switches to each switch; `None` if unreachable.
    pub(crate) fn distances(&self, from: impl IntoIterator<Item = SwitchId>) -> Vec<Option<u32>> {
        let mut distances = vec![None; self.switches.len()];
        let mut reached: std::collections::VecDeque<(SwitchId, u32)> =
            from.into_iter().map(|switch| (switch, 0)).collect();
        while let Some((switch, links)) = reached.pop_front() {
            if distances[switch.0].is_none() {
                distances[switch.0] = Some(links);
                reached.extend(self.neighbours(switch).map(|(_, next)| (next, links + 1)));
            }
        }
        distances
    }
}
