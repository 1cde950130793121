//! Programs in the kernel, on real interfaces: two hosts talk through `examples/router` on `kernel:` ports.
//!
//! These tests need root and some tools. Where those are missing the tests skip and say so.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::controller::set_program;
use crate::support::network::Network;
use crate::support::switched::SwitchedHosts;
use crate::support::{Directory, Done, Running, TEST_TIMEOUT, drop_line, triplane};
use ports::namespace::{Echoes, Offload, PingResult};
use ports::{AfPacketPort, Port, Received};
use serde_json::Value;
use testing::lock::LIVE_TRAFFIC;

/// Address of a P4Runtime server in a namespace of its own.
const ADDRESS: &str = "127.0.0.1:9559";
pub const PORTS: [&str; 2] = ["1=kernel:p1", "2=kernel:p2"];

/// Creates the network, whose hosts accept redirected frames. `None`, and the test is skipped, where that is not
/// possible.
pub fn network(tools: &[&str]) -> Option<Network> {
    let network = plain_network(tools)?;
    ["h1", "h2"].iter().for_each(|host| accept_redirects(&network, host));
    Some(network)
}

/// Creates the network. Its links accept no redirected frames.
fn plain_network(tools: &[&str]) -> Option<Network> {
    match Network::obstacle(&[&["ethtool", "ping"], tools].concat()) {
        None => Some(Network::new(true)),
        Some(reason) => {
            testing::skip(&reason);
            None
        }
    }
}

fn accept_redirects(network: &Network, host: &str) {
    network.run(host, &["ethtool", "-K", "eth0", "gro", "on"]).ok();
}

/// Starts the router in the kernel, and returns it with what it said.
pub fn router(network: &Network, more: &[&str]) -> Running {
    let mut router = network.router_on(PORTS, more);
    router.wait_for("the program runs in the kernel on 1=p1, 2=p2");
    router.wait_for("press Ctrl-C to stop");
    router
}

pub fn interrupt(router: Running) -> Done {
    router.signal("INT");
    router.wait().ok()
}

/// Sends `count` pings from h1 to 10.0.2.2, which must all be answered.
#[track_caller]
pub fn ping(network: &Network, count: usize, more: &[&str]) {
    for _ in 0..count {
        let ping = [&["ping", "-n", "-W", "20", "-c", "1"][..], more, &["10.0.2.2"]].concat();
        let text = network.run("h1", &ping).ok().stdout;
        assert!(text.contains("1 packets transmitted, 1 received") && text.contains("ttl=63"), "{text}");
    }
}

/// Sends a ping that is not answered.
#[track_caller]
fn lose(network: &Network, address: &str) {
    let text = network.run("h1", &["ping", "-n", "-W", "1", "-c", "1", address]).stdout;
    assert!(text.contains("1 packets transmitted, 0 received"), "{text}");
}

pub fn counted(summary: &Value, name: &str) -> u64 {
    summary["counters"][name].as_u64().unwrap_or_else(|| panic!("no {name} in {summary:#}"))
}

#[test]
fn packets_are_forwarded_and_dropped_in_the_kernel_and_counted() {
    let Some(network) = network(&[]) else { return };
    let running = router(&network, &["--json"]);
    ping(&network, 5, &[]);
    lose(&network, "10.9.9.9");
    lose(&network, "10.9.9.9");
    ping(&network, 1, &[]);
    let summary = interrupt(running).json();
    assert_eq!(summary["kernel"], serde_json::json!({ "packets": 14, "switch_packets": 0 }), "{summary:#}");
    let drop = &summary["drops"][0];
    let place = format!("examples/router/router.p4:{}:9", drop_line("no_route"));
    assert_eq!((drop["place"].as_str(), drop["packets"].as_u64()), (Some(place.as_str()), Some(2)));
    let directions = [("port.1.rx", 8), ("port.1.tx", 6), ("port.2.rx", 6), ("port.2.tx", 6)];
    for (name, packets) in directions {
        assert_eq!(counted(&summary, &format!("{name}.packets")), packets, "{name}");
        assert_eq!(counted(&summary, &format!("{name}.bytes")), packets * 98, "{name}");
    }
    assert_eq!(summary["ports"][0]["rx_packets"], 8, "the kernel's are among the port's: {summary:#}");
}

