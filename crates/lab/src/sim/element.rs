//! Defines the interface of a simulated switch.

use std::any::Any;
use std::sync::Arc;

use switch::{Device, PortId};

/// A switch in a simulation: a [`Device`] whose ports can be taken up and down.
pub trait Element: Device + Send {
    /// Takes a port up or down.
    fn set_port_up(&mut self, _port: PortId, _up: bool) {}

    /// Returns the number of frames that wait in the switch's own queues of a port, and the number dropped there.
    fn queue(&self, _port: PortId) -> (u64, u64) {
        (0, 0)
    }

    /// Applies the change of the switch's entries that has this number, as a controller would. `Err` says what was
    /// refused.
    fn write(&mut self, _number: usize) -> Result<(), String> {
        Err("it has no entries".to_owned())
    }

    /// Returns the switch itself, for callers that know its concrete type.
    fn as_any(&mut self) -> &mut dyn Any;
}

/// Creates the switch with this place in the topology, when the simulation begins and when the switch restarts after a
/// crash.
pub type MakeElement = Arc<dyn Fn(usize) -> Box<dyn Element> + Send + Sync>;
