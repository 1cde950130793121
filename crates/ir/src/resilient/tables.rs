//! Reads `@resilient` on tables: an entry is a row, and the stores make it.

use std::collections::BTreeMap;

use super::settings::{RowSource, TableSettings};
use super::{
    MAX_ROW_BYTES, MAX_ROW_KEY_BYTES, NumberRange, RESILIENT, ReplicationMode, ResilientGroup, ResilientMistake,
    ResilientObject, ResilientTable, RowOrigin,
};
use crate::{MatchKind, Program, Table, TableId};

/// A table with its annotation.
struct Annotated {
    table: ResilientTable,
    settings: TableSettings,
}

impl Program {
    /// Appends the groups of tables with `@resilient`, in the order of their first tables.
    pub(super) fn add_table_groups(&self, groups: &mut Vec<ResilientGroup>, mistakes: &mut Vec<ResilientMistake>) {
        let mut mistake = |id: TableId, message: String| {
            mistakes.push(ResilientMistake { object: ResilientObject::Table(id), message })
        };
        let mut by_name: BTreeMap<String, usize> =
            groups.iter().enumerate().map(|(at, group)| (group.name.clone(), at)).collect();
        let mut reversed: Vec<(usize, String)> = Vec::new();
        for (id, table) in &self.tables {
            let Some(annotation) = table.annotations.iter().find(|annotation| annotation.name == RESILIENT) else {
                continue;
            };
            let read = TableSettings::read(annotation).and_then(|settings| self.annotated_table(id, settings));
            let Annotated { table: resilient, settings } = match read {
                Ok(annotated) => annotated,
                Err(message) => {
                    mistake(id, message);
                    continue;
                }
            };
            let origin = match settings.source {
                RowSource::OfGroup => RowOrigin::Start,
                RowSource::Added => RowOrigin::Added,
                RowSource::Number(range) => RowOrigin::Number(range),
                RowSource::Reverse(of) => {
                    reversed.push((groups.len(), of));
                    RowOrigin::Reverse(0)
                }
            };
            let name = settings.group.clone().unwrap_or_else(|| table.name.clone());
            let known = settings.group.and_then(|name| by_name.get(&name).copied());
            let Some(group) = known.map(|at| &mut groups[at]) else {
                by_name.insert(name.clone(), groups.len());
                let tables = vec![resilient];
                let mode = ReplicationMode::EveryWrite;
                groups.push(ResilientGroup { name, registers: Vec::new(), rows: 0, tables, origin, mode });
                continue;
            };
            if let Err(message) = self.join_group(group, resilient, origin) {
                mistake(id, message);
            }
        }
        for (at, of) in reversed {
            let id = groups[at].tables[0].table;
            match self.reversed_group(groups, at, &of) {
                Ok(forward) => groups[at].origin = RowOrigin::Reverse(forward),
                Err(message) => mistake(id, message),
            }
        }
        for group in groups.iter().filter(|group| !group.tables.is_empty() && group.origin == RowOrigin::Start) {
            mistake(
                group.tables[0].table,
                format!(
                    "no table of the group \"{}\" makes rows: give one of them \"add\", \"pool\" or \"choice\"",
                    group.name
                ),
            );
        }
    }

    /// Adds a table to the group of others.
    fn join_group(&self, group: &mut ResilientGroup, table: ResilientTable, origin: RowOrigin) -> Result<(), String> {
        let Some(first) = group.tables.first() else {
            return Err(format!("\"{}\" is a group of registers, and this is a table", group.name));
        };
        let (this, other) = (&self.tables[table.table], &self.tables[first.table]);
        if key_widths(this) != key_widths(other) {
            return Err(format!(
                "{} and {} of the group \"{}\" differ in the widths of their keys",
                this.name, other.name, group.name
            ));
        }
        if self.data_widths(table) != self.data_widths(*first) {
            return Err(format!(
                "{} and {} of the group \"{}\" differ in the data of their actions",
                this.name, other.name, group.name
            ));
        }
        match (&group.origin, origin) {
            (_, RowOrigin::Start) => {}
            (RowOrigin::Start, origin) => group.origin = origin,
            (known, origin) if *known == origin => {}
            _ => return Err(format!("the tables of the group \"{}\" differ in how they make rows", group.name)),
        }
        group.tables.push(table);
        Ok(())
    }

