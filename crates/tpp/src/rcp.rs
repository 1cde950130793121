//! RCP*: fair rates of links, which the senders compute and keep in the switches (paper, section 2.2).
//!
//! ```text
//!          discover: switch, capacity of each link          once, and again now and then
//! sender ─ collect:  clock, bytes offered and queued, R, V   each interval ──> echo
//!        └ update:   CSTORE V: old -> new; STORE R           after each echo
//! ```
//!
//! A link has two words of applications: its fair rate R in bytes a second, and the time V of the sample from which R
//! was computed, in the low 32 bits of the switch's clock. V is the version of R: an update is stored only if nobody
//! else has stored one since its sample, so no value of R can be mistaken for an older one that was equal. V also says
//! how long ago the last update was, so the gain of a link does not depend on the number of its senders. A switch that
//! has just started has zero in both words; the next sender stores a first rate.
//!
//! [`RcpController`] is the controller of one flow. It neither sends nor reads a clock: the caller sends the programs,
//! and passes the echoes and the time.

use diagnostics::{Diagnostics, SourceMap};
use wire::tpp::Status;

use crate::asm::{TinyProgram, assemble};
use crate::map::MemoryMap;

/// Words of a hop in each program.
const DISCOVERED: usize = 2;
const COLLECTED: usize = 5;
const UPDATED: usize = 3;

/// Size of a word of packet memory.
const WORD: usize = 4;

/// Maximum number of switches on a path.
pub const MAX_HOPS: usize = 12;

/// Number of programs without echo after which a sender halves its rate.
const SILENCE: u32 = 4;

/// The least fair rate of a link, as a share of its capacity.
const LEAST_SHARE: f64 = 1e-4;

/// The greatest fair rate of a link, as a multiple of its capacity, where links add up: one with room for more must
/// count for little.
const IDLE_SHARE: f64 = 16.0;

/// A link with a greater load, as a share of its capacity, is nearly busy.
const LOADED_SHARE: f64 = 0.8;

/// Largest relative change of a rate at once.
const LARGEST_STEP: f64 = 0.5;

/// Greatest plausible load, as a multiple of the capacity. A counter that started again shows more.
const PLAUSIBLE_LOAD: f64 = 64.0;

/// Shares of a bottleneck that the flows get.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fairness {
    /// The largest possible share for the smallest flow.
    MaxMin,
    /// α-fairness; 1 is proportional fairness. Must be positive.
    Alpha(f64),
}

impl Fairness {
    /// Returns the rate of a flow over links with these fair rates; `None` without a link.
    pub fn rate(self, links: impl Iterator<Item = f64>) -> Option<f64> {
        let mut links = links.peekable();
        links.peek()?;
        Some(match self {
            Fairness::MaxMin => links.fold(f64::INFINITY, f64::min),
            Fairness::Alpha(alpha) => {
                let all: Vec<f64> = links.collect();
                // Relative to the least rate, so that no power overflows.
                let least = all.iter().copied().fold(f64::INFINITY, f64::min);
                let sum: f64 = all.iter().map(|rate| (rate / least).powf(-alpha)).sum();
                least * sum.powf(-1.0 / alpha)
            }
        })
    }
}

/// Parameters of the control law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RcpSettings {
    /// Shares of the flows.
    pub fairness: Fairness,
    /// Gain of the difference of load and capacity (the paper's a).
    pub load_gain: f64,
    /// Gain of the queue (the paper's b).
    pub queue_gain: f64,
    /// First rate of a link, in bytes a second.
    pub initial_rate: f64,
}

impl RcpSettings {
    /// Returns the usual parameters, with a first rate of 1 Mbit/s, as in the paper.
    pub fn new(fairness: Fairness) -> RcpSettings {
        RcpSettings { fairness, load_gain: 0.4, queue_gain: 0.226, initial_rate: 125_000.0 }
    }
}

/// What a program collected at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSample {
    /// Low 32 bits of the switch's clock, in nanoseconds.
    pub clock_ns: u32,
    /// Low 32 bits of the bytes that were offered to the link's queues, dropped ones included.
    pub offered_bytes: u32,
    /// Bytes that wait.
    pub queued_bytes: u32,
    /// Fair rate in bytes a second; 0 if none was stored.
    pub rate: u32,
    /// Its version: the clock of the sample from which it was computed.
    pub version: u32,
}

