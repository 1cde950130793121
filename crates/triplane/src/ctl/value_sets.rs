//! Lists and changes value sets: the values that parsers select by and the control plane sets.

use diagnostics::{Diagnostic, Diagnostics};
use p4runtime_proto::config::ValueSet;
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::{FieldMatch, ValueSetEntry, ValueSetMember};
use serde_json::json;

use super::entry::{self, Change};
use super::set::set_to;
use super::text::{self, Setting};
use super::{SwitchConnection, names, show};
use crate::output::Failure;

impl SwitchConnection<'_> {
    /// `value-sets`
    pub fn value_sets(&self, wanted: Option<&str>) -> Result<(), Failure> {
        let all: Vec<_> = self.info.value_sets.iter().map(|set| (set, names::name(&set.preamble))).collect();
        let sets = match wanted {
            Some(name) => vec![names::look_up("value set", name, &all)?],
            None => all.into_iter().map(|(set, _)| set).collect(),
        };
        if sets.is_empty() && !self.json {
            self.output.note("the program has no value sets");
        }
        let (is_listed, mut objects) = (wanted.is_none(), Vec::new());
        for set in sets {
            let wanted = ValueSetEntry { value_set_id: names::id(&set.preamble), ..Default::default() };
            self.read_object(vec![Kind::ValueSetEntry(wanted)], is_listed, |entity| {
                let Kind::ValueSetEntry(entry) = entity else { return Ok(()) };
                let members: Vec<_> = entry.members.iter().map(|it| show::fields(&set.r#match, &it.r#match)).collect();
                let name = names::name(&set.preamble);
                if self.json {
                    objects.push(json!({ "value_set": name, "size": set.size, "members": members }))
                } else {
                    let shown = if members.is_empty() { "none".to_owned() } else { members.join(" | ") };
                    self.output.print(&format!("{name}  {shown}\n"))?;
                }
                Ok(())
            })?;
        }
        if self.json { self.print_json(&objects.into()) } else { Ok(()) }
    }

    /// `set` of a value set.
    pub fn set_value_set(&self, set: &ValueSet, line: &str) -> Result<(), Failure> {
        let name = names::name(&set.preamble);
        let members = match line.trim() {
            "none" => Vec::new(),
            line => self.read_line(line, &format!("a valid list of members of `{name}`"), |file, _, diagnostics| {
                let written = text::parse_alternatives(file, line, diagnostics)?;
                Some(written.iter().map(|member| bind(set, member, diagnostics)).collect())
            })?,
        };
        let shown: Vec<_> = members.iter().map(|it: &ValueSetMember| show::fields(&set.r#match, &it.r#match)).collect();
        let entry = ValueSetEntry { value_set_id: names::id(&set.preamble), members };
        let described = if shown.is_empty() { "none".to_owned() } else { shown.join(" | ") };
        let json = json!({ "value_set": name, "members": shown });
        self.write(Change::Modify, Kind::ValueSetEntry(entry), &set_to(name, &described), json)
    }
}

/// Binds a member: its fields by name, or in order.
fn bind(set: &ValueSet, written: &[Setting], diagnostics: &mut Diagnostics) -> ValueSetMember {
    let fields: Vec<_> = set.r#match.iter().map(|field| (field, &*field.name)).collect();
    let mut member = ValueSetMember::default();
    let mut given = Vec::new();
    for (at, (name, value)) in written.iter().enumerate() {
        let field = match name {
            Some(name) => names::look("field", &name.text, &fields),
            None => fields.get(at).map(|(field, _)| *field).ok_or_else(|| {
                (
                    "too many values".to_owned(),
                    format!("a member has {} fields; separate members with `|`", fields.len()),
                )
            }),
        };
        let span = name.as_ref().map_or(value.span, |name| name.span);
        let found = field.and_then(|field| {
            if given.contains(&field.id) {
                Err((format!("`{}` is given twice", field.name), "separate members with `|`".to_owned()))
            } else {
                Ok(field)
            }
        });
        match found {
            Ok(field) => {
                given.push(field.id);
                match entry::matched(field, &value.text) {
                    Ok(kind) => member
                        .r#match
                        .extend(kind.map(|kind| FieldMatch { field_id: field.id, field_match_type: Some(kind) })),
                    Err(why) => {
                        let what = format!("`{}` is {}: {why}", field.name, entry::described(field));
                        diagnostics.push(Diagnostic::error("entry-value", value.span, what).help(entry::form(field)));
                    }
                }
            }
            Err((what, help)) => diagnostics.push(Diagnostic::error("entry-name", span, what).help(help)),
        }
    }
    member
}
