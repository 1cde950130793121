//! Opens the channels between the control plane and the packet thread.
//!
//! ```text
//!   server ── Operation ────────────────> [bounded queue] ──> OperationReceiver::poll, between two batches of packets
//!   NotificationReceiver <── [bounded queue] <── NotificationSender::send
//! ```
//!
//! An operation has the switch to itself, so no packet sees half of it. Its result reaches the server only after the
//! change is published to every worker of the switch: a packet that arrives after an acknowledgement never meets the
//! state before it. The packet thread holds the [`OperationReceiver`] and the [`NotificationSender`] and never waits
//! for the control plane: notifications that do not fit into the queue are counted and dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ir::Program;
use switch::{BuildError, Frame, Notification, SwitchControl, Time};
use tokio::sync::{mpsc, oneshot};

use crate::adaptive_spin::AdaptiveSpin;
use crate::status::{Code, Refusal};

/// The data plane as an operation sees it.
pub struct DataPlane<'a> {
    /// The switch. [`SwitchControl::swap_with`] puts another in its place.
    pub switch: &'a mut dyn SwitchControl,
    /// The switch's time.
    pub now: Time,
    /// Frames to transmit.
    pub output: &'a mut Vec<Frame>,
    /// Waits until no other thread runs packets of this switch. They resume only after all operations of this poll
    /// have run.
    pub stop_others: &'a dyn Fn(),
}

