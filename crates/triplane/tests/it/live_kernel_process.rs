//! The end and the suspension of a process whose program is in the kernel.
//!
//! These tests need root and some tools. Where those are missing the tests skip and say so.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use ports::namespace::{Echoes, Namespace, PingResult};
use testing::lock::LIVE_TRAFFIC;

use crate::live_kernel::{PORTS, counted, interrupt, network, ping, ping_in, router, run_in, switched};
use crate::support::labs::until;
use crate::support::network::Network;
use crate::support::{Directory, Running, TEST_TIMEOUT};

/// Returns the numbers of the XDP programs of the router's interfaces.
fn programs(network: &Network) -> Vec<u32> {
    let text = network.run("router", &["ip", "-details", "link", "show"]).ok().stdout;
    let number = |after: &str| after.split_whitespace().next().and_then(|number| number.parse().ok());
    text.split("prog/xdp id ").skip(1).filter_map(number).collect()
}

/// Returns the number of packets that the stack of the router's namespace has routed.
fn routed(network: &Network) -> u64 {
    let text = network.run("router", &["cat", "/proc/net/snmp"]).ok().stdout;
    let ip: Vec<Vec<&str>> =
        text.lines().filter(|line| line.starts_with("Ip:")).map(|line| line.split(' ').collect()).collect();
    let at = ip[0].iter().position(|name| *name == "ForwDatagrams").expect("a count");
    ip[1][at].parse().expect("a number")
}

#[test]
fn a_killed_run_leaves_nothing_and_the_stack_routes_again() {
    let Some(network) = network(&[]) else { return };
    // The stack routes whatever no program takes.
    for port in ["1", "2"] {
        let (link, mac, address) =
            (format!("p{port}"), format!("02:00:00:00:0{port}:fe"), format!("10.0.{port}.254/24"));
        network.run("router", &["ip", "link", "set", &link, "address", &mac]).ok();
        network.run("router", &["ip", "address", "add", &address, "dev", &link]).ok();
    }
    network.run("router", &["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]).ok();
    let links = || network.run("router", &["ip", "-details", "link", "show"]).ok().stdout;
    let before = links();
    ping(&network, 1, &[]);
    assert_eq!(routed(&network), 2);

    let running = router(&network, &[]);
    ping(&network, 3, &[]);
    assert_eq!(routed(&network), 2, "the stack sees no packet");
    let programs = programs(&network);
    let is_loaded = |program: &u32| ports::is_program_loaded(*program).expect("a query of root");
    assert!(programs.len() == 2 && programs.iter().all(is_loaded), "{programs:?}");
    running.signal("KILL");
    running.wait();
    // What is pinned, or held by a process, would stay.
    until("end of the programs", || !programs.iter().any(is_loaded));
    assert_eq!(links(), before);
    ping(&network, 3, &[]);
    assert_eq!(routed(&network), 8);
}

/// Sends packets by the other port. Those to 10.0.0.3 need the switch, as they draw a random number.
const PARTLY_SLOW: &str = r#"
#include <v1model.p4>
header ethernet_t { bit<96> addresses; bit<16> kind; }
header ipv4_t { bit<128> before; bit<32> to; }
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata_t {}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) { 0x800: ipv4; default: accept; }
    }
    state ipv4 { packet.extract(hdr.ipv4); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply {} }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 3 - std.ingress_port;
        if (hdr.ipv4.isValid() && hdr.ipv4.to == 0x0a000003) {
            bit<8> drawn;
            random(drawn, 0, 0);
            if (drawn == 1) { mark_to_drop(std); }
        }
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); packet.emit(hdr.ipv4); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"#;

/// Suspends a process, and waits until it is suspended.
fn suspend(running: &Running) {
    running.signal("STOP");
    let status = || std::fs::read_to_string(format!("/proc/{}/status", running.id())).expect("it is there");
    until("suspension", || status().contains("State:\tT"));
}

/// Whether a ping is answered in a short time.
fn is_answered(host: &Namespace, to: Ipv4Addr, sequence: u16) -> bool {
    let result = host.ping(to, sequence, Duration::from_millis(200)).expect("it is sent");
    matches!(result, PingResult::Reply { .. })
}

#[test]
fn a_suspended_process_holds_up_only_packets_that_need_the_switch() {
    const SLOW: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
    /// Numbers of packets that wait, and of those behind them, which are too many to wait.
    const WAITING: u16 = 5;
    const BEHIND: u16 = 600;
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(network) = switched() else { return };
    network.h2.add_address("eth0", IpAddr::V4(SLOW), 24).expect("an interface");
    network.h1.add_neighbour("eth0", IpAddr::V4(SLOW), [2, 0, 0, 0, 0, 2]).expect("an interface");
    let directory = Directory::new();
    let program = directory.write("partly_slow.p4", PARTLY_SLOW);
    let mut running = run_in(&network, &[&program, "--port", PORTS[0], "--port", PORTS[1]]);
    running.wait_for("the program runs in the kernel on 1=p1, 2=p2");
    running.wait_for("press Ctrl-C to stop");
    let echoes = Echoes::open(&network.h1).expect("a socket");
    let request = |sequence| echoes.request(SLOW, 7, sequence, &[1; 40]).expect("it is sent");
    request(0);
    assert_eq!(echoes.answer(TEST_TIMEOUT).expect("a socket").map(|echo| echo.from), Some(SLOW));

    suspend(&running);
    (1..=WAITING).for_each(request);
    // Its flow is another one than that of the packets that wait.
    (0..20).for_each(|sequence| ping_in(&network, sequence));
    assert!(!is_answered(&network.h1, SLOW, 20), "nobody processes it");
    let late = Echoes::open(&network.h1).expect("a socket");
    (0..BEHIND).for_each(request);
    ping_in(&network, 21);

    running.signal("CONT");
    // The socket receives the answers to pings, too.
    let mut answered = Vec::new();
    while answered.len() < WAITING.into() {
        let answer = late.answer(TEST_TIMEOUT).expect("a socket");
        answered.extend(answer.filter(|echo| echo.identifier == 7).map(|echo| echo.sequence));
    }
    assert_eq!(answered, (1..=WAITING).collect::<Vec<_>>());
    let mut pings = 1;
    until("answer of the switch", || {
        pings += 1;
        is_answered(&network.h1, SLOW, 100 + pings)
    });
    ping_in(&network, 22);
    let summary = interrupt(running).json();
    let slow = summary["kernel"]["switch_packets"].as_u64().expect("a count");
    let dropped = summary["ports"][0]["rx_dropped"].as_u64().expect("a count");
    assert_eq!(slow + dropped, u64::from(1 + WAITING + BEHIND + pings), "{summary:#}");
    assert!(slow > u64::from(WAITING) && dropped > 0, "{summary:#}");
    assert_eq!(counted(&summary, "port.1.rx.packets"), slow + 22, "{summary:#}");
}
