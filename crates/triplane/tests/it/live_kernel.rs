//! Programs in the kernel, on real interfaces: two hosts talk through `examples/router` on `kernel:` ports.
//!
//! These tests need root and some tools. Where those are missing the tests skip and say so.

use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::support::controller::set_program;
use crate::support::network::Network;
use crate::support::{Done, Running, TEST_TIMEOUT, drop_line, triplane};
use ports::namespace::{Namespace, NamespaceError, Offload, PingResult, veth_with_queues};
use ports::{AfPacketPort, Port, Received};
use serde_json::Value;
use testing::lock::LIVE_TRAFFIC;

/// Address of a P4Runtime server in a namespace of its own.
const ADDRESS: &str = "127.0.0.1:9559";
const PORTS: [&str; 2] = ["1=kernel:p1", "2=kernel:p2"];

/// Creates the network, whose hosts accept redirected frames. `None`, and the test is skipped, where that is not
/// possible.
fn network(tools: &[&str]) -> Option<Network> {
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
fn router(network: &Network, more: &[&str]) -> Running {
    let mut router = network.router_on(PORTS, more);
    router.wait_for("the program runs in the kernel on 1=p1, 2=p2");
    router.wait_for("press Ctrl-C to stop");
    router
}

fn interrupt(router: Running) -> Done {
    router.signal("INT");
    router.wait().ok()
}

/// Sends `count` pings from h1 to 10.0.2.2, which must all be answered.
#[track_caller]
fn ping(network: &Network, count: usize, more: &[&str]) {
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

fn counted(summary: &Value, name: &str) -> u64 {
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
fn packets_of_local_stacks_take_the_switch_and_arrive_whole() {
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
    // Pings have no checksum that a card completes.
    let (fast, slow) = (&summary["kernel"]["packets"], &summary["kernel"]["switch_packets"]);
    assert!(fast.as_u64() >= Some(4) && slow.as_u64() > Some(1000), "{summary:#}");
    let received = counted(&summary, "port.1.rx.packets") + counted(&summary, "port.2.rx.packets");
    assert_eq!(received, fast.as_u64().unwrap_or(0) + slow.as_u64().unwrap_or(0), "{summary:#}");
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
fn a_killed_run_leaves_interfaces_as_they_were() {
    let Some(network) = network(&[]) else { return };
    let links = || network.run("router", &["ip", "-details", "link", "show"]).ok().stdout;
    let before = links();
    let running = router(&network, &[]);
    ping(&network, 1, &[]);
    assert_ne!(links(), before, "the program shows");
    running.signal("KILL");
    running.wait();
    let begin = Instant::now();
    while links() != before {
        assert!(begin.elapsed() < TEST_TIMEOUT, "{before}\n{}", links());
        std::thread::sleep(Duration::from_millis(50));
    }
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

/// Two hosts and a switch, whose tags can be kept beside frames.
fn tagged_network() -> Result<[Namespace; 3], NamespaceError> {
    let [switch, h1, h2] = [Namespace::new("switch")?, Namespace::new("h1")?, Namespace::new("h2")?];
    switch.disable_ipv6()?;
    for (host, number) in [(&h1, 1), (&h2, 2)] {
        let end = format!("p{number}");
        host.disable_ipv6()?;
        veth_with_queues(host, "eth0", &switch, &end, 1)?;
        host.set_mac("eth0", [2, 0, 0, 0, 0, number])?;
        host.add_address("eth0", IpAddr::from([10, 0, 0, number]), 24)?;
        host.set_up("eth0")?;
        switch.set_up(&end)?;
        assert!(host.wait_for_link("eth0", TEST_TIMEOUT)? && switch.wait_for_link(&end, TEST_TIMEOUT)?);
        host.add_neighbour("eth0", IpAddr::from([10, 0, 0, 3 - number]), [2, 0, 0, 0, 0, 3 - number])?;
        host.turn_on("eth0", Offload::Receive)?;
    }
    Ok([switch, h1, h2])
}

#[test]
fn tags_beside_frames_are_seen_by_programs_under_the_gpl() {
    let [switch, h1, h2] = match tagged_network() {
        Ok(network) => network,
        Err(error) => return testing::skip(&format!("needs root: {error}")),
    };
    let root = crate::support::root();
    let wire = |ports: [&str; 2]| {
        let mut command = switch.command(triplane(&[]).get_program()).expect("a command");
        command.args(["run", "examples/wire/wire.p4", "--json", "--port", ports[0], "--port", ports[1]]);
        Running::start(command.current_dir(root))
    };
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
    let [switch, h1, _h2] = match tagged_network() {
        Ok(network) => network,
        Err(error) => return testing::skip(&format!("needs root: {error}")),
    };
    switch.set_up("lo").expect("it is there");
    let mut command = switch.command(triplane(&[]).get_program()).expect("a command");
    command.args(["run", "--json", "--p4runtime", ADDRESS, "--port", PORTS[0], "--port", PORTS[1]]);
    let mut running = Running::start(command.current_dir(crate::support::root()));
    running.wait_for("press Ctrl-C to stop");
    let set = |program: &str| {
        let path = crate::support::root().join(program).display().to_string();
        switch.enter(|| set_program(ADDRESS, &path)).expect("a namespace").expect("the pipeline is set");
    };
    let ping = |sequence| {
        let result = h1.ping([10, 0, 0, 2].into(), sequence, TEST_TIMEOUT).expect("it is sent");
        assert!(matches!(result, PingResult::Reply { .. }), "{result:?}");
    };
    // The second program is another one for the switch, although its text is the same.
    for sequence in 1..=2 {
        set("examples/wire/wire.p4");
        ping(10 + sequence);
        running.wait_for("the program runs in the kernel on 1=p1, 2=p2");
        ping(sequence);
    }
    set("testdata/stf/clone_ingress.p4");
    running.wait_for("the program runs in the kernel on 1=p1, 2=p2");
    let summary = interrupt(running).json();
    let kernel = &summary["kernel"];
    let (fast, slow) = (kernel["packets"].as_u64().unwrap_or(0), kernel["switch_packets"].as_u64().unwrap_or(0));
    assert!(fast >= 4 && fast + slow == 8, "{summary:#}");
}
