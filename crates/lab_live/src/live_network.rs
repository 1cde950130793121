//! Defines [`LiveNetwork`], the interface to a live lab's switches, independent of their architecture.

use std::path::Path;
use std::sync::Arc;

use compiler::Architecture;
use ir::Program;
use lab::Topology;
use p4runtime_server::Pipeline;
use runtime::{Hook, NotificationSink};
use switch::{BuildError, PacketSwitch};

use crate::kernel_part::{KernelNotes, KernelPart, KernelPlan, KernelPort};
use crate::{ControllerEndpoint, LabError};

/// A topology and a constructor of its switches. Everything in it has been checked.
pub trait LiveNetwork: Send + Sync + 'static {
    /// A switch that runs.
    type Switch: PacketSwitch;

    /// Returns the hosts, switches and links.
    fn topology(&self) -> &Topology;

    /// Returns the P4Runtime endpoint of a switch, by its index in the topology; `None` if it has no controller.
    fn endpoint(&self, switch: usize) -> Option<ControllerEndpoint>;

    /// Returns the architecture that programs from controllers are compiled for.
    fn architecture(&self) -> &'static dyn Architecture;

    /// Creates the files that stores and switches share, in a directory of their own. The daemon of a lab with stores
    /// calls it once, before [`LiveNetwork::read_cluster`]. Returns false if no switch has anything to replicate.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    fn create_cluster(&self, _directory: &Path) -> Result<bool, LabError> {
        Ok(false)
    }

    /// Reads these files. Each process that runs switches of a lab with stores calls it before it creates one.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    fn read_cluster(&self, _directory: &Path) -> Result<(), LabError> {
        Ok(())
    }

    /// Creates a switch in its initial state. Random numbers of its program depend on the seed.
    fn switch(&self, switch: usize, seed: u64) -> Self::Switch;

    /// Creates a switch that runs a program from its controller, without entries.
    ///
    /// # Errors
    /// Returns an error if the switch cannot run the program.
    fn switch_for(&self, switch: usize, seed: u64, program: Arc<Program>) -> Result<Self::Switch, BuildError>;

    /// Returns the program of a switch as controllers see it; `None` if the switch waits for one.
    fn pipeline(&self, switch: usize) -> Option<Pipeline>;

    /// Returns the ports of a switch that are to run its program in the kernel.
    fn kernel_plan(&self, _switch: usize) -> KernelPlan {
        KernelPlan::default()
    }

    /// Runs the program of a new switch in the kernel, on these ports. The notes get what runs there and what does not,
    /// now and later. The calling thread has the privileges of the lab.
    ///
    /// # Errors
    /// Returns the reason if no packet can be processed there, or not on every port although the plan requires it.
    /// Nothing has changed then.
    fn attach_kernel(
        &self,
        _switch: usize,
        _running: &mut Self::Switch,
        _ports: Vec<KernelPort>,
        _notes: KernelNotes,
    ) -> Result<Box<dyn KernelPart<Self::Switch>>, String> {
        Err("the architecture does not run programs in the kernel".to_owned())
    }

    /// Creates the hooks and sinks that a switch has besides those of P4Runtime, when it starts. They end when it
    /// crashes.
    fn extensions(&self, _switch: usize) -> SwitchExtensions<Self::Switch> {
        SwitchExtensions { hooks: Vec::new(), sinks: Vec::new() }
    }
}

/// Hooks of a switch and receivers of its notifications.
pub struct SwitchExtensions<S> {
    /// The hooks, in the order in which they are polled.
    pub hooks: Vec<Box<dyn Hook<S>>>,
    /// The receivers of notifications, in the order in which they receive them.
    pub sinks: Vec<Arc<dyn NotificationSink>>,
}
