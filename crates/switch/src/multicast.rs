//! Defines multicast groups: the ports to which a packet is copied.

use std::collections::BTreeMap;

use crate::PortId;

/// Maximum number of replicas of a group. With the limit on passes it bounds the work for one packet.
pub const MAX_REPLICAS: usize = 1024;

/// A copy of a packet (P4Runtime 1.4, section 9.5, `Replica`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    /// The egress port.
    pub port: PortId,
    /// The replica id (`egress_rid`), which distinguishes copies to one port.
    pub rid: u16,
    /// Backups: the first whose port is up replaces the replica while `port` is down.
    pub backups: Vec<Backup>,
}

/// A backup of a replica (`BackupReplica`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Backup {
    /// The egress port.
    pub port: PortId,
    /// The replica id.
    pub rid: u16,
}

impl Replica {
    /// Makes a replica with this port and replica id.
    pub fn new(port: u32, rid: u16) -> Replica {
        Replica { port: PortId(port), rid, backups: Vec::new() }
    }

    /// Adds backup ports in this order. The copy keeps its replica id there.
    #[must_use]
    pub fn with_backups(self, ports: impl IntoIterator<Item = u32>) -> Replica {
        let backup = |port| Backup { port: PortId(port), rid: self.rid };
        Replica { backups: ports.into_iter().map(backup).collect(), ..self }
    }

    /// Returns the port and the replica id to use now: those of the first port that is up, or of the first port,
    /// where the drop is then counted.
    pub fn choose(&self, is_up: impl Fn(PortId) -> bool) -> Backup {
        let first = Backup { port: self.port, rid: self.rid };
        let mut all = std::iter::once(&first).chain(&self.backups).copied();
        all.find(|one| is_up(one.port)).unwrap_or(first)
    }
}

/// A multicast group: its replicas in the order in which they are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MulticastGroup {
    /// Replicas, at most [`MAX_REPLICAS`].
    pub replicas: Vec<Replica>,
}

impl MulticastGroup {
    /// Makes a group with one replica per port, in order, with the replica ids 1, 2, 3, ...
    pub fn of_ports(ports: impl IntoIterator<Item = u32>) -> MulticastGroup {
        let replicas = ports.into_iter().zip(1..).map(|(port, rid)| Replica::new(port, rid)).collect();
        MulticastGroup { replicas }
    }

    /// Returns the ports and replica ids of the copies; `None` if a replica has backups.
    fn without_backups(&self) -> Option<Box<[Backup]>> {
        let only = |replica: &Replica| Backup { port: replica.port, rid: replica.rid };
        self.replicas.iter().map(|replica| replica.backups.is_empty().then(|| only(replica))).collect()
    }
}

/// The multicast groups of a switch, by number. Group 0 means "no multicast" and cannot be set.
#[derive(Clone, Debug, Default)]
pub struct MulticastGroups {
    groups: BTreeMap<u32, MulticastGroup>,
    /// Copies of groups without backups, by number, as far as it is below [`DENSE`]: fewer cache misses for a packet.
    without_backups: Vec<Option<Box<[Backup]>>>,
}

/// Numbers of groups from this one on are not looked up in an array.
const DENSE: u32 = 1 << 16;

impl MulticastGroups {
    /// Creates, replaces or (with `None`) removes a group. Returns false and changes nothing for group 0 and for
    /// groups with more than [`MAX_REPLICAS`] replicas.
    pub fn set(&mut self, id: u32, group: Option<MulticastGroup>) -> bool {
        if group.as_ref().is_some_and(|group| id == 0 || group.replicas.len() > MAX_REPLICAS) {
            return false;
        }
        let copies = group.as_ref().filter(|_| id < DENSE).and_then(MulticastGroup::without_backups);
        let at = id as usize;
        if copies.is_some() && self.without_backups.len() <= at {
            self.without_backups.resize(at + 1, None);
        }
        if let Some(place) = self.without_backups.get_mut(at) {
            *place = copies;
        }
        match group {
            Some(group) => drop(self.groups.insert(id, group)),
            None => drop(self.groups.remove(&id)),
        }
        true
    }

    /// Returns the ports and replica ids of the copies of a group whose replicas have no backups; `None` for groups
    /// with backups, and for some others.
    #[inline]
    pub fn without_backups(&self, id: u32) -> Option<&[Backup]> {
        self.without_backups.get(id as usize)?.as_deref()
    }

    /// Returns the group with this number.
    pub fn get(&self, id: u32) -> Option<&MulticastGroup> {
        self.groups.get(&id)
    }

    /// Returns the groups in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &MulticastGroup)> {
        self.groups.iter().map(|(id, group)| (*id, group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_stands_in_for_a_port_that_is_down() {
        let backup = |port, rid| Backup { port: PortId(port), rid };
        let replica = Replica::new(1, 7).with_backups([2, 3]);
        assert_eq!(replica.choose(|_| true), backup(1, 7));
        assert_eq!(replica.choose(|port| port == PortId(3)), backup(3, 7));
        assert_eq!(replica.choose(|_| false), backup(1, 7));
        let other = Replica { backups: vec![backup(2, 8), backup(3, 9)], ..replica };
        assert_eq!(other.choose(|port| port == PortId(3)), backup(3, 9), "a backup may have an id of its own");
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

    #[test]
    fn groups_without_backups_are_found_in_both_ways() {
        let mut groups = MulticastGroups::default();
        let copies = |groups: &MulticastGroups, id| groups.without_backups(id).map(<[Backup]>::to_vec);
        assert!(groups.set(7, Some(MulticastGroup::of_ports([4, 5]))));
        let ports = [(4, 1), (5, 2)].map(|(port, rid)| Backup { port: PortId(port), rid });
        assert_eq!(copies(&groups, 7), Some(ports.to_vec()));
        let with_backup = MulticastGroup { replicas: vec![Replica::new(4, 1).with_backups([5])] };
        assert!(groups.set(7, Some(with_backup)) && copies(&groups, 7).is_none() && groups.get(7).is_some());
        assert!(groups.set(7, Some(MulticastGroup::of_ports([6]))) && copies(&groups, 7).is_some());
        let huge = MulticastGroup { replicas: vec![Replica::new(1, 1); MAX_REPLICAS + 1] };
        assert!(!groups.set(7, Some(huge)) && copies(&groups, 7).is_some(), "a refused group changes nothing");
        assert!(groups.set(7, None) && copies(&groups, 7).is_none());
        assert!(groups.set(DENSE, Some(MulticastGroup::of_ports([6]))) && copies(&groups, DENSE).is_none());
        assert_eq!(copies(&groups, u32::MAX), None);
    }
}
