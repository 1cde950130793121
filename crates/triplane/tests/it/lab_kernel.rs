//! Live labs whose switches run their programs in the kernel: `kernel` in a topology, and `lab up --kernel`.
//!
//! Most tests need root and some tools. Where those are missing they skip and say so.

use std::net::TcpListener;

use serde_json::{Value, json};
use testing::lock::LIVE_TRAFFIC;
use testing::port::reserved_ports;

use crate::support::controller::set_program;
use crate::support::labs::{Labs, kill, until};
use crate::support::{Directory, Running, TEST_TIMEOUT, drop_line, root, run, triplane};

/// The router between two hosts, on links that the kernel can carry.
const ROUTER: &str = "examples/router/lab.toml";

/// Two routers between two hosts. The link of h2 is shaped.
const MIXED: &str = r#"
[defaults]
program = "builtin:router"
entries = "shortest-paths"
kernel = "auto"
link = { rate = "unlimited", delay = "0us" }

[hosts.h1]
ip = "10.0.0.1/8"
[hosts.h2]
ip = "10.0.0.2/8"
[hosts.h3]
ip = "10.0.0.3/8"
[switches.s1]
[switches.s2]
kernel = "off"

[[links]]
ends = ["h1", "s1:1"]
[[links]]
ends = ["h2", "s1:2"]
delay = "5ms"
[[links]]
ends = ["s1:3", "s2:1"]
[[links]]
ends = ["h3", "s2:2"]
"#;

impl Labs {
    /// Starts a lab and returns the notes about it.
    fn up_in_kernel(&self, topology: &str, more: &[&str]) -> String {
        let up = self.lab(&[&["up", topology, "--name", "fast"], more].concat()).ok();
        assert!(up.stdout.contains("lab fast: "), "{up:?}");
        up.stderr
    }

    /// Writes a topology and returns its path.
    fn write_topology(&self, text: &str) -> String {
        self.0.write("lab.toml", text)
    }

    /// Sends pings from h1, one after the other, which must all be answered.
    #[track_caller]
    fn ping_from_h1(&self, count: u32, address: &str) -> String {
        let count = count.to_string();
        let done = self.lab(&["exec", "h1", "ping", "-n", "-i", "0.02", "-W", "20", "-c", &count, address]).ok();
        assert!(done.stdout.contains(&format!("{count} received")), "{done:?}");
        done.stdout
    }

    /// Sends two pings from h1, which are not answered.
    #[track_caller]
    fn lose_from_h1(&self, address: &str) {
        let done = self.lab(&["exec", "h1", "ping", "-n", "-i", "0.1", "-W", "1", "-c", "2", address]);
        assert!(done.stdout.contains("2 packets transmitted, 0 received"), "{done:?}");
    }

    /// Returns the packets that the kernel and the first switch processed.
    fn shares(&self) -> (u64, u64) {
        let kernel = &self.status()["switches"][0]["kernel"];
        let number = |key: &str| kernel[key].as_u64().unwrap_or_else(|| panic!("no `{key}` in {kernel:#}"));
        (number("packets"), number("switch_packets"))
    }
}

/// Whether programs run in the kernel. Where the system does not permit that, the test is skipped.
fn has_kernel(notes: &str) -> bool {
    let refused = notes.lines().find(|line| ["not permitted", "user namespace"].iter().any(|why| line.contains(why)));
    if let Some(reason) = refused {
        testing::skip(reason);
        return false;
    }
    assert!(notes.contains("the program runs in the kernel on "), "{notes}");
    true
}

/// Returns the counts of a port.
fn port(status: &Value, index: usize) -> [u64; 3] {
    let port = &status["switches"][0]["ports"][index];
    ["received", "sent", "sent_bytes"].map(|key| port[key].as_u64().unwrap_or_else(|| panic!("{status:#}")))
}

