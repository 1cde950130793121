//! Paces datagrams.

/// Rate of a feed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FeedRate {
    /// Messages per second, in datagrams of any length.
    Messages(f64),
    /// Datagrams per second.
    Datagrams(f64),
    /// The pace of a recording, times this factor.
    Recorded(f64),
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
        let (FeedRate::Messages(number) | FeedRate::Datagrams(number) | FeedRate::Recorded(number)) = rate;
        assert!(number > 0.0, "a rate is above 0");
        Pace { rate, count: 0, late_ns: 0 }
    }

    /// Returns the time at which the next datagram is due, in ns. `recorded_ns` is the time at which it was recorded,
    /// in ns since the first one; only [`FeedRate::Recorded`] regards it.
    pub fn due_ns(&self, recorded_ns: u64) -> u64 {
        // The casts saturate for huge values, which means never.
        let due_ns = match self.rate {
            FeedRate::Messages(number) | FeedRate::Datagrams(number) => (self.count as f64 / number * 1e9) as u64,
            FeedRate::Recorded(1.0) => recorded_ns,
            FeedRate::Recorded(speed) => (recorded_ns as f64 / speed) as u64,
        };
        due_ns.saturating_add(self.late_ns)
    }

    /// Records that a datagram with this number of messages was sent at this time, when it was due at `due_ns`.
    pub fn sent(&mut self, messages: u64, due_ns: u64, now_ns: u64) {
        let late = now_ns.saturating_sub(due_ns);
        if late > MAX_LATE_NS {
            self.late_ns += late;
        }
        self.count += match self.rate {
            FeedRate::Messages(_) => messages,
            FeedRate::Datagrams(_) | FeedRate::Recorded(_) => 1,
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
                let due = pace.due_ns(0);
                pace.sent(messages, due, due);
                due / 1_000_000
            })
            .to_vec();
        assert_eq!(due, [0, 4, 5, 17]);
        assert_eq!(pace.due_ns(0), 18_000_000);
    }

    #[test]
    fn a_little_is_caught_up_and_much_is_let_go() {
        let mut pace = Pace::new(FeedRate::Datagrams(1_000.0));
        pace.sent(1, 0, 9_000_000);
        assert_eq!((pace.due_ns(0), pace.late_ns()), (1_000_000, 0));
        pace.sent(1, 1_000_000, 100_000_000);
        assert_eq!((pace.due_ns(0), pace.late_ns()), (101_000_000, 99_000_000));
    }

    #[test]
    fn a_recording_keeps_its_pace_times_the_speed() {
        let due = |speed| Pace::new(FeedRate::Recorded(speed)).due_ns(34_200_000_000_001);
        assert_eq!((due(1.0), due(2.0), due(0.5)), (34_200_000_000_001, 17_100_000_000_000, 68_400_000_000_002));
        let mut pace = Pace::new(FeedRate::Recorded(10.0));
        pace.sent(5, 2_000, 50_002_000);
        assert_eq!((pace.due_ns(30_000), pace.late_ns()), (50_003_000, 50_000_000));
    }
}
