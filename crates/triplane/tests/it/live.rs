//! The command on real interfaces: two hosts with the kernel's own network stack talk through `examples/router`.
//!
//! These tests need root and some tools. Where those are missing the tests skip and say so.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::network::Network;
use crate::support::{self, Directory, Done, Running, TEST_TIMEOUT, drop_line, run, triplane};
use serde_json::Value;
use testing::lock::LIVE_TRAFFIC;

/// Creates the network. Returns `None`, and skips the test with the reason, where that is not possible.
fn network(tools: &[&str], static_neighbours: bool) -> Option<Network> {
    match Network::obstacle(tools) {
        None => Some(Network::new(static_neighbours)),
        Some(reason) => {
            testing::skip(&reason);
            None
        }
    }
}

/// Ends the router with SIGINT, as Ctrl-C does.
fn interrupt(router: Running) -> Done {
    router.signal("INT");
    router.wait().ok()
}

/// Sends `count` pings from h1 to 10.0.2.2, which must answer each within 20 s, and returns the outputs. Several pings
/// of one command would have less time: the command waits for the last one no longer than the others took.
#[track_caller]
fn ping(network: &Network, count: u32) -> String {
    ping_with(network, count, &[])
}

/// As [`ping`], with more arguments.
#[track_caller]
fn ping_with(network: &Network, count: u32, more: &[&str]) -> String {
    let ping = [&["ping", "-n", "-W", "20", "-c", "1"][..], more, &["10.0.2.2"]].concat();
    (0..count).map(|_| network.run("h1", &ping).ok().stdout).collect()
}

/// Runs iperf3 from h1 to h2 and returns the client's report.
fn iperf3(network: &Network, arguments: &[&str]) -> Value {
    let mut server = Running::start(&mut network.command("h2", &["iperf3", "--server", "--one-off", "--forceflush"]));
    server.wait_for("listening");
    let client = ["iperf3", "--client", "10.0.2.2", "--json"];
    let report = network.run("h1", &[&client[..], arguments].concat()).ok().json();
    server.wait().ok();
    report
}

#[test]
fn hosts_that_know_nothing_reach_each_other() {
    let Some(network) = network(&["ping"], false) else { return };
    // The hosts first resolve their gateway's address: the router answers ARP.
    let router = network.router(&["--json"]);
    let text = ping(&network, 4);
    assert_eq!(text.matches("1 packets transmitted, 1 received, 0% packet loss").count(), 4, "{text}");
    assert_eq!(text.matches("ttl=63").count(), 4, "{text}");
    let summary = interrupt(router).json();
    for port in [1, 2] {
        for direction in ["rx", "tx"] {
            let packets = &summary["counters"][format!("port.{port}.{direction}.packets")];
            assert!(packets.as_u64() >= Some(5), "port {port}, {direction}: {packets}\n{summary:#}");
        }
    }
}

/// Sends a file to the first client that connects.
pub const SENDER: &str = r#"
    my $listener = IO::Socket::INET->new(Listen => 1, LocalPort => 9000, ReuseAddr => 1) or die "cannot listen: $!";
    $| = 1;
    print "listening\n";
    my $peer = $listener->accept or die "nobody came: $!";
    open(my $file, "<:raw", $ARGV[0]) or die "cannot read: $!";
    while (sysread($file, my $data, 65536)) { print $peer $data or die "cannot send: $!"; }
    close($peer) or die "cannot send all: $!";
"#;

/// Connects and writes the received bytes to a file.
pub const RECEIVER: &str = r#"
    my $peer = IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => 9000, Timeout => 20) or die "no answer: $!";
    open(my $file, ">:raw", $ARGV[1]) or die "cannot write: $!";
    while (sysread($peer, my $data, 65536)) { print $file $data; }
    close($file) or die "cannot write: $!";
"#;

