//! HPCC-style congestion control (Li et al., *HPCC: High Precision Congestion Control*, SIGCOMM 2019): windows that
//! follow what the links of a path report, and keep their queues empty.
//!
//! ```text
//!          discover: switch, port, capacity, queueing time of each link    at first, and again now and then
//! sender ─ data:     paced at W/T, at most W bytes without an echo
//!        └ sample:   switch, port, clock, bytes sent, queued of each link  after every W/8 bytes ──> echoes
//! ```
//!
//! A sample follows data on its way, so its echo acknowledges what was sent before it. Two samples of a link show its
//! rate. The utilization of a link is this rate as a share of its capacity, and the smaller of both queues, less a
//! frame, as a share of the bytes that it carries in a round trip. The window follows the busiest link
//! ([`HpccSettings`]):
//!
//! | utilization U | window |
//! |---|---|
//! | below the target η, at most five times in a row | W = Wc + A |
//! | else | W = Wc η / U + A |
//!
//! Wc is the window of the latest update, once a round trip. The additive increase A makes flows equal. It is so small
//! that the increases of [`HpccSettings::max_flows`] flows add up to what the target leaves of the link, 1 − η. So N
//! flows settle at U = η + (1 − η) N / `max_flows` ([`HpccSettings::utilization_of`]).
//!
//! The base round trip T is the shortest that the sender saw on the path. Discoveries read how long they waited in
//! queues, which is no part of it: so a flow that begins behind a queue has a window of what the path holds, too.
//! Links without a rate do not count; a flow whose path has no other links does not send. Switches need permit reading
//! only.
//!
//! Unlike in the paper, programs are datagrams of their own, and not in each packet: so data need no room for them, and
//! they take at most about 3 % of the bytes if a window has some packets.
//!
//! [`HpccController`] is the controller of one flow. It neither sends nor reads a clock: the caller sends data and
//! programs, and passes the echoes and the time.

mod law;
mod programs;

use crate::asm::TinyProgram;
use crate::hop_words::PathPrograms;
pub use crate::hop_words::{LinkPlace, PROGRAM_HOPS as MAX_HOPS};
pub use law::HpccSettings;
use law::WindowLaw;
use programs::{DISCOVERED, FoundLink, LinkWords, SAMPLED};

/// Maximum time between two samples whose byte counts are compared. The 32-bit counters wrap.
const LONGEST_INTERVAL_NS: u64 = 1_000_000_000;

/// Greatest plausible rate of a link, as a share of its capacity. A counter that started again may show more.
const PLAUSIBLE_RATE: f64 = 1.5;

/// Shortest base round trip, in nanoseconds.
const LEAST_RTT_NS: u64 = 1_000;

/// Number of samples in a window, if it is large.
const SAMPLES_IN_WINDOW: f64 = 8.0;

/// Share of the bytes that samples take at most.
const PROGRAM_SHARE: f64 = 0.03;

/// Bytes of the headers of a sample, and of the name behind it.
const SAMPLE_HEADERS: usize = 58;

/// Round trips after which a sample follows data, however few.
const SAMPLE_RTTS: u64 = 8;

/// Maximum time between two samples that are sent, with or without data. A flow whose window allows less than a packet
/// a second still compares its samples, and sees that a link became idle.
const MAX_PAUSE_NS: u64 = LONGEST_INTERVAL_NS / 2;

/// Round trips without an echo after which a path is silent, and the shortest time that they may be. A new flow on a
/// link with 15 others may wait that long in the queue.
const SILENCE_RTTS: u64 = 16;
const LEAST_SILENCE_NS: u64 = 1_000_000;

/// Least value of the bytes that may wait without being a queue.
const LEAST_FRAME: u64 = 1_518;

/// Quantities to which queues are compared.
#[derive(Clone, Copy, Debug)]
struct PathScale {
    base_rtt_ns: u64,
    /// Bytes that may wait without being a queue: a frame. Paced flows now and then have a frame of another flow
    /// behind their samples, and the more often, the less they send themselves: a smaller flow would shrink further.
    frame_bytes: u64,
}

/// A link of the path.
#[derive(Clone, Copy, Debug)]
struct PathLink {
    place: LinkPlace,
    /// Bytes a second; 0 for a link without a limit.
    capacity: f64,
    last: Option<LinkWords>,
}

