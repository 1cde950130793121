//! Visits the states of a model with `stateright`.

use stateright::{Checker, HasDiscoveries, Model};

use crate::bounds::ModelBounds;
use crate::system::SystemModel;

/// A counterexample: a path to a state that violates a property.
#[derive(Clone, Debug)]
pub struct ModelViolation {
    /// The property that it violates.
    pub property: &'static str,
    /// The steps from the first state to it.
    pub steps: Vec<String>,
}

/// Result of a search.
#[derive(Clone, Debug)]
pub struct SearchReport {
    /// Number of distinct states.
    pub states: usize,
    /// Number of steps between them.
    pub steps: usize,
    /// Length of the longest path that was explored, in steps.
    pub depth: usize,
    /// Whether all states within the bounds were visited.
    pub is_complete: bool,
    /// The first violation of each property, if there is one. The search ends with it.
    pub violations: Vec<ModelViolation>,
    /// Numbers of transitions of each kind.
    pub counts: Vec<(&'static str, u64)>,
}

/// Searches the states within the bounds in one thread, until all were visited, one of them violates a property, or
/// about `limit` steps were made.
pub fn search(bounds: ModelBounds, limit: usize) -> SearchReport {
    let builder = SystemModel::new(bounds).checker().threads(1).finish_when(HasDiscoveries::Any);
    let checker = builder.target_state_count(limit).spawn_dfs().join();
    let describe = |(state, action): (_, Option<_>)| Some(checker.model().describe(&state, action.as_ref()?));
    let discoveries = checker.discoveries().into_iter();
    let violations: Vec<ModelViolation> = discoveries
        .map(|(property, path)| {
            let steps = path.into_vec().into_iter().filter_map(describe).collect();
            ModelViolation { property, steps }
        })
        .collect();
    SearchReport {
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        depth: checker.max_depth(),
        is_complete: violations.is_empty() && checker.state_count() < limit,
        violations,
        counts: checker.model().coverage.counts().to_vec(),
    }
}