#[test]
fn a_file_arrives_over_tcp_as_it_was_sent() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(network) = network(&["perl"], false) else { return };
    // The hosts keep their offloads: they send unfinished checksums and segments of up to 64 KiB.
    let (router, directory) = (network.router(&[]), Directory::new());
    let contents: Vec<u8> = (0..8u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let sent = directory.write("sent", &contents);
    let perl = |program| ["perl", "-MIO::Socket::INET", "-e", program];
    for (from, address, to) in [("h2", "10.0.2.2", "h1"), ("h1", "10.0.1.1", "h2")] {
        let received = directory.path(&format!("received-by-{to}"));
        let mut sender = Running::start(&mut network.command(from, &[&perl(SENDER)[..], &[&sent]].concat()));
        sender.wait_for("listening");
        network.run(to, &[&perl(RECEIVER)[..], &[address, &received]].concat()).ok();
        sender.wait().ok();
        let received = std::fs::read(received).expect("what was received");
        assert!(received == contents, "{} of {} bytes arrived at {to}, or others", received.len(), contents.len());
    }
    interrupt(router);
}

#[test]
fn much_tcp_passes_both_ways() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(network) = network(&["iperf3"], false) else { return };
    let router = network.router(&[]);
    for direction in [&[][..], &["--reverse"]] {
        let report = iperf3(&network, &[&["--bytes", "64M"], direction].concat());
        let bytes = |sum: &str| report["end"][sum]["bytes"].as_u64().unwrap_or(0);
        // iperf3 stops counting as soon as the sender is done, while the last window is still in flight.
        assert!(bytes("sum_sent") >= 64 << 20 && bytes("sum_received") >= 48 << 20, "{report:#}");
    }
    interrupt(router);
}

#[test]
fn af_xdp_ports_carry_tcp_and_a_second_router_says_why_it_has_none() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(network) = network(&["iperf3"], false) else { return };
    let ports = ["1=xdp:p1", "2=xdp:p2"];
    let mut router = network.router_on(ports, &["--json"]);
    router.wait_for("press Ctrl-C to stop");
    for direction in [&[][..], &["--reverse"]] {
        let report = iperf3(&network, &[&["--bytes", "16M"], direction].concat());
        let sent = report["end"]["sum_sent"]["bytes"].as_u64().unwrap_or(0);
        assert!(sent >= 16 << 20, "{report:#}");
    }
    // The first router has the interfaces; the second one falls back to AF_PACKET and says so.
    let mut second = network.router_on(ports, &[]);
    second.wait_for("port 1: `p1` uses AF_PACKET instead of AF_XDP: another XDP program is attached");
    second.wait_for("press Ctrl-C to stop");
    interrupt(second);
    let summary = interrupt(router).json();
    assert_eq!(summary["ports"][0]["rx_unusable"], 0, "{summary:#}");
}

#[test]
fn udp_passes_whole_and_in_fragments() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(network) = network(&["iperf3"], false) else { return };
    let router = network.router(&[]);
    for length in ["1200", "4000"] {
        // A receiver that is not scheduled for a second loses datagrams. That does not happen five times in a row.
        let is_whole = || {
            let report = iperf3(&network, &["--udp", "--bitrate", "2M", "--bytes", "1M", "--length", length]);
            let sum = &report["end"]["sum"];
            let (packets, lost) = (sum["packets"].as_u64(), sum["lost_packets"].as_u64());
            let (Some(packets), Some(lost)) = (packets, lost) else { panic!("{report:#}") };
            println!("{lost} of {packets} datagrams of {length} bytes lost");
            packets > 200 && lost * 20 <= packets
        };
        assert!((0..5).any(|_| is_whole()), "datagrams of {length} bytes are lost");
    }
    interrupt(router);
}

/// The bytes of a marked ping, as an argument of `ping`.
const MARK: &str = "feedbeefcafe0123";

