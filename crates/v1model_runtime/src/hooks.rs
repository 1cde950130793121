//! The hooks of runs as trait objects.

use elastic_switch::ElasticSwitch;
use p4runtime_server::OperationHook;
use resilient_store::{RowsSocket, StoreHook};
use resilient_switch::ResilientSwitch;
use runtime::Hook;
use v1model::Switch;

use crate::kernel::KernelHook;
use crate::memory_socket::MemorySocket;

/// Boxes the P4Runtime server's hook of a run.
pub fn operations(hook: OperationHook) -> Box<dyn Hook<Switch>> {
    Box::new(hook)
}

/// Boxes the P4Runtime server's hook of a run with replicated state.
pub fn resilient_operations(hook: OperationHook) -> Box<dyn Hook<ResilientSwitch<Switch>>> {
    Box::new(hook)
}

/// Boxes the P4Runtime server's hook of a run with tables in the memory of servers.
pub fn elastic_operations(hook: OperationHook) -> Box<dyn Hook<ElasticSwitch<Switch>>> {
    Box::new(hook)
}

/// Boxes the connection to the stores.
pub fn stores(hook: StoreHook) -> Box<dyn Hook<ResilientSwitch<Switch>>> {
    Box::new(hook)
}

/// Boxes the socket at which moves of rows are requested.
pub fn rows(socket: RowsSocket) -> Box<dyn Hook<ResilientSwitch<Switch>>> {
    Box::new(socket)
}

/// Boxes the socket at which memory servers are added and removed.
pub fn memory(socket: MemorySocket) -> Box<dyn Hook<ElasticSwitch<Switch>>> {
    Box::new(socket)
}

/// Boxes the hook of a program in the kernel.
pub fn kernel(hook: KernelHook) -> Box<dyn Hook<Switch>> {
    Box::new(hook)
}
