//! Searches for a column order that needs few entries, on a sample of the rules.
//!
//! No simple key predicts the cost. A field for which every rule tests a value separates rules into disjoint groups,
//! whatever its type; if half of the rules do not test the field, all of these appear below each of its values. The
//! search therefore builds diagrams for a few orders that often work well, first for some tens of rules. It then moves
//! one field at a time in the best one (sifting; Rudell, Dynamic variable ordering for ordered binary decision
//! diagrams, ICCAD 1993), and repeats with four times as many rules until all are included or the budget is spent. Work
//! is counted in steps and the sample is seeded: equal rules have equal orders on any machine.

use std::collections::{BTreeSet, HashMap};

use bdd::{Limits, Ref, Store};
use rng::SplitMix64;

use crate::compile::effects::{Effect, EffectInterner};
use crate::compile::layout::{ColumnKey, ColumnLayout, visit};
use crate::compile::lower::{Lowering, balanced};
use crate::compile::slice;
use crate::format::{FieldId, Match, MessageFormat, Subject};
use crate::rule::Rule;
use crate::tables::{Stage, StageKey, StateId, TargetCapabilities, stages};

/// Budget in steps for all diagrams together: about 0.1 s.
const STEPS: u64 = 2_000_000;
/// Cost of building the diagram of one rule, in steps.
const RULE: u64 = 12;
/// Number of rules in the first sample, and growth factor of the next.
const FIRST: usize = 64;
const MORE: usize = 4;
/// Maximum number of rules in a sample.
const MOST: usize = 1 << 12;
/// Sample size from which an order is final if it is the best for the sample and for a quarter of it.
const ENOUGH: usize = 1024;
/// Minimum number of entries in the sample that another order than the expected one must save. A few rules do not
/// predict future ones.
const WORTH: usize = 32;

/// Usage of a field by the rules.
#[derive(Clone, Default)]
struct FieldUsage {
    /// Number of tests of the field.
    tests: usize,
    /// Whether tests other than of single values occur.
    ranges: bool,
    bounds: BTreeSet<u128>,
}

/// Returns the fields in an order that suits rules like these.
pub(crate) fn fields(format: &MessageFormat, rules: Vec<&Rule>) -> Vec<ColumnKey> {
    let mut usage = vec![FieldUsage::default(); format.fields().len()];
    for rule in &rules {
        visit(&rule.condition, &mut |test| {
            if let Subject::Field(id) = test.subject {
                let usage = &mut usage[usize::from(id.0)];
                usage.tests += 1;
                // `!=` yields two long ranges but tests a single value.
                let max = format.get(id).max();
                let of_values = |list: &[(u128, u128)]| list.iter().all(|(first, last)| first == last);
                usage.ranges =
                    usage.ranges || !of_values(test.values.list()) && !of_values(test.values.complement(max).list());
            }
        });
    }
    let sample = sample(rules);
    for rule in &sample {
        visit(&rule.condition, &mut |test| {
            if let Subject::Field(id) = test.subject {
                let bounds = test.values.list().iter().flat_map(|(first, last)| [*first, *last]);
                usage[usize::from(id.0)].bounds.extend(bounds);
            }
        });
    }
    let of = |id: &FieldId| &usage[usize::from(id.0)];
    let (mut known, mut others): (Vec<FieldId>, Vec<FieldId>) =
        (0..format.fields().len() as u16).map(FieldId).partition(|id| of(id).tests > 0);
    // Fields tested for values separate the rules. Other promising orders: the fields that most rules test first,
    // because they separate most rules, or the fields with few bounds first, because they have few arms.
    known.sort_by_key(|id| (of(id).ranges, kind(format, *id), *id));
    let by = |key: &dyn Fn(&FieldId) -> usize| {
        let mut order = known.clone();
        order.sort_by_key(|id| (of(id).ranges, kind(format, *id) > 0, key(id)));
        order
    };
    let most = by(&|id| usize::MAX - of(id).tests);
    let few = by(&|id| of(id).bounds.len());
    let (mut declared, mut suggested) = (known.clone(), known.clone());
    declared.sort();
    suggested.sort_by_key(|id| (kind(format, *id), *id));
    let mut found = match known.len() {
        0 | 1 => known,
        _ => Search::new(format, &sample).best(vec![known, most, few, suggested.clone(), declared]),
    };
    if found == suggested {
        return annotated(format);
    }
    // Untested fields for exact match are likely to separate rules, too.
    others.sort_by_key(|id| kind(format, *id));
    let values = others.partition_point(|id| kind(format, *id) == 0);
    let ranges = others.split_off(values);
    let behind = found.iter().take_while(|id| !of(id).ranges).count();
    found.splice(behind..behind, others);
    found.into_iter().chain(ranges).map(ColumnKey::Field).collect()
}

