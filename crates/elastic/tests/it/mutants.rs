//! Each mutant must be found within 1000 seeds. `tests/mutants.md` lists the first seed that finds it;
//! `UPDATE_EXPECT=1` rewrites the list.

use elastic::ElasticMutant;

use crate::world::{SimViolation, simulate};

const HEADER: &str = "\
# Mutants

Each line is an error that `elastic::ElasticMutant` switches on, and the first seed with which the simulation finds it.
The list is written by `UPDATE_EXPECT=1 cargo test -p elastic mutants`.
";

fn kind(violation: &SimViolation) -> &'static str {
    match violation {
        SimViolation::WrongAnswer(_) => "a wrong record",
        SimViolation::FalseMiss(_) => "a false miss",
        SimViolation::Overtaken(_) => "packets of a key in another order",
        SimViolation::Uncounted(_) => "a packet that was not counted",
        SimViolation::EndState(_) => "a wrong state at the end",
    }
}

#[test]
fn each_mutant_is_found() {
    let list = (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mutants.md"), HEADER);
    testing::mutants::assert_each_is_found(ElasticMutant::ALL, list, |seed, mutant| {
        simulate(seed, Some(mutant)).violations.first().map(kind)
    });
}
