//! Keeps the rules that clients can list, shared with the thread that changes them. A reader never waits for the
//! switch.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// A rule as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedRule {
    pub text: Arc<str>,
    pub in_file: bool,
    /// The user that added it.
    pub owner: Option<Arc<str>>,
}

/// The rules that the switch delivers by, by their ids.
#[derive(Debug, Default)]
pub(crate) struct RuleSnapshot(RwLock<BTreeMap<u64, ListedRule>>);

impl RuleSnapshot {
    /// Applies a change: removes rules, then adds others.
    pub fn apply(&self, removed: &[u64], added: impl Iterator<Item = (u64, ListedRule)>) {
        let mut rules = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for id in removed {
            rules.remove(id);
        }
        rules.extend(added);
    }

    /// Returns all rules as they are between two changes.
    pub fn all(&self) -> Vec<(u64, ListedRule)> {
        let rules = self.0.read().unwrap_or_else(PoisonError::into_inner);
        rules.iter().map(|(id, rule)| (*id, rule.clone())).collect()
    }
}
