//! Switches, hosts and the links between them.

use std::collections::BTreeMap;

/// A switch, by its place in [`Network::switches`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SwitchId(pub usize);

/// A host, by its number, from 0. Rules deliver to these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub u32);

/// What is at the other end of a port's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Far {
    /// A host.
    Host(HostId),
    /// A switch, and its port.
    Switch(SwitchId, u32),
}

/// A network. Each host is connected once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// For each switch what its ports lead to, by their numbers.
    pub switches: Vec<BTreeMap<u32, Far>>,
}

/// Why messages cannot be delivered in a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkError {
    /// A host is connected more than once; the number says which.
    Twice(HostId),
    /// No way leads from one host's switch to the other host.
    Apart(SwitchId, HostId),
    /// The switch that is to be the root is not in the network.
    NoRoot(SwitchId),
}

impl Network {
    /// The switch and the port that each host is connected to.
    ///
    /// # Errors
    /// [`NetworkError::Twice`].
    pub fn hosts(&self) -> Result<BTreeMap<HostId, (SwitchId, u32)>, NetworkError> {
        let mut hosts = BTreeMap::new();
        for (at, ports) in self.switches.iter().enumerate() {
            for (port, far) in ports {
                if let Far::Host(host) = far
                    && hosts.insert(*host, (SwitchId(at), *port)).is_some()
                {
                    return Err(NetworkError::Twice(*host));
                }
            }
        }
        Ok(hosts)
    }

    /// The ports of a switch that lead to switches, and these.
    pub(crate) fn neighbours(&self, switch: SwitchId) -> impl Iterator<Item = (u32, SwitchId)> {
        self.switches[switch.0].iter().filter_map(|(port, far)| match far {
            Far::Switch(other, _) => Some((*port, *other)),
            Far::Host(_) => None,
        })
    }

    /// How many links there are from the nearest of some switches to each switch; `None` where there is no way.
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
