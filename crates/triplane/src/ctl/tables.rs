//! Lists tables and entries, and changes entries.

use std::collections::BTreeMap;

use diagnostics::{Diagnostics, FileId, SourceMap, Span};
use p4runtime_proto::config::{ActionProfile, Table};
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::{self, update::Type};
use serde_json::{Value, json};

use super::args::EntryArgs;
use super::entry::{self, Change};
use super::failure;
use super::replication::SessionKind;
use super::show::RenderedEntry;
use super::{SwitchConnection, names, show, text};
use crate::output::Failure;

impl SwitchConnection<'_> {
    /// Reads the entries of some tables, default actions last in each. Of a list of tables, those that this user may
    /// not read are left out. Returns the tables that were read.
    fn read_entries<'t>(
        &self,
        tables: &[&'t Table],
        is_listed: bool,
        mut each: impl FnMut(&Table, v1::TableEntry) -> Result<(), Failure>,
    ) -> Result<Vec<&'t Table>, Failure> {
        let mut read = Vec::new();
        for table in tables {
            let all = v1::TableEntry { table_id: names::id(&table.preamble), ..Default::default() };
            let default = v1::TableEntry { is_default_action: true, ..all.clone() };
            let mut wanted = vec![Kind::TableEntry(default)];
            if !table.match_fields.is_empty() {
                wanted.insert(0, Kind::TableEntry(all));
            }
            let was_read = self.read_object(wanted, is_listed, |entity| match entity {
                Kind::TableEntry(entry) => each(table, entry),
                _ => Ok(()),
            })?;
            read.extend(was_read.then_some(*table));
        }
        Ok(read)
    }

    /// Runs `tables`: lists the tables with their keys and actions.
    pub fn tables(&self) -> Result<(), Failure> {
        let all: Vec<&Table> = self.info.tables.iter().collect();
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        let all = self.read_entries(&all, true, |table, entry| {
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
        if all.is_empty() {
            self.output.note("the program has no tables");
            return Ok(());
        }
        let mut out = String::new();
        for table in all {
            let constant = if table.is_const_table { ", constant" } else { "" };
            let (name, count) = (self.output.bold(names::name(&table.preamble)), count(table));
            out.push_str(&if table.match_fields.is_empty() {
                format!("{name}  no key; default action only\n")
            } else if is_resilient(table) {
                format!("{name}  the stores make its entries, which are not listed\n")
            } else {
                format!("{name}  {count} of {} entries{constant}\n", table.size)
            });
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

    /// Runs `entries`: lists the entries of a table, or of all tables.
    pub fn entries(&self, table: Option<&str>) -> Result<(), Failure> {
        let tables = match table {
            Some(name) => vec![names::look_up("table", name, &names::tables(&self.info))?],
            None => self.info.tables.iter().collect(),
        };
        let is_listed = table.is_none();
        if self.json {
            let mut all = Vec::new();
            self.read_entries(&tables, is_listed, |table, entry| {
                all.push(show::entry_json(&self.info, table, &entry));
                Ok(())
            })?;
            return self.print_json(&all.into());
        }
        // Lines are printed as they arrive: a table may have a million entries.
        let mut shown = None;
        self.read_entries(&tables, is_listed, |table, entry| {
            let (id, mut text) = (names::id(&table.preamble), String::new());
            if shown.replace(id) != Some(id) {
                text = format!("{}\n", self.output.bold(names::name(&table.preamble)));
            }
            let constant = if entry.is_const { "  (constant)" } else { "" };
            self.output.print(&format!("{text}  {}{constant}\n", show::entry(&self.info, table, &entry)))
        })?;
        Ok(())
    }

    /// Runs `insert`, `modify` or `delete`: changes an entry, a member or group of an action profile, or a session.
    pub fn change(&self, change: Change, args: &EntryArgs) -> Result<(), Failure> {
        let line = args.entry.join(" ");
        let (tables, profiles) = (names::tables(&self.info), self.all_profiles());
        let sessions = [SessionKind::Clone, SessionKind::Multicast]
            .map(|session| (ChangeTarget::Session(session), session.word()));
        let all: Vec<_> = (tables.into_iter().map(|(table, name)| (ChangeTarget::Table(table), name)))
            .chain(profiles.into_iter().map(|(profile, name)| (ChangeTarget::Profile(profile), name)))
            .chain(sessions)
            .collect();
        match names::look_up("table, action profile or session kind", &args.table, &all)? {
            ChangeTarget::Table(table) => self.change_entry(change, table, &line),
            ChangeTarget::Profile(profile) => self.change_profile_entry(change, profile, &line),
            ChangeTarget::Session(session) => self.change_session(change, session, &line),
        }
    }

    fn change_entry(&self, change: Change, table: &Table, line: &str) -> Result<(), Failure> {
        let name = names::name(&table.preamble);
        let entry = self.read_line(line, &format!("a valid entry of `{name}`"), |file, end, diagnostics| {
            let written = text::parse(file, line, diagnostics)?;
            entry::bind(&self.info, table, &written, change, end, diagnostics)
        })?;
        let resets_default = entry.is_default_action && entry.action.is_none();
        let described = if resets_default {
            RenderedEntry { what: "default action, reset to the program's".to_owned(), value: String::new() }
        } else {
            show::entry(&self.info, table, &entry)
        };
        let described = RenderedEntry { what: format!("{name} {}", described.what), ..described };
        let json = show::entry_json(&self.info, table, &entry);
        self.write(change, Kind::TableEntry(entry), &described, json)
    }

    /// Parses a line with `read`, which gets the position of its end. On failure it prints the mistakes, and the
    /// error says that the line is not `expected`.
    pub fn read_line<T>(
        &self,
        line: &str,
        expected: &str,
        read: impl FnOnce(FileId, Span, &mut Diagnostics) -> Option<T>,
    ) -> Result<T, Failure> {
        let mut map = SourceMap::new();
        let mut diagnostics = Diagnostics::new();
        let file = map.add("entry", line);
        let end = Span::new(file, line.len() as u32, line.len() as u32);
        let found = read(file, end, &mut diagnostics).filter(|_| !diagnostics.has_errors());
        found.ok_or_else(|| {
            self.output.diagnostics(&map, &diagnostics);
            Failure::Input(format!("this is not {expected}; nothing was written"))
        })
    }

    /// Writes one update as the primary, and prints it.
    pub fn write(&self, change: Change, entity: Kind, described: &RenderedEntry, json: Value) -> Result<(), Failure> {
        let (_mastership, election_id) =
            self.client.become_primary(self.election_id).map_err(|error| failure::from_election(&error))?;
        let (kind, done) = match change {
            Change::Insert => (Type::Insert, "inserted"),
            Change::Modify => (Type::Modify, "modified"),
            Change::Delete => (Type::Delete, "deleted"),
        };
        self.send(election_id, kind, entity)?;
        if self.json {
            return self.print_json(&json!({ "done": done, "entry": json }));
        }
        self.output.print(&match change {
            Change::Delete => format!("{done}: {}\n", described.what),
            _ => format!("{done}: {described}\n"),
        })
    }
}

/// The object to which a change applies.
#[derive(Clone, Copy)]
enum ChangeTarget<'a> {
    Table(&'a Table),
    Profile(&'a ActionProfile),
    Session(SessionKind),
}

/// Whether the entries of a table are resilient state.
fn is_resilient(table: &Table) -> bool {
    let preamble = table.preamble.iter();
    let is_named = |name: &str| name.trim_start_matches('@').split('(').next() == Some("resilient");
    preamble.clone().flat_map(|it| &it.annotations).any(|text| is_named(text))
        || preamble.flat_map(|it| &it.structured_annotations).any(|it| it.name == "resilient")
}

#[cfg(test)]
mod tests {
    use p4runtime_proto::config::{Preamble, StructuredAnnotation};

    use super::*;

    #[test]
    fn tables_of_the_stores_are_known_by_their_annotation() {
        let table = |texts: &[&str], names: &[&str]| {
            let annotations = texts.iter().map(|text| (*text).to_owned()).collect();
            let named = |name: &&str| StructuredAnnotation { name: (*name).to_owned(), ..Default::default() };
            let structured_annotations = names.iter().map(named).collect();
            Table {
                preamble: Some(Preamble { annotations, structured_annotations, ..Default::default() }),
                ..Default::default()
            }
        };
        assert!(is_resilient(&table(&["@hidden", "@resilient"], &[])));
        assert!(is_resilient(&table(&["@resilient(\"idle = 3s\")"], &[])));
        assert!(is_resilient(&table(&[], &["elastic", "resilient"])));
        assert!(!is_resilient(&table(&["@resilience"], &["elastic"])) && !is_resilient(&Table::default()));
    }
}