/// Packets are forwarded and dropped in the kernel, and counted where those of the switch are.
fn forwards_and_drops(isolate: &[&str]) {
    let Some(labs) = Labs::new(&["ping"]) else { return };
    let notes = labs.up_in_kernel(ROUTER, &[&["--kernel", "auto"], isolate].concat());
    if !has_kernel(&notes) {
        return;
    }
    // The hosts resolve the gateway's address, which the program answers.
    labs.ping_from_h1(1, "10.0.2.2");
    let before = labs.status();
    labs.ping_from_h1(10, "10.0.2.2");
    labs.lose_from_h1("10.9.9.9");
    let after = labs.status();
    for (index, [received, sent]) in [[12, 10], [10, 10]].into_iter().enumerate() {
        let (before, after) = (port(&before, index), port(&after, index));
        let counts = [after[0] - before[0], after[1] - before[1], after[2] - before[2]];
        assert_eq!(counts, [received, sent, sent * 98], "{after:?}");
    }
    let kernel = &after["switches"][0]["kernel"];
    assert_eq!(
        [&kernel["is_active"], &kernel["switch_packets"], &kernel["crowded"]],
        [&json!(true), &json!(0), &json!(0)]
    );
    assert_eq!(kernel["ports"], json!([1, 2]));
    let text = labs.lab(&["status"]).ok().stdout;
    let place =
        format!("router  2 dropped in ingress by the program at examples/router/router.p4:{}:9", drop_line("no_route"));
    assert!(text.contains(&place), "{text}");
    assert!(
        text.contains("router  kernel ports 1, 2: ") && text.contains(" in the kernel (100.0 %), 0 in the switch"),
        "{text}"
    );
}

#[test]
fn switches_that_are_threads_forward_in_the_kernel() {
    forwards_and_drops(&[]);
}

#[test]
fn switches_that_are_processes_forward_in_the_kernel() {
    forwards_and_drops(&["--isolate"]);
}

#[test]
fn tcp_of_hosts_stays_in_the_kernel_with_right_checksums() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(labs) = Labs::new(&["iperf3", "ping"]) else { return };
    if !has_kernel(&labs.up_in_kernel(ROUTER, &["--kernel", "require"])) {
        return;
    }
    let server = ["exec", "h2", "iperf3", "--server", "--one-off", "--forceflush"];
    let mut server = Running::start(&mut labs.command(&server));
    server.wait_for("listening");
    let client = ["exec", "h1", "iperf3", "--client", "10.0.2.2", "--json", "--bytes", "16M"];
    let report = labs.lab(&client).ok().json();
    assert!(report["end"]["sum_sent"]["bytes"].as_u64() >= Some(16 << 20), "{report:#}");
    server.wait().ok();
    let (in_kernel, by_switch) = labs.shares();
    assert!(in_kernel > 5_000 && by_switch == 0, "{in_kernel} in the kernel, {by_switch} in the switch");
    for host in ["h1", "h2"] {
        let counts = labs.lab(&["exec", host, "cat", "/proc/net/snmp"]).ok().stdout;
        let tcp: Vec<&str> = counts.lines().filter(|line| line.starts_with("Tcp:")).collect();
        let errors = tcp[0].split(' ').zip(tcp[1].split(' ')).find(|(name, _)| *name == "InCsumErrors");
        assert_eq!(errors, Some(("InCsumErrors", "0")), "{counts}");
    }
}

