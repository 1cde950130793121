//! Allocates slots to aggregates and the conditions under which messages count.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash, Hasher};

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
    /// Identity of the values in the slot. Values that were stored under another identity are void.
    pub identity: SlotIdentity,
}

/// Identity of the values in a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotIdentity {
    /// Hash of the aggregate and the condition on counted messages. It is the same in every run of one build, so a
    /// service that starts again finds its slots at the switch. Another build may hash differently; values then
    /// restart.
    pub state_hash: u32,
    /// Number that grows each time the slot gets another state.
    pub generation: u32,
}

/// Identity of a slot's state: the aggregate, and the condition on counted messages except tests of its key. Rules
/// whose conditions differ only in those tests share a slot. Each key has separate state, so a rule never reads the
/// state of keys that it excludes.
type SlotState = (Aggregate, Condition);

/// Returns the 32-bit FNV-1a hash of a state.
fn state_hash(state: &SlotState) -> u32 {
    struct Fnv(u32);
    impl Hasher for Fnv {
        fn write(&mut self, bytes: &[u8]) {
            bytes.iter().for_each(|byte| self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(16_777_619));
        }
        fn finish(&self) -> u64 {
            self.0.into()
        }
    }
    let mut hash = Fnv(0x811c_9dc5);
    state.hash(&mut hash);
    hash.0
}

/// Slots with reference counts.
#[derive(Clone)]
pub(crate) struct Slots {
    taken: HashMap<SlotState, (u16, usize)>,
    /// Stack of free slots.
    free: Vec<u16>,
    /// The state of each slot in use when slots were last settled.
    settled: BTreeMap<u16, SlotState>,
    /// The last identity of each slot that was in use.
    identities: BTreeMap<u16, SlotIdentity>,
    /// Slots that were taken or freed since they were last settled.
    touched: BTreeSet<u16>,
    /// The first generation of a slot.
    first_generation: u32,
    /// Slots that are reserved for states, by the hashes of these.
    reserved: HashMap<u32, u16>,
}

impl Slots {
    pub fn new(count: u16, first_generation: u32) -> Slots {
        Slots {
            taken: HashMap::new(),
            free: (0..count).rev().collect(),
            settled: BTreeMap::new(),
            identities: BTreeMap::new(),
            touched: BTreeSet::new(),
            first_generation,
            reserved: HashMap::new(),
        }
    }

    /// Returns a generation above those of all slots.
    pub fn next_generation(&self) -> u32 {
        let next = self.identities.values().map(|identity| identity.generation.saturating_add(1)).max();
        next.unwrap_or(0).max(self.first_generation)
    }

    /// Replaces the generations of slots by known ones, where a slot has the same state.
    pub fn restore_generations(&mut self, known: &BTreeMap<u16, SlotIdentity>) {
        for (slot, identity) in known {
            if let Some(own) = self.identities.get_mut(slot).filter(|own| own.state_hash == identity.state_hash) {
                *own = *identity;
            }
        }
    }

    /// Reserves slots for the states with known identities, until slots are settled next.
    pub fn reserve(&mut self, known: &BTreeMap<u16, SlotIdentity>) {
        self.identities.extend(known);
        self.first_generation = self.next_generation();
        self.reserved.extend(known.iter().map(|(slot, identity)| (identity.state_hash, *slot)));
    }

    /// Adds a reference to the slot of this state; `None` if no slot is free. A slot that has had this state comes
    /// first, then one whose aggregate is declared, then one that had no state before the current change: a target
    /// without atomic changes still counts for the state that leaves.
    pub fn acquire(&mut self, state: SlotState, format: &MessageFormat) -> Option<u16> {
        if let Some((slot, uses)) = self.taken.get_mut(&state) {
            *uses += 1;
            return Some(*slot);
        }
        let reserved = self.reserved.get(&state_hash(&state));
        let rank = |(at, slot): &(usize, &u16)| {
            let had = self.settled.get(slot);
            // A slot that is reserved for another state is taken only if no other is free.
            let is_unreserved = !self.reserved.values().any(|other| other == *slot);
            let is_declared = format.declared_in(**slot).is_some();
            (had == Some(&state), reserved == Some(slot), is_declared, is_unreserved, had.is_none(), *at)
        };
        let fitting = self.free.iter().enumerate().filter(|(_, slot)| format.slot_takes(**slot, &state.0));
        let (at, _) = fitting.max_by_key(rank)?;
        let slot = self.free.remove(at);
        self.touched.insert(slot);
        self.taken.insert(state, (slot, 1));
        Some(slot)
    }

