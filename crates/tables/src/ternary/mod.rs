//! Ternary match: prioritised rules with masks, ranges and several prefixes.
//!
//! [`Classifier`] is the interface. [`SmallScan`] compares a key with all of a few rules, [`TupleMerge`] hashes, and
//! [`Ternary`], which tables use, switches between the two as it grows. Another method (a learned index) would be
//! another implementation.
//!
//! Of the rules that match a key, the one with the highest priority wins, and of equal priorities the one inserted
//! first. A rule is identified by its pattern and priority: the same pattern may occur with several priorities.

mod grid;
mod merge;
mod rules;
mod scan;
mod tuple;

pub use merge::TupleMerge;
pub use scan::SmallScan;

use crate::PackedLookup;
use crate::key_layout::KeyLayout;
use crate::pattern::RulePattern;

/// A set of rules that may change between lookups.
pub trait Classifier: PackedLookup {
    /// Returns the number of rules.
    fn len(&self) -> usize;

    /// Whether there is no rule.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the handle of the rule with exactly this pattern and priority.
    fn find(&self, pattern: &RulePattern, priority: u64) -> Option<u32>;

    /// Adds a rule. If a rule with this pattern and priority exists, it gets the new handle, keeps its age, and its
    /// previous handle is returned.
    fn insert(&mut self, pattern: &RulePattern, priority: u64, handle: u32) -> Option<u32>;

    /// Removes a rule and returns its handle.
    fn remove(&mut self, pattern: &RulePattern, priority: u64) -> Option<u32>;

    /// Visits every rule, the oldest first: pattern, priority, handle.
    fn for_each(&self, visit: &mut dyn FnMut(&RulePattern, u64, u32));

    /// Returns the size of the rules in bytes.
    fn memory_bytes(&self) -> usize;
}

/// Maximum number of rules that are scanned; more are hashed.
pub const SCAN_LIMIT: usize = 64;
/// Number of rules below which a hashed table is scanned again.
const SCAN_RESUME_LIMIT: usize = 32;

#[derive(Clone, Debug)]
enum Method {
    Scan(Box<SmallScan>),
    Merge(Box<TupleMerge>),
}

/// A rule set of any size, with the method that suits it.
#[derive(Clone, Debug)]
pub struct Ternary {
    layout: KeyLayout,
    method: Method,
}

impl Ternary {
    /// Creates an empty set of rules.
    pub fn new(layout: &KeyLayout) -> Self {
        Ternary { layout: layout.clone(), method: Method::Scan(Box::new(SmallScan::new(layout.words()))) }
    }

    fn get(&self) -> &dyn Classifier {
        match &self.method {
            Method::Scan(scan) => &**scan,
            Method::Merge(merge) => &**merge,
        }
    }

    fn get_mut(&mut self) -> &mut dyn Classifier {
        match &mut self.method {
            Method::Scan(scan) => &mut **scan,
            Method::Merge(merge) => &mut **merge,
        }
    }

    /// Switches the method if there are too many or too few rules for it. Rules move in the order of their age, so that
    /// ties between equal priorities are preserved.
    fn consider_method(&mut self) {
        let method = match &self.method {
            Method::Scan(scan) if scan.len() > SCAN_LIMIT => {
                let mut merge = Box::new(TupleMerge::new(&self.layout));
                scan.for_each(&mut |pattern, priority, handle| {
                    merge.insert(pattern, priority, handle);
                });
                Method::Merge(merge)
            }
            Method::Merge(merge) if merge.len() < SCAN_RESUME_LIMIT => {
                let mut scan = Box::new(SmallScan::new(self.layout.words()));
                merge.for_each(&mut |pattern, priority, handle| {
                    scan.insert(pattern, priority, handle);
                });
                Method::Scan(scan)
            }
            _ => return,
        };
        self.method = method;
    }
}

impl PackedLookup for Ternary {
    fn words(&self) -> usize {
        self.layout.words()
    }

    fn lookup(&self, key: &[u64]) -> Option<u32> {
        self.get().lookup(key)
    }

    fn lookup_batch(&self, keys: &[u64], found: &mut [u32]) {
        self.get().lookup_batch(keys, found);
    }
}

impl Classifier for Ternary {
    fn len(&self) -> usize {
        self.get().len()
    }

    fn find(&self, pattern: &RulePattern, priority: u64) -> Option<u32> {
        self.get().find(pattern, priority)
    }

    fn insert(&mut self, pattern: &RulePattern, priority: u64, handle: u32) -> Option<u32> {
        let before = self.get_mut().insert(pattern, priority, handle);
        self.consider_method();
        before
    }

    fn remove(&mut self, pattern: &RulePattern, priority: u64) -> Option<u32> {
        let handle = self.get_mut().remove(pattern, priority);
        self.consider_method();
        handle
    }

    fn for_each(&self, visit: &mut dyn FnMut(&RulePattern, u64, u32)) {
        self.get().for_each(visit);
    }

    fn memory_bytes(&self) -> usize {
        self.get().memory_bytes()
    }
}