/// A function to run between two batches of packets. It should be short, because packets wait for it. It returns the
/// delivery of its result, if somebody waits for that.
type Operation = Box<dyn FnOnce(&mut DataPlane<'_>) -> Option<Delivery> + Send>;

/// Delivers the result of an operation, once the change is published.
type Delivery = Box<dyn FnOnce() + Send>;

/// A function that builds a switch for a new program, with the ports and settings of the running switch. A builder
/// always returns the same concrete type.
pub type SwitchBuilder = Arc<dyn Fn(Arc<Program>) -> Result<Box<dyn SwitchControl>, BuildError> + Send + Sync>;

/// Makes a [`SwitchBuilder`] from the constructor of one type of switch.
pub fn switch_builder<S: SwitchControl, E: Into<BuildError>>(
    build: impl Fn(Arc<Program>) -> Result<S, E> + Send + Sync + 'static,
) -> SwitchBuilder {
    Arc::new(move |program| match build(program) {
        Ok(switch) => Ok(Box::new(switch)),
        Err(error) => Err(error.into()),
    })
}

/// A function that wakes the packet thread if it sleeps.
pub type WakeFn = Arc<dyn Fn() + Send + Sync>;

/// Maximum number of operations that wait for the packet thread.
const OPERATION_QUEUE_CAPACITY: usize = 256;
/// Maximum number of notification batches that wait for the server.
const NOTIFICATION_QUEUE_CAPACITY: usize = 256;
/// Maximum number of operations that one [`OperationReceiver::poll`] runs, so that packets are not delayed for long.
const MAX_OPERATIONS_PER_POLL: usize = 64;

/// Both ends of the channels between the server and the thread that runs packets.
pub struct DataPlaneChannels {
    /// For the server: submits operations.
    pub handle: DataPlaneHandle,
    /// For the packet thread: runs pending operations.
    pub operations: OperationReceiver,
    /// For the packet thread: sends notifications.
    pub notifier: NotificationSender,
    /// For the server: receives notifications.
    pub notifications: NotificationReceiver,
}

impl DataPlaneChannels {
    /// Opens the channels. `waker` wakes the packet thread when an operation is pending.
    pub fn new(builder: SwitchBuilder, waker: WakeFn) -> DataPlaneChannels {
        let (operations, pending) = mpsc::channel(OPERATION_QUEUE_CAPACITY);
        let (batches, received) = mpsc::channel(NOTIFICATION_QUEUE_CAPACITY);
        let lost = Arc::new(AtomicU64::new(0));
        DataPlaneChannels {
            handle: DataPlaneHandle { operations, waker, builder, spin: Arc::new(AdaptiveSpin::new()) },
            operations: OperationReceiver { pending, deliveries: Vec::new() },
            notifier: NotificationSender { batches, lost: lost.clone() },
            notifications: NotificationReceiver { batches: received, lost },
        }
    }
}

/// The server's end: submits operations and builds switches.
#[derive(Clone)]
pub struct DataPlaneHandle {
    operations: mpsc::Sender<Operation>,
    waker: WakeFn,
    builder: SwitchBuilder,
    spin: Arc<AdaptiveSpin>,
}

impl DataPlaneHandle {
    /// Builds a switch for another program. It runs no packets yet.
    ///
    /// # Errors
    /// If the switch cannot run the program.
    pub fn build(&self, program: Arc<Program>) -> Result<Box<dyn SwitchControl>, BuildError> {
        (self.builder)(program)
    }

    /// Runs an operation on the packet thread and returns its result, after every worker of the switch has the change:
    /// each runs its next batch with it.
    ///
    /// # Errors
    /// `UNAVAILABLE` if no thread runs packets any more.
    pub async fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut DataPlane<'_>) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let (answer, answered) = oneshot::channel();
        let operation: Operation = Box::new(move |plane| {
            let result = operation(plane);
            // The caller may be gone.
            Some(Box::new(move || drop(answer.send(result))))
        });
        let gone = || Refusal::new(Code::Unavailable, "the switch is stopping");
        self.operations.send(operation).await.map_err(|_| gone())?;
        (self.waker)();
        self.spin.wait(answered).await.ok_or_else(gone)
    }

    /// Queues an operation without waiting for its result. Returns false if the queue is full or the packet
    /// thread has stopped.
    pub fn post(&self, operation: impl FnOnce(&mut DataPlane<'_>) + Send + 'static) -> bool {
        let operation: Operation = Box::new(move |plane| {
            operation(plane);
            None
        });
        let posted = self.operations.try_send(operation).is_ok();
        (self.waker)();
        posted
    }
}

/// The packet thread's end for operations.
pub struct OperationReceiver {
    pending: mpsc::Receiver<Operation>,
    /// Results of this poll's operations. Empty between two polls.
    deliveries: Vec<Delivery>,
}

impl OperationReceiver {
    /// Runs pending operations, up to a limit, publishes what they changed, and delivers their results. Returns true if
    /// more are pending.
    pub fn poll(&mut self, plane: &mut DataPlane<'_>) -> bool {
        let mut run = 0;
        while run < MAX_OPERATIONS_PER_POLL
            && let Ok(operation) = self.pending.try_recv()
        {
            self.deliveries.extend(operation(plane));
            run += 1;
        }
        if !self.deliveries.is_empty() {
            plane.switch.publish();
            self.deliveries.drain(..).for_each(|deliver| deliver());
        }
        run == MAX_OPERATIONS_PER_POLL && !self.pending.is_empty()
    }
}

/// The packet thread's end for notifications.
#[derive(Clone)]
pub struct NotificationSender {
    batches: mpsc::Sender<NotificationBatch>,
    lost: Arc<AtomicU64>,
}

impl NotificationSender {
    /// Sends notifications that the switch made while it ran `program`, or counts them as lost if the queue is full.
    pub fn send(&self, program: &Arc<Program>, notifications: Vec<Notification>) {
        let count = notifications.len() as u64;
        if self.batches.try_send(NotificationBatch { program: program.clone(), notifications }).is_err() {
            self.lost.fetch_add(count, Ordering::Relaxed);
        }
    }
}

/// Notifications and the program that ran when they were made; the ids in them are that program's.
pub(crate) struct NotificationBatch {
    pub(crate) program: Arc<Program>,
    pub(crate) notifications: Vec<Notification>,
}

/// The server's end for notifications.
pub struct NotificationReceiver {
    /// The received batches.
    pub(crate) batches: mpsc::Receiver<NotificationBatch>,
    lost: Arc<AtomicU64>,
}

impl NotificationReceiver {
    /// Returns the number of notifications lost because the server fell behind.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}