impl PathLink {
    /// Returns the utilization between the latest sample and this one, which the sender got `waited_ns` later, and the
    /// time between them at the link in nanoseconds. `None` if they do not fit each other, as after a restart of the
    /// switch.
    fn utilization(&self, sample: &LinkWords, waited_ns: u64, path: PathScale) -> Option<(f64, u64)> {
        let last = self.last.filter(|_| waited_ns <= LONGEST_INTERVAL_NS)?;
        let passed_ns = u64::from(sample.clock_ns.wrapping_sub(last.clock_ns));
        let carried = self.capacity * passed_ns as f64 / 1e9;
        let rate_share = f64::from(sample.sent_bytes.wrapping_sub(last.sent_bytes)) / carried;
        let is_plausible = passed_ns > 0
            && passed_ns <= waited_ns.saturating_add(LONGEST_INTERVAL_NS)
            && carried < f64::from(u32::MAX)
            && rate_share <= PLAUSIBLE_RATE;
        let queued = u64::from(sample.queued_bytes.min(last.queued_bytes)).saturating_sub(path.frame_bytes) as f64;
        let queue_share = queued / (self.capacity * path.base_rtt_ns as f64 / 1e9);
        is_plausible.then_some((rate_share + queue_share, passed_ns))
    }
}

/// The place of a sample among the data of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleMark {
    /// Number of the sample, from 1.
    sequence: u64,
    /// Bytes of data that were sent before it.
    sent_bytes: u64,
}

/// Counts of a controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HpccCounts {
    /// Samples that were sent.
    pub sent: u64,
    /// Samples that came back.
    pub samples: u64,
    /// Samples that came back after a later one, or twice.
    pub stale: u64,
    /// Samples that do not fit the ones before, as after a restart of a switch.
    pub implausible: u64,
    /// Times that the path was found to have other links than before.
    pub changed_paths: u64,
    /// Times that no sample came back for long, and the window was halved.
    pub silences: u64,
}

/// The window controller of one flow.
#[derive(Clone, Debug)]
pub struct HpccController {
    settings: HpccSettings,
    programs: PathPrograms,
    /// The links of the path; none while it is unknown.
    links: Vec<PathLink>,
    /// Length of the frame of a sample, in bytes.
    sample_len: usize,
    base_rtt_ns: u64,
    /// Length of the longest packet of data, at least [`LEAST_FRAME`].
    frame_bytes: u64,
    law: WindowLaw,
    /// Time of the latest echo of a sample, in nanoseconds.
    echoed_ns: Option<u64>,
    /// Bytes of data: those that were sent, were sent before the latest sample, and were acknowledged.
    sent_bytes: u64,
    sampled_bytes: u64,
    acknowledged_bytes: u64,
    /// Number of the latest sample that was sent, of the latest that came back, and of the last before the window was
    /// updated.
    sent_sequence: u64,
    echoed_sequence: u64,
    updated_sequence: u64,
    /// Time of the latest sample on this path that was sent, in nanoseconds.
    sampled_ns: Option<u64>,
    /// Time since which an echo is awaited, in nanoseconds.
    awaited_ns: Option<u64>,
    counts: HpccCounts,
}

impl HpccController {
    /// Creates the controller of a flow whose path is unknown.
    pub fn new(settings: HpccSettings) -> HpccController {
        HpccController {
            settings,
            programs: PathPrograms::new(&DISCOVERED, &SAMPLED),
            links: Vec::new(),
            sample_len: 0,
            base_rtt_ns: u64::MAX,
            frame_bytes: LEAST_FRAME,
            law: WindowLaw::new(settings, 0.0),
            echoed_ns: None,
            sent_bytes: 0,
            sampled_bytes: 0,
            acknowledged_bytes: 0,
            sent_sequence: 0,
            echoed_sequence: 0,
            updated_sequence: 0,
            sampled_ns: None,
            awaited_ns: None,
            counts: HpccCounts::default(),
        }
    }

    /// Returns the counts.
    pub fn counts(&self) -> HpccCounts {
        self.counts
    }

    /// Whether the path is known.
    pub fn has_path(&self) -> bool {
        !self.links.is_empty()
    }

    /// Returns the window in bytes. It is 0 while the path is unknown, and if none of its links has a rate.
    pub fn window(&self) -> f64 {
        if self.has_path() { self.law.window() } else { 0.0 }
    }

    /// Returns the rate at which the flow may send, in bytes a second.
    pub fn rate(&self) -> f64 {
        self.window() / (self.base_rtt_ns as f64 / 1e9)
    }

    /// Returns the smoothed utilization of the busiest link: 1 if it is full and has no queue.
    pub fn utilization(&self) -> f64 {
        self.law.utilization()
    }

