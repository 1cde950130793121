//! Checks restrictions and references that a program declares for entries, beyond their format.
//!
//! Restrictions are checked when an update is translated, on the controller's values. References depend on what is
//! installed, so they are checked for each update when its batch runs.

use p4_constraints::{EntityReferences, ReferenceEntity, References};
use p4runtime_proto::v1;

use crate::schema::Schema;
use crate::shadow::{ShadowChange, ShadowState, decode};
use crate::status::{Code, Refusal};

/// Checks an update against the program's restrictions.
///
/// # Errors
/// `INVALID_ARGUMENT`, with the clause that does not hold and the values it saw.
pub(crate) fn check(schema: &Schema, change: &ShadowChange) -> Result<(), Refusal> {
    if schema.checker.is_empty() {
        return Ok(());
    }
    let checked = match change {
        ShadowChange::PutEntry { entry, .. } | ShadowChange::PutDefault { entry: Some(entry), .. } => {
            schema.checker.check_entry(entry)
        }
        ShadowChange::PutMember(_, action) => schema.checker.check_action(action),
        _ => Ok(()),
    };
    checked.map_err(|violation| Refusal::invalid(violation.to_string()))
}

/// The references of a key before an update, for undoing it.
#[derive(Debug)]
pub(crate) struct ReplacedReferences {
    key: Vec<u8>,
    entity_references: Option<EntityReferences>,
}

/// Returns the references of the shadow's contents.
pub(crate) fn references(schema: &Schema, shadow: &ShadowState) -> References {
    let mut references = schema.references.clone();
    if references.is_empty() {
        return references;
    }
    let mut put = |key: Vec<u8>, item: ReferenceEntity<'_>| {
        let entity_references = schema.references.entity_references(item);
        references.force(&key, Some(entity_references));
    };
    for (table, entries) in &shadow.tables {
        for (key, entry) in entries.iter() {
            put(entry_name(*table, key), ReferenceEntity::Entry(&decode(entry)));
        }
    }
    for (table, entry) in &shadow.defaults {
        put(name(b'd', [*table, 0]), ReferenceEntity::Entry(entry));
    }
    for ((profile, member), action) in shadow.members.iter() {
        let action = Some((**action).clone());
        put(
            name(b'm', [*profile, *member]),
            ReferenceEntity::Member(&v1::ActionProfileMember { action, ..Default::default() }),
        );
    }
    for (id, _) in shadow.multicast.iter() {
        put(name(b'g', [*id, 0]), ReferenceEntity::MulticastGroup(*id));
    }
    references
}

/// Records the references of an update that is about to run. Returns `None` if it has nothing to do with references.
///
/// # Errors
/// `NOT_FOUND` if it refers to an entity that does not exist, `FAILED_PRECONDITION` if it removes one that is
/// referred to.
pub(crate) fn replace(
    references: &mut References,
    change: &ShadowChange,
) -> Result<Option<ReplacedReferences>, Refusal> {
    if references.is_empty() {
        return Ok(None);
    }
    let (key, entity_references) = match change {
        ShadowChange::PutEntry { table, key, entry } => {
            (entry_name(*table, key), Some(references.entity_references(ReferenceEntity::Entry(entry))))
        }
        ShadowChange::DropEntry { table, key } => (entry_name(*table, key), None),
        ShadowChange::PutDefault { table, entry } => {
            let entity_references =
                entry.as_ref().map(|entry| references.entity_references(ReferenceEntity::Entry(entry)));
            (name(b'd', [*table, 0]), entity_references)
        }
        ShadowChange::PutMember((profile, member), action) => {
            let action = Some((**action).clone());
            let item = v1::ActionProfileMember { action, ..Default::default() };
            (name(b'm', [*profile, *member]), Some(references.entity_references(ReferenceEntity::Member(&item))))
        }
        ShadowChange::DropMember((profile, member)) => (name(b'm', [*profile, *member]), None),
        ShadowChange::PutMulticast(group) => {
            let id = group.multicast_group_id;
            (name(b'g', [id, 0]), Some(references.entity_references(ReferenceEntity::MulticastGroup(id))))
        }
        ShadowChange::DropMulticast(id) => (name(b'g', [*id, 0]), None),
        _ => return Ok(None),
    };
    match references.replace(&key, entity_references) {
        Ok(entity_references) => Ok(Some(ReplacedReferences { key, entity_references })),
        Err(broken) => {
            let code = match broken {
                p4_constraints::ReferenceError::Missing { .. } => Code::NotFound,
                p4_constraints::ReferenceError::InUse { .. } => Code::FailedPrecondition,
            };
            Err(Refusal::new(code, broken.to_string()))
        }
    }
}

/// Reverts [`replace`].
pub(crate) fn restore(references: &mut References, before: Option<ReplacedReferences>) {
    if let Some(ReplacedReferences { key, entity_references }) = before {
        references.force(&key, entity_references);
    }
}

fn entry_name(table: u32, key: &[u8]) -> Vec<u8> {
    let mut out = vec![b'e'];
    out.extend(table.to_be_bytes());
    out.extend(key);
    out
}

fn name(kind: u8, ids: [u32; 2]) -> Vec<u8> {
    let mut out = vec![kind];
    ids.iter().for_each(|id| out.extend(id.to_be_bytes()));
    out
}
