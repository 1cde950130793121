//! Tracks the segments of a sender, which wait, are in flight, have arrived, or are lost.
//!
//! Every transmission has a number. A segment is lost when a transmission with a number higher by three has arrived, as
//! in QUIC (RFC 9002 section 6.1.1). This finds the losses that RFC 6675 finds, sooner where several segments in a row
//! are lost, and also finds lost retransmissions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Distance in transmission numbers at which an overtaken transmission is considered lost.
const REORDERED: u64 = 3;

/// The segments of a sender, by the number of their first byte.
#[derive(Debug)]
pub struct Flight {
    segments: BTreeMap<u64, Segment>,
    /// Segments that were sent and have not arrived.
    missing: BTreeSet<u64>,
    lost: BTreeSet<u64>,
    /// Transmissions in their order, each with its segment.
    order: VecDeque<(u64, u64)>,
    transmissions: u64,
    /// Number of the latest transmission that arrived.
    arrived: u64,
    oldest: u64,
    next: u64,
    end: u64,
    on_the_way: u64,
}

#[derive(Debug)]
struct Segment {
    end: u64,
    packet: Vec<u8>,
    /// Number and time of its latest transmission.
    number: u64,
    sent_ns: u64,
    times: u32,
}

/// New information in an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Bytes that this acknowledgement was the first to report as arrived.
    pub arrived: u64,
    /// Bytes that are newly acknowledged in order.
    pub in_order: u64,
    /// Round-trip time of the last arrived segment that was sent only once.
    pub trip_ns: Option<u64>,
}

/// A segment that is due to be sent.
#[derive(Debug)]
pub struct Due<'a> {
    pub packet: &'a [u8],
    pub again: bool,
}

impl Flight {
    /// Creates an empty flight; the first byte will have this number.
    pub fn new(first: u64) -> Flight {
        Flight {
            segments: BTreeMap::new(),
            missing: BTreeSet::new(),
            lost: BTreeSet::new(),
            order: VecDeque::new(),
            transmissions: 0,
            arrived: 0,
            oldest: first,
            next: first,
            end: first,
            on_the_way: 0,
        }
    }

    /// Returns the number of the oldest byte that is not acknowledged.
    pub fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Returns the number of the first byte that was never sent.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Returns the number after the last byte.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the number of bytes that were sent and are not acknowledged, lost or not.
    pub fn outstanding(&self) -> u64 {
        self.next - self.oldest
    }

    /// Returns the number of bytes that are considered to be in flight.
    pub fn on_the_way(&self) -> u64 {
        self.on_the_way
    }

    /// Whether any segment waits to be sent, for the first time or again.
    pub fn is_waiting(&self) -> bool {
        self.next < self.end || !self.lost.is_empty()
    }

    /// Adds the bytes from [`Flight::end`] up to `end`.
    pub fn add(&mut self, end: u64, packet: Vec<u8>) {
        debug_assert!(end > self.end, "a segment has bytes");
        self.segments.insert(self.end, Segment { end, packet, number: 0, sent_ns: 0, times: 0 });
        self.end = end;
    }

    /// Processes an acknowledgement of all bytes before `up_to`, and of some ranges.
    pub fn acknowledged(&mut self, now: u64, up_to: u64, ranges: &[(u64, u64)], least_trip_ns: u64) -> Heard {
        let mut heard = Heard::default();
        if up_to > self.next {
            return heard;
        }
        for (from, to) in ranges.iter().chain([&(0, up_to)]) {
            let whole = |at: &u64| self.segments.get(at).is_some_and(|segment| segment.end <= *to);
            let new: Vec<u64> =
                if from < to { self.missing.range(from..to).copied().filter(whole).collect() } else { vec![] };
            for at in new {
                self.missing.remove(&at);
                let was_lost = self.lost.remove(&at);
                let segment = &self.segments[&at];
                let len = segment.end - at;
                heard.arrived += len;
                self.on_the_way -= if was_lost { 0 } else { len };
                let trip_ns = now.saturating_sub(segment.sent_ns);
                // An acknowledgement sooner than the minimum round trip belongs to the first transmission.
                if segment.times == 1 || trip_ns >= least_trip_ns {
                    self.arrived = self.arrived.max(segment.number);
                }
                heard.trip_ns = Some(trip_ns).filter(|_| segment.times == 1).or(heard.trip_ns);
            }
        }
        if up_to > self.oldest {
            heard.in_order = up_to - self.oldest;
            self.oldest = up_to;
            while self.segments.first_key_value().is_some_and(|(_, segment)| segment.end <= up_to) {
                self.segments.pop_first();
            }
        }
        heard
    }

    /// Marks the overtaken transmissions as lost. Returns the last byte among them, if there is any.
    pub fn overtaken(&mut self) -> Option<u64> {
        let mut last = None;
        while let Some((number, at)) = self.order.front().copied()
            && number + REORDERED <= self.arrived
        {
            self.order.pop_front();
            last = self.give_up(number, at).max(last);
        }
        last
    }

    /// Marks everything that has not arrived as lost.
    pub fn all_lost(&mut self) {
        for (number, at) in std::mem::take(&mut self.order) {
            self.give_up(number, at);
        }
    }

    /// Marks a transmission as lost if it is its segment's latest and has not arrived.
    fn give_up(&mut self, number: u64, at: u64) -> Option<u64> {
        let segment = self.segments.get(&at).filter(|segment| segment.number == number)?;
        if !self.missing.contains(&at) || !self.lost.insert(at) {
            return None;
        }
        self.on_the_way -= segment.end - at;
        Some(segment.end)
    }

