//! Each mutant must be found within 1,000 seeds. `tests/mutants.md` lists the first seed that finds it;
//! `UPDATE_EXPECT=1` rewrites the list.

use resilient::Mutant;
use resilient::simulation::{SimulationReport, Violation, simulate, simulate_snapshots};

const HEADER: &str = "\
# Mutants

Each line is an error that `resilient::Mutant` switches on, and the first seed with which the simulator finds it. The
list is written by `UPDATE_EXPECT=1 cargo test -p resilient mutants`.
";

fn kind(violation: &Violation) -> &'static str {
    match violation {
        Violation::NotLinearizable(_) => "not linearizable",
        Violation::TwoOutputs(_) => "two outputs of an input",
        Violation::Reordered(_) => "outputs in another order than inputs",
        Violation::NoOutput(_) => "no output after the faults",
        Violation::Lookups(_) => "lookups that contradict each other",
        Violation::EpochReused(_) => "two grants with one epoch",
        Violation::RowLeft(..) => "a row that nobody uses is still there",
        Violation::NoCut(_) => "a restored state that no switch had",
        Violation::TooOld(_) => "a restored state older than its bound",
        Violation::LostInMove(_) => "changes lost in a planned move",
    }
}

fn run(seed: u64, mutant: Mutant) -> SimulationReport {
    match mutant.is_of_snapshots() {
        true => simulate_snapshots(seed, Some(mutant), false).0,
        false => simulate(seed, Some(mutant)),
    }
}

#[test]
fn each_mutant_is_found() {
    let list = (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mutants.md"), HEADER);
    testing::mutants::assert_each_is_found(Mutant::ALL, list, |seed, mutant| {
        run(seed, mutant).violations.first().map(kind)
    });
}
