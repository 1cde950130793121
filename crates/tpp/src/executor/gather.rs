//! Executes a program for many targets, and gathers the outcomes (paper, section 4.4).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::plan::ExecutionPlan;
use super::requests::{Completion, ProgramExecutor, RequestId, RequestOutcome};

/// A target: a plan for one switch or for a path, and the address to which its packets are sent.
#[derive(Clone, Debug)]
pub struct ScatterTarget {
    /// The address: that of the switch, or of a host past it.
    pub to: IpAddr,
    /// The plan.
    pub plan: Arc<ExecutionPlan>,
}

/// Requests that were sent together. Each target has one outcome; failures do not end the others.
#[derive(Clone, Debug)]
pub struct ScatterGather {
    deadline_ns: u64,
    targets: Vec<ScatterTarget>,
    /// Number of the targets that have a request.
    started: usize,
    waiting: BTreeMap<RequestId, usize>,
    outcomes: Vec<Option<RequestOutcome>>,
}

impl ScatterGather {
    /// Begins to execute plans, all until the same deadline.
    pub fn new(targets: Vec<ScatterTarget>, deadline_ns: u64) -> ScatterGather {
        let outcomes = vec![None; targets.len()];
        ScatterGather { deadline_ns, targets, started: 0, waiting: BTreeMap::new(), outcomes }
    }

    /// Passes requests to an executor, as many as it accepts, and takes their outcomes. To be called before and after
    /// the executor sends and receives. Returns the indexes of targets whose outcomes are new, and the outcomes of
    /// other requests.
    pub fn poll(&mut self, executor: &mut ProgramExecutor, now_ns: u64) -> (Vec<usize>, Vec<Completion>) {
        let (mut new, mut others) = (Vec::new(), Vec::new());
        while let Some(completion) = executor.completed(now_ns) {
            match self.waiting.remove(&completion.request) {
                Some(target) => {
                    self.outcomes[target] = Some(completion.outcome);
                    new.push(target);
                }
                None => others.push(completion),
            }
        }
        while let Some(target) = self.targets.get(self.started) {
            if now_ns >= self.deadline_ns {
                let outcome = RequestOutcome::TooLate { sent: 0, echoed: (0, target.plan.packets()) };
                self.outcomes[self.started] = Some(outcome);
                new.push(self.started);
            } else {
                let request = executor.execute(target.to, Arc::clone(&target.plan), self.deadline_ns);
                let Some(request) = request else { break };
                self.waiting.insert(request, self.started);
            }
            self.started += 1;
        }
        (new, others)
    }

    /// Whether all targets have an outcome.
    pub fn is_complete(&self) -> bool {
        self.started == self.targets.len() && self.waiting.is_empty()
    }

    /// Returns the outcomes in the order of the targets; `None` for those that are missing.
    pub fn into_outcomes(self) -> Vec<Option<RequestOutcome>> {
        self.outcomes
    }

    /// Returns the outcomes in the order of the targets; `None` for those that are missing.
    pub fn outcomes(&self) -> &[Option<RequestOutcome>] {
        &self.outcomes
    }
}
