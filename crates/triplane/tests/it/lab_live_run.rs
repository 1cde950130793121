//! Scenarios in real time: `triplane lab run`, compared with the same scenario in virtual time.
//!
//! These tests need root. Without it they skip and say so.

use std::time::{Duration, Instant};

use crate::support::network::Network;
use crate::support::{Directory, Done, Running, TEST_TIMEOUT, run, triplane};
use testing::lock::LIVE_TRAFFIC;

/// A path over two switches with a slower link in the middle.
const PATH: &str = r#"
[defaults]
program = "builtin:router"
entries = "shortest-paths"
link = { rate = "100Mbps", delay = "1ms" }

[hosts.h1]
ip = "10.0.0.1/8"
[hosts.h2]
ip = "10.0.0.2/8"
[switches.s1]
[switches.s2]

[[links]]
ends = ["h1", "s1:1"]
[[links]]
ends = ["s1:2", "s2:2"]
rate = "10Mbps"
[[links]]
ends = ["s2:1", "h2"]
"#;

/// Files of a topology and a scenario.
struct Files {
    directory: Directory,
    topology: String,
    scenario: String,
}

impl Files {
    fn new(topology: &str, scenario: &str) -> Files {
        let directory = Directory::new();
        let write = |name: &str, text: &str| {
            let path = directory.path(name);
            std::fs::write(&path, text).expect("the file can be written");
            path
        };
        let (topology, scenario) = (write("path.toml", topology), write("scenario.toml", scenario));
        Files { directory, topology, scenario }
    }

    fn lab(&self, subcommand: &str, arguments: &[&str]) -> Done {
        let words = [&["lab", subcommand, &self.topology, "--scenario", &self.scenario], arguments].concat();
        run(triplane(&words).env("TRIPLANE_LAB_DIR", self.directory.path("labs")))
    }

    /// Number of labs that were left behind.
    fn left(&self) -> usize {
        let entries = std::fs::read_dir(self.directory.path("labs"));
        entries.map_or(0, |entries| entries.flatten().filter(|entry| entry.path().is_dir()).count())
    }
}

/// Repeats an attempt that a busy machine can spoil, since it is late for what happens in real time. One of five must
/// succeed.
#[track_caller]
fn one_of_five(mut attempt: impl FnMut() -> Result<(), String>) {
    for _ in 0..4 {
        if attempt().is_ok() {
            return;
        }
    }
    attempt().unwrap_or_else(|wrong| panic!("{wrong}"));
}

/// Returns an error with this text unless the condition holds.
fn check(holds: bool, text: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(text()) }
}

fn is_possible() -> bool {
    let obstacle = Network::obstacle(&[]);
    obstacle.iter().for_each(|reason| testing::skip(reason));
    obstacle.is_none()
}

/// Of 15 Mbit/s over a link of 10 Mbit/s a third is lost, live and simulated, and the rest arrives at the rate of the
/// link.
#[test]
fn rates_and_losses_are_those_of_the_simulation() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    if !is_possible() {
        return;
    }
    let scenario = "duration = \"3s\"\n[[traffic]]\nname = \"flood\"\nkind = \"udp\"\nfrom = \"h1\"\nto = \"h2\"\n\
                    rate = \"15Mbps\"\nsize = 1000\nstart = \"200ms\"\nstop = \"2800ms\"\n";
    let files = Files::new(PATH, scenario);
    let simulated = files.lab("sim", &["--json"]).ok().json();
    for isolate in [&["--json"][..], &["--json", "--isolate"]] {
        one_of_five(|| {
            let live = files.lab("run", isolate).ok().json();
            let of = |results: &serde_json::Value, what: &str| results["traffic"][0][what].as_f64().expect("a number");
            let loss = |results| 1.0 - of(results, "received") / of(results, "sent");
            check(of(&live, "sent") == of(&simulated, "sent"), || format!("{live:#}"))?;
            let rate = of(&live, "rate_bps") / of(&simulated, "rate_bps");
            check((0.95..1.05).contains(&rate), || format!("{rate} of the rate: {live:#}\n{simulated:#}"))?;
            let difference = loss(&live) - loss(&simulated);
            check(difference.abs() < 0.02, || format!("{difference}: {live:#}\n{simulated:#}"))
        });
    }
    assert_eq!(files.left(), 0);
}

