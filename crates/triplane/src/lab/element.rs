//! A v1model switch in a simulated network.

use std::any::Any;

use lab::sim::Element;
use switch::{Device, Frame, PortId, Time};
use v1model::Switch;

/// A switch whose messages to a controller go nowhere: there is none.
pub struct Simulated(pub Switch);

impl Device for Simulated {
    fn step(&mut self, now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        self.0.step(now, input, output);
        drop(self.0.take_notifications());
    }

    fn next_event(&self) -> Option<Time> {
        self.0.next_event()
    }
}

impl Element for Simulated {
    fn set_port_up(&mut self, port: PortId, up: bool) {
        self.0.set_port_up(port, up);
    }

    fn queue(&self, port: PortId) -> (u64, u64) {
        self.0.queue(port)
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
