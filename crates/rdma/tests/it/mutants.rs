//! Each mutant must be found within 1,000 seeds. `tests/mutants.md` lists the first seed that finds it;
//! `UPDATE_EXPECT=1` rewrites the list.

use rdma::Mutant;

use crate::simulation::{Violation, simulate};

const HEADER: &str = "\
# Mutants

Each line is an error that `rdma::Mutant` switches on, and the first seed with which the simulation finds it. The list
is written by `UPDATE_EXPECT=1 cargo test -p rdma mutants`. Errors in the masks of the integrity check are found by the
tests of `wire::roce::icrc`.
";

fn kind(violation: &Violation) -> &'static str {
    match violation {
        Violation::WrongRead(_) => "a READ of what the memory did not hold",
        Violation::WrongChange(_) => "a change of memory without a request",
        Violation::WrongCompletion(_) => "a completion without its effect",
        Violation::WrongFailure(_) => "a failure without a cause",
        Violation::NoEnd(_) => "a request that does not end",
        Violation::GapReportedTwice => "a gap that is reported twice",
        Violation::WindowExceeded(_) => "too many READs outstanding",
        Violation::AccessGranted(_) => "an access without a right",
    }
}

#[test]
fn each_mutant_is_found() {
    let list = (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mutants.md"), HEADER);
    testing::mutants::assert_each_is_found(Mutant::ALL, list, |seed, mutant| {
        simulate(seed, Some(mutant)).violations.first().map(kind)
    });
}