    /// Returns the bytes of data that no echo acknowledged.
    pub fn in_flight(&self) -> u64 {
        self.sent_bytes - self.acknowledged_bytes
    }

    /// Returns the bytes of data after which a sample is due.
    fn sample_bytes(&self) -> f64 {
        (self.window() / SAMPLES_IN_WINDOW).max(self.sample_len as f64 / PROGRAM_SHARE)
    }

    /// Whether the window permits a packet. An echo acknowledges the data of several packets at once, so these may be
    /// in flight in addition to the window.
    pub fn may_send(&self) -> bool {
        let window = self.window();
        window > 0.0 && (self.in_flight() as f64) < window + self.sample_bytes()
    }

    /// Counts a packet of data that was sent.
    pub fn sent(&mut self, bytes: u64) {
        self.sent_bytes = self.sent_bytes.saturating_add(bytes);
        self.frame_bytes = self.frame_bytes.max(bytes);
    }

    /// Returns the bytes of data that were sent after the latest sample.
    fn unsampled(&self) -> u64 {
        self.sent_bytes - self.sampled_bytes
    }

    /// Whether a sample should be sent now: on a new path, after some data, if no more may be sent before an echo, and
    /// also without data after half a second.
    pub fn is_sample_due(&self, now_ns: u64) -> bool {
        let unsampled = self.unsampled();
        let is_behind_data = unsampled > 0 && (unsampled as f64 >= self.sample_bytes() || !self.may_send());
        self.has_path() && (is_behind_data || self.sample_by_ns().is_some_and(|by_ns| now_ns >= by_ns))
    }

    /// Returns the time by which the next sample is sent, in nanoseconds; `None` if the flow may not send.
    fn sample_by_ns(&self) -> Option<u64> {
        let behind_data_ns = if self.unsampled() > 0 { self.base_rtt_ns.saturating_mul(SAMPLE_RTTS) } else { u64::MAX };
        let by_ns = |sampled_ns: u64| sampled_ns.saturating_add(behind_data_ns.min(MAX_PAUSE_NS));
        (self.window() > 0.0).then(|| self.sampled_ns.map_or(0, by_ns))
    }

    /// Returns the program that discovers the path.
    pub fn discovery(&self) -> TinyProgram {
        self.programs.discovery()
    }

    /// Returns the program of a sample, which is sent now. Its mark is to be passed with its echo.
    pub fn sample(&mut self, now_ns: u64) -> (SampleMark, TinyProgram) {
        self.sent_sequence += 1;
        self.sampled_bytes = self.sent_bytes;
        self.sampled_ns = Some(now_ns);
        self.counts.sent += 1;
        self.awaited_ns.get_or_insert(now_ns);
        let mark = SampleMark { sequence: self.sent_sequence, sent_bytes: self.sent_bytes };
        (mark, self.programs.sample(self.links.len()))
    }

    /// Accepts the echo of a discovery, and returns whether the path is known. A path that has the same links as before
    /// may have other capacities.
    pub fn discovered(&mut self, rtt_ns: u64, echo: &TinyProgram) -> bool {
        let found = Some(echo).filter(|echo| self.programs.is_discovery(echo)).and_then(programs::discovered);
        let Some(found) = found else { return self.has_path() };
        let is_known = self.links.iter().map(|link| link.place).eq(found.iter().map(|link| link.place));
        // Without the queues that the program waited in: they are no part of the path.
        let waited_ns = found.iter().map(|link| u64::from(link.queue_ns)).sum();
        let rtt_ns = rtt_ns.saturating_sub(waited_ns).max(LEAST_RTT_NS);
        if is_known {
            self.base_rtt_ns = self.base_rtt_ns.min(rtt_ns);
            self.links.iter_mut().zip(&found).for_each(|(link, found)| link.capacity = found.capacity);
            self.resize();
            return true;
        }
        let is_first = !self.has_path() && self.echoed_ns.is_none();
        let window = self.law.window();
        let link = |found: FoundLink| PathLink { place: found.place, capacity: found.capacity, last: None };
        self.links = found.into_iter().map(link).collect();
        self.sample_len = self.programs.sample(self.links.len()).packet(&[]).len() + SAMPLE_HEADERS;
        self.base_rtt_ns = rtt_ns;
        self.sampled_ns = None;
        self.law = WindowLaw::new(self.settings, self.bandwidth_delay());
        if !is_first {
            // What is in flight is on another path, so nothing is known of this one.
            self.law.limit(window);
            self.forget_flight();
        }
        true
    }

