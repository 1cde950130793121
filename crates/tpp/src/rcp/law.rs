//! The control law of a link, and the rate of a flow over several links.

/// The least fair rate of a link, as a share of its capacity.
const LEAST_SHARE: f64 = 1e-4;

/// The part of the rate of a flow that all its links may take from it while they have room, for α up to 1.
const IDLE_PART: f64 = 1.0 / 16.0;

/// The greatest fair rate of a link, as a power of two of its capacity. Words of rates hold more.
const MOST_BITS: f64 = 900.0;

/// Largest relative change of a rate at once.
const LARGEST_STEP: f64 = 0.5;

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
    /// Number of links on the path of the flow that have a capacity, this one included.
    pub path_links: usize,
}

impl RcpSettings {
    /// Returns the usual parameters, with a first rate of 1 Mbit/s, as in the paper.
    pub fn new(fairness: Fairness) -> RcpSettings {
        RcpSettings { fairness, load_gain: 0.4, queue_gain: 0.226, initial_rate: 125_000.0 }
    }

    /// Returns the next fair rate of a link (paper, equation 1).
    ///
    /// With a finite α, a link takes part in a rate by its price R^-α. Below 1/n of C^-α, n links together take less
    /// than a flow at the capacity needs, so none limits a flow alone: from there on, the price changes in equal steps,
    /// as in the dual algorithm of network utility maximization. Steps of R would change a price by less and less, and
    /// a link that was idle for long would take as long to limit flows again. Both laws have the same slope at 1/n.
    pub fn next_rate(&self, link: &LinkState) -> f64 {
        let LinkState { rate, capacity, load, queued, since_s, delay_s, path_links } = *link;
        let delay_s = delay_s.max(1e-9);
        let excess = self.load_gain * (load - capacity) + self.queue_gain * queued / delay_s;
        let step = ((since_s / delay_s).min(1.0) * excess / capacity).clamp(-LARGEST_STEP, LARGEST_STEP);
        let links = path_links.max(1) as f64;
        let next = match self.fairness {
            Fairness::Alpha(alpha) if (rate / capacity).powf(-alpha) * links < 1.0 => {
                // Both prices are relative to C^-α.
                let price = (rate / capacity).powf(-alpha) + alpha * step / links;
                if price > 0.0 { capacity * price.powf(-1.0 / alpha) } else { f64::INFINITY }
            }
            _ => rate * (1.0 - step),
        };
        let most = self.most(capacity, links);
        // A flow over more links may have let the rate grow further: its sender and this one must not take turns.
        let most = if self.fairness == Fairness::MaxMin { most } else { most.max(rate) };
        next.clamp(capacity * LEAST_SHARE, most)
    }

    /// Returns the first rate of a link.
    pub(super) fn first_rate(&self, capacity: f64) -> f64 {
        self.initial_rate.clamp(capacity * LEAST_SHARE, capacity)
    }

    /// Returns the greatest fair rate of a link on a path of `links` links. With a finite α, a link with room must take
    /// little from the flow: its price is then [`IDLE_PART`] α / n of that at which R is the capacity.
    fn most(&self, capacity: f64, links: f64) -> f64 {
        let bits = match self.fairness {
            Fairness::MaxMin => 0.0,
            Fairness::Alpha(alpha) => (links / (IDLE_PART * alpha.min(1.0))).log2() / alpha,
        };
        capacity * bits.min(MOST_BITS).exp2()
    }
}
