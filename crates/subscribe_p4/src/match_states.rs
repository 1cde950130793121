//! Matches states of the same meaning in two sets of entries that number them differently.
//!
//! Numbers of states depend on the order in which rules came. A service that starts again compiles the rules of its
//! file anew, and would rewrite a switch that holds the same rules under other numbers. Both sets are followed from the
//! initial state: entries with equal keys lead to states that correspond.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use subscribe::{SlotIdentity, StateId, state};

use crate::entity_state;
use crate::entries::{Entity, Matched, ProgramEntry};
use crate::state_entries::parse_link_entry;

/// The action that leads to another state.
const TO_STATE: &str = "Subscriptions.to_state";

/// Entries by their state, in the order of their other keys.
struct ByState<'e>(HashMap<StateId, Vec<&'e ProgramEntry>>);

/// The place of an entry among those of its state: its table, its other keys, and its priority.
type Place<'e> = (&'e str, Vec<&'e (String, u32, Matched)>, Option<u32>);

fn place(entry: &ProgramEntry) -> Place<'_> {
    let others = entry.keys.iter().filter(|(name, ..)| name != "state").collect();
    (&entry.table, others, entry.priority)
}

/// Returns the state that an entry leads to.
fn next(entry: &ProgramEntry) -> Option<StateId> {
    let (_, _, state) = entry.params.iter().find(|(name, ..)| name == "state").filter(|_| entry.action == TO_STATE)?;
    StateId::try_from(*state).ok()
}

impl<'e> ByState<'e> {
    fn new(entities: &'e [Entity]) -> ByState<'e> {
        let mut all: HashMap<StateId, Vec<&ProgramEntry>> = HashMap::new();
        for entity in entities {
            if let (Entity::Table(entry), Some(state)) = (entity, entity_state(entity)) {
                all.entry(state).or_default().push(entry);
            }
        }
        all.values_mut().for_each(|entries| entries.sort_by(|one, other| place(one).cmp(&place(other))));
        ByState(all)
    }

    fn of(&self, state: StateId) -> &[&'e ProgramEntry] {
        self.0.get(&state).map_or(&[], Vec::as_slice)
    }
}

/// Returns the identities in link entries, by slot.
pub fn slot_identities(entities: &[Entity]) -> BTreeMap<u16, SlotIdentity> {
    let link = |entity: &Entity| match entity {
        Entity::Table(entry) => parse_link_entry(entry).map(|of| (of.slot, of.identity)),
        _ => None,
    };
    entities.iter().filter_map(link).collect()
}

/// Returns the states of `new` that correspond to states of `known`, with these. No two have the same.
pub fn match_states(new: &[Entity], known: &[Entity]) -> HashMap<StateId, StateId> {
    // Numbers of a service are as dense as its states; others may need memory for all numbers below them.
    let max_number = 8 * known.len() as u64 + (1 << 16);
    let (new, known) = (ByState::new(new), ByState::new(known));
    let mut matched = HashMap::from([(0, 0)]);
    let mut taken = HashSet::from([0]);
    let mut pending = VecDeque::from([(0, 0)]);
    while let Some((one, other)) = pending.pop_front() {
        let mut others = known.of(other).iter().peekable();
        for entry in new.of(one) {
            while others.next_if(|other| place(other) < place(entry)).is_some() {}
            let Some(same) = others.next_if(|other| place(other) == place(entry)) else { continue };
            let (Some(to), Some(same_to)) = (next(entry), next(same)) else { continue };
            let is_like = state::tag(to) == state::tag(same_to) && u64::from(state::number(same_to)) < max_number;
            if is_like && !matched.contains_key(&to) && taken.insert(same_to) {
                matched.insert(to, same_to);
                pending.push_back((to, same_to));
            }
        }
    }
    matched
}
