//! Counts the rows of each group that have values.

use std::collections::BTreeMap;

use crate::row::RowId;

/// Maximum number of groups that are counted.
const MAX_GROUPS: usize = 1024;

/// Numbers of rows with values, by group.
#[cfg_attr(feature = "simulation", derive(Clone, Hash))]
#[derive(Debug, Default)]
pub(super) struct GroupTally {
    groups: BTreeMap<u64, u64>,
}

impl GroupTally {
    /// Counts the change of a row that had values or not, and now has values or not.
    pub fn changed(&mut self, row: &RowId, had_values: bool, has_values: bool) {
        if had_values == has_values {
            return;
        }
        if self.groups.len() >= MAX_GROUPS && !self.groups.contains_key(&row.group()) {
            return;
        }
        let rows = self.groups.entry(row.group()).or_default();
        *rows = if has_values { *rows + 1 } else { rows.saturating_sub(1) };
    }

    /// Returns the number of rows of a group.
    pub fn rows(&self, group: u64) -> u64 {
        self.groups.get(&group).copied().unwrap_or(0)
    }

    /// Returns each group with its number of rows.
    pub fn groups(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.groups.iter().map(|(group, rows)| (*group, *rows))
    }
}
