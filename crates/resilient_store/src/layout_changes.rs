//! Commits the operator's proposals in a thread of its own, so that the operator never waits for a disk or a service.
//!
//! ```text
//!   LayoutOperator ── Commit, Reload ──> LayoutChanges ── one request at a time ──> thread with a LayoutKeeper
//!                  <── committed, superseded ──┘      <── outcome ─────────────────┘
//! ```
//!
//! The operator has one proposal at a time. If it is unknown whether a proposal was committed, nothing else is proposed
//! before a load returns the committed record. While the keeper fails, loads are repeated at growing intervals.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use resilient::{LayoutOperator, LayoutRecord};

use crate::layout_keeper::{KeeperError, LayoutKeeper, LayoutSwap};

/// Shortest and longest time after which a record is loaded again if the keeper fails.
const MIN_RETRY: Duration = Duration::from_millis(250);
const MAX_RETRY: Duration = Duration::from_secs(4);

/// The committed record, if there is one.
type Loaded = Result<Option<LayoutRecord>, KeeperError>;

enum KeeperRequest {
    Load,
    Swap(LayoutRecord),
}

enum KeeperOutcome {
    Loaded(Loaded),
    Swapped(Result<LayoutSwap, KeeperError>),
}

/// A thread that executes the requests to a keeper one after another.
struct KeeperThread {
    requests: Option<Sender<KeeperRequest>>,
    outcomes: Receiver<KeeperOutcome>,
    is_busy: bool,
    thread: Option<JoinHandle<()>>,
}

impl KeeperThread {
    fn start(mut keeper: impl LayoutKeeper + Send + 'static) -> KeeperThread {
        let (requests, received) = channel();
        let (sender, outcomes) = channel();
        let serve = move || {
            while let Ok(request) = received.recv() {
                let outcome = match request {
                    KeeperRequest::Load => KeeperOutcome::Loaded(keeper.load()),
                    KeeperRequest::Swap(record) => KeeperOutcome::Swapped(keeper.compare_and_swap(&record)),
                };
                if sender.send(outcome).is_err() {
                    return;
                }
            }
        };
        let thread = Some(std::thread::spawn(serve));
        KeeperThread { requests: Some(requests), outcomes, is_busy: false, thread }
    }

    fn ask(&mut self, request: KeeperRequest) {
        let requests = self.requests.as_ref().expect("the thread ends with this value");
        requests.send(request).expect("the thread waits for requests");
        self.is_busy = true;
    }

    fn outcome(&mut self) -> Option<KeeperOutcome> {
        match self.outcomes.try_recv() {
            Ok(outcome) => {
                self.is_busy = false;
                Some(outcome)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => panic!("a keeper does not panic"),
        }
    }
}

impl Drop for KeeperThread {
    /// Joins the thread, unless it waits for a service.
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take().filter(|_| !self.is_busy) {
            // A panic was reported when it happened.
            _ = thread.join();
        }
    }
}

/// The state of a proposal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProposalState {
    /// The keeper was not asked yet.
    Waits,
    /// The keeper was asked.
    Asked,
    /// The keeper failed: the record may be committed now or later.
    Unknown,
}

/// The proposals of an operator, and their outcomes.
pub(crate) struct LayoutChanges {
    keeper: KeeperThread,
    check_interval: Option<Duration>,
    proposal: Option<(LayoutRecord, ProposalState)>,
    /// Time at which the record is loaded.
    load_at: Option<Instant>,
    /// Number of consecutive failures.
    failures: u32,
    /// The reason for which nothing can be changed.
    blocked_reason: Option<String>,
}

impl LayoutChanges {
    /// Starts the thread of a keeper.
    pub fn start(keeper: impl LayoutKeeper + Send + 'static, now: Instant) -> LayoutChanges {
        let check_interval = keeper.check_interval();
        LayoutChanges {
            keeper: KeeperThread::start(keeper),
            check_interval,
            proposal: None,
            load_at: check_interval.map(|interval| now + interval),
            failures: 0,
            blocked_reason: None,
        }
    }

    /// Proposes a record, which replaces the one with the previous epoch.
    pub fn propose(&mut self, record: LayoutRecord) {
        self.proposal = Some((record, ProposalState::Waits));
    }

