//! Distinguishes counters that are new from those that were received before.

/// Number of the newest counters that are distinguished. Older ones are refused.
pub(super) const WINDOW: u64 = 1024;

/// One word more than the window, so that the newest word can be cleared at once (RFC 6479).
const WORDS: u64 = WINDOW / 64 + 1;

/// The counters that were received.
#[derive(Clone, Debug)]
pub(super) struct ReplayWindow {
    newest: u64,
    received: [u64; WORDS as usize],
}

impl Default for ReplayWindow {
    fn default() -> ReplayWindow {
        // Nobody sends the counter 0.
        ReplayWindow { newest: 0, received: [0; WORDS as usize] }
    }
}

impl ReplayWindow {
    /// Records a counter. Returns whether it is new.
    pub fn accept(&mut self, counter: u64) -> bool {
        if counter == 0 || self.newest.saturating_sub(counter) >= WINDOW {
            return false;
        }
        let (word, newest_word) = (counter / 64, self.newest / 64);
        if counter > self.newest {
            for cleared in newest_word + 1..=word.min(newest_word + WORDS) {
                self.received[(cleared % WORDS) as usize] = 0;
            }
            self.newest = counter;
        }
        let (word, bit) = (&mut self.received[(word % WORDS) as usize], 1 << (counter % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rng::SplitMix64;

    use super::*;

    #[test]
    fn each_counter_counts_once() {
        for seed in 0..200 {
            let mut random = SplitMix64::new(seed);
            let (mut window, mut received, mut newest) = (ReplayWindow::default(), BTreeSet::new(), 0_u64);
            for _ in 0..2_000 {
                let ahead = [1, 2, 70, 1_023, 1_024, 1_025, 5_000, 1 << 40][random.below(8) as usize];
                let counter = match random.below(4) {
                    0 => newest + random.below(ahead),
                    1 => newest + 1,
                    _ => newest.saturating_sub(random.below(1_100)),
                };
                newest = newest.max(counter);
                let is_old = counter + WINDOW <= newest;
                assert_eq!(window.accept(counter), counter > 0 && !is_old && received.insert(counter), "{counter}");
            }
        }
    }

    #[test]
    fn the_last_counters_of_all_count() {
        let mut window = ReplayWindow::default();
        let counters = [u64::MAX - WINDOW, u64::MAX, u64::MAX - WINDOW + 1, u64::MAX, u64::MAX - WINDOW, 1, 0];
        assert_eq!(counters.map(|counter| window.accept(counter)), [true, true, true, false, false, false, false]);
    }
}