#[test]
fn an_acknowledged_write_is_seen_by_the_next_packet() {
    let Some(network) = network(&[]) else { return };
    network.run("router", &["ip", "link", "set", "lo", "up"]).ok();
    let running = router(&network, &["--json", "--p4runtime", ADDRESS]);
    let binary = triplane(&[]).get_program().to_str().expect("a path").to_owned();
    let ctl = |words: &[&str]| network.run("router", &[&[binary.as_str(), "ctl"], words].concat()).ok();
    for _ in 0..3 {
        ping(&network, 1, &[]);
        ctl(&["insert", "ipv4_lpm", "dst=10.0.2.2/32 -> no_route()"]);
        lose(&network, "10.0.2.2");
        ctl(&["delete", "ipv4_lpm", "dst=10.0.2.2/32"]);
    }
    ping(&network, 1, &[]);
    let summary = interrupt(running).json();
    assert_eq!(summary["kernel"], serde_json::json!({ "packets": 11, "switch_packets": 0 }), "{summary:#}");
    assert_eq!(counted(&summary, "drop.ingress.program"), 3);
}

#[test]
fn packets_of_local_stacks_stay_in_the_kernel_and_arrive_whole() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(network) = network(&["iperf3"]) else { return };
    let running = router(&network, &["--json"]);
    let mut server = Running::start(&mut network.command("h2", &["iperf3", "--server", "--one-off", "--forceflush"]));
    server.wait_for("listening");
    let client = ["iperf3", "--client", "10.0.2.2", "--json", "--bytes", "16M"];
    let report = network.run("h1", &client).ok().json();
    assert!(report["end"]["sum_sent"]["bytes"].as_u64() >= Some(16 << 20), "{report:#}");
    server.wait().ok();
    ping(&network, 2, &[]);
    let summary = interrupt(running).json();
    // The kernel completes the checksums that the stacks leave to a card.
    let (fast, slow) = (&summary["kernel"]["packets"], &summary["kernel"]["switch_packets"]);
    assert!(fast.as_u64() > Some(1000) && slow.as_u64() == Some(0), "{summary:#}");
    let received = counted(&summary, "port.1.rx.packets") + counted(&summary, "port.2.rx.packets");
    assert_eq!(Some(received), fast.as_u64(), "{summary:#}");
}

#[test]
fn a_device_that_accepts_no_redirects_is_sent_to_by_the_switch_until_it_does() {
    let Some(network) = plain_network(&[]) else { return };
    let mut router = network.router_on(PORTS, &["--json"]);
    router.wait_for("port 1: `p1` does not accept redirected frames, so the switch sends all packets to it");
    router.wait_for("port 2: `p2` does not accept redirected frames");
    router.wait_for("press Ctrl-C to stop");
    ping(&network, 3, &[]);
    ["h1", "h2"].iter().for_each(|host| accept_redirects(&network, host));
    // The devices are looked at each second. Nothing is lost before or after.
    std::thread::sleep(Duration::from_millis(2500));
    ping(&network, 3, &[]);
    let summary = interrupt(router).json();
    assert_eq!(summary["kernel"], serde_json::json!({ "packets": 6, "switch_packets": 6 }), "{summary:#}");
    assert_eq!(counted(&summary, "drop.tx.device-full") + counted(&summary, "drop.tx.device-down"), 0);
}

#[test]
fn frames_longer_than_the_next_link_are_dropped_by_the_switch_and_counted() {
    let Some(network) = network(&[]) else { return };
    network.run("router", &["ip", "link", "set", "p2", "mtu", "600"]).ok();
    let running = router(&network, &["--json"]);
    let long = ["ping", "-n", "-i", "0.2", "-W", "1", "-c", "3", "-s", "1000", "10.0.2.2"];
    let text = network.run("h1", &long).stdout;
    assert!(text.contains("3 packets transmitted, 0 received"), "{text}");
    ping(&network, 1, &[]);
    let summary = interrupt(running).json();
    assert_eq!(counted(&summary, "drop.tx.device-length"), 3, "{summary:#}");
    assert_eq!(counted(&summary, "port.1.rx.packets"), 4);
}

