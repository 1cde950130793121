//! Where in the mirror something stands, and what writes it again.

use p4runtime_proto::prost::Message;
use p4runtime_proto::v1;
use v1::entity::Entity;
use v1::packet_replication_engine_entry::Type as Replication;
use v1::update::Type;

use crate::keep::PipelineChanges;
use crate::key::EntryKey;
use crate::mirror::{Change, Mirror, ProfileKey, decode};

/// A place in the mirror. The order is one in which each finds what it refers to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Member(ProfileKey),
    Group(ProfileKey),
    Multicast(u32),
    Clone(u32),
    Entry(u32, EntryKey),
    Default(u32),
    ValueSet(u32),
    Digest(u32),
    /// One meter of an array, behind all of them.
    Meter(u32, Option<u64>),
}

impl Place {
    /// What a change of this mirror changes, as far as that is something that is kept.
    pub(crate) fn of(change: &Change, mirror: &Mirror) -> Vec<Place> {
        vec![match change {
            Change::Nothing => return Vec::new(),
            Change::PutMeter { meter, index: None, .. } => {
                let single = mirror.single_meters(*meter).map(|index| Place::Meter(*meter, Some(index)));
                return single.chain([Place::Meter(*meter, None)]).collect();
            }
            Change::PutMeter { meter, index, .. } => Place::Meter(*meter, *index),
            Change::PutEntry { table, key, .. }
            | Change::DropEntry { table, key }
            | Change::EntryMeter { table, key, .. } => Place::Entry(*table, key.clone()),
            Change::PutDefault { table, .. } => Place::Default(*table),
            Change::PutMember(key, _) | Change::DropMember(key) => Place::Member(*key),
            Change::PutGroup(key, _) | Change::DropGroup(key) => Place::Group(*key),
            Change::PutMulticast(group) => Place::Multicast(group.multicast_group_id),
            Change::DropMulticast(id) => Place::Multicast(*id),
            Change::PutClone(session) => Place::Clone(session.session_id),
            Change::DropClone(id) => Place::Clone(*id),
            Change::PutValueSet(id, _) => Place::ValueSet(*id),
            Change::PutDigest(id, _) | Change::DropDigest(id) => Place::Digest(*id),
        }]
    }

    /// As bytes that are in the same order.
    fn key(&self) -> Vec<u8> {
        let key = |kind: u8, ids: &[u32], rest: &[u8]| {
            let ids = ids.iter().flat_map(|id| id.to_be_bytes());
            std::iter::once(kind).chain(ids).chain(rest.iter().copied()).collect()
        };
        match self {
            Place::Member((profile, id)) => key(1, &[*profile, *id], &[]),
            Place::Group((profile, id)) => key(2, &[*profile, *id], &[]),
            Place::Multicast(id) => key(3, &[*id], &[]),
            Place::Clone(id) => key(4, &[*id], &[]),
            Place::Entry(table, entry) => key(5, &[*table], entry),
            Place::Default(table) => key(6, &[*table], &[]),
            Place::ValueSet(id) => key(7, &[*id], &[]),
            Place::Digest(id) => key(8, &[*id], &[]),
            Place::Meter(id, None) => key(9, &[*id], &[]),
            Place::Meter(id, Some(index)) => key(9, &[*id], &index.to_be_bytes()),
        }
    }
}

impl Mirror {
    /// What writes again what stands there, if anything stands there that somebody wrote.
    fn update_at(&self, place: &Place) -> Option<v1::Update> {
        let (kind, entity) = match place {
            Place::Member(key) => {
                let (action_profile_id, member_id) = *key;
                let action = Some((**self.members.get(key)?).clone());
                let member = v1::ActionProfileMember { action_profile_id, member_id, action };
                (Type::Insert, Entity::ActionProfileMember(member))
            }
            Place::Group(key) => (Type::Insert, Entity::ActionProfileGroup((**self.groups.get(key)?).clone())),
            Place::Multicast(id) => replicated(Replication::MulticastGroupEntry((**self.multicast.get(id)?).clone())),
            Place::Clone(id) => replicated(Replication::CloneSessionEntry((**self.clones.get(id)?).clone())),
            Place::Entry(table, key) => {
                let entry = decode(self.tables.get(table)?.get(key)?);
                (Type::Insert, Entity::TableEntry((!entry.is_const).then_some(entry)?))
            }
            Place::Default(table) => {
                let entry = self.defaults.get(table).filter(|entry| self.initial.get(table) != Some(entry))?;
                (Type::Modify, Entity::TableEntry(entry.clone()))
            }
            Place::ValueSet(id) => {
                let members = self.value_sets.get(id)?.clone();
                (Type::Modify, Entity::ValueSetEntry(v1::ValueSetEntry { value_set_id: *id, members }))
            }
            Place::Digest(id) => {
                let config = Some(*self.digests.get(id)?);
                (Type::Insert, Entity::DigestEntry(v1::DigestEntry { digest_id: *id, config }))
            }
            Place::Meter(meter_id, index) => {
                let config = *self.meters.get(&(*meter_id, *index))?;
                let (meter_id, index) = (*meter_id, index.map(|index| v1::Index { index: index as i64 }));
                (Type::Modify, Entity::MeterEntry(v1::MeterEntry { meter_id, index, config, counter_data: None }))
            }
        };
        Some(v1::Update { r#type: kind.into(), entity: Some(v1::Entity { entity: Some(entity) }) })
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        let members = self.members.iter().map(|(key, _)| Place::Member(*key));
        let groups = self.groups.iter().map(|(key, _)| Place::Group(*key));
        let multicast = self.multicast.iter().map(|(id, _)| Place::Multicast(*id));
        let clones = self.clones.iter().map(|(id, _)| Place::Clone(*id));
        let entries = self.tables.iter();
        let entries =
            entries.flat_map(|(table, entries)| entries.iter().map(|(key, _)| Place::Entry(*table, key.clone())));
        (members.chain(groups).chain(multicast).chain(clones))
            .chain(entries)
            .chain(self.defaults.keys().map(|table| Place::Default(*table)))
            .chain(self.value_sets.keys().map(|id| Place::ValueSet(*id)))
            .chain(self.digests.keys().map(|id| Place::Digest(*id)))
            .chain(self.meters.iter().map(|((id, index), _)| Place::Meter(*id, *index)))
    }

    /// All that was written, as updates that write it again, in an order in which each finds what it refers to.
    pub(crate) fn replay(&self) -> Vec<v1::Update> {
        self.places().filter_map(|place| self.update_at(&place)).collect()
    }

    /// What is to be kept of what stands at these places now.
    pub(crate) fn changes(&self, places: Vec<Place>) -> PipelineChanges {
        let value = |place: &Place| self.update_at(place).map(|update| update.encode_to_vec());
        let values = places.iter().map(|place| (place.key(), value(place))).collect();
        PipelineChanges { pipeline: None, values }
    }

    /// What is to be kept of everything.
    pub(crate) fn all(&self, config: &v1::ForwardingPipelineConfig) -> PipelineChanges {
        let value = |place: Place| Some((place.key(), Some(self.update_at(&place)?.encode_to_vec())));
        let values = self.places().filter_map(value).collect();
        PipelineChanges { pipeline: Some(Some(config.encode_to_vec())), values }
    }
}

fn replicated(entry: Replication) -> (Type, Entity) {
    let entry = v1::PacketReplicationEngineEntry { r#type: Some(entry) };
    (Type::Insert, Entity::PacketReplicationEngineEntry(entry))
}
