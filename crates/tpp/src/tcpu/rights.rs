//! Defines which addresses an application may access.

use crate::map::{Access, ROWS, StatRow};

/// A set of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressSet {
    /// First and last addresses, disjoint and in ascending order.
    ranges: Vec<(u32, u32)>,
}

impl AddressSet {
    /// The empty set.
    pub fn none() -> AddressSet {
        AddressSet::default()
    }

    /// The set of all addresses.
    pub fn all() -> AddressSet {
        AddressSet { ranges: vec![(0, u32::MAX)] }
    }

    /// Creates the union of ranges, each from its first to its last address. Empty ranges are ignored.
    pub fn of(ranges: impl IntoIterator<Item = (u32, u32)>) -> AddressSet {
        let mut ranges: Vec<_> = ranges.into_iter().filter(|(first, last)| first <= last).collect();
        ranges.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::new();
        for (first, last) in ranges {
            match joined.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => joined.push((first, last)),
            }
        }
        AddressSet { ranges: joined }
    }

    /// Whether an address is in the set.
    #[inline]
    pub fn contains(&self, address: u32) -> bool {
        match &self.ranges[..] {
            [(first, last)] => (*first..=*last).contains(&address),
            ranges => ranges.iter().any(|(first, last)| (*first..=*last).contains(&address)),
        }
    }

    /// Whether the set contains all addresses.
    #[inline]
    pub fn is_all(&self) -> bool {
        self.ranges == [(0, u32::MAX)]
    }

    /// Returns the ranges, in ascending order.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }
}

/// The accesses that a switch executes for a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRights {
    /// Whether the switch executes writes at all (paper, section 4.3).
    pub writes_enabled: bool,
    /// Addresses that may be read, those of indirect loads included.
    pub reads: AddressSet,
    /// Addresses that may be written.
    pub writes: AddressSet,
}

impl AccessRights {
    /// Everything is permitted.
    pub fn all() -> AccessRights {
        AccessRights { writes_enabled: true, reads: AddressSet::all(), writes: AddressSet::all() }
    }

    /// Everything may be read, and the words of applications written.
    pub fn words() -> AccessRights {
        let is_writable = |row: &&StatRow| row.access == Access::ReadWrite;
        let range = |row: &StatRow| {
            let first = u32::from(row.namespace.base() + row.offset);
            (first, first + 2 * u32::from(row.count) - 1)
        };
        let writes = AddressSet::of(ROWS.iter().filter(is_writable).map(range));
        AccessRights { writes_enabled: true, reads: AddressSet::all(), writes }
    }

    /// Everything may be read, and nothing written.
    pub fn read_only() -> AccessRights {
        AccessRights { writes_enabled: false, reads: AddressSet::all(), writes: AddressSet::none() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_applications_are_a_right_of_their_own() {
        let rights = AccessRights::words();
        assert_eq!(rights.writes.ranges(), [(0x800, 0x81f), (0x3800, 0x381f)]);
        assert!(rights.writes_enabled && rights.reads.is_all());
    }

    #[test]
    fn ranges_are_joined() {
        let set = AddressSet::of([(5, 6), (9, 8), (0, 2), (3, 4), (100, u32::MAX), (200, 300)]);
        assert_eq!(set.ranges(), [(0, 6), (100, u32::MAX)]);
        assert!(set.contains(6) && !set.contains(7) && set.contains(u32::MAX));
        assert!(!AddressSet::none().contains(0) && AddressSet::all().contains(u32::MAX));
    }
}
