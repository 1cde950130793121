//! Allocates multicast groups: one for each distinct set of ports in use.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::tables::PortGroup;

/// Groups by port set, with reference counts.
#[derive(Clone)]
pub(crate) struct Groups {
    by_ports: BTreeMap<Vec<u32>, (u32, usize)>,
    free: BinaryHeap<Reverse<u32>>,
    next: u32,
    max: u32,
    /// Whether several ports need a group.
    are_needed: bool,
}

impl Groups {
    pub fn new(max: u32, are_needed: bool) -> Groups {
        Groups { by_ports: BTreeMap::new(), free: BinaryHeap::new(), next: 1, max, are_needed }
    }

    pub fn len(&self) -> usize {
        self.by_ports.len()
    }

    pub fn max(&self) -> u32 {
        self.max
    }

    pub fn bytes(&self) -> usize {
        self.by_ports.keys().map(|ports| ports.capacity() * 4 + 64).sum()
    }

    /// Whether these ports have all they need.
    pub fn has(&self, ports: &[u32]) -> bool {
        ports.len() < 2 || !self.are_needed || self.by_ports.contains_key(ports)
    }

    /// Returns the group of these ports; fewer than two ports need none.
    pub fn find(&self, ports: &[u32]) -> Option<u32> {
        self.by_ports.get(ports).map(|(id, _)| *id)
    }

    /// Adds a reference to the group of these ports. A newly created group is pushed to `new`.
    pub fn acquire(&mut self, ports: &[u32], new: &mut Vec<PortGroup>) -> Option<u32> {
        if ports.len() < 2 || !self.are_needed {
            return None;
        }
        if let Some((id, uses)) = self.by_ports.get_mut(ports) {
            *uses += 1;
            return Some(*id);
        }
        let id = self.free.pop().map_or(self.next, |Reverse(id)| id);
        self.next = self.next.max(id + 1);
        self.by_ports.insert(ports.to_vec(), (id, 1));
        new.push(PortGroup { id, ports: ports.to_vec() });
        Some(id)
    }

    /// Drops one reference. A group without references is removed and pushed to `old`.
    pub fn release(&mut self, ports: &[u32], old: &mut Vec<u32>) {
        let Some((id, uses)) = self.by_ports.get_mut(ports) else { return };
        *uses -= 1;
        if *uses == 0 {
            old.push(*id);
            self.free.push(Reverse(*id));
            self.by_ports.remove(ports);
        }
    }

    /// Returns all groups, by number.
    pub fn list(&self) -> Vec<PortGroup> {
        let mut list: Vec<PortGroup> =
            self.by_ports.iter().map(|(ports, (id, _))| PortGroup { id: *id, ports: ports.clone() }).collect();
        list.sort_unstable();
        list
    }
}
