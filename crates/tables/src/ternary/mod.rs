//! Rules with masks, ranges and several prefixes, each with a priority.
//!
//! [`Classifier`] is the seam: [`SmallScan`] compares all of a few rules, [`TupleMerge`] hashes; [`Ternary`] is what a
//! table holds and moves from one to the other as it grows. Another method (a learned index) is another implementation.
//!
//! Of the rules that match a key wins the one with the largest priority; of several with that priority the one that
//! was inserted first. A rule is named by its pattern and priority: the same pattern may be there with several
//! priorities.

mod grid;
mod merge;
mod rules;
mod scan;
mod tuple;

pub use merge::TupleMerge;
pub use scan::SmallScan;

use crate::PackedLookup;
use crate::layout::Layout;
use crate::pattern::Pattern;

/// A set of rules, which may change between lookups.
pub trait Classifier: PackedLookup {
    /// The number of rules.
    fn len(&self) -> usize;

    /// Whether there is no rule.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The handle of the rule with exactly this pattern and priority.
    fn find(&self, pattern: &Pattern, priority: u64) -> Option<u32>;

    /// Adds a rule. If one with this pattern and priority is there, it gets the new handle, keeps its age, and the
    /// handle that it had is returned.
    fn insert(&mut self, pattern: &Pattern, priority: u64, handle: u32) -> Option<u32>;

    /// Takes a rule away and returns its handle.
    fn remove(&mut self, pattern: &Pattern, priority: u64) -> Option<u32>;

    /// Visits every rule, the oldest first: pattern, priority, handle.
    fn for_each(&self, visit: &mut dyn FnMut(&Pattern, u64, u32));

    /// The bytes that the rules take.
    fn memory_bytes(&self) -> usize;
}

/// Above how many rules a table is hashed instead of scanned.
pub const SCAN_MOST: usize = 64;
/// Below how many rules it is scanned again.
const SCAN_AGAIN: usize = 32;

#[derive(Clone, Debug)]
enum Method {
    Scan(Box<SmallScan>),
    Merge(Box<TupleMerge>),
}

/// Rules of any number, kept by the method that suits it.
#[derive(Clone, Debug)]
pub struct Ternary {
    layout: Layout,
    method: Method,
}

impl Ternary {
    /// An empty set of rules.
    pub fn new(layout: &Layout) -> Self {
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

    /// Moves the rules if there are too many or too few for the method. They move in the order of their age, so that
    /// equal priorities keep it.
    fn consider_method(&mut self) {
        let method = match &self.method {
            Method::Scan(scan) if scan.len() > SCAN_MOST => {
                let mut merge = Box::new(TupleMerge::new(&self.layout));
                scan.for_each(&mut |pattern, priority, handle| {
                    merge.insert(pattern, priority, handle);
                });
                Method::Merge(merge)
            }
            Method::Merge(merge) if merge.len() < SCAN_AGAIN => {
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

    fn find(&self, pattern: &Pattern, priority: u64) -> Option<u32> {
        self.get().find(pattern, priority)
    }

    fn insert(&mut self, pattern: &Pattern, priority: u64, handle: u32) -> Option<u32> {
        let before = self.get_mut().insert(pattern, priority, handle);
        self.consider_method();
        before
    }

    fn remove(&mut self, pattern: &Pattern, priority: u64) -> Option<u32> {
        let handle = self.get_mut().remove(pattern, priority);
        self.consider_method();
        handle
    }

    fn for_each(&self, visit: &mut dyn FnMut(&Pattern, u64, u32)) {
        self.get().for_each(visit);
    }

    fn memory_bytes(&self) -> usize {
        self.get().memory_bytes()
    }
}
