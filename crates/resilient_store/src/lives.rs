//! Remembers the lives of a store. A store in memory that starts again has lost its rows, and must not answer as if
//! they had never existed. A durable store continues in the same life.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::durable_file;

/// The directory of a store.
#[derive(Debug)]
pub struct StoreDirectory {
    path: PathBuf,
    lives: u64,
    /// Keeps other processes away.
    _lock: File,
}

/// Reason that a store's directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LifeError {
    /// It cannot be read or written.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Another store uses it.
    #[error("another store uses {0}")]
    InUse(PathBuf),
    /// The file with the number of lives is damaged.
    #[error("{0} does not hold a number of lives; if the store may forget its rows, remove the directory")]
    Damaged(PathBuf),
}

impl StoreDirectory {
    /// Opens or creates the directory, and locks it.
    ///
    /// # Errors
    /// If it cannot be used.
    pub fn open(path: &Path) -> Result<StoreDirectory, LifeError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| LifeError::Io { path, source }
        };
        fs::create_dir_all(path).map_err(failed(path))?;
        let lock_path = path.join("lock");
        let lock = durable_file::lock(&lock_path).map_err(failed(&lock_path))?;
        let lock = lock.ok_or_else(|| LifeError::InUse(path.to_owned()))?;
        let file = path.join("lives");
        let lives = match fs::read_to_string(&file) {
            Ok(text) => text.trim().parse().map_err(|_| LifeError::Damaged(file))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(failed(&file)(error)),
        };
        Ok(StoreDirectory { path: path.to_owned(), lives, _lock: lock })
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of lives that have begun.
    pub fn lives(&self) -> u64 {
        self.lives
    }

    /// Begins a life, which is on the disk when this returns, and returns its number.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin_life(&mut self) -> Result<u64, LifeError> {
        let life = self.lives + 1;
        let file = self.path.join("lives");
        durable_file::replace(&file, &format!("{life}\n")).map_err(|source| LifeError::Io { path: file, source })?;
        self.lives = life;
        Ok(life)
    }
}