/// Returns the fields in the order that their annotations suggest.
pub(crate) fn annotated(format: &MessageFormat) -> Vec<ColumnKey> {
    let mut fields: Vec<FieldId> = (0..format.fields().len() as u16).map(FieldId).collect();
    fields.sort_by_key(|id| kind(format, *id));
    fields.into_iter().map(ColumnKey::Field).collect()
}

/// Ranks exact match before prefixes and prefixes before ranges.
fn kind(format: &MessageFormat, id: FieldId) -> u8 {
    match format.get(id).matching {
        Match::Exact => 0,
        Match::Lpm => 1,
        Match::Any | Match::Range => 2,
    }
}

/// Returns a random sample of the rules. Every prefix of it is a random sample, too.
fn sample(mut all: Vec<&Rule>) -> Vec<&Rule> {
    let mut rng = SplitMix64::new(7);
    for at in 0..all.len().min(MOST) {
        let other = at as u64 + rng.below((all.len() - at) as u64);
        all.swap(at, other as usize);
    }
    all.truncate(MOST);
    all
}

/// A sampled rule, ready to be lowered.
struct SampledRule<'a> {
    rule: &'a Rule,
    effects: Vec<u32>,
    slots: Vec<u16>,
}

/// The search with its remaining budget.
struct Search<'a> {
    format: &'a MessageFormat,
    rules: Vec<SampledRule<'a>>,
    steps: u64,
}

/// Cost of an order: its entries, and the steps that computing them took.
#[derive(Clone, Copy)]
struct Cost {
    entries: usize,
    steps: u64,
}

