//! RCP*: fair rates of links, which the senders compute and keep in the switches (paper, section 2.2).
//!
//! ```text
//!          discover: switch, port, capacity of each link            once, and again now and then
//! sender ─ collect:  switch, port, clock, bytes offered │ queued, R, V   each interval ──> echoes
//!        └ update:   CSTORE V: old -> new; STORE R                  after each pair of echoes
//! ```
//!
//! A link has two words of applications: its fair rate R ([`rate_word`]), and the time V of the sample from which R was
//! computed, in the low 32 bits of the switch's clock. V is the version of R: an update is stored only if nobody else
//! has stored one since its sample, so no value of R can be mistaken for an older one that was equal. V also says how
//! long ago the last update was, so the gain of a link does not depend on the number of its senders. A switch that has
//! just started has zero in both words; the next sender stores a first rate.
//!
//! A sample has seven words of each switch and its identity, and a program at most five instructions, so it takes two
//! programs; a path of more than 23 switches takes two for each 23. Counters, their clock and their link are read by
//! the same program, as are R and V.
//!
//! [`RcpController`] is the controller of one flow. It neither sends nor reads a clock: the caller sends the programs,
//! and passes the echoes and the time.

mod law;
mod programs;

use crate::asm::TinyProgram;
pub use crate::hop_words::LinkPlace;

pub use law::{Fairness, LinkState, RcpSettings};
use programs::LinkUpdate;
pub use programs::{MAX_HOPS, rate_of, rate_word};

/// Number of samples without echo after which a sender halves its rate.
const SILENCE: u32 = 4;

/// A link with a greater load, as a share of its capacity, is nearly busy.
const LOADED_SHARE: f64 = 0.8;

/// Greatest plausible load, as a multiple of the capacity. A counter that started again may show more.
const PLAUSIBLE_LOAD: f64 = 64.0;

/// Longest time between two samples whose load is computed. The clock of a switch begins again after 4.29 s.
pub const LONGEST_INTERVAL_NS: u64 = 2_000_000_000;

/// Time by which a version may be later than a sample: another sender's update came between the sample's two programs.
const LATE_VERSION_NS: u32 = 100_000_000;

/// What programs collected at a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSample {
    /// Low 32 bits of the switch's clock, in nanoseconds.
    pub clock_ns: u32,
    /// Bytes that were offered to the link's queues, dropped ones included.
    pub offered_bytes: u64,
    /// Bytes that wait.
    pub queued_bytes: u32,
    /// Fair rate in bytes a second; `None` if none was stored.
    pub rate: Option<f64>,
    /// Its version: the clock of the sample from which it was computed.
    pub version: u32,
}

impl LinkSample {
    /// Returns the time since the last update in seconds.
    fn since_s(&self) -> f64 {
        let since_ns = self.clock_ns.wrapping_sub(self.version);
        if since_ns > u32::MAX - LATE_VERSION_NS { 0.0 } else { f64::from(since_ns) / 1e9 }
    }

    /// Returns the version of a rate that is computed from this sample; never that of a link without a rate.
    fn next_version(&self) -> u32 {
        self.clock_ns.max(1)
    }
}

/// A link of the path.
#[derive(Clone, Copy, Debug)]
struct PathLink {
    place: LinkPlace,
    /// Bytes a second; 0 for a link without a limit.
    capacity: f64,
    /// The latest sample, and the sender's time of it in nanoseconds.
    last: Option<(LinkSample, u64)>,
    rate: f64,
}

impl PathLink {
    /// Returns the load in bytes a second between the latest sample and this one; `None` if they do not fit each other,
    /// as after a restart of the switch.
    fn load(&self, sample: &LinkSample, now_ns: u64) -> Option<f64> {
        let (last, last_ns) = self.last?;
        let passed_ns = f64::from(sample.clock_ns.wrapping_sub(last.clock_ns));
        let waited_ns = now_ns.saturating_sub(last_ns) as f64;
        let load = sample.offered_bytes.checked_sub(last.offered_bytes)? as f64 / passed_ns * 1e9;
        let is_plausible = passed_ns > 0.0
            && waited_ns <= 2.0 * LONGEST_INTERVAL_NS as f64
            && passed_ns < 2.0 * waited_ns + 1e9
            && load <= PLAUSIBLE_LOAD * self.capacity;
        is_plausible.then_some(load)
    }
}

/// Counts of a controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RcpCounts {
    /// Samples that came back.
    pub samples: u64,
    /// Rates that were to be stored, over all links.
    pub updates: u64,
    /// Rates of links that had none.
    pub first_rates: u64,
    /// Samples without echo.
    pub lost: u64,
}

/// The rate controller of one flow.
#[derive(Clone, Debug)]
pub struct RcpController {
    settings: RcpSettings,
    links: Vec<PathLink>,
    /// Number of switches that the next discovery has memory for.
    asked_hops: usize,
    rtt_ns: f64,
    rate: f64,
    /// Greatest load of a link in the latest sample, as a share of its capacity.
    load_share: f64,
    unanswered: u32,
    counts: RcpCounts,
}

impl RcpController {
    /// Creates the controller of a flow whose path is unknown.
    pub fn new(settings: RcpSettings) -> RcpController {
        RcpController {
            settings,
            links: Vec::new(),
            asked_hops: 1,
            rtt_ns: 0.0,
            rate: 0.0,
            load_share: 0.0,
            unanswered: 0,
            counts: RcpCounts::default(),
        }
    }

