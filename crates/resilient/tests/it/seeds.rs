//! Runs of the simulator. `TRIPLANE_RESILIENT_SEEDS=100000` runs more seeds than a normal test does, and
//! `TRIPLANE_RESILIENT_SEED=17` only that one, and prints its messages.

use std::sync::Mutex;

use resilient::simulation::{SimulationReport, simulate, simulate_snapshots, simulate_traced};

/// Number of seeds of a normal test.
const SEEDS: u64 = 2000;

#[test]
fn no_seed_shows_a_violation() {
    let seed = testing::number("TRIPLANE_RESILIENT_SEED", u64::MAX);
    if seed != u64::MAX {
        let (report, trace) = simulate_traced(seed, None);
        println!("{}", trace.join("\n"));
        assert!(report.violations.is_empty(), "{report:?}");
        return;
    }
    let seeds = 0..testing::number("TRIPLANE_RESILIENT_SEEDS", SEEDS);
    let sum = Mutex::new(SimulationReport::default());
    let failures = Mutex::new(Vec::new());
    testing::seed::for_each(seeds.clone(), |seed| {
        let report = simulate(seed, None);
        if !report.violations.is_empty() {
            failures.lock().unwrap().push((seed, report.violations.clone()));
        }
        let mut sum = sum.lock().unwrap();
        sum.inputs += report.inputs;
        sum.outputs += report.outputs;
        sum.lookups += report.lookups;
        sum.answered_lookups += report.answered_lookups;
        sum.messages += report.messages;
        sum.undecided += report.undecided;
        sum.layouts += report.layouts;
        sum.carried += report.carried;
        sum.carried_back += report.carried_back;
        true
    });
    let sum = sum.into_inner().unwrap();
    println!("{} seeds: {sum:?}", seeds.end - seeds.start);
    let mut failures = failures.into_inner().unwrap();
    failures.sort_by_key(|(seed, _)| *seed);
    for (seed, violations) in failures.iter().take(10) {
        eprintln!("TRIPLANE_RESILIENT_SEED={seed} cargo test -p resilient seeds -- --nocapture: {violations:?}");
    }
    assert!(failures.is_empty(), "{} of {} seeds", failures.len(), seeds.end - seeds.start);
    assert!(sum.outputs * 2 > sum.inputs, "{sum:?}");
    assert!(sum.answered_lookups * 2 > sum.lookups, "{sum:?}");
    assert!(sum.carried as usize * 40 > sum.outputs && sum.carried_back * 3 > sum.carried * 2, "{sum:?}");
    assert!(sum.undecided * 1000 <= seeds.count(), "{sum:?}");
}

/// `TRIPLANE_RESILIENT_SNAPSHOT_SEEDS` and `TRIPLANE_RESILIENT_SNAPSHOT_SEED` work as those above.
#[test]
fn no_seed_with_snapshots_shows_a_violation() {
    let seed = testing::number("TRIPLANE_RESILIENT_SNAPSHOT_SEED", u64::MAX);
    if seed != u64::MAX {
        let (report, trace) = simulate_snapshots(seed, None, true);
        println!("{}", trace.join("\n"));
        assert!(report.violations.is_empty(), "{report:?}");
        return;
    }
    let seeds = 0..testing::number("TRIPLANE_RESILIENT_SNAPSHOT_SEEDS", SEEDS);
    let sum = Mutex::new(SimulationReport::default());
    let failures = Mutex::new(Vec::new());
    testing::seed::for_each(seeds.clone(), |seed| {
        let report = simulate_snapshots(seed, None, false).0;
        let mut sum = sum.lock().unwrap();
        sum.inputs += report.inputs;
        sum.outputs += report.outputs;
        sum.restored += report.restored;
        sum.messages += report.messages;
        if !report.violations.is_empty() {
            failures.lock().unwrap().push((seed, report.violations));
        }
        true
    });
    let (sum, mut failures) = (sum.into_inner().unwrap(), failures.into_inner().unwrap());
    println!("{} seeds: {sum:?}", seeds.end - seeds.start);
    failures.sort_by_key(|(seed, _)| *seed);
    for (seed, violations) in failures.iter().take(10) {
        eprintln!(
            "TRIPLANE_RESILIENT_SNAPSHOT_SEED={seed} cargo test -p resilient snapshots -- --nocapture: {violations:?}"
        );
    }
    assert!(failures.is_empty(), "{} of {} seeds", failures.len(), seeds.end - seeds.start);
    assert!(sum.outputs * 3 > sum.inputs && sum.restored as u64 > seeds.end - seeds.start, "{sum:?}");
}
