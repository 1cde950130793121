//! A network of namespaces: `triplane lab up` and the commands that act on it.
//!
//! These tests need root and some tools. Where those are missing the tests skip and say so.

use std::time::{Duration, Instant};

use crate::support::network::Network;
use crate::support::{self, Directory, Done, Running, TEST_TIMEOUT, run, triplane, unique};
use testing::lock::LIVE_TRAFFIC;

/// A network that is up. Dropping this takes it down.
struct Lab {
    name: String,
    directory: Directory,
}

impl Lab {
    /// Starts a network of this shape. Returns `None`, and skips the test, where that is not possible.
    fn up(name: &str, shape: &[&str], tools: &[&str]) -> Option<Lab> {
        Lab::up_with(name, shape, tools, "")
    }

    /// Does the same with these lines among the defaults.
    fn up_with(name: &str, shape: &[&str], tools: &[&str], defaults: &str) -> Option<Lab> {
        if let Some(reason) = Network::obstacle(tools) {
            testing::skip(&reason);
            return None;
        }
        let directory = Directory::new();
        let path = directory.path("lab.toml");
        let made = run(&mut triplane(&[&["lab", "new"], shape].concat())).ok();
        let text = made.stdout.replacen("[defaults]\n", &format!("[defaults]\n{defaults}"), 1);
        std::fs::write(&path, text).expect("the file can be written");
        let lab = Lab { name: format!("{name}-{}", unique()), directory };
        run(&mut triplane(&["lab", "up", &path, "--name", &lab.name])).ok();
        Some(lab)
    }

    /// Runs a subcommand on the network.
    fn lab(&self, command: &str, arguments: &[&str]) -> Done {
        run(&mut triplane(&[&["lab", command, "--lab", &self.name], arguments].concat()))
    }

    /// Sends a ping from h1 to h2, which must answer within 20 s, and returns the output.
    #[track_caller]
    fn ping(&self) -> String {
        self.lab("exec", &["h1", "ping", "-n", "-c", "1", "-W", "20", "10.0.0.2"]).ok().stdout
    }

    /// Waits until h2 answers pings from h1.
    #[track_caller]
    fn connects(&self) {
        let began = Instant::now();
        while self.pings(1) == 0 {
            assert!(began.elapsed() < TEST_TIMEOUT, "h1 does not reach h2");
        }
    }

    /// Sends `count` pings from h1 to h2 and returns the number of answers. A busy machine may answer too late.
    fn pings(&self, count: u32) -> u32 {
        self.pings_between("h1", "10.0.0.2", count)
    }

    /// Sends `count` pings from a host to an address and returns the number of answers.
    fn pings_between(&self, from: &str, to: &str, count: u32) -> u32 {
        let count = count.to_string();
        let done = self.lab("exec", &[from, "ping", "-n", "-i", "0.1", "-W", "1", "-c", &count, to]);
        let before = done.stdout.split(" received").next().unwrap_or_default();
        before.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{done:?}"))
    }

    /// Returns the id of the process that holds the network.
    fn process(&self) -> u32 {
        let directories = ["/run/triplane-lab".to_owned(), std::env::var("XDG_RUNTIME_DIR").unwrap_or_default()];
        let text = directories
            .iter()
            .find_map(|directory| std::fs::read_to_string(format!("{directory}/{}/lab.json", self.name)).ok());
        let room: serde_json::Value = serde_json::from_str(&text.expect("the lab tells of itself")).expect("as JSON");
        u32::try_from(room["pid"].as_u64().expect("a number")).expect("of a process")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = run(&mut triplane(&["lab", "down", &self.name]));
    }
}

