//! Runs of the simulation. `TRIPLANE_RDMA_SEEDS=1000000` runs more seeds than a normal test does, and
//! `TRIPLANE_RDMA_SEED=17` only that one.

use std::sync::Mutex;

use crate::simulation::{Scenario, SimulationReport, simulate};

/// Number of seeds of a normal test.
const SEEDS: u64 = 3000;

#[test]
fn no_seed_shows_a_violation() {
    let seed = testing::number("TRIPLANE_RDMA_SEED", u64::MAX);
    if seed != u64::MAX {
        let report = simulate(seed, None);
        println!("{:?}\n{report:?}", Scenario::of_seed(seed));
        assert!(report.violations.is_empty(), "{report:?}");
        return;
    }
    let seeds = 0..testing::number("TRIPLANE_RDMA_SEEDS", SEEDS);
    let sum = Mutex::new(SimulationReport::default());
    testing::seed::for_each(seeds.clone(), |seed| {
        let report = simulate(seed, None);
        let mut sum = sum.lock().unwrap();
        sum.completed += report.completed;
        sum.failed += report.failed;
        sum.packets += report.packets;
        sum.retries += report.retries;
        sum.duplicates += report.duplicates;
        sum.wraps += report.wraps;
        if let Some(violation) = report.violations.first() {
            eprintln!("TRIPLANE_RDMA_SEED={seed} cargo test -p rdma seeds -- --nocapture: {violation:?}");
            sum.violations.push(violation.clone());
        }
        true
    });
    let sum = sum.into_inner().unwrap();
    println!("{} seeds: {sum:?}", seeds.end);
    assert!(sum.violations.is_empty(), "{} of {} seeds", sum.violations.len(), seeds.end);
    assert!(sum.completed > seeds.end * 20 && sum.failed < sum.completed, "{sum:?}");
    assert!(sum.retries > seeds.end && sum.duplicates > seeds.end && sum.wraps > seeds.end / 10, "{sum:?}");
}
