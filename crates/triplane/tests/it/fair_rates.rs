//! The example of fair rates: RCP* gives each flow the share of the closed form, whatever happens.

use std::collections::BTreeMap;

use crate::support::{Directory, run, triplane};
use serde_json::Value;

/// Capacity of both links in Mbit/s.
const CAPACITY: f64 = 100.0;

/// Bytes of a frame, and of the payload in it.
const FRAME: f64 = 1000.0;
const PAYLOAD: f64 = 958.0;

/// Traffic a, b and c, each with this number of flows.
fn flows(count: usize, fairness: &str) -> String {
    let list = |host: String| format!("{:?}", vec![host; count]);
    let of = |name: &str| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nkind = \"rcp\"\nfrom = {}\nto = {}\nfairness = {fairness}\ninterval = \
             \"5ms\"\n",
            list(format!("{name}1")),
            list(format!("{name}2"))
        )
    };
    ["a", "b", "c"].map(of).concat()
}

/// Simulates a scenario of 3 s in the network of the example. Returns the results, and the rate of the data frames of
/// each traffic after `from_s` seconds, in Mbit/s.
fn simulate(scenario: &str, from_s: f64) -> (Value, BTreeMap<String, f64>) {
    let directory = Directory::new();
    let scenario = directory.write("scenario.toml", format!("duration = \"3s\"\n{scenario}"));
    let out = directory.path("out");
    let lab = "examples/fair-rates/lab.toml";
    let done = run(&mut triplane(&["lab", "sim", lab, "--scenario", &scenario, "--out", &out, "--json"])).ok();
    let table = std::fs::read_to_string(format!("{out}/flows.csv")).expect("it was written");
    let mut rates = BTreeMap::<String, f64>::new();
    for line in table.lines().skip(1) {
        let columns: Vec<&str> = line.split(',').collect();
        let [name, _, _, time_s, bytes] = columns[..] else { panic!("{line}") };
        let (time_s, bytes): (f64, f64) = (time_s.parse().expect("a time"), bytes.parse().expect("a number"));
        if time_s >= from_s {
            *rates.entry(name.to_owned()).or_default() += bytes * 8e-6 / (3.0 - from_s) * FRAME / PAYLOAD;
        }
    }
    (done.json(), rates)
}

/// Returns a count of the controllers of all traffic.
fn count(results: &Value, name: &str) -> u64 {
    let all = results["traffic"].as_array().expect("a list");
    all.iter().filter_map(|traffic| traffic["rcp"][name].as_u64()).sum()
}

/// Checks that data and programs of each traffic take the expected share of a link, within a tolerance.
#[track_caller]
fn assert_shares((results, rates): &(Value, BTreeMap<String, f64>), expected: [f64; 3], tolerance: f64) {
    for (name, expected) in ["a", "b", "c"].into_iter().zip(expected) {
        let all = results["traffic"].as_array().expect("a list");
        let traffic = all.iter().find(|traffic| traffic["traffic"] == name).expect("it is there");
        let programs = traffic["rcp"]["program_bytes"].as_f64().expect("a number") * 8e-6 / 3.0;
        let share = (rates[name] + programs) / CAPACITY;
        assert!((share / expected - 1.0).abs() <= tolerance, "{name} has {share}, expected {expected}: {rates:?}");
    }
}

#[test]
fn flows_get_the_shares_of_the_closed_form() {
    let (half, third) = (0.5, 1.0 / 3.0);
    assert_shares(&simulate(&flows(1, "\"max-min\""), 1.0), [half; 3], 0.02);
    assert_shares(&simulate(&flows(1, "\"proportional\""), 1.0), [third, 2.0 * third, 2.0 * third], 0.04);
    // With α = 2 the shares of one link and of two are as √2 to 1.
    let root = 2.0_f64.sqrt();
    assert_shares(&simulate(&flows(1, "2"), 1.0), [1.0 / (1.0 + root), root / (1.0 + root), root / (1.0 + root)], 0.04);
    for name in ["max-min", "proportional"] {
        let scenario = format!("examples/fair-rates/{name}.toml");
        run(&mut triplane(&["lab", "sim", "examples/fair-rates/lab.toml", "--scenario", &scenario])).ok();
    }
}

#[test]
fn many_flows_are_stable_and_equal() {
    let simulated = simulate(&flows(33, "\"max-min\""), 1.0);
    assert_shares(&simulated, [0.5; 3], 0.02);
    for traffic in ["a", "b", "c"] {
        let pairs = simulated.0["pairs"].as_array().expect("a list");
        let received = pairs.iter().filter(|pair| pair["traffic"] == traffic);
        let received: Vec<f64> = received.map(|pair| pair["received"].as_f64().expect("a number")).collect();
        let (sum, squares) = received.iter().fold((0.0, 0.0), |(sum, squares), one| (sum + one, squares + one * one));
        let jain = sum * sum / (received.len() as f64 * squares);
        assert!(received.len() == 33 && jain >= 0.99, "Jain's index of {traffic} is {jain}");
    }
    let dropped = simulated.0["totals"]["dropped"].as_u64();
    assert_eq!(dropped, Some(0), "{:#}", simulated.0["totals"]);
}

#[test]
fn rates_recover_after_a_switch_restarted_without_them() {
    let faults = "[[faults]]\nat = \"1s\"\ncrash = \"s2\"\n[[faults]]\nat = \"1200ms\"\nrestart = \"s2\"\n";
    let simulated = simulate(&(flows(1, "\"max-min\"") + faults), 2.0);
    // At first: two links of 100 Mbit/s and six of 1 Gbit/s. Those of s2 that a flow leaves by lose their rates.
    assert!(count(&simulated.0, "first_rates") > count(&simulate(&flows(1, "\"max-min\""), 2.0).0, "first_rates"));
    assert!(count(&simulated.0, "lost") > 0, "senders noticed the silence");
    assert_shares(&simulated, [0.5; 3], 0.03);
}

#[test]
fn traffic_in_the_other_direction_does_not_count() {
    let reverse = "[[traffic]]\nname = \"reverse\"\nkind = \"udp\"\nfrom = \"a2\"\nto = \"a1\"\nrate = \"80Mbps\"\nsize = \
                   1000\n";
    assert_shares(&simulate(&(flows(1, "\"max-min\"") + reverse), 1.0), [0.5; 3], 0.02);
}
