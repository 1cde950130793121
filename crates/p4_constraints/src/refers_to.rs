//! Reads the `@refers_to` annotations of a P4Info.
//!
//! `@refers_to(table, field)` on a match field or an action parameter says that its value is that of `field` in some
//! entry of `table`. Several annotations on one field or parameter are several references. References of one table's
//! match, or of one action, to several fields of one table are one reference to an entry that has all of the values.
//! The table `multicast_group_table` with the field `multicast_group_id` stands for the multicast groups.

use std::collections::BTreeMap;

use diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};
use p4runtime_proto::config::match_field::{Match, MatchType};
use p4runtime_proto::config::{MatchField, P4Info, Preamble, Table};

use crate::annotation;

/// The object of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReferenceTarget {
    Table(u32),
    MulticastGroups,
}

/// The subject of a reference: the match of a table, or an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReferenceSource {
    Match(u32),
    Action(u32),
}

/// Fields of a table that are referred to together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Relation {
    pub(crate) target: ReferenceTarget,
    /// Field ids in ascending order; the single field of the multicast groups has id 0.
    pub(crate) fields: Vec<u32>,
}

/// The references of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Relations {
    /// Each relation with its description for messages: ``table `C.nexthop` with `id` ``.
    pub(crate) list: Vec<(Relation, String)>,
    /// For each source, its relations and the ids of the match fields or parameters whose values stand for the
    /// relation's fields.
    pub(crate) sources: BTreeMap<ReferenceSource, Vec<(usize, Vec<u32>)>>,
    /// Description of each source for messages.
    pub(crate) names: BTreeMap<ReferenceSource, String>,
}

const GROUPS: [&str; 3] = ["multicast_group_table", "builtin::multicast_group_table", "builtin_multicast_group_table"];
const GROUP_FIELD: &str = "multicast_group_id";

/// One annotation: the id of the annotated field or parameter, and the field it names.
struct Reference {
    from: u32,
    target: ReferenceTarget,
    field: u32,
}

/// Reads the references in `info`. Those with errors are reported in `diagnostics` and left out.
pub(crate) fn read(info: &P4Info, map: &mut SourceMap, diagnostics: &mut Diagnostics) -> Relations {
    let mut reader = ReferenceReader { info, map, diagnostics, out: Relations::default() };
    for table in &info.tables {
        let Some(preamble) = &table.preamble else { continue };
        let mut references = Vec::new();
        for field in &table.match_fields {
            let place = format!("match field `{}` of table `{}`", field.name, preamble.name);
            let refers = reader.references(field.id, &field.annotations, &place);
            if !refers.is_empty() && !has_one_value(field) {
                let message = "only exact and optional match fields have a single value that can refer to an entry";
                reader.wrong(&place, "@refers_to", message, None);
                continue;
            }
            references.extend(refers);
        }
        reader.add(ReferenceSource::Match(preamble.id), format!("table `{}`", preamble.name), references);
    }
    for action in &info.actions {
        let Some(preamble) = &action.preamble else { continue };
        let mut references = Vec::new();
        for param in &action.params {
            let place = format!("parameter `{}` of action `{}`", param.name, preamble.name);
            references.extend(reader.references(param.id, &param.annotations, &place));
        }
        reader.add(ReferenceSource::Action(preamble.id), format!("action `{}`", preamble.name), references);
    }
    reader.out
}

fn has_one_value(field: &MatchField) -> bool {
    let one = [MatchType::Exact, MatchType::Optional];
    one.iter().any(|kind| field.r#match == Some(Match::MatchType((*kind).into())))
}

struct ReferenceReader<'a> {
    info: &'a P4Info,
    map: &'a mut SourceMap,
    diagnostics: &'a mut Diagnostics,
    out: Relations,
}

