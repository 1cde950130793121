//! Reads the numbers that make random tests longer or repeat one of their seeds, and runs seeds on several threads.

use std::ops::Range;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number from an environment variable, such as the number of seeds of a longer run or the first of them.
///
/// # Panics
/// If the variable holds something else.
pub fn number<T: FromStr>(variable: &str, default: T) -> T {
    let Ok(value) = std::env::var(variable) else { return default };
    value.parse().unwrap_or_else(|_| panic!("{variable} is not a number: `{value}`"))
}

/// Number of threads that run seeds.
const THREADS: usize = 2;

/// Calls `run` with each seed, on two threads, until it returns false.
///
/// # Panics
/// If a call panics.
pub fn for_each(seeds: Range<u64>, run: impl Fn(u64) -> bool + Sync) {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            if !run(seed) {
                next.store(seeds.end, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| (0..THREADS).for_each(|_| _ = scope.spawn(work)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_not_set_is_the_default() {
        assert_eq!(number("TRIPLANE_NO_SUCH_VARIABLE", 7), 7);
    }

    #[test]
    fn each_seed_runs_once_until_one_says_stop() {
        let sum = AtomicU64::new(0);
        for_each(3..100, |seed| sum.fetch_add(seed, Ordering::Relaxed) < u64::MAX);
        assert_eq!(sum.into_inner(), (3..100).sum());
        let last = AtomicU64::new(0);
        for_each(0..u64::MAX, |seed| last.fetch_max(seed, Ordering::Relaxed) < 50);
        assert!(last.into_inner() < 60);
    }
}
