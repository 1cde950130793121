//! Defines receivers of a switch's notifications.

use std::sync::Arc;

use ir::Program;
use switch::Notification;

/// A receiver of digests, packets to the controller and idle timeouts. All workers of a run share it.
pub trait NotificationSink: Send + Sync {
    /// Takes notifications that a switch sent while it ran `program`, oldest first. Packets wait meanwhile, so it must
    /// not block.
    fn receive(&self, program: &Arc<Program>, notifications: &[Notification]);
}
