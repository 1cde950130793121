//! When datagrams are due.

/// How fast a feed is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// So many messages a second, over datagrams of any length.
    Messages(f64),
    /// So many datagrams a second.
    Datagrams(f64),
}

/// A sender that is later than this does not catch up: a burst would follow, which nobody asked for.
const MOST_LATE_NS: u64 = 10_000_000;

/// Says when each datagram is due, from the beginning, in ns. Whoever sends late sends the next ones at once until it is
/// in time again, so that the rate holds over any stretch, except for what [`late_ns`](Pace::late_ns) tells.
#[derive(Clone, Debug)]
pub struct Pace {
    rate: Rate,
    /// Messages or datagrams so far, whichever the rate counts.
    count: u64,
    late_ns: u64,
}

impl Pace {
    /// A pace at its beginning: the first datagram is due at once.
    ///
    /// # Panics
    /// If the rate is not above 0.
    pub fn new(rate: Rate) -> Pace {
        let (Rate::Messages(number) | Rate::Datagrams(number)) = rate;
        assert!(number > 0.0, "a rate is above 0");
        Pace { rate, count: 0, late_ns: 0 }
    }

    /// When the next datagram is due.
    pub fn due_ns(&self) -> u64 {
        let (Rate::Messages(number) | Rate::Datagrams(number)) = self.rate;
        // Casts of what is too large saturate: never.
        ((self.count as f64 / number * 1e9) as u64).saturating_add(self.late_ns)
    }

    /// Notes that a datagram with so many messages left at this time.
    pub fn sent(&mut self, messages: u64, now_ns: u64) {
        let late = now_ns.saturating_sub(self.due_ns());
        if late > MOST_LATE_NS {
            self.late_ns += late;
        }
        self.count += match self.rate {
            Rate::Messages(_) => messages,
            Rate::Datagrams(_) => 1,
        };
    }

    /// By how much the sender fell behind for good; 0 for one that could keep up.
    pub fn late_ns(&self) -> u64 {
        self.late_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_messages_holds_over_datagrams_of_any_length() {
        let mut pace = Pace::new(Rate::Messages(1_000.0));
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
        let mut pace = Pace::new(Rate::Datagrams(1_000.0));
        pace.sent(1, 9_000_000);
        assert_eq!((pace.due_ns(), pace.late_ns()), (1_000_000, 0));
        pace.sent(1, 100_000_000);
        assert_eq!((pace.due_ns(), pace.late_ns()), (101_000_000, 99_000_000));
    }
}
