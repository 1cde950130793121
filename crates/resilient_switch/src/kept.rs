//! Keeps rows whose packets wait for further rows.
//!
//! A packet needs all its rows at the same time. If two switches gave their rows to each other at once, two packets
//! with the same rows could wait for ever. So a row is kept until its packets have the rows that they wait for, or for
//! a random time: of two switches, one gives up first.

use engine::StateRow;
use resilient::RowId;
use rng::SplitMix64;
use switch::Time;

#[derive(Debug)]
struct KeptRow {
    id: RowId,
    /// The rows for which its packets wait.
    awaited: Vec<StateRow>,
    until: Time,
}

/// The rows.
#[derive(Debug)]
pub(crate) struct KeptRows {
    rows: Vec<KeptRow>,
    random: SplitMix64,
    longest_ns: u64,
}

impl KeptRows {
    /// Creates a set without rows. A row is kept at most twice the time after which requests are repeated.
    pub fn new(seed: u64, retransmit_ns: u64) -> KeptRows {
        KeptRows { rows: Vec::new(), random: SplitMix64::new(seed), longest_ns: retransmit_ns.saturating_mul(2).max(1) }
    }

    /// Keeps a row whose packets wait for others.
    pub fn keep(&mut self, now: Time, id: &RowId, awaited: Vec<StateRow>) {
        let until = now.after_ns(1 + self.random.below(self.longest_ns));
        self.rows.push(KeptRow { id: *id, awaited, until });
    }

    /// Removes and returns the rows whose packets wait for no other row, after the arrival of this one.
    pub fn settle(&mut self, row: StateRow) -> Vec<RowId> {
        self.rows.iter_mut().for_each(|kept| kept.awaited.retain(|awaited| *awaited != row));
        self.rows.extract_if(.., |kept| kept.awaited.is_empty()).map(|kept| kept.id).collect()
    }

    /// Removes and returns the rows that were kept long enough.
    pub fn take_due(&mut self, now: Time) -> Vec<RowId> {
        self.rows.extract_if(.., |kept| kept.until <= now).map(|kept| kept.id).collect()
    }

    /// Returns the time at which a row is to be given up.
    pub fn next_due(&self) -> Option<Time> {
        self.rows.iter().map(|kept| kept.until).min()
    }
}
