//! Keeps what clients wrote, in their own form, to answer reads from: the shadow state of the P4Runtime specification.
//!
//! Only counts, registers and times, which packets change, are read from the switch. Everything else is in the
//! shadow, so a read works on a snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use p4runtime_proto::bytestring::shortest;
use p4runtime_proto::prost::Message;
use p4runtime_proto::v1;

use crate::cow_map::CowMap;
use crate::key::EntryKey;
use crate::packed_map::PackedMap;
use crate::schema::Schema;
use crate::translate::{default_of, encode_key, entry_of, print_call, print_matches};

/// Ids of a profile and of a member or group.
pub(crate) type ProfileKey = (u32, u32);

/// The effect of a successful update on the shadow.
#[derive(Clone, Debug)]
pub(crate) enum ShadowChange {
    Nothing,
    /// The entry. Without an action it keeps its present one.
    PutEntry {
        table: u32,
        key: EntryKey,
        entry: Box<v1::TableEntry>,
    },
    DropEntry {
        table: u32,
        key: EntryKey,
    },
    EntryMeter {
        table: u32,
        key: EntryKey,
        config: Option<v1::MeterConfig>,
    },
    /// `None` restores the program's default entry.
    PutDefault {
        table: u32,
        entry: Option<Box<v1::TableEntry>>,
    },
    PutMember(ProfileKey, Box<v1::Action>),
    DropMember(ProfileKey),
    PutGroup(ProfileKey, Box<v1::ActionProfileGroup>),
    DropGroup(ProfileKey),
    PutMulticast(Box<v1::MulticastGroupEntry>),
    DropMulticast(u32),
    PutClone(Box<v1::CloneSessionEntry>),
    DropClone(u32),
    PutValueSet(u32, Vec<v1::ValueSetMember>),
    PutDigest(u32, v1::digest_entry::Config),
    DropDigest(u32),
    /// One meter of an array, or all of them.
    PutMeter {
        meter: u32,
        index: Option<u64>,
        config: Option<v1::MeterConfig>,
    },
}

/// The entries of a table. They are encoded, so that a million of them take little memory.
pub(crate) type Entries = PackedMap;

/// The contents that clients wrote. A clone is a snapshot.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShadowState {
    pub tables: BTreeMap<u32, Entries>,
    /// Default entries: the present ones, and those of the program.
    pub defaults: BTreeMap<u32, v1::TableEntry>,
    pub initial: BTreeMap<u32, v1::TableEntry>,
    pub members: CowMap<ProfileKey, Arc<v1::Action>>,
    pub groups: CowMap<ProfileKey, Arc<v1::ActionProfileGroup>>,
    pub multicast: CowMap<u32, Arc<v1::MulticastGroupEntry>>,
    pub clones: CowMap<u32, Arc<v1::CloneSessionEntry>>,
    pub value_sets: BTreeMap<u32, Vec<v1::ValueSetMember>>,
    pub digests: BTreeMap<u32, v1::digest_entry::Config>,
    /// Configs of meters: with `None` of all of an array, with an index of those that differ.
    pub meters: CowMap<(u32, Option<u64>), Option<v1::MeterConfig>>,
    /// Number of entries of each profile that have one-shot action sets.
    sets: BTreeMap<u32, usize>,
    /// The profile of each table that has one.
    profiles: BTreeMap<u32, u32>,
}

impl ShadowState {
    /// Reads the state of a switch that was just built, or has entries from a file.
    pub(crate) fn of(schema: &Schema, switch: &dyn switch::SwitchControl) -> ShadowState {
        let profiles = schema.tables.values().filter_map(|table| Some((table.id, table.profile?))).collect();
        let mut shadow = ShadowState { profiles, ..ShadowState::default() };
        for table in schema.tables.values() {
            let mut entries = Entries::default();
            for installed in switch.objects().entries(table.ir) {
                let key = encode_key(&table.fields, &installed.entry.keys, installed.entry.priority);
                let mut entry = entry_of(schema, table, &installed.entry, installed.constant);
                entry.meter_config = installed.meter_config.map(crate::translate::print_meter);
                if is_set(&entry) {
                    *shadow.sets.entry(table.profile.unwrap_or(0)).or_default() += 1;
                }
                entries.insert(&key, &entry.encode_to_vec());
            }
            shadow.tables.insert(table.id, entries);
            let entry = default_of(schema, table, switch.objects().default_action(table.ir));
            shadow.defaults.insert(table.id, entry.clone());
            let (index, args) = &schema.program.tables[table.ir].default_action;
            let action = schema.program.tables[table.ir].actions[*index as usize].action;
            let initial = engine::ActionCall { action, args: args.clone() };
            shadow.initial.insert(table.id, default_of(schema, table, &initial));
        }
        shadow.take_profiles(schema, switch);
        shadow.take_replication(switch);
        shadow.take_value_sets(schema, switch);
        shadow.take_meters(schema, switch);
        shadow
    }

