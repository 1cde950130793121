use std::collections::BTreeMap;
use std::sync::Arc;

use diagnostics::{Diagnostics, SourceMap};
use switch::{Device, Frame, PortId, Time};

use super::{Results, Scenario, ScenarioFiles, prepare, run_seeds};
use crate::generate::{NetworkKind, generate};
use crate::sim::{Element, MakeElement};
use crate::topology::{Delay, Rate, Shape, Topology};

mod fair_rates;
mod flowlets;
mod int;
mod minions;
mod refused;

/// A switch that learns nothing and floods.
struct Hub(Vec<u32>);

impl Device for Hub {
    fn step(&mut self, _now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        for frame in input.drain(..) {
            let others = self.0.iter().filter(|port| **port != frame.port.0);
            output.extend(others.map(|port| Frame { port: PortId(*port), data: frame.data.clone() }));
        }
    }

    fn next_event(&self) -> Option<Time> {
        None
    }
}

impl Element for Hub {
    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

fn star() -> (Topology, MakeElement) {
    let shape = Shape { rate: Some(Rate::from_bps(100_000_000)), delay: Delay::from_us(50), ..Shape::default() };
    let topology = generate(NetworkKind::Star { hosts: 4 }, shape, shape, 510).expect("it can be made");
    (topology, Arc::new(|_| Box::new(Hub(vec![1, 2, 3, 4]))))
}

/// Reads a scenario; returns it and the rendered diagnostics.
fn read(text: &str) -> (Option<Scenario>, String) {
    let mut map = SourceMap::new();
    let file = map.add("scenario.toml", text);
    let mut diagnostics = Diagnostics::new();
    let scenario = super::read(file, text, &star().0, 510, &mut diagnostics);
    (scenario, diagnostics.render(&map, false))
}

fn run(text: &str, seed: u64) -> Results {
    let (scenario, findings) = read(text);
    let scenario = scenario.unwrap_or_else(|| panic!("{findings}"));
    let (topology, make) = star();
    let frames = vec![(5, vec![0xff; 60]), (1_000_005, vec![0xff; 60])];
    let replays = BTreeMap::from([("in.pcap".to_owned(), frames)]);
    let files = ScenarioFiles { replays, ..ScenarioFiles::default() };
    let mut run = prepare(&topology, &scenario, seed, &files, make);
    run.run(1, &mut |_| {});
    run.results(&topology, &scenario)
}

const EVERYTHING: &str = r#"
duration = "3s"
[[traffic]]
name = "voice"
kind = "udp"
from = "h1"
to = "h2"
rate = "1Mbps"
size = 125
start = "500ms"
stop = "1500ms"
[[traffic]]
name = "bulk"
kind = "tcp"
from = ["h3", "h4"]
to = "h2"
bytes = 200000
[[traffic]]
name = "search"
kind = "flows"
from = "all"
to = "all"
sizes = 5000
rate = "1Mbps"
stop = "2s"
[[traffic]]
name = "rpc"
kind = "requests"
from = "h1"
to = "h4"
think = "10ms"
[[traffic]]
name = "ping"
kind = "ping"
from = "all"
to = "all"
[[traffic]]
name = "old"
kind = "replay"
from = "h1"
file = "in.pcap"
[[expect]]
traffic = "voice"
delivered = 1.0
latency_p99 = "5ms"
[[expect]]
traffic = "voice"
rate = "10Mbps"
"#;

#[test]
fn every_kind_of_traffic_arrives() {
    let results = run(EVERYTHING, 1);
    let [voice, bulk, search, rpc, ping, old] = &results.traffic[..] else { panic!("six kinds") };
    assert_eq!((voice.measured.sent, voice.measured.received), (1000, 1000));
    assert_eq!((bulk.measured.sent, bulk.measured.received, bulk.measured.bytes), (2, 2, 400_000));
    assert!(search.measured.sent > 100, "{}", search.measured.sent);
    assert!(search.delivered() > 0.98, "{} of {}", search.measured.received, search.measured.sent);
    assert!(rpc.measured.received > 100 && rpc.delivered() > 0.98, "{}", rpc.measured.received);
    assert_eq!((ping.measured.sent, ping.measured.received), (60, 60));
    assert_eq!(old.measured.sent, 2);
    assert_eq!(results.unmet.len(), 1, "{:?}", results.unmet);
    assert!(results.unmet[0].message.contains("the rate in bit/s of `voice`"));
    assert_eq!(results.pairs.iter().filter(|pair| pair.name == "ping").count(), 12);
}

#[test]
fn faults_on_a_schedule_and_at_random_show() {
    let traffic = "duration = \"2s\"\n[[traffic]]\nname = \"v\"\nkind = \"udp\"\nfrom = \"h1\"\nto = \"h2\"\n\
                   rate = \"1Mbps\"\nsize = 125\n";
    let down = format!(
        "{traffic}[[faults]]\nat = \"500ms\"\ndown = [\"s1\", \"h2\"]\n[[faults]]\nat = \"1s\"\nup = [\"h2\", \"s1\"]\n"
    );
    let received = run(&down, 1).traffic[0].measured.received;
    assert!((1490..=1502).contains(&received), "{received} of 2000 arrived with the link down a quarter of the time");
    let parted = format!("{traffic}[[faults]]\nat = \"1s\"\npartition = [\"h1\", \"h3\"]\n");
    assert!((990..=1001).contains(&run(&parted, 1).traffic[0].measured.received));
    let random = format!("{traffic}[random-faults]\nevery = \"100ms\"\nlasts = \"50ms\"\n");
    let (once, again, other) = (run(&random, 1), run(&random, 1), run(&random, 2));
    let received = |results: &Results| results.traffic[0].measured.received;
    assert!(received(&once) < 2000);
    assert_eq!((received(&once), once.totals), (received(&again), again.totals));
    assert_ne!(once.totals, other.totals);
}

/// Runs a thousand datagrams a second from h1 to h2 for two seconds, with these faults.
fn with_faults(faults: &str) -> Results {
    let traffic = "[[traffic]]\nkind = \"udp\"\nfrom = \"h1\"\nto = \"h2\"\nrate = \"1Mbps\"\nsize = 125\n";
    run(&format!("duration = \"2s\"\n{traffic}{faults}"), 1)
}

#[test]
fn what_comes_to_a_switch_that_is_down_is_counted() {
    let crash = "[[faults]]\nat = \"500ms\"\ncrash = \"s1\"\n[[faults]]\nat = \"1s\"\nrestart = \"s1\"\n";
    let results = with_faults(crash);
    let measured = &results.traffic[0].measured;
    assert!((495..=505).contains(&results.totals.lost_on_arrival), "{:?}", results.totals);
    assert_eq!(measured.sent - measured.received, results.totals.lost_on_arrival);
    assert_eq!(with_faults("").totals.lost_on_arrival, 0);
}

#[test]
fn partitions_heal() {
    let parted = "[[faults]]\nat = \"500ms\"\npartition = [\"h1\", \"h3\"]\n";
    let healed = format!("{parted}[[faults]]\nat = \"1500ms\"\nheal = [\"h1\", \"h3\"]\n");
    let received = |faults: &str| with_faults(faults).traffic[0].measured.received;
    assert!((490..=502).contains(&received(parted)), "{}", received(parted));
    assert!((990..=1002).contains(&received(&healed)), "{}", received(&healed));
    // Another partition's healing does not help.
    let other = format!("{parted}[[faults]]\nat = \"1500ms\"\nheal = [\"h3\"]\n");
    assert_eq!(received(&other), received(parted));
}

#[test]
fn slow_hosts_take_their_time_until_they_are_not_slow() {
    let slow = "[[faults]]\nat = \"1s\"\nslow = \"h2\"\nby = \"2ms\"\n";
    let measured = with_faults(slow).traffic[0].measured.clone();
    assert!((1495..=1502).contains(&measured.received), "half of those that came when it was slow: {measured:?}");
    assert!(measured.latency.max() > 400_000_000, "they wait for each other: {measured:?}");
    let eager = format!("{slow}[[faults]]\nat = \"1100ms\"\nslow = \"h2\"\n");
    assert!(with_faults(&eager).traffic[0].measured.received > 1900);
}

#[test]
fn skewed_clocks_are_early_late_or_fast() {
    let last = |skew: &str| {
        let results = with_faults(&format!("[[faults]]\nat = \"1s\"\nskew = \"h1\"\n{skew}"));
        let measured = &results.traffic[0].measured;
        (measured.received, measured.last.expect("something arrived").as_ns() / 1_000_000)
    };
    // A sender whose clock runs twice as fast finishes in half the time.
    let (received, end) = last("drift_ppm = 1000000\n");
    assert!((1990..=2001).contains(&received) && (1495..=1505).contains(&end), "{received} by {end} ms");
    // One that is ahead immediately sends the datagrams that are due, and finishes earlier by the offset.
    let (_, end) = last("offset = \"500ms\"\n");
    assert!((1495..=1505).contains(&end), "{end} ms");
    // One that is behind waits until its clock shows the time.
    let (received, _) = last("behind = \"500ms\"\n");
    assert!((1495..=1502).contains(&received), "{received}");
}

#[test]
fn numbers_that_miss_are_short_and_never_look_as_if_they_met() {
    let udp = "[[traffic]]\nname = \"v\"\nkind = \"udp\"\nrate = \"1Mbps\"\nfrom = \"h1\"\nto = \"h2\"\nsize = 125\n";
    let down = "[[faults]]\nat = \"500ms\"\ndown = [\"s1\", \"h2\"]\n";
    let told = |least: &str| {
        let text = format!("{udp}{down}[[expect]]\ntraffic = \"v\"\ndelivered = {least}\n");
        let results = run(&text, 1);
        let flow = &results.traffic[0].measured;
        (results.unmet[0].message.clone(), flow.received as f64 / flow.sent as f64)
    };
    let (message, share) = told("0.9");
    let short = (share * 1e4).round() / 1e4;
    assert!(message.contains(&format!("is {short}, expected at least 0.9")), "{message}");
    let just_above = share + 1e-9;
    let (message, _) = told(&just_above.to_string());
    let is: f64 = message.split("is ").nth(1).and_then(|rest| rest.split(',').next()).unwrap().parse().unwrap();
    assert!(is < just_above, "{message}");
}

#[test]
fn probes_are_read_and_bounds_hold_both_ways() {
    let probe = r#"
[[traffic]]
name = "look"
kind = "probe"
from = "h1"
to = ["h2", "h3"]
frame = "ffffffffffff 020000000001 88b5 0000012c 0a"
count = 10
interval = "10ms"
values = { ratio = { at = 14, bytes = 4, over = [18, 1], scale = 2 } }
[[expect]]
traffic = "look"
value = "ratio"
mean = [59, 61]
after = "50ms"
[[expect]]
traffic = "look"
value = "ratio"
last = [0, 59]
[[expect]]
traffic = "look"
delivered = [0.0, 0.9]
[[expect]]
link = "s1:2"
frames = [10, 10]
share = [0.3, 0.4]
among = ["s1:2", "s1:3", "s1:4"]
drops = 0
[[expect]]
link = "h1"
rate = ["1kbps", "1Mbps"]
frames = 11
[[expect]]
link = "h2"
queue = 0
share = 0.5
among = ["h2", "h3"]
"#;
    let results = run(probe, 1);
    let look = &results.traffic[0];
    // Ten are sent to two hosts, and both receive them.
    assert_eq!((look.measured.sent, look.measured.received, look.values[0].points.len()), (10, 20, 20));
    assert!(look.values[0].points.iter().all(|(_, value)| *value == 60.0));
    let unmet: Vec<&str> = results.unmet.iter().map(|unmet| unmet.message.as_str()).collect();
    let expected = [
        "the last value of `ratio` of `look` is 60, expected at most 59",
        "the share delivered of `look` is 2, expected at most 0.9",
        "the frames sent at h1 is 10, expected at least 11",
        "the share of frames at h2 was not measured, expected at least 0.5",
    ];
    assert_eq!(unmet, expected);
}

/// Runs the seeds 5 to 24 of a lossy network and returns their digests in the order in which the runs ended.
fn digests(threads: usize) -> Vec<(u64, u64)> {
    let (mut topology, make) = star();
    topology.links.iter_mut().for_each(|link| link.shape.loss = 0.1);
    let scenario = Scenario::all_ping(&topology.traffic_hosts());
    let prepare = |seed| prepare(&topology, &scenario, seed, &ScenarioFiles::default(), Arc::clone(&make));
    let mut digests = Vec::new();
    run_seeds(&topology, &scenario, 5..25, threads, prepare, |seed, results| digests.push((seed, results.digest)));
    digests
}

#[test]
fn each_seed_runs_once_with_the_same_results_on_any_number_of_threads() {
    let alone = digests(1);
    assert!(alone.iter().map(|(seed, _)| *seed).eq(5..25), "{alone:?}");
    assert!(alone.iter().any(|(_, digest)| *digest != alone[0].1), "all runs are the same: {alone:?}");
    let mut parallel = digests(3);
    parallel.sort_unstable();
    assert_eq!(parallel, alone);
}
