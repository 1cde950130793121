//! Links: a port without one is down, and a frame that is faster than the message about its link is not lost.
//!
//! These tests need root; without it they skip and say so.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ports::namespace::{Namespace, NamespaceError, veth};
use ports::{AfPacketPort, Port, Received};
use runtime::{Clock, Worker};
use switch::{PortId, SwitchControl};

use crate::rig::{Repeater, frame, program};

/// The changes that a worker reported: ports, and whether they had a link then.
type Reports = Arc<Mutex<Vec<(u32, bool)>>>;

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A switch in a namespace, with two hosts, whose frames the test sends and receives.
struct Network {
    switch: Namespace,
    hosts: [Namespace; 2],
}

impl Network {
    fn new() -> Option<Network> {
        match Network::create() {
            Err(error @ NamespaceError::Refused { .. }) => {
                testing::skip(&error.to_string());
                None
            }
            network => Some(network.expect("a network")),
        }
    }

    fn create() -> Result<Network, NamespaceError> {
        let network =
            Network { switch: Namespace::new("switch")?, hosts: [Namespace::new("h1")?, Namespace::new("h2")?] };
        network.switch.disable_ipv6()?;
        for (host, end) in network.hosts.iter().zip(["p1", "p2"]) {
            host.disable_ipv6()?;
            veth(host, "eth0", &network.switch, end)?;
            host.set_up("eth0")?;
            network.switch.set_up(end)?;
            assert!(network.switch.wait_for_link(end, TEST_TIMEOUT)?);
        }
        Ok(network)
    }

    fn host_port(&self, host: usize) -> AfPacketPort {
        self.hosts[host].enter(|| AfPacketPort::open("eth0")).expect("a namespace").expect("the interface is there")
    }

    /// Returns a worker that watches its links, and the changes that it reports.
    fn worker(&self) -> (Worker<Repeater>, Reports) {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let reports = Arc::clone(&reported);
        let start = move || {
            let open = |name| -> Box<dyn Port> { Box::new(AfPacketPort::open(name).expect("the interface is there")) };
            let ports = vec![(PortId(1), open("p1")), (PortId(2), open("p2"))];
            let mut worker = Worker::new(Repeater::new(program("a")), ports);
            let report = move |id: PortId, is_up| reports.lock().unwrap().push((id.0, is_up));
            worker.watch_links(Box::new(report)).expect("a socket");
            worker
        };
        (self.switch.enter(start).expect("a namespace"), reported)
    }
}

/// Lets a worker follow its links until this holds.
fn follow_until(worker: &mut Worker<Repeater>, is_reached: impl Fn(&Worker<Repeater>) -> bool) {
    let begin = Instant::now();
    while !is_reached(worker) {
        assert!(begin.elapsed() < TEST_TIMEOUT, "the worker did not follow");
        worker.wait(Clock::start().now(), Duration::from_millis(10), &[]);
    }
}

fn are_up(worker: &Worker<Repeater>) -> [bool; 2] {
    [1, 2].map(|port| worker.switch().ports().is_up(PortId(port)))
}

#[test]
fn ports_follow_their_links() {
    let Some(network) = Network::new() else { return };
    network.hosts[1].set_down("eth0").expect("the interface is there");
    let (mut worker, reported) = network.worker();
    assert_eq!(are_up(&worker), [true, false], "a link that is missing at the start is noticed");
    network.hosts[1].set_up("eth0").expect("the interface is there");
    follow_until(&mut worker, |worker| are_up(worker) == [true, true]);
    network.switch.set_down("p1").expect("the interface is there");
    follow_until(&mut worker, |worker| are_up(worker) == [false, true]);
    assert_eq!(*reported.lock().unwrap(), [(2, false), (2, true), (1, false)]);
}

