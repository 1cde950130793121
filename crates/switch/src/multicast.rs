//! Multicast groups: to which ports a packet is copied.

use std::collections::BTreeMap;

use crate::PortId;

/// The most replicas a group may have. Together with the limit on passes it bounds what one packet can cost.
pub const MAX_REPLICAS: usize = 1024;

/// One copy of a packet (P4Runtime 1.4, section 9.5, `Replica`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    /// Where it goes.
    pub port: PortId,
    /// The replica id, which tells copies to one port apart (`egress_rid`).
    pub rid: u16,
    /// Where it goes instead if `port` is down: the first of these that is up.
    pub backups: Vec<PortId>,
}

impl Replica {
    /// A copy to this port, with this replica id.
    pub fn new(port: u32, rid: u16) -> Replica {
        Replica { port: PortId(port), rid, backups: Vec::new() }
    }

    /// The port to use now: the first that is up, or the first of all, where the drop is then counted.
    pub fn choose(&self, is_up: impl Fn(PortId) -> bool) -> PortId {
        if is_up(self.port) {
            return self.port;
        }
        self.backups.iter().copied().find(|port| is_up(*port)).unwrap_or(self.port)
    }
}

/// A group's replicas, in the order they are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MulticastGroup {
    /// Replicas, at most [`MAX_REPLICAS`].
    pub replicas: Vec<Replica>,
}

impl MulticastGroup {
    /// One replica a port, in order, with the replica ids 1, 2, 3, ...
    pub fn of_ports(ports: impl IntoIterator<Item = u32>) -> MulticastGroup {
        let replicas = ports.into_iter().zip(1..).map(|(port, rid)| Replica::new(port, rid)).collect();
        MulticastGroup { replicas }
    }
}

/// Every multicast group of a switch, by its number. Group 0 means "no multicast" and cannot be set.
#[derive(Clone, Debug, Default)]
pub struct MulticastGroups {
    groups: BTreeMap<u32, MulticastGroup>,
}

impl MulticastGroups {
    /// Makes or replaces a group, or removes it (`None`). False, and no change, for group 0 and for groups of more
    /// than [`MAX_REPLICAS`].
    pub fn set(&mut self, id: u32, group: Option<MulticastGroup>) -> bool {
        match group {
            Some(group) if id != 0 && group.replicas.len() <= MAX_REPLICAS => {
                self.groups.insert(id, group);
                true
            }
            Some(_) => false,
            None => {
                self.groups.remove(&id);
                true
            }
        }
    }

    /// The group with this number.
    pub fn get(&self, id: u32) -> Option<&MulticastGroup> {
        self.groups.get(&id)
    }

    /// Groups and their numbers, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &MulticastGroup)> {
        self.groups.iter().map(|(id, group)| (*id, group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_stands_in_for_a_port_that_is_down() {
        let replica = Replica { backups: vec![PortId(2), PortId(3)], ..Replica::new(1, 7) };
        assert_eq!(replica.choose(|_| true), PortId(1));
        assert_eq!(replica.choose(|port| port == PortId(3)), PortId(3));
        assert_eq!(replica.choose(|_| false), PortId(1));
    }

    #[test]
    fn group_zero_and_groups_beyond_the_limit_are_refused() {
        let mut groups = MulticastGroups::default();
        assert!(!groups.set(0, Some(MulticastGroup::of_ports([1]))));
        let huge = MulticastGroup { replicas: vec![Replica::new(1, 1); MAX_REPLICAS + 1] };
        assert!(!groups.set(1, Some(huge)));
        assert!(groups.set(1, Some(MulticastGroup::of_ports([4, 5]))));
        assert_eq!(groups.get(1).map(|group| group.replicas[1].rid), Some(2));
        assert!(groups.set(1, None) && groups.get(1).is_none());
    }
}
