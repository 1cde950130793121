//! Random batches against the switch: its state equals the server's shadow, and a failed batch leaves nothing behind.
//! The [`TestServer`] checks this after every call.

use p4runtime_proto::v1;
use p4runtime_proto::v1::write_request::Atomicity;

use p4runtime_server::store::{MemoryStore, Store};
use p4runtime_server::testing::{TestServer, generate, script};

use crate::v1model_target::V1ModelTarget;

type Server = TestServer<V1ModelTarget>;

const SEEDS: u64 = 30;
const BATCHES: usize = 60;

#[test]
fn mirror_and_switch_agree_and_failed_batches_have_no_effect() {
    let (mut done, mut failed, mut rolled_back) = (0, 0, 0);
    for seed in 1..=SEEDS {
        let mut world = Server::new(seed);
        for _ in 0..BATCHES {
            let atomicity = *world.random.pick(&[
                Atomicity::ContinueOnError,
                Atomicity::RollbackOnError,
                Atomicity::DataplaneAtomic,
            ]);
            let updates: Vec<_> = (0..=world.random.below(4)).map(|_| world.update()).collect();
            let count = updates.len();
            match world.write(atomicity, updates) {
                Ok(()) => done += 1,
                Err(status) => {
                    assert_eq!(status.details.len(), count, "an error for each update");
                    failed += 1;
                    if atomicity != Atomicity::ContinueOnError {
                        rolled_back += 1;
                    }
                }
            }
        }
    }
    // The generator must reach all of these.
    assert!(done > 100 && failed > 100 && rolled_back > 100, "{done} {failed} {rolled_back}");
}

/// Pipelines are saved, written to and committed in between.
#[test]
fn the_stored_state_after_every_batch_restores_the_switch() {
    let (mut waiting, mut compared) = (0, 0);
    for seed in 1..=SEEDS {
        let mut world = Server::new(seed);
        let mut store = MemoryStore::default();
        assert_eq!(store.load().expect("memory can be read"), None);
        store.commit(&world.everything()).expect("memory can be written");
        world.record_changes();
        for number in 0..BATCHES {
            match world.random.below(15) {
                0 => world.save(),
                1 => world.commit(),
                _ => {}
            }
            let updates: Vec<_> = (0..=world.random.below(4)).map(|_| world.update()).collect();
            // Some updates fail. The store holds the effects of the others.
            let _ = world.write(Atomicity::ContinueOnError, updates);
            store.commit(&world.take_changes()).expect("memory can be written");
            if number % 10 == 9 {
                let kept = store.load().expect("memory can be read").expect("there is a pipeline");
                waiting += usize::from(kept.saved.is_some());
                compared += 1;
                // Registers are the packets' memory and are not restored.
                assert_eq!(world.restart(&kept, &store).contents(), world.contents(), "seed {seed}, batch {number}");
            }
        }
    }
    assert!(waiting > 20 && compared - waiting > 20, "{waiting} {compared}");
}

/// Returns what can be written of the entities: not the constants of the program.
fn without_constants(mut entities: Vec<v1::Entity>) -> Vec<v1::Entity> {
    use v1::entity::Entity;
    entities.retain(|entity| !matches!(&entity.entity, Some(Entity::TableEntry(entry)) if entry.is_const));
    entities
}

#[test]
fn what_random_writes_leave_can_be_written_back() {
    use v1::entity::Entity;
    let mut largest = 0;
    for seed in 1..=SEEDS {
        let mut world = Server::new(seed);
        for _ in 0..BATCHES {
            let updates: Vec<_> = (0..=world.random.below(4)).map(|_| world.update()).collect();
            // Some updates fail.
            let _ = world.write(Atomicity::ContinueOnError, updates);
        }
        let arrays = [
            Entity::MeterEntry(v1::MeterEntry::default()),
            Entity::CounterEntry(v1::CounterEntry::default()),
            Entity::RegisterEntry(v1::RegisterEntry::default()),
        ];
        let mut request = world.everything_request();
        request.entities.extend(arrays.map(|entity| v1::Entity { entity: Some(entity) }));
        let (before, result) = world.read(request.clone());
        assert_eq!(result, Ok(()), "seed {seed}");
        let entities = without_constants(before.clone());
        largest = largest.max(entities.len());
        for atomicity in [Atomicity::ContinueOnError, Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
            let modify = |entity: &v1::Entity| v1::Update {
                r#type: v1::update::Type::Modify.into(),
                entity: Some(entity.clone()),
            };
            let written = world.write(atomicity, entities.iter().map(modify).collect());
            written.unwrap_or_else(|status| panic!("seed {seed}, {atomicity:?}: {status:#?}"));
            assert_eq!(world.read(request.clone()).0, before, "seed {seed}, {atomicity:?}");
        }
    }
    assert!(largest > 40, "{largest} entities are not many");
}

