//! The thread that waits for the disk, so that nothing else has to.

use tokio::sync::{mpsc, oneshot};

use super::{Changes, Store, StoreError};
use crate::status::{Code, Refusal};

/// Writes that wait for the disk at most; more wait before they begin.
const WAITING: usize = 256;

/// Changes, and whom to tell that they are durable.
type Job = (Changes, oneshot::Sender<Result<(), StoreError>>);

/// The way to the store's thread.
pub(crate) struct Keeper {
    jobs: mpsc::Sender<Job>,
}

/// An answer that is to come.
pub(crate) struct Durable(oneshot::Receiver<Result<(), StoreError>>);

impl Keeper {
    /// Starts the thread. It ends after its last job, once this is dropped.
    pub(crate) fn start(store: Box<dyn Store>) -> std::io::Result<Keeper> {
        let (jobs, todo) = mpsc::channel(WAITING);
        std::thread::Builder::new().name("p4runtime-state".to_owned()).spawn(move || run(store, todo))?;
        Ok(Keeper { jobs })
    }

    /// Hands changes over. They are kept in the order of these calls.
    pub(crate) async fn keep(&self, changes: Changes) -> Durable {
        let (tell, told) = oneshot::channel();
        // A thread that is gone drops `tell`, which is an answer too.
        let _ = self.jobs.send((changes, tell)).await;
        Durable(told)
    }
}

impl Durable {
    /// Waits until the changes are durable.
    pub(crate) async fn wait(self) -> Result<(), Refusal> {
        let why = match self.0.await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.0,
            Err(_) => "its thread has ended".to_owned(),
        };
        let message = format!("this is done, but could not be written to the state directory: {why}");
        Err(Refusal::new(Code::Unavailable, message))
    }
}

/// Whatever waits goes into one transaction. What could not be kept is tried again with what comes next, so that the
/// store never has a later change without an earlier one.
fn run(mut store: Box<dyn Store>, mut todo: mpsc::Receiver<Job>) {
    let mut changes = Changes::default();
    while let Some((first, tell)) = todo.blocking_recv() {
        changes.extend(first);
        let mut tells = vec![tell];
        while let Ok((more, tell)) = todo.try_recv() {
            changes.extend(more);
            tells.push(tell);
        }
        let result = store.commit(&changes);
        if result.is_ok() {
            changes = Changes::default();
        }
        for tell in tells {
            // Whoever asked may be gone.
            let _ = tell.send(result.clone());
        }
    }
}
