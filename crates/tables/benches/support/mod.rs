//! Measuring two or more ways to do the same work in one run.

use std::hint::black_box;
use std::time::Instant;

/// Runs of each way; the median counts.
const RUNS: usize = 9;

/// A way to do the work: a name, and a run over everything, which returns a number that depends on the answers.
pub type Way<'a> = (&'a str, Box<dyn FnMut() -> u64 + 'a>);

/// Runs all ways in turn, checks that they answer the same, and returns the median of each in ns an item.
pub fn compare(items: usize, ways: &mut [Way<'_>]) -> Vec<f64> {
    let mut times = vec![Vec::new(); ways.len()];
    let mut answers = vec![0; ways.len()];
    for run in 0..=RUNS {
        for (at, (_, way)) in ways.iter_mut().enumerate() {
            let start = Instant::now();
            answers[at] = black_box(way());
            // The first run warms up.
            if run > 0 {
                times[at].push(start.elapsed().as_nanos() as f64 / items as f64);
            }
        }
    }
    for (at, (name, _)) in ways.iter().enumerate() {
        assert_eq!(answers[at], answers[0], "`{name}` answers otherwise than `{}`", ways[0].0);
    }
    times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    times.iter().map(|times| times[RUNS / 2]).collect()
}

/// A number that depends on every answer and its place.
pub fn digest(found: &[u32]) -> u64 {
    found.iter().fold(0, |sum: u64, handle| sum.rotate_left(5) ^ u64::from(*handle))
}
