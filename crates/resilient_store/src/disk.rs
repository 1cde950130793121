//! Keeps the rows of a store in a file of `redb`, whose transactions are on disk when they are committed.
//!
//! The entries are those of [`GroupCommit`](resilient::store::GroupCommit). Every page of the file has a checksum, and
//! opening checks them all. A file that is damaged, or belongs to another store or version, is refused and not changed.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use redb::backends::FileBackend;
use redb::{Database, DatabaseError, ReadableDatabase, StorageBackend, TableDefinition, WriteTransaction};
use resilient::store::{CommitBatch, EntryChange, StoreRecovery};

use crate::disk_log::{CommitLog, LOG, empty_log, set_entry};
use crate::durable_file;

/// The entries of the node.
const ENTRIES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("entries");
/// Single values by name.
const ABOUT: TableDefinition<&str, &[u8]> = TableDefinition::new("about");

/// Name of the file, and its name until it is complete.
const FILE: &str = "rows.redb";
const NEW_FILE: &str = "rows.redb.new";
/// The first bytes of every file of `redb`.
const MAGIC: [u8; 9] = *b"redb\x1A\x0A\xA9\x0D\x0A";
/// Version of the file's format.
const FORMAT: u64 = 2;
/// Memory for pages of the file, in bytes.
const CACHE_BYTES: usize = 256 << 20;

/// The reason for which a store's rows on disk cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The file cannot be opened or created.
    #[error("cannot use {path}: {source}")]
    Open {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The file is damaged.
    #[error(
        "{path} is damaged ({reason}), so the store's rows cannot be trusted; if all rows of the cluster may be lost, \
         stop its switches and stores, and remove the directories of the stores"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        reason: String,
    },
    /// Another version wrote the file.
    #[error(
        "{0} was written by another version of Triplane, whose format this version cannot read: start the store with \
         that version; or, if all rows of the cluster may be lost, stop its switches and stores, and remove the \
         directories of the stores"
    )]
    Format(PathBuf),
    /// The file belongs to another store.
    #[error("{path} has the rows of `{owner}`, which is another store; use the directory of `{name}`")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The store that wrote it.
        owner: String,
        /// The store that opens it.
        name: String,
    },
    /// The file cannot be written. Nothing was acknowledged that is not in it.
    #[error(
        "cannot write {path}: {reason}; the store stops, and everything that it acknowledged is on disk: \
         remove the cause and start it again"
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// The error.
        reason: String,
    },
}

/// The store that a file belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskOwner {
    /// The store's name in the cluster file.
    pub name: String,
    /// Its number in messages.
    pub node: u32,
    /// Its life.
    pub life: u64,
}

/// A file with the rows of a store, for one process at a time.
#[derive(Debug)]
pub struct StoreDisk {
    database: Database,
    /// `None` after an error: it may differ from the file.
    log: Mutex<Option<CommitLog>>,
    path: PathBuf,
}

impl StoreDisk {
    /// Whether a directory has a file with rows.
    pub fn is_in(directory: &Path) -> bool {
        directory.join(FILE).symlink_metadata().is_ok()
    }

