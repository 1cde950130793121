//! Visits all states of small models, and of models with errors.

use resilient::{Mutant, RowAccess};
use resilient_model::{ModelBounds, RowInput, SearchReport, search};

/// Maximum number of steps of a search.
const LIMIT: usize = 1_800_000;

fn without_ticks() -> ModelBounds {
    ModelBounds { ticks: 0, inputs: 3, ..ModelBounds::leases() }
}

/// Visits all states within bounds, and checks that each of these kinds of transitions occurs.
#[track_caller]
fn all_hold(bounds: ModelBounds, least_states: usize, kinds: &[&str]) -> SearchReport {
    let report = search(bounds, 2_400_000);
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    assert!(report.is_complete && report.states >= least_states, "{report:?}");
    for kind in kinds {
        let count = report.counts.iter().find(|(name, _)| name == kind).map(|(_, count)| *count);
        assert!(count.is_some_and(|count| count > 0), "{kind}: {report:?}");
    }
    println!("{} states, {} steps", report.states, report.steps);
    report
}

#[test]
fn rows_that_move_are_linearizable() {
    let bounds = ModelBounds { repetitions: 1, ..without_ticks() };
    all_hold(bounds, 50_000, &["outputs", "grants", "recalls", "releases", "stale writes"]);
}

#[test]
fn outputs_that_travel_with_writes_are_linearizable() {
    let bounds = ModelBounds { repetitions: 1, is_piggyback: true, ..without_ticks() };
    all_hold(bounds, 50_000, &["outputs", "grants", "recalls", "releases", "stale writes"]);
}

#[test]
fn rows_that_switches_share_are_linearizable() {
    let bounds = ModelBounds { repetitions: 1, read_access: RowAccess::Read, ..without_ticks() };
    all_hold(bounds, 20_000, &["outputs", "grants", "recalls", "releases"]);
}

#[test]
fn rows_of_switches_that_crash_are_linearizable() {
    let bounds = ModelBounds { is_warm: false, ticks: 1, inputs: 1, crashes: 1, ..ModelBounds::leases() };
    all_hold(bounds, 10_000, &["outputs", "grants"]);
}

#[test]
fn a_chain_that_changes_loses_nothing() {
    let bounds = ModelBounds { layouts: 1, ..ModelBounds::chain() };
    all_hold(bounds, 10_000, &["outputs", "grants", "changes of the chain"]);
}

/// Bounds within which a mutant shows itself.
fn errors() -> Vec<(Mutant, ModelBounds)> {
    let leases = ModelBounds::leases;
    let reads = || ModelBounds { kinds: &[RowInput::Read], ..leases() };
    let chain = || {
        let kinds = leases().kinds;
        ModelBounds { switches: 2, inputs: 2, kinds, layouts: 1, amnesias: 0, ..ModelBounds::chain() }
    };
    let repeats = || ModelBounds { repetitions: 1, ..without_ticks() };
    vec![
        (Mutant::LeaseRevived, leases()),
        (Mutant::LeaseIgnored, leases()),
        (Mutant::AskSurvivesLease, leases()),
        (Mutant::LeaseFromReply, ModelBounds { is_warm: false, ..reads() }),
        (Mutant::NoDriftMargin, leases()),
        (Mutant::ReadNotWaiting, leases()),
        (Mutant::ReleasedWhileAsking, leases()),
        (Mutant::GrantedToAnybody, leases()),
        (Mutant::EpochKept, leases()),
        (Mutant::SeqFence, leases()),
        (Mutant::AckedUnapplied, leases()),
        (Mutant::AckOfNewer, without_ticks()),
        (Mutant::SeqRestarts, without_ticks()),
        (Mutant::ReleasedBeforeAck, without_ticks()),
        (Mutant::SeqUnchecked, repeats()),
        (Mutant::ReleaseOfAnyEpoch, repeats()),
        (Mutant::RetransmitsOldValues, ModelBounds { retransmit_ticks: 1, ticks: 1, ..leases() }),
        (Mutant::RemovalForgetsEpoch, ModelBounds { kinds: &[RowInput::Add, RowInput::Clear], ..without_ticks() }),
        (Mutant::GrantsForgotten, chain()),
        (Mutant::OutputsReturnedTwice, ModelBounds { is_piggyback: true, ..repeats() }),
        (Mutant::OutputsOfRepeatedWrite, ModelBounds { is_piggyback: true, ..repeats() }),
        (Mutant::ReaderNotRecalled, ModelBounds { ticks: 0, ..ModelBounds::readers() }),
        (Mutant::ReadAfterRecall, ModelBounds { ticks: 0, ..ModelBounds::readers() }),
        (Mutant::ReadersForgotten, ModelBounds { read_access: RowAccess::Read, operations: 4, ..chain() }),
    ]
}

#[test]
fn models_with_errors_violate_a_property() {
    let mut alive = Vec::new();
    for (mutant, bounds) in errors() {
        let report = search(bounds.with(mutant), LIMIT);
        match report.violations.first() {
            Some(violation) => {
                let (states, steps) = (report.states, violation.steps.len());
                println!("{mutant:?}: {} after {steps} steps, {states} states", violation.property);
            }
            None => alive.push((mutant, report.states)),
        }
    }
    assert!(alive.is_empty(), "not found: {alive:?}");
}
