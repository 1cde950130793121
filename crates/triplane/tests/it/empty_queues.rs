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
    /// Times in seconds, the frames that waited for the link, and those that its full queue had dropped.
    queue: Vec<(f64, f64, u64)>,
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
        let all =
            || self.queue.iter().filter(|(time_s, ..)| (from_s..to_s).contains(time_s)).map(|(_, frames, _)| *frames);
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

    /// Returns the frames that were dropped at the link after a time.
    fn dropped_after(&self, from_s: f64) -> u64 {
        let before = self.queue.iter().take_while(|(time_s, ..)| *time_s < from_s).last().expect("it was sampled");
        self.queue.last().expect("it was sampled").2 - before.2
    }

    fn dropped(&self) -> u64 {
        self.results["totals"]["dropped"].as_u64().expect("a number")
    }
}

/// Simulates a scenario in the network of the example, with a change of its lab.
fn simulate(scenario: &str, (from, to): (&str, &str)) -> Simulated {
    let lab = std::fs::read_to_string(crate::support::root().join("examples/empty-queues/lab.toml")).expect("a file");
    assert!(lab.contains(from), "the lab has {from}");
    let directory = Directory::new();
    let lab = directory.write("lab.toml", lab.replace(from, to));
    let scenario = directory.write("scenario.toml", format!("sample = \"1ms\"\n{scenario}"));
    let out = directory.path("out");
    let arguments = ["lab", "sim", &lab, "--scenario", &scenario, "--out", &out, "--json"];
    let results = run(&mut triplane(&arguments)).ok().json();
    let table = |name: &str| std::fs::read_to_string(format!("{out}/{name}.csv")).expect("it was written");
    let number = |text: &str| text.parse::<f64>().expect("a number");
    let columns = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let (flows, queues) = (table("flows"), table("queues"));
    let arrived = flows.lines().skip(1).map(columns).map(|columns| {
        let [name, sender, _, time_s, bytes] = &columns[..] else { panic!("{columns:?}") };
        (name.clone(), sender.clone(), number(time_s), number(bytes))
    });
    let queue = queues.lines().skip(1).map(columns).filter(|columns| columns[0] == "s1:5").map(|columns| {
        let [_, time_s, frames, _, dropped] = &columns[..] else { panic!("{columns:?}") };
        (number(time_s), number(frames), number(dropped) as u64)
    });
    Simulated { arrived: arrived.collect(), queue: queue.collect(), results }
}

const UNCHANGED: (&str, &str) = ("200Mbps", "200Mbps");

/// Flows of a kind, each as a traffic of its own. They begin one after the other in 0.1 s.
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

/// Returns the keys of a flow whose link has no queue up to this number of flows.
fn hpcc(max_flows: usize) -> String {
    format!("kind = \"hpcc\"\nsize = 1500\nmax-flows = {max_flows}")
}

/// Bytes that the path holds: the capacity times 4.25 ms. The delays of the three links, there and back, are 4.2 ms.
const PIPE: f64 = CAPACITY * 4.25e-3;

#[test]
fn flows_fill_the_link_to_the_closed_form_equally_and_without_a_queue() {
    for count in [2, 8, 16] {
        let simulated = simulate(&format!("duration = \"6s\"\n{}", flows(count, &hpcc(2 * count))), UNCHANGED);
        let shares = simulated.shares(4.0, 6.0);
        let (goodput, jain, (mean, most)) =
            (shares.values().sum::<f64>(), jain(shares.values().copied()), simulated.queue(1.0, 6.0));
        // Half of what the target leaves is used. Programs are part of it, and the queue at two samples, which is at
        // most that at any time.
        let without_queue = (0.95 + 0.05 / 2.0 - simulated.programs()) * PAYLOAD / FRAME;
        let with_queue = without_queue - mean * FRAME / PIPE * PAYLOAD / FRAME;
        let found = format!("{count} flows: goodput {goodput} of {with_queue} to {without_queue}, Jain's index {jain}");
        assert!((with_queue - 0.005..without_queue).contains(&goodput) && goodput > 0.89, "{found}");
        assert!(shares.len() == count && jain > 0.95, "{found}");
        assert!(mean < 3.0 && most < 15.0, "{count} flows: {mean} frames wait, at most {most}");
        // Flows that begin while others have filled the queue take it for a part of the path. Many overflow it.
        assert_eq!(simulated.dropped_after(0.3), 0, "{count} flows");
        assert!(count > 8 || simulated.dropped() == 0, "{count} flows");
        assert!(simulated.programs() < 0.03, "{found}, programs {}", simulated.programs());
    }
}