#[test]
fn captures_and_links_and_crashes_work_as_without_the_kernel() {
    let Some(labs) = Labs::new(&["ping"]) else { return };
    if !has_kernel(&labs.up_in_kernel(ROUTER, &["--kernel", "auto"])) {
        return;
    }
    labs.ping_from_h1(5, "10.0.2.2");
    let (in_kernel, _) = labs.shares();
    let path = labs.0.path("captured.pcap");
    let mut capture = Running::start(&mut labs.command(&["pcap", "router:2", &path]));
    capture.wait_for("capturing router:2");
    labs.ping_from_h1(5, "10.0.2.2");
    assert_eq!(labs.shares(), (in_kernel, 10), "both directions of a port that is captured take the switch");
    until("captured frame", || captured(&path) >= 10);
    capture.signal("TERM");
    capture.wait();
    assert_eq!(captured(&path), 10);
    // The switch sees the end of the capture in its next turn.
    until("packet in the kernel", || {
        labs.ping_from_h1(1, "10.0.2.2");
        labs.shares().0 > in_kernel
    });

    labs.lab(&["link", "down", "router", "h2"]).ok();
    labs.lose_from_h1("10.0.2.2");
    labs.lab(&["link", "up", "router", "h2"]).ok();
    let (in_kernel, by_switch) = labs.shares();
    labs.ping_from_h1(5, "10.0.2.2");
    assert_eq!(labs.shares(), (in_kernel + 10, by_switch), "the next packet after `link up` is one of the kernel");

    let before = labs.status();
    labs.lab(&["fail", "router"]).ok();
    labs.lose_from_h1("10.0.2.2");
    let failed = labs.status();
    assert_eq!(failed["switches"][0]["failed"], true, "{failed:#}");
    assert_eq!(failed["switches"][0]["ports"][0]["lost_while_failed"], 2, "{failed:#}");
    assert_eq!(port(&failed, 1), port(&before, 1), "counts of ports continue");
    labs.lab(&["heal", "router"]).ok();
    labs.ping_from_h1(5, "10.0.2.2");
    assert_eq!(labs.shares(), (in_kernel + 20, by_switch), "{:#}", labs.status());
    assert_eq!(port(&labs.status(), 1)[1], port(&before, 1)[1] + 5);
}

#[test]
fn shaped_links_and_ordinary_neighbours_take_the_switch() {
    let Some(labs) = Labs::new(&["ping"]) else { return };
    let notes = labs.up_in_kernel(&labs.write_topology(MIXED), &[]);
    if !has_kernel(&notes) {
        return;
    }
    for note in [
        "s1: port 2 is ordinary, since the kernel cannot apply a delay of 5ms; write rate = \"unlimited\"",
        "s1: the program runs in the kernel on 1=s1-eth1, 3=s1-eth3 (",
        "s1: port 3 leads to an ordinary port, to which the kernel cannot send, so the switch does",
    ] {
        assert!(notes.contains(note), "{note} is not in\n{notes}");
    }
    let text = labs.ping_from_h1(3, "10.0.0.2");
    let times: Vec<f64> =
        text.lines().filter_map(|line| line.split("time=").nth(1)?.split(' ').next()?.parse().ok()).collect();
    assert!(times.len() == 3 && times.iter().all(|ms| *ms >= 10.0), "both directions are delayed: {text}");
    labs.ping_from_h1(3, "10.0.0.3");
    let (in_kernel, by_switch) = labs.shares();
    // The answers of h3 come by a kernel port and leave by one.
    assert!(in_kernel >= 3 && by_switch >= 9, "{in_kernel} in the kernel, {by_switch} in the switch");
    // The option replaces what the topology says.
    labs.lab(&["down"]).ok();
    let notes = labs.up_in_kernel(&labs.0.path("lab.toml"), &["--kernel", "off"]);
    assert!(!notes.contains("kernel"), "{notes}");
    labs.ping_from_h1(1, "10.0.0.3");
    assert_eq!(labs.status()["switches"][0]["kernel"], Value::Null);
}

/// Returns the number of frames in a capture so far.
fn captured(path: &str) -> usize {
    let bytes = std::fs::read(path).unwrap_or_default();
    wire::pcap::Reader::new(bytes.as_slice()).map_or(0, |reader| reader.flatten().count())
}

