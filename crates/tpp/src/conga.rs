//! CONGA*: load balancing over several paths, which the senders choose (paper, section 2.4).
//!
//! ```text
//!          discover: switch, port, capacity of each link             while the path is unknown
//! sender ─ sample:   switch, port, clock, utilization, bytes sent    each interval, on each path ──> echoes
//!        └ choose:   a packet keeps the path of its flowlet; a new flowlet takes the least loaded path
//! ```
//!
//! Packets carry what selects their path, such as a UDP source port. The caller numbers these *paths* from 0, and
//! programs travel on each as packets do. Which links a path has is known from the echoes only, so the switches may
//! select paths by any hash of what differs. Two numbers may be the same path.
//!
//! The load of a path is the maximum or the sum of the loads of its links between switches; the link to the receiver
//! is the same for all paths. The load of a link is the share of its capacity that it sent between two samples, and
//! `Link:TX-Utilization` at the first one and where the counters do not fit. Loads are smoothed. What the sender
//! itself sent counts at once, though: a sample has the bytes that were sent on the path before its program, and the
//! sender adds those that it sent since. Else all flowlets of a round trip would take the path that was idle in the
//! one before.
//!
//! A path without a recent sample is silent, and gets packets only if all paths are. A flow leaves such a path at once,
//! and not with its next flowlet.
//!
//! [`CongaBalancer`] is the path table of one destination. It neither sends nor reads a clock: the caller sends the
//! programs, and passes the echoes and the time.

mod flowlets;
mod own_rate;
mod programs;

use crate::asm::TinyProgram;
use crate::hop_words::{DISCOVERED, PathPrograms};
pub use crate::hop_words::{LinkPlace, PROGRAM_HOPS as MAX_HOPS};
use flowlets::FlowletTable;
pub use flowlets::MAX_FLOWS;
use own_rate::OwnRate;
use programs::{LinkWords, SAMPLED};

/// Maximum time between two samples whose byte counts are compared. The 32-bit counters wrap.
pub const LONGEST_INTERVAL_NS: u64 = 1_000_000_000;

/// Discoveries of a path that are sent at the interval of samples. Those after them are rarer, each by a factor of two.
const FAST_DISCOVERIES: u32 = 10;

/// Longest time between two discoveries of a path, unless the interval of samples is longer.
pub const LONGEST_DISCOVERY_NS: u64 = 1_000_000_000;

/// Greatest plausible load of a link. A counter that started again may show more.
const PLAUSIBLE_LOAD: f64 = 1.5;

/// Unit of `Link:TX-Utilization`, as a share of the capacity.
const UTILIZATION_UNIT: f64 = 1e-4;

/// The load of a path, from the loads of its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathMetric {
    /// The greatest load.
    Max,
    /// The sum of the loads.
    Sum,
}

/// Parameters of a balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongaSettings {
    /// Number of paths.
    pub paths: usize,
    /// Load of a path.
    pub metric: PathMetric,
    /// Time without a packet after which the next one of a flow begins a flowlet, in nanoseconds. It must exceed the
    /// difference of the paths' delays, or packets overtake each other.
    pub gap_ns: u64,
    /// Time constant of the smoothed loads, in nanoseconds.
    pub smoothing_ns: u64,
    /// Age of its latest sample at which a path is silent, in nanoseconds.
    pub age_ns: u64,
}

impl CongaSettings {
    /// Returns the usual parameters for samples every `interval_ns` nanoseconds: loads are smoothed over ten intervals,
    /// and a path is silent after ten.
    pub fn new(paths: usize, metric: PathMetric, gap_ns: u64, interval_ns: u64) -> CongaSettings {
        let ten = interval_ns.saturating_mul(10);
        CongaSettings { paths, metric, gap_ns, smoothing_ns: ten, age_ns: ten }
    }
}

/// Counts of a balancer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CongaCounts {
    /// Samples that came back, of all paths.
    pub samples: u64,
    /// Paths that were found to have other links than before.
    pub changed_paths: u64,
    /// Flowlets.
    pub flowlets: u64,
    /// Flowlets that took other links than the one before of their flow. Paths with the same links are one path.
    pub moves: u64,
}

/// A link of a path.
#[derive(Clone, Copy, Debug)]
struct PathLink {
    place: LinkPlace,
    /// Bytes a second; 0 for a link without a limit.
    capacity: f64,
    /// Clock and bytes of the latest sample.
    last: Option<LinkWords>,
    /// Share of the capacity.
    load: f64,
}

