//! The switches of simulated networks.

use std::any::Any;
use std::sync::Arc;

use elastic_switch::ElasticSwitch;
use lab::sim::{Element, WriteRefusal};
use resilient_switch::InBandSwitch;
use switch::{Device, Frame, PacketSwitch, PortId, SwitchControl, Time};
use v1model::Switch;

/// The changes of entries in a scenario.
pub trait ScenarioWrites: Send + Sync {
    /// Applies a change to a switch.
    ///
    /// # Errors
    /// The entries that the switch refuses, for people. The rest of the change is applied.
    fn apply(&self, number: usize, switch: &mut dyn SwitchControl) -> Result<(), String>;
}

/// A switch without a controller. Its notifications are discarded; only the scenario changes its entries.
pub struct Simulated<S> {
    /// The switch.
    pub switch: S,
    writes: Arc<dyn ScenarioWrites>,
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

/// Boxes a switch: with replicated state, or without.
pub fn in_band(switch: InBandSwitch<Switch>, writes: Arc<dyn ScenarioWrites>) -> Box<dyn Element> {
    Box::new(Simulated { switch, writes })
}

/// Boxes a switch with tables in the memory of servers.
pub fn elastic(switch: ElasticSwitch<Switch>, writes: Arc<dyn ScenarioWrites>) -> Box<dyn Element> {
    Box::new(Simulated { switch, writes })
}
