//! The switches that may use a row: one that writes it, or several that only read it.

use crate::message::OwnerId;

/// Maximum number of switches that share a row. Another one waits until they have given the row back.
pub const MAX_READERS: usize = 16;

/// The use for which a switch asks for a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowAccess {
    /// Reads only. Several switches may have the row at the same time.
    Read,
    /// Reads, and perhaps writes later. As `Write` if the row is free, as `Read` if other switches use it.
    ReadFirst,
    /// Reads and writes. No other switch has the row.
    #[default]
    Write,
}

/// A switch that reads a row which others may read, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowReader {
    /// The switch.
    pub owner: OwnerId,
    /// The ask of its grant.
    pub ask: u64,
    /// The epoch of its grant.
    pub epoch: u64,
}

/// The switches that may use a row, unless their sessions have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum RowHolders {
    /// None.
    #[default]
    Nobody,
    /// One switch that reads and writes. Its ask and epoch are those of the row.
    Owner(OwnerId),
    /// Switches that only read, in the order of their grants: 1 to [`MAX_READERS`].
    Readers(Box<[RowReader]>),
}

impl RowHolders {
    /// Whether there are no holders.
    pub fn is_empty(&self) -> bool {
        *self == RowHolders::Nobody
    }

    /// Whether the row is shared for reading.
    pub fn is_shared(&self) -> bool {
        matches!(self, RowHolders::Readers(_))
    }

    /// Returns the switches that share the row.
    pub fn readers(&self) -> &[RowReader] {
        if let RowHolders::Readers(readers) = self { readers } else { &[] }
    }

    /// Returns the holders of a row whose last grant had this ask and epoch.
    pub fn iter(&self, ask: u64, epoch: u64) -> impl Iterator<Item = RowReader> + '_ {
        let owner = if let RowHolders::Owner(owner) = self { Some(*owner) } else { None };
        owner.map(|owner| RowReader { owner, ask, epoch }).into_iter().chain(self.readers().iter().copied())
    }

    /// Adds a reader, in place of an owner or of an earlier grant of its own. Beyond the maximum, the oldest is
    /// removed: the head makes room first, so no reader with a live session is removed.
    pub fn add_reader(&mut self, reader: RowReader) {
        let mut readers = self.readers().to_vec();
        readers.retain(|other| other.owner != reader.owner);
        readers.push(reader);
        let excess = readers.len().saturating_sub(MAX_READERS);
        *self = RowHolders::Readers(readers.split_off(excess).into());
    }

    /// Removes the reader with a grant of this epoch, if there is one.
    pub fn remove_reader(&mut self, epoch: u64) {
        if let RowHolders::Readers(readers) = self {
            let rest: Box<[RowReader]> = readers.iter().filter(|reader| reader.epoch != epoch).copied().collect();
            *self = if rest.is_empty() { RowHolders::Nobody } else { RowHolders::Readers(rest) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::SwitchId;

    fn reader(switch: u32, epoch: u64) -> RowReader {
        RowReader { owner: OwnerId { switch: SwitchId(switch), incarnation: 1 }, ask: 1, epoch }
    }

    #[test]
    fn a_reader_is_listed_once_and_leaves_with_its_last_grant_only() {
        let mut holders = RowHolders::Owner(reader(9, 0).owner);
        for (switch, epoch) in [(1, 1), (2, 2), (1, 3)] {
            holders.add_reader(reader(switch, epoch));
        }
        assert_eq!(holders.readers(), [reader(2, 2), reader(1, 3)]);
        holders.remove_reader(1);
        assert_eq!(holders.readers().len(), 2, "a late release of an earlier grant");
        holders.remove_reader(2);
        holders.remove_reader(3);
        assert!(holders.is_empty());
    }

    #[test]
    fn readers_are_bounded() {
        let mut holders = RowHolders::Nobody;
        (0..40).for_each(|switch| holders.add_reader(reader(switch, u64::from(switch))));
        assert_eq!((holders.readers().len(), holders.readers()[0].epoch), (MAX_READERS, 24));
        assert_eq!(size_of::<RowHolders>(), size_of::<Option<OwnerId>>());
    }
}