#[test]
fn hosts_reach_each_other_over_links_that_fail_and_switches_that_crash() {
    let Some(lab) = Lab::up("paths", &["line", "--switches", "2", "--delay", "5ms"], &["ping"]) else { return };
    let text = [(); 3].map(|()| lab.ping()).concat();
    assert_eq!(text.matches("ttl=62").count(), 3, "{text}");
    // Six link delays of 5 ms each, and the time that this machine takes.
    let times: Vec<f64> =
        text.lines().filter_map(|line| line.split("time=").nth(1)?.split(' ').next()?.parse().ok()).collect();
    assert!(times.iter().all(|ms| *ms >= 30.0), "{text}");

    lab.lab("link", &["down", "s1", "s2"]).ok();
    assert_eq!(lab.pings(2), 0);
    lab.lab("link", &["up", "s1", "s2"]).ok();
    lab.connects();

    lab.lab("fail", &["s2"]).ok();
    let status = lab.lab("status", &["--json"]).ok().json();
    assert_eq!(status["switches"][1]["failed"], true, "{status:#}");
    assert_eq!(lab.pings(2), 0);
    // s1 sees its port to s2 go down, and sends nothing there. h2 does.
    assert_eq!(lab.pings_between("h2", "10.0.0.1", 1), 0);
    lab.lab("heal", &["s2"]).ok();
    lab.connects();

    let status = lab.lab("status", &["--json"]).ok().json();
    assert!(status["switches"][0]["counters"]["port.1.rx.packets"].as_u64() >= Some(5), "{status:#}");
    let lost = status["switches"][1]["ports"].as_array().expect("ports").iter();
    let lost: u64 = lost.filter_map(|port| port["lost_while_failed"].as_u64()).sum();
    assert!(lost > 0, "the ping that arrived at s2 while it was down: {status:#}");
    let text = lab.lab("status", &[]).ok().stdout;
    assert!(text.contains(" while the switch was down\n"), "{text}");
    assert!(text.contains("s2:2") && text.contains("h2  10.0.0.2/8  at s2:1"), "{text}");

    for (command, arguments, expected) in [
        ("fail", &["s9"][..], "there is no switch `s9`; the switches are s1, s2"),
        ("link", &["down", "h1", "h2"][..], "there is no link between `h1` and `h2`"),
        ("exec", &["h9", "true"][..], "there is no host `h9`; the hosts are h1, h2"),
        ("pcap", &["s1:7", "/dev/null"][..], "`s1` has no port 7"),
    ] {
        let done = lab.lab(command, arguments);
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.stderr.contains(expected), "{done:?}");
    }
    let done = lab.lab("exec", &["h1", "no-such-program"]);
    assert_eq!(done.code, Some(3), "{done:?}");
    let expected = "`no-such-program` is not installed; the hosts of a lab run the programs of this machine";
    assert!(done.stderr.contains(expected), "{done:?}");
}

#[test]
fn rates_of_links_hold_for_tcp() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let shape = ["line", "--switches", "2", "--rate", "20Mbps", "--delay", "1ms"];
    let Some(lab) = Lab::up("rate", &shape, &["iperf3"]) else { return };
    let server = ["lab", "exec", "--lab", &lab.name, "h2", "iperf3", "--server", "--one-off", "--forceflush"];
    let mut server = support::Running::start(&mut triplane(&server));
    server.wait_for("listening");
    let client = lab.lab("exec", &["h1", "iperf3", "--client", "10.0.0.2", "--time", "3", "--json"]).ok().json();
    server.wait().ok();
    let rate = client["end"]["sum_received"]["bits_per_second"].as_f64().expect("a number");
    // The payload is 1448 bytes of every 1514: 19.1 Mbit/s at most. A busy machine may be slower.
    assert!(rate > 0.0 && rate < 19.4e6, "{rate} bit/s over 20 Mbit/s");
}

#[test]
fn captures_show_what_passes_a_port() {
    let Some(lab) = Lab::up("capture", &["star", "--hosts", "2"], &["ping"]) else { return };
    let directory = Directory::new();
    let path = directory.path("s1.pcap");
    let capture = support::Running::start(&mut triplane(&["lab", "pcap", "--lab", &lab.name, "s1:1", &path]));
    let began = Instant::now();
    let frames = loop {
        lab.pings(2);
        let bytes = std::fs::read(&path).unwrap_or_default();
        let frames = wire::pcap::Reader::new(bytes.as_slice()).map(|reader| reader.flatten().count()).unwrap_or(0);
        if frames >= 4 || began.elapsed() > TEST_TIMEOUT {
            break frames;
        }
    };
    capture.signal("INT");
    assert!(frames >= 4, "{frames} frames were captured");
}