    /// Returns the bytes that the path holds without queues.
    fn bandwidth_delay(&self) -> f64 {
        let limited = self.links.iter().map(|link| link.capacity).filter(|capacity| *capacity > 0.0);
        limited.reduce(f64::min).unwrap_or(0.0) * self.base_rtt_ns as f64 / 1e9
    }

    fn resize(&mut self) {
        self.law.resize(self.bandwidth_delay());
    }

    /// Takes all data in flight for lost.
    fn forget_flight(&mut self) {
        self.acknowledged_bytes = self.sent_bytes;
        self.awaited_ns = None;
    }

    /// Accepts the echo of a sample that was sent `rtt_ns` nanoseconds before. Returns whether the path is unknown and
    /// is to be discovered: the sample has other links than the ones that were known.
    pub fn echoed(&mut self, now_ns: u64, rtt_ns: u64, mark: SampleMark, echo: &TinyProgram) -> bool {
        // Samples that were sent before the path became unknown are stale, too.
        if !self.has_path() || mark.sequence <= self.echoed_sequence {
            self.counts.stale += 1;
            return false;
        }
        let is_same = |samples: &Vec<(LinkPlace, LinkWords)>| {
            samples.iter().map(|(place, _)| *place).eq(self.links.iter().map(|link| link.place))
        };
        let Some(samples) = programs::sampled(echo, self.links.len()).filter(is_same) else {
            self.links.clear();
            self.forget_flight();
            self.echoed_sequence = self.sent_sequence;
            self.counts.changed_paths += 1;
            return true;
        };
        self.counts.samples += 1;
        self.echoed_sequence = mark.sequence;
        self.acknowledged_bytes = self.acknowledged_bytes.max(mark.sent_bytes);
        self.awaited_ns = (self.sent_sequence > mark.sequence).then_some(now_ns);
        if rtt_ns < self.base_rtt_ns {
            self.base_rtt_ns = rtt_ns.max(LEAST_RTT_NS);
            self.resize();
        }
        let waited_ns = self.echoed_ns.replace(now_ns).map(|last_ns| now_ns.saturating_sub(last_ns));
        self.measure(waited_ns, mark, samples);
        false
    }

    /// Passes the utilization of the busiest link to the law. A sample with a link that does not fit is only the base
    /// of the next one.
    fn measure(&mut self, waited_ns: Option<u64>, mark: SampleMark, samples: Vec<(LinkPlace, LinkWords)>) {
        let base_rtt_ns = self.base_rtt_ns;
        let path = PathScale { base_rtt_ns, frame_bytes: self.frame_bytes };
        let (mut busiest, mut fits) = (None::<(f64, u64)>, true);
        for (link, (_, sample)) in self.links.iter_mut().zip(samples).filter(|(link, _)| link.capacity > 0.0) {
            let is_compared = link.last.is_some();
            let found = waited_ns.and_then(|waited_ns| link.utilization(&sample, waited_ns, path));
            self.counts.implausible += u64::from(is_compared && fits && found.is_none());
            fits &= found.is_some();
            busiest = [busiest, found].into_iter().flatten().max_by(|one, other| one.0.total_cmp(&other.0));
            link.last = Some(sample);
        }
        let Some((utilization, passed_ns)) = busiest.filter(|_| fits) else { return };
        let is_update = mark.sequence > self.updated_sequence;
        self.law.measured(utilization, passed_ns as f64 / base_rtt_ns as f64, is_update);
        if is_update {
            self.updated_sequence = self.sent_sequence;
        }
    }

    /// Does what is due at a time: if no sample came back for long, all data in flight count as lost, and the window is
    /// halved.
    pub fn poll(&mut self, now_ns: u64) {
        if self.silent_ns().is_some_and(|silent_ns| now_ns >= silent_ns) {
            self.law.halve();
            self.forget_flight();
            // Samples that were sent before show the effect of the window before.
            self.updated_sequence = self.sent_sequence;
            self.counts.silences += 1;
        }
    }

    /// Returns the time at which the path is silent.
    fn silent_ns(&self) -> Option<u64> {
        let silence_ns = self.base_rtt_ns.saturating_mul(SILENCE_RTTS).max(LEAST_SILENCE_NS);
        self.awaited_ns.map(|awaited_ns| awaited_ns.saturating_add(silence_ns))
    }

    /// Returns the next time at which something is due without an event, in nanoseconds: a sample, or a silence.
    pub fn next_deadline(&self) -> Option<u64> {
        [self.sample_by_ns(), self.silent_ns()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
