//! Searches for the highest rate without loss (RFC 2544, 26.1): halves the distance between a rate without loss and one
//! with loss.

/// Distance between two rates, as a part of the higher one, below which they count as equal.
const RESOLUTION: f64 = 0.01;

/// Maximum number of trials.
const MAX_TRIALS: u32 = 16;

/// A search, between trials.
#[derive(Clone, Debug)]
pub(super) struct RateSearch {
    /// The highest rate that passed.
    good: f64,
    /// The lowest rate that failed.
    bad: f64,
    trials: u32,
}

impl RateSearch {
    /// Starts a search below a rate that failed.
    pub fn below(bad: f64) -> RateSearch {
        RateSearch { good: 0.0, bad, trials: 0 }
    }

    /// Returns the rate to try next; `None` if the search is over.
    pub fn next(&self) -> Option<f64> {
        let found = self.trials >= MAX_TRIALS || self.bad - self.good <= self.bad * RESOLUTION;
        (!found).then_some((self.good + self.bad) / 2.0)
    }

    /// Records whether the trial at the rate that [`next`](Self::next) returned has passed.
    pub fn record(&mut self, has_passed: bool) {
        let rate = (self.good + self.bad) / 2.0;
        self.trials += 1;
        if has_passed { self.good = rate } else { self.bad = rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_the_highest_rate() {
        for limit in [1.0, 800.0, 123_456.0, 999_999.0] {
            let mut search = RateSearch::below(1e6);
            let mut best = 0.0f64;
            let mut trials = 0;
            while let Some(rate) = search.next() {
                search.record(rate <= limit);
                best = if rate <= limit { best.max(rate) } else { best };
                trials += 1;
            }
            assert!(trials <= MAX_TRIALS && best <= limit);
            assert!(limit - best <= (limit * 0.011).max(1e6 / f64::from(1 << MAX_TRIALS)), "{limit}: {best}");
        }
    }
}
