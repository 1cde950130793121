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
    /// Times in seconds, and the frames that waited for the link.
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
fn simulate(scenario: &str, (from, to): (&str, &str)) -> Simulated {
    let lab = std::fs::read_to_string(crate::support::root().join("examples/empty-queues/lab.toml")).expect("a file");
    assert!(lab.contains(from), "the lab has {from}");
    let directory = Directory::new();
    let lab = directory.write("lab.toml", lab.replace(from, to));
    let sample = if scenario.contains("sample =") { "" } else { "sample = \"1ms\"\n" };
    let scenario = directory.write("scenario.toml", format!("{sample}{scenario}"));
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
        let [_, time_s, frames, ..] = &columns[..] else { panic!("{columns:?}") };
        (number(time_s), number(frames))
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
    // The increase of 2 flows with a maximum of 32 is a ninth of a frame.
    for (count, max_flows) in [(2, 4), (2, 32), (8, 16), (16, 32)] {
        let simulated = simulate(&format!("duration = \"6s\"\n{}", flows(count, &hpcc(max_flows))), UNCHANGED);
        let shares = simulated.shares(4.0, 6.0);
        let (goodput, jain, (mean, most)) =
            (shares.values().sum::<f64>(), jain(shares.values().copied()), simulated.queue(1.0, 6.0));
        // Programs are part of what is used, and the queue at two samples but for a frame of it, which is at most that
        // at any time. A measurement differs from its mean by some frames, so the mean of 1 / U is a little higher.
        let utilization = 0.95 + 0.05 * count as f64 / max_flows as f64;
        let without_queue = (utilization - simulated.programs()) * PAYLOAD / FRAME;
        let with_queue = without_queue - (mean - 1.0).max(0.0) * FRAME / PIPE * PAYLOAD / FRAME;
        let found = format!("{count} flows: goodput {goodput} of {with_queue} to {without_queue}, Jain's index {jain}");
        assert!((with_queue - 0.005..without_queue + 0.002).contains(&goodput) && goodput > 0.89, "{found}");
        assert!(shares.len() == count && jain > 0.99, "{found}");
        assert!(mean < 3.0 && most < 15.0, "{count} flows: {mean} frames wait, at most {most}");
        // Flows that begin while others have filled the queue do not take it for a part of the path.
        assert_eq!(simulated.dropped(), 0, "{count} flows");
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
    let text = text.split("\n[[expect]]").next().expect("a part");
    let simulated = simulate(text, UNCHANGED);
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

#[test]
fn a_flow_on_a_slow_link_gets_its_rate_again_after_tcp_filled_the_queue_and_after_an_outage() {
    // At 2 Mbit/s, the least window allows a packet every 1.92 s.
    let slow = ("200Mbps", "2Mbps");
    let flow = format!("sample = \"100ms\"\nduration = \"30s\"\n{}", flows(1, "kind = \"hpcc\"\nsize = 1500"));
    let tcp = "[[traffic]]\nname = \"tcp\"\nkind = \"tcp\"\nfrom = \"a2\"\nto = \"b2\"\nstart = \"3s\"\nbytes = 2000000\n\
               window = 1048576\n";
    let outage = "[[faults]]\nat = \"5s\"\ncrash = \"s2\"\n[[faults]]\nat = \"10s\"\nrestart = \"s2\"\n";
    for disturbance in [tcp, outage] {
        let simulated = simulate(&format!("{flow}{disturbance}"), slow);
        let share = |from_s, to_s| 100.0 * simulated.shares(from_s, to_s).get("f0").copied().unwrap_or(0.0);
        let (meanwhile, after) = (share(7.0, 9.0), share(20.0, 30.0));
        assert!(meanwhile < 0.05 && after > 0.75, "{meanwhile} of the link meanwhile, {after} after: {disturbance}");
    }
}

#[test]
fn the_report_lists_flows_windows_and_samples() {
    let arguments = ["lab", "sim", "examples/empty-queues/lab.toml", "--scenario", "examples/empty-queues/hpcc.toml"];
    let text = run(&mut triplane(&arguments)).ok().stdout;
    let results = run(&mut triplane(&[&arguments[..], &["--json"]].concat())).ok().json();
    let table = text.split("\n\n").find(|part| part.starts_with("flows of HPCC")).expect("a table");
    let lines: Vec<_> = table.lines().collect();
    let [_, first, .., index] = &lines[..] else { panic!("{table}") };
    assert!(lines.len() == 6 && first.starts_with("two            a1    b1  "), "{table}");
    // The numbers of both are the same.
    let pair = &results["pairs"][0];
    assert_eq!((&pair["from"], results["pairs"].as_array().map(Vec::len)), (&"a1".into(), Some(4)));
    let rates = results["pairs"].as_array().expect("a list").iter().filter_map(|pair| pair["rate_bps"].as_f64());
    let jain = jain(rates.collect::<Vec<_>>().into_iter());
    assert_eq!(*index, format!("Jain's index of their goodputs: {jain:.3}"));
    assert!((results["hpcc"]["jain"].as_f64().expect("a number") - jain).abs() < 1e-9 && jain > 0.99);
    let whole = |name: &str| pair["hpcc"][name].as_f64().expect("a number").round() as u64;
    let (mean, max, sent) = (whole("mean_window"), whole("max_window"), whole("sent_samples"));
    let numbers: Vec<u64> = first.split_whitespace().filter_map(|word| word.replace(',', "").parse().ok()).collect();
    let missing = pair["sent"].as_u64().zip(pair["received"].as_u64()).map(|(sent, received)| sent - received);
    let expected = [missing.expect("numbers"), mean, max, sent, whole("unanswered_samples"), 0, 0];
    // The goodput, which has a unit, and a decimal point.
    assert_eq!(numbers, expected, "{first}");
    assert!(0 < mean && mean < max && max < 120_000 && sent > 1_000 && whole("samples") <= sent);
    // Samples of all flows of a traffic are added.
    let samples = |list: &str| {
        let all = results[list].as_array().expect("a list").iter();
        all.filter_map(|one| one["hpcc"]["sent_samples"].as_u64()).sum::<u64>()
    };
    assert_eq!(samples("pairs"), samples("traffic"));
    let tcp = [&arguments[..4], &["examples/empty-queues/tcp.toml"]].concat();
    assert!(!run(&mut triplane(&tcp)).ok().stdout.contains("HPCC"));
}
