//! Takes snapshots of metrics, and exchanges them between the thread that takes them and the thread that serves them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use switch::DropSite;
use tokio::sync::Notify;

use crate::family::MetricFamily;

/// Maximum age of a snapshot that is served.
const MAX_AGE: Duration = Duration::from_secs(1);

/// The metrics of a switch at one moment.
#[derive(Clone, Debug, Default)]
pub struct MetricsSnapshot {
    /// Names and values of the registry, and `table.T.entries` for each table `T`.
    pub numbers: Vec<(String, u64)>,
    /// Dropped packets by reason and place.
    pub sites: Vec<DropSite>,
    /// Metrics that are not numbers of a registry.
    pub families: Vec<MetricFamily>,
}

/// The state that both threads share.
pub(crate) struct SnapshotExchange {
    /// Maximum time that a scraper waits for a snapshot.
    timeout: Duration,
    /// Whether a scraper waits for a new snapshot.
    is_requested: AtomicBool,
    latest: Mutex<Option<(Instant, Arc<MetricsSnapshot>)>>,
    published: Notify,
}

/// The end of the thread that takes snapshots.
pub struct SnapshotSource(Arc<SnapshotExchange>);

impl SnapshotSource {
    pub(crate) fn new(exchange: Arc<SnapshotExchange>) -> SnapshotSource {
        SnapshotSource(exchange)
    }

    /// Whether a snapshot is requested. It costs one relaxed load.
    pub fn is_requested(&self) -> bool {
        self.0.is_requested.load(Ordering::Relaxed)
    }

    /// Takes and publishes a snapshot if one is requested.
    pub fn poll(&self, take: impl FnOnce() -> MetricsSnapshot) {
        if !self.is_requested() || !self.0.is_requested.swap(false, Ordering::AcqRel) {
            return;
        }
        let snapshot = Arc::new(take());
        let mut latest = self.0.latest.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = Some((Instant::now(), snapshot));
        drop(latest);
        self.0.published.notify_waiters();
    }
}

impl SnapshotExchange {
    /// Creates an exchange without a snapshot. A scraper waits for one for at most `timeout`.
    pub(crate) fn new(timeout: Duration) -> SnapshotExchange {
        SnapshotExchange {
            timeout,
            is_requested: AtomicBool::new(false),
            latest: Mutex::new(None),
            published: Notify::new(),
        }
    }

    /// Returns a snapshot that is at most a second old, or `None` if the source does not publish one in time.
    pub(crate) async fn latest(&self) -> Option<Arc<MetricsSnapshot>> {
        let deadline = Instant::now() + self.timeout;
        loop {
            let published = self.published.notified();
            tokio::pin!(published);
            // A snapshot that is published from here on wakes this task.
            published.as_mut().enable();
            if let Some(snapshot) = self.fresh() {
                return Some(snapshot);
            }
            self.is_requested.store(true, Ordering::Release);
            let left = deadline.saturating_duration_since(Instant::now());
            if tokio::time::timeout(left, published).await.is_err() {
                return self.fresh();
            }
        }
    }

    fn fresh(&self) -> Option<Arc<MetricsSnapshot>> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.as_ref().filter(|(taken, _)| taken.elapsed() < MAX_AGE).map(|(_, snapshot)| snapshot.clone())
    }
}
