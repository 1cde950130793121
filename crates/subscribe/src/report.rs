//! Rules that can be left out: those that never match, and those that add nothing to the others.

use std::collections::HashMap;

use bdd::{Full, Ref};
use source::{Diagnostic, SourceMap, Span};

use crate::format::Subject;
use crate::lower::Lowering;
use crate::ranges::Ranges;
use crate::rule::{Condition, Rule, Test};
use crate::subscriptions::{RuleId, Subscriptions};

/// A rule that can be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Useless {
    /// No message matches it.
    Never {
        /// The rule.
        rule: RuleId,
        /// Two tests that exclude each other, or one that nothing passes; none if the reason is longer than that.
        because: Vec<Span>,
    },
    /// For every message that it matches, another rule does all that it does.
    Covered {
        /// The rule.
        rule: RuleId,
        /// The other.
        by: RuleId,
    },
}

impl Useless {
    /// The finding for people, a warning.
    pub fn diagnostic(&self, of: &Subscriptions, map: &SourceMap) -> Option<Diagnostic> {
        match self {
            Useless::Never { rule, because } => {
                let rule = of.rule(*rule)?;
                let message = format!("{} never matches", rule.label(map));
                Some(match because.as_slice() {
                    [one, other, ..] => Diagnostic::warning("never-matches", *one, message)
                        .label("this")
                        .also(*other, "and this exclude each other"),
                    [one] => Diagnostic::warning("never-matches", *one, message).label("no message passes this"),
                    [] => {
                        Diagnostic::warning("never-matches", rule.span, message).label("its tests exclude one another")
                    }
                })
            }
            Useless::Covered { rule, by } => {
                let (rule, by) = (of.rule(*rule)?, of.rule(*by)?);
                let message = format!("{} does nothing that another rule does not do", rule.label(map));
                Some(Diagnostic::warning("covered", rule.span, message).also(by.span, "this rule does it all"))
            }
        }
    }
}

impl Subscriptions {
    /// The rules that never match, each with the reason.
    pub fn never(&self) -> Vec<Useless> {
        let mut out = Vec::new();
        let mut store = bdd::Store::new();
        for (id, held) in self.held() {
            let rule = &held.rule;
            if !may_be_empty(&rule.condition) {
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
            let holds = lowering.rule(&rule.condition, Ref::ALWAYS);
            if holds == Ok(Ref::NOTHING) {
                out.push(Useless::Never { rule: id, because: contradiction(self, rule) });
            }
            if store.len() > 1 << 19 {
                store.collect([]);
            }
        }
        out
    }

    /// Rules that another rule with the same acts covers. Each is compared with those that ask for the same value first
    /// (rules about one symbol), or for none, as far as `steps` comparisons go; the answer is right, but need not be
    /// complete.
    ///
    /// # Errors
    /// [`Full`], if the limits do not allow the comparisons.
    pub fn covered(&mut self, steps: usize) -> Result<Vec<Useless>, Full> {
        let limits = self.options.limits;
        self.store.limit(limits.into());
        type Group = (Option<(Subject, u128)>, Vec<u32>);
        let mut groups: HashMap<Group, Vec<RuleId>> = HashMap::new();
        for (id, held) in self.held().filter(|(_, held)| held.rule.aggregates.is_empty()) {
            let mut acts = held.acts().to_vec();
            acts.sort_unstable();
            acts.dedup();
            groups.entry((first_value(&held.rule.condition), acts)).or_default().push(id);
        }
        let mut groups: Vec<_> = groups.into_values().filter(|group| group.len() > 1).collect();
        groups.sort_unstable();
        let mut out = Vec::new();
        let mut left = steps;
        for group in groups {
            let mut conditions = Vec::with_capacity(group.len());
            for id in &group {
                conditions.push(self.condition_of(*id)?);
            }
            // A rule that is covered covers nothing that its cover does not.
            let mut kept: Vec<usize> = Vec::new();
            for at in 0..group.len() {
                let mut by = None;
                for other in &kept {
                    left = match left.checked_sub(1) {
                        Some(left) => left,
                        None => return Ok(out),
                    };
                    if self.store.union(conditions[*other], conditions[at])? == conditions[*other] {
                        by = Some(*other);
                        break;
                    }
                }
                if let Some(by) = by {
                    out.push(Useless::Covered { rule: group[at], by: group[by] });
                    continue;
                }
                let mut still = Vec::new();
                for other in kept {
                    left = left.saturating_sub(1);
                    match self.store.union(conditions[at], conditions[other])? == conditions[at] {
                        true => out.push(Useless::Covered { rule: group[other], by: group[at] }),
                        false => still.push(other),
                    }
                }
                still.push(at);
                kept = still;
            }
        }
        out.sort_by_key(|useless| match useless {
            Useless::Never { rule, .. } | Useless::Covered { rule, .. } => *rule,
        });
        Ok(out)
    }

    fn condition_of(&mut self, id: RuleId) -> Result<Ref, Full> {
        let Subscriptions { store, format, layout, rules, .. } = self;
        let held = rules[id.0 as usize].as_ref().expect("it was listed");
        Lowering { store, format, layout, aggregates: &[], slots: &[] }.rule(&held.rule.condition, Ref::ALWAYS)
    }
}

/// The first value that every message has which passes.
fn first_value(condition: &Condition) -> Option<(Subject, u128)> {
    match condition {
        Condition::Test(test) => match test.values.list() {
            [(first, last)] if first == last => Some((test.subject, *first)),
            _ => None,
        },
        Condition::All(list) => list.iter().filter_map(first_value).min(),
        _ => None,
    }
}

/// Whether a condition can be empty at all: most rules are tests of different fields.
fn may_be_empty(condition: &Condition) -> bool {
    let Condition::All(parts) = condition else {
        return !matches!(condition, Condition::Test(test) if !test.values.is_empty());
    };
    let mut subjects: Vec<Subject> = Vec::new();
    !parts.iter().all(|part| match part {
        Condition::Test(test) if !test.values.is_empty() && !subjects.contains(&test.subject) => {
            subjects.push(test.subject);
            true
        }
        _ => false,
    })
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