#[test]
fn nothing_stays_behind_a_crash() {
    let Some(lab) = Lab::up("crash", &["star", "--hosts", "2"], &["ping"]) else { return };
    let process = lab.process();
    let namespace = std::fs::read_link(format!("/proc/{process}/ns/net")).expect("the holder has a namespace");
    assert_ne!(namespace, std::fs::read_link("/proc/self/ns/net").expect("so has this test"));
    run(std::process::Command::new("sh").args(["-c", &format!("kill -9 {process}")])).ok();
    let began = Instant::now();
    while std::fs::read_link(format!("/proc/{process}/ns/net")).is_ok() && began.elapsed() < TEST_TIMEOUT {
        std::thread::sleep(Duration::from_millis(10));
    }
    let done = lab.lab("status", &[]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.contains("there is no lab"), "{done:?}");
    // Another user who can write there could name any process as the process of a lab.
    let shared = Directory::new();
    std::fs::create_dir(shared.path("crash")).expect("the directory is there");
    run(std::process::Command::new("chmod").args(["1777", &shared.path("")])).ok();
    let refused = run(triplane(&["lab", "down", "crash"]).env("TRIPLANE_LAB_DIR", shared.path("")));
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("other users can write to it"), "{refused:?}");
    // The name can be used again.
    let again = Lab::up("crash", &["star", "--hosts", "2"], &["ping"]).expect("it could be made before");
    again.connects();
}

#[test]
fn packets_ask_the_switches_on_their_path() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let shape = ["line", "--switches", "2", "--delay", "1ms", "--rate", "100Mbps"];
    let Some(lab) = Lab::up_with("tpp", &shape, &["ping"], "tpp = \"read\"\n") else { return };
    lab.connects();
    let tool = triplane(&[]).get_program().to_string_lossy().into_owned();
    let on_h1 = |arguments: &[&str]| lab.lab("exec", &[&["h1", &tool, "tpp"], arguments].concat());
    let silent = on_h1(&["trace", "10.0.0.2", "--timeout", "0.2"]);
    let reason = "10.0.0.2 has no receiver of programs: run `triplane tpp echo` there";
    assert!(silent.code != Some(0) && silent.stderr.contains(reason), "{silent:?}");

    let mut echo = triplane(&["lab", "exec", "--lab", &lab.name, "h2", &tool, "tpp", "echo", "10.0.0.2"]);
    let mut echo = Running::start(&mut echo);
    echo.wait_for("press Ctrl-C to stop");
    let found = on_h1(&["trace", "10.0.0.2", "--timeout", "5", "--json"]).ok().json();
    let words = |name: &str| -> Vec<Option<u64>> {
        found["hops"].as_array().expect("hops").iter().map(|hop| hop[name].as_u64()).collect()
    };
    assert_eq!(words("switch"), [Some(1), Some(2)], "{found:#}");
    assert!(words("queue").iter().all(Option::is_some), "{found:#}");
    assert!(found["rtt_ns"].as_u64() >= Some(6_000_000), "three links of 1 ms, there and back: {found:#}");
    let table = on_h1(&["trace", "10.0.0.2", "--timeout", "5"]).ok().stdout;
    assert!(table.starts_with("10.0.0.2: 2 switches, ") && table.contains("hop  switch  in  out  queue"), "{table}");
    // Hops have the numbers that `run` and the language give them.
    assert!(table.contains("\n  0       1 ") && table.contains("\n  1       2 "), "{table}");

    let file = lab.directory.write("ports.tpp", "PUSH [Switch:ID]\nPUSH [PacketMetadata:OutputPort]\n");
    let ran = on_h1(&["run", &file, "10.0.0.2", "--timeout", "5"]).ok().stdout;
    assert!(ran.contains("hop 0: Switch:ID 1, PacketMetadata:OutputPort "), "{ran}");
    assert!(ran.contains("hop 1: Switch:ID 2, PacketMetadata:OutputPort "), "{ran}");

    let ran = on_h1(&["run", &file, "10.0.0.2", "--timeout", "5", "--json"]).ok().json();
    assert_eq!((&ran["hops"][1][0]["value"], ran["rtt_ns"].is_u64()), (&2.into(), true), "{ran:#}");

    let pinged = on_h1(&["ping", "10.0.0.2", "-c", "2", "-i", "0.01", "--timeout", "5", "--json"]).ok().stdout;
    let lines: Vec<serde_json::Value> = pinged.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let sequences: Vec<_> = lines.iter().map(|line| line["sequence"].as_u64()).collect();
    assert_eq!((sequences, &lines[1]["hops"][0]["switch"]), (vec![Some(1), Some(2)], &1.into()), "{pinged}");
    let pings = on_h1(&["ping", "10.0.0.2", "-c", "3", "-i", "0.01", "--timeout", "5"]).ok().stdout;
    assert!(pings.contains("3 of 3 came back") && pings.matches("queues: s1 ").count() == 3, "{pings}");
    echo.signal("INT");
    assert!(echo.wait().ok().stdout.contains("0 datagrams ignored"));
}

