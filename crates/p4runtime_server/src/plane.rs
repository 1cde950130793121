//! The way from the control plane to the packets and back, across threads.
//!
//! ```text
//!   server ── Operation ──> [bounded queue] ──> PlaneEnd::poll, between two batches of packets
//!   server <── Notified <── [bounded queue] <── Teller::tell
//! ```
//!
//! An operation has the switch to itself, so that no packet sees half of it. Whoever runs packets holds the
//! [`PlaneEnd`] and the [`Teller`], and never waits for the control plane: what does not fit into the queue back is
//! counted and dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ir::Program;
use switch::{BuildError, Frame, Notification, SwitchControl, Time};
use tokio::sync::{mpsc, oneshot};

use crate::lookout::Lookout;
use crate::status::{Code, Refusal};

/// The data plane, as an operation sees it.
pub struct Plane<'a> {
    /// The switch. [`SwitchControl::swap_with`] puts another in its place.
    pub switch: &'a mut dyn SwitchControl,
    /// The time of the switch.
    pub now: Time,
    /// Frames that leave.
    pub output: &'a mut Vec<Frame>,
    /// Returns when no other thread runs packets of this switch; none does until the plane's turn is over.
    pub stop_others: &'a dyn Fn(),
}

/// Something to do between two batches of packets. It should be short: packets wait meanwhile.
pub type Operation = Box<dyn FnOnce(&mut Plane<'_>) + Send>;

/// A function that builds a switch for a new program, with the ports and settings of the one that runs. All switches of
/// one builder are of one type.
pub type Builder = Arc<dyn Fn(Arc<Program>) -> Result<Box<dyn SwitchControl>, BuildError> + Send + Sync>;

/// Makes a [`Builder`] of a constructor of one type of switch.
pub fn switch_builder<S: SwitchControl, E: Into<BuildError>>(
    build: impl Fn(Arc<Program>) -> Result<S, E> + Send + Sync + 'static,
) -> Builder {
    Arc::new(move |program| match build(program) {
        Ok(switch) => Ok(Box::new(switch)),
        Err(error) => Err(error.into()),
    })
}

/// What wakes the thread that runs packets, should it sleep.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// Operations that wait for the packet thread at most.
const OPERATIONS: usize = 256;
/// Batches of notifications that wait for the server at most.
const BATCHES: usize = 256;
/// Operations run at one [`PlaneEnd::poll`] at most, so that packets have their turn.
const OPERATIONS_A_POLL: usize = 64;

/// Makes both ends.
pub fn plane(builder: Builder, waker: Waker) -> Both {
    let (operations, todo) = mpsc::channel(OPERATIONS);
    let (notify, notified) = mpsc::channel(BATCHES);
    let lost = Arc::new(AtomicU64::new(0));
    let handle = PlaneHandle { operations, waker, builder, lookout: Arc::new(Lookout::new()) };
    let teller = Teller { notify, lost: lost.clone() };
    Both { handle, end: PlaneEnd { todo }, teller, notified: Notified { batches: notified, lost } }
}

/// Both ends of both ways.
pub struct Both {
    /// For the server: the way to the packets.
    pub handle: PlaneHandle,
    /// For whoever runs packets: what is to be done.
    pub end: PlaneEnd,
    /// For whoever runs packets: the way back.
    pub teller: Teller,
    /// For the server: what comes back.
    pub notified: Notified,
}

/// The server's end.
#[derive(Clone)]
pub struct PlaneHandle {
    operations: mpsc::Sender<Operation>,
    waker: Waker,
    builder: Builder,
    lookout: Arc<Lookout>,
}

impl PlaneHandle {
    /// Builds a switch for another program. It runs no packets yet.
    ///
    /// # Errors
    /// If the switch cannot run the program.
    pub fn build(&self, program: Arc<Program>) -> Result<Box<dyn SwitchControl>, BuildError> {
        (self.builder)(program)
    }

    /// Runs an operation on the packet thread and gives what it returns.
    ///
    /// # Errors
    /// `UNAVAILABLE` if packets are run no longer.
    pub async fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Plane<'_>) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let (answer, answered) = oneshot::channel();
        let operation: Operation = Box::new(move |plane| drop(answer.send(operation(plane))));
        let gone = || Refusal::new(Code::Unavailable, "the switch is stopping");
        self.operations.send(operation).await.map_err(|_| gone())?;
        (self.waker)();
        self.lookout.wait(answered).await.ok_or_else(gone)
    }

    /// Leaves an operation for the packet thread. False if too many wait already.
    pub fn post(&self, operation: Operation) -> bool {
        let posted = self.operations.try_send(operation).is_ok();
        (self.waker)();
        posted
    }
}

/// The end of whoever runs packets.
pub struct PlaneEnd {
    todo: mpsc::Receiver<Operation>,
}

impl PlaneEnd {
    /// Runs what waits, up to a limit. True if more waits.
    pub fn poll(&mut self, plane: &mut Plane<'_>) -> bool {
        for _ in 0..OPERATIONS_A_POLL {
            match self.todo.try_recv() {
                Ok(operation) => operation(plane),
                Err(_) => return false,
            }
        }
        !self.todo.is_empty()
    }
}

/// The way back: what a switch tells the control plane.
#[derive(Clone)]
pub struct Teller {
    notify: mpsc::Sender<Told>,
    lost: Arc<AtomicU64>,
}

impl Teller {
    /// Hands what a switch told while it ran this program to the server, or counts it as lost if the server is behind.
    pub fn tell(&self, program: &Arc<Program>, notifications: Vec<Notification>) {
        let count = notifications.len() as u64;
        if self.notify.try_send(Told { program: program.clone(), notifications }).is_err() {
            self.lost.fetch_add(count, Ordering::Relaxed);
        }
    }
}

/// What a switch told while it ran a program, which is what the ids are of.
pub(crate) struct Told {
    pub(crate) program: Arc<Program>,
    pub(crate) notifications: Vec<Notification>,
}

/// The server's end of the way back.
pub struct Notified {
    /// What the switch told, in batches.
    pub(crate) batches: mpsc::Receiver<Told>,
    lost: Arc<AtomicU64>,
}

impl Notified {
    /// How many notifications were lost because the server was behind.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}
