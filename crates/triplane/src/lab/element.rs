//! A v1model switch in a simulated network.

use std::any::Any;
use std::sync::Arc;

use lab::sim::Element;
use switch::{Device, Frame, PortId, Time};
use v1model::Switch;

use super::writes::Writes;

/// A switch whose messages to a controller go nowhere: there is none, only the scenario's changes of entries.
pub struct Simulated {
    pub switch: Switch,
    pub writes: Arc<Writes>,
}

impl Device for Simulated {
    fn step(&mut self, now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        self.switch.step(now, input, output);
        drop(self.switch.take_notifications());
    }

    fn next_event(&self) -> Option<Time> {
        self.switch.next_event()
    }
}

impl Element for Simulated {
    fn set_port_up(&mut self, port: PortId, up: bool) {
        self.switch.set_port_up(port, up);
    }

    fn queue(&self, port: PortId) -> (u64, u64) {
        self.switch.queue(port)
    }

    fn write(&mut self, number: usize) -> Result<(), String> {
        self.writes.apply(number, &mut self.switch)
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
