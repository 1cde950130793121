//! Reads `@resilient` on tables: an entry is a row, and the stores make it.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::settings::{RowSource, TableSettings};
use super::{
    MAX_ROW_BYTES, MAX_ROW_KEY_BYTES, NumberRange, RESILIENT, ReplicationMode, ResilientGroup, ResilientMistake,
    ResilientObject, ResilientTable, RowOrigin,
};
use crate::{ActionId, MatchKind, Program, Table, TableId};

/// Tables that share their rows, while their annotations are read.
struct TableGroup {
    name: String,
    tables: Vec<ResilientTable>,
    /// Origin of its rows, unless no table has named it yet.
    source: RowSource,
    idle_ms: Option<NonZeroU32>,
}

impl Program {
    /// Appends the groups of tables with `@resilient`, in the order of their first tables.
    pub(super) fn add_table_groups(&self, groups: &mut Vec<ResilientGroup>, mistakes: &mut Vec<ResilientMistake>) {
        let mut mistake = |id: TableId, message: String| {
            mistakes.push(ResilientMistake { object: ResilientObject::Table(id), message })
        };
        let mut read: Vec<TableGroup> = Vec::new();
        let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
        for (id, table) in &self.tables {
            let Some(annotation) = table.annotations.iter().find(|annotation| annotation.name == RESILIENT) else {
                continue;
            };
            let annotated = TableSettings::read(annotation)
                .and_then(|settings| Ok((self.resilient_table(id, &settings)?, settings)));
            let (resilient, TableSettings { group: named, source, idle_ms, .. }) = match annotated {
                Ok(annotated) => annotated,
                Err(message) => {
                    mistake(id, message);
                    continue;
                }
            };
            if let Some(name) = named.as_ref().filter(|name| groups.iter().any(|group| group.name == **name)) {
                mistake(id, format!("\"{name}\" is a group of registers, and this is a table"));
                continue;
            }
            match named.as_ref().and_then(|name| by_name.get(name)) {
                Some(at) => {
                    if let Err(message) = self.join_group(&mut read[*at], resilient, source, idle_ms) {
                        mistake(id, message);
                    }
                }
                None => {
                    let name = named.unwrap_or_else(|| table.name.clone());
                    by_name.insert(name.clone(), read.len());
                    read.push(TableGroup { name, tables: vec![resilient], source, idle_ms });
                }
            }
        }
        let before = groups.len();
        for (at, TableGroup { name, tables, source, idle_ms }) in read.iter().enumerate() {
            let origin = match source {
                RowSource::Added => Ok(RowOrigin::Added),
                RowSource::Number(range) => Ok(RowOrigin::Number(*range)),
                RowSource::Reverse(of) => self.reversed_group(&read, at, of).map(|at| RowOrigin::Reverse(before + at)),
                RowSource::OfGroup => Err(format!(
                    "no table of the group \"{name}\" creates rows: give one of them \"add\", \"pool\" or \"choice\""
                )),
            };
            match origin {
                // The annotation of the other table has a mistake, which is reported.
                Err(_) if matches!(source, RowSource::Reverse(of) if self.is_misannotated(&read, of)) => {}
                Err(message) => mistake(tables[0].table, message),
                Ok(origin) => {
                    // The rows of numbers age with those that have the numbers.
                    let idle_ms = match origin {
                        RowOrigin::Reverse(of) => read[of - before].idle_ms,
                        _ => *idle_ms,
                    };
                    groups.push(ResilientGroup {
                        name: name.clone(),
                        registers: Vec::new(),
                        rows: 0,
                        tables: tables.clone(),
                        origin,
                        mode: ReplicationMode::EveryWrite,
                        idle_ms,
                    });
                }
            }
        }
    }

    /// Adds a table to the group of others.
    fn join_group(
        &self,
        group: &mut TableGroup,
        table: ResilientTable,
        source: RowSource,
        idle_ms: Option<NonZeroU32>,
    ) -> Result<(), String> {
        let (first, name) = (group.tables[0], &group.name);
        let names = || format!("{} and {}", self.tables[table.table].name, self.tables[first.table].name);
        if table.key_widths(self) != first.key_widths(self) {
            return Err(format!("{} of the group \"{name}\" differ in the widths of their keys", names()));
        }
        if table.data_widths(self) != first.data_widths(self) {
            return Err(format!("{} of the group \"{name}\" differ in the data of their actions", names()));
        }
        match (&group.source, source) {
            (_, RowSource::OfGroup) => {}
            (RowSource::OfGroup, source) => group.source = source,
            (known, source) if *known == source => {}
            _ => return Err(format!("the tables of the group \"{name}\" differ in how they create rows")),
        }
        match (group.idle_ms, idle_ms) {
            (Some(known), Some(other)) if known != other => {
                return Err(format!("{} of the group \"{name}\" differ in \"idle\"", names()));
            }
            (known, other) => group.idle_ms = known.or(other),
        }
        group.tables.push(table);
        Ok(())
    }

