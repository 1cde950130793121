//! Redundant rules: removing one changes the delivery of no message.
//!
//! A rule is redundant if, for each of its effects, its condition implies the union of the conditions of the other
//! rules with that effect. Rules are checked one by one from the last to the first against the rules that remain. All
//! findings can therefore be removed together, and of two equal rules the later one is reported.
//!
//! Most rules test one field for a single value (rules about stocks, the stock). Rules with different values never
//! overlap, so the rules of each value are checked separately, together with the rules that test no value.

use std::collections::{BTreeMap, HashMap};

use bdd::{LimitExceeded, Limits, Ref, Store};

use crate::compile::lower::{Lowering, balanced};
use crate::format::Subject;
use crate::lint::finding::LintFinding;
use crate::lint::never_matches::MessageFacts;
use crate::rule::Condition;
use crate::subscriptions::{RuleId, RuleRecord, Subscriptions};

/// Budget of the analysis: one to two seconds.
const LIMITS: Limits = Limits { nodes: 8_000_000, bytes: 512 << 20, steps: 20_000_000 };
/// Minimum size of the diagrams to be collected between two values, in bytes.
const MIN_GARBAGE: usize = 8 << 20;
/// Maximum number of findings for which the covering rules are named.
const NAMED: usize = 100;
/// Maximum number of rules considered as covering rules of one finding.
const CANDIDATES: usize = 2_000;
/// Maximum number of covering rules that are named.
const MAX_NAMES: usize = 3;

/// Redundant rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoverageReport {
    /// Findings by rule number. All of them can be removed together.
    pub found: Vec<LintFinding>,
    /// Whether all rules were checked. Rules with aggregates never are, because the messages that they count depend on
    /// their conditions.
    pub is_complete: bool,
}

/// A rule under analysis.
struct Candidate<'a> {
    id: RuleId,
    effects: &'a [u32],
    condition: Ref,
    is_covered: bool,
}

impl Subscriptions {
    /// Finds redundant rules. Only messages that satisfy `possible` count. The work is bounded: beyond the bound
    /// findings may be missing, but none is wrong.
    pub fn lint_covered(&self, possible: &Condition) -> CoverageReport {
        let mut check = CoverageCheck { of: self, store: Store::new(), possible: Ref::ALWAYS, rules: Vec::new() };
        check.store.set_limits(LIMITS);
        let is_complete = check.look(possible).is_ok();
        let named = check.name();
        let mut found: Vec<LintFinding> = check
            .rules
            .iter()
            .enumerate()
            .filter(|(_, rule)| rule.is_covered)
            .map(|(at, rule)| LintFinding::Covered { rule: rule.id, by: named.get(&at).cloned().unwrap_or_default() })
            .collect();
        found.sort_by_key(LintFinding::rule);
        CoverageReport { found, is_complete }
    }
}

struct CoverageCheck<'a> {
    of: &'a Subscriptions,
    store: Store,
    /// The set of possible messages.
    possible: Ref,
    rules: Vec<Candidate<'a>>,
}

impl<'a> CoverageCheck<'a> {
    fn look(&mut self, possible: &Condition) -> Result<(), LimitExceeded> {
        let of = self.of;
        // A rule that only drops has no effect that others could have.
        let is_checked = |record: &RuleRecord| record.rule.aggregates.is_empty() && !record.effects().is_empty();
        let checked = || of.records().filter(|(_, record)| is_checked(record));
        let mut counts: BTreeMap<Subject, usize> = BTreeMap::new();
        for (_, record) in checked() {
            values(&record.rule.condition, &mut |subject, _| *counts.entry(subject).or_default() += 1);
        }
        let subject = counts.into_iter().max_by_key(|(subject, count)| (*count, std::cmp::Reverse(*subject)));
        let subject = subject.map(|(subject, _)| subject);
        let mut parts: BTreeMap<u128, Vec<usize>> = BTreeMap::new();
        let mut general = Vec::new();
        let (format, layout) = (&of.format, &of.layout);
        let known = MessageFacts::new(of, possible, &mut self.store)?;
        self.possible = known.possible;
        for (id, record) in checked() {
            let mut lowering = Lowering { store: &mut self.store, format, layout, aggregates: &[], slots: &[] };
            let condition = lowering.rule(&record.rule.condition, Ref::ALWAYS)?;
            // Rules that never match have a finding of their own.
            if of.may_be_empty(&record.rule.condition, &known) && self.is_nothing(condition)? {
                continue;
            }
            let mut value = None;
            values(&record.rule.condition, &mut |of, its| {
                if Some(of) == subject {
                    value = Some(its);
                }
            });
            let at = self.rules.len();
            self.rules.push(Candidate { id, effects: record.effects(), condition, is_covered: false });
            match value {
                Some(value) => parts.entry(value).or_default().push(at),
                None => general.push(at),
            }
        }
        let of_general = self.unions(&general)?;
        let mut kept = self.store.bytes();
        for part in parts.values() {
            self.part(part, &of_general)?;
            // The unions within one part are of no use to the others.
            if self.store.bytes() > kept + kept / 2 + MIN_GARBAGE {
                let conditions = self.rules.iter().map(|rule| rule.condition);
                self.store.collect(conditions.chain(of_general.values().copied()).chain([self.possible]));
                kept = self.store.bytes();
            }
        }
        if general.is_empty() {
            return Ok(());
        }
        let others: Vec<usize> = parts.into_values().flatten().filter(|at| !self.rules[*at].is_covered).collect();
        let of_others = self.unions(&others)?;
        self.part(&general, &of_others)
    }