/// Returns the given fields of those frames of a capture that match, as tshark parses them.
fn fields(file: &str, filter: &str, names: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    let checks = ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"];
    command.args(["-n", "-r", file, "-Y", filter, "-T", "fields", "-E", "occurrence=f"]).args(checks);
    for name in names {
        command.args(["-e", name]);
    }
    let text = run(&mut command).ok().stdout;
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

#[test]
fn the_wire_shows_what_a_router_does() {
    let Some(network) = network(&["ping", "iperf3", "tshark", "dumpcap"], false) else { return };
    let (router, directory) = (network.router(&[]), Directory::new());
    let file = directory.path("h2.pcapng");
    let arguments = ["dumpcap", "-q", "-i", "eth0", "-s", "0", "-w", &file];
    let mut capture = Running::start(&mut network.command("h2", &arguments));
    capture.wait_for("File:");
    // The capture socket is open as soon as the first packet is in the file, which dumpcap writes from time to time.
    let begun = Instant::now();
    while !std::fs::metadata(&file).is_ok_and(|file| file.len() > 1000) {
        assert!(begun.elapsed() < TEST_TIMEOUT, "dumpcap captures nothing");
        ping(&network, 2);
        std::thread::sleep(Duration::from_millis(200));
    }
    iperf3(&network, &["--bytes", "4M"]);
    iperf3(&network, &["--udp", "--bitrate", "8M", "--bytes", "100K", "--length", "1000"]);
    ping(&network, 3);
    // Frames come in order: those before a marked one are in the file when that one is.
    let begin = Instant::now();
    loop {
        ping_with(&network, 1, &["-p", MARK]);
        let file = std::fs::read(&file).unwrap_or_default();
        if file.windows(8).any(|bytes| bytes == 0xfeed_beef_cafe_0123_u64.to_be_bytes()) {
            break;
        }
        assert!(begin.elapsed() < TEST_TIMEOUT, "dumpcap does not write what it captures");
        std::thread::sleep(Duration::from_millis(100));
    }
    capture.signal("INT");
    let _ = capture.wait();
    interrupt(router);

    let names = ["ip.ttl", "eth.src", "eth.dst", "ip.checksum.status"];
    let pings = fields(&file, "icmp.type == 8", &names);
    assert!(pings.len() >= 3, "{} pings", pings.len());
    for ping in &pings {
        // Status 1 is "good".
        assert_eq!(ping, &["63", "02:00:00:00:02:fe", "02:00:00:00:02:02", "1"]);
    }
    // Packets that h2 sends itself still have unfinished checksums; those that the router sent must not.
    for (protocol, least) in [("tcp", 1000), ("udp", 50)] {
        let checksum = format!("{protocol}.checksum.status");
        let names = ["ip.ttl", "ip.checksum.status", &checksum, "frame.len"];
        let frames = fields(&file, &format!("ip.dst == 10.0.2.2 && {protocol}"), &names);
        assert!(frames.len() >= least, "{} {protocol} frames", frames.len());
        for frame in &frames {
            assert_eq!(frame[..3], ["63", "1", "1"], "of {protocol}");
            let length: u32 = frame[3].parse().expect("a number");
            assert!(length <= 1514, "a {protocol} frame of {length} bytes is longer than the link allows");
        }
    }
}

#[test]
fn the_summary_names_the_line_that_dropped() {
    let Some(network) = network(&["ping"], true) else { return };
    let lost = |network: &Network| {
        let text = network.run("h1", &["ping", "-n", "-i", "0.2", "-W", "1", "-c", "2", "10.9.9.9"]).stdout;
        assert!(text.contains("2 packets transmitted, 0 received"), "{text}");
    };
    let place = format!("examples/router/router.p4:{}:9", drop_line("no_route"));

    let router = network.router(&["--json"]);
    lost(&network);
    // The router has processed what was lost when it forwards what comes after.
    ping(&network, 1);
    let summary = interrupt(router).json();
    let drops = summary["drops"].as_array().expect("a list");
    assert_eq!(drops.len(), 1, "{summary:#}");
    let expected = serde_json::json!({
        "reason": "ingress.program", "packets": 2, "place": place, "body": "RouterIngress.no_route",
    });
    assert_eq!(drops[0], expected);
    assert_eq!(summary["counters"]["drop.ingress.program"], 2);

    let router = network.router(&[]);
    lost(&network);
    ping(&network, 3);
    let text = interrupt(router).stdout;
    let (counts, rate) = text.rsplit_once("\n\n").expect("a last line apart");
    let expected = format!(
        "port  rx packets  rx bytes  tx packets  tx bytes\n   \
            1           5       490           3       294\n   \
            2           3       294           3       294\n\n\
         2 dropped in ingress by the program at {place} (RouterIngress.no_route)"
    );
    assert_eq!(counts, expected);
    assert!(rate.starts_with("8 packets in ") && rate.ends_with(" s\n"), "{rate}");
}

#[test]
fn a_run_ends_after_its_duration_and_on_a_termination_request() {
    let Some(network) = network(&[], true) else { return };
    let done = network.router(&["--duration", "0.3"]).wait().ok();
    assert!(done.stdout.contains("0 packets in 0."), "{done:?}");
    let router = network.router(&[]);
    router.signal("TERM");
    router.wait().ok();
}

#[test]
fn a_scrape_of_a_running_router_has_its_packets() {
    let Some(network) = network(&["perl", "ping"], true) else { return };
    network.run("router", &["ip", "link", "set", "lo", "up"]).ok();
    let mut router = network.router_on(["1=p1", "2=p2"], &["--metrics", "127.0.0.1:0"]);
    let line = router.wait_for("metrics on http://");
    let (_, address) = line.split_once("http://").expect("the line has an address");
    let (address, _) = address.split_once("/metrics").expect("the address has a path");
    router.wait_for("press Ctrl-C to stop");
    ping(&network, 3);
    let answer = network.scrape(address);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("content-type: text/plain; version=0.0.4"), "{answer}");
    for sample in [r#"rx_packets_total{port="1"} 3"#, r#"tx_packets_total{port="1"} 3"#] {
        assert!(answer.contains(&format!("triplane_port_{sample}\n")), "{answer}");
    }
    interrupt(router).ok();
}

