//! Tests on networks whose behaviour is known in closed form, and of determinism: the same seed gives the same bytes.

mod exact;
mod faults;
mod flood;
mod repeat;
mod tcp;

use std::any::Any;
use std::sync::Arc;

use switch::{Device, Frame, PortId, Time};

use super::{Element, MakeElement, Simulation, Stack};
use crate::generate::{NetworkKind, generate};
use crate::topology::{Shape, Topology};

/// A switch that forwards frames from port 1 to port 2 and from port 2 to port 1.
struct Cross;

impl Device for Cross {
    fn step(&mut self, _now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        output.extend(input.drain(..).map(|frame| Frame { port: PortId(3 - frame.port.0), data: frame.data }));
    }

    fn next_event(&self) -> Option<Time> {
        None
    }
}

impl Element for Cross {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

pub fn cross() -> MakeElement {
    Arc::new(|_| Box::new(Cross))
}

/// Creates a topology of two hosts, `h1` and `h2`, with one switch between them.
pub fn two_hosts(shape: Shape) -> Topology {
    generate(NetworkKind::Star { hosts: 2 }, shape, shape, 510).expect("it can be made")
}

/// Creates a simulation of two hosts with their stacks and a switch between them.
pub fn pair(shape: Shape, seed: u64, first: Stack, second: Stack) -> Simulation {
    let mut simulation = Simulation::new(&two_hosts(shape), seed, cross());
    simulation.run_program(0, Time::ZERO, Box::new(first));
    simulation.run_program(1, Time::ZERO, Box::new(second));
    simulation
}

/// Returns the application at a place of a host's stack.
pub fn app<T: 'static>(simulation: &Simulation, host: usize, at: usize) -> &T {
    let stack = simulation.program(host).and_then(|program| program.as_any().downcast_ref::<Stack>());
    let app = stack.expect("the host has a stack").apps().nth(at).expect("there is an application");
    app.as_any().downcast_ref().expect("it is one of this kind")
}
