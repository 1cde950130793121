//! What would take more memory or time than anyone can have meant, told before it is run.

use source::Span;
use toml::de::DeTable;

use super::{Scenario, TrafficKind};
use crate::read::document::Reader;
use crate::topology::{Delay, MOST_ON_A_LINK, Topology};

/// The most samples of queues: some 400 MB.
const MOST_SAMPLES: u64 = 10_000_000;

/// Samples that a scenario has at most if it does not say how often they are taken.
const USUAL_SAMPLES: u64 = 1_000_000;

/// The most pairs that ping each other: each has a socket and a histogram.
const MOST_PINGS: usize = 20_000;

/// The most faults that are drawn, about.
const MOST_DRAWN: u64 = 100_000;

impl Reader<'_> {
    /// How often queues are sampled.
    pub(super) fn sample(&mut self, top: &DeTable<'_>, duration: Delay, topology: &Topology) -> Delay {
        let ends = 2 * topology.links.len() as u64;
        let fits = |samples: u64| Delay::from_ns(duration.as_ns() / (samples / ends.max(1)).max(1));
        let Some(asked) = self.parsed::<Delay>(top, "sample") else {
            return fits(USUAL_SAMPLES).max(Delay::from_ms(1));
        };
        let least = fits(MOST_SAMPLES).max(Delay::from_ns(1_000));
        if asked < least
            && let Some((_, span)) = self.get(top, "sample")
        {
            let most = MOST_SAMPLES;
            self.wrong(
                span,
                format!("{ends} ends of links for {duration} make more than {most} samples: at most every {least}"),
            );
        }
        asked.max(Delay::from_ns(1_000))
    }

    /// What a scenario asks for as a whole; `spans` are the places of its traffic.
    pub(super) fn limits(&mut self, top: &DeTable<'_>, scenario: &Scenario, spans: &[Span], topology: &Topology) {
        if let (Some(faults), Some((_, span))) = (scenario.random_faults, self.get(top, "random-faults"))
            && scenario.duration.as_ns() / faults.every.as_ns().max(1) > MOST_DRAWN
        {
            let (every, most) = (faults.every, MOST_DRAWN);
            self.wrong(span, format!("a fault every {every} makes more than {most} in {}", scenario.duration));
        }
        let longest = topology.links.iter().map(|link| link.shape.delay).max().unwrap_or_default();
        for (traffic, span) in scenario.traffic.iter().zip(spans) {
            let name = &traffic.name;
            let pairs: usize = traffic.pairs.iter().map(|(_, to)| to.len()).sum();
            if matches!(traffic.kind, TrafficKind::Ping { .. }) && pairs > MOST_PINGS {
                self.wrong(
                    *span,
                    format!("`{name}` has {pairs} pairs that ping each other, and the most is {MOST_PINGS}"),
                );
            }
            let offered = match &traffic.kind {
                TrafficKind::Udp { rate_bps, .. } => u128::from(*rate_bps) * traffic.pairs.len() as u128,
                TrafficKind::Probe { frame, interval, .. } => {
                    frame.len() as u128 * 8_000_000_000 / u128::from(interval.as_ns().max(1)) * pairs as u128
                }
                _ => 0,
            };
            let travelling = offered * u128::from(longest.as_ns()) / 8_000_000_000;
            if travelling > u128::from(MOST_ON_A_LINK) {
                let message = format!(
                    "with {travelling} bytes `{name}` has more on a way of {longest} than is simulated, which is {MOST_ON_A_LINK}"
                );
                self.wrong(*span, message);
            }
        }
    }
}
