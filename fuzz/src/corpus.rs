//! The inputs that mutation starts from: the files of the repository itself.

use std::path::{Path, PathBuf};

/// The root of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("fuzz/ is one level deep")
}

/// The files below the root whose names end so, sorted, so that a seed means the same on every machine. Only the
/// folders that hold inputs are looked through.
pub fn files(ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["examples", "testdata", "crates", "fuzz/regressions"] {
        collect(&root().join(folder), ending, &mut found);
    }
    found.sort();
    found
}

fn collect(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, ending, found);
        } else if path.to_str().is_some_and(|name| name.ends_with(ending)) {
            found.push(path);
        }
    }
}

/// The contents of [`files`] that are not huge.
pub fn contents(ending: &str) -> Vec<Vec<u8>> {
    let texts = files(ending).into_iter().filter_map(|path| std::fs::read(path).ok());
    texts.filter(|text| text.len() < 64 << 10).collect()
}

/// Inputs that once failed on this target.
pub fn regressions(target: &str) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    collect(&root().join("fuzz/regressions").join(target), "", &mut found);
    found.sort();
    found.into_iter().filter_map(|path| std::fs::read(path).ok()).collect()
}