/// A link of the path.
#[derive(Clone, Copy, Debug)]
struct PathLink {
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
        let load = f64::from(sample.offered_bytes.wrapping_sub(last.offered_bytes)) / passed_ns * 1e9;
        let is_plausible =
            passed_ns > 0.0 && passed_ns < 2.0 * waited_ns + 1e9 && load <= PLAUSIBLE_LOAD * self.capacity;
        is_plausible.then_some(load)
    }
}

/// The state of a link from which its next fair rate is computed. Rates are in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkState {
    /// Fair rate.
    pub rate: f64,
    /// Capacity.
    pub capacity: f64,
    /// What is offered to the link.
    pub load: f64,
    /// Bytes that wait.
    pub queued: f64,
    /// Time since the last update, in seconds. More than a delay counts as one.
    pub since_s: f64,
    /// Delay in seconds until a flow reacts: the round trip, and the time between two samples.
    pub delay_s: f64,
}

impl RcpSettings {
    /// Returns the next fair rate of a link (paper, equation 1).
    pub fn next_rate(&self, link: &LinkState) -> f64 {
        let LinkState { rate, capacity, load, queued, since_s, delay_s } = *link;
        let delay_s = delay_s.max(1e-9);
        let excess = self.load_gain * (load - capacity) + self.queue_gain * queued / delay_s;
        let step = (since_s / delay_s).min(1.0) * excess / capacity;
        self.limited(rate * (1.0 - step.clamp(-LARGEST_STEP, LARGEST_STEP)), capacity)
    }

    /// Returns the nearest fair rate that a link may have.
    fn limited(&self, rate: f64, capacity: f64) -> f64 {
        let most = match self.fairness {
            Fairness::MaxMin => 1.0,
            Fairness::Alpha(_) => IDLE_SHARE,
        };
        rate.clamp(capacity * LEAST_SHARE, capacity * most)
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
    /// Programs without echo.
    pub lost: u64,
}

/// The rate controller of one flow.
#[derive(Clone, Debug)]
pub struct RcpController {
    settings: RcpSettings,
    links: Vec<PathLink>,
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

    /// Returns the program that discovers the path.
    pub fn discovery(&self) -> TinyProgram {
        program(&format!(".hops {MAX_HOPS}\nPUSH [Switch:ID]\nPUSH [Link:Capacity]"))
    }

    /// Returns the program that collects a sample. The caller sends it, and passes the echo to
    /// [`RcpController::collected`].
    pub fn collection(&mut self) -> TinyProgram {
        self.unanswered += 1;
        if self.unanswered > SILENCE {
            self.rate /= 2.0;
            self.counts.lost += 1;
        }
        program(&format!(
            ".hops {}\nPUSH [Switch:Clock]\nPUSH [Link:RX-Bytes]\nPUSH [Link:Queued-Bytes]\nPUSH [Link:AppSpecific_0]\n\
             PUSH [Link:AppSpecific_1]",
            self.links.len().max(1)
        ))
    }

    /// Accepts the echo of a discovery.
    pub fn discovered(&mut self, echo: &TinyProgram) {
        let hops = hops(echo, DISCOVERED);
        let capacities: Vec<f64> = hops.iter().map(|words| f64::from(words[1])).collect();
        let is_same = self.links.iter().map(|link| link.capacity).eq(capacities.iter().copied());
        if !is_same {
            let link = |capacity| PathLink { capacity, last: None, rate: 0.0 };
            self.links = capacities.into_iter().map(link).collect();
        }
    }

