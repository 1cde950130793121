//! Provides the packet thread's ends of the channels as parts of a run: a hook for operations, a sink for
//! notifications.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use ir::Program;
use runtime::{Hook, HookContext, NotificationSink, Waker};
use switch::{Notification, PacketSwitch};

use crate::data_plane::{
    DataPlane, DataPlaneChannels, DataPlaneHandle, NotificationReceiver, NotificationSender, OperationReceiver,
    SwitchBuilder,
};

/// Both ends of the channels between a server and a run.
pub struct RunChannels {
    /// For the server: submits operations.
    pub handle: DataPlaneHandle,
    /// For the run: executes operations between two batches of packets.
    pub hook: OperationHook,
    /// For the run: sends notifications.
    pub notifier: NotificationSender,
    /// For the server: receives notifications.
    pub notifications: NotificationReceiver,
}

impl RunChannels {
    /// Opens the channels. `builder` builds switches for the programs that controllers set.
    ///
    /// # Errors
    /// If the process can open no more descriptors.
    pub fn new(builder: SwitchBuilder) -> io::Result<RunChannels> {
        let waker = Waker::new()?;
        waker.arm();
        let server_waker = waker.clone();
        let DataPlaneChannels { handle, operations, notifier, notifications } =
            DataPlaneChannels::new(builder, Arc::new(move || server_waker.wake()));
        let hook = OperationHook { operations, waker, has_more: false };
        Ok(RunChannels { handle, hook, notifier, notifications })
    }
}

impl NotificationSink for NotificationSender {
    fn receive(&self, program: &Arc<Program>, notifications: &[Notification]) {
        self.send(program, notifications.to_vec());
    }
}

/// Executes a server's operations on the switch, between two batches of packets.
pub struct OperationHook {
    operations: OperationReceiver,
    /// Armed while no operation waits.
    waker: Waker,
    /// Whether the last poll left operations in the queue.
    has_more: bool,
}

impl OperationHook {
    /// Whether an operation waits.
    pub fn is_due(&self) -> bool {
        self.has_more || !self.waker.is_armed()
    }

    /// Returns the descriptor that is readable when an operation waits.
    pub fn poll_fd(&self) -> RawFd {
        self.waker.fd()
    }
}

impl<S: PacketSwitch> Hook<S> for OperationHook {
    fn poll(&mut self, context: &mut HookContext<'_, S>) {
        // From here on, an operation that is queued makes the hook due again.
        if !self.waker.take_wake() && !self.has_more {
            return;
        }
        let HookContext { now, switch, output, stop_others, .. } = context;
        let mut plane = DataPlane { switch: &mut **switch, now: *now, output, stop_others: *stop_others };
        self.has_more = self.operations.poll(&mut plane);
    }

    fn is_due(&self) -> bool {
        OperationHook::is_due(self)
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(OperationHook::poll_fd(self))
    }
}
