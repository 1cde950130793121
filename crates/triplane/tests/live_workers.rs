//! Several workers on real interfaces: what many flows send passes two of them, whole and in order.
//!
//! These tests need root; without it they skip, and say so.

mod support;

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use ports::namespace::{Namespace, NamespaceError, veth_with_queues};
use serde_json::Value;
use support::{PATIENCE, Running, root, triplane};

const FLOWS: u16 = 16;
/// Datagrams of each flow.
const EACH: u32 = 800;
/// How many may be on their way: fewer than any queue or socket has room for, so that nothing may be lost.
const WINDOW: u64 = 64;

/// Two hosts and the router of `examples/router` between them, on links with so many queues.
struct Network {
    router: Namespace,
    h1: Namespace,
    h2: Namespace,
}

impl Network {
    fn new(queues: u32) -> Result<Network, NamespaceError> {
        let (router, h1, h2) = (Namespace::new("router")?, Namespace::new("h1")?, Namespace::new("h2")?);
        router.disable_ipv6()?;
        for (host, number, last) in [(&h1, 1, 1), (&h2, 2, 2)] {
            let end = format!("p{number}");
            host.disable_ipv6()?;
            veth_with_queues(host, "eth0", &router, &end, queues)?;
            host.set_mac("eth0", [2, 0, 0, 0, number, last])?;
            host.add_address("eth0", IpAddr::from([10, 0, number, last]), 24)?;
            host.set_up("eth0")?;
            router.set_up(&end)?;
            assert!(host.wait_for_link("eth0", PATIENCE)? && router.wait_for_link(&end, PATIENCE)?);
            let gateway = IpAddr::from([10, 0, number, 254]);
            host.add_route(IpAddr::from([0, 0, 0, 0]), 0, gateway)?;
            host.add_neighbour("eth0", gateway, [2, 0, 0, 0, number, 0xfe])?;
        }
        Ok(Network { router, h1, h2 })
    }

    /// Starts the router with two workers.
    fn router(&self, ports: [&str; 2]) -> Running {
        let binary = triplane(&[]).get_program().to_owned();
        let mut command = self.router.command(binary).expect("a command in a namespace");
        command.args(["run", "examples/router/router.p4", "--entries", "examples/router/entries.json"]);
        command.args(["--port", ports[0], "--port", ports[1], "--workers", "2", "--json"]);
        Running::start(command.current_dir(root()))
    }
}

/// Sends datagrams of many flows from h1, as they come from programs, and receives them at h2: each flow's must come in the
/// order in which they were sent, and all of them.
fn send_through(network: &Network) {
    let bind = |host: &Namespace, address: [u8; 4]| {
        let address = SocketAddr::from((address, 0));
        host.enter(|| UdpSocket::bind(address)).expect("to enter a namespace").expect("a socket")
    };
    let receiver = bind(&network.h2, [10, 0, 2, 2]);
    receiver.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout can be set");
    let to = receiver.local_addr().expect("it is bound");
    let senders: Vec<UdpSocket> = (0..FLOWS).map(|_| bind(&network.h1, [10, 0, 1, 1])).collect();
    senders.iter().for_each(|sender| sender.connect(to).expect("there is a route"));
    let mut expected = vec![0u32; usize::from(FLOWS)];
    let (mut sent, mut arrived) = (0u64, 0u64);
    let all = u64::from(FLOWS) * u64::from(EACH);
    let mut progress = Instant::now();
    while arrived < all {
        while sent < all && sent - arrived < WINDOW {
            let (flow, number) = ((sent % u64::from(FLOWS)) as u16, (sent / u64::from(FLOWS)) as u32);
            let datagram = [&flow.to_be_bytes()[..], &number.to_be_bytes()].concat();
            senders[usize::from(flow)].send(&datagram).expect("a datagram can be sent");
            sent += 1;
        }
        let mut datagram = [0; 64];
        match receiver.recv(&mut datagram) {
            Ok(6) => {
                let flow = usize::from(u16::from_be_bytes([datagram[0], datagram[1]]));
                let number = u32::from_be_bytes([datagram[2], datagram[3], datagram[4], datagram[5]]);
                assert_eq!(number, expected[flow], "datagram of flow {flow} out of its turn");
                expected[flow] += 1;
                arrived += 1;
                progress = Instant::now();
            }
            Ok(len) => panic!("a datagram of {len} bytes"),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                assert!(progress.elapsed() < PATIENCE, "{arrived} of {sent} datagrams arrived");
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(expected.iter().all(|count| *count == EACH), "{expected:?}");
}

/// What two workers on these ports tell when they have ended: standard error, and the counters.
fn run(queues: u32, ports: [&str; 2]) -> Option<(String, Value)> {
    let network = match Network::new(queues) {
        Err(error @ NamespaceError::Refused { .. }) => {
            skip::test(&error.to_string());
            return None;
        }
        network => network.expect("a network"),
    };
    let mut router = network.router(ports);
    router.wait_for("Ctrl-C ends");
    send_through(&network);
    router.signal("INT");
    let done = router.wait().ok();
    let summary = done.json();
    let all = u64::from(FLOWS) * u64::from(EACH);
    // 6 bytes behind the headers of Ethernet, IPv4 and UDP.
    for (name, count) in [("port.1.rx", all), ("port.2.tx", all), ("port.1.tx", 0), ("port.2.rx", 0)] {
        let counter = |what: &str| summary["counters"][format!("{name}.{what}")].as_u64();
        assert_eq!((counter("packets"), counter("bytes")), (Some(count), Some(count * 48)), "{name}: {summary:#}");
    }
    assert_eq!(summary["drops"].as_array().map(Vec::len), Some(0), "{summary:#}");
    for (port, direction) in [(0, "rx"), (1, "tx")] {
        let port = &summary["ports"][port];
        assert_eq!(port[format!("{direction}_packets")].as_u64(), Some(all), "the drivers agree: {summary:#}");
    }
    Some((done.stderr, summary))
}

#[test]
fn workers_with_a_queue_of_their_own_each_lose_and_reorder_nothing() {
    let Some((said, _)) = run(2, ["1=xdp:p1", "2=xdp:p2"]) else { return };
    assert!(!said.contains("AF_PACKET") && !said.contains("one worker receives"), "{said}");
}

#[test]
fn a_worker_that_receives_for_two_deals_flows_out_in_order() {
    let Some((said, _)) = run(1, ["1=xdp:p1", "2=xdp:p2"]) else { return };
    assert!(said.contains("port 1: `p1` has fewer queues than there are workers"), "{said}");
}

#[test]
fn the_kernel_deals_flows_out_to_packet_sockets() {
    let Some((said, _)) = run(1, ["1=p1", "2=p2"]) else { return };
    assert!(!said.contains("one worker receives"), "{said}");
}
