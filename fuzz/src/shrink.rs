//! Makes a failing input smaller while it fails in the same way.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::FuzzOptions;
use crate::supervise::{Failure, run_once};

/// Maximum time spent on shrinking one input.
const SHRINK_TIMEOUT: Duration = Duration::from_secs(60);

/// Cuts an input into pieces.
type Split = fn(&[u8]) -> Vec<&[u8]>;

/// The smallest input found that fails as `failure` does.
pub fn shrink(target: &str, input: &[u8], failure: &Failure, scratch: &Path) -> Result<Vec<u8>> {
    let mut best = input.to_vec();
    let deadline = Instant::now() + SHRINK_TIMEOUT;
    let fails = |candidate: &[u8]| -> Result<bool> {
        std::fs::write(scratch, candidate).with_context(|| format!("cannot write {}", scratch.display()))?;
        Ok(run_once(target, scratch)?.is_some_and(|found| found.kind == failure.kind))
    };
    // Lines first, then tokens, then bytes: large pieces are removed while there are few of them to try.
    let splits: [Split; 3] = [
        |data| data.split_inclusive(|byte| *byte == b'\n').collect(),
        crate::mutate::split,
        |data| data.chunks(1).collect(),
    ];
    for split in splits {
        let whole = best;
        let mut pieces = split(&whole);
        let mut size = pieces.len().div_ceil(2);
        while size > 0 && Instant::now() < deadline {
            let mut at = 0;
            while at < pieces.len() && Instant::now() < deadline {
                let end = (at + size).min(pieces.len());
                let without = [&pieces[..at], &pieces[end..]].concat();
                if fails(&without.concat())? {
                    pieces = without;
                } else {
                    at = end;
                }
            }
            size /= 2;
        }
        best = pieces.concat();
    }
    Ok(best)
}

/// `--shrink FILE`
pub fn run(options: &FuzzOptions, file: &Path) -> Result<bool> {
    let input = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let Some(failure) = run_once(&options.target, file)? else { bail!("{} does not fail", file.display()) };
    let small = shrink(&options.target, &input, &failure, &file.with_extension("shrinking"))?;
    let _ = std::fs::remove_file(file.with_extension("shrinking"));
    let path = file.with_extension("small");
    std::fs::write(&path, &small).with_context(|| format!("cannot write {}", path.display()))?;
    println!("{} bytes -> {} bytes: {}", input.len(), small.len(), path.display());
    Ok(true)
}