    /// Returns the next segment to send, if `allowed` more bytes may be in flight; lost segments come before new ones.
    /// The segment counts as in flight from now on.
    pub fn send(&mut self, now: u64, allowed: u64) -> Option<Due<'_>> {
        let at = self.lost.first().copied().or_else(|| (self.next < self.end).then_some(self.next))?;
        let segment = self.segments.get_mut(&at).expect("what is lost or waits is there");
        let len = segment.end - at;
        if len > allowed && self.on_the_way > 0 {
            return None;
        }
        self.transmissions += 1;
        (segment.number, segment.sent_ns) = (self.transmissions, now);
        segment.times += 1;
        self.order.push_back((self.transmissions, at));
        self.on_the_way += len;
        self.lost.remove(&at);
        self.missing.insert(at);
        self.next = self.next.max(segment.end);
        Some(Due { packet: &segment.packet, again: segment.times > 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::{Flight, Heard};

    /// Returns a flight with ten segments of 100 bytes in flight, sent a nanosecond apart.
    fn ten() -> Flight {
        let mut flight = Flight::new(1_000);
        for at in 0..10 {
            flight.add(1_100 + 100 * at, vec![at as u8]);
            assert!(!flight.send(at, 100).expect("it may be sent").again);
        }
        assert_eq!((flight.on_the_way(), flight.outstanding()), (1_000, 1_000));
        flight
    }

    fn packet(flight: &mut Flight, allowed: u64) -> Option<(u8, bool)> {
        flight.send(50, allowed).map(|due| (due.packet[0], due.again))
    }

    #[test]
    fn what_is_overtaken_by_three_is_lost_and_sent_first() {
        let mut flight = ten();
        flight.add(2_100, vec![10]);
        let heard = flight.acknowledged(20, 1_000, &[(1_100, 1_300)], 0);
        assert_eq!(heard, Heard { arrived: 200, in_order: 0, trip_ns: Some(18) });
        assert_eq!(flight.overtaken(), None);
        flight.acknowledged(21, 1_000, &[(1_100, 1_400)], 0);
        assert_eq!(flight.overtaken(), Some(1_100));
        assert_eq!(flight.on_the_way(), 600);
        assert_eq!(packet(&mut flight, 99), None);
        assert_eq!(packet(&mut flight, 100), Some((0, true)));
        assert_eq!(packet(&mut flight, 100), Some((10, false)));
        assert_eq!(packet(&mut flight, 100), None);
        // The hole is filled: the segments acknowledged in order are forgotten.
        assert_eq!(flight.acknowledged(60, 1_400, &[], 0).in_order, 400);
        assert_eq!((flight.oldest(), flight.on_the_way()), (1_400, 700));
    }

    #[test]
    fn a_retransmission_that_is_lost_is_noticed_by_what_was_sent_behind_it() {
        let mut flight = ten();
        flight.acknowledged(20, 1_000, &[(1_100, 2_000)], 0);
        assert_eq!(flight.overtaken(), Some(1_100));
        assert_eq!(packet(&mut flight, 100), Some((0, true)));
        for at in 0..3 {
            flight.add(2_100 + 100 * at, vec![10]);
            assert!(packet(&mut flight, 100).is_some());
        }
        flight.acknowledged(70, 1_000, &[(1_100, 2_200)], 0);
        assert_eq!(flight.overtaken(), None);
        flight.acknowledged(71, 1_000, &[(1_100, 2_300)], 0);
        assert_eq!(flight.overtaken(), Some(1_100));
    }

    #[test]
    fn everything_that_did_not_arrive_is_sent_again_after_a_timeout() {
        let mut flight = ten();
        flight.acknowledged(20, 1_200, &[(1_500, 1_600)], 0);
        flight.all_lost();
        assert_eq!(flight.on_the_way(), 0);
        let again: Vec<u8> = std::iter::from_fn(|| packet(&mut flight, 100)).map(|(packet, _)| packet).collect();
        assert_eq!(again, [2, 3, 4, 6, 7, 8, 9]);
    }

    /// Karn's algorithm (RFC 6298 section 3). In addition, a retransmitted segment that is acknowledged at once was not
    /// lost, so its retransmission overtook nothing.
    #[test]
    fn what_was_sent_twice_measures_nothing() {
        for (least_trip_ns, lost) in [(20, None), (5, Some(1_300))] {
            let mut flight = ten();
            flight.all_lost();
            for at in 0..10 {
                assert_eq!(packet(&mut flight, 100), Some((at, true)));
            }
            // The second transmission was at 50 ns.
            let heard = flight.acknowledged(60, 1_000, &[(1_300, 1_400), (1_500, 1_600)], least_trip_ns);
            assert_eq!(heard, Heard { arrived: 200, in_order: 0, trip_ns: None });
            assert_eq!(flight.overtaken(), lost, "{least_trip_ns}");
        }
    }

    #[test]
    fn what_nobody_sent_cannot_be_acknowledged() {
        let mut flight = ten();
        assert_eq!(flight.acknowledged(20, 5_000, &[], 0), Heard::default());
        assert_eq!(flight.acknowledged(20, 900, &[(3_000, 2_000)], 0), Heard::default());
        assert_eq!(flight.on_the_way(), 1_000);
    }
}