#[test]
fn frames_that_a_device_loses_behind_the_kernel_count_as_dropped() {
    let Some(network) = network(&[]) else { return };
    let running = router(&network, &["--json"]);
    ping(&network, 1, &[]);
    // The far end is down: the device takes frames from the kernel, and loses them. Its port stays up for a moment.
    network.run("h2", &["ip", "link", "set", "eth0", "down"]).ok();
    lose(&network, "10.0.2.2");
    lose(&network, "10.0.2.2");
    let summary = interrupt(running).json();
    let names = ["drop.tx.device-full", "drop.tx.device-down", "drop.tx.port-down"];
    let dropped: u64 = names.iter().map(|name| counted(&summary, name)).sum();
    assert_eq!(dropped, 2, "{summary:#}");
}

#[test]
fn what_cannot_run_in_the_kernel_says_why_and_runs_as_before() {
    let Some(network) = network(&[]) else { return };
    let sentences: [(&[&str], &str); 3] = [
        (&["--interpret"], "so the switch processes all packets: --interpret asks for"),
        (&["--tpp", "7"], "so the switch processes all packets: --tpp executes tiny packet programs"),
        (&["--kernel", "off"], "running examples/router/router.p4 on 1=p1, 2=p2"),
    ];
    for (more, sentence) in sentences {
        let mut router = network.router_on(PORTS, more);
        router.wait_for(sentence);
        ping(&network, 1, &[]);
        let done = interrupt(router);
        assert!(!done.stdout.contains("in the kernel"), "{done:?}");
    }
    let done = network.router_on(PORTS, &["--interpret", "--kernel", "require"]).wait();
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(done.stderr.contains("error: the program cannot run in the kernel: --interpret"), "{done:?}");
}

/// Creates two hosts with a switch between them, which accept redirected frames. `None`, and the test is skipped, where
/// that is not possible.
pub fn switched() -> Option<SwitchedHosts> {
    let network = SwitchedHosts::new()?;
    for host in [&network.h1, &network.h2] {
        host.turn_on("eth0", Offload::Receive).expect("a veth has the offload");
    }
    Some(network)
}

/// Starts a run in the namespace of the switch.
pub fn run_in(network: &SwitchedHosts, arguments: &[&str]) -> Running {
    let mut command = network.switch.command(triplane(&[]).get_program()).expect("a command");
    Running::start(command.args([&["run", "--json"], arguments].concat()).current_dir(crate::support::root()))
}

/// Sends a ping from one host to the other, which must be answered.
#[track_caller]
pub fn ping_in(network: &SwitchedHosts, sequence: u16) {
    let result = network.h1.ping([10, 0, 0, 2].into(), sequence, TEST_TIMEOUT).expect("it is sent");
    assert!(matches!(result, PingResult::Reply { .. }), "{result:?}");
}

/// Sets the pipeline of a switch as its controller.
fn set_pipeline(network: &SwitchedHosts, program: &str) {
    let path = crate::support::root().join(program).display().to_string();
    network.switch.enter(|| set_program(ADDRESS, &path)).expect("a namespace").expect("the pipeline is set");
}

#[test]
fn tags_beside_frames_are_seen_by_programs_under_the_gpl() {
    let Some(network) = switched() else { return };
    let SwitchedHosts { h1, h2, .. } = &network;
    let wire = |ports: [&str; 2]| run_in(&network, &["examples/wire/wire.p4", "--port", ports[0], "--port", ports[1]]);
    let mut running = wire(PORTS);
    running.wait_for("on port 1, 2, the program does not see VLAN tags that were stripped from frames");
    running.wait_for("press Ctrl-C to stop");
    interrupt(running);
    let mut running = wire(["1=kernel:p1,gpl", "2=kernel:p2,gpl"]);
    running.wait_for("the program runs in the kernel on 1=p1, 2=p2");
    running.wait_for("press Ctrl-C to stop");
    let mut receiver = h2.enter(|| AfPacketPort::open("eth0")).expect("a namespace").expect("the interface is there");
    let tagging = h1.tag_sent("eth0", 0x123).expect("the stack can tag");
    let sender = h1.enter(|| UdpSocket::bind("10.0.0.1:0")).expect("a namespace").expect("a socket");
    let mut batch: Vec<Received> = Vec::new();
    let begin = Instant::now();
    while !batch.iter().any(|frame| frame.data[12..].starts_with(&[0x81, 0, 0x01, 0x23, 8, 0])) {
        assert!(begin.elapsed() < TEST_TIMEOUT, "no frame has its tag: {batch:02x?}");
        sender.send_to(b"some bytes", "10.0.0.2:9").expect("it is sent");
        std::thread::sleep(Duration::from_millis(20));
        receiver.receive(&mut batch, 64).expect("the port works");
    }
    drop(tagging);
    interrupt(running);
}