/// Inserts the routes of the router's example as its controller.
fn insert_routes(address: &str) {
    let ctl = |entry: &str, table: &str| {
        run(&mut triplane(&["ctl", "--addr", address, "--device-id", "1", "insert", table, entry])).ok()
    };
    for (host, mac) in [("10.0.1.1", "02:00:00:00:01:01"), ("10.0.2.2", "02:00:00:00:02:02")] {
        let number = &host[5..6];
        ctl(&format!("target_ip=10.0.{number}.254 -> arp_reply(mac=02:00:00:00:0{number}:fe)"), "gateway");
        ctl(&format!("dst={host}/32 -> forward(mac={mac}, port={number})"), "ipv4_lpm");
        ctl(&format!("egress_port={number} -> set_source(mac=02:00:00:00:0{number}:fe)"), "port_mac");
    }
}

#[test]
fn suspended_switches_forward_nothing_in_the_kernel() {
    let Some(labs) = Labs::new(&["ping"]) else { return };
    if !has_kernel(&labs.up_in_kernel(ROUTER, &["--kernel", "auto", "--isolate"])) {
        return;
    }
    labs.ping_from_h1(5, "10.0.2.2");
    labs.lab(&["suspend", "router"]).ok();
    labs.lose_from_h1("10.0.2.2");
    labs.lab(&["resume", "router"]).ok();
    let (in_kernel, _) = labs.shares();
    until("packet in the kernel", || {
        labs.ping_from_h1(1, "10.0.2.2");
        labs.shares().0 > in_kernel
    });
}

#[test]
fn pipelines_of_controllers_run_in_the_kernel() {
    for isolate in [&[][..], &["--isolate"]] {
        let Some(labs) = Labs::new(&["ping"]) else { return };
        let text = std::fs::read_to_string(root().join(ROUTER)).expect("the example is there");
        let text = text.replace("program = \"router.p4\"\nentries = \"entries.json\"", "device_id = 1");
        let first = reserved_ports(1).to_string();
        let up = [&["--kernel", "auto", "--p4runtime", &first][..], isolate].concat();
        let notes = labs.up_in_kernel(&labs.write_topology(&text), &up);
        let address = format!("127.0.0.1:{first}");
        let program = root().join("examples/router/router.p4").display().to_string();
        let is_waiting = notes.contains("a controller has not set a pipeline yet");
        if !is_waiting && !has_kernel(&notes) {
            return;
        }
        set_program(&address, &program).expect("the pipeline is set");
        until("program in the kernel", || labs.status()["switches"][0]["kernel"]["is_active"] == true);
        insert_routes(&address);
        labs.ping_from_h1(5, "10.0.2.2");
        let (in_kernel, by_switch) = labs.shares();
        assert!(in_kernel >= 10, "{in_kernel} in the kernel, {by_switch} in the switch");
        // A capture sees the packets of pipelines that are set after it began, too.
        let path = labs.0.path("captured.pcap");
        let mut capture = Running::start(&mut labs.command(&["pcap", "router:2", &path]));
        capture.wait_for("capturing router:2");
        set_program(&address, &program).expect("the pipeline is set");
        until("program in the kernel", || labs.status()["switches"][0]["kernel"]["is_active"] == true);
        insert_routes(&address);
        labs.ping_from_h1(5, "10.0.2.2");
        until("captured frame", || captured(&path) >= 10);
        capture.signal("TERM");
        capture.wait();
        labs.lab(&["down"]).ok();
        assert!(TcpListener::bind(&address).is_ok(), "the port is free again");
    }
}

#[test]
fn hosts_that_are_slow_are_slow() {
    const SCENARIO: &str = r#"
duration = "1s"
[[traffic]]
name = "echo"
kind = "ping"
from = "h1"
to = "h2"
start = "300ms"
count = 5
interval = "50ms"
[[faults]]
at = "100ms"
slow = "h2"
by = "15ms"
[[expect]]
traffic = "echo"
delivered = 1.0
"#;
    let Some(labs) = Labs::new(&[]) else { return };
    let scenario = labs.0.write("scenario.toml", SCENARIO);
    let done = labs.lab(&["run", ROUTER, "--kernel", "auto", "--scenario", &scenario, "--json"]).ok();
    if !has_kernel(&done.stderr) {
        return;
    }
    let min = done.json()["traffic"][0]["latency_ns"]["min"].as_u64();
    assert!(min >= Some(15_000_000), "{}", done.stdout);
}

