//! Reads `@resilient`: the state of a program that survives the switch it runs on.
//!
//! ```p4
//! @resilient register<bit<32>>(65536) seen;                          // a group of its own
//! @resilient[group = "flow"] register<bit<32>>(1024) packets;        // two arrays with the same rows
//! @resilient[group = "flow"] register<bit<8>>(1024) state;
//! @resilient[group = "hh", every = "1ms", bound = "10ms"] register<bit<32>>(64) sketch;      // snapshots
//!
//! @resilient[pool = "1024-65535"] table outbound { … }               // a miss makes a row with a number of its own
//! @resilient[reverse = "outbound"] table inbound { … }               // the same rows by their numbers
//! @resilient[choice = "0-7"] table server { … }                      // a miss makes a row with any of these numbers
//! @resilient[group = "flows", add = "allow"] table inside { … }      // a miss makes a row
//! @resilient[group = "flows"] table outside { … }                    // finds these rows, and makes none
//! @resilient[choice = "0-7", idle = "5m"] table backend { … }        // rows end after 5 minutes without a packet
//! ```
//!
//! A **row** is the unit of ownership, and of replication: the cells of all arrays of a group at one index, or the
//! entries of all tables of a group with one key. If there are snapshots, it is all elements of the group's arrays, or
//! a part of them.

mod passes;
mod settings;
mod snapshots;
mod tables;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use settings::ArraySettings;
pub(crate) use settings::pairs;
pub use snapshots::{MAX_PAGE_BYTES, MAX_SNAPSHOT_BYTES, SnapshotSettings, StaleAction};

use crate::{Program, RegisterId, TableId};

/// Name of the annotation.
pub const RESILIENT: &str = "resilient";

/// Maximum length of a row's values in bytes, each array's value in whole bytes.
pub const MAX_ROW_BYTES: u64 = 1024;

/// Maximum length of a row's key in bytes, each element of a table's key in whole bytes.
pub const MAX_ROW_KEY_BYTES: u64 = 39;

/// Maximum number of rows of a table that declares no size. The rows of resilient state are not planned one by one.
pub const DEFAULT_TABLE_ROWS: u64 = 1 << 20;

/// Arrays or tables that share their rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResilientGroup {
    /// The name in the annotation, or that of the only array or table.
    pub name: String,
    /// The arrays, in the order of the program; none in a group of tables.
    pub registers: Vec<RegisterId>,
    /// Number of rows of arrays: the number of elements of each, or a part of that if there are snapshots.
    pub rows: u64,
    /// The tables, in the order of the program; none in a group of arrays.
    pub tables: Vec<ResilientTable>,
    /// Origin of its rows.
    pub origin: RowOrigin,
    /// Time at which changes are replicated.
    pub mode: ReplicationMode,
    /// Time without use after which a row is removed, in milliseconds. `None` if rows stay for ever.
    pub idle_ms: Option<NonZeroU32>,
}

/// A table whose entries are rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResilientTable {
    /// The table.
    pub table: TableId,
    /// The action of all its entries: index into the table's actions.
    pub action: u32,
    /// Whether a miss makes the row.
    pub makes_rows: bool,
}

/// Numbers from which the stores choose one for each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberRange {
    /// The first number.
    pub first: u64,
    /// The last number.
    pub last: u64,
    /// Whether several rows may have the same number.
    pub is_shared: bool,
}

/// Origin of the rows of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowOrigin {
    /// All rows exist from the start, with zeros: those of arrays.
    Start,
    /// A miss adds a row whose action has no data.
    Added,
    /// A miss adds a row whose action has one of these numbers as its only data.
    Number(NumberRange),
    /// Each row of another group, at this place among the groups, adds one: its key is the number of that row, and the
    /// data of its action are the key of that row.
    Reverse(usize),
}

/// Time at which the changes of a group are replicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicationMode {
    /// Every write, before anything that depends on it leaves the switch: linearizable.
    EveryWrite,
    /// The complete row, at an interval: after a failure, an earlier state is restored.
    Snapshots(SnapshotSettings),
}

/// An object that may have the annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResilientObject {
    /// A register array.
    Register(RegisterId),
    /// A table.
    Table(TableId),
}

/// A mistake in an annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResilientMistake {
    /// The annotated object.
    pub object: ResilientObject,
    /// The mistake, as a sentence without a full stop.
    pub message: String,
}