    fn take_meters(&mut self, schema: &Schema, switch: &dyn switch::SwitchControl) {
        for array in schema.meters.values() {
            for index in 0..array.size {
                if let Ok(Some(config)) = switch.objects().meter_config(array.ir, index) {
                    self.meters.insert((array.id, Some(index)), Some(crate::translate::print_meter(config)));
                }
            }
        }
    }

    /// Returns the meters of an array whose configs differ from that of the whole array.
    pub(crate) fn single_meters(&self, meter: u32) -> impl Iterator<Item = u64> {
        let of = self.meters.iter().filter(move |((id, _), _)| *id == meter);
        of.filter_map(|((_, index), _)| *index)
    }

    fn take_profiles(&mut self, schema: &Schema, switch: &dyn switch::SwitchControl) {
        for profile in schema.profiles.values() {
            for (id, call) in switch.objects().members(profile.ir) {
                self.members.insert((profile.id, id), Arc::new(print_call(schema, call)));
            }
            for (id, members, max_size) in switch.objects().groups(profile.ir) {
                let member = |member: &engine::GroupMember| v1::action_profile_group::Member {
                    member_id: member.member,
                    weight: if profile.weights_disallowed { 0 } else { member.weight as i32 },
                    watch_kind: member.watch_port.map(|port| {
                        v1::action_profile_group::member::WatchKind::WatchPort(shortest(&port.to_be_bytes()))
                    }),
                };
                let group = v1::ActionProfileGroup {
                    action_profile_id: profile.id,
                    group_id: id,
                    members: members.iter().map(member).collect(),
                    max_size: max_size as i32,
                };
                self.groups.insert((profile.id, id), Arc::new(group));
            }
        }
    }

    fn take_replication(&mut self, switch: &dyn switch::SwitchControl) {
        let replica = |replica: &switch::Replica| {
            let port = |port: switch::PortId| shortest(&port.0.to_be_bytes());
            let instance = u32::from(replica.rid);
            let backup =
                |backup: &switch::Backup| v1::BackupReplica { port: port(backup.port), instance: backup.rid.into() };
            v1::Replica {
                port_kind: Some(v1::replica::PortKind::Port(port(replica.port))),
                instance,
                backup_replicas: replica.backups.iter().map(backup).collect(),
            }
        };
        for (multicast_group_id, group) in switch.multicast_groups().iter() {
            let replicas = group.replicas.iter().map(replica).collect();
            let entry = v1::MulticastGroupEntry { multicast_group_id, replicas, ..Default::default() };
            self.multicast.insert(multicast_group_id, Arc::new(entry));
        }
        // Controllers cannot write a session that also copies to a group.
        for (session_id, session) in switch.mirror_sessions().iter().filter(|(_, session)| session.group.is_none()) {
            let entry = v1::CloneSessionEntry {
                session_id,
                replicas: session.replicas.iter().map(replica).collect(),
                class_of_service: session.class_of_service.into(),
                packet_length_bytes: session.max_bytes.map_or(0, |bytes| i32::try_from(bytes).unwrap_or(i32::MAX)),
            };
            self.clones.insert(session_id, Arc::new(entry));
        }
    }

