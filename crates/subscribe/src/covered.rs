//! Rules that add nothing to the others: taking one away changes nothing for any message.
//!
//! A rule adds nothing if, for each of its acts, its condition implies those of the other rules with that act together.
//! This is asked of one rule after the other, from the last to the first, and of what is left then, so that all that are
//! found can go at once, and of two that are the same the later one is found.
//!
//! Most rules ask one field for a value (of rules about stocks, the stock). Those that ask for different values never
//! meet, so each value's rules are looked at by themselves, beside the rules that ask for none.

use std::collections::{BTreeMap, HashMap};

use bdd::{Full, Limits, Ref, Store};

use crate::format::Subject;
use crate::lower::{Lowering, balanced};
use crate::never::Known;
use crate::report::Useless;
use crate::rule::Condition;
use crate::subscriptions::{RuleId, Subscriptions};

/// A second or two.
const LIMITS: Limits = Limits { nodes: 8_000_000, bytes: 512 << 20, steps: 20_000_000 };
/// For so many rules it is said which others cover them.
const NAMED: usize = 100;
/// Of so many rules at most these are chosen.
const CANDIDATES: usize = 2_000;
/// Named are no more than these.
const MOST_NAMES: usize = 3;

/// Rules that add nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// All of these can go at once; by number.
    pub found: Vec<Useless>,
    /// Whether all rules were looked at. Those with aggregates never are: what they count depends on their conditions.
    pub is_complete: bool,
}

/// A rule that is looked at.
struct Asked<'a> {
    id: RuleId,
    acts: &'a [u32],
    condition: Ref,
    is_covered: bool,
}

impl Subscriptions {
    /// Rules that add nothing to the others. Only messages count for which `possible` holds. The work is bounded: if there is
    /// more to do, then not all are found, and what is found is right.
    pub fn covered(&self, possible: &Condition) -> Covered {
        let mut looker = Looker { of: self, store: Store::new(), possible: Ref::ALWAYS, rules: Vec::new() };
        looker.store.limit(LIMITS);
        let is_complete = looker.look(possible).is_ok();
        let named = looker.name();
        let mut found: Vec<Useless> = looker
            .rules
            .iter()
            .enumerate()
            .filter(|(_, rule)| rule.is_covered)
            .map(|(at, rule)| Useless::Covered { rule: rule.id, by: named.get(&at).cloned().unwrap_or_default() })
            .collect();
        found.sort_by_key(Useless::rule);
        Covered { found, is_complete }
    }
}

struct Looker<'a> {
    of: &'a Subscriptions,
    store: Store,
    /// The messages that there can be.
    possible: Ref,
    rules: Vec<Asked<'a>>,
}

impl<'a> Looker<'a> {
    fn look(&mut self, possible: &Condition) -> Result<(), Full> {
        let of = self.of;
        let asked = || of.held().filter(|(_, held)| held.rule.aggregates.is_empty());
        let mut counts: BTreeMap<Subject, usize> = BTreeMap::new();
        for (_, held) in asked() {
            values(&held.rule.condition, &mut |subject, _| *counts.entry(subject).or_default() += 1);
        }
        let subject = counts.into_iter().max_by_key(|(subject, count)| (*count, std::cmp::Reverse(*subject)));
        let subject = subject.map(|(subject, _)| subject);
        let mut parts: BTreeMap<u128, Vec<usize>> = BTreeMap::new();
        let mut general = Vec::new();
        let (format, layout) = (&of.format, &of.layout);
        let known = Known::new(of, possible, &mut self.store)?;
        self.possible = known.possible;
        for (id, held) in asked() {
            let mut lowering = Lowering { store: &mut self.store, format, layout, aggregates: &[], slots: &[] };
            let condition = lowering.rule(&held.rule.condition, Ref::ALWAYS)?;
            // Those that never match are told as that.
            if of.may_be_empty(&held.rule.condition, &known) && self.is_nothing(condition)? {
                continue;
            }
            let mut value = None;
            values(&held.rule.condition, &mut |of, its| {
                if Some(of) == subject {
                    value = Some(its);
                }
            });
            let at = self.rules.len();
            self.rules.push(Asked { id, acts: held.acts(), condition, is_covered: false });
            match value {
                Some(value) => parts.entry(value).or_default().push(at),
                None => general.push(at),
            }
        }
        let of_general = self.unions(&general)?;
        for part in parts.values() {
            self.part(part, &of_general)?;
        }
        if general.is_empty() {
            return Ok(());
        }
        let others: Vec<usize> = parts.into_values().flatten().filter(|at| !self.rules[*at].is_covered).collect();
        let of_others = self.unions(&others)?;
        self.part(&general, &of_others)
    }