impl PathLink {
    /// Returns the load between the latest sample and this one, which the sender got `waited_ns` later; `None` if they
    /// do not fit each other, as after a restart of the switch.
    fn load_since(&self, sample: &LinkWords, waited_ns: u64) -> Option<f64> {
        let last = self.last.filter(|_| waited_ns <= LONGEST_INTERVAL_NS)?;
        let passed_ns = u64::from(sample.clock_ns.wrapping_sub(last.clock_ns));
        let capacity = self.capacity * passed_ns as f64 / 1e9;
        let load = f64::from(sample.sent_bytes.wrapping_sub(last.sent_bytes)) / capacity;
        let is_plausible = passed_ns > 0
            && passed_ns <= waited_ns.saturating_add(LONGEST_INTERVAL_NS)
            && capacity < f64::from(u32::MAX)
            && load <= PLAUSIBLE_LOAD;
        is_plausible.then_some(load)
    }

    /// Takes a sample.
    fn sampled(&mut self, sample: LinkWords, waited_ns: Option<u64>, smoothing_ns: u64) {
        if self.capacity == 0.0 {
            return;
        }
        let counted = waited_ns.and_then(|waited_ns| self.load_since(&sample, waited_ns));
        let load = counted.unwrap_or(f64::from(sample.utilization) * UTILIZATION_UNIT).min(PLAUSIBLE_LOAD);
        let weight = match (self.last, waited_ns) {
            (Some(_), Some(waited_ns)) => 1.0 - (-(waited_ns as f64) / smoothing_ns.max(1) as f64).exp(),
            _ => 1.0,
        };
        self.load += (load - self.load) * weight;
        self.last = Some(sample);
    }
}

/// A path: the links between the switches that its programs passed.
#[derive(Clone, Debug, Default)]
struct SampledPath {
    /// Number of switches; 0 while the path is unknown.
    hops: usize,
    links: Vec<PathLink>,
    /// Discoveries that were sent since the path became unknown.
    discoveries: u32,
    /// Time of the latest sample, in nanoseconds.
    sampled_ns: Option<u64>,
    /// What the sender sent on it.
    own: OwnRate,
}

impl SampledPath {
    fn load(&self, metric: PathMetric, now_ns: u64, smoothing_ns: u64) -> f64 {
        let added = self.own.since_sample(now_ns, smoothing_ns);
        let limited = self.links.iter().filter(|link| link.capacity > 0.0);
        let loads = limited.map(|link| (link.load + added / link.capacity).max(0.0));
        match metric {
            PathMetric::Max => loads.fold(0.0, f64::max),
            PathMetric::Sum => loads.sum(),
        }
    }
}

/// The path table of one destination, and the flowlets that go there.
#[derive(Clone, Debug)]
pub struct CongaBalancer {
    settings: CongaSettings,
    programs: PathPrograms,
    paths: Vec<SampledPath>,
    flowlets: FlowletTable,
    counts: CongaCounts,
}

impl CongaBalancer {
    /// Creates a balancer whose paths are unknown. It has one path at least.
    pub fn new(settings: CongaSettings) -> CongaBalancer {
        CongaBalancer {
            settings,
            programs: PathPrograms::new(&DISCOVERED, &SAMPLED),
            paths: vec![SampledPath::default(); settings.paths.max(1)],
            flowlets: FlowletTable::new(settings.gap_ns),
            counts: CongaCounts::default(),
        }
    }

    /// Returns the counts.
    pub fn counts(&self) -> CongaCounts {
        self.counts
    }

    /// Returns the load of a path, 1 for a link that is full; `None` if the path is silent or does not exist.
    pub fn load(&self, path: usize, now_ns: u64) -> Option<f64> {
        let path = self.paths.get(path)?;
        let age_ns = now_ns.saturating_sub(path.sampled_ns?);
        (age_ns <= self.settings.age_ns).then(|| path.load(self.settings.metric, now_ns, self.settings.smoothing_ns))
    }

