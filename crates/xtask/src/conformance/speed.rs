//! Computes the row of compile times: the large v1model programs among p4c's samples.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;
use diagnostics::SourceMap;

use super::cases::{FailedSample, failures_of, programs};
use super::{Request, Row, compiled};

/// Maximum time for reading, checking and compiling a program. It is meant for a release build; the debug build of this
/// chore keeps it, too, unless the machine is busy.
const LIMIT: Duration = Duration::from_secs(1);

/// Folders of large programs, and how the names of single ones begin.
const FOLDERS: [&str; 4] = ["fabric_20190420", "omec", "dash", "pins"];
const SINGLE: [&str; 2] = ["fabric_", "sai_p4"];

/// Compiles each, and prints the slowest five.
pub fn row(request: &Request) -> Result<Row> {
    let folder = request.p4c.join("testdata/p4_16_samples");
    let mut paths = programs(&folder)?;
    paths.retain(|path| is_large(path, &folder) && path.display().to_string().contains(&request.name));
    let total = paths.len();
    let times: Arc<Mutex<Vec<(Duration, PathBuf)>>> = Arc::default();
    let (checkout, noted) = (request.checkout_only(), times.clone());
    let failures: Vec<FailedSample> = failures_of(&paths, &folder, move |path| {
        let start = Instant::now();
        compiled(&checkout, path, &mut SourceMap::new())?;
        let time = start.elapsed();
        if let Ok(mut times) = noted.lock() {
            times.push((time, path.to_owned()));
        }
        if time < LIMIT { Ok(()) } else { Err(format!("takes {} ms", time.as_millis())) }
    });
    let mut times = times.lock().map(|times| times.clone()).unwrap_or_default();
    times.sort_by(|a, b| b.cmp(a));
    for (time, path) in times.iter().take(5) {
        let name = path.strip_prefix(&folder).unwrap_or(path);
        println!("speed: {:>5} ms  {}", time.as_millis(), name.display());
    }
    let what = "large programs compile in less than a second";
    Ok(Row { name: "speed", what, required: 100.0, total, expected_failures: Vec::new(), failures })
}

/// Whether it is a large program for v1model, rather than a part of one.
fn is_large(path: &Path, folder: &Path) -> bool {
    let Ok(inner) = path.strip_prefix(folder) else { return false };
    let name = inner.to_string_lossy();
    let in_folder = FOLDERS.iter().any(|folder| inner.starts_with(folder));
    let text = std::fs::read(path).unwrap_or_default();
    let is_whole = String::from_utf8_lossy(&text).contains("V1Switch(");
    is_whole && (in_folder || SINGLE.iter().any(|start| name.starts_with(start)))
}
