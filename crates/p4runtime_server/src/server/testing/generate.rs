//! Random updates, many of them valid. Ids are few and numbers small, so that updates meet.

use p4runtime_proto::v1;
use rng::SplitMix64;
use v1::entity::Entity;
use v1::packet_replication_engine_entry::Type as Replication;
use v1::update::Type;

use super::{TestServer, TestTarget};

/// A reproducible source of choices.
pub struct RandomSource(SplitMix64);

impl RandomSource {
    /// Creates a generator. The same seed gives the same numbers.
    pub fn new(seed: u64) -> RandomSource {
        RandomSource(SplitMix64::new(seed))
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// Returns one of the elements.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }

    /// Returns mostly small numbers, sometimes one that is too wide, or nothing.
    pub fn bytes(&mut self) -> Vec<u8> {
        match self.below(30) {
            0 => Vec::new(),
            1 => vec![0xff; 9],
            2 => vec![0, 0, 1],
            // These match the program's own entries.
            3 => vec![0xe1 + self.below(2) as u8],
            _ => vec![self.below(4) as u8],
        }
    }
}

impl<T: TestTarget> TestServer<T> {
    fn action(&mut self, table: &crate::schema::TableSchema) -> v1::Action {
        let action_id = *self.random.pick(&table.actions);
        let schema = self.schema();
        let params = schema.actions[&action_id]
            .params
            .iter()
            .map(|param| v1::action::Param { param_id: param.id, value: self.random.bytes() });
        v1::Action { action_id, params: params.collect() }
    }

