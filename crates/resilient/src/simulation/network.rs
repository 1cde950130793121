//! A network that loses, repeats, delays and reorders messages, and that may not work in one direction.

use std::collections::BTreeMap;

use rng::SplitMix64;

use super::scenario::Scenario;
use crate::message::Peer;

/// The network.
#[derive(Debug, Default)]
pub struct LossyNetwork {
    /// Ends of partitions, by sender and receiver. `None` stands for all.
    blocked: BTreeMap<(Option<Peer>, Option<Peer>), u64>,
    is_healed: bool,
}

impl LossyNetwork {
    /// Blocks messages between these senders and receivers until a time.
    pub fn block(&mut self, from: Option<Peer>, to: Option<Peer>, until: u64) {
        self.blocked.insert((from, to), until);
    }

    /// Ends all faults.
    pub fn heal(&mut self) {
        self.blocked.clear();
        self.is_healed = true;
    }

    fn is_blocked(&self, now: u64, from: Peer, to: Peer) -> bool {
        let pairs = [(Some(from), Some(to)), (Some(from), None), (None, Some(to))];
        !self.blocked.is_empty() && pairs.iter().any(|pair| self.blocked.get(pair).is_some_and(|until| now < *until))
    }

    /// Returns the times of arrival of a message: none, one or two.
    pub fn arrivals(
        &self,
        random: &mut SplitMix64,
        scenario: &Scenario,
        now: u64,
        (from, to): (Peer, Peer),
    ) -> [Option<u64>; 2] {
        if self.is_healed {
            return [Some(now + scenario.delay_ns + random.below(scenario.jitter_ns)), None];
        }
        if self.is_blocked(now, from, to) || random.below(1000) < scenario.loss {
            return [None, None];
        }
        let mut arrival = || {
            let is_late = random.below(1000) < scenario.lateness;
            let late_ns = if is_late { random.below(scenario.late_ns) } else { 0 };
            now + scenario.delay_ns + random.below(2 * scenario.jitter_ns) + late_ns
        };
        let first = arrival();
        let second = arrival();
        [Some(first), (random.below(1000) < scenario.duplication).then_some(second)]
    }
}
