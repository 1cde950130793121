//! Paces datagrams.

/// FeedRate of a feed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FeedRate {
    /// Messages per second, in datagrams of any length.
    Messages(f64),
    /// Datagrams per second.
    Datagrams(f64),
}

/// Maximum delay that a sender catches up, in ns. A longer one would cause an unwanted burst.
const MAX_LATE_NS: u64 = 10_000_000;

/// Schedules datagrams, in ns from the beginning. A late sender sends the next datagrams without delay until it has
/// caught up, so the rate holds over any interval, except for [`late_ns`](Pace::late_ns).
#[derive(Clone, Debug)]
pub struct Pace {
    rate: FeedRate,
    /// Number of messages or datagrams sent so far, in the unit of the rate.
    count: u64,
    late_ns: u64,
}

impl Pace {
    /// Creates a pace whose first datagram is due immediately.
    ///
    /// # Panics
    /// If the rate is not positive.
    pub fn new(rate: FeedRate) -> Pace {
        let (FeedRate::Messages(number) | FeedRate::Datagrams(number)) = rate;
        assert!(number > 0.0, "a rate is above 0");
        Pace { rate, count: 0, late_ns: 0 }
    }

    /// Returns the time at which the next datagram is due, in ns.
    pub fn due_ns(&self) -> u64 {
        let (FeedRate::Messages(number) | FeedRate::Datagrams(number)) = self.rate;
        // The cast saturates for huge values, which means never.
        ((self.count as f64 / number * 1e9) as u64).saturating_add(self.late_ns)
    }

    /// Records that a datagram with this number of messages was sent at this time.
    pub fn sent(&mut self, messages: u64, now_ns: u64) {
        let late = now_ns.saturating_sub(self.due_ns());
        if late > MAX_LATE_NS {
            self.late_ns += late;
        }
        self.count += match self.rate {
            FeedRate::Messages(_) => messages,
            FeedRate::Datagrams(_) => 1,
        };
    }

    /// Returns the total delay that the sender did not catch up, in ns.
    pub fn late_ns(&self) -> u64 {
        self.late_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_messages_holds_over_datagrams_of_any_length() {
        let mut pace = Pace::new(FeedRate::Messages(1_000.0));
        let due: Vec<u64> = [4, 1, 12, 1]
            .map(|messages| {
                let due = pace.due_ns();
                pace.sent(messages, due);
                due / 1_000_000
            })
            .to_vec();
        assert_eq!(due, [0, 4, 5, 17]);
        assert_eq!(pace.due_ns(), 18_000_000);
    }

    #[test]
    fn a_little_is_caught_up_and_much_is_let_go() {
        let mut pace = Pace::new(FeedRate::Datagrams(1_000.0));
        pace.sent(1, 9_000_000);
        assert_eq!((pace.due_ns(), pace.late_ns()), (1_000_000, 0));
        pace.sent(1, 100_000_000);
        assert_eq!((pace.due_ns(), pace.late_ns()), (101_000_000, 99_000_000));
    }
}
