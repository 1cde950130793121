//! Which aggregate is in which slot, and which messages count for it.

use std::collections::HashMap;

use crate::format::{FieldId, Format, Subject};
use crate::ranges::Ranges;
use crate::rule::{Aggregate, Condition, Rule};

/// An aggregate in its slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotUse {
    /// The slot.
    pub slot: u16,
    /// What is computed there; `None` where the slot is no longer in use.
    pub aggregate: Option<Aggregate>,
}

/// What an aggregate is computed over: the aggregate, and the condition of the messages that count, tests of its key
/// aside. Rules whose conditions differ only there share a slot, for each key has a state of its own: what counts for
/// keys that a rule excludes the rule never sees.
type Over = (Aggregate, Condition);

/// The slots, counted by use.
#[derive(Clone)]
pub(crate) struct Slots {
    taken: HashMap<Over, (u16, usize)>,
    /// The last is taken first.
    free: Vec<u16>,
}

impl Slots {
    pub fn new(count: u16) -> Slots {
        Slots { taken: HashMap::new(), free: (0..count).rev().collect() }
    }

    /// The slot for this, used once more; `None` if none is left.
    pub fn hold(&mut self, over: Over, format: &Format, told: &mut Vec<SlotUse>) -> Option<u16> {
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
        told.push(SlotUse { slot, aggregate: Some(over.0.clone()) });
        self.taken.insert(over, (slot, 1));
        Some(slot)
    }

    /// Uses the slot that this had before, after nothing else took it.
    pub fn hold_again(&mut self, over: Over, slot: u16) {
        let (_, uses) = self.taken.entry(over).or_insert_with(|| {
            self.free.retain(|other| *other != slot);
            (slot, 0)
        });
        *uses += 1;
    }

    /// Takes back one use.
    pub fn release(&mut self, over: &Over, told: &mut Vec<SlotUse>) {
        let (slot, uses) = self.taken.get_mut(over).expect("what is released was held");
        *uses -= 1;
        if *uses == 0 {
            told.push(SlotUse { slot: *slot, aggregate: None });
            self.free.push(*slot);
            self.taken.remove(over);
        }
    }

    /// How many slots are in use.
    pub fn used(&self) -> usize {
        self.taken.len()
    }

    /// All slots in use, by number.
    pub fn list(&self) -> Vec<SlotUse> {
        let uses = self.taken.iter().map(|((aggregate, _), (slot, _))| (*slot, aggregate.clone()));
        let mut list: Vec<_> = uses.collect();
        list.sort_unstable();
        list.into_iter().map(|(slot, aggregate)| SlotUse { slot, aggregate: Some(aggregate) }).collect()
    }
}

/// The condition of the messages that count for an aggregate of a rule: the rule's with every test of an aggregate taken
/// as true, and what is computed is there.
pub(crate) fn counted(rule: &Rule, aggregate: &Aggregate, format: &Format) -> Condition {
    let mut all = vec![without_aggregates(&rule.condition, false)];
    let mut headers: Vec<_> = aggregate.fields().filter_map(|id| format.get(id).header).collect();
    headers.sort_unstable();
    headers.dedup();
    let span = diagnostics::Span::default();
    all.extend(headers.into_iter().map(|header| Condition::Valid { header, span }));
    flat(all)
}

/// The part of [`counted`] that is not about the aggregate's key alone.
pub(crate) fn apart_from_key(counted: &Condition, by: &[FieldId]) -> Condition {
    let parts = match counted {
        Condition::All(parts) => parts.clone(),
        one => vec![one.clone()],
    };
    flat(parts.into_iter().filter(|part| !is_of(part, by)).collect())
}

/// Whether a condition tests these fields and nothing else.
fn is_of(condition: &Condition, fields: &[FieldId]) -> bool {
    match condition {
        Condition::Test(test) => matches!(test.subject, Subject::Field(id) if fields.contains(&id)),
        Condition::Not(inner) => is_of(inner, fields),
        Condition::All(parts) | Condition::Any(parts) => parts.iter().all(|part| is_of(part, fields)),
        Condition::Always | Condition::Never | Condition::Valid { .. } => false,
    }
}

/// More keys than this a rule does not name.
const MAX_NAMED: usize = 4096;
/// More neighbouring values than this are a range, which names no keys. Fewer may have been written one by one.
const MAX_NEIGHBOURS: u128 = 64;

/// What a part of a condition leaves of a field, if that is all that it says.
fn values_of(part: &Condition, field: FieldId) -> Option<Ranges> {
    match part {
        Condition::Test(test) if test.subject == Subject::Field(field) => Some(test.values.clone()),
        Condition::Any(parts) => {
            parts.iter().try_fold(Ranges::default(), |all, part| Some(all.union(&values_of(part, field)?)))
        }
        _ => None,
    }
}

/// The keys that a rule's messages can have, if it names them: a test of each field of the key for some values.
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

/// Negations go inwards, so that a test of an aggregate is true wherever it stands; places are left out, so that equal
/// conditions are equal.
fn without_aggregates(condition: &Condition, negated: bool) -> Condition {
    let span = diagnostics::Span::default();
    let list = |list: &[Condition]| list.iter().map(|part| without_aggregates(part, negated)).collect();
    let not = |inner: Condition| if negated { Condition::Not(Box::new(inner)) } else { inner };
    match condition {
        Condition::Always | Condition::Never => match (condition == &Condition::Always) != negated {
            true => Condition::Always,
            false => Condition::Never,
        },
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
            match any.contains(&Condition::Always) {
                true => Condition::Always,
                false => Condition::Any(any),
            }
        }
    }
}
