//! Random batches against the switch: what the server says was written is what the switch has, and a batch that is not
//! done leaves nothing behind.

use std::sync::Arc;

use p4runtime_proto::v1::write_request::Atomicity;
use v1::entity::Entity;
use v1::packet_replication_engine_entry::Type as Replication;
use v1::update::Type;
use v1model::{Config, Executor};

use super::*;
use crate::keep::{MemoryStore, Store};
use crate::mirror::decode;
use crate::pipeline::compile_source;

const SEEDS: u64 = 30;
const BATCHES: usize = 60;

/// Numbers that repeat: xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }

    /// Mostly small numbers, now and then one that is too wide, or nothing.
    fn bytes(&mut self) -> Vec<u8> {
        match self.below(30) {
            0 => Vec::new(),
            1 => vec![0xff; 9],
            2 => vec![0, 0, 1],
            _ => vec![self.below(4) as u8],
        }
    }
}

struct World {
    server: Server,
    switch: Switch,
    random: Random,
}

impl World {
    fn new(seed: u64) -> World {
        let (program, info) = compile_source(include_str!("../../tests/p4/every.p4")).expect("the program is right");
        let program = Arc::new(program);
        let config = Config { executor: Executor::Interpreter, ..Config::with_ports(4) };
        let switch = Switch::new(program.clone(), config).expect("the switch runs it");
        let pipeline = Pipeline::new(program, info, Vec::new());
        let server = Server::new(Settings::new(0..4, Some(510))).with_pipeline(pipeline, &switch);
        let mut world = World { server, switch, random: Random(seed) };
        let arbitration = v1::MasterArbitrationUpdate {
            device_id: 1,
            election_id: Some(v1::Uint128 { high: 0, low: 1 }),
            ..Default::default()
        };
        let update = Some(v1::stream_message_request::Update::Arbitration(arbitration));
        let stream = world.server.open_stream().expect("there is room");
        let message = v1::StreamMessageRequest { update };
        world.server.stream_message(stream, message, &mut Outbox::new()).expect("nobody else is there");
        world
    }

    /// A switch that has been started anew with what was kept.
    fn again(of: &World, updates: &[v1::Update]) -> World {
        let config = of.switch.config().clone();
        let mut switch = Switch::new(of.switch.program().clone(), config).expect("the switch runs it");
        let pipeline = of.server.committed.as_ref().expect("there is a pipeline").pipeline.clone();
        let (server, lost) = Server::new(of.server.settings.clone()).with_kept(pipeline, updates, &mut switch);
        assert_eq!(lost, Lost::default());
        World { server, switch, random: Random(1) }
    }

    fn write(&mut self, atomicity: Atomicity, updates: Vec<v1::Update>) -> Result<(), Status> {
        let request = v1::WriteRequest {
            device_id: 1,
            election_id: Some(v1::Uint128 { high: 0, low: 1 }),
            atomicity: atomicity.into(),
            updates,
            ..Default::default()
        };
        let mut batch = self.server.begin_write(&request)?;
        while !batch.is_finished() {
            batch.run(&mut self.switch, 3);
        }
        self.server.finish_write(batch, &mut Outbox::new())
    }

    fn action(&mut self, table: &crate::schema::Table) -> v1::Action {
        let action_id = *self.random.pick(&table.actions);
        let schema = self.server.committed.as_ref().expect("there is a pipeline").pipeline.schema.clone();
        let params = schema.actions[&action_id]
            .params
            .iter()
            .map(|param| v1::action::Param { param_id: param.id, value: self.random.bytes() });
        v1::Action { action_id, params: params.collect() }
    }

