//! Commits the records of a node in a thread of its own, while the node continues.
//!
//! ```text
//!   node ── records ──> GroupCommit ── batch, if the thread is idle ──> thread: redb ── number ──> node.persisted
//! ```
//!
//! All records that became ready during a commit go into the next one, so a slow disk has longer transactions, not a
//! longer queue. The server stops receiving when too many records wait.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use resilient::LatencyHistogram;
use resilient::store::{CommitBatch, GroupCommit, StoreRecord};
use rustix::event::{EventfdFlags, eventfd};

use crate::disk::{DiskError, StoreDisk};

/// Maximum number of records that wait for a commit before the server stops receiving. Datagrams that it has already
/// received may add some.
const MAX_WAITING: u64 = 1 << 15;

/// The commits of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStatistics {
    /// Number of transactions.
    pub commits: u64,
    /// Number of records in all transactions: operations, and changes of a chain.
    pub records: u64,
    /// Number of rows on disk, including those without values.
    pub rows: u64,
}

/// The disk of a server that does not run.
pub struct ServerDisk {
    /// The file.
    pub disk: Arc<StoreDisk>,
    /// The records that wait.
    pub commit: GroupCommit,
    /// The commits so far.
    pub statistics: DiskStatistics,
    /// The durations of commits, from the end of a batch to the answer of the disk.
    pub latency: LatencyHistogram,
}

impl ServerDisk {
    /// Creates the disk of a server that is starting.
    pub fn new(disk: StoreDisk, commit: GroupCommit, rows: u64) -> ServerDisk {
        let statistics = DiskStatistics { rows, ..DiskStatistics::default() };
        ServerDisk { disk: Arc::new(disk), commit, statistics, latency: LatencyHistogram::default() }
    }
}

/// A thread that commits batches.
pub struct DiskWriter {
    batches: Option<Sender<CommitBatch>>,
    results: Receiver<Result<u64, DiskError>>,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    /// The statistics after the commit under way.
    under_way: Option<DiskStatistics>,
    /// Time at which the commit under way began.
    began: Instant,
}

impl DiskWriter {
    /// Starts the thread.
    pub fn start(disk: Arc<StoreDisk>) -> std::io::Result<DiskWriter> {
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (batches, waiting) = channel::<CommitBatch>();
        let (sender, results) = channel();
        let signal = Arc::clone(&wake);
        let serve = move || {
            for batch in waiting {
                let result = disk.commit(&batch).map(|()| batch.up_to());
                let is_failed = result.is_err();
                let is_heard = sender.send(result).is_ok();
                // A full counter wakes the reader as well.
                _ = rustix::io::write(&signal, &1u64.to_ne_bytes());
                if is_failed || !is_heard {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("store disk".to_owned()).spawn(serve)?;
        Ok(DiskWriter {
            batches: Some(batches),
            results,
            wake,
            thread: Some(thread),
            under_way: None,
            began: Instant::now(),
        })
    }

    /// Returns the descriptor that becomes readable when a commit has ended.
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Whether a commit is under way.
    pub fn is_busy(&self) -> bool {
        self.under_way.is_some()
    }

    /// Returns the number of the last record that is on disk, if a commit has ended since the last call.
    ///
    /// # Errors
    /// If the disk refuses the records.
    pub fn finished(&mut self, server: &mut ServerDisk) -> Result<Option<u64>, DiskError> {
        // The signal follows the result, so after each signal the result can be read.
        _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
        if self.under_way.is_none() {
            return Ok(None);
        }
        let result = match self.results.try_recv() {
            Ok(result) => result,
            Err(std::sync::mpsc::TryRecvError::Empty) => return Ok(None),
            Err(std::sync::mpsc::TryRecvError::Disconnected) => return Err(server.disk.abandoned()),
        };
        let up_to = result?;
        server.latency.record(self.began.elapsed().as_nanos() as u64);
        server.statistics = self.under_way.take().unwrap_or(server.statistics);
        Ok(Some(up_to))
    }

    /// Starts a commit of all records that wait, unless one is under way. `rows` is the number of rows of the node.
    pub fn start_commit(&mut self, server: &mut ServerDisk, rows: u64) -> Result<(), DiskError> {
        if self.under_way.is_some() {
            return Ok(());
        }
        let Some(batch) = server.commit.take() else { return Ok(()) };
        self.began = Instant::now();
        let DiskStatistics { commits, records, .. } = server.statistics;
        self.under_way = Some(DiskStatistics { commits: commits + 1, records: records + batch.records(), rows });
        let is_taken = self.batches.as_ref().is_some_and(|batches| batches.send(batch).is_ok());
        if is_taken { Ok(()) } else { Err(server.disk.abandoned()) }
    }
}

impl Drop for DiskWriter {
    fn drop(&mut self) {
        self.batches = None;
        // A panic of the thread was already reported.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl ServerDisk {
    /// Adds a record of the node.
    pub fn persist(&mut self, number: u64, record: StoreRecord) {
        self.commit.push(number, record);
    }

    /// Whether the node may receive more messages.
    pub fn has_room(&self) -> bool {
        self.commit.waiting() < MAX_WAITING
    }
}
