//! Loops that multiply frames end the simulation before they exhaust memory.

use std::any::Any;
use std::net::Ipv4Addr;
use std::sync::Arc;

use switch::{Device, Frame, PortId, Time};

use crate::generate::{NetworkKind, generate};
use crate::sim::traffic::Ping;
use crate::sim::{Element, Simulation, Stack};
use crate::topology::Shape;

/// A switch that sends every frame out of all ports, including the ingress port.
struct Echo;

impl Device for Echo {
    fn step(&mut self, _now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        for frame in input.drain(..) {
            output.extend((1..=3).map(|port| Frame { port: PortId(port), data: frame.data.clone() }));
        }
    }

    fn next_event(&self) -> Option<Time> {
        None
    }
}

impl Element for Echo {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

#[test]
fn a_loop_that_multiplies_frames_ends_the_simulation() {
    let topology = generate(NetworkKind::Ring { switches: 3, hosts: 1 }, Shape::default(), Shape::default(), 510);
    let topology = topology.expect("it can be made");
    for threads in [1, 3] {
        let mut simulation = Simulation::new(&topology, 1, Arc::new(|_| Box::new(Echo)));
        simulation.max_held_bytes = 1 << 22;
        let mut stack = Stack::new(1500);
        stack.add(Box::new(Ping::new(Ipv4Addr::new(10, 0, 0, 9), 1, 1, 1, Time::ZERO)));
        simulation.run_program(0, Time::ZERO, Box::new(stack));
        simulation.run_until(Time::from_ms(1_000), threads, &mut |_| {});
        let ended = simulation.flooded().expect("it is flooded");
        assert!(ended < Time::from_ms(10) && simulation.now() == ended, "{ended}");
        // The simulation stays stopped.
        let events = simulation.totals().events;
        simulation.run_until(Time::from_ms(2_000), threads, &mut |_| {});
        assert_eq!(simulation.totals().events, events);
    }
}
