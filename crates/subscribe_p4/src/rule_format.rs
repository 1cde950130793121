//! Converts a program's format to the vocabulary of rules.

use std::collections::BTreeMap;

use diagnostics::Span;
use subscribe::{
    ActionDeclaration, Condition, FieldId, FormatError, HeaderId as RuleHeader, Padding, Parameter, Ranges, Subject,
    Test, ValueKind,
};

use crate::format::{FieldSource, HeaderId, Match, Notation, ProgramFormat};
use crate::possible::KnownHeaders;

/// The format as rules see it, and the meaning of its headers in the program.
#[derive(Clone, Debug)]
pub struct RuleFormat {
    /// Fields, actions, counters and aggregates have the same numbers as in the program.
    pub format: subscribe::MessageFormat,
    /// For each header of `format`, the program's headers; it is valid if one of them is.
    pub headers: Vec<Vec<HeaderId>>,
}

impl RuleFormat {
    /// Returns the condition that every message at a switch satisfies: a combined header is valid if one of its headers
    /// is, a message is of exactly one kind, and headers and values are as the parser leaves them
    /// ([`crate::possible`]).
    pub fn possible(&self, format: &ProgramFormat) -> Condition {
        let mut all = Vec::new();
        for (at, of) in self.headers.iter().enumerate().filter(|(_, of)| of.len() > 1) {
            let some = || any(of.iter().map(|header| valid(header.0)).collect());
            all.push(any(vec![valid(at), not(some())]));
            all.push(any(vec![not(valid(at)), some()]));
        }
        if let Some(packets) = &format.possible.packets {
            all.push(any(packets.iter().map(|known| packet(known, format)).collect()));
        }
        let kinds: Vec<HeaderId> =
            format.messages.iter().flat_map(|messages| &messages.kinds).map(|kind| kind.header).collect();
        if !kinds.is_empty() {
            let there = kinds.iter().filter_map(|kind| message(*kind, &kinds, format));
            all.push(any(there.collect()));
        }
        every(all)
    }
}

fn valid(at: usize) -> Condition {
    Condition::Valid { header: RuleHeader(at as u16), span: Span::default() }
}

fn not(of: Condition) -> Condition {
    Condition::Not(Box::new(of))
}

fn any(mut list: Vec<Condition>) -> Condition {
    match list.len() {
        0 => Condition::Never,
        1 => list.remove(0),
        _ => Condition::Any(list),
    }
}

fn every(mut list: Vec<Condition>) -> Condition {
    match list.len() {
        0 => Condition::Always,
        1 => list.remove(0),
        _ => Condition::All(list),
    }
}

/// Returns the condition that a field has one of some values.
fn test(field: usize, values: &Ranges) -> Condition {
    let subject = Subject::Field(FieldId(field as u16));
    Condition::Test(Test { subject, values: values.clone(), span: Span::default() })
}

/// Returns the condition that a packet has these headers and values.
fn packet(known: &KnownHeaders, format: &ProgramFormat) -> Condition {
    let mut all: Vec<Condition> =
        known.valid.iter().map(|(header, is)| if *is { valid(header.0) } else { not(valid(header.0)) }).collect();
    for (at, field) in format.fields.iter().enumerate() {
        let is = |source: &FieldSource| known.valid.get(&source.header).copied();
        let mut there = field.sources.iter().filter(|source| is(source) != Some(false));
        // If several headers with the field may be valid, the source is unknown.
        let (Some(source), None) = (there.next(), there.next()) else { continue };
        let is_messages = field.sources.iter().any(|source| format.headers[source.header.0].in_message);
        let values = known.values.get(&source.header).and_then(|of| of.get(&source.member));
        if let Some(values) = values.filter(|_| !is_messages && is(source) == Some(true)) {
            all.push(test(at, values));
        }
    }
    every(all)
}

/// Returns the condition that a message is of this kind; `None` if no message is.
fn message(kind: HeaderId, kinds: &[HeaderId], format: &ProgramFormat) -> Option<Condition> {
    let known = match &format.possible.messages {
        Some(of) => Some(of.get(&kind)?),
        None => None,
    };
    let mut all: Vec<Condition> =
        kinds.iter().map(|other| if *other == kind { valid(kind.0) } else { not(valid(other.0)) }).collect();
    for (at, field) in format.fields.iter().enumerate() {
        let is_messages = field.sources.iter().all(|source| format.headers[source.header.0].in_message);
        let source = field.sources.iter().find(|source| is_messages && source.header == kind);
        let values = source.and_then(|source| known?.get(&source.member));
        all.extend(values.map(|values| test(at, values)));
    }
    Some(every(all))
}

/// Converts a program's format to the vocabulary of rules. A field with several source headers has a value if one of
/// them is valid. For rules, these headers form a separate header, whose name rules cannot write.
///
/// # Errors
/// Two declarations have the same name, or codes do not suit their field.
pub fn rule_format(format: &ProgramFormat) -> Result<RuleFormat, FormatError> {
    let mut out = subscribe::MessageFormat::new();
    // Without declarations, rules may use no aggregates.
    out.slots = 0;
    let mut headers = Vec::new();
    let mut known: BTreeMap<Vec<HeaderId>, RuleHeader> = BTreeMap::new();
    for (at, header) in format.headers.iter().enumerate() {
        known.insert(vec![HeaderId(at)], out.header(&header.name)?);
        headers.push(vec![HeaderId(at)]);
    }
    for field in &format.fields {
        let sources: Vec<HeaderId> = field.sources.iter().map(|source| source.header).collect();
        let header = match known.get(&sources) {
            Some(header) => *header,
            None => {
                let names: Vec<&str> = sources.iter().map(|source| format.headers[source.0].name.as_str()).collect();
                let header = out.header(&names.join(" or "))?;
                known.insert(sources.clone(), header);
                headers.push(sources);
                header
            }
        };
        let kind = match field.notation {
            Notation::Number => ValueKind::Unsigned,
            Notation::Text => ValueKind::Text(Padding::SPACES),
            Notation::Ipv4 => ValueKind::Ipv4,
            Notation::Ipv6 => ValueKind::Ipv6,
            Notation::Mac => ValueKind::Mac,
        };
        let matching = match field.matched {
            Match::Exact => subscribe::Match::Exact,
            Match::Lpm => subscribe::Match::Lpm,
            Match::Range => subscribe::Match::Range,
        };
        let (name, width) = (field.name.clone(), field.width);
        let id = out.field(subscribe::FieldDeclaration { name, width, kind, matching, header: Some(header) })?;
        for source in field.sources.iter().filter(|source| format.decides(field, source.header)) {
            let path = format!("{}.{}", format.headers[source.header.0].name, source.member);
            out.path(path, id, known[&vec![source.header]]);
        }
        if let Some(bits) = field.codes {
            out.compress(id, bits)?;
        }
    }
    for action in &format.actions {
        let parameter = |(name, width): &(String, u32)| Parameter { name: name.clone(), width: *width };
        let parameters = action.params.iter().map(parameter).collect();
        out.action(ActionDeclaration { name: action.name.clone(), parameters })?;
    }
    for counter in &format.counters {
        let (name, window) = (counter.name.clone(), counter.window);
        out.counter(subscribe::Counter { name, width: 64, window })?;
    }
    for aggregate in &format.aggregates {
        let (slots, keys) = (aggregate.slots, aggregate.keys);
        out.compute(subscribe::ComputedAggregate { aggregate: aggregate.computes.clone(), slots, keys });
    }
    Ok(RuleFormat { format: out, headers })
}