#[test]
fn packets_write_words_of_the_switches_if_the_lab_permits_it() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let tool = triplane(&[]).get_program().to_string_lossy().into_owned();
    for access in ["read", "write"] {
        let options = format!("tpp = \"{access}\"\ntpp_limit = 100000\n");
        let Some(lab) = Lab::up_with("tpw", &["line", "--switches", "2"], &["ping"], &options) else { return };
        lab.connects();
        let mut echo = triplane(&["lab", "exec", "--lab", &lab.name, "h2", &tool, "tpp", "echo", "10.0.0.2"]);
        let mut echo = Running::start(&mut echo);
        echo.wait_for("press Ctrl-C to stop");
        let run = |program: &str, format: &[&str]| {
            let file = lab.directory.write("program.tpp", program);
            let arguments = ["h1", &tool, "tpp", "run", &file, "10.0.0.2", "--timeout", "5"];
            lab.lab("exec", &[&arguments, format].concat()).ok()
        };
        let on_h1 = |program: &str| run(program, &["--json"]).json();
        // The second switch only, which is the one with hop number 1.
        let wrote = on_h1("CEXEC [PacketMetadata:TPP-Hop], 0xff, 1\nCSTORE [Switch:AppSpecific_0], 0, 5\n");
        let read = on_h1("PUSH [Switch:ID]\nPUSH [Switch:AppSpecific_0]\n");
        let words: Vec<_> = [0, 1].map(|hop| read["hops"][hop][1]["value"].as_u64()).into();
        let (status, stored) = if access == "write" { ("done", 5) } else { ("done,suppressed", 0) };
        assert_eq!((&wrote["status"], words), (&status.into(), vec![Some(0), Some(stored)]), "{wrote:#} {read:#}");
        // What was not permitted has a remedy.
        let shown = run("CSTORE [Switch:AppSpecific_1], 0, 5\n", &["--switch", "2"]);
        let is_denied = shown.stdout.contains("CSTORE 1: not permitted by the switch");
        let has_remedy =
            shown.stderr.contains("`triplane run --tpp-writes`, or tpp = \"write\" below [defaults] of a lab");
        assert_eq!((is_denied, has_remedy), (access == "read", access == "read"), "{shown:?}");
        echo.signal("INT");
        echo.wait().ok();
    }
}

