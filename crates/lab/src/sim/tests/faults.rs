//! Tests of faults and of recovery from them.

use switch::Time;

use super::{app, pair};
use crate::sim::traffic::{Pattern, UdpSender, UdpSink};
use crate::sim::{Fault, Simulation, Stack};
use crate::topology::{Delay, Node, Shape};

const H2: std::net::Ipv4Addr = std::net::Ipv4Addr::new(10, 0, 0, 2);

/// Sends a datagram every millisecond for 100 ms while faults happen. Returns the number of arrived datagrams and the
/// time of the last one.
fn arrived(faults: &[(u64, Node, Fault)]) -> (u64, Time, Simulation) {
    let (mut first, mut second) = (Stack::new(1500), Stack::new(1500));
    let pattern = Pattern::Constant { interval_ns: 1_000_000 };
    first.add(Box::new(UdpSender::new(1, (H2, 9), 100, pattern, Time::from_us(10_500), Time::from_ms(110))));
    second.add(Box::new(UdpSink::new(9)));
    // ARP is done before the first datagram.
    first.add(Box::new(crate::sim::traffic::Ping::new(H2, 1, 1, 1, Time::ZERO)));
    let shape = Shape { delay: Delay::from_us(100), ..Shape::default() };
    let mut simulation = pair(shape, 1, first, second);
    for (at_ms, node, fault) in faults {
        simulation.fault(Time::from_ms(*at_ms), *node, *fault);
    }
    simulation.run_until(Time::from_ms(500), 1, &mut |_| {});
    let flow = app::<UdpSink>(&simulation, 1, 0).flows.get(&1).cloned().unwrap_or_default();
    (flow.received, flow.last.unwrap_or_default(), simulation)
}

#[test]
fn without_faults_everything_arrives() {
    assert_eq!(arrived(&[]).0, 100);
}

#[test]
fn a_crashed_switch_forwards_nothing_until_it_starts_again() {
    let switch = Node::Switch(0);
    let (received, last, simulation) = arrived(&[(30, switch, Fault::Crash), (50, switch, Fault::Restart)]);
    assert_eq!(received, 80);
    assert_eq!(simulation.totals().dropped, 20);
    assert!(last > Time::from_ms(100));
    assert_eq!(arrived(&[(30, switch, Fault::Crash)]).0, 20);
}

#[test]
fn a_link_that_is_down_carries_nothing() {
    let both = |at, host, switch| [(at, Node::Host(0), host), (at, Node::Switch(0), switch)];
    let down = both(20, Fault::LinkDown(0), Fault::LinkDown(1));
    let up = both(40, Fault::LinkUp(0), Fault::LinkUp(1));
    assert_eq!(arrived(&[down, up].concat()).0, 80);
}

#[test]
fn a_slow_host_falls_behind() {
    let (received, last, _) = arrived(&[(0, Node::Host(1), Fault::Slow(3_000_000))]);
    assert_eq!(received, 100);
    assert!(last > Time::from_ms(300), "{last}");
}

#[test]
fn a_clock_that_gains_sends_faster() {
    // The clock runs twice as fast: datagrams 21 to 100 take half the time.
    let skew = Fault::Skew { offset_ns: 0, drift_ppb: 1_000_000_000 };
    let (received, last, _) = arrived(&[(30, Node::Host(0), skew)]);
    assert_eq!(received, 100);
    assert!((Time::from_ms(69)..Time::from_ms(72)).contains(&last), "{last}");
}

#[test]
fn a_suspended_node_continues_with_what_has_waited() {
    for node in [Node::Switch(0), Node::Host(1)] {
        assert_eq!(arrived(&[(30, node, Fault::Suspend), (50, node, Fault::Resume)]).0, 100);
        assert_eq!(arrived(&[(30, node, Fault::Suspend)]).0, 20, "it never continues");
        let crash = [(30, node, Fault::Suspend), (40, node, Fault::Crash), (50, node, Fault::Resume)];
        assert_eq!(arrived(&crash).0, 20, "a crash loses what has waited");
    }
}
