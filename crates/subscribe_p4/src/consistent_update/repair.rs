//! Repair: phases of a consistent update between any two sets of entities, used to roll back a partially applied
//! change.

use std::cmp::Reverse;

use subscribe::StateId;

use crate::consistent_update::order::{LEAF, Phases, TablePosition};
use crate::entries::{Entity, Matched, ProgramEntry, Update, UpdatePlan};
use crate::write::VALIDITY;

/// Returns the state that an entity belongs to; `None` for groups, sessions and key cells.
pub fn entity_state(entity: &Entity) -> Option<StateId> {
    let Entity::Table(entry) = entity else { return None };
    let of_state = |(name, _, matched): &(String, u32, Matched)| match matched {
        Matched::Exact(state) if name == "state" => StateId::try_from(*state).ok(),
        _ => None,
    };
    // All messages are looked up in the validity table; its entries belong to the initial state.
    if is_validity(entry) { Some(0) } else { entry.keys.iter().find_map(of_state) }
}

fn is_validity(entry: &ProgramEntry) -> bool {
    entry.table.strip_prefix("Subscriptions.") == Some(VALIDITY)
}

/// Orders these updates so that each message sees either the old rules or the new ones. States for which `stays` holds
/// have entries before and after with the same meaning: the same messages reach them under both sets of rules
/// ([`subscribe::UpdateMode::PerMessageConsistent`]), as all messages reach state 0. If messages may be in flight past
/// earlier writes, a pause is required before the transition as well.
pub fn repair(updates: Vec<Update>, stays: impl Fn(StateId) -> bool) -> UpdatePlan {
    let mut plan = UpdatePlan::default();
    let (mut groups, mut besides, mut last) = (Vec::new(), Vec::new(), Vec::new());
    let mut turned: Vec<(StateId, ProgramEntry, Update)> = Vec::new();
    for update in updates {
        let (Update::Insert(entity) | Update::Modify(entity) | Update::Delete(entity)) = &update;
        match (entity, entity_state(entity), &update) {
            (Entity::Table(entry), Some(state), _) if state == 0 || stays(state) => {
                turned.push((state, entry.clone(), update))
            }
            (_, Some(_), Update::Delete(_)) => plan.cleanup.push(update),
            (_, Some(_), _) => plan.prepare.push(update),
            (_, None, Update::Insert(_)) => groups.push(update),
            (_, None, Update::Modify(_)) => besides.push(update),
            (_, None, Update::Delete(_)) => last.push(update),
        }
    }
    // Groups are created before their users and deleted after them.
    groups.append(&mut plan.prepare);
    plan.prepare = groups;
    plan.cleanup.append(&mut last);
    // More specific entries are inserted before and deleted after less specific ones.
    turned.sort_by_key(|(_, entry, update)| match update {
        Update::Insert(_) => (0, Reverse(specificity(entry))),
        Update::Modify(_) => (1, Reverse(0)),
        Update::Delete(_) => (2, Reverse(u32::MAX - specificity(entry))),
    });
    let mut phases = Phases::default();
    besides.into_iter().for_each(|update| phases.independent(update));
    turned.into_iter().for_each(|(state, entry, update)| phases.write(state, position(&entry), update));
    plan.transition = phases.done();
    plan
}

/// Returns the position of a state's table in lookup order, from the table's name.
fn position(entry: &ProgramEntry) -> TablePosition {
    if is_validity(entry) {
        return (0, 1);
    }
    let stage = entry.table.rsplit_once('_').and_then(|(part, stage)| Some((part, stage.parse().ok()?)));
    match stage {
        Some((part, stage)) if part.ends_with("_exact") => (stage, 0),
        Some((part, stage)) if part.ends_with("_rest") => (stage, 2),
        Some((part, stage)) if ["_range", "_lpm", "_ternary"].iter().any(|kind| part.ends_with(kind)) => (stage, 1),
        _ => LEAF,
    }
}

/// Returns the precedence among entries of a state that match the same value; larger values are looked up first.
fn specificity(entry: &ProgramEntry) -> u32 {
    let value = entry.keys.iter().find(|(name, ..)| name == "value").map(|(_, _, matched)| matched);
    match value {
        _ if is_validity(entry) => 1,
        Some(Matched::Exact(_)) => u32::MAX,
        Some(Matched::Lpm(_, length)) => length + 1,
        Some(Matched::Ternary(_, mask)) => mask.count_ones() + 1,
        Some(Matched::Range(..)) => 1,
        // A key that matches any value may be absent from an entry.
        None if position(entry).1 == 1 => 1,
        None => 0,
    }
}
