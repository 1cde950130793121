//! The choices of a seed.

use rng::SplitMix64;
use wire::roce::Mtu;

/// The choices of a seed.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub is_v6: bool,
    pub mtu: Mtu,
    pub queue_pairs: usize,
    pub max_reads: (u16, u16),
    pub operations: u64,
    /// Chances in percent.
    pub loss: u64,
    pub copies: u64,
    pub corruption: u64,
    pub stragglers: u64,
    pub max_delay_ns: u64,
    /// Whether sequence numbers wrap soon.
    pub wraps: bool,
    /// Whether the responder restarts, with empty memory, and queue pairs are reopened.
    pub has_restarts: bool,
    /// Whether the responder dies for good in the middle.
    pub dies: bool,
    /// Whether an attacker changes the meaning of answers, with a valid integrity check.
    pub has_liar: bool,
    /// Whether an attacker sends packets from another address.
    pub has_attacker: bool,
}

impl Scenario {
    /// Whether each packet arrives once and in order, so that packets can be counted.
    pub fn is_orderly(&self) -> bool {
        self.max_delay_ns == 1 && !self.dies && !self.has_liar && !self.has_attacker
    }

    pub fn of_seed(seed: u64) -> Scenario {
        let mut rng = SplitMix64::new(seed);
        let faulty = rng.percent(85);
        let mut chance = |max: u64| if faulty { rng.below(max + 1) } else { 0 };
        let (loss, copies, corruption, stragglers) = (chance(15), chance(10), chance(5), chance(3));
        let kind = rng.below(20);
        Scenario {
            seed,
            is_v6: rng.percent(30),
            mtu: if rng.percent(80) { Mtu::Mtu256 } else { Mtu::Mtu1024 },
            queue_pairs: 1 + rng.below(3) as usize,
            max_reads: (1 + rng.below(16) as u16, 1 + rng.below(16) as u16),
            operations: 10 + rng.below(60),
            loss,
            copies,
            corruption,
            stragglers,
            max_delay_ns: if faulty { 1_000 + rng.below(30_000) } else { 1 },
            wraps: rng.percent(30),
            has_restarts: faulty && rng.percent(30),
            dies: kind == 0,
            has_liar: kind == 1,
            has_attacker: rng.percent(20),
        }
    }
}
