//! Looking for the highest rate without loss (RFC 2544, 26.1): halve the distance between a rate that went well and one
//! that did not.

/// Distance between two rates, as a part of the higher one, below which they count as equal.
const RESOLUTION: f64 = 0.01;

/// Maximum number of trials.
const MOST_TRIALS: u32 = 16;

/// A search, between trials.
#[derive(Clone, Debug)]
pub struct Search {
    /// The highest rate that went well.
    good: f64,
    /// The lowest rate that did not.
    bad: f64,
    trials: u32,
}

impl Search {
    /// A search below a rate that did not go well.
    pub fn below(bad: f64) -> Search {
        Search { good: 0.0, bad, trials: 0 }
    }

    /// The rate to try next; `None` if it is found.
    pub fn next(&self) -> Option<f64> {
        let found = self.trials >= MOST_TRIALS || self.bad - self.good <= self.bad * RESOLUTION;
        (!found).then_some((self.good + self.bad) / 2.0)
    }

    /// Records the outcome of the trial at the rate that [`Search::next`] returned.
    pub fn tried(&mut self, went_well: bool) {
        let rate = (self.good + self.bad) / 2.0;
        self.trials += 1;
        if went_well { self.good = rate } else { self.bad = rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_what_there_is() {
        for limit in [1.0, 800.0, 123_456.0, 999_999.0] {
            let mut search = Search::below(1e6);
            let mut best = 0.0f64;
            let mut trials = 0;
            while let Some(rate) = search.next() {
                search.tried(rate <= limit);
                best = if rate <= limit { best.max(rate) } else { best };
                trials += 1;
            }
            assert!(trials <= MOST_TRIALS && best <= limit);
            assert!(limit - best <= (limit * 0.011).max(1e6 / f64::from(1 << MOST_TRIALS)), "{limit}: {best}");
        }
    }
}
