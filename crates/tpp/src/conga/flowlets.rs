//! The latest flowlet of each flow.

use std::collections::BTreeMap;

/// Maximum number of flows whose flowlets are known at a time. The packets of others are flowlets of their own.
pub const MAX_FLOWS: usize = 65_536;

/// The latest flowlet of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flowlet {
    pub path: usize,
    /// Time of its latest packet, in nanoseconds.
    last_ns: u64,
}

impl Flowlet {
    /// Whether a packet at this time belongs to the next flowlet.
    pub fn is_over(&self, now_ns: u64, gap_ns: u64) -> bool {
        now_ns.saturating_sub(self.last_ns) > gap_ns
    }
}

/// The latest flowlet of each flow.
#[derive(Clone, Debug)]
pub struct FlowletTable {
    flows: BTreeMap<u64, Flowlet>,
    gap_ns: u64,
    /// Time at which flows are forgotten next, if the table is full.
    forgets_ns: u64,
}

impl FlowletTable {
    pub fn new(gap_ns: u64) -> FlowletTable {
        FlowletTable { flows: BTreeMap::new(), gap_ns, forgets_ns: 0 }
    }

    /// Returns the latest flowlet of a flow.
    pub fn last(&self, flow: u64) -> Option<Flowlet> {
        self.flows.get(&flow).copied()
    }

    /// Records a packet.
    pub fn sent(&mut self, flow: u64, path: usize, now_ns: u64) {
        if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&flow) {
            // A flow whose flowlet is over loses nothing but its path. Looking at all costs time, so it is rare.
            if now_ns >= self.forgets_ns {
                self.flows.retain(|_, flowlet| !flowlet.is_over(now_ns, self.gap_ns));
                self.forgets_ns = now_ns.saturating_add(self.gap_ns);
            }
            if self.flows.len() >= MAX_FLOWS {
                return;
            }
        }
        self.flows.insert(flow, Flowlet { path, last_ns: now_ns });
    }
}
