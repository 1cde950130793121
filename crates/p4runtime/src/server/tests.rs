//! Random batches against the switch: what the server says was written is what the switch has, and a batch that is not
//! done leaves nothing behind. The [`World`] holds that after every call.

use p4runtime_proto::v1::write_request::Atomicity;

use super::testing::{World, script};
use crate::keep::{MemoryStore, Store};

const SEEDS: u64 = 30;
const BATCHES: usize = 60;

#[test]
fn what_is_kept_is_what_the_switch_has_and_failed_batches_leave_nothing() {
    let (mut done, mut failed, mut rolled_back) = (0, 0, 0);
    for seed in 1..=SEEDS {
        let mut world = World::new(seed);
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
    // The generator has to reach all of it.
    assert!(done > 100 && failed > 100 && rolled_back > 100, "{done} {failed} {rolled_back}");
}

/// Pipelines are saved, written to and committed meanwhile.
#[test]
fn what_was_kept_after_every_batch_makes_the_same_state_again() {
    let (mut waiting, mut compared) = (0, 0);
    for seed in 1..=SEEDS {
        let mut world = World::new(seed);
        let mut store = MemoryStore::default();
        assert_eq!(store.load().expect("memory can be read"), None);
        store.commit(&world.server.everything()).expect("memory can be written");
        world.server.start_keeping();
        for number in 0..BATCHES {
            match world.random.below(15) {
                0 => world.save(),
                1 => world.commit(),
                _ => {}
            }
            let updates: Vec<_> = (0..=world.random.below(4)).map(|_| world.update()).collect();
            // Some fail, and what is kept is what the others did.
            let _ = world.write(Atomicity::ContinueOnError, updates);
            store.commit(&world.server.take_changes()).expect("memory can be written");
            if number % 10 == 9 {
                let kept = store.load().expect("memory can be read").expect("there is a pipeline");
                waiting += usize::from(kept.saved.is_some());
                compared += 1;
                // Registers are the packets' memory and begin anew.
                assert_eq!(World::again(&world, &kept).of_both(), world.of_both(), "seed {seed}, batch {number}");
            }
        }
    }
    assert!(waiting > 20 && compared - waiting > 20, "{waiting} {compared}");
}

#[test]
fn calls_of_any_bytes_leave_the_server_right() {
    let mut random = super::testing::generate::Random::new(7);
    let mut reached = std::collections::BTreeSet::new();
    for seed in 1..=120 {
        let mut script = script::generate(seed);
        reached.extend(script::run(&script));
        for _ in 0..5 {
            for _ in 0..=random.below(6) {
                let at = random.below(script.len() as u64) as usize;
                match random.below(3) {
                    0 => script[at] = random.below(256) as u8,
                    1 => script[at] ^= 1 << random.below(8),
                    _ => drop(script.remove(at)),
                }
            }
            reached.extend(script::run(&script));
        }
    }
    // It has to come to many different refusals, of every call.
    for call in ["write", "read", "same config"] {
        assert!(reached.iter().any(|what| what.starts_with(call)), "{reached:#?}");
    }
    assert!(reached.len() > 60, "{reached:#?}");
}