#[test]
fn jumbo_frames_pass_af_xdp_ports_whole() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(network) = network(&["ping"], true) else { return };
    let links = [("h1", "eth0"), ("h2", "eth0"), ("router", "p1"), ("router", "p2")];
    for (namespace, link) in links {
        network.run(namespace, &["ip", "link", "set", link, "mtu", "9000"]).ok();
    }
    let mut router = network.router_on(["1=xdp:p1", "2=xdp:p2"], &["--json"]);
    router.wait_for("press Ctrl-C to stop");
    let text = ping_with(&network, 3, &["-M", "do", "-s", "8000"]);
    assert_eq!(text.matches("1 packets transmitted, 1 received").count(), 3, "{text}");
    let done = interrupt(router);
    assert!(!done.stderr.contains("AF_PACKET"), "{done:?}");
    assert_eq!(done.json()["counters"]["port.2.tx.bytes"], 3 * 8042);
}

#[test]
fn a_killed_run_leaves_interfaces_as_they_were_for_the_next() {
    let Some(network) = network(&["ping"], true) else { return };
    let links = |network: &Network| network.run("router", &["ip", "-details", "link", "show"]).ok().stdout;
    let before = links(&network);
    for _ in 0..2 {
        let mut router = network.router_on(["1=xdp:p1", "2=xdp:p2"], &[]);
        router.wait_for("press Ctrl-C to stop");
        ping(&network, 1);
        assert_ne!(links(&network), before, "AF_XDP ports show");
        router.signal("KILL");
        let done = router.wait();
        assert!(!done.stderr.contains("AF_PACKET"), "{done:?}");
        // The kernel releases the resources of a process with a short delay.
        let begin = Instant::now();
        while links(&network) != before {
            assert!(begin.elapsed() < TEST_TIMEOUT, "{before}\n{}", links(&network));
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn frames_that_a_device_does_not_send_count_as_dropped() {
    for kind in ["", "xdp:", "kernel:"] {
        let Some(network) = network(&["ping"], true) else { return };
        // The MTU of the router's own end is smaller than the hosts' packets.
        network.run("router", &["ip", "link", "set", "p2", "mtu", "600"]).ok();
        let mut router = network.router_on([&format!("1={kind}p1"), &format!("2={kind}p2")], &["--json"]);
        router.wait_for("press Ctrl-C to stop");
        let long = ["ping", "-n", "-i", "0.2", "-W", "1", "-c", "3", "-s", "1000", "10.0.2.2"];
        let text = network.run("h1", &long).stdout;
        assert!(text.contains("3 packets transmitted, 0 received"), "{text}");
        // The router has processed the long frames when it forwards a short one of 98 bytes that comes after.
        ping(&network, 1);
        let counters = interrupt(router).json()["counters"].take();
        let counted = |name: &str| counters[name].as_u64();
        assert_eq!(counted("port.1.rx.packets"), Some(4), "{kind}p1: {counters:#}");
        assert_eq!(counted("drop.tx.device-length"), Some(3), "{kind}p2: {counters:#}");
        assert_eq!((counted("port.2.tx.packets"), counted("port.2.tx.bytes")), (Some(1), Some(98)));
    }
}

#[test]
fn a_removed_interface_is_reported_and_the_run_fails() {
    for kind in ["", "xdp:", "kernel:"] {
        let Some(network) = network(&["ping"], true) else { return };
        let mut router = network.router_on([&format!("1={kind}p1"), &format!("2={kind}p2")], &[]);
        router.wait_for("press Ctrl-C to stop");
        ping(&network, 1);
        network.run("router", &["ip", "link", "delete", "p2"]).ok();
        // The loss is reported even if no frame comes, and the other port keeps running until the router is stopped.
        router.wait_for("port 2 was lost, the others continue: interface `p2` disappeared");
        router.signal("INT");
        let done = router.wait();
        assert_eq!(done.code, Some(3), "{done:?}");
        assert!(done.stderr.contains("error: port 2 was lost during the run"), "{done:?}");
        assert_eq!(done.stderr.matches("the others continue").count(), 1, "it is told once: {done:?}");
        assert!(done.stdout.contains("port  rx packets"), "there is a summary all the same: {done:?}");
    }
}

#[test]
fn an_interface_that_is_not_there_is_one_sentence() {
    let done = run(&mut triplane(&["run", "examples/wire/wire.p4", "--port", "1=nosuch0"]));
    assert_eq!(done.code, Some(3), "{done:?}");
    assert_eq!(done.stdout, "");
    let expected = "error: there is no network interface `nosuch0`; `ip link` lists the available ones\n";
    assert_eq!(done.stderr, expected);
}

#[test]
fn without_the_privilege_it_says_what_to_do() {
    if run(Command::new("sh").args(["-c", "command -v setpriv"])).code != Some(0) {
        return testing::skip("the program `setpriv` is not installed");
    }
    let binary = triplane(&[]).get_program().to_owned();
    let mut command = Command::new("setpriv");
    // No capability remains, whichever user runs this.
    command.args(["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]).arg(binary);
    command.args(["run", "examples/wire/wire.p4", "--port", "1=lo"]).current_dir(support::root());
    let done = run(&mut command);
    if done.stderr.contains("setpriv") {
        return testing::skip("only root can give up capabilities");
    }
    assert_eq!(done.code, Some(3), "{done:?}");
    assert_eq!(done.stderr.lines().count(), 1, "{done:?}");
    for words in ["cap_net_raw", "run as root", "setcap", "unshare"] {
        assert!(done.stderr.contains(words), "`{words}` is not in: {}", done.stderr);
    }
}
