//! TCP flows over a bottleneck: they fill it, whatever the capacity of its queue.

use std::net::Ipv4Addr;

use switch::Time;

use super::{app, cross, two_hosts};
use crate::sim::traffic::{Measurement, TcpSender, TcpSink};
use crate::sim::{CongestionControl, Simulation, Stack};
use crate::topology::{Delay, Rate, Shape};

const H2: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// Returns the share of a bottleneck's payload rate that a flow gets in `seconds` seconds. The link before the
/// bottleneck has ten times its rate.
fn share(mbps: u64, queue: u32, control: CongestionControl, seconds: u64) -> f64 {
    let fast = Shape { rate: Some(Rate::from_bps(mbps * 10_000_000)), delay: Delay::from_ms(1), ..Shape::default() };
    let mut topology = two_hosts(fast);
    topology.links[1].shape = Shape { rate: Some(Rate::from_bps(mbps * 1_000_000)), queue, ..fast };
    let (mut first, mut second) = (Stack::new(1500), Stack::new(1500));
    let window = 1 << 21;
    first.add(Box::new(TcpSender::new((H2, 5001), u64::MAX, window, Time::ZERO)));
    first.transport.control(5001, control);
    second.add(Box::new(TcpSink::new(5001, window)));
    let mut simulation = Simulation::new(&topology, 1, cross());
    simulation.run_program(0, Time::ZERO, Box::new(first));
    simulation.run_program(1, Time::ZERO, Box::new(second));
    simulation.run_until(Time::from_ms(1_000 * seconds), 1, &mut |_| {});
    // 1460 bytes of every 1514 are payload.
    app::<TcpSink>(&simulation, 1, 0).measured().rate_bps() / (mbps as f64 * 1e6 * 1460.0 / 1514.0)
}

/// A slow start that overshoots loses tens of frames in one window. SACK repairs them within a few round trips.
#[test]
fn flows_fill_a_bottleneck_with_a_short_queue_and_with_a_long_one() {
    for control in [CongestionControl::Reno, CongestionControl::Cubic] {
        for (mbps, queue) in [(1, 10), (10, 10), (10, 100), (100, 100)] {
            let share = share(mbps, queue, control, 20);
            assert!((0.95..=1.002).contains(&share), "{control:?}, {mbps} Mbit/s, {queue} frames: {share}");
        }
    }
}
