//! Checks entries against the restrictions of a program.

use std::collections::BTreeMap;
use std::fmt;

use diagnostics::{Diagnostic, Diagnostics, Severity, SourceMap};
use p4runtime_proto::config::match_field::{Match, MatchType};
use p4runtime_proto::config::{MatchField, P4Info, Preamble};
use p4runtime_proto::v1;

use crate::annotation::{self, Restriction};
use crate::check::{self, Owner};
use crate::clause::{Clause, EntryValues, Operand};
use crate::lex::Finding;
use crate::parse::parse;
use crate::show::on_one_line;
use crate::value::{KeyPart, KeySpec, MatchKind, MatchValue};

/// Maximum number of values in an explanation.
const MAX_VALUES: usize = 16;

/// The restrictions of a program's tables and actions.
#[derive(Debug, Default)]
pub struct Checker {
    tables: BTreeMap<u32, RestrictedObject>,
    actions: BTreeMap<u32, RestrictedObject>,
}

/// A table or an action with a restriction.
#[derive(Debug)]
struct RestrictedObject {
    name: String,
    owner: Owner,
    keys: Vec<KeySpec>,
    text: String,
    clause: Clause,
}

/// Explanation of why an entry is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The restricted object: ``table `MyIngress.acl` ``.
    pub owner: String,
    /// Name of the annotation.
    pub annotation: &'static str,
    /// The clause that does not hold, on one line. The first one, if there are several.
    pub clause: String,
    /// Operands of the clause, and their values in the entry.
    pub values: Vec<(String, String)>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has {}, but `{}` does not hold", self.owner, self.annotation, self.clause)?;
        for (at, (name, value)) in self.values.iter().enumerate() {
            write!(f, "{}{name} is {value}", if at == 0 { ": " } else { ", " })?;
        }
        Ok(())
    }
}

impl Checker {
    /// Reads the restrictions in `info`. Errors in them are added to `diagnostics`, with positions in the program if
    /// `map` contains it, else in a file that is added to `map`. Restrictions with errors are left out of the result.
    pub fn new(info: &P4Info, map: &mut SourceMap, diagnostics: &mut Diagnostics) -> Checker {
        let mut checker = Checker::default();
        for table in &info.tables {
            let Some(preamble) = &table.preamble else { continue };
            let keys = || table.match_fields.iter().map(key).collect();
            if let Some(restricted) = read(preamble, Owner::Table, keys, map, diagnostics) {
                checker.tables.insert(preamble.id, restricted);
            }
        }
        for action in &info.actions {
            let Some(preamble) = &action.preamble else { continue };
            let keys = || action.params.iter().map(parameter).collect();
            if let Some(restricted) = read(preamble, Owner::Action, keys, map, diagnostics) {
                checker.actions.insert(preamble.id, restricted);
            }
        }
        checker
    }

    /// Whether there are no restrictions.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.actions.is_empty()
    }

    /// Checks an entry, and the actions in it, against their restrictions. A default entry has no match, so only its
    /// action is checked.
    pub fn check_entry(&self, entry: &v1::TableEntry) -> Result<(), Box<Violation>> {
        use v1::table_action::Type;
        if let Some(table) = self.tables.get(&entry.table_id).filter(|_| !entry.is_default_action) {
            table.check(&table.entry(entry))?;
        }
        match entry.action.as_ref().and_then(|action| action.r#type.as_ref()) {
            Some(Type::Action(action)) => self.check_action(action),
            Some(Type::ActionProfileActionSet(set)) => {
                let mut actions = set.action_profile_actions.iter().filter_map(|one| one.action.as_ref());
                actions.try_for_each(|action| self.check_action(action))
            }
            Some(Type::ActionProfileMemberId(_) | Type::ActionProfileGroupId(_)) | None => Ok(()),
        }
    }

    /// Checks an action, for example that of a member, against its restriction.
    pub fn check_action(&self, action: &v1::Action) -> Result<(), Box<Violation>> {
        match self.actions.get(&action.action_id) {
            Some(restricted) => restricted.check(&restricted.arguments(action)),
            None => Ok(()),
        }
    }
}

impl Owner {
    fn annotation(self) -> &'static str {
        match self {
            Owner::Table => "entry_restriction",
            Owner::Action => "action_restriction",
        }
    }

    fn describe(self, name: &str) -> String {
        match self {
            Owner::Table => format!("table `{name}`"),
            Owner::Action => format!("action `{name}`"),
        }
    }
}

fn key(field: &MatchField) -> KeySpec {
    let kind = match field.r#match {
        Some(Match::MatchType(kind)) => match MatchType::try_from(kind) {
            Ok(MatchType::Exact) => Some(MatchKind::Exact),
            Ok(MatchType::Lpm) => Some(MatchKind::Lpm),
            Ok(MatchType::Ternary) => Some(MatchKind::Ternary),
            Ok(MatchType::Range) => Some(MatchKind::Range),
            Ok(MatchType::Optional) => Some(MatchKind::Optional),
            Ok(MatchType::Unspecified) | Err(_) => None,
        },
        _ => None,
    };
    // In P4Info a string has no bit width.
    let width = if field.bitwidth == 0 { Some(0) } else { width(field.bitwidth) };
    KeySpec { id: field.id, name: field.name.clone(), kind: kind.unwrap_or(MatchKind::Exact), width: kind.and(width) }
}

