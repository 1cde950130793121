//! Comparison of the simulation with closed forms.

use switch::Time;

use super::{app, pair};
use crate::sim::traffic::{Measured, Measurement, Pattern, Ping, TcpSender, TcpSink, UdpSender, UdpSink};
use crate::sim::{CongestionControl, Stack};
use crate::topology::{Delay, Rate, Shape};

const H2: std::net::Ipv4Addr = std::net::Ipv4Addr::new(10, 0, 0, 2);

fn shape(rate_bps: u64, delay: Delay) -> Shape {
    Shape { rate: Some(Rate::from_bps(rate_bps)), delay, queue: 1_000_000, ..Shape::default() }
}

/// Returns the measurements of a sink that receives datagrams of `bytes` over two links of this shape.
fn datagrams(shape: Shape, bytes: u64, pattern: Pattern, seconds: u64) -> Measured {
    let (mut first, mut second) = (Stack::new(1500), Stack::new(1500));
    // The first datagram waits for ARP; measuring begins after it.
    first.add(Box::new(UdpSender::new(1, (H2, 9), bytes, pattern, Time::ZERO, Time::from_us(1))));
    first.add(Box::new(UdpSender::new(
        2,
        (H2, 9),
        bytes,
        pattern,
        Time::from_ms(50),
        Time::from_ms(50 + seconds * 1000),
    )));
    second.add(Box::new(UdpSink::new(9)));
    let mut simulation = pair(shape, 1, first, second);
    simulation.run_until(Time::from_ms(100 + seconds * 1000), 1, &mut |_| {});
    app::<UdpSink>(&simulation, 1, 0).flows[&2].clone()
}

#[test]
fn a_frame_takes_its_serialisation_and_propagation_and_nothing_else() {
    let shape = shape(100_000_000, Delay::from_us(250));
    let measured = datagrams(shape, 1250, Pattern::Constant { interval_ns: 1_000_000 }, 1);
    assert_eq!(measured.received, 1000);
    // Two links: 1250 bytes at 100 Mbit/s take 100 us on each, plus 250 us of propagation.
    let expected = 2 * (100_000 + 250_000);
    assert_eq!(measured.latency.min(), expected);
    assert_eq!(measured.latency.max(), expected);
}

/// The mean wait of an M/D/1 queue is rho / (2 (1 - rho)) service times (Pollaczek and Khinchine).
#[test]
fn a_queue_waits_as_queueing_theory_says() {
    for rho in [0.5, 0.8] {
        let (service_ns, delay) = (10_000.0, Delay::from_us(1));
        let shape = shape(1_000_000_000, delay);
        let measured = datagrams(shape, 1250, Pattern::Poisson { mean_ns: service_ns / rho }, 4);
        // The second link is as fast as the first, so no frame waits for it.
        let wait = measured.latency.mean() - 2.0 * (service_ns + delay.as_ns() as f64);
        let expected = service_ns * rho / (2.0 * (1.0 - rho));
        assert!((wait / expected - 1.0).abs() < 0.03, "rho {rho}: {wait} ns, expected {expected} ns");
    }
}

#[test]
fn losses_are_as_many_as_asked_for() {
    let shape = Shape { loss: 0.1, ..shape(1_000_000_000, Delay::from_us(1)) };
    let measured = datagrams(shape, 100, Pattern::Constant { interval_ns: 20_000 }, 2);
    let arrived = measured.received as f64 / 100_000.0;
    assert!((arrived - 0.81).abs() < 0.005, "{arrived} arrived over two links, 0.81 expected");
}

#[test]
fn pings_are_answered_after_the_round_trip() {
    let (mut first, second) = (Stack::new(1500), Stack::new(1500));
    first.add(Box::new(Ping::new(H2, 1, 10, 1_000_000, Time::from_ms(1))));
    let shape = Shape { rate: None, delay: Delay::from_us(100), ..Shape::default() };
    let mut simulation = pair(shape, 1, first, second);
    simulation.run_until(Time::from_ms(2000), 1, &mut |_| {});
    let measured = app::<Ping>(&simulation, 0, 0).measured();
    assert_eq!((measured.sent, measured.received), (10, 10));
    assert_eq!(measured.latency.min(), 400_000);
}

/// A TCP flow fills a link without losses.
#[test]
fn tcp_fills_a_link() {
    let (mut first, mut second) = (Stack::new(1500), Stack::new(1500));
    let window = 1 << 18;
    first.add(Box::new(TcpSender::new((H2, 5001), 10_000_000, window, Time::ZERO)));
    second.add(Box::new(TcpSink::new(5001, window)));
    let mut simulation = pair(shape(10_000_000, Delay::from_ms(1)), 1, first, second);
    simulation.run_until(Time::from_ms(20_000), 1, &mut |_| {});
    let measured = app::<TcpSink>(&simulation, 1, 0).measured();
    assert_eq!((measured.received, measured.bytes), (1, 10_000_000));
    // 1460 bytes of every 1514 are payload.
    let most = 10e6 * 1460.0 / 1514.0;
    assert!((0.97..=1.0).contains(&(measured.rate_bps() / most)), "{} of {most} bit/s", measured.rate_bps());
}

/// Over a lossy link, the rate of a TCP flow is about MSS / RTT * C / sqrt(p) (Mathis et al., 1997). For Reno, C is
/// between 0.87 with delayed acknowledgements and 1.22 without.
#[test]
fn tcp_over_a_lossy_link_obeys_the_mathis_bound() {
    for loss in [0.001, 0.004] {
        let (mut first, mut second) = (Stack::new(1500), Stack::new(1500));
        let window = 1 << 20;
        first.add(Box::new(TcpSender::new((H2, 5001), u64::MAX, window, Time::ZERO)));
        first.transport.control(5001, CongestionControl::Reno);
        second.add(Box::new(TcpSink::new(5001, window)));
        let mut simulation = {
            let lossy = Shape { loss, ..shape(1_000_000_000, Delay::from_ms(5)) };
            let mut topology = super::two_hosts(lossy);
            topology.links[1].shape.loss = 0.0;
            let mut simulation = crate::sim::Simulation::new(&topology, 5, super::cross());
            simulation.run_program(0, Time::ZERO, Box::new(first));
            simulation.run_program(1, Time::ZERO, Box::new(second));
            simulation
        };
        simulation.run_until(Time::from_ms(120_000), 1, &mut |_| {});
        let measured = app::<TcpSink>(&simulation, 1, 0).measured();
        let round_trip_s = 0.020;
        let bound = 1460.0 * 8.0 / round_trip_s * 1.22 / f64::sqrt(loss);
        let share = measured.rate_bps() / bound;
        println!("loss {loss}: {:.0} bit/s, {share:.2} of the Mathis bound", measured.rate_bps());
        assert!((0.6..1.1).contains(&share), "loss {loss}: {share} of the bound");
    }
}
