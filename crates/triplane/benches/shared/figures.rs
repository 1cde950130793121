//! Computes medians, and creates the directory of a benchmark.

use std::path::PathBuf;

/// Returns values in ascending order.
pub fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Returns the median, the higher one of two.
///
/// # Panics
/// If there are no values.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let values = sorted(values);
    values[values.len() / 2]
}

/// A directory that is removed with everything in it.
pub struct Directory(pub PathBuf);

impl Directory {
    /// Creates the directory of the benchmark with this name.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn new(name: &str) -> std::io::Result<Directory> {
        let path = std::env::temp_dir().join(format!("triplane-{name}-{}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Directory(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
