//! What a program asks of what is written, besides its form: restrictions and references.
//!
//! Restrictions are looked at when an update is translated, on the controller's side of everything. References depend on
//! what is there, and so are looked at, update by update, where a batch runs.

use p4_constraints::{EntityReferences, ReferenceEntity, References};
use p4runtime_proto::v1;

use crate::mirror::{Change, Mirror, decode};
use crate::schema::Schema;
use crate::status::{Code, Refusal};

/// Holds what an update writes against the program's restrictions.
///
/// # Errors
/// `INVALID_ARGUMENT`, with the clause that does not hold and the values it saw.
pub(crate) fn check(schema: &Schema, change: &Change) -> Result<(), Refusal> {
    if schema.checker.is_empty() {
        return Ok(());
    }
    let checked = match change {
        Change::PutEntry { entry, .. } | Change::PutDefault { entry: Some(entry), .. } => {
            schema.checker.check_entry(entry)
        }
        Change::PutMember(_, action) => schema.checker.check_action(action),
        _ => Ok(()),
    };
    checked.map_err(|violation| Refusal::invalid(violation.to_string()))
}

/// What was there under a name before an update, to be put back.
#[derive(Debug)]
pub(crate) struct Before {
    key: Vec<u8>,
    entity_references: Option<EntityReferences>,
}

/// The references of what `mirror` holds.
pub(crate) fn references(schema: &Schema, mirror: &Mirror) -> References {
    let mut references = schema.references.clone();
    if references.is_empty() {
        return references;
    }
    let mut put = |key: Vec<u8>, item: ReferenceEntity<'_>| {
        let entity_references = schema.references.entity_references(item);
        references.force(&key, Some(entity_references));
    };
    for (table, entries) in &mirror.tables {
        for (key, entry) in entries.iter() {
            put(entry_name(*table, key), ReferenceEntity::Entry(&decode(entry)));
        }
    }
    for (table, entry) in &mirror.defaults {
        put(name(b'd', [*table, 0]), ReferenceEntity::Entry(entry));
    }
    for ((profile, member), action) in mirror.members.iter() {
        let action = Some((**action).clone());
        put(
            name(b'm', [*profile, *member]),
            ReferenceEntity::Member(&v1::ActionProfileMember { action, ..Default::default() }),
        );
    }
    for (id, _) in mirror.multicast.iter() {
        put(name(b'g', [*id, 0]), ReferenceEntity::MulticastGroup(*id));
    }
    references
}

/// Takes note of an update that is about to run; `None` if it has nothing to do with references.
///
/// # Errors
/// `NOT_FOUND` if it refers to something that is not there, `FAILED_PRECONDITION` if it takes away what is referred to.
pub(crate) fn replace(references: &mut References, change: &Change) -> Result<Option<Before>, Refusal> {
    if references.is_empty() {
        return Ok(None);
    }
    let (key, entity_references) = match change {
        Change::PutEntry { table, key, entry } => {
            (entry_name(*table, key), Some(references.entity_references(ReferenceEntity::Entry(entry))))
        }
        Change::DropEntry { table, key } => (entry_name(*table, key), None),
        Change::PutDefault { table, entry } => {
            let entity_references =
                entry.as_ref().map(|entry| references.entity_references(ReferenceEntity::Entry(entry)));
            (name(b'd', [*table, 0]), entity_references)
        }
        Change::PutMember((profile, member), action) => {
            let action = Some((**action).clone());
            let item = v1::ActionProfileMember { action, ..Default::default() };
            (name(b'm', [*profile, *member]), Some(references.entity_references(ReferenceEntity::Member(&item))))
        }
        Change::DropMember((profile, member)) => (name(b'm', [*profile, *member]), None),
        Change::PutMulticast(group) => {
            let id = group.multicast_group_id;
            (name(b'g', [id, 0]), Some(references.entity_references(ReferenceEntity::MulticastGroup(id))))
        }
        Change::DropMulticast(id) => (name(b'g', [*id, 0]), None),
        _ => return Ok(None),
    };
    match references.replace(&key, entity_references) {
        Ok(entity_references) => Ok(Some(Before { key, entity_references })),
        Err(broken) => {
            let code = match broken {
                p4_constraints::ReferenceError::Missing { .. } => Code::NotFound,
                p4_constraints::ReferenceError::InUse { .. } => Code::FailedPrecondition,
            };
            Err(Refusal::new(code, broken.to_string()))
        }
    }
}

/// Takes back what [`replace`] took note of.
pub(crate) fn put_back(references: &mut References, before: Option<Before>) {
    if let Some(Before { key, entity_references }) = before {
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
