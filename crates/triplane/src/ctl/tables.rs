//! Tables and their entries: to look at, and to change.

use std::collections::BTreeMap;

use p4runtime_proto::config::Table;
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::{self, update::Type};
use serde_json::json;
use source::{Diagnostics, SourceMap, Span};

use super::args::EntryArgs;
use super::entry::{self, Change};
use super::{Live, names, show, text};
use crate::output::Failure;

impl Live<'_> {
    /// Reads the entries of some tables, default actions last in each.
    fn read_entries(
        &self,
        tables: &[&Table],
        mut each: impl FnMut(&Table, v1::TableEntry) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for table in tables {
            let all = v1::TableEntry { table_id: names::id(&table.preamble), ..Default::default() };
            let default = v1::TableEntry { is_default_action: true, ..all.clone() };
            let mut wanted = vec![Kind::TableEntry(default)];
            if !table.match_fields.is_empty() {
                wanted.insert(0, Kind::TableEntry(all));
            }
            self.client.read(wanted, |entity| match entity {
                Kind::TableEntry(entry) => each(table, entry),
                _ => Ok(()),
            })?;
        }
        Ok(())
    }

    /// `tables`
    pub fn tables(&self) -> Result<(), Failure> {
        let all: Vec<&Table> = self.info.tables.iter().collect();
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        self.read_entries(&all, |table, entry| {
            *counts.entry(names::id(&table.preamble)).or_default() += u64::from(!entry.is_default_action);
            Ok(())
        })?;
        let count = |table: &Table| counts.get(&names::id(&table.preamble)).copied().unwrap_or(0);
        let actions = |table: &Table| names::actions(&self.info, table).into_iter().map(|(_, name)| name.to_owned());
        if self.json {
            let table = |table: &&Table| {
                let keys = table.match_fields.iter().map(|field| {
                    json!({ "name": field.name, "match": names::match_type(field).as_str_name().to_ascii_lowercase(),
                            "bits": field.bitwidth })
                });
                json!({ "table": names::name(&table.preamble), "entries": count(table), "size": table.size,
                        "key": keys.collect::<Vec<_>>(), "actions": actions(table).collect::<Vec<_>>(),
                        "constant": table.is_const_table })
            };
            return self.print_json(&all.iter().map(table).collect());
        }
        let mut out = String::new();
        for table in all {
            let constant = if table.is_const_table { ", constant" } else { "" };
            let (name, count) = (self.output.bold(names::name(&table.preamble)), count(table));
            out.push_str(&format!("{name}  {count} of {} entries{constant}\n", table.size));
            for field in &table.match_fields {
                out.push_str(&format!("  key     {}: {}\n", field.name, entry::described(field)));
            }
            for (action, name) in names::actions(&self.info, table) {
                let params: Vec<_> = action.params.iter().map(|param| &*param.name).collect();
                out.push_str(&format!("  action  {name}({})\n", params.join(", ")));
            }
        }
        self.output.print(&out)
    }

    /// `entries`
    pub fn entries(&self, table: Option<&str>) -> Result<(), Failure> {
        let tables = match table {
            Some(name) => vec![names::look_up("table", name, &names::tables(&self.info))?],
            None => self.info.tables.iter().collect(),
        };
        if self.json {
            let mut all = Vec::new();
            self.read_entries(&tables, |table, entry| {
                all.push(show::entry_json(&self.info, table, &entry));
                Ok(())
            })?;
            return self.print_json(&all.into());
        }
        // Lines are printed as they come: a table may have a million entries.
        let mut shown = None;
        self.read_entries(&tables, |table, entry| {
            let (id, mut text) = (names::id(&table.preamble), String::new());
            if shown.replace(id) != Some(id) {
                text = format!("{}\n", self.output.bold(names::name(&table.preamble)));
            }
            let constant = if entry.is_const { "  (constant)" } else { "" };
            self.output.print(&format!("{text}  {}{constant}\n", show::entry(&self.info, table, &entry)))
        })
    }

    /// `insert`, `modify` and `delete`
    pub fn change(&self, change: Change, args: &EntryArgs) -> Result<(), Failure> {
        let table = names::look_up("table", &args.table, &names::tables(&self.info))?;
        let line = args.entry.join(" ");
        let mut map = SourceMap::new();
        let mut diagnostics = Diagnostics::new();
        let file = map.add("entry", &*line);
        let end = Span::new(file, line.len() as u32, line.len() as u32);
        let entry = text::parse(file, &line, &mut diagnostics)
            .and_then(|written| entry::bind(&self.info, table, &written, change, end, &mut diagnostics));
        let Some(entry) = entry else {
            self.output.diagnostics(&map, &diagnostics);
            let name = names::name(&table.preamble);
            return Err(Failure::Input(format!("this is no entry of `{name}`; nothing was written")));
        };
        let (_session, election_id) = self.client.primary()?;
        let (kind, done) = match change {
            Change::Insert => (Type::Insert, "inserted"),
            Change::Modify => (Type::Modify, "modified"),
            Change::Delete => (Type::Delete, "deleted"),
        };
        let described = show::entry(&self.info, table, &entry);
        let json = show::entry_json(&self.info, table, &entry);
        self.client.write(election_id, kind, Kind::TableEntry(entry))?;
        if self.json {
            return self.print_json(&json!({ "done": done, "entry": json }));
        }
        let described =
            if change == Change::Delete { described.split(" -> ").next().unwrap_or("") } else { &*described };
        self.output.print(&format!("{done}: {} {described}\n", names::name(&table.preamble)))
    }
}
