//! Receives a feed for a subscriber: selects messages and measures their ages.

use hdrhistogram::Histogram;

use crate::{Arrival, Filter, Receiver, Totals};

/// Largest measured age: one hour, in ns.
const LARGEST_NS: u64 = 3_600_000_000_000;

/// Reads a stream and measures the ages of selected messages. Its memory use is bounded.
#[derive(Clone, Debug)]
pub struct Subscriber {
    receiver: Receiver,
    filter: Option<Filter>,
    ages: Histogram<u64>,
    malformed: u64,
}

impl Subscriber {
    /// Creates a subscriber that selects messages by a filter, or all messages.
    pub fn new(receiver: Receiver, filter: Option<Filter>) -> Subscriber {
        let ages = Histogram::new_with_bounds(1, LARGEST_NS, 3).expect("three digits of an hour");
        Subscriber { receiver, filter, ages, malformed: 0 }
    }

    /// Receives a datagram's payload at a time of day, in ns since midnight. Returns the selected messages.
    pub fn take(&mut self, payload: &[u8], now_ns: u64) -> Vec<Arrival> {
        let Ok(mut arrivals) = self.receiver.receive(payload, now_ns) else {
            self.malformed += 1;
            return Vec::new();
        };
        if let Some(filter) = &self.filter {
            arrivals.retain(|arrival| filter.wants(&arrival.message));
        }
        for arrival in &arrivals {
            self.ages.saturating_record(arrival.age_ns);
        }
        arrivals
    }

    /// Returns the totals of all received messages, selected or not.
    pub fn totals(&self) -> Totals {
        self.receiver.totals()
    }

    /// Returns the number of malformed datagrams.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Returns the number of selected messages.
    pub fn wanted(&self) -> u64 {
        self.ages.len()
    }

    /// Returns the ages of the selected messages, in ns.
    pub fn ages(&self) -> &Histogram<u64> {
        &self.ages
    }

    /// Whether all known sessions have ended.
    pub fn is_over(&self) -> bool {
        self.receiver.is_over()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DatagramMessages, DatagramSource, Feed, Spec, Workload};

    #[test]
    fn only_the_ages_of_wanted_messages_are_measured() {
        let spec = Spec { share: 0.5, counts: DatagramMessages::Exactly(4), ..Workload::Synthetic.spec(2) };
        let mut feed = Feed::new(spec.clone());
        let filter = Filter::parse("stock == \"GOOGL\"").unwrap();
        let mut subscriber = Subscriber::new(Receiver::from_start(), Some(filter));
        let mut wanted = 0;
        for _ in 0..100 {
            let arrivals = subscriber.take(&feed.datagram(1_000), 51_000);
            assert!(arrivals.iter().all(|arrival| arrival.message.stock() == Some(spec.symbol)));
            wanted += arrivals.len() as u64;
        }
        assert!((100..300).contains(&wanted), "{wanted}");
        assert_eq!((subscriber.wanted(), subscriber.totals().messages, subscriber.malformed()), (wanted, 400, 0));
        assert!(subscriber.ages().min().abs_diff(50_000) < 100 && subscriber.ages().max().abs_diff(50_000) < 100);
        subscriber.take(b"nonsense", 0);
        subscriber.take(&feed.end_of_session(), 0);
        assert!(subscriber.is_over() && subscriber.malformed() == 1 && subscriber.totals().missing == 0);
    }
}