#[test]
fn what_needs_the_switch_is_noted_and_refused_if_the_kernel_is_required() {
    let refused = |topology: &str, arguments: &[&str], expected: &[&str]| {
        let directory = Directory::new();
        let mut command = triplane(&[&["lab", "up", topology, "--kernel", "require"], arguments].concat());
        let done = run(command.env("TRIPLANE_LAB_DIR", directory.path("labs")));
        run(triplane(&["lab", "down", "--all"]).env("TRIPLANE_LAB_DIR", directory.path("labs")));
        assert_eq!(done.code, Some(1), "{done:?}");
        expected.iter().for_each(|text| assert!(done.stderr.contains(text), "{text} is not in\n{}", done.stderr));
    };
    let shaped = "port 2 of `s1` requires the kernel, which cannot apply a rate of 1Gbps and a delay of 20us";
    let help = "write rate = \"unlimited\" and delay = \"0us\", or kernel = \"auto\"";
    refused("examples/load-balancer/lab.toml", &[], &[shaped, "examples/load-balancer/lab.toml:", help, "5 errors"]);
    refused(ROUTER, &["--interpret"], &["`router` requires the kernel: --interpret asks for the interpreter"]);
    refused("examples/router-pod/lab.toml", &[], &["`leaf1` requires the kernel: `tpp` executes tiny packet programs"]);
    refused("examples/int-transit/lab.toml", &[], &["requires the kernel: `int` adds metadata to packets"]);
    refused("examples/key-value/lab.toml", &[], &["`edge` requires the kernel: the switches of a lab with stores"]);
    refused("examples/elastic-router/lab.toml", &[], &["`s1` requires the kernel: its tables lie on memory servers"]);
    let Some(labs) = Labs::new(&[]) else { return };
    let note = "leaf1, leaf2, spine1, spine2 have no kernel ports: `tpp` executes tiny packet programs";
    assert!(labs.up_in_kernel("examples/router-pod/lab.toml", &["--kernel", "auto"]).contains(note));
    labs.lab(&["down"]).ok();
    let note = "s1 has no kernel ports: the kernel cannot apply a rate of 1Gbps and a delay of 20us; write rate = ";
    assert!(labs.up_in_kernel("examples/load-balancer/lab.toml", &["--kernel", "auto"]).contains(note));
}

#[test]
fn a_program_that_cannot_run_in_the_kernel_has_ordinary_ports() {
    let Some(labs) = Labs::new(&[]) else { return };
    let text = std::fs::read_to_string(root().join(ROUTER)).expect("the example is there");
    let program = root().join("examples/market-data/switch.p4").display().to_string();
    let text = text.replace("router.p4", &program).replace("entries = \"entries.json\"\n", "");
    let topology = labs.write_topology(&text);
    let notes = labs.up_in_kernel(&topology, &["--kernel", "auto"]);
    if ["not permitted", "user namespace"].iter().any(|why| notes.contains(why)) {
        return testing::skip(&notes);
    }
    let note =
        "router: the program does not run in the kernel, so the switch processes all packets: it needs more code";
    assert!(notes.contains(note), "{notes}");
    for _ in 0..2 {
        let kernel = &labs.status()["switches"][0]["kernel"];
        assert_eq!((&kernel["ports"], &kernel["is_active"]), (&json!([]), &json!(false)));
        let text = labs.lab(&["status"]).ok().stdout;
        assert!(text.contains(note.trim_start_matches("router: ")), "{text}");
        // The reason is the same when the switch is healed.
        labs.lab(&["fail", "router"]).ok();
        labs.lab(&["heal", "router"]).ok();
    }
    labs.lab(&["down"]).ok();
    let done = labs.lab(&["up", &topology, "--name", "fast", "--kernel", "require"]);
    assert_eq!(done.code, Some(3), "{done:?}");
    let error = "error: `router` cannot run its program in the kernel: it needs more code";
    assert!(done.stderr.contains(error), "{done:?}");
}