    /// Returns the links of a path between switches; none while it is unknown.
    pub fn links(&self, path: usize) -> impl Iterator<Item = LinkPlace> + '_ {
        self.paths.get(path).into_iter().flat_map(|path| &path.links).map(|link| link.place)
    }

    /// Returns the program that is to be sent next on a path: a sample, or a discovery while the path is unknown.
    pub fn program(&mut self, path: usize, now_ns: u64) -> TinyProgram {
        match self.paths.get_mut(path) {
            Some(path) if path.hops > 0 => {
                path.own.sample_sent(now_ns, self.settings.smoothing_ns);
                self.programs.sample(path.links.len())
            }
            unknown => {
                unknown.into_iter().for_each(|path| path.discoveries = path.discoveries.saturating_add(1));
                self.programs.discovery()
            }
        }
    }

    /// Returns the time from the program that was just sent on a path to the next one, if the samples of a path are
    /// sent every `interval_ns` nanoseconds. It grows while the path stays unknown: its switches may execute no
    /// programs.
    pub fn wait_ns(&self, path: usize, interval_ns: u64) -> u64 {
        let doublings = self.paths.get(path).map_or(0, |path| path.discoveries.saturating_sub(FAST_DISCOVERIES));
        let wait_ns = interval_ns.saturating_mul(1 << doublings.min(32));
        wait_ns.min(LONGEST_DISCOVERY_NS.max(interval_ns))
    }

    /// Accepts the echo of a program that was sent on a path `rtt_ns` nanoseconds before. Returns whether the next
    /// program should follow at once: the path became known, or its links are not the ones that were known. Echoes must
    /// be passed in the order in which their programs were sent; older ones are to be dropped.
    pub fn echoed(&mut self, path: usize, now_ns: u64, rtt_ns: u64, echo: &TinyProgram) -> bool {
        let Some(known) = self.paths.get_mut(path) else { return false };
        if self.programs.is_discovery(echo) {
            let found = programs::discovered(echo);
            // The discoveries that were sent before the first one came back find the same.
            let Some((hops, links)) = found.filter(|_| known.hops == 0) else { return false };
            let link = |(place, capacity)| PathLink { place, capacity, last: None, load: 0.0 };
            *known = SampledPath {
                hops,
                links: links.into_iter().map(link).collect(),
                discoveries: 0,
                sampled_ns: None,
                own: known.own.clone(),
            };
            return true;
        }
        // The echo of a sample that was sent before the path became unknown.
        if known.hops == 0 {
            return false;
        }
        let samples = programs::sampled(echo, known.hops);
        let is_same = |samples: &Vec<(LinkPlace, LinkWords)>| {
            samples.iter().map(|(place, _)| *place).eq(known.links.iter().map(|link| link.place))
        };
        let Some(samples) = samples.filter(is_same) else {
            *known = SampledPath { own: known.own.clone(), ..SampledPath::default() };
            self.counts.changed_paths += 1;
            return true;
        };
        let waited_ns = known.sampled_ns.map(|last_ns| now_ns.saturating_sub(last_ns));
        for (link, (_, sample)) in known.links.iter_mut().zip(samples) {
            link.sampled(sample, waited_ns, self.settings.smoothing_ns);
        }
        known.own.sample_returned(now_ns.saturating_sub(rtt_ns));
        known.sampled_ns = Some(now_ns);
        self.counts.samples += 1;
        false
    }

    /// Whether two numbers are the same path, as far as it is known.
    fn is_same(&self, one: usize, other: usize) -> bool {
        let is_known = |path: usize| self.paths.get(path).is_some_and(|path| path.hops > 0);
        one == other || is_known(one) && is_known(other) && self.links(one).eq(self.links(other))
    }

    /// Returns the path of a packet of a flow, a frame of `bytes` bytes.
    pub fn choose(&mut self, flow: u64, bytes: u64, now_ns: u64) -> usize {
        let last = self.flowlets.last(flow);
        let loads: Vec<Option<f64>> = (0..self.paths.len()).map(|path| self.load(path, now_ns)).collect();
        let is_silent = |path: usize| loads[path].is_none() && loads.iter().any(Option::is_some);
        let kept = last.filter(|last| !last.is_over(now_ns, self.settings.gap_ns) && !is_silent(last.path));
        let path = match kept {
            Some(kept) => kept.path,
            None => {
                // Flows begin on different paths, and stay where no path is better.
                let usual = last.map_or(flow as usize % loads.len(), |last| last.path);
                let least = loads.iter().flatten().copied().fold(f64::INFINITY, f64::min);
                let is_least = |path: &usize| loads[*path].is_some_and(|load| load <= least);
                Some(usual).filter(is_least).or_else(|| (0..loads.len()).find(is_least)).unwrap_or(usual)
            }
        };
        self.counts.flowlets += u64::from(kept.is_none());
        self.counts.moves += u64::from(last.is_some_and(|last| !self.is_same(last.path, path)));
        self.flowlets.sent(flow, path, now_ns);
        self.paths[path].own.sent(bytes, now_ns, self.settings.smoothing_ns);
        path
    }
}

#[cfg(test)]
mod tests;
