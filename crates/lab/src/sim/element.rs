//! What a simulated switch is.

use std::any::Any;
use std::sync::Arc;

use switch::{Device, PortId};

/// A switch in a simulation: a [`Device`] that can be told of its ports.
pub trait Element: Device + Send {
    /// Takes a port up or down.
    fn set_port_up(&mut self, _port: PortId, _up: bool) {}

    /// How many frames wait in the switch's own queues of a port, and how many were dropped there.
    fn queue(&self, _port: PortId) -> (u64, u64) {
        (0, 0)
    }

    /// Makes the change of its entries that has this number, as a controller would. `Err` says what was refused.
    fn write(&mut self, _number: usize) -> Result<(), String> {
        Err("it has no entries".to_owned())
    }

    /// The switch itself, for whoever knows what it is.
    fn as_any(&mut self) -> &mut dyn Any;
}

/// Makes the switch with this place in the topology: when the simulation begins, and when it starts again after a crash.
pub type MakeElement = Arc<dyn Fn(usize) -> Box<dyn Element> + Send + Sync>;
