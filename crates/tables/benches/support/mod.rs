//! Compares two or more implementations of the same work in one run.

use std::hint::black_box;
use std::time::Instant;

/// Number of runs of each implementation; the median counts.
const RUNS: usize = 9;

/// An implementation: a name, and a run over the whole input, which returns a digest of the results.
pub type Contender<'a> = (&'a str, Box<dyn FnMut() -> u64 + 'a>);

/// Runs all implementations in turn, checks that their results agree, and returns the median of each in ns per item.
pub fn compare(items: usize, contenders: &mut [Contender<'_>]) -> Vec<f64> {
    let mut times = vec![Vec::new(); contenders.len()];
    let mut answers = vec![0; contenders.len()];
    for run in 0..=RUNS {
        for (at, (_, way)) in contenders.iter_mut().enumerate() {
            let start = Instant::now();
            answers[at] = black_box(way());
            // The first run warms up.
            if run > 0 {
                times[at].push(start.elapsed().as_nanos() as f64 / items as f64);
            }
        }
    }
    for (at, (name, _)) in contenders.iter().enumerate() {
        assert_eq!(answers[at], answers[0], "`{name}` answers otherwise than `{}`", contenders[0].0);
    }
    times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    times.iter().map(|times| times[RUNS / 2]).collect()
}

/// Returns a number that depends on every result and its position.
pub fn digest(found: &[u32]) -> u64 {
    found.iter().fold(0, |sum: u64, handle| sum.rotate_left(5) ^ u64::from(*handle))
}
