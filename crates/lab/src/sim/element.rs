//! Defines the interface of a simulated switch.

use std::any::Any;
use std::sync::Arc;

use switch::{Device, PortId, Time};

/// A switch in a simulation: a [`Device`] whose ports can be taken up and down.
pub trait Element: Device + Send {
    /// Takes a port up or down.
    fn set_port_up(&mut self, _port: PortId, _up: bool) {}

    /// Returns the number of frames that wait in the switch's own queues of a port, and the number dropped there.
    fn queue(&self, _port: PortId) -> (u64, u64) {
        (0, 0)
    }

    /// Applies the change of the switch's entries that has this number, as a controller would at this time.
    ///
    /// # Errors
    /// If an update is refused. The others of the change are applied.
    fn write(&mut self, _now: Time, _number: usize) -> Result<(), WriteRefusal> {
        Err(WriteRefusal::NoEntries)
    }

    /// Returns the reports of the switch's INT sinks, with their times, the oldest first.
    fn int_reports(&self) -> &[(Time, Vec<u8>)] {
        &[]
    }

    /// Returns the switch's counters of tiny packet programs (`port.N.tpp.…`) and INT (`port.N.int.…`) that are not 0.
    fn tiny_counters(&self) -> Vec<(String, u64)> {
        Vec::new()
    }

    /// Returns the switch itself, for callers that know its concrete type.
    fn as_any(&mut self) -> &mut dyn Any;
}

/// Reason that a switch did not apply a change of its entries, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteRefusal {
    /// The switch has no entries.
    #[error("it has no entries")]
    NoEntries,
    /// The switch has crashed.
    #[error("the switch is down")]
    Down,
    /// The switch rejected updates, with its messages.
    #[error("{0}")]
    Rejected(String),
}

/// Creates the switch with this place in the topology, when the simulation begins and when the switch restarts after a
/// crash.
pub type MakeElement = Arc<dyn Fn(usize) -> Box<dyn Element> + Send + Sync>;