#[test]
fn ports_that_refuse_the_code_are_not_kernel_ports() {
    let Some(labs) = Labs::new(&["ping"]) else { return };
    let text = std::fs::read_to_string(root().join(ROUTER)).expect("the example is there");
    let path = |name: &str| root().join("examples/router").join(name).display().to_string();
    let text = text.replace("router.p4", &path("router.p4")).replace("entries.json", &path("entries.json"));
    let is_large = "mtu = 9000\nends = ";
    let one = labs.0.write("one.toml", text.replacen("ends = ", is_large, 1));
    let notes = labs.up_in_kernel(&one, &["--kernel", "auto"]);
    if !has_kernel(&notes) {
        return;
    }
    assert!(notes.contains("port 1 does not run the program in the kernel: the interface's MTU is too large"));
    assert_eq!(labs.status()["switches"][0]["kernel"]["ports"], json!([2]));
    labs.ping_from_h1(1, "10.0.2.2");
    assert!(labs.lab(&["status"]).ok().stdout.contains("router  kernel port 2: "));
    labs.lab(&["down"]).ok();
    let both = labs.0.write("both.toml", text.replace("ends = ", is_large));
    let reason = "so the switch processes all packets: port 1: the interface's MTU is too large for XDP";
    assert!(labs.up_in_kernel(&both, &["--kernel", "auto"]).contains(reason));
    assert_eq!(labs.status()["switches"][0]["kernel"]["ports"], json!([]));
    assert!(labs.lab(&["status"]).ok().stdout.contains(reason));
}

#[test]
fn a_simulation_does_not_depend_on_the_kernel() {
    let directory = Directory::new();
    let text = std::fs::read_to_string(root().join("examples/load-balancer/lab.toml")).expect("the example is there");
    let path = |name: &str| root().join("examples/load-balancer").join(name).display().to_string();
    let text = text.replace("balancer.p4", &path("balancer.p4")).replace("s1.json", &path("s1.json"));
    let simulate = |text: &str| {
        let topology = directory.write("lab.toml", text);
        run(&mut triplane(&["lab", "sim", &topology, "--json"])).ok().json()["run"].clone()
    };
    let without = simulate(&text);
    assert_ne!(without, Value::Null);
    assert_eq!(simulate(&text.replacen("[defaults]\n", "[defaults]\nkernel = \"require\"\n", 1)), without);
}

#[test]
fn a_killed_lab_leaves_nothing_in_the_kernel() {
    let Some(labs) = Labs::new(&["ping"]) else { return };
    if !has_kernel(&labs.up_in_kernel(ROUTER, &["--kernel", "auto"])) {
        return;
    }
    labs.ping_from_h1(2, "10.0.2.2");
    let text = std::fs::read_to_string(labs.0.path("labs/fast/lab.json")).expect("the lab describes itself");
    let description: Value = serde_json::from_str(&text).expect("JSON");
    let process = description["pid"].as_u64().expect("a process");
    let namespace = std::fs::read_link(format!("/proc/{process}/ns/net")).expect("it has a namespace");
    kill(process);
    let holds =
        |entry: std::fs::DirEntry| std::fs::read_link(entry.path().join("ns/net")).is_ok_and(|ns| ns == namespace);
    let begin = std::time::Instant::now();
    while std::fs::read_dir("/proc").expect("processes").flatten().any(holds) {
        assert!(begin.elapsed() < TEST_TIMEOUT, "a process is still in {}", namespace.display());
    }
    // The name, the interfaces and the kernel's programs can be used again.
    labs.lab(&["down", "fast"]).ok();
    assert!(has_kernel(&labs.up_in_kernel(ROUTER, &["--kernel", "require"])));
    labs.ping_from_h1(2, "10.0.2.2");
}