impl Program {
    /// Returns the groups of arrays with `@resilient`, in the order of their first arrays, then those of tables.
    ///
    /// # Errors
    /// The mistakes in annotations, and arrays and tables that do not fit their group.
    pub fn resilient_groups(&self) -> Result<Vec<ResilientGroup>, Vec<ResilientMistake>> {
        let mut groups: Vec<ResilientGroup> = Vec::new();
        let mut by_name = BTreeMap::new();
        let mut settings_of: Vec<ArraySettings> = Vec::new();
        let mut mistakes = Vec::new();
        for (id, register) in &self.registers {
            let Some(annotation) = register.annotations.iter().find(|annotation| annotation.name == RESILIENT) else {
                continue;
            };
            let mut mistake =
                |message: String| mistakes.push(ResilientMistake { object: ResilientObject::Register(id), message });
            let settings = match ArraySettings::read(annotation) {
                Ok(settings) => settings,
                Err(message) => {
                    mistake(message);
                    continue;
                }
            };
            let name = settings.group.clone();
            let at = name.as_ref().map_or(groups.len(), |name| *by_name.entry(name.clone()).or_insert(groups.len()));
            let Some(group) = groups.get_mut(at) else {
                settings_of.push(settings);
                groups.push(ResilientGroup {
                    name: name.unwrap_or_else(|| register.name.clone()),
                    registers: vec![id],
                    rows: register.size,
                    tables: Vec::new(),
                    origin: RowOrigin::Start,
                    mode: ReplicationMode::EveryWrite,
                    idle_ms: None,
                });
                continue;
            };
            let name = &group.name;
            let first = &self.registers[group.registers[0]];
            if register.size != group.rows {
                mistake(format!(
                    "{} has {} elements, and {} of the same group \"{name}\" has {}: arrays of a group share their rows",
                    register.name, register.size, first.name, group.rows
                ));
            } else if settings != settings_of[at] {
                mistake(format!(
                    "{} and {} of the group \"{name}\" differ in \"every\", \"bound\", \"stale\" or \"row\"",
                    register.name, first.name
                ));
            } else {
                group.registers.push(id);
            }
        }
        for (group, settings) in groups.iter_mut().zip(&settings_of) {
            let bytes = group.element_bytes(self);
            if bytes > MAX_ROW_BYTES {
                let message = format!("a row of \"{}\" has {bytes} bytes; the maximum is {MAX_ROW_BYTES}", group.name);
                let object = ResilientObject::Register(group.registers[0]);
                mistakes.push(ResilientMistake { object, message });
            } else if let Err(message) = self.add_snapshots(group, settings) {
                let object = ResilientObject::Register(group.registers[0]);
                mistakes.push(ResilientMistake { object, message });
            }
        }
        self.add_table_groups(&mut groups, &mut mistakes);
        if mistakes.is_empty() { Ok(groups) } else { Err(mistakes) }
    }

    /// Whether the entries of a table are rows that are removed after a time without use.
    pub fn has_aging_rows(&self, table: TableId) -> bool {
        let is_in = |group: &ResilientGroup| group.tables.iter().any(|member| member.table == table);
        let ages = |groups: Vec<ResilientGroup>| groups.iter().any(|group| group.idle_ms.is_some() && is_in(group));
        self.tables[table].is_resilient() && self.resilient_groups().is_ok_and(ages)
    }
}

impl ResilientGroup {
    /// Returns the number of bytes of one element of each array.
    fn element_bytes(&self, program: &Program) -> u64 {
        self.registers.iter().map(|id| u64::from(program.registers[*id].width.div_ceil(8))).sum()
    }

    /// Returns the number of bytes of a row of arrays.
    pub fn row_bytes(&self, program: &Program) -> u64 {
        match &self.mode {
            ReplicationMode::EveryWrite => self.element_bytes(program),
            ReplicationMode::Snapshots(settings) => self.element_bytes(program) * settings.row_elements,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Annotation, Register};

    /// Returns the groups of arrays with these texts and sizes.
    pub(super) fn groups(arrays: &[(&str, u64)]) -> Result<Vec<ResilientGroup>, Vec<String>> {
        let mut program = Program::default();
        for (number, (text, size)) in arrays.iter().enumerate() {
            let annotations = vec![Annotation { name: RESILIENT.to_owned(), text: (*text).to_owned() }];
            program.registers.push(Register { name: format!("r{number}"), width: 32, size: *size, annotations });
        }
        program.resilient_groups().map_err(|all| all.into_iter().map(|mistake| mistake.message).collect())
    }

    #[test]
    fn arrays_with_a_name_share_a_group_and_others_have_their_own() {
        let found = groups(&[("", 4), ("group = \"flow\"", 8), (" group=\"flow\" ", 8)]).unwrap();
        let names: Vec<_> =
            found.iter().map(|group| (group.name.as_str(), group.registers.len(), group.rows)).collect();
        assert_eq!(names, [("r0", 1, 4), ("flow", 2, 8)]);
        assert!(found.iter().all(|group| group.mode == ReplicationMode::EveryWrite));
    }

    #[test]
    fn mistakes_are_named() {
        let refused = |arrays: &[(&str, u64)], part: &str| {
            let mistakes = groups(arrays).unwrap_err();
            assert!(mistakes.iter().any(|mistake| mistake.contains(part)), "{mistakes:?} lacks {part:?}");
        };
        refused(&[("group = flow", 4)], "is not of the form");
        refused(&[("group = \"a\" every = \"1ms\"", 4)], "is not of the form");
        refused(&[("group = \"a\", group = \"b\"", 4)], "given twice");
        refused(&[("groups = \"a\"", 4)], "\"groups\" is unknown");
        refused(&[("group = \"\"", 4)], "1 to 200 bytes");
        refused(&[("every = \"fast\"", 4)], "whole number");
        refused(&[("every = \"99999999999999999999s\"", 4)], "whole number");
        refused(&[("bound = \"1ms\"", 4)], "needs \"every\"");
        refused(&[("every = \"2ms\", bound = \"1ms\"", 4)], "always be exceeded");
        refused(&[("stale = \"drop\"", 4)], "needs \"bound\"");
        refused(&[("row = \"4\"", 4)], "needs \"every\"");
        refused(&[("every = \"1ms\", row = \"3\"", 3)], "power of two");
        refused(&[("every = \"1ms\", row = \"8\"", 12)], "whole number of rows");
        refused(&[("every = \"1ms\"", 300_000)], "divide the arrays");
        refused(&[("group = \"a\"", 4), ("group = \"a\"", 5)], "share their rows");
        refused(&[("group = \"a\"", 4), ("group = \"a\", every = \"1ms\"", 4)], "differ in");
    }
}