    /// Whether no message that there can be is among these.
    fn is_nothing(&mut self, messages: Ref) -> Result<bool, Full> {
        Ok(messages == Ref::NOTHING || self.store.keep_where(self.possible, messages)? == Ref::NOTHING)
    }

    /// When each act is done by some of the rules.
    fn unions(&mut self, rules: &[usize]) -> Result<HashMap<u32, Ref>, Full> {
        let mut by_act: BTreeMap<u32, Vec<Ref>> = BTreeMap::new();
        for at in rules {
            let rule = &self.rules[*at];
            rule.acts.iter().for_each(|act| by_act.entry(*act).or_default().push(rule.condition));
        }
        by_act.into_iter().map(|(act, mut all)| Ok((act, balanced(&mut self.store, &mut all)?))).collect()
    }

    /// Finds which of some rules are covered by the others of them and by what is `outside`.
    fn part(&mut self, rules: &[usize], outside: &HashMap<u32, Ref>) -> Result<(), Full> {
        // For each rule and act, when the rules before it do that.
        let mut before: HashMap<u32, Ref> = HashMap::new();
        let mut all_before: Vec<Vec<Ref>> = Vec::with_capacity(rules.len());
        for at in rules {
            let rule = &self.rules[*at];
            let mut of_rule = Vec::with_capacity(rule.acts.len());
            for act in rule.acts {
                let union = before.entry(*act).or_insert(Ref::NOTHING);
                of_rule.push(*union);
                *union = self.store.union(*union, rule.condition)?;
            }
            all_before.push(of_rule);
        }
        let mut behind: HashMap<u32, Ref> = HashMap::new();
        for (at, before) in rules.iter().zip(all_before).rev() {
            let Asked { acts, condition, .. } = self.rules[*at];
            let mut is_covered = true;
            for (act, before) in acts.iter().zip(before) {
                let of = |map: &HashMap<u32, Ref>| map.get(act).copied().unwrap_or(Ref::NOTHING);
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
                for act in acts {
                    let union = behind.entry(*act).or_insert(Ref::NOTHING);
                    *union = self.store.union(*union, condition)?;
                }
            }
        }
        Ok(())
    }

    /// Few rules that cover those that were found, for the first of these.
    fn name(&mut self) -> HashMap<usize, Vec<RuleId>> {
        let found: Vec<usize> = (0..self.rules.len()).filter(|at| self.rules[*at].is_covered).take(NAMED).collect();
        let mut by_act: HashMap<u32, Vec<usize>> = HashMap::new();
        for (at, rule) in self.rules.iter().enumerate().filter(|(_, rule)| !rule.is_covered) {
            rule.acts.iter().for_each(|act| by_act.entry(*act).or_default().push(at));
        }
        let mut named = HashMap::new();
        for at in found {
            let of_acts = self.rules[at].acts.iter().filter_map(|act| by_act.get(act));
            let mut candidates: Vec<usize> = of_acts.flatten().copied().collect();
            candidates.sort_unstable();
            candidates.dedup();
            candidates.truncate(CANDIDATES);
            self.store.limit(Limits { steps: LIMITS.steps / NAMED as u64, ..LIMITS });
            if let Ok(by) = self.few(at, &candidates) {
                named.insert(at, by.into_iter().map(|by| self.rules[by].id).collect());
            }
        }
        named
    }

    /// One of the candidates that covers a rule, or a few that do together.
    fn few(&mut self, at: usize, candidates: &[usize]) -> Result<Vec<usize>, Full> {
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
            // Those that overlap the rule in so many ways are no answer to anybody.
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
        some.truncate(if some.len() > MOST_NAMES { 0 } else { MOST_NAMES });
        Ok(some)
    }

    fn is_covered(&mut self, at: usize, by: &[usize]) -> Result<bool, Full> {
        let Asked { acts, condition, .. } = self.rules[at];
        for act in acts {
            let mut rest = condition;
            for other in by.iter().map(|by| &self.rules[*by]).filter(|other| other.acts.contains(act)) {
                rest = self.store.keep_unless(other.condition, rest)?;
            }
            if !self.is_nothing(rest)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The single values that every message has which passes.
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
