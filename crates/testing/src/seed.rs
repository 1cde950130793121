//! Reads the numbers that make random tests longer or repeat one of their seeds.

use std::str::FromStr;

/// A number from an environment variable, such as the number of seeds of a longer run or the first of them.
///
/// # Panics
/// If the variable holds something else.
pub fn number<T: FromStr>(variable: &str, default: T) -> T {
    let Ok(value) = std::env::var(variable) else { return default };
    value.parse().unwrap_or_else(|_| panic!("{variable} is not a number: `{value}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_not_set_is_the_default() {
        assert_eq!(number("TRIPLANE_NO_SUCH_VARIABLE", 7), 7);
    }
}
