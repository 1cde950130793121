//! Measures the utilization of a port over intervals of one millisecond.

use crate::queue::Picos;

/// Length of an interval.
const INTERVAL: Picos = 1_000_000_000;
/// A share of 100 %, in units of 1/10,000.
const FULL_SHARE: Picos = 10_000;

/// The times at which a port was busy. Transmissions follow each other, and do not overlap.
#[derive(Debug, Default)]
pub(crate) struct BusyTime {
    /// The interval in which the latest transmission began.
    interval: Picos,
    /// Busy picoseconds of the previous and the current interval, without `latest`.
    earlier: [Picos; 2],
    latest: (Picos, Picos),
}

impl BusyTime {
    /// Records a transmission.
    pub fn record(&mut self, begin: Picos, end: Picos) {
        let interval = begin / INTERVAL;
        self.earlier = [interval.checked_sub(1).map_or(0, |before| self.busy_in(before)), self.busy_in(interval)];
        (self.interval, self.latest) = (interval, (begin, end));
    }

    /// Returns the busy time of an interval, which is at most one before that of the latest transmission.
    fn busy_in(&self, interval: Picos) -> Picos {
        let start = interval * INTERVAL;
        let (begin, end) = self.latest;
        let latest = end.min(start + INTERVAL).saturating_sub(begin.max(start));
        let earlier = match interval {
            same if same == self.interval => self.earlier[1],
            before if before + 1 == self.interval => self.earlier[0],
            _ => 0,
        };
        earlier + latest
    }

    /// Returns the share of the last complete interval for which the port was busy, rounded down.
    pub fn share(&self, now: Picos) -> u32 {
        let busy = (now / INTERVAL).checked_sub(1).map_or(0, |last| self.busy_in(last));
        (busy * FULL_SHARE / INTERVAL) as u32
    }
}

/// The bytes that were offered to a port.
#[derive(Debug, Default)]
pub(crate) struct OfferedBytes {
    /// The latest interval with bytes, and the bytes of the interval before it, and of it.
    interval: Picos,
    bytes: [u64; 2],
}

impl OfferedBytes {
    /// Adds bytes.
    pub fn add(&mut self, now: Picos, bytes: usize) {
        let interval = now / INTERVAL;
        if interval > self.interval {
            self.bytes = [interval.checked_sub(1).map_or(0, |before| self.bytes_in(before)), 0];
            self.interval = interval;
        }
        self.bytes[1] += bytes as u64;
    }

    /// Returns the bytes of an interval, which is at most one before the latest.
    fn bytes_in(&self, interval: Picos) -> u64 {
        match interval {
            same if same == self.interval => self.bytes[1],
            before if before + 1 == self.interval => self.bytes[0],
            _ => 0,
        }
    }

    /// Returns the share of a bandwidth that was offered in the last complete interval, rounded down.
    pub fn share(&self, now: Picos, bps: u64) -> u32 {
        let bytes = (now / INTERVAL).checked_sub(1).map_or(0, |last| self.bytes_in(last));
        let share = Picos::from(bytes) * 8 * 1_000 * FULL_SHARE / Picos::from(bps.max(1));
        u32::try_from(share).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Microseconds.
    const US: Picos = 1_000_000;

    #[test]
    fn busy_time_equals_a_sum_over_all_transmissions() {
        let mut rng = rng::SplitMix64::new(7);
        let (mut busy, mut all, mut free_at) = (BusyTime::default(), Vec::new(), 0);
        for _ in 0..5_000 {
            let begin = free_at + Picos::from(rng.below(4) * rng.below(700)) * US;
            let end = begin + Picos::from(1 + rng.below(2_500)) * US;
            free_at = end;
            busy.record(begin, end);
            all.push((begin, end));
            for now in [begin, begin + 300 * US, end, end + 900 * US, end + 5_000 * US] {
                let Some(last) = (now / INTERVAL).checked_sub(1) else { continue };
                let (from, to) = (last * INTERVAL, (last + 1) * INTERVAL);
                let recent = all.iter().rev().take_while(|(_, end)| *end > from);
                let sum: Picos = recent.map(|(begin, end)| (*end).min(to).saturating_sub((*begin).max(from))).sum();
                assert_eq!(Picos::from(busy.share(now)), sum * FULL_SHARE / INTERVAL, "seed 7, at {now} ps");
            }
        }
    }

    #[test]
    fn offered_bytes_are_those_of_the_last_complete_interval() {
        let mut offered = OfferedBytes::default();
        let share = |offered: &OfferedBytes, us: Picos| offered.share(us * US, 8_000_000);
        for (us, bytes, before) in [(0, 300, 0), (999, 200, 0), (1_000, 1_500, 5_000), (3_500, 100, 0)] {
            offered.add(us * US, bytes);
            assert_eq!(share(&offered, us), before, "at {us} us");
        }
        assert_eq!(
            [3_999, 4_000, 4_999, 5_000, u32::MAX.into()].map(|us| share(&offered, us)),
            [0, 1_000, 1_000, 0, 0]
        );
        offered.add(7_000 * US, usize::MAX / 2);
        assert_eq!(share(&offered, 8_000), u32::MAX, "overload has an end");
    }
}
