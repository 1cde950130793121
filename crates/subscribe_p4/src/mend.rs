//! Any difference of what tables hold, in steps: how a target that refused a part of a change is taken back from where it stopped.

use std::cmp::Reverse;

use subscribe::State;

use crate::entries::{Entity, Matched, Steps, TableEntry, Update};
use crate::turn::{LEAF, Place, Rounds};
use crate::write::VALIDITY;

/// The state that an entity is for; `None` for what belongs to no state: groups, sessions, places of keys.
pub fn state(entity: &Entity) -> Option<State> {
    let Entity::Table(entry) = entity else { return None };
    let of_state = |(name, _, matched): &(String, u32, Matched)| match matched {
        Matched::Exact(state) if name == "state" => State::try_from(*state).ok(),
        _ => None,
    };
    // All messages meet the validity table, whose entries are those of the state that they begin with.
    if is_validity(entry) { Some(0) } else { entry.keys.iter().find_map(of_state) }
}

fn is_validity(entry: &TableEntry) -> bool {
    entry.table.strip_prefix("Subscriptions.") == Some(VALIDITY)
}

/// Puts these updates into an order in which a message sees the old rules or the new ones. States that `stays` have entries
/// before and after, and mean the same: the same messages reach them by either rules ([`subscribe::Writes::InTurn`]), as all messages
/// reach state 0. A pause is due before the turn as well if messages may be on their way past earlier writes.
pub fn mend(updates: Vec<Update>, stays: impl Fn(State) -> bool) -> Steps {
    let mut steps = Steps::default();
    let (mut groups, mut besides, mut last) = (Vec::new(), Vec::new(), Vec::new());
    let mut turned: Vec<(State, TableEntry, Update)> = Vec::new();
    for update in updates {
        let (Update::Insert(entity) | Update::Modify(entity) | Update::Delete(entity)) = &update;
        match (entity, state(entity), &update) {
            (Entity::Table(entry), Some(state), _) if state == 0 || stays(state) => {
                turned.push((state, entry.clone(), update))
            }
            (_, Some(_), Update::Delete(_)) => steps.clean.push(update),
            (_, Some(_), _) => steps.prepare.push(update),
            (_, None, Update::Insert(_)) => groups.push(update),
            (_, None, Update::Modify(_)) => besides.push(update),
            (_, None, Update::Delete(_)) => last.push(update),
        }
    }
    // Groups are there before what names them, and go behind it.
    groups.append(&mut steps.prepare);
    steps.prepare = groups;
    steps.clean.append(&mut last);
    // What is more specific is inserted before what is less, and deleted behind it.
    turned.sort_by_key(|(_, entry, update)| match update {
        Update::Insert(_) => (0, Reverse(specificity(entry))),
        Update::Modify(_) => (1, Reverse(0)),
        Update::Delete(_) => (2, Reverse(u32::MAX - specificity(entry))),
    });
    let mut rounds = Rounds::default();
    besides.into_iter().for_each(|update| rounds.besides(update));
    turned.into_iter().for_each(|(state, entry, update)| rounds.write(state, place(&entry), update));
    steps.turn = rounds.done();
    steps
}

/// Which of a state's tables a message looks into before others, by the table's name.
fn place(entry: &TableEntry) -> Place {
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

/// Of two entries of a state that match a value, the one with the larger number is looked up before the other.
fn specificity(entry: &TableEntry) -> u32 {
    let value = entry.keys.iter().find(|(name, ..)| name == "value").map(|(_, _, matched)| matched);
    match value {
        _ if is_validity(entry) => 1,
        Some(Matched::Exact(_)) => u32::MAX,
        Some(Matched::Lpm(_, length)) => length + 1,
        Some(Matched::Ternary(_, mask)) => mask.count_ones() + 1,
        Some(Matched::Range(..)) => 1,
        // What matches any value may be left out of an entry.
        None if place(entry).1 == 1 => 1,
        None => 0,
    }
}