    /// Returns the index of the group to whose rows those of the group at this index, with `reverse`, belong.
    fn reversed_group(&self, groups: &[TableGroup], at: usize, of: &str) -> Result<usize, String> {
        let forward = self.group_of_table(groups, of).ok_or_else(|| format!("there is no resilient table \"{of}\""))?;
        if !matches!(groups[forward].source, RowSource::Number(NumberRange { is_shared: false, .. })) {
            return Err(format!("\"{of}\" has no \"pool\", so its rows have no numbers of their own"));
        }
        let is_same = |name: &str| self.group_of_table(groups, name) == Some(forward);
        if groups[..at].iter().any(|group| matches!(&group.source, RowSource::Reverse(name) if is_same(name))) {
            return Err(format!("\"{of}\" has two reverse tables"));
        }
        let (this, that) = (groups[at].tables[0], groups[forward].tables[0]);
        let number = that.data_widths(self);
        if this.key_widths(self) != number {
            return Err(format!("the key of a reverse table must be the number only, of {} bits", number[0]));
        }
        if this.data_widths(self) != that.key_widths(self) {
            return Err(format!(
                "the parameters of a reverse table's action must be the key elements of \"{of}\", in the same order \
                 and widths"
            ));
        }
        Ok(forward)
    }

    /// Returns the index of the group that has a table with this name.
    fn group_of_table(&self, groups: &[TableGroup], name: &str) -> Option<usize> {
        let is_named = |table: &ResilientTable| has_name(&self.tables[table.table].name, name);
        groups.iter().position(|group| group.tables.iter().any(is_named))
    }

    /// Whether a table with this name is annotated and belongs to no group.
    fn is_misannotated(&self, groups: &[TableGroup], name: &str) -> bool {
        let is_annotated = |table: &Table| table.is_resilient() && has_name(&table.name, name);
        self.group_of_table(groups, name).is_none() && self.tables.values().any(is_annotated)
    }

    /// Checks a table for itself, and finds the action of its entries.
    fn resilient_table(&self, id: TableId, settings: &TableSettings) -> Result<ResilientTable, String> {
        let table = &self.tables[id];
        if table.keys.is_empty() || table.keys.iter().any(|key| key.kind != MatchKind::Exact) {
            return Err("a resilient table must have a key whose elements are all exact".to_owned());
        }
        let bytes: u64 = table.keys.iter().map(|key| u64::from(key.width.div_ceil(8))).sum();
        if !(1..=MAX_ROW_KEY_BYTES).contains(&bytes) {
            return Err(format!("the key has {bytes} bytes; that of a resilient table has 1 to {MAX_ROW_KEY_BYTES}"));
        }
        if !table.entries.is_empty() || table.const_entries {
            return Err("the stores create the entries of a resilient table; the program must declare none".to_owned());
        }
        if table.profile.is_some() {
            return Err("a resilient table cannot have an action profile".to_owned());
        }
        if table.idle_timeout {
            return Err("a resilient table cannot have an idle timeout: use \"idle\" in @resilient".to_owned());
        }
        if table.meter.is_some() {
            return Err(
                "a resilient table cannot have a direct meter: its state depends on the clock of the switch".to_owned()
            );
        }
        let action = self.row_action(table, settings.action.as_deref())?;
        let makes_rows = matches!(settings.source, RowSource::Added | RowSource::Number(_));
        let resilient = ResilientTable { table: id, action, makes_rows };
        let data = resilient.data_widths(self);
        match &settings.source {
            RowSource::Added if !data.is_empty() => {
                return Err("the action of \"add\" must have no parameters: nothing would set them".to_owned());
            }
            RowSource::Number(_) if data.len() != 1 || !(1..=64).contains(&data[0]) => {
                return Err(
                    "the action of the entries must have exactly one parameter, the number, of 1 to 64 bits".to_owned()
                );
            }
            RowSource::Number(range) if range.last.checked_shr(data[0]).is_some_and(|rest| rest > 0) => {
                return Err(format!("{} does not fit the parameter of {} bits", range.last, data[0]));
            }
            _ => {}
        }
        let bytes: u64 = data.iter().map(|width| u64::from(width.div_ceil(8))).sum();
        if bytes > MAX_ROW_BYTES {
            return Err(format!("the data of an entry have {bytes} bytes; the maximum is {MAX_ROW_BYTES}"));
        }
        Ok(resilient)
    }

    /// Returns the index of the action that all entries of a resilient table have.
    fn row_action(&self, table: &Table, name: Option<&str>) -> Result<u32, String> {
        let name_of = |at: u32| &self.actions[table.actions[at as usize].action].name;
        let mut of_entries = (0..table.actions.len() as u32).filter(|at| !table.actions[*at as usize].default_only);
        if let Some(name) = name {
            return of_entries
                .find(|at| has_name(name_of(*at), name))
                .ok_or_else(|| format!("entries of this table have no action \"{name}\""));
        }
        let others: Vec<u32> = of_entries.filter(|at| *at != table.default_action.0).collect();
        match others[..] {
            [only] => Ok(only),
            [] => Err("a resilient table needs an action for its entries, other than the default action".to_owned()),
            _ => Err("the table has several actions: name that of its entries with entry_action = \"…\"".to_owned()),
        }
    }
}

impl ResilientTable {
    /// Returns the action of all its entries.
    pub fn entry_action(&self, program: &Program) -> ActionId {
        program.tables[self.table].actions[self.action as usize].action
    }

    /// Returns the widths of the elements of its key, in bits.
    pub fn key_widths(&self, program: &Program) -> Vec<u32> {
        program.tables[self.table].keys.iter().map(|key| key.width).collect()
    }

    /// Returns the widths of the parameters of its entries' action, in bits.
    pub fn data_widths(&self, program: &Program) -> Vec<u32> {
        let params = &program.actions[self.entry_action(program)].params;
        params.iter().map(|param| program.slots[param.slot].width).collect()
    }
}

/// Whether a name of the program has this name or ends with it.
pub(super) fn has_name(full: &str, name: &str) -> bool {
    full.strip_suffix(name).is_some_and(|scope| scope.is_empty() || scope.ends_with('.'))
}