/// A mistake made behind the server's back, with its name.
type Breakage = (&'static str, fn(&mut Server));

/// One mistake of each kind that a server could make. Tests against a model are only as good as the mistakes they
/// detect.
#[test]
fn the_model_notices_mistakes() {
    let breakages: [Breakage; 6] = [
        ("a value set that the switch has and nobody wrote", |world| {
            let (id, set) = world.switch.program().value_sets.iter().next().expect("there is one");
            let width = set.fields[0].1;
            let member = vec![ir::KeyValue::Exact(bits::Bits::new(77, width))];
            world.switch.objects_mut().insert_value_set_member(id, member).expect("it fits");
        }),
        ("a clone session of another class", |world| {
            let mut session = world.switch.mirror_sessions().get(9).expect("it is there").clone();
            session.class_of_service += 1;
            assert!(world.switch.set_mirror_session(9, Some(session)));
        }),
        ("a session that the server forgets", |world| {
            world.forget_clone_session(9);
        }),
        ("both forget it although nobody deleted it", |world| {
            world.forget_clone_session(9);
            world.switch.set_mirror_session(9, None);
        }),
        ("a commit where a pipeline was to be saved", |world| {
            world.save();
            world.commit_unnoticed();
        }),
        ("a write to the pipeline that runs while another is saved", |world| {
            world.save();
            world.forget_clone_session(9);
            world.switch.set_mirror_session(9, None);
        }),
    ];
    for (what, breaks) in breakages {
        let mut world = Server::new(1);
        let port_kind = Some(v1::replica::PortKind::Port(vec![1]));
        let session = v1::CloneSessionEntry {
            session_id: 9,
            replicas: vec![v1::Replica { port_kind, ..Default::default() }],
            class_of_service: 2,
            ..Default::default()
        };
        let session = v1::packet_replication_engine_entry::Type::CloneSessionEntry(session);
        let entity = v1::PacketReplicationEngineEntry { r#type: Some(session) };
        let entity = v1::entity::Entity::PacketReplicationEngineEntry(entity);
        let entity = Some(v1::Entity { entity: Some(entity) });
        let insert = v1::Update { r#type: v1::update::Type::Insert.into(), entity };
        world.write(Atomicity::ContinueOnError, vec![insert]).expect("it can be written");
        world.check(&what);
        breaks(&mut world);
        let noticed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.check(&what)));
        assert!(noticed.is_err(), "{what}");
    }
}

#[test]
fn calls_of_any_bytes_leave_the_server_right() {
    let mut random = generate::RandomSource::new(7);
    let mut reached = std::collections::BTreeSet::new();
    for seed in 1..=120 {
        let mut script = script::generate::<V1ModelTarget>(seed);
        reached.extend(script::run::<V1ModelTarget>(&script));
        for _ in 0..5 {
            for _ in 0..=random.below(6) {
                let at = random.below(script.len() as u64) as usize;
                match random.below(3) {
                    0 => script[at] = random.below(256) as u8,
                    1 => script[at] ^= 1 << random.below(8),
                    _ => drop(script.remove(at)),
                }
            }
            reached.extend(script::run::<V1ModelTarget>(&script));
        }
    }
    // The calls must reach many different refusals.
    for call in ["write", "read", "same config"] {
        assert!(reached.iter().any(|what| what.starts_with(call)), "{reached:#?}");
    }
    assert!(reached.len() > 60, "{reached:#?}");
}
