//! Represents the forwarding state of a switch in a form that can be compared with the state that it should have.

use std::collections::BTreeMap;

use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::packet_replication_engine_entry::Type as Replication;
use p4runtime_proto::v1::replica::PortKind;
use p4runtime_proto::v1::table_action::Type as ActionType;
use p4runtime_proto::v1::update::Type;
use p4runtime_proto::v1::{self, Entity, Update};
use prost::Message;

/// The key fields of an entity, as bytes.
type EntityKey = Vec<u8>;

/// Entities by their keys, in the form in which this service writes them: fields and parameters in ascending order of
/// their ids, ports as numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SwitchContent(BTreeMap<EntityKey, Entity>);

impl SwitchContent {
    /// Adds a table entry, a multicast group or a clone session. Other entities are ignored.
    pub fn put(&mut self, entity: Entity) {
        if let Some((key, entity)) = canonical(entity) {
            self.0.insert(key, entity);
        }
    }

    /// Removes the multicast groups and clone sessions with other numbers than these.
    pub fn retain_replication(&mut self, is_group: impl Fn(u32) -> bool, is_session: impl Fn(u32) -> bool) {
        self.0.retain(|_, entity| match &entity.entity {
            Some(Kind::PacketReplicationEngineEntry(entry)) => match &entry.r#type {
                Some(Replication::MulticastGroupEntry(group)) => is_group(group.multicast_group_id),
                Some(Replication::CloneSessionEntry(session)) => is_session(session.session_id),
                None => false,
            },
            _ => true,
        });
    }

    /// Returns the number of entities.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no entities.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all entities, in no particular order.
    pub fn entities(&self) -> impl Iterator<Item = &Entity> {
        self.0.values()
    }

    /// Returns the entities that `other` does not have, or has with other values.
    pub fn difference<'a>(&'a self, other: &'a SwitchContent) -> impl Iterator<Item = &'a Entity> {
        self.0.iter().filter(|(key, entity)| other.0.get(*key) != Some(*entity)).map(|(_, entity)| entity)
    }

    /// Whether this content lacks an entity, or has it with other values.
    pub fn lacks(&self, entity: &Entity) -> bool {
        canonical(entity.clone()).is_none_or(|(key, entity)| self.0.get(&key) != Some(&entity))
    }

    /// Whether there is an entity with the same key.
    pub fn has_key_of(&self, entity: &Entity) -> bool {
        canonical(entity.clone()).is_some_and(|(key, _)| self.0.contains_key(&key))
    }

    /// Returns the updates from this content to another: deletions, then modifications, then insertions.
    pub fn updates_to(&self, wanted: &SwitchContent) -> Vec<Update> {
        let removed = self.0.iter().filter(|(key, _)| !wanted.0.contains_key(*key));
        let changed = wanted.0.iter().filter(|(key, entity)| self.0.get(*key).is_some_and(|known| known != *entity));
        let added = wanted.0.iter().filter(|(key, _)| !self.0.contains_key(*key));
        let removed = removed.map(|(_, entity)| update(Type::Delete, entity.clone()));
        let changed = changed.map(|(_, entity)| update(Type::Modify, entity.clone()));
        let added = added.map(|(_, entity)| update(Type::Insert, entity.clone()));
        removed.chain(changed).chain(added).collect()
    }
}

/// Builds an update.
pub(crate) fn update(kind: Type, entity: Entity) -> Update {
    Update { r#type: kind.into(), entity: Some(entity) }
}

/// Brings an entity to the one form of several with the same meaning, and returns it with its key.
fn canonical(entity: Entity) -> Option<(EntityKey, Entity)> {
    let (key, kind) = match entity.entity? {
        Kind::TableEntry(mut entry) => {
            entry.r#match.sort_by_key(|field| field.field_id);
            let v1::TableEntry { table_id, r#match, priority, action, .. } = entry;
            let key = v1::TableEntry { table_id, r#match, priority, ..Default::default() };
            let action = action.map(|mut action| {
                if let Some(ActionType::Action(action)) = &mut action.r#type {
                    action.params.sort_by_key(|param| param.param_id);
                }
                action
            });
            let entry = v1::TableEntry { action, ..key.clone() };
            (Kind::TableEntry(key), Kind::TableEntry(entry))
        }
        Kind::PacketReplicationEngineEntry(entry) => {
            let replication = |kind: Replication| {
                Kind::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry { r#type: Some(kind) })
            };
            match entry.r#type? {
                Replication::MulticastGroupEntry(group) => {
                    let multicast_group_id = group.multicast_group_id;
                    let group = v1::MulticastGroupEntry {
                        multicast_group_id,
                        replicas: replicas(group.replicas),
                        ..Default::default()
                    };
                    let key = v1::MulticastGroupEntry { multicast_group_id, ..Default::default() };
                    (
                        replication(Replication::MulticastGroupEntry(key)),
                        replication(Replication::MulticastGroupEntry(group)),
                    )
                }
                Replication::CloneSessionEntry(session) => {
                    let key = v1::CloneSessionEntry { session_id: session.session_id, ..Default::default() };
                    let session = v1::CloneSessionEntry { replicas: replicas(session.replicas), ..session };
                    (
                        replication(Replication::CloneSessionEntry(key)),
                        replication(Replication::CloneSessionEntry(session)),
                    )
                }
            }
        }
        _ => return None,
    };
    Some((Entity { entity: Some(key) }.encode_to_vec(), Entity { entity: Some(kind) }))
}

/// Brings replicas to one form: ports as numbers, in ascending order.
#[allow(deprecated, reason = "switches of P4Runtime before 1.4 know no other")]
fn replicas(mut all: Vec<v1::Replica>) -> Vec<v1::Replica> {
    for replica in &mut all {
        if let Some(PortKind::Port(bytes)) = &replica.port_kind {
            let port = bytes.iter().fold(0u32, |port, byte| port << 8 | u32::from(*byte));
            replica.port_kind = Some(PortKind::EgressPort(port));
        }
    }
    all.sort_by_key(|replica| match replica.port_kind {
        Some(PortKind::EgressPort(port)) => (port, replica.instance),
        _ => (0, replica.instance),
    });
    all
}
