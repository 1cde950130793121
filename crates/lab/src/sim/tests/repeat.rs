//! The same seed gives the same bytes.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

use switch::Time;

use super::cross;
use crate::generate::{Kind, generate};
use crate::sim::traffic::{Pattern, SizeDistribution, TcpFlows, TcpSink, UdpSender, UdpSink};
use crate::sim::{Capture, CongestionControl, Simulation, Stack};
use crate::topology::{Delay, Rate, Shape, Topology};

/// A hash of every frame and its time at every host, and the totals.
fn hash(topology: &Topology, seed: u64, threads: usize) -> (Vec<u64>, String) {
    let mut simulation = Simulation::new(topology, seed, cross());
    let hashes: Vec<_> = topology.hosts.iter().map(|_| Arc::new(Mutex::new(DefaultHasher::new()))).collect();
    for (at, hash) in hashes.iter().enumerate() {
        let mut stack = Stack::new(1500);
        let to = topology.hosts[at ^ 1].address.expect("hosts have addresses").0;
        let poisson = Pattern::Poisson { mean_ns: 300_000.0 };
        stack.add(Box::new(UdpSender::new(at as u32, (to, 9), 500, poisson, Time::ZERO, Time::from_ms(300))));
        stack.add(Box::new(UdpSink::new(9)));
        let sizes = SizeDistribution::web_search();
        let (end, reno) = (Time::from_ms(300), CongestionControl::Reno);
        stack.add(Box::new(TcpFlows::new(vec![(to, 80)], sizes, 20e6, reno, Time::ZERO, end)));
        stack.add(Box::new(TcpSink::new(80, 1 << 16)));
        simulation.run_program(at, Time::ZERO, Box::new(stack));
        let end =
            topology.links.iter().flat_map(|link| link.ends).find(|end| end.node == crate::topology::Node::Host(at));
        let hash = Arc::clone(hash);
        let take = move |now: Time, way, frame: &[u8]| {
            (now.as_ns(), format!("{way:?}"), frame).hash(&mut *hash.lock().expect("nobody panics"));
        };
        simulation.capture(end.expect("hosts have links"), Capture::new(take));
    }
    simulation.sample_every(1_000_000);
    simulation.run_until(Time::from_ms(400), threads, &mut |_| {});
    let hashes = hashes.iter().map(|hash| hash.lock().expect("nobody panics").finish()).collect();
    (hashes, format!("{:?} {:?}", simulation.totals(), simulation.samples()))
}

/// Pairs of hosts with a switch between them.
fn pairs(shape: Shape) -> Topology {
    let mut topology = Topology::default();
    for pair in 0..4 {
        let mut one = generate(Kind::Star { hosts: 2 }, shape, shape).expect("it can be made");
        one.switches[0].name = format!("s{pair}");
        for (at, host) in one.hosts.iter_mut().enumerate() {
            host.name = format!("h{pair}{at}");
        }
        for link in &mut one.links {
            for end in &mut link.ends {
                end.node = match end.node {
                    crate::topology::Node::Host(at) => crate::topology::Node::Host(at + topology.hosts.len()),
                    crate::topology::Node::Switch(_) => crate::topology::Node::Switch(pair),
                };
            }
        }
        topology.hosts.extend(one.hosts);
        topology.switches.extend(one.switches);
        topology.links.extend(one.links);
    }
    topology
}

#[test]
fn a_seed_gives_the_same_bytes_on_every_run_and_number_of_threads() {
    let shape = Shape {
        rate: Some(Rate::from_bps(20_000_000)),
        delay: Delay::from_us(100),
        loss: 0.01,
        corruption: 0.005,
        duplication: 0.01,
        reordering: 0.02,
        queue: 20,
        ..Shape::default()
    };
    let topology = pairs(shape);
    let once = hash(&topology, 1, 1);
    assert_eq!(hash(&topology, 1, 1), once, "a second run");
    assert_eq!(hash(&topology, 1, 2), once, "two threads");
    assert_eq!(hash(&topology, 1, 3), once, "three threads");
    assert_ne!(hash(&topology, 2, 1).0, once.0, "another seed");
}
