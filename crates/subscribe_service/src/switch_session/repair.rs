//! Repairs a switch that applies updates one after the other and holds states with the current numbers: it goes from
//! what it holds to what it should hold in steps, so that each message meets either the old rules or the new ones, as
//! in an ordinary change.

use std::collections::BTreeSet;

use p4runtime_proto::v1;
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::update::Type;
use subscribe_p4::entries::{Entity, Update, UpdatePlan};

use crate::program_names::ProgramNames;
use crate::switch_content::SwitchContent;

/// Returns the states of the table entries among these entities, or `None` if one cannot be decoded: this service did
/// not write it.
fn states<'a>(names: &ProgramNames, entities: impl Iterator<Item = &'a v1::Entity>) -> Option<BTreeSet<u32>> {
    let mut states = BTreeSet::new();
    for entity in entities.filter(|entity| matches!(entity.entity, Some(Kind::TableEntry(_)))) {
        states.extend(subscribe_p4::entity_state(&names.decode(entity)?));
    }
    Some(states)
}

/// Returns the steps from `current` to `wanted`, or `None` if `current` has entities that are neither in `wanted` nor
/// in `attempted`, which are those that an undone change may have left: then its numbers of states may mean anything.
pub(super) fn steps(
    names: &ProgramNames,
    current: &SwitchContent,
    wanted: &SwitchContent,
    attempted: &SwitchContent,
) -> Option<UpdatePlan> {
    let (held, due) = (states(names, current.entities())?, states(names, wanted.entities())?);
    for unknown in current.difference(wanted).filter(|entity| attempted.lacks(entity)) {
        let is_due = match names.decode(unknown)? {
            // Entries of other states are removed, and no entry that stays leads to them.
            entity @ Entity::Table(_) => subscribe_p4::entity_state(&entity).is_none_or(|state| due.contains(&state)),
            Entity::Group(..) | Entity::Session(..) => wanted.has_key_of(unknown),
        };
        if is_due {
            return None;
        }
    }
    let mut updates = Vec::new();
    for update in current.updates_to(wanted) {
        let entity = names.decode(update.entity.as_ref()?)?;
        updates.push(match Type::try_from(update.r#type) {
            Ok(Type::Insert) => Update::Insert(entity),
            Ok(Type::Modify) => Update::Modify(entity),
            _ => Update::Delete(entity),
        });
    }
    Some(subscribe_p4::repair(updates, |state| held.contains(&state) && due.contains(&state)))
}

/// Returns the entities that these updates may have written.
pub(super) fn attempted(names: &ProgramNames, updates: &[Update]) -> SwitchContent {
    let mut content = SwitchContent::default();
    for update in updates {
        if let Update::Insert(entity) | Update::Modify(entity) = update
            && let Ok(entity) = names.encode(entity)
        {
            content.put(entity);
        }
    }
    content
}