    fn table_entry(&mut self) -> Entity {
        use v1::field_match::{Exact, FieldMatchType as Match, Lpm, Optional, Range, Ternary};
        let schema = self.schema();
        let tables: Vec<_> = schema.tables.values().collect();
        let table = *self.random.pick(&tables);
        let mut matches = Vec::new();
        for field in &table.fields {
            let value = self.random.bytes();
            let given = match field.kind {
                ir::MatchKind::Exact => Match::Exact(Exact { value }),
                ir::MatchKind::Lpm => Match::Lpm(Lpm { value: vec![0], prefix_len: self.random.below(34) as i32 }),
                ir::MatchKind::Ternary => Match::Ternary(Ternary { value, mask: vec![3] }),
                ir::MatchKind::Range => Match::Range(Range { low: value, high: vec![3] }),
                _ => Match::Optional(Optional { value }),
            };
            if self.random.below(5) > 0 || field.kind == ir::MatchKind::Exact {
                matches.push(v1::FieldMatch { field_id: field.id, field_match_type: Some(given) });
            }
        }
        use v1::table_action::Type as Target;
        let target = match (table.profile, self.random.below(4)) {
            (None, _) | (_, 0) => Target::Action(self.action(table)),
            (_, 1) => Target::ActionProfileMemberId(self.random.below(3) as u32),
            (_, 2) => Target::ActionProfileGroupId(self.random.below(3) as u32),
            _ => Target::ActionProfileActionSet(v1::ActionProfileActionSet {
                action_profile_actions: (0..2)
                    .map(|_| v1::ActionProfileAction {
                        action: Some(self.action(table)),
                        weight: self.random.below(3) as i32,
                        watch_kind: None,
                    })
                    .collect(),
                ..Default::default()
            }),
        };
        let default = self.random.below(10) == 0;
        Entity::TableEntry(v1::TableEntry {
            table_id: table.id,
            r#match: if default { Vec::new() } else { matches },
            priority: if table.needs_priority() && !default { self.random.below(3) as i32 } else { 0 },
            action: (self.random.below(8) > 0).then_some(v1::TableAction { r#type: Some(target) }),
            is_default_action: default,
            ..Default::default()
        })
    }

    /// Returns an entity to write or to read.
    pub fn entity(&mut self) -> Entity {
        let schema = self.schema();
        let profiles: Vec<_> = schema.profiles.values().collect();
        let profile = *self.random.pick(&profiles);
        let small = |random: &mut RandomSource| random.below(3) as u32;
        match self.random.below(16) {
            0 | 1 => {
                let table = schema.tables.values().find(|table| table.profile == Some(profile.id));
                let action = Some(self.action(table.expect("every profile is used")));
                let member_id = small(&mut self.random);
                Entity::ActionProfileMember(v1::ActionProfileMember {
                    action_profile_id: profile.id,
                    member_id,
                    action,
                })
            }
            2 | 3 => {
                let member = |random: &mut RandomSource| v1::action_profile_group::Member {
                    member_id: random.below(3) as u32,
                    weight: random.below(3) as i32,
                    watch_kind: None,
                };
                let members = (0..self.random.below(3)).map(|_| member(&mut self.random)).collect();
                let group_id = small(&mut self.random);
                let group = v1::ActionProfileGroup { action_profile_id: profile.id, group_id, members, max_size: 0 };
                Entity::ActionProfileGroup(group)
            }
            4 => {
                let replica = v1::Replica {
                    port_kind: Some(v1::replica::PortKind::Port(self.random.bytes())),
                    instance: small(&mut self.random),
                    backup_replicas: Vec::new(),
                };
                let group = v1::MulticastGroupEntry {
                    multicast_group_id: small(&mut self.random),
                    replicas: vec![replica; self.random.below(2) as usize],
                    metadata: Vec::new(),
                };
                Entity::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry {
                    r#type: Some(Replication::MulticastGroupEntry(group)),
                })
            }
            5 => {
                let (id, register) = schema.registers.iter().next().expect("there is one");
                let data = v1::P4Data { data: Some(v1::p4_data::Data::Bitstring(self.random.bytes())) };
                let index = Some(v1::Index { index: self.random.below(register.array.size + 1) as i64 });
                let index = index.filter(|_| self.random.below(4) > 0);
                Entity::RegisterEntry(v1::RegisterEntry { register_id: *id, index, data: Some(data) })
            }
            6 => {
                let replica = |random: &mut RandomSource| v1::Replica {
                    port_kind: Some(v1::replica::PortKind::Port(random.bytes())),
                    instance: small(random),
                    backup_replicas: vec![
                        v1::BackupReplica { port: random.bytes(), instance: small(random) };
                        random.below(2) as usize
                    ],
                };
                let session = v1::CloneSessionEntry {
                    session_id: small(&mut self.random),
                    replicas: (0..self.random.below(3)).map(|_| replica(&mut self.random)).collect(),
                    class_of_service: self.random.below(9) as u32,
                    packet_length_bytes: self.random.below(40) as i32 - 2,
                };
                Entity::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry {
                    r#type: Some(Replication::CloneSessionEntry(session)),
                })
            }
            7 => {
                let set = schema.value_sets.values().next().expect("there is one");
                let mut member = || {
                    use v1::field_match::{Exact, FieldMatchType as Match};
                    let field = |field: &crate::schema::FieldSchema| v1::FieldMatch {
                        field_id: field.id,
                        field_match_type: Some(Match::Exact(Exact { value: self.random.bytes() })),
                    };
                    v1::ValueSetMember { r#match: set.fields.iter().map(field).collect() }
                };
                let members = (0..3).map(|_| member()).collect::<Vec<_>>();
                let count = self.random.below(4) as usize;
                let members = members.into_iter().take(count).collect();
                Entity::ValueSetEntry(v1::ValueSetEntry { value_set_id: set.id, members })
            }
            8 => {
                let config = v1::digest_entry::Config {
                    max_timeout_ns: self.random.below(3) as i64,
                    max_list_size: self.random.below(3) as i32,
                    ack_timeout_ns: self.random.below(3) as i64 - 1,
                };
                let digest_id = *schema.digests.keys().next().expect("there is one");
                Entity::DigestEntry(v1::DigestEntry { digest_id, config: Some(config) })
            }
            9 => {
                let (meter_id, array) = schema.meters.iter().next().expect("there is one");
                let (size, rate) = (array.size, self.random.below(4) as i64);
                let index = Some(v1::Index { index: self.random.below(size + 1) as i64 });
                let config = v1::MeterConfig { cir: rate, cburst: 1, pir: rate + 1, pburst: 2, eburst: 0 };
                Entity::MeterEntry(v1::MeterEntry {
                    meter_id: *meter_id,
                    index: index.filter(|_| self.random.below(3) > 0),
                    config: (self.random.below(3) > 0).then_some(config),
                    counter_data: None,
                })
            }
            _ => self.table_entry(),
        }
    }

    /// Returns an update.
    pub fn update(&mut self) -> v1::Update {
        let kind = *self.random.pick(&[Type::Insert, Type::Insert, Type::Modify, Type::Delete, Type::Unspecified]);
        v1::Update { r#type: kind.into(), entity: Some(v1::Entity { entity: Some(self.entity()) }) }
    }
}
