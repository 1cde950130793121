//! Remembers the lives of a store. A store in memory that starts again has lost its rows, and must not answer as if
//! they had never been there. A durable store goes on in the same life.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

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
        let lock = File::create(&lock_path).map_err(failed(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LifeError::InUse(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(&lock_path)(error)),
        }
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
        let (file, new) = (self.path.join("lives"), self.path.join("lives.new"));
        let write = || -> io::Result<()> {
            let mut written = File::create(&new)?;
            writeln!(written, "{life}")?;
            written.sync_all()?;
            fs::rename(&new, &file)?;
            File::open(&self.path)?.sync_all()
        };
        write().map_err(|source| LifeError::Io { path: file.clone(), source })?;
        self.lives = life;
        Ok(life)
    }
}
