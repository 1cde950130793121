//! Runs of the simulation. `TRIPLANE_ELASTIC_SEEDS=1000000` runs more seeds than a normal test does, and
//! `TRIPLANE_ELASTIC_SEED=17` only that one.

use std::sync::Mutex;

use crate::world::{SimReport, simulate};

/// Number of seeds of a normal test.
const SEEDS: u64 = 10_000;

fn add(sum: &mut SimReport, report: &SimReport) {
    sum.packets += report.packets;
    sum.hits += report.hits;
    sum.misses += report.misses;
    sum.drops += report.drops;
    sum.remote += report.remote;
    sum.writes += report.writes;
    sum.moves += report.moves;
    sum.stashed += report.stashed;
    sum.evicted += report.evicted;
    sum.rereads += report.rereads;
    sum.repairs += report.repairs;
    sum.restarts += report.restarts;
    sum.distrusted += report.distrusted;
    sum.failures += report.failures;
}

#[test]
fn no_seed_shows_a_violation() {
    let seed = testing::number("TRIPLANE_ELASTIC_SEED", u64::MAX);
    if seed != u64::MAX {
        let report = simulate(seed, None);
        println!("{report:?}");
        assert!(report.violations.is_empty());
        return;
    }
    let seeds = 0..testing::number("TRIPLANE_ELASTIC_SEEDS", SEEDS);
    let sum = Mutex::new(SimReport::default());
    let failures = Mutex::new(Vec::new());
    testing::seed::for_each(seeds.clone(), |seed| {
        let report = simulate(seed, None);
        add(&mut sum.lock().unwrap(), &report);
        if !report.violations.is_empty() {
            failures.lock().unwrap().push((seed, report.violations));
        }
        true
    });
    let (sum, mut failures) = (sum.into_inner().unwrap(), failures.into_inner().unwrap());
    println!("{} seeds: {sum:?}", seeds.end - seeds.start);
    failures.sort_by_key(|(seed, _)| *seed);
    for (seed, violations) in failures.iter().take(10) {
        eprintln!("TRIPLANE_ELASTIC_SEED={seed} cargo test -p elastic seeds -- --nocapture: {violations:?}");
    }
    assert!(failures.is_empty(), "{} of {} seeds", failures.len(), seeds.end - seeds.start);
    // Each path was taken.
    assert!(sum.hits > sum.drops && sum.misses > 0 && sum.moves > 0 && sum.stashed > 0, "{sum:?}");
    assert!(sum.evicted > 0 && sum.rereads > 0 && sum.repairs > 0 && sum.restarts > 0, "{sum:?}");
    assert!(sum.distrusted > 0 && sum.failures > 0, "{sum:?}");
}
