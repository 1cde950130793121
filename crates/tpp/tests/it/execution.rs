//! Tests both TCPUs on random programs, and the mutants that these find.

use tpp::Mutant;
use tpp::generate::Case;

#[test]
fn both_processors_agree_on_random_programs() {
    let cases = testing::number("TRIPLANE_TPP_CASES", 100_000);
    testing::seed::for_each(0..cases, |seed| {
        if let Err(difference) = Case::new(seed).compare(None) {
            panic!("seed {seed}: {difference}\n{:?}", Case::new(seed));
        }
        true
    });
}

const HEADER: &str = "\
# Mutants

Each line is an error that `tpp::Mutant` switches on, and the first random program at which the two processors
differ, and what differs. The list is written by `UPDATE_EXPECT=1 cargo test -p tpp mutant`.
";

#[test]
fn each_mutant_is_found() {
    let list = (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mutants.md"), HEADER);
    testing::mutants::assert_each_is_found(Mutant::ALL, list, |seed, mutant| {
        Case::new(seed).compare(Some(mutant)).err().map(|difference| difference.of)
    });
}