#[test]
fn faults_come_and_go_in_real_time() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    if !is_possible() {
        return;
    }
    let traffic = "duration = \"2s\"\n[[traffic]]\nname = \"v\"\nkind = \"udp\"\nfrom = \"h1\"\nto = \"h2\"\nrate = \"1Mbps\"\n\
                   size = 500\n";
    let delivered = |faults: &str| {
        let files = Files::new(PATH, &format!("{traffic}{faults}"));
        let results = files.lab("run", &["--json"]).ok().json();
        let of = |what: &str| results["traffic"][0][what].as_f64().expect("a number");
        assert_eq!(files.left(), 0);
        of("received") / of("sent")
    };
    // Each fault lasts half of the time; a restart takes additional time.
    for faults in [
        "[[faults]]\nat = \"500ms\"\ndown = [\"s1\", \"s2\"]\n[[faults]]\nat = \"1500ms\"\nup = [\"s2\", \"s1\"]\n",
        "[[faults]]\nat = \"500ms\"\ndown = [\"h2\", \"s2\"]\n[[faults]]\nat = \"1500ms\"\nup = [\"h2\", \"s2\"]\n",
        "[[faults]]\nat = \"500ms\"\ncrash = \"s2\"\n[[faults]]\nat = \"1500ms\"\nrestart = \"s2\"\n",
        "[[faults]]\nat = \"500ms\"\npartition = [\"h1\", \"s1\"]\n[[faults]]\nat = \"1500ms\"\nheal = [\"h1\", \
         \"s1\"]\n",
        // At 8 ms per frame half of the frames that come every 4 ms arrive in time.
        "[[faults]]\nat = \"0ms\"\nslow = \"h2\"\nby = \"8ms\"\n",
    ] {
        one_of_five(|| {
            let share = delivered(faults);
            check((0.40..0.60).contains(&share), || format!("{share} with\n{faults}"))
        });
    }
}

#[test]
fn what_is_expected_is_checked_and_what_cannot_be_is_refused() {
    if !is_possible() {
        return;
    }
    let ping = "duration = \"1s\"\n[[traffic]]\nname = \"p\"\nkind = \"ping\"\nfrom = \"all\"\nto = \"all\"\ncount = 3\n\
                interval = \"100ms\"\n[[expect]]\ntraffic = \"p\"\ndelivered = 1.0\n";
    let files = Files::new(PATH, ping);
    one_of_five(|| {
        let done = files.lab("run", &[]);
        let is_right = done.code == Some(0) && done.stdout.contains("p        2 hosts  2 hosts     6        6  echoes");
        check(is_right, || format!("{done:?}"))
    });
    // The path takes 6 ms; no answer can come earlier.
    let files = Files::new(PATH, &format!("{ping}latency_p50 = \"5ms\"\n"));
    let done = files.lab("run", &[]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("the median latency in ns of `p`") && done.stderr.contains(":12:"), "{done:?}");
    assert_eq!(files.left(), 0);

    let wrong = "duration = \"1s\"\n[[traffic]]\nkind = \"tcp\"\nfrom = \"h1\"\nto = \"h2\"\necn = true\n[[faults]]\nat = \"0s\"\n\
                 skew = \"h1\"\n[[faults]]\nat = \"0s\"\ncrash = \"h2\"\n[[expect]]\nlink = \"s1:2\"\nqueue = 7\n\
                 [[traffic]]\nkind = \"rcp\"\nfrom = \"h1\"\nto = \"h2\"\n[[traffic]]\nkind = \"tcp\"\nfrom = \"h1\"\n\
                 to = \"h2\"\nminion = \"a.tpp\"\n[[traffic]]\nkind = \"conga\"\nfrom = \"h1\"\nto = \"h2\"\n\
                 rate = \"1Mbps\"\n[[traffic]]\nkind = \"hpcc\"\nfrom = \"h1\"\nto = \"h2\"\n";
    let files = Files::new(PATH, wrong);
    let done = files.lab("run", &[]);
    assert_eq!(done.code, Some(1), "{done:?}");
    for expected in [
        "`traffic 1`: ECN marks cannot be counted on a live network",
        "clocks cannot be skewed on a live network",
        "the host `h2` cannot be crashed on a live network",
        "queues and marks cannot be measured on a live network",
        "`traffic 2`: tiny packet programs cannot be sent on a live network",
        "`traffic 3`: tiny packet programs cannot be sent on a live network",
        "`traffic 5`: tiny packet programs cannot be sent on a live network",
        "`traffic 4`: flows over several paths cannot be sent on a live network",
        "8 errors found; nothing was run",
    ] {
        assert!(done.stderr.contains(expected), "{expected} is not in {done:?}");
    }
    assert!(!std::path::Path::new(&files.directory.path("labs")).exists(), "nothing was made");
}

/// A scenario with every kind of traffic, sent to a receiver that counts it identically in both worlds.
#[test]
fn one_scenario_plays_in_both_worlds() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    if !is_possible() {
        return;
    }
    let scenario = r#"
