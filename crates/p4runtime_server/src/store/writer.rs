//! Runs the writer thread of the store: it waits for the disk, so that no other thread has to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{mpsc, oneshot};

use super::{Store, StoreChanges, StoreError};
use crate::status::{Code, Refusal};

/// Maximum number of queued writes.
const WAITING: usize = 256;

/// Changes, and the channel for their result.
type CommitJob = (StoreChanges, oneshot::Sender<Result<(), StoreError>>);

/// The handle of the writer thread.
pub(crate) struct StoreWriter {
    jobs: mpsc::Sender<CommitJob>,
    /// Whether the last commit failed, so that changes wait for the next one.
    lags: Arc<AtomicBool>,
}

/// The result of a commit that has not completed.
pub(crate) struct PendingCommit(oneshot::Receiver<Result<(), StoreError>>);

impl StoreWriter {
    /// Starts the thread. It ends after its last job, once this is dropped.
    pub(crate) fn start(store: Box<dyn Store>) -> std::io::Result<StoreWriter> {
        let (jobs, todo) = mpsc::channel(WAITING);
        let lags = Arc::new(AtomicBool::new(false));
        let lag = lags.clone();
        std::thread::Builder::new().name("p4runtime-state".to_owned()).spawn(move || run(store, todo, &lag))?;
        Ok(StoreWriter { jobs, lags })
    }

    /// Commits the changes that a failed commit has left. Without this, changes of a store that fails for long would
    /// fill the memory, and the switch would move away from what the store holds.
    ///
    /// # Errors
    /// `UNAVAILABLE` if they cannot be committed now either.
    pub(crate) async fn check(&self) -> Result<(), Refusal> {
        if !self.lags.load(Ordering::Acquire) {
            return Ok(());
        }
        self.submit(StoreChanges::default()).await.wait_after("this was not applied, since earlier changes").await
    }

    /// Submits changes. They are applied in the order of these calls.
    pub(crate) async fn submit(&self, changes: StoreChanges) -> PendingCommit {
        let (sender, result) = oneshot::channel();
        // If the thread has ended, dropping the sender reports that.
        let _ = self.jobs.send((changes, sender)).await;
        PendingCommit(result)
    }
}

impl StoreWriter {
    /// Submits changes from a thread without an executor, and waits until they are durable.
    pub(crate) fn commit_blocking(&self, changes: StoreChanges) -> Result<(), StoreError> {
        let (sender, result) = oneshot::channel();
        let ended = || StoreError("its thread has ended".to_owned());
        self.jobs.blocking_send((changes, sender)).map_err(|_| ended())?;
        result.blocking_recv().unwrap_or_else(|_| Err(ended()))
    }
}

impl PendingCommit {
    /// Waits until the changes are durable.
    pub(crate) async fn wait(self) -> Result<(), Refusal> {
        self.wait_after("this was applied, but").await
    }

    /// Waits. `begin` is the beginning of the message about a failure.
    async fn wait_after(self, begin: &str) -> Result<(), Refusal> {
        let why = match self.0.await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.0,
            Err(_) => "its thread has ended".to_owned(),
        };
        let message = format!("{begin} could not be written to the state directory: {why}");
        Err(Refusal::new(Code::Unavailable, message))
    }
}

/// Commits all pending changes in one transaction. Changes that could not be committed are tried again with the next,
/// so that the store never holds a later change without an earlier one.
fn run(mut store: Box<dyn Store>, mut todo: mpsc::Receiver<CommitJob>, lags: &AtomicBool) {
    let mut changes = StoreChanges::default();
    while let Some((first, sender)) = todo.blocking_recv() {
        changes.extend(first);
        let mut senders = vec![sender];
        while let Ok((more, sender)) = todo.try_recv() {
            changes.extend(more);
            senders.push(sender);
        }
        let result = store.commit(&changes);
        if result.is_ok() {
            changes = StoreChanges::default();
        }
        lags.store(result.is_err(), Ordering::Release);
        for sender in senders {
            // The receiver may be gone.
            let _ = sender.send(result.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::{PipelineChanges, StoredRows, StoredState};
    use super::*;

    /// A store that fails while `is_full`, and remembers the keys of each commit.
    #[derive(Clone, Default)]
    struct FullStore {
        is_full: Arc<AtomicBool>,
        commits: Arc<Mutex<Vec<Vec<Vec<u8>>>>>,
    }

    impl Store for FullStore {
        fn load(&self) -> Result<Option<StoredState>, StoreError> {
            Ok(None)
        }

        fn visit(&self, _: StoredRows, _: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
            Ok(())
        }

        fn commit(&mut self, changes: &StoreChanges) -> Result<(), StoreError> {
            if self.is_full.load(Ordering::Relaxed) {
                return Err(StoreError("no space left".to_owned()));
            }
            self.commits.lock().unwrap().push(changes.committed.values.keys().cloned().collect());
            Ok(())
        }
    }

    #[test]
    fn a_write_is_refused_while_earlier_changes_cannot_be_stored() {
        let store = FullStore::default();
        let writer = StoreWriter::start(Box::new(store.clone())).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let change = |key: u8| StoreChanges {
            committed: PipelineChanges { values: [(vec![key], Some(vec![]))].into(), ..PipelineChanges::default() },
            ..StoreChanges::default()
        };
        runtime.block_on(async {
            writer.check().await.unwrap();
            store.is_full.store(true, Ordering::Relaxed);
            let refusal = writer.submit(change(1)).await.wait().await.unwrap_err();
            assert_eq!(refusal.code, Code::Unavailable);
            for _ in 0..2 {
                let refusal = writer.check().await.unwrap_err();
                assert_eq!(refusal.code, Code::Unavailable);
                assert!(refusal.message.starts_with("this was not applied"), "{}", refusal.message);
            }
            store.is_full.store(false, Ordering::Relaxed);
            writer.check().await.unwrap();
            assert_eq!(*store.commits.lock().unwrap(), [[[1]]], "the check has stored the earlier change");
            writer.check().await.unwrap();
            writer.submit(change(2)).await.wait().await.unwrap();
        });
        assert_eq!(*store.commits.lock().unwrap(), [[[1]], [[2]]]);
    }
}