fn parameter(param: &p4runtime_proto::config::action::Param) -> KeySpec {
    KeySpec { id: param.id, name: param.name.clone(), kind: MatchKind::Parameter, width: width(param.bitwidth) }
}

/// Maximum width in bits of a field in a restriction, which is the maximum width in P4 programs here.
const MAX_WIDTH: u32 = 1 << 16;

/// Returns the width of a field; `None` if it is none of a number.
fn width(bitwidth: i32) -> Option<u32> {
    u32::try_from(bitwidth).ok().filter(|width| (1..=MAX_WIDTH).contains(width))
}

/// Destination of the findings of one restriction.
struct FindingSink<'a> {
    restriction: Restriction,
    file: String,
    map: &'a mut SourceMap,
    diagnostics: &'a mut Diagnostics,
}

impl FindingSink<'_> {
    fn report(self, findings: Vec<Finding>) {
        if findings.is_empty() {
            return;
        }
        let places = self.restriction.places(self.map, &self.file);
        for finding in findings {
            let span = self.restriction.span(finding.at, &places);
            let mut diagnostic = Diagnostic::error(finding.code, span, finding.message);
            if finding.harmless {
                diagnostic.severity = Severity::Warning;
            }
            diagnostic.help = finding.help;
            self.diagnostics.push(diagnostic);
        }
    }
}

fn read(
    preamble: &Preamble,
    owner: Owner,
    keys: impl FnOnce() -> Vec<KeySpec>,
    map: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Option<RestrictedObject> {
    let mut bodies = preamble.annotations.iter().filter_map(|text| annotation::body(text, owner.annotation()));
    let body = bodies.next()?;
    let file = format!("@{} of {}", owner.annotation(), owner.describe(&preamble.name));
    let restriction = annotation::strings(body);
    let more = bodies.next().is_some();
    let Some(restriction) = restriction.filter(|_| !more) else {
        let (message, help) = if more {
            ("more than one restriction", "write one restriction, with `;` between the clauses")
        } else {
            ("a restriction must be a string", "write `(\"…\")`")
        };
        let end = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let span = diagnostics::Span::new(map.add(&file, body), 0, end);
        diagnostics.push(Diagnostic::error("restriction-syntax", span, message).help(help));
        return None;
    };
    let (keys, text) = (keys(), restriction.text.clone());
    let mut findings = Vec::new();
    let clause = match parse(&text) {
        Ok(expr) => check::check(&expr, owner, &keys, &mut findings),
        Err(finding) => {
            findings.push(finding);
            None
        }
    };
    FindingSink { restriction, file, map, diagnostics }.report(findings);
    Some(RestrictedObject { name: preamble.name.clone(), owner, keys, text, clause: clause? })
}

impl RestrictedObject {
    fn left_out(&self) -> Vec<MatchValue> {
        self.keys.iter().map(|key| MatchValue::left_out(key.kind, key.width.unwrap_or(1))).collect()
    }

    fn entry(&self, entry: &v1::TableEntry) -> EntryValues {
        let mut keys = self.left_out();
        for field in &entry.r#match {
            let Some(at) = self.keys.iter().position(|key| key.id == field.field_id) else { continue };
            let key = &self.keys[at];
            let read = field.field_match_type.as_ref().zip(key.width);
            if let Some(matched) = read.and_then(|(field, width)| MatchValue::read(field, key.kind, width)) {
                keys[at] = matched;
            }
        }
        EntryValues { keys, priority: entry.priority }
    }

    fn arguments(&self, action: &v1::Action) -> EntryValues {
        let mut keys = self.left_out();
        for param in &action.params {
            if let Some(at) = self.keys.iter().position(|key| key.id == param.param_id) {
                keys[at] = MatchValue::Number(crate::value::number(&param.value));
            }
        }
        EntryValues { keys, priority: 0 }
    }

    fn check(&self, seen: &EntryValues) -> Result<(), Box<Violation>> {
        if self.clause.holds(seen) {
            return Ok(());
        }
        let mut failing = Vec::new();
        self.clause.failing(seen, &mut failing);
        let clause = failing.first().copied().unwrap_or(&self.clause);
        let mut values: Vec<(String, String)> = Vec::new();
        clause.mentions(&mut |operand| {
            let name = self.name_of(operand);
            if values.len() < MAX_VALUES && values.iter().all(|(known, _)| *known != name) {
                values.push((name, self.shown(operand, seen)));
            }
        });
        Err(Box::new(Violation {
            owner: self.owner.describe(&self.name),
            annotation: match self.owner {
                Owner::Table => "@entry_restriction",
                Owner::Action => "@action_restriction",
            },
            clause: on_one_line(&self.text[clause.at.start..clause.at.end]),
            values,
        }))
    }

    fn shown(&self, operand: &Operand, seen: &EntryValues) -> String {
        match operand {
            Operand::Key(key) | Operand::Part(key, KeyPart::Value) if self.keys[*key].is_string() => {
                seen.keys[*key].as_string()
            }
            _ => operand.shown(seen),
        }
    }

    fn name_of(&self, operand: &Operand) -> String {
        match operand {
            Operand::Key(key) => self.keys[*key].name.clone(),
            Operand::Part(key, part) => format!("{}::{}", self.keys[*key].name, part.name()),
            _ => "::priority".to_owned(),
        }
    }
}