impl<'a> Search<'a> {
    fn new(format: &'a MessageFormat, sample: &[&'a Rule]) -> Search<'a> {
        let mut effects = EffectInterner::default();
        // The assignment of slots does not matter here, as long as aggregates have distinct ones.
        let mut slots = HashMap::new();
        let mut slot = |of| {
            let next = slots.len();
            (*slots.entry(of).or_insert(next) % usize::from(format.slots.max(1))) as u16
        };
        let sampled = |rule: &&'a Rule| SampledRule {
            rule,
            effects: rule.actions.iter().flat_map(Effect::of).map(|effect| effects.acquire(effect)).collect(),
            slots: rule.aggregates.iter().map(&mut slot).collect(),
        };
        let rules = sample.iter().filter(|rule| format.slots > 0 || rule.aggregates.is_empty()).map(sampled).collect();
        Search { format, rules, steps: STEPS }
    }

    /// Returns the best order found from these candidates. The first is preferred if the difference is small.
    fn best(mut self, mut orders: Vec<Vec<FieldId>>) -> Vec<FieldId> {
        let expected = orders[0].clone();
        let mut best = expected.clone();
        let mut size = FIRST.min(self.rules.len());
        loop {
            let mut costs: Vec<(usize, Vec<FieldId>)> = Vec::new();
            // The best order so far comes first, because its cost limits the work on the others.
            orders.insert(0, best.clone());
            let mut cheapest: Option<Cost> = None;
            let mut given = None;
            for at in 0..orders.len() {
                let order = orders[at].clone();
                if orders[..at].contains(&order) {
                    continue;
                }
                let cost = self.try_order(&order, size, cheapest);
                if order == expected {
                    given = cost;
                }
                let Some(cost) = cost else { continue };
                costs.push((cost.entries, order));
                if cheapest.is_none_or(|known| cost.entries < known.entries) {
                    cheapest = Some(cost);
                }
            }
            costs.sort_by_key(|(entries, _)| *entries);
            let Some(mut least) = cheapest else { return best };
            let mut order = costs[0].1.clone();
            self.sift(&mut order, &mut least, size);
            let is_worth = |cost: Cost| cost.entries - least.entries >= WORTH.max(cost.entries / 10);
            let found = if given.is_none_or(is_worth) { order } else { expected.clone() };
            let is_settled = size >= ENOUGH && found == best;
            best = found;
            let next = (size * MORE).min(self.rules.len());
            // The cost of an order is comparable only for the same sample.
            if is_settled || size == self.rules.len() || self.steps < least.steps * (next / size) as u64 * 4 {
                return best;
            }
            size = next;
            orders = costs.into_iter().map(|(_, order)| order).take(2).chain([expected.clone()]).collect();
        }
    }

    /// Moves each field to its best position until no move helps.
    fn sift(&mut self, order: &mut Vec<FieldId>, least: &mut Cost, size: usize) {
        let mut improved = true;
        while improved {
            improved = false;
            for field in order.clone() {
                for to in 0..order.len() {
                    let mut other: Vec<FieldId> = order.iter().copied().filter(|known| *known != field).collect();
                    other.insert(to, field);
                    if other == *order {
                        continue;
                    }
                    // Part of the budget is reserved for the next sample.
                    if self.steps < STEPS / 2 && size < self.rules.len() || self.steps < least.steps {
                        return;
                    }
                    if let Some(cost) = self.try_order(&other, size, Some(*least))
                        && cost.entries < least.entries
                    {
                        (*order, *least, improved) = (other, cost, true);
                    }
                }
            }
        }
    }

    /// Returns the cost of an order for `size` rules; `None` if it far exceeds the known cost or the remaining budget.
    fn try_order(&mut self, order: &[FieldId], size: usize, known: Option<Cost>) -> Option<Cost> {
        let allowed = known.map_or(u64::MAX, |known| known.steps * 3 + 1000).min(self.steps);
        let work = (size as u64 * RULE).min(self.steps);
        let mut store = Store::new();
        let steps = allowed.saturating_sub(work);
        store.set_limits(Limits { steps, nodes: 1 << 20, bytes: 64 << 20 });
        let root = self.diagram(order, size, &mut store);
        let used = work + steps - store.steps_left();
        self.steps = self.steps.saturating_sub(used);
        let (root, stages, validities) = root?;
        Some(Cost { entries: entries(&store, root, &stages, validities, self.format), steps: used })
    }

    fn diagram(&self, order: &[FieldId], size: usize, store: &mut Store) -> Option<(Ref, Vec<Stage>, usize)> {
        let layout = ColumnLayout::of_fields(self.format, order.iter().copied().map(ColumnKey::Field).collect());
        let mut rules: Vec<(Vec<(u32, u128)>, &SampledRule<'_>)> =
            self.rules[..size].iter().map(|rule| (place(rule.rule, &layout), rule)).collect();
        rules.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut parts = Vec::with_capacity(rules.len());
        for (_, SampledRule { rule, effects, slots }) in rules {
            let then = store.constant(effects);
            let aggregates = &rule.aggregates;
            let mut lowering = Lowering { store, format: self.format, layout: &layout, aggregates, slots };
            parts.push(lowering.rule(&rule.condition, then).ok()?);
        }
        let root = balanced(store, &mut parts).ok()?;
        Some((root, stages(self.format, &layout, &TargetCapabilities::default()), layout.validities()))
    }
}

/// Returns a sort key that groups rules with equal tests, which reduces the work of the union.
fn place(rule: &Rule, layout: &ColumnLayout) -> Vec<(u32, u128)> {
    let mut place = Vec::new();
    visit(&rule.condition, &mut |test| {
        if let (Subject::Field(id), Some((first, last))) = (test.subject, test.values.list().first())
            && place.len() < 8
        {
            place.push((layout.column(ColumnKey::Field(id)), if *first == 0 { *last } else { *first }));
        }
    });
    place.sort_unstable();
    place
}

/// Returns the number of entries of a diagram's fields.
fn entries(store: &Store, root: Ref, stages: &[Stage], validities: usize, format: &MessageFormat) -> usize {
    // All validity columns share one stage.
    let first = usize::from(validities > 0);
    let of = |function: Ref| {
        let level = store.level(function).map_or(0, |level| level as usize);
        if function.is_set() || level < validities {
            return 0;
        }
        let stage = &stages[level - validities + first];
        let StageKey::Column(key) = stage.column else { return 0 };
        let arms: Vec<(u128, StateId)> = store
            .arms(function)
            .map(|(value, next)| (value, if next == Ref::NOTHING { 0 } else { next.number() | 1 << 30 }))
            .collect();
        match stage.codes {
            // One entry per interval, as without codes.
            Some(_) => arms.len(),
            None => slice::entries(&arms, key.width(format), None, stage).len(),
        }
    };
    store.reachable(root).into_iter().map(of).sum()
}