    fn take_value_sets(&mut self, schema: &Schema, switch: &dyn switch::SwitchControl) {
        for set in schema.value_sets.values() {
            let members = switch.objects().value_set(set.ir).iter();
            let member = |keys: &Vec<ir::KeyValue>| v1::ValueSetMember { r#match: print_matches(&set.fields, keys) };
            let members: Vec<_> = members.map(member).collect();
            if !members.is_empty() {
                self.value_sets.insert(set.id, members);
            }
        }
    }

    pub(crate) fn has_sets(&self, profile: u32) -> bool {
        self.sets.get(&profile).is_some_and(|count| *count > 0)
    }

    pub(crate) fn has_members(&self, profile: u32) -> bool {
        let has = |key: Option<ProfileKey>| key.is_some_and(|(of, _)| of == profile);
        has(self.members.first_from(&(profile, 0)).copied()) || has(self.groups.first_from(&(profile, 0)).copied())
    }

    pub(crate) fn group(&self, key: ProfileKey) -> Option<&v1::ActionProfileGroup> {
        self.groups.get(&key).map(|group| &**group)
    }

    pub(crate) fn digest(&self, id: u32) -> Option<&v1::digest_entry::Config> {
        self.digests.get(&id)
    }

    pub(crate) fn entry(&self, table: u32, key: &EntryKey) -> Option<v1::TableEntry> {
        Some(decode(self.tables.get(&table)?.get(key)?))
    }

    /// Applies the effect of a successful update.
    pub(crate) fn apply(&mut self, change: ShadowChange) {
        match change {
            ShadowChange::Nothing => {}
            ShadowChange::PutEntry { table, key, mut entry } => {
                let entries = self.tables.entry(table).or_default();
                if entry.action.is_none() {
                    entry.action = entries.get(&key).and_then(|before| decode(before).action);
                }
                let now = is_set(&entry);
                let before = entries.insert(&key, &entry.encode_to_vec());
                if let Some(profile) = self.profiles.get(&table).copied() {
                    let before = before.is_some_and(|before| is_set(&decode(&before)));
                    self.count_sets(profile, before, now);
                }
            }
            ShadowChange::DropEntry { table, key } => {
                let before = self.tables.get_mut(&table).and_then(|entries| entries.remove(&key));
                if let Some(before) = before
                    && let Some(profile) = self.profiles.get(&table).copied()
                {
                    self.count_sets(profile, is_set(&decode(&before)), false);
                }
            }
            ShadowChange::EntryMeter { table, key, config } => {
                let Some(entries) = self.tables.get_mut(&table) else { return };
                let Some(before) = entries.get(&key) else { return };
                let entry = v1::TableEntry { meter_config: config, ..decode(before) };
                entries.insert(&key, &entry.encode_to_vec());
            }
            ShadowChange::PutDefault { table, entry } => {
                let entry = entry.map(|entry| *entry).or_else(|| self.initial.get(&table).cloned());
                self.defaults.extend(entry.map(|entry| (table, entry)));
            }
            ShadowChange::PutMember(key, action) => drop(self.members.insert(key, Arc::from(action))),
            ShadowChange::DropMember(key) => drop(self.members.remove(&key)),
            ShadowChange::PutGroup(key, group) => drop(self.groups.insert(key, Arc::from(group))),
            ShadowChange::DropGroup(key) => drop(self.groups.remove(&key)),
            ShadowChange::PutMulticast(group) => {
                drop(self.multicast.insert(group.multicast_group_id, Arc::from(group)))
            }
            ShadowChange::DropMulticast(id) => drop(self.multicast.remove(&id)),
            ShadowChange::PutClone(session) => drop(self.clones.insert(session.session_id, Arc::from(session))),
            ShadowChange::DropClone(id) => drop(self.clones.remove(&id)),
            ShadowChange::PutValueSet(id, members) => drop(self.value_sets.insert(id, members)),
            ShadowChange::PutDigest(id, config) => drop(self.digests.insert(id, config)),
            ShadowChange::DropDigest(id) => drop(self.digests.remove(&id)),
            ShadowChange::PutMeter { meter, index: Some(index), config } => {
                self.meters.insert((meter, Some(index)), config);
            }
            ShadowChange::PutMeter { meter, index: None, config } => {
                let single: Vec<u64> = self.single_meters(meter).collect();
                for index in single {
                    self.meters.remove(&(meter, Some(index)));
                }
                self.meters.insert((meter, None), config);
            }
        }
    }

    fn count_sets(&mut self, profile: u32, before: bool, now: bool) {
        let count = self.sets.entry(profile).or_default();
        *count = (*count + usize::from(now)).saturating_sub(usize::from(before));
    }
}

/// Decodes a stored entry.
pub(crate) fn decode(bytes: &[u8]) -> v1::TableEntry {
    v1::TableEntry::decode(bytes).expect("the shadow encoded it")
}

fn is_set(entry: &v1::TableEntry) -> bool {
    use v1::table_action::Type;
    matches!(&entry.action, Some(v1::TableAction { r#type: Some(Type::ActionProfileActionSet(_)) }))
}