duration = "3s"
seed = 77
[[traffic]]
name = "calls"
kind = "requests"
from = "h1"
to = "h2"
request = 200
response = 3000
think = "20ms"
stop = "2500ms"
[[traffic]]
name = "pages"
kind = "flows"
from = ["h1", "h2"]
to = ["h1", "h2"]
sizes = 5_000
rate = "400kbps"
stop = "2s"
[[traffic]]
name = "file"
kind = "tcp"
from = "h2"
to = "h1"
bytes = 100_000
[[traffic]]
name = "probe"
kind = "probe"
from = "h1"
to = "h1"
frame = "020000000001 020000000002 88b5 0102 0304"
interval = "100ms"
count = 10
values = { word = { at = 14, bytes = 2 }, ratio = { at = 17, bytes = 1, over = [15, 1] } }
[[traffic]]
name = "again"
kind = "replay"
from = "h1"
file = "again.pcap"
[[expect]]
traffic = "calls"
delivered = 0.99
[[expect]]
traffic = "pages"
delivered = 1.0
[[expect]]
traffic = "file"
delivered = 1.0
[[expect]]
traffic = "probe"
value = "word"
mean = [258, 258]
[[expect]]
traffic = "probe"
value = "ratio"
last = [2, 2]
[[expect]]
link = "s1:1"
frames = 20
"#;
    // Probes come back from a switch that returns every probe frame to its sender.
    let mirror = "\
#include <core.p4>\n#include <v1model.p4>\nheader e_t { bit<48> d; bit<48> s; bit<16> t; }\nheader i_t { bit<128> a; bit<32> to; }\n\
struct H { e_t e; i_t i; }\nstruct M {}\n\
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t s) {\n\
  state start { b.extract(h.e); transition select(h.e.t) { 0x0800: ip; default: accept; } }\n\
  state ip { b.extract(h.i); transition accept; } }\n\
control V(inout H h, inout M m) { apply {} }\n\
control I(inout H h, inout M m, inout standard_metadata_t s) { apply {\n\
  s.egress_spec = s.ingress_port;\n\
  if (h.e.t == 0x0800) { if (h.i.to == 0x0a000001) s.egress_spec = 1; else s.egress_spec = 2; } } }\n\
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }\n\
control C(inout H h, inout M m) { apply {} }\n\
control D(packet_out b, in H h) { apply { b.emit(h.e); b.emit(h.i); } }\n\
V1Switch(P(), V(), I(), E(), C(), D()) main;\n";
    let topology = r#"
[hosts.h1]
ip = "10.0.0.1/8"
mac = "02:00:00:00:00:01"
neighbours = { "10.0.0.2" = "02:00:00:00:00:02" }
[hosts.h2]
ip = "10.0.0.2/8"
mac = "02:00:00:00:00:02"
neighbours = { "10.0.0.1" = "02:00:00:00:00:01" }
[switches.s1]
program = "mirror.p4"
[[links]]
ends = ["h1", "s1:1"]
rate = "100Mbps"
[[links]]
ends = ["s1:2", "h2"]
rate = "100Mbps"
"#;
    let files = Files::new(topology, scenario);
    files.directory.write("mirror.p4", mirror);
    let mut capture = wire::pcap::Writer::new(Vec::new()).expect("memory can be written");
    for (at, byte) in [(0, 1), (5_000_000, 2), (9_000_000, 3)] {
        let frame = [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb6][..], &[byte; 50]].concat();
        capture.write(at, &frame).expect("memory can be written");
    }
    files.directory.write("again.pcap", capture.into_inner());
    let simulated = files.lab("sim", &["--json"]).ok().json();
    for isolate in [&["--json"][..], &["--json", "--isolate"]] {
        one_of_five(|| {
            let done = files.lab("run", isolate);
            check(done.code == Some(0), || format!("{done:?}"))?;
            let live = done.json();
            assert_eq!(live["seed"], 77, "the scenario's: {live:#}");
            for (number, counted) in [(2, true), (3, true), (4, false)] {
                let (live, simulated) = (&live["traffic"][number], &simulated["traffic"][number]);
                assert_eq!(live["name"], simulated["name"]);
                check(live["sent"] == simulated["sent"], || format!("{live:#}\n{simulated:#}"))?;
                check(live["received"] == simulated["received"], || format!("{live:#}\n{simulated:#}"))?;
                check(!counted || live["received"].as_u64() > Some(0), || format!("{live:#}"))?;
            }
            Ok(())
        });
    }
    assert_eq!(files.left(), 0);
}

/// Requests go out at their times, whether or not the ones before were answered.
#[test]
fn pings_do_not_wait_for_answers() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    if !is_possible() {
        return;
    }
    let scenario = "duration = \"2s\"\n[[traffic]]\nname = \"p\"\nkind = \"ping\"\nfrom = \"h1\"\nto = \"h2\"\ncount = 15\n\
                    interval = \"100ms\"\n[[faults]]\nat = \"0s\"\ncrash = \"s2\"\n";
    let files = Files::new(PATH, scenario);
    one_of_five(|| {
        let results = files.lab("run", &["--json"]).ok().json();
        check(results["traffic"][0]["sent"] == 15, || format!("{results:#}"))?;
        check(results["traffic"][0]["received"] == 0, || format!("{results:#}"))
    });
}

/// A killed `lab run` leaves no network behind.
#[test]
fn a_run_that_is_killed_takes_its_network_with_it() {
    if !is_possible() {
        return;
    }
    let files = Files::new(PATH, "duration = \"50s\"\n");
    let words = ["lab", "run", &files.topology, "--scenario", &files.scenario];
    let mut running = Running::start(triplane(&words).env("TRIPLANE_LAB_DIR", files.directory.path("labs")));
    running.wait_for("up in");
    assert_eq!(files.left(), 1);
    running.signal("KILL");
    let began = Instant::now();
    while files.left() > 0 && began.elapsed() < TEST_TIMEOUT {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(files.left(), 0);
}