    /// Returns the slots whose states have changed since the last call, and ends reservations.
    pub fn settle(&mut self) -> Vec<SlotUse> {
        let touched = std::mem::take(&mut self.touched);
        let states = self.taken.iter().filter(|(_, (slot, _))| touched.contains(slot));
        let states: HashMap<u16, SlotState> = states.map(|(state, (slot, _))| (*slot, state.clone())).collect();
        let mut changed = Vec::new();
        for slot in touched {
            if self.settled.get(&slot) == states.get(&slot) {
                continue;
            }
            match states.get(&slot) {
                Some(state) => {
                    self.identify(slot, state_hash(state));
                    self.settled.insert(slot, state.clone());
                }
                None => drop(self.settled.remove(&slot)),
            }
            changed.push(self.of(slot, self.settled.get(&slot).map(|(aggregate, _)| aggregate.clone())));
        }
        self.reserved.clear();
        changed
    }

    /// Gives a slot the identity of a state that it did not have.
    fn identify(&mut self, slot: u16, state_hash: u32) {
        let known = self.identities.get(&slot);
        // The state had this slot before.
        if known.is_some_and(|known| known.state_hash == state_hash) && self.reserved.remove(&state_hash) == Some(slot)
        {
            return;
        }
        let next = known.map_or(0, |known| known.generation.saturating_add(1));
        self.identities.insert(slot, SlotIdentity { state_hash, generation: next.max(self.first_generation) });
    }

    fn of(&self, slot: u16, aggregate: Option<Aggregate>) -> SlotUse {
        SlotUse { slot, aggregate, identity: self.identities.get(&slot).copied().unwrap_or_default() }
    }

    /// Reacquires the slot that this state had before, which nothing else has taken since.
    pub fn hold_again(&mut self, state: SlotState, slot: u16) {
        let (_, uses) = self.taken.entry(state).or_insert_with(|| {
            self.free.retain(|other| *other != slot);
            self.touched.insert(slot);
            (slot, 0)
        });
        *uses += 1;
    }

    /// Drops one reference.
    pub fn release(&mut self, state: &SlotState) {
        let (slot, uses) = self.taken.get_mut(state).expect("what is released was held");
        *uses -= 1;
        if *uses == 0 {
            self.touched.insert(*slot);
            self.free.push(*slot);
            self.taken.remove(state);
        }
    }

    /// Returns the aggregate in a slot that is in use.
    pub fn aggregate_in(&self, slot: u16) -> Option<&Aggregate> {
        self.taken.iter().find(|(_, (other, _))| *other == slot).map(|((aggregate, _), _)| aggregate)
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
        list.into_iter().map(|(slot, aggregate)| self.of(slot, Some(aggregate))).collect()
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
    join(true, all)
}

/// Returns the conjuncts of [`counted`] that test more than the aggregate's key.
pub(crate) fn apart_from_key(counted: &Condition, by: &[FieldId]) -> Condition {
    let parts = match counted {
        Condition::All(parts) => parts.clone(),
        one => vec![one.clone()],
    };
    join(true, parts.into_iter().filter(|part| !is_of(part, by)).collect())
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

/// Returns the conjunction of conditions, or their disjunction. Their order and repetitions do not matter.
fn join(is_conjunction: bool, parts: Vec<Condition>) -> Condition {
    let (neutral, dominant) =
        if is_conjunction { (Condition::Always, Condition::Never) } else { (Condition::Never, Condition::Always) };
    let mut operands = Vec::new();
    for part in parts {
        match part {
            Condition::All(nested) if is_conjunction => operands.extend(nested),
            Condition::Any(nested) if !is_conjunction => operands.extend(nested),
            part if part == neutral => {}
            part if part == dominant => return dominant,
            part => operands.push(part),
        }
    }
    operands.sort_unstable();
    operands.dedup();
    match operands.len() {
        0 => neutral,
        1 => operands.remove(0),
        _ if is_conjunction => Condition::All(operands),
        _ => Condition::Any(operands),
    }
}

/// Pushes negations inwards, so that aggregate tests become true in any position. Removes source locations and sorts
/// operands, so that equal conditions compare equal.
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
        Condition::All(parts) => join(!negated, list(parts)),
        Condition::Any(parts) => join(negated, list(parts)),
    }
}
