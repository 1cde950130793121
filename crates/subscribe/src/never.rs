//! Rules that match no message there can be.

use std::collections::HashMap;

use bdd::{Ref, Store};
use source::Span;

use crate::format::{HeaderId, Subject};
use crate::lower::Lowering;
use crate::ranges::Ranges;
use crate::report::Useless;
use crate::rule::{Condition, Rule, Test};
use crate::subscriptions::Subscriptions;

impl Subscriptions {
    /// The rules that never match, each with the reason. Only messages count for which `possible` holds: which headers can
    /// be valid together the format does not say.
    pub fn never(&self, possible: &Condition) -> Vec<Useless> {
        let mut out = Vec::new();
        let mut store = Store::new();
        for (id, held) in self.held() {
            let rule = &held.rule;
            if !self.may_be_empty(&rule.condition) {
                continue;
            }
            store.limit(bdd::Limits { nodes: 1 << 20, bytes: 256 << 20, steps: 1 << 24 });
            let slots = held.slots();
            let mut lowering = Lowering {
                store: &mut store,
                format: &self.format,
                layout: &self.layout,
                aggregates: &rule.aggregates,
                slots: &slots,
            };
            let holds = lowering.rule(&rule.condition, Ref::ALWAYS).and_then(|holds| lowering.rule(possible, holds));
            if holds == Ok(Ref::NOTHING) {
                let mut because = contradiction(self, rule);
                if because.is_empty() {
                    because = self.apart(rule, possible);
                }
                out.push(Useless::Never { rule: id, because });
            }
            if store.len() > 1 << 19 {
                store.collect([]);
            }
        }
        out
    }

    /// Whether a condition can be empty at all: most rules are tests of different fields of one header.
    pub(crate) fn may_be_empty(&self, condition: &Condition) -> bool {
        let parts = match condition {
            Condition::All(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let mut subjects: Vec<Subject> = Vec::new();
        let mut headers: Vec<HeaderId> = Vec::new();
        let is_plain = parts.iter().all(|part| match part {
            Condition::Test(test) if !test.values.is_empty() && !subjects.contains(&test.subject) => {
                subjects.push(test.subject);
                headers.extend(self.header_of(test));
                true
            }
            Condition::Valid { header, .. } => {
                headers.push(*header);
                true
            }
            _ => false,
        });
        !is_plain || headers.iter().any(|header| *header != headers[0])
    }

    fn header_of(&self, test: &Test) -> Option<HeaderId> {
        match test.subject {
            Subject::Field(id) => self.format.get(id).header,
            _ => None,
        }
    }

    /// Two parts of a conjunction that are about headers of which no message has both, or of which one has to be there and
    /// not.
    fn apart(&self, rule: &Rule, possible: &Condition) -> Vec<Span> {
        let mut literals: Vec<(HeaderId, bool, Span)> = Vec::new();
        self.headers_asked(&rule.condition, false, &mut literals);
        let mut store = Store::new();
        store.limit(bdd::Limits { nodes: 1 << 20, bytes: 64 << 20, steps: 1 << 20 });
        let (format, layout) = (&self.format, &self.layout);
        let mut lowering = Lowering { store: &mut store, format, layout, aggregates: &[], slots: &[] };
        for (at, one) in literals.iter().enumerate() {
            for other in &literals[..at] {
                let valid = |(header, is_valid, span): &(HeaderId, bool, Span)| {
                    let valid = Condition::Valid { header: *header, span: *span };
                    if *is_valid { valid } else { Condition::Not(Box::new(valid)) }
                };
                let both = Condition::All(vec![valid(one), valid(other), possible.clone()]);
                if lowering.rule(&both, Ref::ALWAYS) == Ok(Ref::NOTHING) {
                    return vec![other.2, one.2];
                }
            }
        }
        Vec::new()
    }

    /// Which headers all messages have that pass, and which none has; each once.
    fn headers_asked(&self, condition: &Condition, negated: bool, out: &mut Vec<(HeaderId, bool, Span)>) {
        let mut ask = |header: HeaderId, is_valid: bool, span: Span| {
            if !out.iter().any(|(known, its, _)| (*known, *its) == (header, is_valid)) {
                out.push((header, is_valid, span));
            }
        };
        match condition {
            Condition::Valid { header, span } => ask(*header, !negated, *span),
            Condition::Test(test) if !negated => {
                if let Some(header) = self.header_of(test) {
                    ask(header, true, test.span);
                }
            }
            Condition::Not(inner) => self.headers_asked(inner, !negated, out),
            Condition::All(list) if !negated => list.iter().for_each(|part| self.headers_asked(part, negated, out)),
            Condition::Any(list) if negated => list.iter().for_each(|part| self.headers_asked(part, negated, out)),
            _ => {}
        }
    }
}

/// Two parts of a conjunction that exclude each other, or one that is empty.
fn contradiction(of: &Subscriptions, rule: &Rule) -> Vec<Span> {
    let mut tests: Vec<(&Test, bool)> = Vec::new();
    collect(&rule.condition, false, &mut tests);
    let alone = tests.iter().find(|(test, negated)| !negated && test.values.is_empty());
    if let Some((test, _)) = alone {
        return vec![test.span];
    }
    // Pairs by subject only: long conjunctions stay quick.
    type Seen<'a> = (Ranges, Vec<(&'a Test, bool)>);
    let mut seen: HashMap<Subject, Seen<'_>> = HashMap::new();
    for (test, negated) in tests {
        let max = crate::format::max_of(of.format.width(test.subject));
        let values = if negated { test.values.complement(max) } else { test.values.clone() };
        let (both, before) = seen.entry(test.subject).or_insert_with(|| (Ranges::span(0, max), Vec::new()));
        *both = both.intersection(&values);
        if both.is_empty() {
            let excluding = before.iter().find(|(other, negated)| {
                let others = if *negated { other.values.complement(max) } else { other.values.clone() };
                others.intersection(&values).is_empty()
            });
            let other = excluding.or(before.first()).map(|(other, _)| other.span);
            return other.into_iter().chain([test.span]).collect();
        }
        before.push((test, negated));
    }
    Vec::new()
}

/// The tests that all have to hold, or have to fail.
fn collect<'a>(condition: &'a Condition, negated: bool, out: &mut Vec<(&'a Test, bool)>) {
    match condition {
        Condition::Test(test) => out.push((test, negated)),
        Condition::Not(inner) => collect(inner, !negated, out),
        Condition::All(list) if !negated => list.iter().for_each(|part| collect(part, negated, out)),
        Condition::Any(list) if negated => list.iter().for_each(|part| collect(part, negated, out)),
        _ => {}
    }
}