impl ReferenceReader<'_> {
    fn wrong(&mut self, place: &str, annotation: &str, message: &str, help: Option<String>) {
        let file = self.map.add(&format!("@refers_to at {place}"), annotation);
        let span = Span::new(file, 0, u32::try_from(annotation.len()).unwrap_or(u32::MAX));
        let mut diagnostic = Diagnostic::error("refers-to", span, message);
        diagnostic.help = help;
        self.diagnostics.push(diagnostic);
    }

    fn references(&mut self, from: u32, annotations: &[String], place: &str) -> Vec<Reference> {
        let mut out = Vec::new();
        for annotation in annotations {
            let Some(body) = annotation::body(annotation, "refers_to") else { continue };
            // A P4Info has spaces between the tokens of an annotation.
            let plain = |part: &str| part.replace([' ', '\t', '\n', '"'], "");
            let parts: Vec<String> = body.split(',').map(plain).collect();
            match &parts[..] {
                [table, field] => match self.resolve(table, field) {
                    Ok((target, field)) => out.push(Reference { from, target, field }),
                    Err((message, help)) => self.wrong(place, annotation, &message, help),
                },
                _ => {
                    let help = "write `@refers_to(table, field)`".to_owned();
                    self.wrong(place, annotation, "a reference names a table and one of its match fields", Some(help));
                }
            }
        }
        out
    }

    fn resolve(&self, table: &str, field: &str) -> Result<(ReferenceTarget, u32), (String, Option<String>)> {
        let named = |preamble: &Preamble| preamble.name == table || preamble.alias == table;
        let Some(found) = self.info.tables.iter().find(|found| found.preamble.as_ref().is_some_and(named)) else {
            if !GROUPS.contains(&table) {
                return Err((format!("there is no table `{table}`"), None));
            }
            if field != GROUP_FIELD {
                let help = format!("the only field of multicast groups is `{GROUP_FIELD}`");
                return Err((format!("multicast groups have no field `{field}`"), Some(help)));
            }
            return Ok((ReferenceTarget::MulticastGroups, 0));
        };
        let Some(key) = found.match_fields.iter().find(|key| key.name == field) else {
            let names: Vec<_> = found.match_fields.iter().take(8).map(|key| format!("`{}`", key.name)).collect();
            let help = (!names.is_empty()).then(|| format!("it has {}", names.join(", ")));
            return Err((format!("table `{table}` has no match field `{field}`"), help));
        };
        if key.r#match != Some(Match::MatchType(MatchType::Exact.into())) {
            let message = format!("match field `{field}` of table `{table}` is not matched exactly");
            return Err((message, Some("only exact match fields can be referred to".to_owned())));
        }
        Ok((ReferenceTarget::Table(id(found)), key.id))
    }

    /// Combines the references of one source: each group of fields of one table becomes one relation. A second
    /// reference to the same field begins another group.
    fn add(&mut self, source: ReferenceSource, name: String, references: Vec<Reference>) {
        let mut groups: Vec<(ReferenceTarget, BTreeMap<u32, u32>)> = Vec::new();
        for Reference { from, target, field } in references {
            match groups.iter_mut().find(|(known, fields)| *known == target && !fields.contains_key(&field)) {
                Some((_, fields)) => {
                    fields.insert(field, from);
                }
                None => groups.push((target, BTreeMap::from([(field, from)]))),
            }
        }
        for (target, fields) in groups {
            let (fields, from): (Vec<u32>, Vec<u32>) = fields.into_iter().unzip();
            let relation = Relation { target, fields };
            let at = self.out.list.iter().position(|(known, _)| *known == relation).unwrap_or_else(|| {
                let name = self.describe(&relation);
                self.out.list.push((relation, name));
                self.out.list.len() - 1
            });
            self.out.sources.entry(source).or_default().push((at, from));
            self.out.names.insert(source, name.clone());
        }
    }

    fn describe(&self, relation: &Relation) -> String {
        let ReferenceTarget::Table(table) = relation.target else {
            return format!("multicast groups with `{GROUP_FIELD}`");
        };
        let table = self.info.tables.iter().find(|known| id(known) == table);
        let names = relation.fields.iter().map(|field| {
            let keys = table.map_or(&[][..], |table| &table.match_fields);
            keys.iter().find(|key| key.id == *field).map_or(String::new(), |key| format!("`{}`", key.name))
        });
        let names: Vec<_> = names.collect();
        let table = table.and_then(|table| table.preamble.as_ref()).map_or("", |preamble| &preamble.name);
        format!("table `{table}` with {}", names.join(", "))
    }
}

fn id(table: &Table) -> u32 {
    table.preamble.as_ref().map_or(0, |preamble| preamble.id)
}