    /// Returns the rate at which the flow may send, in bytes a second. It is 0 until the first sample.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Whether a link of the path was nearly busy in the latest sample. Then programs should be few: they take room
    /// from the flows.
    pub fn is_loaded(&self) -> bool {
        self.load_share > LOADED_SHARE
    }

    /// Returns the counts.
    pub fn counts(&self) -> RcpCounts {
        self.counts
    }

    /// Whether the path is known, so that samples can be collected.
    pub fn has_path(&self) -> bool {
        !self.links.is_empty()
    }

    /// Returns the programs that discover the path. The caller sends them together, and passes their echoes in the same
    /// order to [`RcpController::discovered`].
    pub fn discovery(&self) -> Vec<TinyProgram> {
        programs::discovery(self.asked_hops)
    }

    /// Accepts all echoes of a discovery. Returns whether the next programs should follow at once: a sample, or the
    /// discovery of a path that was longer than these programs have memory for. The path stays unknown if it has no
    /// switch, or more than [`MAX_HOPS`].
    pub fn discovered(&mut self, echoes: &[TinyProgram]) -> bool {
        let Some((passed, found)) = programs::discovered(echoes) else { return false };
        self.asked_hops = passed.clamp(1, MAX_HOPS);
        if found.len() < passed || passed > MAX_HOPS {
            self.links.clear();
            return passed <= MAX_HOPS;
        }
        let known = |place, capacity| self.links.iter().find(|link| (link.place, link.capacity) == (place, capacity));
        let new = |place, capacity| PathLink { place, capacity, last: None, rate: 0.0 };
        let link = |(place, capacity)| known(place, capacity).copied().unwrap_or_else(|| new(place, capacity));
        self.links = found.into_iter().map(link).collect();
        self.has_path()
    }

    /// Returns the programs that collect a sample. The caller sends them together, and passes all echoes in the same
    /// order to [`RcpController::collected`].
    pub fn collection(&mut self) -> Vec<TinyProgram> {
        self.unanswered += 1;
        if self.unanswered > SILENCE {
            self.rate /= 2.0;
            self.counts.lost += 1;
        }
        programs::collection(self.links.len())
    }

    /// Accepts the echoes of a collection, which took `rtt_ns` nanoseconds, and returns the programs that update the
    /// links. Their echoes need not be waited for: an update that is lost or late is one that another sender makes.
    ///
    /// Samples of another path say nothing of this one: if the echoes passed other links, the path is unknown from then
    /// on, and all samples are dropped.
    pub fn collected(&mut self, now_ns: u64, rtt_ns: u64, echoes: &[TinyProgram]) -> Vec<TinyProgram> {
        let samples = programs::collected(echoes, self.links.len());
        let is_known = |samples: &Vec<(LinkPlace, LinkSample)>| {
            samples.iter().map(|(place, _)| *place).eq(self.links.iter().map(|link| link.place))
        };
        let Some(samples) = samples.filter(is_known) else {
            self.links.clear();
            return Vec::new();
        };
        self.unanswered = 0;
        self.counts.samples += 1;
        // Echoes that waited in a queue count, too: the law has the mean round-trip time.
        self.rtt_ns += (rtt_ns as f64 - self.rtt_ns) / if self.rtt_ns == 0.0 { 1.0 } else { 8.0 };
        self.load_share = 0.0;
        let updates: Vec<Option<LinkUpdate>> =
            samples.iter().enumerate().map(|(at, (_, sample))| self.sampled(at, sample, now_ns)).collect();
        self.rate = self.flow_rate().unwrap_or(self.rate);
        programs::updates(&updates, &samples)
    }

    /// Returns the rate of the flow; `None` if no link has a limit. Fair rates exceed the capacities of links with
    /// room, but no flow does.
    fn flow_rate(&self) -> Option<f64> {
        let limited = || self.links.iter().filter(|link| link.capacity > 0.0 && link.rate > 0.0);
        let least = limited().map(|link| link.capacity).fold(f64::INFINITY, f64::min);
        Some(self.settings.fairness.rate(limited().map(|link| link.rate))?.min(least))
    }

    /// Takes a sample of a link, and returns its update if there is one.
    fn sampled(&mut self, at: usize, sample: &LinkSample, now_ns: u64) -> Option<LinkUpdate> {
        let settings = &self.settings;
        let path_links = self.links.iter().filter(|link| link.capacity > 0.0).count();
        let link = &mut self.links[at];
        if link.capacity == 0.0 {
            return None;
        }
        let load = link.load(sample, now_ns);
        let sampled_ns = link.last.map(|(_, last_ns)| now_ns.saturating_sub(last_ns));
        link.last = Some((*sample, now_ns));
        let Some(rate) = sample.rate else {
            // Multiplied by anything, zero would stay.
            link.rate = settings.first_rate(link.capacity);
            (self.counts.updates, self.counts.first_rates) = (self.counts.updates + 1, self.counts.first_rates + 1);
            return Some([sample.version, sample.next_version(), rate_word(link.rate)]);
        };
        link.rate = rate;
        let since_s = sample.since_s();
        let capacity = link.capacity;
        self.load_share = self.load_share.max(load.unwrap_or(0.0) / capacity);
        let load = load.filter(|_| since_s > 0.0)?;
        let queued = sample.queued_bytes.into();
        // A flow reacts one round trip after a sample, and again at the next one.
        let delay_s = (self.rtt_ns + sampled_ns.unwrap_or(0) as f64) / 1e9;
        link.rate = settings.next_rate(&LinkState { rate, capacity, load, queued, since_s, delay_s, path_links });
        self.counts.updates += 1;
        Some([sample.version, sample.next_version(), rate_word(link.rate)])
    }
}

#[cfg(test)]
mod tests;
