//! The example of flowlets: CONGA* meets the demands that ECMP does not, and leaves a path that is dead.

use crate::support::{Directory, run, triplane};
use serde_json::Value;

const LAB: &str = "examples/flowlets/lab.toml";

/// Simulates a scenario of the example on a number of threads, and returns its results. With changes of its text, it
/// has no expectations.
fn simulate(name: &str, changes: &[(&str, &str)], more: &str, seed: u32, threads: u32) -> Value {
    let path = crate::support::root().join(format!("examples/flowlets/{name}.toml"));
    let mut text = std::fs::read_to_string(path).expect("it is there");
    for (from, to) in changes {
        assert!(text.contains(from), "the scenario has {from}");
        text = text.replace(from, to);
    }
    if !changes.is_empty() {
        text.truncate(text.find("\n[[expect]]").expect("it has some"));
    }
    let directory = Directory::new();
    let scenario = directory.write("scenario.toml", text + more);
    let (seed, threads) = (seed.to_string(), threads.to_string());
    let arguments = ["lab", "sim", LAB, "--scenario", &scenario, "--json", "--seed", &seed, "--threads", &threads];
    run(&mut triplane(&arguments)).ok().json()
}

fn traffic<'a>(results: &'a Value, name: &str) -> &'a Value {
    let all = results["traffic"].as_array().expect("a list");
    all.iter().find(|traffic| traffic["traffic"] == name).expect("it is there")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Returns the greatest load of a link at a spine, as a share of its capacity.
fn most_loaded(results: &Value) -> f64 {
    let seconds = number(&results["end_ns"]) / 1e9;
    let links = results["links"].as_array().expect("a list").iter();
    let spines = links.filter(|link| ["from", "to"].iter().any(|end| link[end].to_string().contains("spine")));
    spines.map(|link| number(&link["carried_bytes"]) * 8.0 / seconds / 1e8).fold(0.0, f64::max)
}

#[test]
fn flowlets_meet_the_demands_and_hashes_do_not() {
    for seed in 1..=3 {
        // `run` fails if an expectation of the scenario is not met.
        let ecmp = simulate("ecmp", &[], "", seed, 1);
        assert!(most_loaded(&ecmp) > 0.99, "{}", most_loaded(&ecmp));
        let conga = simulate("conga", &[], "", seed, 1);
        assert!(most_loaded(&conga) <= 0.87, "{}", most_loaded(&conga));
        let balanced = &traffic(&conga, "L1:L2");
        let total = 170e6 / 8.0 * number(&conga["end_ns"]) / 1e9;
        let share = number(&balanced["conga"]["program_bytes"]) / total;
        assert!((0.001..0.01).contains(&share), "programs take {share}");
        let late = number(&balanced["conga"]["late"]) / number(&balanced["received"]);
        assert!(late < 0.002, "{late} of the datagrams are out of order");
    }
}

#[test]
fn flowlets_keep_their_order_if_the_gap_exceeds_the_difference_of_the_paths() {
    let results =
        |gap: &str| simulate("conga", &[("gap = \"1ms\"", gap), ("10s", "2s"), ("9990ms", "1990ms")], "", 1, 1);
    let late = |results: &Value| number(&traffic(results, "L1:L2")["conga"]["late"]);
    let (packets, flowlets) = (results("gap = \"1ns\""), results("gap = \"3ms\""));
    assert!(late(&packets) > 100.0 && late(&flowlets) < 10.0, "{} and {}", late(&packets), late(&flowlets));
    let moves = |results: &Value| number(&traffic(results, "L1:L2")["conga"]["moves"]);
    assert!(moves(&packets) > 10.0 * moves(&flowlets) && moves(&flowlets) > 10.0);
}

#[test]
fn sums_of_loads_fill_the_shared_link() {
    let changes = [("paths = 2", "paths = 2\nmetric = \"sum\""), ("10s", "2s"), ("9990ms", "1990ms")];
    let results = simulate("conga", &changes, "", 1, 1);
    assert!(most_loaded(&results) > 0.93, "{}", most_loaded(&results));
}

#[test]
fn a_dead_path_is_left_within_ten_samples() {
    // Spine 1 does not reach the receiver for half a second, which its leaf does not notice. The other path has room.
    let changes = [("10s", "2s"), ("9990ms", "1990ms"), ("120Mbps", "40Mbps")];
    let fault = "\n[[faults]]\nat = \"500ms\"\ndown = [\"spine1\", \"leaf2\"]\n[[faults]]\nat = \"1s\"\nup = [\"spine1\", \
                 \"leaf2\"]\n";
    let results = simulate("conga", &changes, fault, 1, 1);
    let balanced = traffic(&results, "L1:L2");
    let lost = number(&balanced["sent"]) - number(&balanced["received"]);
    // 40 Mbit/s are 5 datagrams in a millisecond: 20 ms of them are 100, and half a second 2,500.
    assert!((1.0..=130.0).contains(&lost), "{lost} were lost");
    let spine = results["links"].as_array().expect("a list").iter().find(|link| link["from"] == "spine1:3");
    let carried = number(&spine.expect("it is there")["carried"]);
    assert!(carried > 3_000.0, "the path is used before and after: {carried} datagrams");
}

#[test]
fn results_are_the_same_on_any_number_of_threads() {
    let results = |threads| simulate("conga", &[("10s", "2s"), ("9990ms", "1990ms")], "", 7, threads);
    let one = results(1);
    for threads in [2, 3] {
        assert_eq!(results(threads), one, "{threads} threads");
    }
}