#[test]
fn tcp_fills_the_queue_that_hpcc_leaves_empty() {
    let tcp = "kind = \"tcp\"\nwindow = 1048576";
    let simulated = simulate(&format!("duration = \"3s\"\n{}", flows(8, tcp)), UNCHANGED);
    let (mean, most) = simulated.queue(1.0, 3.0);
    assert!(mean > 1_000.0 && most >= 2_000.0 && simulated.dropped() > 0, "{mean} frames wait, at most {most}");
    let rcp = "kind = \"rcp\"\nsize = 1500\ninterval = \"5ms\"";
    let rcp = simulate(&format!("duration = \"3s\"\n{}", flows(8, rcp)), ("\"read\"", "\"write\""));
    let hpcc = simulate(&format!("duration = \"3s\"\n{}", flows(8, &hpcc(16))), UNCHANGED);
    for simulated in [rcp, hpcc] {
        let (mean, _) = simulated.queue(1.0, 3.0);
        assert!(mean < 3.0 && simulated.dropped() == 0, "{mean} frames wait");
    }
}

#[test]
fn flows_join_and_leave() {
    let path = crate::support::root().join("examples/empty-queues/hpcc.toml");
    let text = std::fs::read_to_string(path).expect("it is there");
    let text = text.split("\n[[expect]]").next().expect("a part").replace("sample = \"1ms\"", "");
    let simulated = simulate(&text, UNCHANGED);
    for (from_s, flows, shares) in [
        (0.5, 3.0, [("leaves", 1.0), ("two", 2.0)].as_slice()),
        (1.5, 4.0, [("joins", 1.0), ("leaves", 1.0), ("two", 2.0)].as_slice()),
        (2.5, 3.0, [("joins", 1.0), ("two", 2.0)].as_slice()),
    ] {
        let (found, (mean, most)) = (simulated.shares(from_s, from_s + 0.5), simulated.queue(from_s, from_s + 0.5));
        for (name, count) in shares {
            let equal = (0.95 + 0.05 * flows / 8.0 - simulated.programs()) * PAYLOAD / FRAME / flows;
            let of_equal = found[*name] / count / equal;
            assert!((0.9..1.15).contains(&of_equal), "after {from_s} s, {name} has {of_equal} of its share: {found:?}");
        }
        assert!(mean < 3.0 && most < 15.0, "after {from_s} s, {mean} frames wait, at most {most}");
    }
    assert_eq!(simulated.dropped(), 0);
    let lab = ["lab", "sim", "examples/empty-queues/lab.toml", "--scenario"];
    let simulate = |more: &[&str]| run(&mut triplane(&[&lab[..], more].concat())).ok();
    let hpcc = ["examples/empty-queues/hpcc.toml", "--json", "--threads"];
    let results = |threads| simulate(&[&hpcc[..], &[threads]].concat()).json();
    assert_eq!(results("1"), results("2"));
    simulate(&["examples/empty-queues/tcp.toml"]);
}

#[test]
fn windows_recover_after_a_switch_restarted() {
    let faults = "[[faults]]\nat = \"1s\"\ncrash = \"s1\"\n[[faults]]\nat = \"1200ms\"\nrestart = \"s1\"\n";
    let simulated = simulate(&format!("duration = \"3s\"\n{}{faults}", flows(4, &hpcc(8))), UNCHANGED);
    let share = |from_s, to_s| simulated.shares(from_s, to_s).values().sum::<f64>();
    assert_eq!(share(1.01, 1.2), 0.0);
    assert!(share(1.4, 3.0) > 0.89, "{} after the restart", share(1.4, 3.0));
    let (silences, implausible) = (simulated.count("silences"), simulated.count("implausible"));
    assert!(silences >= 4 && implausible >= 4, "{silences} silences, {implausible} samples that do not fit");
    let (mean, most) = simulated.queue(1.4, 3.0);
    assert!(mean < 3.0 && most < 15.0, "{mean} frames wait, at most {most}");
}

#[test]
fn lost_late_and_doubled_packets_keep_no_flow_from_its_share() {
    let damaged = "delay = \"2ms\"\nloss = 0.02\nduplication = 0.02\nreordering = 0.02";
    let scenario = format!("duration = \"3s\"\n{}", flows(8, &hpcc(16)));
    let simulated = simulate(&scenario, ("delay = \"2ms\"", damaged));
    let shares = simulated.shares(1.0, 3.0);
    let (goodput, jain) = (shares.values().sum::<f64>(), jain(shares.values().copied()));
    assert!(goodput > 0.86 && jain > 0.95, "goodput {goodput}, Jain's index {jain}");
    let (mean, most) = simulated.queue(1.0, 3.0);
    assert!(mean < 4.0 && most < 20.0, "{mean} frames wait, at most {most}");
    assert!(simulated.count("silences") == 0 && simulated.count("changed_paths") == 0);
}
