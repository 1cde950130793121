//! Tests of determinism: the same seed gives the same bytes.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

use switch::Time;

use super::cross;
use crate::generate::{NetworkKind, generate};
use crate::sim::traffic::{Pattern, SizeDistribution, TcpFlows, TcpSink, UdpSender, UdpSink};
use crate::sim::{Capture, Simulation, Stack};
use crate::topology::{Delay, End, Link, Node as Name, Rate, Shape, Topology};

/// Returns a hash of every frame and its time at every host, and the totals.
fn hash(topology: &Topology, seed: u64, threads: usize, ms: u64) -> (Vec<u64>, String) {
    let mut simulation = Simulation::new(topology, seed, cross());
    let hashes: Vec<_> = topology.hosts.iter().map(|_| Arc::new(Mutex::new(DefaultHasher::new()))).collect();
    for (at, hash) in hashes.iter().enumerate() {
        let mut stack = Stack::new(1500);
        let to = topology.hosts[at ^ 1].address.expect("hosts have addresses").0;
        let poisson = Pattern::Poisson { mean_ns: 300_000.0 };
        stack.add(Box::new(UdpSender::new(at as u32, (to, 9), 500, poisson, Time::ZERO, Time::from_ms(300))));
        stack.add(Box::new(UdpSink::new(9)));
        let sizes = SizeDistribution::web_search();
        let end = Time::from_ms(300);
        stack.add(Box::new(TcpFlows::new(vec![(to, 80)], sizes, 20e6, Time::ZERO, end)));
        stack.add(Box::new(TcpSink::new(80, 1 << 16)));
        simulation.run_program(at, Time::ZERO, Box::new(stack));
        let end = topology.links.iter().flat_map(|link| link.ends).find(|end| end.node == Name::Host(at));
        let hash = Arc::clone(hash);
        let take = move |now: Time, way, frame: &[u8]| {
            (now.as_ns(), format!("{way:?}"), frame).hash(&mut *hash.lock().expect("nobody panics"));
        };
        simulation.capture(end.expect("hosts have links"), Capture::new(take));
    }
    simulation.sample_every(1_000_000);
    simulation.run_until(Time::from_ms(ms), threads, &mut |_| {});
    let hashes = hashes.iter().map(|hash| hash.lock().expect("nobody panics").finish()).collect();
    (hashes, format!("{:?} {:?} {}", simulation.totals(), simulation.samples(), simulation.digest()))
}

/// Creates a topology of host pairs with a switch between the hosts of each pair.
fn pairs(shape: Shape) -> Topology {
    let mut topology = Topology::default();
    for pair in 0..4 {
        let mut one = generate(NetworkKind::Star { hosts: 2 }, shape, shape, 510).expect("it can be made");
        one.switches[0].name = format!("s{pair}");
        for (at, host) in one.hosts.iter_mut().enumerate() {
            host.name = format!("h{pair}{at}");
        }
        for link in &mut one.links {
            for end in &mut link.ends {
                end.node = match end.node {
                    Name::Host(at) => Name::Host(at + topology.hosts.len()),
                    Name::Switch(_) => Name::Switch(pair),
                };
            }
        }
        topology.hosts.extend(one.hosts);
        topology.switches.extend(one.switches);
        topology.links.extend(one.links);
    }
    topology
}

/// Creates a topology of host pairs with a chain of switches between the hosts of each pair; every link has a different
/// delay.
fn chains(shape: Shape) -> Topology {
    let mut topology = pairs(shape);
    let (pairs, length) = (topology.switches.len(), 3);
    topology.links.clear();
    for pair in 0..pairs {
        let mut from = End { node: Name::Host(2 * pair), port: 0 };
        for number in 0..length {
            let mut switch = topology.switches[pair].clone();
            switch.name = format!("s{pair}{number}");
            topology.switches.push(switch);
            let node = Name::Switch(topology.switches.len() - 1);
            topology.links.push(Link { ends: [from, End { node, port: 1 }], shape, span: Default::default() });
            from = End { node, port: 2 };
        }
        let to = End { node: Name::Host(2 * pair + 1), port: 0 };
        topology.links.push(Link { ends: [from, to], shape, span: Default::default() });
    }
    topology.switches.drain(..pairs);
    for link in &mut topology.links {
        for end in &mut link.ends {
            if let Name::Switch(at) = &mut end.node {
                *at -= pairs;
            }
        }
    }
    for (at, link) in topology.links.iter_mut().enumerate() {
        link.shape.delay = Delay::from_ns([0, 1, 700, 20_000, 300_000][at % 5]);
    }
    topology
}

#[test]
fn delays_between_threads_may_differ_and_be_none() {
    let shape = Shape { rate: Some(Rate::from_bps(20_000_000)), loss: 0.01, reordering: 0.02, ..Shape::default() };
    let topology = chains(shape);
    let once = hash(&topology, 1, 1, 20);
    for threads in [2, 3] {
        assert_eq!(hash(&topology, 1, threads, 20), once, "{threads} threads");
    }
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
    let once = hash(&topology, 1, 1, 400);
    assert_eq!(hash(&topology, 1, 1, 400), once, "a second run");
    assert_eq!(hash(&topology, 1, 2, 400), once, "two threads");
    assert_eq!(hash(&topology, 1, 3, 400), once, "three threads");
    assert_ne!(hash(&topology, 2, 1, 400).0, once.0, "another seed");
}
