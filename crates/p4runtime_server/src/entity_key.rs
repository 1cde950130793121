//! Defines keys of the shadow's entities, and finds the updates that write an entity again.

use std::collections::BTreeMap;

use p4runtime_proto::prost::Message;
use p4runtime_proto::v1;
use v1::entity::Entity;
use v1::packet_replication_engine_entry::Type as Replication;
use v1::update::Type;

use crate::key::EntryKey;
use crate::schema::{FieldSchema, Schema, ValueEncoding};
use crate::shadow::{ProfileKey, ShadowChange, ShadowState, decode};
use crate::store::PipelineChanges;
use crate::translate::parse_key;

/// The key of an entity in the shadow. In this order, each entity comes after those that it refers to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EntityKey {
    Member(ProfileKey),
    Group(ProfileKey),
    Multicast(u32),
    Clone(u32),
    Entry(u32, EntryKey),
    Default(u32),
    ValueSet(u32),
    Digest(u32),
    /// One meter of an array, or with `None` all of them. Single meters come after all.
    Meter(u32, Option<u64>),
}

impl EntityKey {
    /// Returns the keys of the persistent entities that a change of this shadow affects.
    pub(crate) fn of(change: &ShadowChange, shadow: &ShadowState) -> Vec<EntityKey> {
        vec![match change {
            ShadowChange::Nothing => return Vec::new(),
            ShadowChange::PutMeter { meter, index: None, .. } => {
                let single = shadow.single_meters(*meter).map(|index| EntityKey::Meter(*meter, Some(index)));
                return single.chain([EntityKey::Meter(*meter, None)]).collect();
            }
            ShadowChange::PutMeter { meter, index, .. } => EntityKey::Meter(*meter, *index),
            ShadowChange::PutEntry { table, key, .. }
            | ShadowChange::DropEntry { table, key }
            | ShadowChange::EntryMeter { table, key, .. } => EntityKey::Entry(*table, key.clone()),
            ShadowChange::PutDefault { table, .. } => EntityKey::Default(*table),
            ShadowChange::PutMember(key, _) | ShadowChange::DropMember(key) => EntityKey::Member(*key),
            ShadowChange::PutGroup(key, _) | ShadowChange::DropGroup(key) => EntityKey::Group(*key),
            ShadowChange::PutMulticast(group) => EntityKey::Multicast(group.multicast_group_id),
            ShadowChange::DropMulticast(id) => EntityKey::Multicast(*id),
            ShadowChange::PutClone(session) => EntityKey::Clone(session.session_id),
            ShadowChange::DropClone(id) => EntityKey::Clone(*id),
            ShadowChange::PutValueSet(id, _) => EntityKey::ValueSet(*id),
            ShadowChange::PutDigest(id, _) | ShadowChange::DropDigest(id) => EntityKey::Digest(*id),
        }]
    }

    /// Encodes the key as bytes that sort in the same order.
    pub(crate) fn key(&self) -> Vec<u8> {
        let key = |kind: u8, ids: &[u32], rest: &[u8]| {
            let ids = ids.iter().flat_map(|id| id.to_be_bytes());
            std::iter::once(kind).chain(ids).chain(rest.iter().copied()).collect()
        };
        match self {
            EntityKey::Member((profile, id)) => key(1, &[*profile, *id], &[]),
            EntityKey::Group((profile, id)) => key(2, &[*profile, *id], &[]),
            EntityKey::Multicast(id) => key(3, &[*id], &[]),
            EntityKey::Clone(id) => key(4, &[*id], &[]),
            EntityKey::Entry(table, entry) => key(5, &[*table], entry),
            EntityKey::Default(table) => key(6, &[*table], &[]),
            EntityKey::ValueSet(id) => key(7, &[*id], &[]),
            EntityKey::Digest(id) => key(8, &[*id], &[]),
            EntityKey::Meter(id, None) => key(9, &[*id], &[]),
            EntityKey::Meter(id, Some(index)) => key(9, &[*id], &index.to_be_bytes()),
        }
    }
}

/// Whether keys of a table have values of translated types.
pub(crate) fn has_translated_key(schema: &Schema, table: u32) -> bool {
    let is_translated = |field: &FieldSchema| matches!(field.sdn, ValueEncoding::Translated(_));
    schema.tables.get(&table).is_some_and(|table| table.fields.iter().any(is_translated))
}

/// Returns the changes that move rows from their old keys to their new ones. Each is an old key, a new key and a row.
pub(crate) fn moved_rows(moved: Vec<(Vec<u8>, Vec<u8>, Vec<u8>)>) -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
    // A new key of one row may be the old key of another.
    let mut changes: BTreeMap<_, _> = moved.iter().map(|(old, ..)| (old.clone(), None)).collect();
    changes.extend(moved.into_iter().map(|(_, new, row)| (new, Some(row))));
    changes
}