#[test]
fn a_pipeline_that_a_controller_sets_runs_in_the_kernel_too() {
    let Some(network) = switched() else { return };
    let mut running = run_in(&network, &["--p4runtime", ADDRESS, "--port", PORTS[0], "--port", PORTS[1]]);
    running.wait_for("press Ctrl-C to stop");
    let ping = |sequence| ping_in(&network, sequence);
    // The second program is another one for the switch, although its text is the same.
    for sequence in 1..=2 {
        set_pipeline(&network, "examples/wire/wire.p4");
        ping(10 + sequence);
        running.wait_for("the program runs in the kernel on 1=p1, 2=p2");
        ping(sequence);
    }
    set_pipeline(&network, "testdata/stf/clone_ingress.p4");
    running.wait_for("the program runs in the kernel on 1=p1, 2=p2");
    let summary = interrupt(running).json();
    let kernel = &summary["kernel"];
    let (fast, slow) = (kernel["packets"].as_u64().unwrap_or(0), kernel["switch_packets"].as_u64().unwrap_or(0));
    assert!(fast >= 4 && fast + slow == 8, "{summary:#}");
}

#[test]
fn a_change_of_pipeline_loses_no_packet() {
    const CHANGES: u32 = 8;
    /// Number of requests on their way at a time.
    const WINDOW: u16 = 50;
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(network) = switched() else { return };
    let mut running =
        run_in(&network, &["examples/wire/wire.p4", "--p4runtime", ADDRESS, "--port", PORTS[0], "--port", PORTS[1]]);
    running.wait_for("press Ctrl-C to stop");
    let (echoes, is_over) = (Echoes::open(&network.h1).expect("a socket"), AtomicBool::new(false));
    let answered = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut answered = 0u64;
            while !is_over.load(Ordering::Relaxed) {
                (0..WINDOW)
                    .for_each(|sequence| echoes.request([10, 0, 0, 2].into(), 7, sequence, &[1; 40]).expect("sent"));
                for sequence in 0..WINDOW {
                    let echo = echoes.answer(TEST_TIMEOUT).expect("a socket");
                    assert!(echo.is_some(), "request {sequence} of {WINDOW} is not answered, after {answered}");
                    answered += 1;
                }
            }
            answered
        });
        for _ in 0..CHANGES {
            set_pipeline(&network, "examples/wire/wire.p4");
            running.wait_for("the program runs in the kernel on 1=p1, 2=p2");
        }
        is_over.store(true, Ordering::Relaxed);
        sender.join().expect("no packet is lost")
    });
    let summary = interrupt(running).json();
    for (name, packets) in [("port.1.rx.packets", answered), ("port.2.tx.packets", answered)] {
        assert_eq!(counted(&summary, name), packets, "{summary:#}");
    }
    assert!(summary["kernel"]["packets"].as_u64() > Some(0), "{summary:#}");
}

#[test]
fn counters_that_are_read_and_set_include_the_kernel_s_packets() {
    const METRICS: &str = "127.0.0.1:9560";
    let Some(network) = network(&["perl"]) else { return };
    network.run("router", &["ip", "link", "set", "lo", "up"]).ok();
    let running = router(&network, &["--json", "--p4runtime", ADDRESS, "--metrics", METRICS]);
    let binary = triplane(&[]).get_program().to_str().expect("a path").to_owned();
    let ctl = |words: &[&str]| network.run("router", &[&[binary.as_str(), "ctl"], words].concat()).ok().stdout;
    // The counter of packets that are routed to port 2.
    let routed = || {
        let text = ctl(&["--json", "counters", "routed"]);
        let all: Value = serde_json::from_str(&text).expect("JSON");
        let of_port_2 = all.as_array().expect("a list").iter().find(|counter| counter["of"] == "2").expect("a port");
        (of_port_2["packets"].clone(), of_port_2["bytes"].clone())
    };
    ping(&network, 3, &[]);
    assert_eq!(routed(), (3.into(), (3 * 98).into()));
    ctl(&["set", "routed", "2", "packets=100", "bytes=5"]);
    ping(&network, 2, &[]);
    assert_eq!(routed(), (102.into(), (5 + 2 * 98).into()));
    let metrics = network.scrape(METRICS);
    assert!(metrics.contains("triplane_port_rx_packets_total{port=\"1\"} 5\n"), "{metrics}");
    interrupt(running);
}

