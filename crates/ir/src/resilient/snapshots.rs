//! Reads the settings of snapshots: rows of many elements that are replicated as a unit, at an interval.

use super::settings::ArraySettings;
use super::tables::has_name;
use super::{ReplicationMode, ResilientGroup};
use crate::{Program, RegisterId};

/// Maximum length of a row that is replicated by snapshots in bytes, each element in whole bytes.
pub const MAX_SNAPSHOT_BYTES: u64 = 1 << 20;

/// Maximum length of a page in bytes: one fits a datagram.
pub const MAX_PAGE_BYTES: u64 = 1024;

/// Settings of snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotSettings {
    /// Shortest time from one snapshot to the next.
    pub every_ns: u64,
    /// Maximum age of the newest complete snapshot, if there is one.
    pub bound_ns: Option<u64>,
    /// Effect of an age above the bound.
    pub when_stale: StaleAction,
    /// Number of elements of each array that form a row: a power of two, or the size of the arrays.
    pub row_elements: u64,
    /// Number of elements of each array that form a page, the unit of copying and sending: a power of two.
    pub page_elements: u64,
}

/// Effect of a snapshot that is older than its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleAction {
    /// Packets that use the row are dropped.
    Drop,
    /// The element of this array at the number of the row is 1.
    Flag(RegisterId),
}

impl SnapshotSettings {
    /// Returns the number of bits by which the index of an element is shifted to get that of its row.
    pub fn row_shift(&self) -> u32 {
        // Rows whose size is not a power of two are complete arrays.
        if self.row_elements.is_power_of_two() { self.row_elements.ilog2() } else { 63 }
    }

    /// Returns the number of pages of a row.
    pub fn row_pages(&self) -> u64 {
        self.row_elements.div_ceil(self.page_elements)
    }
}

impl Program {
    /// Completes a group whose arrays have `every`.
    ///
    /// # Errors
    /// The mistake.
    pub(super) fn add_snapshots(&self, group: &mut ResilientGroup, settings: &ArraySettings) -> Result<(), String> {
        let Some(every_ns) = settings.every_ns else { return Ok(()) };
        let (name, size) = (&group.name, group.rows);
        let row_elements = settings.row_elements.unwrap_or(size).max(1);
        if size % row_elements != 0 {
            return Err(format!(
                "the {size} elements of the group \"{name}\" are not a whole number of rows of {row_elements} elements"
            ));
        }
        let element = group.element_bytes(self).max(1);
        let bytes = element.saturating_mul(row_elements);
        if bytes > MAX_SNAPSHOT_BYTES {
            return Err(format!(
                "a snapshot of \"{name}\" has {bytes} bytes; the maximum is {MAX_SNAPSHOT_BYTES}: divide the arrays \
                 into rows with row = \"…\", a number of elements"
            ));
        }
        group.rows = size / row_elements;
        let when_stale = match settings.stale.as_deref() {
            None | Some("drop") => StaleAction::Drop,
            Some(flag) => StaleAction::Flag(self.stale_flag(flag, group.rows)?),
        };
        // An element has at most as many bytes as a page, and a page is in one row.
        let most = 1 << (MAX_PAGE_BYTES / element).max(1).ilog2();
        let page_elements = row_elements.next_power_of_two().min(most);
        let bound_ns = settings.bound_ns;
        let settings = SnapshotSettings { every_ns, bound_ns, when_stale, row_elements, page_elements };
        group.mode = ReplicationMode::Snapshots(settings);
        self.check_passes(group)
    }

    /// Finds the array that shows for this number of rows whether their snapshots are stale.
    fn stale_flag(&self, name: &str, rows: u64) -> Result<RegisterId, String> {
        let mut named = self.registers.iter().filter(|(_, register)| has_name(&register.name, name));
        let (Some((id, flag)), None) = (named.next(), named.next()) else {
            return Err(format!(
                "\"stale\" is \"drop\" or the name of a register, and \"{name}\" is not the name of one"
            ));
        };
        if flag.width != 1 || flag.size < rows || flag.is_resilient() {
            return Err(format!(
                "\"{name}\" cannot say whether snapshots are stale: that is a register<bit<1>> of at least {rows} \
                 elements, one for each row, without @resilient"
            ));
        }
        Ok(id)
    }

    /// Checks that a group is used in ingress or in egress: a snapshot may be made between the two.
    fn check_passes(&self, group: &ResilientGroup) -> Result<(), String> {
        if self.uses_group_twice(group) {
            return Err(format!(
                "ingress and egress both use \"{}\": a snapshot could contain a packet's changes in one of them \
                 without those in the other",
                group.name
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::groups;
    use super::*;

    fn settings(text: &str, size: u64) -> (u64, SnapshotSettings) {
        let found = groups(&[(text, size)]).unwrap();
        let ReplicationMode::Snapshots(settings) = found[0].mode else { panic!("these are snapshots") };
        (found[0].rows, settings)
    }

    #[test]
    fn an_interval_means_snapshots_of_one_row_unless_there_are_more() {
        let (rows, whole) = settings("every = \"1ms\", bound = \"10ms\"", 3000);
        assert_eq!((rows, whole.row_elements, whole.page_elements, whole.row_pages()), (1, 3000, 256, 12));
        assert_eq!((whole.every_ns, whole.bound_ns), (1_000_000, Some(10_000_000)));
        let (rows, parts) = settings("every = \"1ms\", row = \"64\"", 4096);
        assert_eq!((rows, parts.row_elements, parts.row_pages(), parts.bound_ns), (64, 64, 1, None));
    }

    #[test]
    fn a_flag_is_a_register_of_one_bit_for_each_row() {
        let flagged = "every = \"1ms\", bound = \"1ms\", row = \"4\", stale = \"r0\"";
        let refused = |arrays: &[(&str, u64)]| groups(arrays).unwrap_err().concat();
        assert!(refused(&[(flagged, 8)]).contains("register<bit<1>> of at least 2"));
        assert!(refused(&[(&flagged.replace("r0", "r7"), 8)]).contains("\"r7\" is not the name of one"));
    }
}
