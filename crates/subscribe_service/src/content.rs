//! What a switch holds for rules, to be compared with what it should hold.

use std::collections::BTreeMap;

use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::packet_replication_engine_entry::Type as Replication;
use p4runtime_proto::v1::replica::PortKind;
use p4runtime_proto::v1::table_action::Type as ActionType;
use p4runtime_proto::v1::update::Type;
use p4runtime_proto::v1::{self, Entity, Update};
use prost::Message;

/// Which entity it is, as bytes.
type Key = Vec<u8>;

/// Entities by what tells them apart. What is said of them is as this service writes it: fields and parameters by id,
/// ports as numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Content(BTreeMap<Key, Entity>);

impl Content {
    /// Notes an entity that a switch or the compiler tells of; others than tables' entries, groups and sessions are passed
    /// over.
    pub fn put(&mut self, entity: Entity) {
        if let Some((key, entity)) = canonical(entity) {
            self.0.insert(key, entity);
        }
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in no order that means anything.
    pub fn entities(&self) -> impl Iterator<Item = &Entity> {
        self.0.values()
    }

    /// Those that another content does not have, or has otherwise.
    pub fn strange_to<'a>(&'a self, other: &'a Content) -> impl Iterator<Item = &'a Entity> {
        self.0.iter().filter(|(key, entity)| other.0.get(*key) != Some(*entity)).map(|(_, entity)| entity)
    }

    /// Whether an entity is not there just like this.
    pub fn strange(&self, entity: &Entity) -> bool {
        canonical(entity.clone()).is_none_or(|(key, entity)| self.0.get(&key) != Some(&entity))
    }

    /// Whether there is one with this entity's key.
    pub fn has_key_of(&self, entity: &Entity) -> bool {
        canonical(entity.clone()).is_some_and(|(key, _)| self.0.contains_key(&key))
    }

    /// What takes a switch with this content to another: deletions, then modifications, then insertions.
    pub fn to(&self, wanted: &Content) -> Vec<Update> {
        let gone = self.0.iter().filter(|(key, _)| !wanted.0.contains_key(*key));
        let other = wanted.0.iter().filter(|(key, entity)| self.0.get(*key).is_some_and(|known| known != *entity));
        let new = wanted.0.iter().filter(|(key, _)| !self.0.contains_key(*key));
        let gone = gone.map(|(_, entity)| update(Type::Delete, entity.clone()));
        let other = other.map(|(_, entity)| update(Type::Modify, entity.clone()));
        gone.chain(other).chain(new.map(|(_, entity)| update(Type::Insert, entity.clone()))).collect()
    }
}

/// An update.
pub(crate) fn update(kind: Type, entity: Entity) -> Update {
    Update { r#type: kind.into(), entity: Some(entity) }
}

/// An entity without what may be said in several ways, and its key.
fn canonical(entity: Entity) -> Option<(Key, Entity)> {
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
            let of = |of: Replication| {
                Kind::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry { r#type: Some(of) })
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
                    (of(Replication::MulticastGroupEntry(key)), of(Replication::MulticastGroupEntry(group)))
                }
                Replication::CloneSessionEntry(session) => {
                    let key = v1::CloneSessionEntry { session_id: session.session_id, ..Default::default() };
                    let session = v1::CloneSessionEntry { replicas: replicas(session.replicas), ..session };
                    (of(Replication::CloneSessionEntry(key)), of(Replication::CloneSessionEntry(session)))
                }
            }
        }
        _ => return None,
    };
    Some((Entity { entity: Some(key) }.encode_to_vec(), Entity { entity: Some(kind) }))
}

#[allow(deprecated, reason = "switches of P4Runtime before 1.4 know no other")]
fn replicas(mut of: Vec<v1::Replica>) -> Vec<v1::Replica> {
    for replica in &mut of {
        if let Some(PortKind::Port(bytes)) = &replica.port_kind {
            let port = bytes.iter().fold(0u32, |port, byte| port << 8 | u32::from(*byte));
            replica.port_kind = Some(PortKind::EgressPort(port));
        }
    }
    of.sort_by_key(|replica| match replica.port_kind {
        Some(PortKind::EgressPort(port)) => (port, replica.instance),
        _ => (0, replica.instance),
    });
    of
}