/// Counts packets by their port in a register, notes when the last one came, and sends them by the other port.
const COUNTING_WIRE: &str = r#"
#include <v1model.p4>
struct headers_t {}
struct metadata_t {}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start { transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply {} }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<32>>(4) seen;
    register<bit<64>>(4) times;
    apply {
        times.write((bit<32>) std.ingress_port, (bit<64>) std.ingress_global_timestamp);
        bit<32> packets;
        seen.read(packets, (bit<32>) std.ingress_port);
        seen.write((bit<32>) std.ingress_port, packets + 1);
        std.egress_spec = 3 - std.ingress_port;
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply {} }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"#;

#[test]
fn controllers_read_and_write_the_registers_of_the_kernel() {
    let Some(network) = switched() else { return };
    network.switch.set_up("lo").expect("a namespace");
    let directory = Directory::new();
    let program = directory.write("counting.p4", COUNTING_WIRE);
    let mut running = run_in(&network, &[&program, "--p4runtime", ADDRESS, "--port", PORTS[0], "--port", PORTS[1]]);
    running.wait_for("the program runs in the kernel on 1=p1, 2=p2");
    running.wait_for("press Ctrl-C to stop");
    let ctl = |words: &[&str]| {
        let mut command = network.switch.command(triplane(&[]).get_program()).expect("a command");
        Running::start(command.args([&["ctl", "--json"], words].concat())).wait().ok()
    };
    let ping = |sequence| ping_in(&network, sequence);
    let cell = |register, port| {
        let found = ctl(&["registers", register, port]).json();
        let value = found["cells"][0]["value"].as_str()?;
        value.strip_prefix("0x").map_or_else(|| value.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
    };
    let seen = |port| cell("seen", port);
    // The kernel knows the time of the run after the first turn of the switch, in which it can also answer.
    assert_eq!(seen("1"), Some(0));
    (0..3).for_each(ping);
    assert_eq!(["1", "2"].map(seen), [Some(3); 2]);
    let first = cell("times", "1");
    assert!(first > Some(0) && cell("times", "2") >= first, "{first:?}");
    ctl(&["set", "seen", "1", "100"]);
    (3..5).for_each(ping);
    assert_eq!(["1", "2"].map(seen), [Some(102), Some(5)]);
    assert!(cell("times", "1") > first);
    let summary = interrupt(running).json();
    assert_eq!(summary["kernel"], serde_json::json!({ "packets": 10, "switch_packets": 0 }), "{summary:#}");
}

/// Meters and counts packets by the port that they come from, drops red ones, and sends the others by the other port.
/// Packets with an entry keep it alive.
const POLICING_WIRE: &str = r#"
#include <v1model.p4>
header ethernet_t { bit<48> to; bit<48> from; bit<16> kind; }
struct headers_t { ethernet_t ethernet; }
struct metadata_t { bit<2> colour; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply {} }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    meter(4, MeterType.packets) limits;
    counter(4, CounterType.packets) colours;
    action police(bit<32> limit) { limits.execute_meter(limit, meta.colour); colours.count((bit<32>) meta.colour); }
    table senders {
        key = { hdr.ethernet.from: exact; }
        actions = { police; NoAction; }
        default_action = NoAction;
        support_timeout = true;
    }
    apply {
        senders.apply();
        std.egress_spec = 3 - std.ingress_port;
        if (meta.colour == 2) { mark_to_drop(std); }
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"#;

#[test]
fn packets_in_the_kernel_are_metered_and_idle_entries_reported() {
    let Some(network) = switched() else { return };
    let directory = Directory::new();
    let program = directory.write("policing.p4", POLICING_WIRE);
    let mut running = run_in(&network, &[&program, "--p4runtime", ADDRESS, "--port", PORTS[0], "--port", PORTS[1]]);
    running.wait_for("the program runs in the kernel on 1=p1, 2=p2");
    running.wait_for("press Ctrl-C to stop");
    let ctl = |words: &[&str]| {
        let mut command = network.switch.command(triplane(&[]).get_program()).expect("a command");
        Running::start(command.args([&["ctl", "--json"], words].concat()))
    };
    let ok = |words: &[&str]| ctl(words).wait().ok();
    ok(&["insert", "senders", "from=02:00:00:00:00:01, timeout=1 -> police(2)"]);
    let lost = |sequence| {
        let wait = Duration::from_millis(200);
        let result = network.h1.ping([10, 0, 0, 2].into(), sequence, wait).expect("it is sent");
        !matches!(result, PingResult::Reply { .. })
    };
    // The buckets are never filled again, so the colours do not depend on the time.
    for round in 0..2 {
        ok(&["set", "limits", "2", "cir=0", "cburst=2", "pir=0", "pburst=3"]);
        let (first, all) = (round * 5, 5);
        (first..first + 3).for_each(|sequence| ping_in(&network, sequence));
        assert!((first + 3..first + all).all(lost), "round {round}: no token is left");
    }
    let meters = ok(&["meters", "limits"]).json();
    assert_eq!((meters[0]["of"].as_str(), meters[0]["pburst"].as_u64()), (Some("2"), Some(3)), "{meters:#}");
    let counters = ok(&["counters", "colours"]).json();
    let counted = |colour: &str| {
        let found = counters.as_array().expect("a list").iter().find(|one| one["of"] == colour);
        found.expect("it was counted")["packets"].as_u64()
    };
    assert_eq!(["0", "1", "2"].map(counted), [Some(4), Some(2), Some(4)], "{counters:#}");
    // No packet comes any more.
    let mut watching = ctl(&["watch"]);
    watching.wait_for("idle");
    watching.signal("INT");
    watching.wait();
    let summary = interrupt(running).json();
    // Replies have no entry, and are not metered.
    assert_eq!(summary["kernel"], serde_json::json!({ "packets": 16, "switch_packets": 0 }), "{summary:#}");
    assert_eq!(self::counted(&summary, "drop.ingress.program"), 4);
}

#[test]
fn a_port_beyond_those_of_the_kernel_is_one_of_the_switch() {
    let Some(network) = switched() else { return };
    let directory = Directory::new();
    let text = std::fs::read_to_string(crate::support::root().join("crates/v1model/src/v1model.p4"));
    let wide = text.expect("the architecture is there").replace("bit<9>", "bit<16>");
    directory.write("v1model.p4", &wide);
    let include = directory.path("");
    let ports = ["--port", "1=kernel:p1", "--port", "600=kernel:p2"];
    let arguments = [&["examples/wire/wire.p4", "-I", &include][..], &ports].concat();
    let mut running = run_in(&network, &arguments);
    running.wait_for("port 600 does not run the program in the kernel: the kernel's ports have the numbers to 511");
    running.wait_for("the program runs in the kernel on 1=p1 (");
    running.wait_for("press Ctrl-C to stop");
    interrupt(running);
    let done = run_in(&network, &[&arguments[..], &["--kernel", "require"]].concat()).wait();
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(done.stderr.contains("the program cannot run in the kernel: port 600: the kernel's ports"), "{done:?}");
}

#[test]
fn a_port_that_refuses_the_code_leaves_it_to_the_others() {
    let Some(network) = network(&[]) else { return };
    for (namespace, link) in [("h2", "eth0"), ("router", "p2")] {
        network.run(namespace, &["ip", "link", "set", link, "mtu", "9000"]).ok();
    }
    let mut router = network.router_on(PORTS, &["--json"]);
    router.wait_for("the program runs in the kernel on 1=p1 (");
    router.wait_for("port 2 does not run the program in the kernel: ");
    router.wait_for("press Ctrl-C to stop");
    ping(&network, 3, &[]);
    let summary = interrupt(router).json();
    // The answers come by the port that refused.
    assert_eq!(summary["kernel"], serde_json::json!({ "packets": 3, "switch_packets": 3 }), "{summary:#}");
    let done = network.router_on(PORTS, &["--kernel", "require"]).wait();
    assert_eq!(done.code, Some(3), "{done:?}");
}
