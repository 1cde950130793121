//! Lists the programs of the corpus, and runs checks that may fail, panic or hang on any of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use anyhow::{Context, Result};

/// A program that fails.
pub struct FailedSample {
    /// Its path below the folder of samples.
    pub name: String,
    /// The reason: a summary in one line, and then the details.
    pub reason: String,
}

/// Maximum time of one program; one that takes longer counts as one that never ends.
const CASE_TIMEOUT: Duration = Duration::from_secs(60);

/// Every P4 program below a folder, in the order of names.
pub fn programs(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "p4") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Runs `check` on every path, several at once. A path fails if `check` returns an error, panics, or does not end.
pub fn failures_of(
    paths: &[PathBuf],
    folder: &Path,
    check: impl Fn(&Path) -> Result<(), String> + Send + Sync + 'static,
) -> Vec<FailedSample> {
    std::panic::set_hook(Box::new(|_| {}));
    let check = Arc::new(check);
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, |count| count.get());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(reason) = with_timeout(check.clone(), path.clone()) {
                        let name = path.strip_prefix(folder).unwrap_or(path).display().to_string();
                        if let Ok(mut failures) = failures.lock() {
                            failures.push(FailedSample { name, reason });
                        }
                    }
                }
            });
        }
    });
    let _ = std::panic::take_hook();
    let mut failures = failures.into_inner().unwrap_or_default();
    failures.sort_by(|a: &FailedSample, b| a.name.cmp(&b.name));
    failures
}

/// Runs `check` in a thread of its own, which is left behind if it takes too long.
fn with_timeout<F>(check: Arc<F>, path: PathBuf) -> Result<(), String>
where
    F: Fn(&Path) -> Result<(), String> + Send + Sync + 'static,
{
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(|| check(&path))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message");
            Err(format!("panics: {}", text.replace('\n', " ")))
        });
        let _ = sender.send(result);
    });
    receiver
        .recv_timeout(CASE_TIMEOUT)
        .unwrap_or_else(|_| Err(format!("does not finish within {} s", CASE_TIMEOUT.as_secs())))
}
