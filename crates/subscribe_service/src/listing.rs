//! The rules as they are told, apart from the thread that changes them: who asks for them waits for no switch.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// A rule as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub text: Arc<str>,
    pub in_file: bool,
}

/// The rules that the switch delivers by, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Listing(RwLock<BTreeMap<u64, Listed>>);

impl Listing {
    /// Takes a change in that was made.
    pub fn change(&self, gone: &[u64], come: impl Iterator<Item = (u64, Listed)>) {
        let mut rules = self.0.write().unwrap_or_else(PoisonError::into_inner);
        gone.iter().for_each(|id| drop(rules.remove(id)));
        rules.extend(come);
    }

    /// All of them as they are now, between two changes.
    pub fn all(&self) -> Vec<(u64, Listed)> {
        let rules = self.0.read().unwrap_or_else(PoisonError::into_inner);
        rules.iter().map(|(id, listed)| (*id, listed.clone())).collect()
    }
}
