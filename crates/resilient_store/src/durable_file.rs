//! Replaces and locks small files, so that they survive a power failure and belong to one process.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Returns the path of a file in the same directory: the name with an extension.
pub(crate) fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(OsStr::new(extension));
    PathBuf::from(name)
}

/// Replaces a file. The new one is on the disk when this returns, under its name. After an error, it is unknown which
/// of the two exists.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = beside(path, ".new");
    let mut written = File::create(&new)?;
    written.write_all(text.as_bytes())?;
    written.sync_all()?;
    rename(&new, path)
}

/// Renames a file. The change is on the disk when this returns.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_directory(to)
}

/// Syncs a directory, so that the name of a file, or its absence, survives a power failure.
pub(crate) fn sync_directory(file: &Path) -> io::Result<()> {
    let directory = file.parent().filter(|path| !path.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// Creates a file, unless it exists, and locks it until the handle is closed. Returns `None` if another process has
/// locked it.
pub(crate) fn lock(path: &Path) -> io::Result<Option<File>> {
    let lock = File::create(path)?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
