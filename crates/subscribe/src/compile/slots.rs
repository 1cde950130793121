//! Allocates slots to aggregates and the conditions under which messages count.

use std::collections::HashMap;

use crate::format::{FieldId, MessageFormat, Subject};
use crate::ranges::Ranges;
use crate::rule::{Aggregate, Condition, Rule};

/// The aggregate in a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotUse {
    /// The slot.
    pub slot: u16,
    /// The aggregate that the slot computes; `None` if the slot is no longer in use.
    pub aggregate: Option<Aggregate>,
}

/// Identity of a slot's state: the aggregate, and the condition on counted messages except tests of its key. Rules
/// whose conditions differ only in those tests share a slot. Each key has separate state, so a rule never reads the
/// state of keys that it excludes.
type Over = (Aggregate, Condition);

/// Slots with reference counts.
#[derive(Clone)]
pub(crate) struct Slots {
    taken: HashMap<Over, (u16, usize)>,
    /// Stack of free slots.
    free: Vec<u16>,
}

impl Slots {
    pub fn new(count: u16) -> Slots {
        Slots { taken: HashMap::new(), free: (0..count).rev().collect() }
    }

    /// Adds a reference to the slot of this state; `None` if no slot is free.
    pub fn acquire(&mut self, over: Over, format: &MessageFormat, slot_uses: &mut Vec<SlotUse>) -> Option<u16> {
        if let Some((slot, uses)) = self.taken.get_mut(&over) {
            *uses += 1;
            return Some(*slot);
        }
        let fits = |slot: &u16| match format.computed_in(*slot) {
            Some(computed) => format.computed()[computed].aggregate == over.0,
            None => true,
        };
        let at = self.free.iter().rposition(fits)?;
        let slot = self.free.remove(at);
        slot_uses.push(SlotUse { slot, aggregate: Some(over.0.clone()) });
        self.taken.insert(over, (slot, 1));
        Some(slot)
    }

    /// Reacquires the slot that this state had before, which nothing else has taken since.
    pub fn hold_again(&mut self, over: Over, slot: u16) {
        let (_, uses) = self.taken.entry(over).or_insert_with(|| {
            self.free.retain(|other| *other != slot);
            (slot, 0)
        });
        *uses += 1;
    }

    /// Drops one reference.
    pub fn release(&mut self, over: &Over, slot_uses: &mut Vec<SlotUse>) {
        let (slot, uses) = self.taken.get_mut(over).expect("what is released was held");
        *uses -= 1;
        if *uses == 0 {
            slot_uses.push(SlotUse { slot: *slot, aggregate: None });
            self.free.push(*slot);
            self.taken.remove(over);
        }
    }

    /// Returns the number of slots in use.
    pub fn used(&self) -> usize {
        self.taken.len()
    }

    /// Returns all slots in use, by number.
    pub fn list(&self) -> Vec<SlotUse> {
        let uses = self.taken.iter().map(|((aggregate, _), (slot, _))| (*slot, aggregate.clone()));
        let mut list: Vec<_> = uses.collect();
        list.sort_unstable();
        list.into_iter().map(|(slot, aggregate)| SlotUse { slot, aggregate: Some(aggregate) }).collect()
    }
}

/// Returns the condition on messages that count for an aggregate of a rule: the rule's condition with every aggregate
/// test taken as true, and all required headers valid.
pub(crate) fn counted(rule: &Rule, aggregate: &Aggregate, format: &MessageFormat) -> Condition {
    let mut all = vec![without_aggregates(&rule.condition, false)];
    let mut headers: Vec<_> = aggregate.fields().filter_map(|id| format.get(id).header).collect();
    headers.sort_unstable();
    headers.dedup();
    let span = diagnostics::Span::default();
    all.extend(headers.into_iter().map(|header| Condition::Valid { header, span }));
    flat(all)
}

/// Returns the conjuncts of [`counted`] that test more than the aggregate's key.
pub(crate) fn apart_from_key(counted: &Condition, by: &[FieldId]) -> Condition {
    let parts = match counted {
        Condition::All(parts) => parts.clone(),
        one => vec![one.clone()],
    };
    flat(parts.into_iter().filter(|part| !is_of(part, by)).collect())
}

