//! Measures the time of a round, without the time in which it compiles programs to machine code.
//!
//! Compiling takes as long as the machine is slow and busy, and says nothing about the input. It has a limit of its
//! own.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Maximum time of one round.
const ROUND_LIMIT: Duration = Duration::from_secs(5);
/// Maximum time that one round compiles.
const COMPILE_LIMIT: Duration = Duration::from_secs(60);

/// Number of compilations that run now.
static COMPILING: AtomicU32 = AtomicU32::new(0);

/// Runs work whose time is that of the compiler.
pub fn compiling<T>(work: impl FnOnce() -> T) -> T {
    COMPILING.fetch_add(1, Ordering::Relaxed);
    let result = work();
    COMPILING.fetch_sub(1, Ordering::Relaxed);
    result
}

/// Whether the round compiles now.
pub fn is_compiling() -> bool {
    COMPILING.load(Ordering::Relaxed) > 0
}

/// The times of the current round.
#[derive(Debug, Default)]
pub struct RoundClock {
    round: u64,
    spent: Duration,
    compiling: Duration,
}

impl RoundClock {
    /// Adds the time that has passed since the last call. Returns the reason if the round takes too long.
    pub fn advance(&mut self, round: u64, is_compiling: bool, passed: Duration) -> Option<String> {
        if round != self.round {
            *self = RoundClock { round, ..RoundClock::default() };
            return None;
        }
        let (time, limit, what) = match is_compiling {
            true => (&mut self.compiling, COMPILE_LIMIT, "compiling one input to machine code"),
            false => (&mut self.spent, ROUND_LIMIT, "one input"),
        };
        *time += passed;
        (*time > limit).then(|| format!("{what} takes more than {} s", limit.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn compiling_does_not_count_as_time_of_the_round() {
        let mut clock = RoundClock::default();
        for _ in 0..5 {
            assert_eq!(clock.advance(0, false, SECOND), None);
            assert_eq!(clock.advance(0, true, SECOND * 10), None);
        }
        assert_eq!(clock.advance(0, false, SECOND), Some("one input takes more than 5 s".to_owned()));
    }

    #[test]
    fn compiling_has_a_limit_and_each_round_begins_anew() {
        let mut clock = RoundClock::default();
        assert_eq!(clock.advance(0, true, SECOND * 59), None);
        assert_eq!(clock.advance(1, true, SECOND * 59), None);
        assert_eq!(clock.advance(1, true, SECOND * 59), None);
        let hang = clock.advance(1, true, SECOND * 2);
        assert_eq!(hang, Some("compiling one input to machine code takes more than 60 s".to_owned()));
    }

    #[test]
    fn the_compiler_is_marked_while_it_works() {
        assert!(compiling(is_compiling));
    }
}
