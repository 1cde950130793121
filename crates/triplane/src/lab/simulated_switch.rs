//! Adapts a switch of any architecture in a simulated network.

use std::any::Any;
use std::sync::Arc;

use lab::sim::{Element, WriteRefusal};
use switch::{Device, Frame, PacketSwitch, PortId, Time};

use super::writes::Writes;

/// A switch without a controller. Its notifications are discarded; only the scenario changes its entries.
pub struct Simulated<S> {
    pub switch: S,
    pub writes: Arc<Writes>,
}

impl<S: PacketSwitch> Device for Simulated<S> {
    fn step(&mut self, now: Time, input: &mut Vec<Frame>, output: &mut Vec<Frame>) {
        self.switch.step(now, input, output);
        drop(self.switch.take_notifications());
    }

    fn next_event(&self) -> Option<Time> {
        self.switch.next_event()
    }
}

impl<S: PacketSwitch> Element for Simulated<S> {
    fn set_port_up(&mut self, port: PortId, up: bool) {
        self.switch.set_port_up(port, up);
    }

    fn queue(&self, port: PortId) -> (u64, u64) {
        self.switch.queue(port)
    }

    fn write(&mut self, number: usize) -> Result<(), WriteRefusal> {
        self.writes.apply(number, &mut self.switch).map_err(WriteRefusal::Rejected)
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
