//! Models a network: each link adds up what the flows send, and has the memory of its switch.

use super::*;

/// Time between two samples, and round trip of all flows.
pub const STEP_NS: u64 = 5_000_000;
const STEP_S: f64 = 0.005;

/// Longest queue of a link, in seconds of its capacity.
const QUEUE_S: f64 = 0.05;

pub const GBPS: f64 = 1e9 / 8.0;

/// A link of a switch of its own. The number of the switch is one higher than that of the link.
struct ModelLink {
    switch: OneLink,
    capacity: f64,
    offered: f64,
    queued: f64,
}

/// A flow and the links that it crosses.
pub struct ModelFlow {
    pub controller: RcpController,
    pub path: Vec<usize>,
    echoes: Vec<TinyProgram>,
}

impl ModelFlow {
    pub fn new(fairness: Fairness, path: &[usize]) -> ModelFlow {
        let controller = RcpController::new(RcpSettings::new(fairness));
        ModelFlow { controller, path: path.to_vec(), echoes: Vec::new() }
    }
}

pub struct ModelNetwork {
    links: Vec<ModelLink>,
    now_ns: u64,
}

impl ModelNetwork {
    /// Creates links with these capacities, in bytes a second.
    pub fn new(capacities: &[f64]) -> ModelNetwork {
        let link = |(at, capacity): (usize, &f64)| {
            let mut switch = OneLink::new();
            switch.set("Switch:ID", at as u64 + 1);
            switch.set("Link:Capacity", *capacity as u64);
            ModelLink { switch, capacity: *capacity, offered: 0.0, queued: 0.0 }
        };
        // The clocks of switches that run for long have more than 32 bits.
        ModelNetwork { links: capacities.iter().enumerate().map(link).collect(), now_ns: 8_000_000_000 }
    }

    /// Lets the links take what the flows send for a step.
    fn pass(&mut self, flows: &[ModelFlow]) {
        self.now_ns += STEP_NS;
        for (at, link) in self.links.iter_mut().enumerate() {
            let crossing = flows.iter().filter(|flow| flow.path.contains(&at));
            let offered = crossing.map(|flow| flow.controller.rate()).sum::<f64>() * STEP_S;
            link.offered += offered;
            let queued = link.queued + offered - link.capacity * STEP_S;
            link.queued = queued.clamp(0.0, QUEUE_S * link.capacity);
            link.switch.at(self.now_ns, link.offered as u64, link.queued as u64);
        }
    }

    /// Returns programs after all links of a path.
    fn executed(&mut self, programs: Vec<TinyProgram>, path: &[usize]) -> Vec<TinyProgram> {
        path.iter().fold(programs, |programs, link| self.links[*link].switch.execute_all(&programs))
    }

    /// Lets a flow accept its echoes, and send the next programs.
    fn sample(&mut self, flow: &mut ModelFlow) {
        if flow.controller.has_path() {
            let updates = flow.controller.collected(self.now_ns, STEP_NS, &flow.echoes);
            self.executed(updates, &flow.path);
        }
        while !flow.controller.has_path() {
            let echoes = self.executed(flow.controller.discovery(), &flow.path);
            if !flow.controller.discovered(&echoes) {
                return;
            }
        }
        flow.echoes = self.executed(flow.controller.collection(), &flow.path);
    }

    /// Lets the flows send for a number of seconds.
    pub fn run(&mut self, flows: &mut [ModelFlow], seconds: f64) {
        for step in 0..(seconds / STEP_S) as usize {
            self.pass(flows);
            // Of simultaneous updates the first is stored, so each flow is first in turn.
            (0..flows.len()).for_each(|at| self.sample(&mut flows[(at + step) % flows.len()]));
        }
    }
}

/// Returns the rates of flows after a number of seconds, relative to a capacity.
pub fn shares(network: &mut ModelNetwork, flows: &mut [ModelFlow], seconds: f64, capacity: f64) -> Vec<f64> {
    network.run(flows, seconds);
    flows.iter().map(|flow| flow.controller.rate() / capacity).collect()
}

#[track_caller]
pub fn assert_near(shares: &[f64], expected: &[f64], tolerance: f64) {
    let is_near = shares.iter().zip(expected).all(|(share, expected)| (share / expected - 1.0).abs() <= tolerance);
    assert!(is_near && shares.len() == expected.len(), "{shares:?}, expected {expected:?}");
}
