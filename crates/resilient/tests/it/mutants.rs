//! Each mutant must be found within [`SEEDS`] seeds. `tests/mutants.md` lists the first seed that finds it;
//! `UPDATE_EXPECT=1` writes the list anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;

use resilient::Mutant;
use resilient::simulation::{Violation, simulate};

/// Number of seeds within which a mutant must be found.
const SEEDS: u64 = 1000;

const HEADER: &str = "\
# Mutants

Each line is an error that `resilient::Mutant` switches on, and the first seed with which the simulator finds it. The
list is written by `UPDATE_EXPECT=1 cargo test -p resilient mutants`.

| mutant | seed | violation |
|---|---|---|
";

fn kind(violation: &Violation) -> &'static str {
    match violation {
        Violation::NotLinearizable(_) => "not linearizable",
        Violation::TwoOutputs(_) => "two outputs of an input",
        Violation::Reordered(_) => "outputs in another order than inputs",
        Violation::NoOutput(_) => "no output after the faults",
        Violation::Lookups(_) => "lookups that contradict each other",
    }
}

/// Finds the first seed that shows the mutant, and what it shows.
fn kill(mutant: Mutant) -> Option<(u64, &'static str)> {
    (0..SEEDS).find_map(|seed| simulate(seed, Some(mutant)).violations.first().map(|violation| (seed, kind(violation))))
}

#[test]
fn each_mutant_is_found() {
    let queue = Mutex::new(Mutant::ALL.iter());
    let found = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(mutant) = queue.lock().unwrap().next() else { return };
                    let killed = kill(*mutant);
                    println!("{mutant:?}: {killed:?}");
                    found.lock().unwrap().insert(*mutant, killed);
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    let mut table = HEADER.to_owned();
    for (mutant, killed) in &found {
        let (seed, violation) = killed.map_or(("none".to_owned(), ""), |(seed, kind)| (seed.to_string(), kind));
        writeln!(table, "| {mutant:?} | {seed} | {violation} |").unwrap();
    }
    testing::golden::assert_golden(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mutants.md"), &table);
    let alive: Vec<_> = found.iter().filter(|(_, killed)| killed.is_none()).map(|(mutant, _)| mutant).collect();
    assert!(alive.is_empty(), "no seed finds {alive:?}");
}