    /// Loads the record soon. If the keeper is failing, a load is pending anyway.
    pub fn reload(&mut self, now: Instant) {
        if self.failures == 0 {
            self.load_at = Some(now);
        }
    }

    /// Whether an outcome is awaited.
    pub fn is_busy(&self) -> bool {
        self.keeper.is_busy
    }

    /// Returns the reason for which nothing can be changed.
    pub fn blocked_reason(&self) -> Option<&str> {
        self.blocked_reason.as_deref()
    }

    /// Passes the outcome of the last request to the operator, and begins the next one. Returns a remark for users.
    pub fn step(&mut self, now: Instant, operator: &mut LayoutOperator) -> Option<String> {
        let note = self.keeper.outcome().and_then(|outcome| self.take(now, outcome, operator));
        if self.keeper.is_busy {
            return note;
        }
        match &mut self.proposal {
            Some((record, state @ ProposalState::Waits)) => {
                *state = ProposalState::Asked;
                self.keeper.ask(KeeperRequest::Swap(record.clone()));
            }
            _ if self.load_at.is_some_and(|at| at <= now) => {
                self.load_at = None;
                self.keeper.ask(KeeperRequest::Load);
            }
            _ => {}
        }
        note
    }

    fn take(&mut self, now: Instant, outcome: KeeperOutcome, operator: &mut LayoutOperator) -> Option<String> {
        match outcome {
            KeeperOutcome::Swapped(Ok(LayoutSwap::Kept)) => {
                let (record, _) = self.proposal.take().expect("it was asked for");
                operator.committed(record.layout.epoch());
                self.recovered(now)
            }
            KeeperOutcome::Swapped(Ok(LayoutSwap::Superseded(kept))) => self.superseded(now, kept, operator),
            KeeperOutcome::Swapped(Err(error)) => {
                self.proposal.iter_mut().for_each(|(_, state)| *state = ProposalState::Unknown);
                self.failed(now, error.to_string())
            }
            KeeperOutcome::Loaded(Ok(kept)) => self.loaded(now, kept, operator),
            KeeperOutcome::Loaded(Err(error)) => self.failed(now, error.to_string()),
        }
    }

    fn loaded(&mut self, now: Instant, kept: Option<LayoutRecord>, operator: &mut LayoutOperator) -> Option<String> {
        let epoch = LayoutRecord::epoch_of(kept.as_ref());
        let is_new = epoch != operator.layout().epoch();
        match &self.proposal {
            Some((record, ProposalState::Unknown)) if kept.as_ref() == Some(record) => {
                self.proposal = None;
                operator.committed(epoch);
                self.recovered(now)
            }
            // The proposal was made while the record was loaded; the record has not changed.
            Some((_, ProposalState::Waits)) if !is_new => self.recovered(now),
            _ => self.superseded(now, kept, operator),
        }
    }

    /// Passes the committed record to the operator. One that is older than the operator's own is not adopted.
    fn superseded(
        &mut self,
        now: Instant,
        kept: Option<LayoutRecord>,
        operator: &mut LayoutOperator,
    ) -> Option<String> {
        let (epoch, known) = (LayoutRecord::epoch_of(kept.as_ref()), operator.layout().epoch());
        if epoch < known {
            self.proposal.iter_mut().for_each(|(_, state)| *state = ProposalState::Unknown);
            let found = if epoch == 0 { "found no record".to_owned() } else { format!("found layout {epoch}") };
            return self.failed(now, format!("layout {known} was lost: {found}; restore it"));
        }
        self.proposal = None;
        operator.superseded(kept);
        self.recovered(now)
    }

    fn failed(&mut self, now: Instant, reason: String) -> Option<String> {
        let delay = MIN_RETRY.saturating_mul(1 << self.failures.min(8)).min(MAX_RETRY);
        self.failures = self.failures.saturating_add(1);
        self.load_at = Some(now + delay);
        let is_first = self.blocked_reason.is_none();
        let note = is_first.then(|| format!("the layout cannot be changed: {reason}"));
        self.blocked_reason = Some(reason);
        note
    }

    fn recovered(&mut self, now: Instant) -> Option<String> {
        self.failures = 0;
        self.load_at = self.check_interval.map(|interval| now + interval);
        self.blocked_reason.take().map(|_| "the layout can be changed again".to_owned())
    }
}

#[cfg(test)]
#[path = "layout_changes_tests.rs"]
mod tests;
