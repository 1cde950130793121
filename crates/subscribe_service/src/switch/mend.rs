//! The way of a switch that takes writes one after the other from what it holds to what it is to hold, where it holds states of the
//! same numbers: each message meets the old rules or the new ones, as on the way of a change.

use std::collections::BTreeSet;

use p4runtime_proto::v1;
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::update::Type;
use subscribe_p4::entries::{Entity, Steps, Update};

use crate::content::Content;
use crate::names::Names;

/// States that entries are for. All of them, or nothing if one is of none that this service would write.
fn states<'a>(names: &Names, entities: impl Iterator<Item = &'a v1::Entity>) -> Option<BTreeSet<u32>> {
    let mut states = BTreeSet::new();
    for entity in entities.filter(|entity| matches!(entity.entity, Some(Kind::TableEntry(_)))) {
        states.extend(subscribe_p4::state(&names.decode(entity)?));
    }
    Some(states)
}

/// The steps from `there` to `wanted`. Nothing if `there` holds what is neither of `wanted` nor of `tried`, which is what a change
/// that was not made may have left: then its numbers may mean anything.
pub(super) fn steps(names: &Names, there: &Content, wanted: &Content, tried: &Content) -> Option<Steps> {
    let (held, due) = (states(names, there.entities())?, states(names, wanted.entities())?);
    for strange in there.strange_to(wanted).filter(|entity| tried.strange(entity)) {
        let is_due = match names.decode(strange)? {
            // Entries of other states go, and nothing that stays leads to them.
            entity @ Entity::Table(_) => subscribe_p4::state(&entity).is_none_or(|state| due.contains(&state)),
            Entity::Group(..) | Entity::Session(..) => wanted.has_key_of(strange),
        };
        if is_due {
            return None;
        }
    }
    let mut updates = Vec::new();
    for update in there.to(wanted) {
        let entity = names.decode(update.entity.as_ref()?)?;
        updates.push(match Type::try_from(update.r#type) {
            Ok(Type::Insert) => Update::Insert(entity),
            Ok(Type::Modify) => Update::Modify(entity),
            _ => Update::Delete(entity),
        });
    }
    Some(subscribe_p4::mend(updates, |state| held.contains(&state) && due.contains(&state)))
}

/// What updates may have left.
pub(super) fn left(names: &Names, updates: &[Update]) -> Content {
    let mut content = Content::default();
    for update in updates {
        if let Update::Insert(entity) | Update::Modify(entity) = update
            && let Ok(entity) = names.encode(entity)
        {
            content.put(entity);
        }
    }
    content
}