/// Whether a condition tests only these fields.
fn is_of(condition: &Condition, fields: &[FieldId]) -> bool {
    match condition {
        Condition::Test(test) => matches!(test.subject, Subject::Field(id) if fields.contains(&id)),
        Condition::Not(inner) => is_of(inner, fields),
        Condition::All(parts) | Condition::Any(parts) => parts.iter().all(|part| is_of(part, fields)),
        Condition::Always | Condition::Never | Condition::Valid { .. } => false,
    }
}

/// Maximum number of keys that a rule names.
const MAX_NAMED: usize = 4096;
/// Maximum length of a run of values that counts as named. A longer one is a range.
const MAX_NEIGHBOURS: u128 = 64;

/// Returns the values that a conjunct permits for a field, if it tests nothing else.
fn values_of(part: &Condition, field: FieldId) -> Option<Ranges> {
    match part {
        Condition::Test(test) if test.subject == Subject::Field(field) => Some(test.values.clone()),
        Condition::Any(parts) => {
            parts.iter().try_fold(Ranges::default(), |all, part| Some(all.union(&values_of(part, field)?)))
        }
        _ => None,
    }
}

/// Returns the keys that matching messages can have, if the rule tests each key field for specific values.
pub(crate) fn named(counted: &Condition, by: &[FieldId]) -> Option<Vec<Vec<u128>>> {
    let parts = match counted {
        Condition::All(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    let values = |field: &FieldId| {
        let of_field = parts.iter().filter_map(|part| values_of(part, *field));
        let all = of_field.reduce(|one, other| one.intersection(&other))?;
        let few = all.list().iter().all(|(first, last)| last - first < MAX_NEIGHBOURS);
        few.then(|| all.list().iter().flat_map(|(first, last)| *first..=*last).collect::<Vec<u128>>())
    };
    let mut keys = vec![Vec::new()];
    for values in by.iter().map(values) {
        let values = values?;
        if keys.len() * values.len() > MAX_NAMED {
            return None;
        }
        keys = keys
            .iter()
            .flat_map(|key: &Vec<u128>| values.iter().map(|value| key.iter().copied().chain([*value]).collect()))
            .collect();
    }
    (!by.is_empty()).then_some(keys)
}

fn flat(all: Vec<Condition>) -> Condition {
    let mut out = Vec::new();
    for part in all {
        match part {
            Condition::All(parts) => out.extend(parts),
            Condition::Always => {}
            part => out.push(part),
        }
    }
    match out.len() {
        0 => Condition::Always,
        1 => out.remove(0),
        _ => Condition::All(out),
    }
}

/// Pushes negations inwards, so that aggregate tests become true in any position. Removes source locations, so that
/// equal conditions compare equal.
fn without_aggregates(condition: &Condition, negated: bool) -> Condition {
    let span = diagnostics::Span::default();
    let list = |list: &[Condition]| list.iter().map(|part| without_aggregates(part, negated)).collect();
    let not = |inner: Condition| if negated { Condition::Not(Box::new(inner)) } else { inner };
    match condition {
        Condition::Always | Condition::Never => {
            if (condition == &Condition::Always) != negated {
                Condition::Always
            } else {
                Condition::Never
            }
        }
        Condition::Valid { header, .. } => not(Condition::Valid { header: *header, span }),
        Condition::Test(test) => match test.subject {
            Subject::Aggregate(_) => Condition::Always,
            _ => not(Condition::Test(crate::rule::Test { span, ..test.clone() })),
        },
        Condition::Not(inner) => without_aggregates(inner, !negated),
        Condition::All(parts) if !negated => flat(list(parts)),
        Condition::Any(parts) if negated => flat(list(parts)),
        Condition::All(parts) | Condition::Any(parts) => {
            let any: Vec<Condition> = list(parts);
            if any.contains(&Condition::Always) { Condition::Always } else { Condition::Any(any) }
        }
    }
}
