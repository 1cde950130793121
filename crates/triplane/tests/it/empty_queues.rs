//! The example of empty queues: HPCC fills a link to what the closed form says, shares it equally, and leaves no queue.

use std::collections::BTreeMap;

use crate::support::{Directory, run, triplane};
use serde_json::Value;

/// Capacity of the link between the switches, in bytes a second.
const CAPACITY: f64 = 25e6;

/// Bytes of a frame, and of the payload in it.
const FRAME: f64 = 1500.0;
const PAYLOAD: f64 = 1458.0;

/// What is measured in a simulation of some seconds.
struct Simulated {
    results: Value,
    /// The bytes of payload of each sender in each interval: traffic, sender, time in seconds, bytes.
    arrived: Vec<(String, String, f64, f64)>,
    /// Frames that waited for the link at the times in seconds.
    queue: Vec<(f64, f64)>,
}

impl Simulated {
    /// Returns the payload rate of each traffic from one time to another, as a share of the capacity.
    fn shares(&self, from_s: f64, to_s: f64) -> BTreeMap<String, f64> {
        let mut shares = BTreeMap::new();
        for (name, _, _, bytes) in self.arrived.iter().filter(|(.., time_s, _)| (from_s..to_s).contains(time_s)) {
            *shares.entry(name.clone()).or_default() += bytes / (to_s - from_s) / CAPACITY;
        }
        shares
    }

    /// Returns the mean and the greatest number of frames in the queue from one time to another.
    fn queue(&self, from_s: f64, to_s: f64) -> (f64, f64) {
        let all = || self.queue.iter().filter(|(time_s, _)| (from_s..to_s).contains(time_s)).map(|(_, frames)| *frames);
        assert!(all().count() > 100, "the queue was sampled");
        (all().sum::<f64>() / all().count() as f64, all().fold(0.0, f64::max))
    }

    /// Returns a count of all controllers.
    fn count(&self, name: &str) -> u64 {
        let all = self.results["traffic"].as_array().expect("a list");
        all.iter().filter_map(|traffic| traffic["hpcc"][name].as_u64()).sum()
    }

    /// Returns the share of the capacity that programs take, over the whole time.
    fn programs(&self) -> f64 {
        self.count("program_bytes") as f64 / (self.results["end_ns"].as_f64().expect("a number") / 1e9) / CAPACITY
    }

    fn dropped(&self) -> u64 {
        self.results["totals"]["dropped"].as_u64().expect("a number")
    }
}

/// Simulates a scenario in the network of the example, with a change of its lab.
fn simulate(scenario: &str, seed: u32, (from, to): (&str, &str)) -> Simulated {
    let lab = std::fs::read_to_string(crate::support::root().join("examples/empty-queues/lab.toml")).expect("a file");
    assert!(lab.contains(from), "the lab has {from}");
    let directory = Directory::new();
    let lab = directory.write("lab.toml", lab.replace(from, to));
    let scenario = directory.write("scenario.toml", format!("sample = \"1ms\"\n{scenario}"));
    let (out, seed) = (directory.path("out"), seed.to_string());
    let arguments = ["lab", "sim", &lab, "--scenario", &scenario, "--out", &out, "--json", "--seed", &seed];
    let results = run(&mut triplane(&arguments)).ok().json();
    let table = |name: &str| std::fs::read_to_string(format!("{out}/{name}.csv")).expect("it was written");
    let number = |text: &str| text.parse::<f64>().expect("a number");
    let columns = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let arrived = table("flows").lines().skip(1).map(columns).map(|columns| {
        let [name, sender, _, time_s, bytes] = &columns[..] else { panic!("{columns:?}") };
        (name.clone(), sender.clone(), number(time_s), number(bytes))
    });
    let queue = table("queues").lines().skip(1).map(columns).filter(|columns| columns[0] == "s1:5").map(|columns| {
        let [_, time_s, frames, _, _] = &columns[..] else { panic!("{columns:?}") };
        (number(time_s), number(frames))
    });
    Simulated { arrived: arrived.collect(), queue: queue.collect(), results }
}

const UNCHANGED: (&str, &str) = ("200Mbps", "200Mbps");

/// Flows of a kind, each of which is a traffic of its own. They begin one after the other in 0.1 s.
fn flows(count: usize, kind: &str) -> String {
    let flow = |number: usize| {
        let (host, start) = (number % 4 + 1, number * 100 / count);
        format!(
            "[[traffic]]\nname = \"f{number}\"\nfrom = \"a{host}\"\nto = \"b{host}\"\nstart = \"{start}ms\"\n{kind}\n"
        )
    };
    (0..count).map(flow).collect()
}