#[test]
fn programs_are_executed_by_chosen_switches_and_in_several_packets() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let tool = triplane(&[]).get_program().to_string_lossy().into_owned();
    let shape = ["line", "--switches", "3", "--delay", "1ms", "--rate", "100Mbps"];
    let Some(lab) = Lab::up_with("tpx", &shape, &["ping"], "tpp = \"write\"\n") else { return };
    lab.connects();
    let run = |program: &str, options: &[&str]| {
        let file = lab.directory.write("program.tpp", program);
        let command = [&["h1", &tool, "tpp", "run", &file, "10.0.0.3", "--timeout", "5", "--json"], options].concat();
        lab.lab("exec", &command)
    };
    let large = "PUSH [Switch:ID]\nPUSH [PacketMetadata:InputPort]\nPUSH [PacketMetadata:OutputPort]\n\
                 PUSH [Queue:QueueOccupancy]\nPUSH [PacketMetadata:HopLatency]\nPUSH [Switch:Clock]\n\
                 PUSH [Switch:Clock.High]\nPUSH [Switch:Ports]\n";
    // Nobody echoes programs yet: a switch sends them back.
    let reflected = run(large, &["--switch", "2", "--reflect"]).ok().json();
    assert_eq!((reflected["place"].as_u64(), &reflected["sent"]), (Some(1), &3.into()), "{reflected:#}");
    assert_eq!((&reflected["hops"][0][0]["value"], &reflected["hops"][0][7]["value"]), (&2.into(), &3.into()));

    let mut echo = triplane(&["lab", "exec", "--lab", &lab.name, "h3", &tool, "tpp", "echo", "10.0.0.3"]);
    let mut echo = Running::start(&mut echo);
    echo.wait_for("press Ctrl-C to stop");
    let words = |found: &serde_json::Value, word: usize| -> Vec<Option<u64>> {
        found["hops"].as_array().expect("hops").iter().map(|hop| hop[word]["value"].as_u64()).collect()
    };
    let found = run(large, &[]).ok().json();
    assert_eq!(
        (words(&found, 0), words(&found, 7)),
        (vec![Some(1), Some(2), Some(3)], vec![Some(2), Some(3), Some(2)])
    );
    assert_eq!((&found["sent"], &found["paths_differ"]), (&2.into(), &false.into()), "{found:#}");

    // Each switch on its own; the last one does not exist.
    let cstore = "CSTORE [Switch:AppSpecific_0], 0, 5\n";
    let verdicts = |found: serde_json::Value| -> Vec<serde_json::Value> {
        found["targets"].as_array().expect("targets").iter().map(|it| it["stores"][0]["verdict"].clone()).collect()
    };
    assert_eq!(verdicts(run(cstore, &["--switch", "2,3,9"]).ok().json()), ["stored", "stored", "not_reached"]);
    assert_eq!(verdicts(run(cstore, &["--switch", "1,2"]).ok().json()), ["stored", "has_new_value"]);
    let own = run(cstore, &["--switch", "1,2", "--own-values"]).ok().json();
    assert_eq!(verdicts(own), ["stored_earlier", "stored_earlier"]);
    let other = run("CSTORE [Switch:AppSpecific_0], 0, 6\n", &["--switch", "3"]).ok().json();
    let store = &other["stores"][0];
    assert_eq!((&store["verdict"], &store["found"]), (&"not_stored".into(), &5.into()), "{other:#}");
    // On the whole path it might be executed twice.
    assert!(run(cstore, &[]).stderr.contains("error[unsafe-retry]"));
    // The status has the counts.
    let status = lab.lab("status", &["--json"]).ok().json();
    let s2 = &status["switches"][1];
    let counters = s2["counters"].as_object().expect("counters").iter();
    let executed: u64 =
        counters.filter(|(name, _)| name.ends_with(".tpp.executed")).filter_map(|(_, count)| count.as_u64()).sum();
    assert!(executed >= 11, "{executed}");
    assert_eq!(s2["tiny_programs"]["executed"], executed, "{s2:#}");
    let text = lab.lab("status", &[]).ok().stdout;
    assert!(text.contains(&format!("\ns2  {executed} tiny packet programs executed\n")), "{text}");
    echo.signal("INT");
    echo.wait().ok();
}
