//! Lint: rules that match no possible message.

use std::collections::{HashMap, HashSet};

use bdd::{LimitExceeded, Ref, Store};
use diagnostics::Span;

use crate::compile::lower::Lowering;
use crate::format::{HeaderId, Subject};
use crate::lint::finding::LintFinding;
use crate::ranges::Ranges;
use crate::rule::{Condition, Rule, Test};
use crate::subscriptions::Subscriptions;

/// Maximum number of tests per rule that are checked pairwise for contradictions.
const MAX_TESTS: usize = 32;

/// Properties that all possible messages share.
pub(crate) struct MessageFacts {
    /// The set of possible messages.
    pub possible: Ref,
    /// Subjects with restricted values in at least some messages.
    subjects: HashSet<Subject>,
    /// Headers that are never valid.
    headers: Vec<HeaderId>,
}

impl MessageFacts {
    pub fn new(of: &Subscriptions, possible: &Condition, store: &mut Store) -> Result<MessageFacts, LimitExceeded> {
        let (format, layout) = (&of.format, &of.layout);
        let mut lowering = Lowering { store, format, layout, aggregates: &[], slots: &[] };
        let holds = lowering.rule(possible, Ref::ALWAYS)?;
        let mut headers = Vec::new();
        for header in (0..format.headers().len()).map(|at| HeaderId(at as u16)) {
            let valid = Condition::Valid { header, span: Span::default() };
            let valid = lowering.rule(&valid, Ref::ALWAYS)?;
            if lowering.store.keep_where(holds, valid)? == Ref::NOTHING {
                headers.push(header);
            }
        }
        let mut subjects = HashSet::new();
        tested(possible, &mut subjects);
        Ok(MessageFacts { possible: holds, subjects, headers })
    }
}

fn tested(condition: &Condition, out: &mut HashSet<Subject>) {
    match condition {
        Condition::Test(test) => drop(out.insert(test.subject)),
        Condition::Not(inner) => tested(inner, out),
        Condition::All(list) | Condition::Any(list) => list.iter().for_each(|part| tested(part, out)),
        _ => {}
    }
}

impl Subscriptions {
    /// Returns the rules that never match, each with the reason. Only messages that satisfy `possible` count, because
    /// the format does not say which headers and values can occur together.
    pub fn lint_never_matches(&self, possible: &Condition) -> Vec<LintFinding> {
        const LIMITS: bdd::Limits = bdd::Limits { nodes: 1 << 20, bytes: 256 << 20, steps: 1 << 24 };
        let mut out = Vec::new();
        let mut store = Store::new();
        store.set_limits(LIMITS);
        let known = MessageFacts::new(self, possible, &mut store).unwrap_or(MessageFacts {
            possible: Ref::ALWAYS,
            subjects: HashSet::new(),
            headers: Vec::new(),
        });
        for (id, record) in self.records() {
            let rule = &record.rule;
            if !self.may_be_empty(&rule.condition, &known) {
                continue;
            }
            store.set_limits(LIMITS);
            let slots = record.slots();
            let mut lowering = Lowering {
                store: &mut store,
                format: &self.format,
                layout: &self.layout,
                aggregates: &rule.aggregates,
                slots: &slots,
            };
            let holds = lowering.rule(&rule.condition, Ref::ALWAYS);
            if holds.and_then(|holds| store.keep_where(known.possible, holds)) == Ok(Ref::NOTHING) {
                let mut because = contradiction(self, rule);
                if because.is_empty() {
                    because = self.apart(rule, &known, &mut store).unwrap_or_default();
                }
                out.push(LintFinding::NeverMatches { rule: id, because });
            }
            if store.len() > 1 << 19 {
                store.collect([known.possible]);
            }
        }
        out
    }

    /// Whether a condition might be empty. This fast check excludes most rules: tests of different fields of one
    /// header.
    pub(crate) fn may_be_empty(&self, condition: &Condition, known: &MessageFacts) -> bool {
        let parts = match condition {
            Condition::All(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let mut subjects: Vec<Subject> = Vec::new();
        let mut headers: Vec<HeaderId> = Vec::new();
        let is_plain = parts.iter().all(|part| match part {
            Condition::Test(test)
                if !test.values.is_empty()
                    && !subjects.contains(&test.subject)
                    && !known.subjects.contains(&test.subject) =>
            {
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
        !is_plain || headers.iter().any(|header| *header != headers[0] || known.headers.contains(header))
    }

    fn header_of(&self, test: &Test) -> Option<HeaderId> {
        match test.subject {
            Subject::Field(id) => self.format.get(id).header,
            _ => None,
        }
    }

    /// Finds a conjunct that excludes every possible message, or two conjuncts that exclude each other.
    fn apart(&self, rule: &Rule, known: &MessageFacts, store: &mut Store) -> Result<Vec<Span>, LimitExceeded> {
        let mut parts: Vec<(Condition, Span)> = Vec::new();
        asked(&rule.condition, false, &mut parts);
        parts.truncate(MAX_TESTS);
        let (format, layout) = (&self.format, &self.layout);
        let mut lowering = Lowering { store, format, layout, aggregates: &[], slots: &[] };
        let mut before: Vec<(Ref, Span)> = Vec::new();
        for (part, span) in parts {
            let holds = lowering.rule(&part, Ref::ALWAYS)?;
            let holds = lowering.store.keep_where(known.possible, holds)?;
            if holds == Ref::NOTHING {
                return Ok(vec![span]);
            }
            for (other, its) in &before {
                if lowering.store.keep_where(*other, holds)? == Ref::NOTHING {
                    return Ok(vec![*its, span]);
                }
            }
            before.push((holds, span));
        }
        Ok(Vec::new())
    }
}

/// Collects the tests that every matching message satisfies.
fn asked(condition: &Condition, negated: bool, out: &mut Vec<(Condition, Span)>) {
    let mut ask = |span: Span| {
        let part = if negated { Condition::Not(Box::new(condition.clone())) } else { condition.clone() };
        out.push((part, span));
    };
    match condition {
        Condition::Valid { span, .. } => ask(*span),
        Condition::Test(test) if !matches!(test.subject, Subject::Aggregate(_)) => ask(test.span),
        Condition::Not(inner) => asked(inner, !negated, out),
        Condition::All(list) if !negated => list.iter().for_each(|part| asked(part, negated, out)),
        Condition::Any(list) if negated => list.iter().for_each(|part| asked(part, negated, out)),
        _ => {}
    }
}

/// Finds an empty conjunct, or two conjuncts that exclude each other.
fn contradiction(of: &Subscriptions, rule: &Rule) -> Vec<Span> {
    let mut tests: Vec<(&Test, bool)> = Vec::new();
    collect(&rule.condition, false, &mut tests);
    let alone = tests.iter().find(|(test, negated)| !negated && test.values.is_empty());
    if let Some((test, _)) = alone {
        return vec![test.span];
    }
    // Pairs are formed per subject only, so that long conjunctions stay fast.
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

/// Collects the tests that must all hold or must all fail.
fn collect<'a>(condition: &'a Condition, negated: bool, out: &mut Vec<(&'a Test, bool)>) {
    match condition {
        Condition::Test(test) => out.push((test, negated)),
        Condition::Not(inner) => collect(inner, !negated, out),
        Condition::All(list) if !negated => list.iter().for_each(|part| collect(part, negated, out)),
        Condition::Any(list) if negated => list.iter().for_each(|part| collect(part, negated, out)),
        _ => {}
    }
}