/// Returns Jain's index of rates.
fn jain(rates: impl Iterator<Item = f64> + Clone) -> f64 {
    let (sum, squares) = rates.clone().fold((0.0, 0.0), |(sum, squares), one| (sum + one, squares + one * one));
    sum * sum / (rates.count() as f64 * squares)
}

/// Utilization of the link with this number of flows, by the closed form.
fn utilization(flows: usize) -> f64 {
    0.95 + 0.05 * flows as f64 / 32.0
}

const HPCC: &str = "kind = \"hpcc\"\nsize = 1500";

#[test]
fn flows_fill_the_link_to_the_closed_form_equally_and_without_a_queue() {
    for count in [2, 8, 16] {
        for seed in [1, 2] {
            let simulated = simulate(&format!("duration = \"3s\"\n{}", flows(count, HPCC)), seed, UNCHANGED);
            let shares = simulated.shares(2.0, 3.0);
            let goodput: f64 = shares.values().sum();
            let programs = simulated.programs();
            let jain = jain(shares.values().copied());
            let (mean, most) = simulated.queue(1.0, 3.0);
            eprintln!("{count} flows: goodput {goodput}, programs {programs}, jain {jain}, queue {mean} {most}");
        }
    }
    for (name, kind, change) in [
        ("tcp", "kind = \"tcp\"\nwindow = 1048576", UNCHANGED),
        ("rcp", "kind = \"rcp\"\nsize = 1500\ninterval = \"5ms\"", ("tpp = \"read\"", "tpp = \"write\"")),
    ] {
        let simulated = simulate(&format!("duration = \"3s\"\n{}", flows(8, kind)), 1, change);
        let (shares, (mean, most)) = (simulated.shares(2.0, 3.0), simulated.queue(1.0, 3.0));
        let goodput: f64 = shares.values().sum();
        let dropped = simulated.dropped();
        eprintln!(
            "{name}: goodput {goodput}, jain {}, queue {mean} {most}, dropped {dropped}",
            jain(shares.values().copied())
        );
    }
}

#[test]
fn flows_join_and_leave() {
    let path = crate::support::root().join("examples/empty-queues/hpcc.toml");
    let text = std::fs::read_to_string(path).expect("it is there");
    let text = text.split("\n[[expect]]").next().expect("a part").replace("sample = \"1ms\"", "");
    let simulated = simulate(&text, 1, UNCHANGED);
    for (from_s, flows, shares) in [
        (0.5, 3, [("leaves", 1.0), ("two", 2.0)].as_slice()),
        (1.5, 4, [("joins", 1.0), ("leaves", 1.0), ("two", 2.0)].as_slice()),
        (2.5, 3, [("joins", 1.0), ("two", 2.0)].as_slice()),
    ] {
        let found = simulated.shares(from_s, from_s + 0.5);
        eprintln!("{found:?}, {:?}", simulated.queue(from_s, from_s + 0.5));
        for (name, count) in shares {
            let (share, equal) = (found[*name] / count, utilization(flows) * 0.95 / flows as f64);
            eprintln!("{name} has {share} of {equal}");
        }
    }
    let example =
        ["lab", "sim", "examples/empty-queues/lab.toml", "--scenario", "examples/empty-queues/hpcc.toml", "--json"];
    let digest = |threads: &str| run(&mut triplane(&[&example[..], &["--threads", threads]].concat())).ok().json();
    assert_eq!(digest("1"), digest("2"));
}

#[test]
fn windows_recover_after_a_switch_restarted() {
    let faults = "[[faults]]\nat = \"1s\"\ncrash = \"s1\"\n[[faults]]\nat = \"1200ms\"\nrestart = \"s1\"\n";
    let simulated = simulate(&format!("duration = \"3s\"\n{}{faults}", flows(4, HPCC)), 1, UNCHANGED);
    let during: f64 = simulated.shares(1.01, 1.2).values().sum();
    let after: f64 = simulated.shares(1.4, 3.0).values().sum();
    let counts = ["silences", "implausible", "changed_paths", "stale"].map(|name| simulated.count(name));
    eprintln!("during {during} after {after} {counts:?} {:?}", simulated.queue(1.5, 3.0));
}

#[test]
fn lost_late_and_doubled_packets_keep_no_flow_from_its_share() {
    let damaged = "delay = \"2ms\"\nloss = 0.02\nduplication = 0.02\nreordering = 0.02";
    let simulated = simulate(&format!("duration = \"3s\"\n{}", flows(8, HPCC)), 1, ("delay = \"2ms\"", damaged));
    let (shares, queue) = (simulated.shares(1.0, 3.0), simulated.queue(1.0, 3.0));
    let goodput: f64 = shares.values().sum();
    let counts = ["samples", "silences", "implausible", "changed_paths", "stale"].map(|name| simulated.count(name));
    eprintln!("goodput {goodput}, jain {}, {counts:?}, queue {queue:?}", jain(shares.values().copied()));
}
