//! Visits the items of a list repeatedly, a few at a time.

use std::ops::Range;

use switch::Time;

/// Minimum and maximum number of items of a step.
const STEP: usize = 64;
const MAX_STEP: usize = 1024;

/// Shortest time between two steps.
const MIN_INTERVAL_NS: u64 = 1_000_000;

/// Number of passes over rows in their idle time.
const IDLE_PASSES: u64 = 8;

/// Returns an idle time in nanoseconds.
pub fn idle_ns(idle_ms: u32) -> u64 {
    u64::from(idle_ms) * 1_000_000
}

/// The pace of visits. A pass over all items takes a given time, or longer if there are more than 1,024 items for each
/// millisecond of it. So the work of a step is bounded for any number of items.
#[cfg_attr(feature = "simulation", derive(Clone, Hash))]
#[derive(Debug, Default)]
pub struct PacedSweep {
    next: usize,
    due: Option<Time>,
    pass_ns: u64,
}

impl PacedSweep {
    /// Returns the length of a pass over rows with this idle time.
    pub fn idle_pass_ns(idle_ms: u32) -> u64 {
        idle_ns(idle_ms) / IDLE_PASSES
    }

    /// Starts, or shortens the passes to this length.
    pub fn start(&mut self, now: Time, pass_ns: u64) {
        let due = now.after_ns(pass_ns.max(MIN_INTERVAL_NS));
        match &mut self.due {
            Some(known) => {
                self.pass_ns = self.pass_ns.min(pass_ns);
                *known = due.min(*known);
            }
            None => *self = PacedSweep { next: 0, due: Some(due), pass_ns },
        }
    }

    /// Sets the length of the passes that follow.
    pub fn set_pass(&mut self, pass_ns: u64) {
        self.pass_ns = pass_ns;
    }

    /// Stops until [`PacedSweep::start`].
    pub fn stop(&mut self) {
        self.due = None;
    }

    /// Returns the time of the next step, if there is one.
    pub fn due(&self) -> Option<Time> {
        self.due
    }

    /// Returns the items to visit now if a step is due, and whether they are the last ones of a pass.
    pub fn step(&mut self, now: Time, items: usize) -> Option<(Range<usize>, bool)> {
        self.due.filter(|due| *due <= now)?;
        let wanted = (items as u128 * u128::from(MIN_INTERVAL_NS)).div_ceil(u128::from(self.pass_ns.max(1)));
        let step = usize::try_from(wanted).unwrap_or(MAX_STEP).clamp(STEP, MAX_STEP);
        let from = self.next.min(items);
        let to = items.min(from + step);
        let steps = items.div_ceil(step).max(1) as u64;
        self.due = Some(now.after_ns((self.pass_ns / steps).max(MIN_INTERVAL_NS)));
        self.next = if to == items { 0 } else { to };
        Some((from..to, to == items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the time and the number of steps of a pass, and the maximum number of items of a step.
    fn pass(items: usize, pass_ns: u64) -> (u64, usize, usize) {
        let mut sweep = PacedSweep::default();
        sweep.start(Time::ZERO, pass_ns);
        let (mut steps, mut most, mut expected) = (0, 0, 0);
        loop {
            let now = sweep.due().unwrap();
            assert_eq!(sweep.step(Time::from_ns(now.as_ns() - 1), items), None);
            let (range, is_last) = sweep.step(now, items).unwrap();
            assert_eq!(range.start, expected, "no item is left out");
            (steps, most, expected) = (steps + 1, most.max(range.len()), range.end);
            if is_last {
                assert_eq!(expected, items);
                return (now.as_ns(), steps, most);
            }
        }
    }

    #[test]
    fn a_pass_takes_its_time_and_a_step_is_short() {
        const SECOND: u64 = 1_000_000_000;
        assert_eq!(pass(0, SECOND), (SECOND, 1, 0));
        assert_eq!(pass(10, SECOND), (SECOND, 1, 10));
        assert_eq!(pass(640, SECOND), (SECOND + 9 * SECOND / 10, 10, 64));
        assert_eq!(pass(1 << 20, SECOND).2, MAX_STEP);
        let (time, steps, most) = pass(1 << 20, SECOND / 1000);
        assert_eq!((time / 1_000_000, steps, most), (1024, 1024, 1024));
    }

    #[test]
    fn a_shorter_pass_counts_at_once() {
        let mut sweep = PacedSweep::default();
        sweep.start(Time::ZERO, 1_000_000_000);
        sweep.start(Time::ZERO, 5_000_000);
        assert_eq!(sweep.due(), Some(Time::from_ms(5)));
        sweep.stop();
        assert_eq!(sweep.due(), None);
    }
}
