//! Several workers on real interfaces: the datagrams of many flows pass two workers complete and in order.
//!
//! These tests need root; without it they skip and say so.

use std::net::IpAddr;

use crate::support::flows::{FLOWS, send_through};
use crate::support::{Running, TEST_TIMEOUT, root, triplane};
use ports::namespace::{Namespace, NamespaceError, veth_with_queues};
use serde_json::Value;
use testing::lock::LIVE_TRAFFIC;

/// Number of datagrams of each flow.
const EACH: u32 = 800;

/// Two hosts and the router of `examples/router` between them, on links with a given number of queues.
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
            assert!(host.wait_for_link("eth0", TEST_TIMEOUT)? && router.wait_for_link(&end, TEST_TIMEOUT)?);
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

/// Runs two workers on these ports to their end. Returns standard error and the counters.
fn run(queues: u32, ports: [&str; 2]) -> Option<(String, Value)> {
    let network = match Network::new(queues) {
        Err(error @ NamespaceError::Refused { .. }) => {
            testing::skip(&error.to_string());
            return None;
        }
        network => network.expect("a network"),
    };
    let mut router = network.router(ports);
    router.wait_for("press Ctrl-C to stop");
    let all = FLOWS as u64 * u64::from(EACH);
    let (h1, h2) = ((&network.h1, [10, 0, 1, 1]), (&network.h2, [10, 0, 2, 2]));
    let arrived = send_through(h1, h2, 6, |sent| sent < all, |_, _| ());
    assert_eq!(arrived, [EACH; FLOWS]);
    router.signal("INT");
    let done = router.wait().ok();
    let summary = done.json();
    // Each datagram has 6 bytes after the headers of Ethernet, IPv4 and UDP.
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
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some((said, _)) = run(2, ["1=xdp:p1", "2=xdp:p2"]) else { return };
    assert!(!said.contains("AF_PACKET") && !said.contains("one worker receives"), "{said}");
}

#[test]
fn a_worker_that_receives_for_two_deals_flows_out_in_order() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some((said, _)) = run(1, ["1=xdp:p1", "2=xdp:p2"]) else { return };
    assert!(said.contains("port 1: `p1` has fewer queues than there are workers"), "{said}");
}

#[test]
fn the_kernel_deals_flows_out_to_packet_sockets() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some((said, _)) = run(1, ["1=p1", "2=p2"]) else { return };
    assert!(!said.contains("one worker receives"), "{said}");
}
