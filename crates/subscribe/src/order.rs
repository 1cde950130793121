//! Which order of the fields makes few entries: orders are tried on a sample of the rules.
//!
//! No simple key tells it. A field that every rule asks a value of parts rules into groups that do not meet, whatever its
//! type; a field that half of the rules ask nothing of has the other half hang below each of its values. So a few orders that
//! often do are made into diagrams, of some tens of rules first, then the best one is changed a field at a time (sifting,
//! as of Rudell: Dynamic variable ordering for ordered binary decision diagrams, ICCAD 1993), then of four times as many
//! rules, and so on until all of them are in, or the work that is allowed is done. The work is counted in steps and the sample
//! comes from a seed: the same rules have the same order anywhere.

use std::collections::{BTreeSet, HashMap};

use bdd::{Limits, Ref, Store};
use rng::SplitMix64;

use crate::acts::{Act, Acts};
use crate::format::{FieldId, Format, Match, Subject};
use crate::layout::{Key, Layout, visit};
use crate::lower::{Lowering, balanced};
use crate::rule::Rule;
use crate::slice;
use crate::tables::{Stage, StageKey, State, Target, stages};

/// Steps of all diagrams together: about a tenth of a second.
const STEPS: u64 = 2_000_000;
/// What a rule costs to be made a diagram of, in steps.
const RULE: u64 = 12;
/// Rules of the first sample, and how many times more the next one has.
const FIRST: usize = 64;
const MORE: usize = 4;
/// Rules of the largest sample.
const MOST: usize = 1 << 12;
/// An order that is the best of so many and of a quarter of them stays.
const ENOUGH: usize = 1024;
/// Another order than the one that is expected to suit has to save as many entries, of the sample: with fewer rules nobody knows
/// what will be asked later.
const WORTH: usize = 32;

/// What the rules ask of a field.
#[derive(Clone, Default)]
struct Asked {
    /// By how many rules' tests it is asked.
    tests: usize,
    /// Whether it is asked for more than single values.
    ranges: bool,
    bounds: BTreeSet<u128>,
}

/// The fields in an order that suits rules like these.
pub(crate) fn fields(format: &Format, rules: Vec<&Rule>) -> Vec<Key> {
    let mut asked = vec![Asked::default(); format.fields().len()];
    for rule in &rules {
        visit(&rule.condition, &mut |test| {
            if let Subject::Field(id) = test.subject {
                let asked = &mut asked[usize::from(id.0)];
                asked.tests += 1;
                // `!=` has two long ranges, and asks for a value all the same.
                let max = format.get(id).max();
                let of_values = |list: &[(u128, u128)]| list.iter().all(|(first, last)| first == last);
                asked.ranges =
                    asked.ranges || !of_values(test.values.list()) && !of_values(test.values.complement(max).list());
            }
        });
    }
    let sample = sample(rules);
    for rule in &sample {
        visit(&rule.condition, &mut |test| {
            if let Subject::Field(id) = test.subject {
                let bounds = test.values.list().iter().flat_map(|(first, last)| [*first, *last]);
                asked[usize::from(id.0)].bounds.extend(bounds);
            }
        });
    }
    let of = |id: &FieldId| &asked[usize::from(id.0)];
    let (mut known, mut others): (Vec<FieldId>, Vec<FieldId>) =
        (0..format.fields().len() as u16).map(FieldId).partition(|id| of(id).tests > 0);
    // Values part the rules. What else is likely to suit: what most rules ask first, since they are parted by it; or few bounds
    // first, since these are few ways to go.
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
    // Of what nobody asks yet, values are likely to part rules, too.
    others.sort_by_key(|id| kind(format, *id));
    let values = others.partition_point(|id| kind(format, *id) == 0);
    let ranges = others.split_off(values);
    let behind = found.iter().take_while(|id| !of(id).ranges).count();
    found.splice(behind..behind, others);
    found.into_iter().chain(ranges).map(Key::Field).collect()
}

/// The fields in the order that their annotations suggest.
pub(crate) fn annotated(format: &Format) -> Vec<Key> {
    let mut fields: Vec<FieldId> = (0..format.fields().len() as u16).map(FieldId).collect();
    fields.sort_by_key(|id| kind(format, *id));
    fields.into_iter().map(Key::Field).collect()
}

/// Values before prefixes, and these before ranges.
fn kind(format: &Format, id: FieldId) -> u8 {
    match format.get(id).matching {
        Match::Exact => 0,
        Match::Lpm => 1,
        Match::Any | Match::Range => 2,
    }
}

/// Some of the rules, any first part of which is a sample, too.
fn sample(mut all: Vec<&Rule>) -> Vec<&Rule> {
    let mut rng = SplitMix64::new(7);
    for at in 0..all.len().min(MOST) {
        let other = at as u64 + rng.below((all.len() - at) as u64);
        all.swap(at, other as usize);
    }
    all.truncate(MOST);
    all
}

/// A rule of the sample, ready to be made a diagram of.
struct Sampled<'a> {
    rule: &'a Rule,
    acts: Vec<u32>,
    slots: Vec<u16>,
}

/// The orders that are tried, and what that may still cost.
struct Search<'a> {
    format: &'a Format,
    rules: Vec<Sampled<'a>>,
    steps: u64,
}