    /// Whether this set contains no possible message.
    fn is_nothing(&mut self, messages: Ref) -> Result<bool, LimitExceeded> {
        Ok(messages == Ref::NOTHING || self.store.keep_where(self.possible, messages)? == Ref::NOTHING)
    }

    /// Returns, for each effect, the union of the conditions of the rules that have it.
    fn unions(&mut self, rules: &[usize]) -> Result<HashMap<u32, Ref>, LimitExceeded> {
        let mut by_act: BTreeMap<u32, Vec<Ref>> = BTreeMap::new();
        for at in rules {
            let rule = &self.rules[*at];
            rule.effects.iter().for_each(|effect| by_act.entry(*effect).or_default().push(rule.condition));
        }
        by_act.into_iter().map(|(effect, mut all)| Ok((effect, balanced(&mut self.store, &mut all)?))).collect()
    }

    /// Finds the rules that are covered by the other given rules and the unions in `outside`.
    fn part(&mut self, rules: &[usize], outside: &HashMap<u32, Ref>) -> Result<(), LimitExceeded> {
        // For each rule and effect, the union of the earlier rules with that effect.
        let mut before: HashMap<u32, Ref> = HashMap::new();
        let mut all_before: Vec<Vec<Ref>> = Vec::with_capacity(rules.len());
        for at in rules {
            let rule = &self.rules[*at];
            let mut of_rule = Vec::with_capacity(rule.effects.len());
            for effect in rule.effects {
                let union = before.entry(*effect).or_insert(Ref::NOTHING);
                of_rule.push(*union);
                *union = self.store.union(*union, rule.condition)?;
            }
            all_before.push(of_rule);
        }
        let mut behind: HashMap<u32, Ref> = HashMap::new();
        for (at, before) in rules.iter().zip(all_before).rev() {
            let Candidate { effects, condition, .. } = self.rules[*at];
            let mut is_covered = true;
            for (effect, before) in effects.iter().zip(before) {
                let of = |map: &HashMap<u32, Ref>| map.get(effect).copied().unwrap_or(Ref::NOTHING);
                let mut rest = condition;
                for others in [before, of(&behind), of(outside)] {
                    rest = self.store.keep_unless(others, rest)?;
                }
                is_covered = self.is_nothing(rest)?;
                if !is_covered {
                    break;
                }
            }
            self.rules[*at].is_covered = is_covered;
            if !is_covered {
                for effect in effects {
                    let union = behind.entry(*effect).or_insert(Ref::NOTHING);
                    *union = self.store.union(*union, condition)?;
                }
            }
        }
        Ok(())
    }

    /// Finds small sets of covering rules for the first findings.
    fn name(&mut self) -> HashMap<usize, Vec<RuleId>> {
        let found: Vec<usize> = (0..self.rules.len()).filter(|at| self.rules[*at].is_covered).take(NAMED).collect();
        let mut by_act: HashMap<u32, Vec<usize>> = HashMap::new();
        for (at, rule) in self.rules.iter().enumerate().filter(|(_, rule)| !rule.is_covered) {
            rule.effects.iter().for_each(|effect| by_act.entry(*effect).or_default().push(at));
        }
        let mut named = HashMap::new();
        for at in found {
            let of_acts = self.rules[at].effects.iter().filter_map(|effect| by_act.get(effect));
            let mut candidates: Vec<usize> = of_acts.flatten().copied().collect();
            candidates.sort_unstable();
            candidates.dedup();
            candidates.truncate(CANDIDATES);
            self.store.set_limits(Limits { steps: LIMITS.steps / NAMED as u64, ..LIMITS });
            if let Ok(by) = self.few(at, &candidates) {
                named.insert(at, by.into_iter().map(|by| self.rules[by].id).collect());
            }
        }
        named
    }

    /// Returns one candidate that covers a rule, or a few that cover it together.
    fn few(&mut self, at: usize, candidates: &[usize]) -> Result<Vec<usize>, LimitExceeded> {
        for by in candidates {
            if self.is_covered(at, &[*by])? {
                return Ok(vec![*by]);
            }
        }
        let mut some: Vec<usize> = Vec::new();
        for by in candidates {
            let rule = &self.rules[at];
            let meets = self.store.keep_where(self.rules[*by].condition, rule.condition)? != Ref::NOTHING;
            if meets {
                some.push(*by);
            }
            // A longer list would not help the reader.
            if some.len() > 16 {
                return Ok(Vec::new());
            }
        }
        if !self.is_covered(at, &some)? {
            return Ok(Vec::new());
        }
        for by in some.clone() {
            let fewer: Vec<usize> = some.iter().copied().filter(|other| *other != by).collect();
            if self.is_covered(at, &fewer)? {
                some = fewer;
            }
        }
        some.truncate(if some.len() > MAX_NAMES { 0 } else { MAX_NAMES });
        Ok(some)
    }

    fn is_covered(&mut self, at: usize, by: &[usize]) -> Result<bool, LimitExceeded> {
        let Candidate { effects, condition, .. } = self.rules[at];
        for effect in effects {
            let mut rest = condition;
            for other in by.iter().map(|by| &self.rules[*by]).filter(|other| other.effects.contains(effect)) {
                rest = self.store.keep_unless(other.condition, rest)?;
            }
            if !self.is_nothing(rest)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Calls `each` for every single value that a matching message must have.
fn values(condition: &Condition, each: &mut impl FnMut(Subject, u128)) {
    match condition {
        Condition::Test(test) => {
            if let [(first, last)] = test.values.list()
                && first == last
            {
                each(test.subject, *first);
            }
        }
        Condition::All(list) => list.iter().for_each(|part| values(part, each)),
        _ => {}
    }
}
