//! Random tests, which must print the seed that failed.

use std::str::FromStr;

/// A number from an environment variable, such as the number of seeds of a longer run.
///
/// # Panics
/// If the variable holds something else.
pub fn number<T: FromStr>(variable: &str, default: T) -> T {
    let Ok(value) = std::env::var(variable) else { return default };
    value.parse().unwrap_or_else(|_| panic!("{variable} is not a number: `{value}`"))
}

/// Runs a test with each seed. If it panics, the seed is printed.
pub fn for_each_seed(seeds: impl IntoIterator<Item = u64>, mut test: impl FnMut(u64)) {
    for seed in seeds {
        let report = SeedReport(seed);
        test(seed);
        drop(report);
    }
}

/// Prints its seed if it is dropped because the test failed.
struct SeedReport(u64);

impl Drop for SeedReport {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the test failed with seed {}", self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_not_set_is_the_default() {
        assert_eq!(number("TRIPLANE_NO_SUCH_VARIABLE", 7), 7);
    }

    #[test]
    fn every_seed_is_run() {
        let mut seen = Vec::new();
        for_each_seed(3..6, |seed| seen.push(seed));
        assert_eq!(seen, [3, 4, 5]);
    }
}