/// What an order comes to: entries, and the steps to find that out.
#[derive(Clone, Copy)]
struct Cost {
    entries: usize,
    steps: u64,
}

impl<'a> Search<'a> {
    fn new(format: &'a Format, sample: &[&'a Rule]) -> Search<'a> {
        let mut acts = Acts::default();
        // Which aggregate has which slot does not matter here, as long as each has its own.
        let mut slots = HashMap::new();
        let mut slot = |of| {
            let next = slots.len();
            (*slots.entry(of).or_insert(next) % usize::from(format.slots.max(1))) as u16
        };
        let sampled = |rule: &&'a Rule| Sampled {
            rule,
            acts: rule.actions.iter().flat_map(Act::of).map(|act| acts.hold(act)).collect(),
            slots: rule.aggregates.iter().map(&mut slot).collect(),
        };
        let rules = sample.iter().filter(|rule| format.slots > 0 || rule.aggregates.is_empty()).map(sampled).collect();
        Search { format, rules, steps: STEPS }
    }

    /// The best order that was found from these, of which the first is taken where there is little to choose.
    fn best(mut self, mut orders: Vec<Vec<FieldId>>) -> Vec<FieldId> {
        let expected = orders[0].clone();
        let mut best = expected.clone();
        let mut size = FIRST.min(self.rules.len());
        loop {
            let mut costs: Vec<(usize, Vec<FieldId>)> = Vec::new();
            // The best so far first: the others may take so much more than it, and no longer.
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
            // An order for a larger sample is of use only beside others for the same.
            if is_settled || size == self.rules.len() || self.steps < least.steps * (next / size) as u64 * 4 {
                return best;
            }
            size = next;
            orders = costs.into_iter().map(|(_, order)| order).take(2).chain([expected.clone()]).collect();
        }
    }

    /// Moves each field to where it makes the fewest entries, again and again until none moves.
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
                    // The next sample is to have its share.
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

    /// What an order costs for so many rules; `None` if that is much more than what is known, or than there are steps left.
    fn try_order(&mut self, order: &[FieldId], size: usize, known: Option<Cost>) -> Option<Cost> {
        let allowed = known.map_or(u64::MAX, |known| known.steps * 3 + 1000).min(self.steps);
        let work = (size as u64 * RULE).min(self.steps);
        let mut store = Store::new();
        let steps = allowed.saturating_sub(work);
        store.limit(Limits { steps, nodes: 1 << 20, bytes: 64 << 20 });
        let root = self.diagram(order, size, &mut store);
        let used = work + steps - store.steps_left();
        self.steps = self.steps.saturating_sub(used);
        let (root, stages, validities) = root?;
        Some(Cost { entries: entries(&store, root, &stages, validities, self.format), steps: used })
    }

    fn diagram(&self, order: &[FieldId], size: usize, store: &mut Store) -> Option<(Ref, Vec<Stage>, usize)> {
        let layout = Layout::of_fields(self.format, order.iter().copied().map(Key::Field).collect());
        let mut rules: Vec<(Vec<(u32, u128)>, &Sampled<'_>)> =
            self.rules[..size].iter().map(|rule| (place(rule.rule, &layout), rule)).collect();
        rules.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut parts = Vec::with_capacity(rules.len());
        for (_, Sampled { rule, acts, slots }) in rules {
            let then = store.constant(acts);
            let aggregates = &rule.aggregates;
            let mut lowering = Lowering { store, format: self.format, layout: &layout, aggregates, slots };
            parts.push(lowering.rule(&rule.condition, then).ok()?);
        }
        let root = balanced(store, &mut parts).ok()?;
        Some((root, stages(self.format, &layout, &Target::default()), layout.validities()))
    }
}

/// Where a rule stands among others, so that those which ask the same come together first: that is less work.
fn place(rule: &Rule, layout: &Layout) -> Vec<(u32, u128)> {
    let mut place = Vec::new();
    visit(&rule.condition, &mut |test| {
        if let (Subject::Field(id), Some((first, last))) = (test.subject, test.values.list().first())
            && place.len() < 8
        {
            place.push((layout.column(Key::Field(id)), if *first == 0 { *last } else { *first }));
        }
    });
    place.sort_unstable();
    place
}

/// The entries of a diagram's fields.
fn entries(store: &Store, root: Ref, stages: &[Stage], validities: usize, format: &Format) -> usize {
    // A stage for all validities together, if there are any.
    let first = usize::from(validities > 0);
    let of = |function: Ref| {
        let level = store.level(function).map_or(0, |level| level as usize);
        if function.is_set() || level < validities {
            return 0;
        }
        let stage = &stages[level - validities + first];
        let StageKey::Column(key) = stage.column else { return 0 };
        let arms: Vec<(u128, State)> = store
            .arms(function)
            .map(|(value, next)| (value, if next == Ref::NOTHING { 0 } else { next.number() | 1 << 30 }))
            .collect();
        match stage.codes {
            // As many stretches as there are without.
            Some(_) => arms.len(),
            None => slice::entries(&arms, key.width(format), None, stage).len(),
        }
    };
    store.reachable(root).into_iter().map(of).sum()
}