impl EntityKey {
    /// Whether a stored update is of the entity with this key. Of an entry that does not fit the program, or whose key
    /// has numbers of translated strings, only the table is compared.
    pub(crate) fn is_of(schema: &Schema, update: &v1::Update, key: &[u8]) -> bool {
        let Some(entity) = update.entity.as_ref().and_then(|entity| entity.entity.as_ref()) else { return false };
        let of = match entity {
            Entity::ActionProfileMember(member) => EntityKey::Member((member.action_profile_id, member.member_id)),
            Entity::ActionProfileGroup(group) => EntityKey::Group((group.action_profile_id, group.group_id)),
            Entity::PacketReplicationEngineEntry(entry) => match &entry.r#type {
                Some(Replication::MulticastGroupEntry(group)) => EntityKey::Multicast(group.multicast_group_id),
                Some(Replication::CloneSessionEntry(session)) => EntityKey::Clone(session.session_id),
                None => return false,
            },
            Entity::TableEntry(entry) if entry.is_default_action => EntityKey::Default(entry.table_id),
            Entity::TableEntry(entry) => {
                let parsed = schema.tables.get(&entry.table_id).and_then(|table| parse_key(table, entry).ok());
                let of_table = EntityKey::Entry(entry.table_id, EntryKey::from(&[][..])).key();
                return match parsed {
                    Some(parsed) if !has_translated_key(schema, entry.table_id) => {
                        EntityKey::Entry(entry.table_id, parsed.bytes).key() == key
                    }
                    _ => key.starts_with(&of_table),
                };
            }
            Entity::ValueSetEntry(entry) => EntityKey::ValueSet(entry.value_set_id),
            Entity::DigestEntry(entry) => EntityKey::Digest(entry.digest_id),
            Entity::MeterEntry(entry) => EntityKey::Meter(entry.meter_id, entry.index.map(|index| index.index as u64)),
            _ => return false,
        };
        of.key() == key
    }

    /// Returns the key that a stored entry has now, if its key has numbers of translated strings. They are assigned
    /// anew at each start. `None` for any other entity.
    pub(crate) fn renumbered(schema: &Schema, update: &v1::Update) -> Option<Vec<u8>> {
        let Some(Entity::TableEntry(entry)) = update.entity.as_ref()?.entity.as_ref() else { return None };
        if entry.is_default_action || !has_translated_key(schema, entry.table_id) {
            return None;
        }
        let parsed = parse_key(schema.tables.get(&entry.table_id)?, entry).ok()?;
        Some(EntityKey::Entry(entry.table_id, parsed.bytes).key())
    }

    /// Returns the name of a stored entity by its key, for people.
    pub(crate) fn describe(schema: &Schema, key: &[u8]) -> String {
        /// Maximum number of bytes of a key that are shown.
        const SHOWN: usize = 32;
        let hex = |bytes: &[u8]| {
            let more = if bytes.len() > SHOWN { "..." } else { "" };
            bytes.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect::<String>() + more
        };
        let number =
            |at: usize| key.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes);
        let name = |id: u32| {
            let object = schema.objects().find(|(other, _)| *other == id);
            object.map_or_else(|| format!("{id:#010x}"), |(_, name)| format!("`{name}`"))
        };
        match key.first() {
            Some(1) => format!("member {} of action profile {}", number(5), name(number(1))),
            Some(2) => format!("group {} of action profile {}", number(5), name(number(1))),
            Some(3) => format!("multicast group {}", number(1)),
            Some(4) => format!("clone session {}", number(1)),
            Some(5) => format!("table {}, entry {}", name(number(1)), hex(key.get(5..).unwrap_or_default())),
            Some(6) => format!("default entry of table {}", name(number(1))),
            Some(7) => format!("value set {}", name(number(1))),
            Some(8) => format!("digest {}", name(number(1))),
            Some(9) => format!("meter {}", name(number(1))),
            _ => format!("row {}", hex(key)),
        }
    }
}

