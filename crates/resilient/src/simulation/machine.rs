//! A simulated machine: its clock, and whether it runs.

use rng::SplitMix64;
use switch::Time;

const MILLION: u128 = 1_000_000;

/// A clock that runs too fast or too slow.
#[derive(Clone, Copy, Debug)]
pub struct DriftingClock {
    offset: u64,
    /// Nanoseconds of this clock in a million true ones.
    rate: u64,
}

impl DriftingClock {
    /// Draws a clock with an error of up to `drift_ppm`, often the largest.
    pub fn draw(random: &mut SplitMix64, drift_ppm: u32) -> DriftingClock {
        let drift = u64::from(drift_ppm);
        let any = random.below(2 * drift + 1);
        let error = random.pick(&[(1, 0), (1, drift), (1, 2 * drift), (1, any)]);
        DriftingClock { offset: random.below(10_000_000), rate: 1_000_000 + error - drift }
    }

    /// Returns what the clock shows at a true time.
    pub fn read(&self, at: u64) -> Time {
        Time::from_ns(self.offset + (u128::from(at) * u128::from(self.rate) / MILLION) as u64)
    }

    /// Returns the first true time at which the clock shows `time`.
    pub fn when(&self, time: Time) -> u64 {
        let passed = u128::from(time.as_ns().saturating_sub(self.offset));
        u64::try_from((passed * MILLION).div_ceil(u128::from(self.rate))).unwrap_or(u64::MAX)
    }
}

/// A machine with a program that runs on it.
#[derive(Debug)]
pub struct Machine<P> {
    /// The program, if the machine is up.
    pub program: Option<P>,
    /// Its clock, which advances while the program does not run.
    pub clock: DriftingClock,
    /// The program does not run before this time.
    pub paused_until: u64,
    /// Time at which the last pause began.
    pub paused_at: u64,
    /// Number of its starts.
    pub starts: u64,
    /// The time for which it asked to be woken.
    pub wake_at: u64,
}

impl<P> Machine<P> {
    /// Creates a machine that runs.
    pub fn new(program: P, clock: DriftingClock) -> Machine<P> {
        let program = Some(program);
        Machine { program, clock, paused_until: 0, paused_at: 0, starts: 1, wake_at: u64::MAX }
    }

    /// Returns the time that the program sees. With `is_stale`, it is that of before the last pause if the pause ends
    /// now.
    pub fn now(&self, at: u64, is_stale: bool) -> Time {
        self.clock.read(if is_stale && at == self.paused_until { self.paused_at } else { at })
    }

    /// Whether the program runs.
    pub fn is_up(&self) -> bool {
        self.program.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_woken_when_its_clock_shows_the_time_and_not_earlier() {
        let mut random = SplitMix64::new(7);
        for _ in 0..1000 {
            let clock = DriftingClock::draw(&mut random, 200_000);
            let at = random.below(1 << 40);
            let time = clock.read(at);
            let when = clock.when(time);
            assert!(when <= at && clock.read(when) >= time);
            assert!(when == 0 || clock.read(when - 1) < time);
        }
    }
}
