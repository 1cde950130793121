//! Scenarios in real time: `triplane lab run`, held against the same scenario in virtual time.
//!
//! These tests need root. Where that is missing they skip, and say so.

mod support;

use support::network::Network;
use support::{Directory, Done, run, triplane};

/// A path of two switches whose middle is slower.
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

/// A topology and a scenario, in files.
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

    /// Names of labs that were left behind.
    fn left(&self) -> usize {
        let entries = std::fs::read_dir(self.directory.path("labs"));
        entries.map_or(0, |entries| entries.flatten().filter(|entry| entry.path().is_dir()).count())
    }
}

fn is_possible() -> bool {
    let obstacle = Network::obstacle(&[]);
    obstacle.iter().for_each(|reason| skip::test(reason));
    obstacle.is_none()
}

/// Of 15 Mbit/s over 10 Mbit/s a third is lost, live and simulated, and the rest arrives at the rate of the link.
#[test]
fn rates_and_losses_are_those_of_the_simulation() {
    if !is_possible() {
        return;
    }
    let scenario = "duration = \"3s\"\n[[traffic]]\nname = \"flood\"\nkind = \"udp\"\nfrom = \"h1\"\nto = \"h2\"\n\
                    rate = \"15Mbps\"\nsize = 1000\nstart = \"200ms\"\nstop = \"2800ms\"\n";
    let files = Files::new(PATH, scenario);
    let simulated = files.lab("sim", &["--json"]).ok().json();
    for isolate in [&["--json"][..], &["--json", "--isolate"]] {
        let live = files.lab("run", isolate).ok().json();
        let of = |results: &serde_json::Value, what: &str| results["traffic"][0][what].as_f64().expect("a number");
        let loss = |results| 1.0 - of(results, "received") / of(results, "sent");
        assert_eq!(of(&live, "sent"), of(&simulated, "sent"), "{live:#}");
        let rate = of(&live, "rate_bps") / of(&simulated, "rate_bps");
        assert!((0.95..1.05).contains(&rate), "{rate} of the rate: {live:#}\n{simulated:#}");
        let difference = loss(&live) - loss(&simulated);
        assert!(difference.abs() < 0.02, "{difference}: {live:#}\n{simulated:#}");
    }
    assert_eq!(files.left(), 0);
}

#[test]
fn faults_come_and_go_in_real_time() {
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
    // Half of the time each; a start takes its time.
    for faults in [
        "[[faults]]\nat = \"500ms\"\ndown = [\"s1\", \"s2\"]\n[[faults]]\nat = \"1500ms\"\nup = [\"s2\", \"s1\"]\n",
        "[[faults]]\nat = \"500ms\"\ndown = [\"h2\", \"s2\"]\n[[faults]]\nat = \"1500ms\"\nup = [\"h2\", \"s2\"]\n",
        "[[faults]]\nat = \"500ms\"\ncrash = \"s2\"\n[[faults]]\nat = \"1500ms\"\nrestart = \"s2\"\n",
        "[[faults]]\nat = \"500ms\"\npartition = [\"h1\", \"s1\"]\n[[faults]]\nat = \"1500ms\"\nheal = [\"h1\", \"s1\"]\n",
        // At 8 ms a frame half of those that come every 4 ms get through in time.
        "[[faults]]\nat = \"0ms\"\nslow = \"h2\"\nby = \"8ms\"\n",
    ] {
        let share = delivered(faults);
        assert!((0.40..0.60).contains(&share), "{share} with\n{faults}");
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
    let done = files.lab("run", &[]).ok();
    assert!(done.stdout.contains("p        2 hosts  2 hosts     6        6  echoes"), "{done:?}");
    // The way is 6 ms; nobody answers earlier.
    let files = Files::new(PATH, &format!("{ping}latency_p50 = \"5ms\"\n"));
    let done = files.lab("run", &[]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("the median latency in ns of `p`") && done.stderr.contains(":12:"), "{done:?}");
    assert_eq!(files.left(), 0);

    let wrong = "duration = \"1s\"\n[[traffic]]\nkind = \"requests\"\nfrom = \"h1\"\nto = \"h2\"\n[[faults]]\nat = \"0s\"\n\
                 skew = \"h1\"\n[[faults]]\nat = \"0s\"\ncrash = \"h2\"\n[[expect]]\nlink = \"s1:2\"\nqueue = 7\n";
    let files = Files::new(PATH, wrong);
    let done = files.lab("run", &[]);
    assert_eq!(done.code, Some(1), "{done:?}");
    for expected in [
        "`traffic 1`: requests are not sent in real time",
        "clocks are not skewed in real time",
        "the host `h2` does not crash in real time",
        "this is not measured in real time",
        "4 mistakes found; nothing was run",
    ] {
        assert!(done.stderr.contains(expected), "{expected} is not in {done:?}");
    }
    assert!(!std::path::Path::new(&files.directory.path("labs")).exists(), "nothing was made");
}