    /// Removes the file of a directory, if there is one.
    pub fn remove(directory: &Path) -> Result<(), DiskError> {
        let path = directory.join(FILE);
        let remove = || match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => durable_file::sync_directory(&path),
        };
        remove().map_err(|source| DiskError::Open { path: path.clone(), source })
    }

    /// Opens the file of a directory, and returns it with the life that it belongs to.
    pub fn open(directory: &Path, owner: &DiskOwner) -> Result<(StoreDisk, u64), DiskError> {
        let path = directory.join(FILE);
        let cannot = |source| DiskError::Open { path: path.clone(), source };
        let damaged = |reason: &str| Err(DiskError::Damaged { path: path.clone(), reason: reason.to_owned() });
        let mut file = File::options().read(true).write(true).open(&path).map_err(cannot)?;
        if !file.metadata().map_err(cannot)?.is_file() {
            return damaged("it is not a regular file");
        }
        let mut magic = [0; MAGIC.len()];
        if file.read_exact(&mut magic).is_err() || magic != MAGIC {
            return damaged("it does not begin as such files do");
        }
        let disk = StoreDisk::with_backend(&path, FileBackend::new(file))?;
        let read = |name: &str| disk.about(name);
        if read("format")?.as_deref().and_then(number) != Some(FORMAT) {
            return Err(DiskError::Format(path));
        }
        let values = [read("node")?, read("life")?].map(|value| value.as_deref().and_then(number));
        let ([Some(node), Some(life)], Some(name)) = (values, read("store")?) else {
            return damaged("it does not name its store");
        };
        if name != owner.name.as_bytes() || node != u64::from(owner.node) {
            let (of, name) = (String::from_utf8_lossy(&name).into_owned(), owner.name.clone());
            return Err(DiskError::Foreign { path, owner: of, name });
        }
        Ok((disk, life))
    }

    /// Creates the file of a directory, without entries, in place of an earlier one. It gets its name when it is
    /// complete.
    pub fn create(directory: &Path, owner: &DiskOwner) -> Result<StoreDisk, DiskError> {
        let (new, path) = (directory.join(NEW_FILE), directory.join(FILE));
        let cannot = |source| DiskError::Open { path: path.clone(), source };
        let file = File::options().read(true).write(true).create(true).truncate(true).mode(0o600).open(&new);
        let disk = StoreDisk::with_backend(&path, FileBackend::new(file.map_err(cannot)?))?;
        disk.write(|transaction| {
            let mut about = transaction.open_table(ABOUT)?;
            about.insert("store", owner.name.as_bytes())?;
            for (name, value) in [("format", FORMAT), ("node", u64::from(owner.node)), ("life", owner.life)] {
                about.insert(name, value.to_be_bytes().as_slice())?;
            }
            transaction.open_table(ENTRIES)?;
            transaction.open_table(LOG)?;
            Ok(())
        })?;
        durable_file::rename(&new, &path).map_err(cannot)?;
        Ok(disk)
    }

    /// Opens a file as a database, and checks all of it.
    pub fn with_backend<B: StorageBackend>(
        path: &Path,
        backend: Result<B, DatabaseError>,
    ) -> Result<StoreDisk, DiskError> {
        let path = path.to_owned();
        let open = || {
            let mut builder = Database::builder();
            builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
            builder.create_with_backend(backend?)
        };
        // Until the check has ended, damage may violate the library's assertions.
        match catch_unwind(AssertUnwindSafe(open)) {
            Ok(Ok(database)) => Ok(StoreDisk { database, log: Mutex::new(Some(CommitLog::default())), path }),
            Ok(Err(DatabaseError::DatabaseAlreadyOpen)) => {
                let source = io::Error::new(ErrorKind::WouldBlock, "another process uses it");
                Err(DiskError::Open { path, source })
            }
            Ok(Err(DatabaseError::UpgradeRequired(_))) => Err(DiskError::Format(path)),
            Ok(Err(DatabaseError::Storage(redb::StorageError::Io(error)))) => {
                Err(DiskError::Open { path, source: io::Error::other(error.to_string()) })
            }
            Ok(Err(error)) => Err(DiskError::Damaged { path, reason: reason(&error) }),
            Err(_) => Err(DiskError::Damaged { path, reason: "its structure is invalid".to_owned() }),
        }
    }

    /// Passes all entries to a recovery. No batch may have been committed before.
    pub fn recover(&self, recovery: &mut StoreRecovery) -> Result<(), DiskError> {
        self.for_each_entry(|key, value| recovery.entry(key, value).is_ok())
    }

    /// Calls `visit` with all entries in the order of keys. If it returns false, an entry is malformed.
    fn for_each_entry(&self, mut visit: impl FnMut(&[u8], &[u8]) -> bool) -> Result<(), DiskError> {
        let damaged = |reason: &dyn std::fmt::Display| DiskError::Damaged {
            path: self.path.clone(),
            reason: self::reason(reason),
        };
        let mut is_whole = true;
        self.write(|transaction| {
            is_whole = empty_log(&mut transaction.open_table(LOG)?, &mut transaction.open_table(ENTRIES)?)?;
            Ok(())
        })?;
        if !is_whole {
            return Err(damaged(&"its log is malformed"));
        }
        let mut read = || -> Result<_, redb::Error> {
            let table = match self.database.begin_read()?.open_table(ENTRIES) {
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(true),
                table => table?,
            };
            for entry in table.range::<&[u8]>(..)? {
                let (key, value) = entry?;
                if !visit(key.value(), value.value()) {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        match read() {
            Ok(true) => Ok(()),
            Ok(false) => Err(damaged(&"an entry is malformed")),
            Err(error) => Err(damaged(&error)),
        }
    }

    /// Returns the error of a file that is intact, but was not written by a store.
    pub fn damaged(&self, reason: &str) -> DiskError {
        DiskError::Damaged { path: self.path.clone(), reason: reason.to_owned() }
    }

    /// Commits the changes of a batch. They are on disk when this returns.
    pub fn commit(&self, batch: &CommitBatch) -> Result<(), DiskError> {
        self.change(batch.changes().collect())
    }

    fn change(&self, changes: Vec<EntryChange>) -> Result<(), DiskError> {
        let mut kept = self.log.lock().map_err(|_| self.abandoned())?;
        let mut memory = kept.take().ok_or_else(|| self.abandoned())?;
        self.write(|transaction| {
            let (mut entries, mut log) = (transaction.open_table(ENTRIES)?, transaction.open_table(LOG)?);
            if !changes.iter().any(|change| matches!(change, EntryChange::RemoveAll(_))) {
                return memory.append(changes, &mut log, &mut entries);
            }
            // Shards are rarely cleared, and the log cannot express it.
            empty_log(&mut log, &mut entries)?;
            memory = CommitLog::default();
            for change in &changes {
                match change {
                    EntryChange::Put(key, value) => set_entry(&mut entries, key, Some(value))?,
                    EntryChange::Remove(key) => set_entry(&mut entries, key, None)?,
                    EntryChange::RemoveAll(prefix) => {
                        entries.retain_in(prefix.as_slice()..=last_key(prefix).as_slice(), |_, _| false)?;
                    }
                }
            }
            Ok(())
        })?;
        *kept = Some(memory);
        Ok(())
    }

    /// Returns the error of a writer that has stopped without reporting one.
    pub fn abandoned(&self) -> DiskError {
        DiskError::Write { path: self.path.clone(), reason: "the writer has stopped after an error".to_owned() }
    }

    /// Returns the longest lease that the store has ever granted, in nanoseconds.
    pub fn longest_lease_ns(&self) -> Result<u64, DiskError> {
        Ok(self.about("lease")?.as_deref().and_then(number).unwrap_or(0))
    }

    /// Records the longest lease.
    pub fn set_longest_lease_ns(&self, lease_ns: u64) -> Result<(), DiskError> {
        self.write(|transaction| {
            transaction.open_table(ABOUT)?.insert("lease", lease_ns.to_be_bytes().as_slice())?;
            Ok(())
        })
    }

    fn write(&self, change: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>) -> Result<(), DiskError> {
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            change(&transaction)?;
            Ok(transaction.commit()?)
        };
        write().map_err(|error| DiskError::Write { path: self.path.clone(), reason: reason(&error) })
    }

    fn about(&self, name: &str) -> Result<Option<Vec<u8>>, DiskError> {
        let read = || -> Result<_, redb::Error> {
            match self.database.begin_read()?.open_table(ABOUT) {
                Ok(table) => Ok(table.get(name)?.map(|value| value.value().to_vec())),
                Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
                Err(error) => Err(error.into()),
            }
        };
        read().map_err(|error| DiskError::Damaged { path: self.path.clone(), reason: reason(&error) })
    }
}

/// Returns a key after all those that begin with a prefix: no key is longer than a row's.
fn last_key(prefix: &[u8]) -> Vec<u8> {
    [prefix, &[0xff; 64]].concat()
}

fn reason(error: &dyn std::fmt::Display) -> String {
    error.to_string().trim_end_matches('.').to_owned()
}

fn number(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