#[test]
fn a_worker_that_never_sleeps_follows_too() {
    let Some(network) = Network::new() else { return };
    let (mut worker, _) = network.worker();
    network.hosts[0].set_down("eth0").expect("the interface is there");
    let (clock, begin) = (Clock::start(), Instant::now());
    while are_up(&worker) != [false, true] {
        assert!(begin.elapsed() < TEST_TIMEOUT, "the worker did not follow");
        worker.poll(&clock);
    }
}

#[test]
fn a_frame_that_is_faster_than_the_message_about_its_link_passes() {
    let Some(network) = Network::new() else { return };
    let (mut worker, reported) = network.worker();
    let mut hosts = [network.host_port(0), network.host_port(1)];
    network.hosts[0].set_down("eth0").expect("the interface is there");
    follow_until(&mut worker, |worker| are_up(worker) == [false, true]);
    network.hosts[0].set_up("eth0").expect("the interface is there");
    assert!(network.hosts[0].wait_for_link("eth0", TEST_TIMEOUT).expect("the interface is there"));
    hosts[0].send(&frame(7, 1)).expect("the port works");
    hosts[0].flush().expect("the port works");
    // One poll: the worker does not look for messages before the frame.
    let (clock, begin) = (Clock::start(), Instant::now());
    assert_eq!(are_up(&worker), [false, true]);
    let mut polls = 1;
    while worker.poll(&clock) == 0 {
        polls += 1;
        assert!(polls < 60 && begin.elapsed() < TEST_TIMEOUT, "the frame did not arrive");
    }
    assert_eq!(are_up(&worker), [true, true]);
    let mut received: Vec<Received> = Vec::new();
    while !received.iter().any(|received| received.data == frame(7, 1)) {
        assert!(begin.elapsed() < TEST_TIMEOUT, "the frame did not leave");
        hosts[1].receive(&mut received, 32).expect("the port works");
    }
    assert_eq!(*reported.lock().unwrap(), [(1, false), (1, true)]);
    // The message that comes now reports nothing again.
    worker.follow_links();
    assert_eq!(*reported.lock().unwrap(), [(1, false), (1, true)]);
}

#[test]
fn an_interface_that_is_renamed_or_removed_has_its_own_link() {
    let Some(network) = Network::new() else { return };
    let (mut worker, reported) = network.worker();
    network.switch.set_down("p1").expect("the interface is there");
    network.switch.rename("p1", "q1").expect("the interface is down");
    follow_until(&mut worker, |worker| are_up(worker) == [false, true]);
    network.switch.set_up("q1").expect("the interface is there");
    follow_until(&mut worker, |worker| are_up(worker) == [true, true]);
    network.hosts[0].set_down("eth0").expect("the interface is there");
    follow_until(&mut worker, |worker| are_up(worker) == [false, true]);
    network.switch.remove("q1").expect("the interface is there");
    worker.follow_links();
    assert_eq!(are_up(&worker), [false, true]);
    assert_eq!(*reported.lock().unwrap(), [(1, false), (1, true), (1, false)]);
}

#[test]
fn the_link_of_a_lost_port_is_not_followed() {
    let Some(network) = Network::new() else { return };
    let (mut worker, reported) = network.worker();
    worker.forget_link(PortId(1));
    for host in &network.hosts {
        host.set_down("eth0").expect("the interface is there");
    }
    follow_until(&mut worker, |worker| are_up(worker) == [true, false]);
    assert_eq!(*reported.lock().unwrap(), [(2, false)]);
}

#[test]
fn news_of_a_link_reaches_a_worker_that_differs() {
    let Some(network) = Network::new() else { return };
    let (mut worker, _) = network.worker();
    network.hosts[0].set_down("eth0").expect("the interface is there");
    follow_until(&mut worker, |worker| are_up(worker) == [false, true]);
    // As a worker of several does that receives a frame.
    worker.switch_mut().set_port_up(PortId(1), true);
    network.hosts[0].set_up("eth0").expect("the interface is there");
    network.hosts[0].set_down("eth0").expect("the interface is there");
    follow_until(&mut worker, |worker| are_up(worker) == [false, true]);
}