    /// Accepts the echo of a collection, which took `rtt_ns` nanoseconds, and returns the program that updates the
    /// links; `None` if there is nothing to update. Its echo need not be waited for: an update that is lost or late is
    /// one that another sender makes.
    pub fn collected(&mut self, now_ns: u64, rtt_ns: u64, echo: &TinyProgram) -> Option<TinyProgram> {
        let hops = hops(echo, COLLECTED);
        if hops.len() != self.links.len() || echo.repr.status.contains(Status::FULL) {
            // The path has another length.
            self.links.clear();
            return None;
        }
        self.unanswered = 0;
        self.counts.samples += 1;
        // Echoes that waited in a queue count, too: the law has the mean round-trip time.
        self.rtt_ns += (rtt_ns as f64 - self.rtt_ns) / if self.rtt_ns == 0.0 { 1.0 } else { 8.0 };
        self.load_share = 0.0;
        let mut memory = Vec::with_capacity(hops.len() * UPDATED * WORD);
        let mut has_update = false;
        for (at, words) in hops.iter().enumerate() {
            let sample = LinkSample {
                clock_ns: words[0],
                offered_bytes: words[1],
                queued_bytes: words[2],
                rate: words[3],
                version: words[4],
            };
            let new = self.sampled(at, &sample, now_ns);
            has_update |= new.is_some();
            // A version that is not there keeps the link as it is.
            let update = new.map_or([!sample.version, 0, 0], |rate| [sample.version, version(&sample), rate]);
            update.iter().for_each(|word| memory.extend(word.to_be_bytes()));
        }
        let limited = self.links.iter().filter(|link| link.capacity > 0.0 && link.rate > 0.0).map(|link| link.rate);
        self.rate = self.settings.fairness.rate(limited).unwrap_or(self.rate);
        has_update.then(|| TinyProgram { memory, ..update(hops.len()) })
    }

    /// Takes a sample of a link, and returns its new rate if there is one to store.
    fn sampled(&mut self, at: usize, sample: &LinkSample, now_ns: u64) -> Option<u32> {
        let settings = &self.settings;
        let link = &mut self.links[at];
        if link.capacity == 0.0 {
            return None;
        }
        let load = link.load(sample, now_ns);
        let sampled_ns = link.last.map(|(_, last_ns)| now_ns.saturating_sub(last_ns));
        link.last = Some((*sample, now_ns));
        if sample.rate == 0 {
            // Multiplied by anything, zero would stay.
            link.rate = settings.limited(settings.initial_rate, link.capacity);
            (self.counts.updates, self.counts.first_rates) = (self.counts.updates + 1, self.counts.first_rates + 1);
            return Some(link.rate as u32);
        }
        link.rate = sample.rate.into();
        let since_s = f64::from(sample.clock_ns.wrapping_sub(sample.version)) / 1e9;
        self.load_share = self.load_share.max(load.unwrap_or(0.0) / link.capacity);
        let load = load.filter(|_| since_s > 0.0)?;
        let PathLink { rate, capacity, .. } = *link;
        let queued = sample.queued_bytes.into();
        // A flow reacts one round trip after a sample, and again at the next one.
        let delay_s = (self.rtt_ns + sampled_ns.unwrap_or(0) as f64) / 1e9;
        link.rate = settings.next_rate(&LinkState { rate, capacity, load, queued, since_s, delay_s });
        self.counts.updates += 1;
        Some((link.rate.round() as u32).max(1))
    }
}

/// Returns the version of a rate that is computed from a sample; never that of a link without a rate.
fn version(sample: &LinkSample) -> u32 {
    sample.clock_ns.max(1)
}

/// Returns the program that updates links, without its words.
fn update(hops: usize) -> TinyProgram {
    program(&format!(
        ".mode hop\n.size {}\n.hops {hops}\nCSTORE [Link:AppSpecific_1], [Packet:hop[0]], [Packet:hop[1]]\n\
         STORE [Link:AppSpecific_0], [Packet:hop[2]]",
        UPDATED * WORD
    ))
}

/// Assembles a program of this module.
fn program(text: &str) -> TinyProgram {
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    assemble(&mut sources, "rcp", text, &MemoryMap::new(), &mut diagnostics).expect("the program has no mistakes")
}

/// Returns the words of each switch that a program passed.
fn hops(program: &TinyProgram, words: usize) -> Vec<Vec<u32>> {
    let passed = usize::try_from(program.repr.hop).unwrap_or(0);
    let word = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    let hops = program.memory.chunks_exact(words * WORD).take(passed);
    hops.map(|hop| hop.chunks_exact(WORD).map(word).collect()).collect()
}

#[cfg(test)]
mod tests;