    /// Returns the group whose rows those of a group with `reverse` belong to.
    fn reversed_group(&self, groups: &[ResilientGroup], at: usize, of: &str) -> Result<usize, String> {
        let is_named = |table: &ResilientTable| has_name(&self.tables[table.table].name, of);
        let forward = groups.iter().position(|group| group.tables.iter().any(is_named));
        let unknown = || format!("there is no resilient table \"{of}\"");
        let forward = forward.ok_or_else(unknown)?;
        if !matches!(groups[forward].origin, RowOrigin::Number(NumberRange { is_shared: false, .. })) {
            return Err(format!("\"{of}\" has no \"pool\", so its rows have no numbers of their own"));
        }
        if groups[..at].iter().any(|group| group.origin == RowOrigin::Reverse(forward)) {
            return Err(format!("\"{of}\" has two reverse tables"));
        }
        let (this, that) = (groups[at].tables[0], groups[forward].tables[0]);
        let number = self.data_widths(that);
        if key_widths(&self.tables[this.table]) != number {
            return Err(format!("the key of a reverse table must be the number only, of {} bits", number[0]));
        }
        if self.data_widths(this) != key_widths(&self.tables[that.table]) {
            return Err(format!(
                "the parameters of a reverse table's action must be the key elements of \"{of}\", in the same order and widths"
            ));
        }
        Ok(forward)
    }

    /// Checks a table for itself, and finds the action of its entries.
    fn annotated_table(&self, id: TableId, settings: TableSettings) -> Result<Annotated, String> {
        let table = &self.tables[id];
        if table.keys.is_empty() || table.keys.iter().any(|key| key.kind != MatchKind::Exact) {
            return Err("a resilient table must have a key whose elements are all exact".to_owned());
        }
        let bytes: u64 = key_widths(table).iter().map(|width| u64::from(width.div_ceil(8))).sum();
        if !(1..=MAX_ROW_KEY_BYTES).contains(&bytes) {
            return Err(format!("the key has {bytes} bytes; that of a resilient table has 1 to {MAX_ROW_KEY_BYTES}"));
        }
        if !table.entries.is_empty() || table.const_entries {
            return Err("the stores make the entries of a resilient table, so the program declares none".to_owned());
        }
        if table.profile.is_some() {
            return Err("a resilient table cannot have an action profile".to_owned());
        }
        if table.idle_timeout {
            return Err("a resilient table cannot have an idle timeout: its entries do not age".to_owned());
        }
        if table.meter.is_some() {
            return Err(
                "a resilient table cannot have a direct meter: its state depends on the clock of the switch".to_owned()
            );
        }
        let action = self.row_action(table, settings.action.as_deref())?;
        let makes_rows = matches!(settings.source, RowSource::Added | RowSource::Number(_));
        let resilient = ResilientTable { table: id, action, makes_rows };
        let data = self.data_widths(resilient);
        match settings.source {
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
        Ok(Annotated { table: resilient, settings })
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
            [] => Err("a resilient table needs an action for its entries, beside the default action".to_owned()),
            _ => Err("the table has several actions: name that of its entries with entry_action = \"…\"".to_owned()),
        }
    }

    /// Returns the widths of an action's parameters.
    fn data_widths(&self, table: ResilientTable) -> Vec<u32> {
        let action = self.tables[table.table].actions[table.action as usize].action;
        self.actions[action].params.iter().map(|param| self.slots[param.slot].width).collect()
    }
}

fn key_widths(table: &Table) -> Vec<u32> {
    table.keys.iter().map(|key| key.width).collect()
}

/// Whether a name of the program has this name or ends with it.
fn has_name(full: &str, name: &str) -> bool {
    full.strip_suffix(name).is_some_and(|scope| scope.is_empty() || scope.ends_with('.'))
}