impl ShadowState {
    /// Returns the update that writes the entity again, or `None` if nobody wrote it.
    fn update_at(&self, key_of: &EntityKey) -> Option<v1::Update> {
        let (kind, entity) = match key_of {
            EntityKey::Member(key) => {
                let (action_profile_id, member_id) = *key;
                let action = Some((**self.members.get(key)?).clone());
                let member = v1::ActionProfileMember { action_profile_id, member_id, action };
                (Type::Insert, Entity::ActionProfileMember(member))
            }
            EntityKey::Group(key) => (Type::Insert, Entity::ActionProfileGroup((**self.groups.get(key)?).clone())),
            EntityKey::Multicast(id) => {
                replicated(Replication::MulticastGroupEntry((**self.multicast.get(id)?).clone()))
            }
            EntityKey::Clone(id) => replicated(Replication::CloneSessionEntry((**self.clones.get(id)?).clone())),
            EntityKey::Entry(table, key) => {
                let entry = decode(self.tables.get(table)?.get(key)?);
                (Type::Insert, Entity::TableEntry((!entry.is_const).then_some(entry)?))
            }
            EntityKey::Default(table) => {
                let entry = self.defaults.get(table).filter(|entry| self.initial.get(table) != Some(entry))?;
                (Type::Modify, Entity::TableEntry(entry.clone()))
            }
            EntityKey::ValueSet(id) => {
                let members = self.value_sets.get(id)?.clone();
                (Type::Modify, Entity::ValueSetEntry(v1::ValueSetEntry { value_set_id: *id, members }))
            }
            EntityKey::Digest(id) => {
                let config = Some(*self.digests.get(id)?);
                (Type::Insert, Entity::DigestEntry(v1::DigestEntry { digest_id: *id, config }))
            }
            EntityKey::Meter(meter_id, index) => {
                let config = *self.meters.get(&(*meter_id, *index))?;
                let (meter_id, index) = (*meter_id, index.map(|index| v1::Index { index: index as i64 }));
                (Type::Modify, Entity::MeterEntry(v1::MeterEntry { meter_id, index, config, counter_data: None }))
            }
        };
        Some(v1::Update { r#type: kind.into(), entity: Some(v1::Entity { entity: Some(entity) }) })
    }

    fn keys(&self) -> impl Iterator<Item = EntityKey> {
        let members = self.members.iter().map(|(key, _)| EntityKey::Member(*key));
        let groups = self.groups.iter().map(|(key, _)| EntityKey::Group(*key));
        let multicast = self.multicast.iter().map(|(id, _)| EntityKey::Multicast(*id));
        let clones = self.clones.iter().map(|(id, _)| EntityKey::Clone(*id));
        let entries = self.tables.iter();
        let entries =
            entries.flat_map(|(table, entries)| entries.iter().map(|(key, _)| EntityKey::Entry(*table, key.into())));
        (members.chain(groups).chain(multicast).chain(clones))
            .chain(entries)
            .chain(self.defaults.keys().map(|table| EntityKey::Default(*table)))
            .chain(self.value_sets.keys().map(|id| EntityKey::ValueSet(*id)))
            .chain(self.digests.keys().map(|id| EntityKey::Digest(*id)))
            .chain(self.meters.iter().map(|((id, index), _)| EntityKey::Meter(*id, *index)))
    }

    /// Returns the updates that write the shadow's contents again, in an order in which each finds what it refers to.
    pub(crate) fn replay(&self) -> Vec<v1::Update> {
        self.keys().filter_map(|key_of| self.update_at(&key_of)).collect()
    }

    /// Returns the stored values of these keys as they are now.
    pub(crate) fn changes(&self, keys: Vec<EntityKey>) -> PipelineChanges {
        let value = |key_of: &EntityKey| self.update_at(key_of).map(|update| update.encode_to_vec());
        let values = keys.iter().map(|key_of| (key_of.key(), value(key_of))).collect();
        PipelineChanges { values, ..PipelineChanges::default() }
    }

    /// Returns the stored values of the pipeline and of every entity.
    pub(crate) fn all(&self, config: &v1::ForwardingPipelineConfig) -> PipelineChanges {
        let value = |key_of: EntityKey| Some((key_of.key(), Some(self.update_at(&key_of)?.encode_to_vec())));
        let values = self.keys().filter_map(value).collect();
        PipelineChanges { pipeline: Some(Some(config.encode_to_vec())), values, ..PipelineChanges::default() }
    }
}

fn replicated(entry: Replication) -> (Type, Entity) {
    let entry = v1::PacketReplicationEngineEntry { r#type: Some(entry) };
    (Type::Insert, Entity::PacketReplicationEngineEntry(entry))
}

#[cfg(test)]
mod tests {
    use super::moved_rows;

    #[test]
    fn rows_that_exchange_their_keys_or_follow_each_other_are_all_kept() {
        let key = |name: &str| name.as_bytes().to_vec();
        let moved = |moves: &[[&str; 3]]| moved_rows(moves.iter().map(|row| row.map(key).into()).collect());
        let exchanged = [(key("a"), Some(key("2"))), (key("b"), Some(key("1")))];
        assert_eq!(moved(&[["a", "b", "1"], ["b", "a", "2"]]), exchanged.into());
        let followed = [(key("a"), None), (key("b"), Some(key("1"))), (key("c"), Some(key("2")))];
        assert_eq!(moved(&[["a", "b", "1"], ["b", "c", "2"]]), followed.clone().into());
        assert_eq!(moved(&[["b", "c", "2"], ["a", "b", "1"]]), followed.into());
    }
}