    fn table_entry(&mut self) -> Entity {
        use v1::field_match::{Exact, FieldMatchType as Match, Lpm, Optional, Range, Ternary};
        let schema = self.server.committed.as_ref().expect("there is a pipeline").pipeline.schema.clone();
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

    fn entity(&mut self) -> Entity {
        let schema = self.server.committed.as_ref().expect("there is a pipeline").pipeline.schema.clone();
        let profiles: Vec<_> = schema.profiles.values().collect();
        let profile = *self.random.pick(&profiles);
        let small = |random: &mut Random| random.below(3) as u32;
        match self.random.below(12) {
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
                let member = |random: &mut Random| v1::action_profile_group::Member {
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
            _ => self.table_entry(),
        }
    }

    fn update(&mut self) -> v1::Update {
        let kind = *self.random.pick(&[Type::Insert, Type::Insert, Type::Modify, Type::Delete, Type::Unspecified]);
        v1::Update { r#type: kind.into(), entity: Some(v1::Entity { entity: Some(self.entity()) }) }
    }

    /// All that is written, as the server keeps it.
    fn kept(&self) -> Vec<String> {
        told(&self.server.committed.as_ref().expect("there is a pipeline").mirror)
    }

    /// All that is written, as the switch has it, and its registers.
    fn had(&self) -> (Vec<String>, Vec<String>) {
        let state = self.server.committed.as_ref().expect("there is a pipeline");
        let schema = &state.pipeline.schema;
        let registers = schema.registers.values().flat_map(|register| {
            let read = |at| self.switch.objects().register(register.array.ir, at).expect("it is there").to_string();
            (0..register.array.size).map(read)
        });
        (told(&Mirror::of(schema, &self.switch)), registers.collect())
    }
}

fn told(mirror: &Mirror) -> Vec<String> {
    let entries = mirror.tables.iter().flat_map(|(table, entries)| {
        entries.iter().map(move |(_, entry)| {
            let entry = decode(entry);
            format!("{table} {:?} {} {:?}", entry.r#match, entry.priority, entry.action)
        })
    });
    let defaults = mirror.defaults.values().map(|entry| format!("default {} {:?}", entry.table_id, entry.action));
    let members = mirror.members.iter().map(|(key, action)| format!("member {key:?} {action:?}"));
    let groups = mirror.groups.iter().map(|(key, group)| format!("group {key:?} {:?}", group.members));
    let multicast = mirror.multicast.iter().map(|(id, group)| format!("multicast {id} {:?}", group.replicas));
    entries.chain(defaults).chain(members).chain(groups).chain(multicast).collect()
}

#[test]
fn what_is_kept_is_what_the_switch_has_and_failed_batches_leave_nothing() {
    let (mut done, mut failed, mut rolled_back) = (0, 0, 0);
    for seed in 1..=SEEDS {
        let mut world = World::new(seed);
        for number in 0..BATCHES {
            let atomicity = *world.random.pick(&[
                Atomicity::ContinueOnError,
                Atomicity::RollbackOnError,
                Atomicity::DataplaneAtomic,
            ]);
            let updates: Vec<_> = (0..=world.random.below(4)).map(|_| world.update()).collect();
            let before = (world.kept(), world.had());
            let count = updates.len();
            let result = world.write(atomicity, updates.clone());
            let (kept, had) = (world.kept(), world.had());
            assert_eq!(kept, had.0, "seed {seed}, batch {number}: {atomicity:?} {updates:#?}");
            match result {
                Ok(()) => done += 1,
                Err(status) => {
                    assert_eq!(status.details.len(), count, "an error for each update");
                    failed += 1;
                    if atomicity != Atomicity::ContinueOnError {
                        assert!(status.details.iter().all(|detail| detail.canonical_code != 0));
                        assert_eq!((kept, had), before, "seed {seed}, batch {number}: {atomicity:?} {updates:#?}");
                        rolled_back += 1;
                    }
                }
            }
        }
    }
    // The generator has to reach all of it.
    assert!(done > 100 && failed > 100 && rolled_back > 100, "{done} {failed} {rolled_back}");
}

#[test]
fn what_was_kept_after_every_batch_makes_the_same_state_again() {
    for seed in 1..=SEEDS {
        let mut world = World::new(seed);
        let mut store = MemoryStore::default();
        assert_eq!(store.load().expect("memory can be read"), None);
        store.commit(&world.server.everything()).expect("memory can be written");
        world.server.start_keeping();
        for number in 0..BATCHES {
            let updates: Vec<_> = (0..=world.random.below(4)).map(|_| world.update()).collect();
            // Some fail, and what is kept is what the others did.
            let _ = world.write(Atomicity::ContinueOnError, updates);
            store.commit(&world.server.take_changes()).expect("memory can be written");
            if number % 10 == 9 {
                let kept = store.load().expect("memory can be read").expect("there is a pipeline");
                let again = World::again(&world, &kept.updates);
                assert_eq!(again.kept(), world.kept(), "seed {seed}, batch {number}");
                // Registers are the packets' memory and begin anew.
                assert_eq!(again.had().0, world.had().0, "seed {seed}, batch {number}");
            }
        }
    }
}
